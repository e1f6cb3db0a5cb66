//! Reads of changes of people: what these are judged by.

use holdfast_domain::admin::{
    AccountAction, ActorId, EmailAddress, FoundPerson, PasswordHash, Person, PersonAction,
    PersonBy, PersonRecord, ResourceId,
};
use holdfast_domain::{PersonId, Timestamp};
use sea_orm::Statement;

use super::{Reads, Tx};
use crate::rows::entity::person_grant::GrantRow;
use crate::rows::person::{LINK, LINK_TABLES, add_link, link, of_email};
use crate::rows::{FromCells as _, Row as _};
use crate::schema::{Dialect, blob};

pub(super) const OWNERS_KEYS: &str =
    "SELECT count(*), count(CASE WHEN a.ends_at IS NULL THEN 1 END)
    FROM admin_keys AS a WHERE a.role = 'owner'
    AND a.id <> $1 AND a.revoked_at IS NULL AND (a.ends_at IS NULL OR a.ends_at > $2)";
/// A person who cannot sign in does not count as another owner.
pub(super) const OWNERS: &str =
    "SELECT count(*) FROM people AS p WHERE p.id <> $1 AND p.ended_at IS NULL
    AND EXISTS (SELECT 1 FROM person_passwords AS w WHERE w.person_id = p.id)
    AND EXISTS (SELECT 1 FROM person_grants AS g WHERE g.person_id = p.id AND g.role = 'owner')";

const KEYS_AUTHORITY: &str = "SELECT a.role, a.wallet_id FROM admin_keys AS a
    WHERE a.id = $1 AND a.revoked_at IS NULL AND (a.ends_at IS NULL OR a.ends_at > $2)";
const PERSONS_AUTHORITY: &str = "SELECT g.role, g.wallet_id
    FROM person_grants AS g JOIN people AS p ON p.id = g.person_id
    WHERE p.id = $1 AND p.ended_at IS NULL";

/// The current authorities of an actor. No command changes them meanwhile: they come one after the other.
pub(super) fn authorities(dialect: Dialect, actor: ActorId, now: Timestamp) -> Option<Statement> {
    match actor {
        ActorId::Local | ActorId::Anonymous => None,
        ActorId::AdminKey(id) => {
            let binds = [blob(id.to_bytes()), now.as_micros().into()];
            Some(dialect.statement(KEYS_AUTHORITY, binds))
        }
        ActorId::Person(id) => Some(dialect.statement(PERSONS_AUTHORITY, [blob(id.to_bytes())])),
    }
}

impl<T: Tx> Reads<'_, T> {
    /// The person that a bound request key of an invitation has invited: its address is in no digest.
    pub(crate) async fn invited(
        &mut self,
        bound: &[ResourceId],
    ) -> Result<Option<PersonRecord>, T::Error> {
        if let (AccountAction::Person(PersonAction::Invite { .. }), [ResourceId::Person(id), ..]) =
            (&self.command.action, bound)
        {
            let found = self.found_person(PersonBy::Id(*id)).await?;
            return Ok(found.map(|(record, _password)| record));
        }
        Ok(None)
    }

    /// The person, locked, and then all that they have.
    pub(super) async fn found_person(
        &mut self,
        of: PersonBy<'_>,
    ) -> Result<Option<FoundPerson>, T::Error> {
        let dialect = self.dialect;
        let people = format!("SELECT {} FROM people AS p", Person::COLUMNS);
        let grants = format!(
            "SELECT {} FROM person_grants AS g JOIN people AS p ON p.id = g.person_id",
            GrantRow::COLUMNS
        );
        let passwords =
            "SELECT w.hash FROM person_passwords AS w JOIN people AS p ON p.id = w.person_id";
        // A sign-in takes this lock as well: none begins by what is changed meanwhile.
        let person = selected(dialect, of, &people, dialect.row_lock());
        let person = self.last(person, Person::from_cells).await?;
        let grants = selected(dialect, of, &grants, " ORDER BY g.seq");
        let grants = self.tx.query(grants, GrantRow::from_cells).await?;
        let password = selected(dialect, of, passwords, "");
        let password = self.last(password, |cells| Ok(PasswordHash::new(cells.text()?))).await?;
        let mut links = Vec::new();
        for table in LINK_TABLES {
            let select =
                format!("SELECT {LINK} FROM {table} AS l JOIN people AS p ON p.id = l.person_id");
            let found = self.tx.query(selected(dialect, of, &select, ""), link).await?;
            found.into_iter().for_each(|link| add_link(&mut links, link));
        }
        let grants = grants.into_iter().map(|(_person, grant)| grant).collect();
        let (has_password, invitations) = (password.is_some(), Vec::new());
        let record = |person| PersonRecord { person, grants, has_password, links, invitations };
        Ok(person.map(record).map(|record| (record, password)))
    }
}

/// A statement over `people AS p` that finds the person.
fn selected(dialect: Dialect, of: PersonBy<'_>, select: &str, end: &str) -> Statement {
    let (condition, binds) = match of {
        PersonBy::Id(id) => ("p.id = $1".to_owned(), vec![blob(id.to_bytes())]),
        PersonBy::Email(email) => of_email(email),
        PersonBy::Unnamed => ("p.email IS NULL AND p.ended_at IS NULL".to_owned(), Vec::new()),
    };
    let sql = format!("{select} WHERE {condition}{end}");
    Statement::from_sql_and_values(dialect.backend(), sql, binds)
}

pub(super) fn taken_email(dialect: Dialect, email: &EmailAddress, own: PersonId) -> Statement {
    let (is_of_email, mut binds) = of_email(email);
    binds.push(blob(own.to_bytes()));
    let sql = format!(
        "SELECT count(*) FROM people AS p WHERE {is_of_email} AND p.id <> ${}",
        binds.len()
    );
    Statement::from_sql_and_values(dialect.backend(), sql, binds)
}
