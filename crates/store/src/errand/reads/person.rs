//! Reads of changes of people: what these are judged by.

use holdfast_domain::admin::{
    ActorId, EmailAddress, PasswordHash, Person, PersonAction, PersonRecord, Reach, Thing,
};
use holdfast_domain::{AdminKeyId, PersonId, Timestamp};
use sea_orm::Statement;

use super::Read;
use crate::dialect::{Dialect, blob};
use crate::entity::person_grant::GrantRow;
use crate::rows::person::{LINK, LINK_TABLES, add_link, authority, link, of_email};
use crate::rows::{FromCells, Row};

const OWNERS_KEYS: &str = "SELECT count(*), count(CASE WHEN a.ends_at IS NULL THEN 1 END)
    FROM admin_keys AS a WHERE a.role = 'owner'
    AND a.id <> $1 AND a.revoked_at IS NULL AND (a.ends_at IS NULL OR a.ends_at > $2)";
/// Whoever cannot sign in is no owner that another one could be left to.
const OWNERS: &str = "SELECT count(*) FROM people AS p WHERE p.id <> $1 AND p.ended_at IS NULL
    AND EXISTS (SELECT 1 FROM person_passwords AS w WHERE w.person_id = p.id)
    AND EXISTS (SELECT 1 FROM person_grants AS g WHERE g.person_id = p.id AND g.role = 'owner')";

const KEYS_AUTHORITY: &str = "SELECT a.role, a.wallet_id FROM admin_keys AS a
    WHERE a.id = $1 AND a.revoked_at IS NULL AND (a.ends_at IS NULL OR a.ends_at > $2)";
const PERSONS_AUTHORITY: &str = "SELECT g.role, g.wallet_id
    FROM person_grants AS g JOIN people AS p ON p.id = g.person_id
    WHERE p.id = $1 AND p.ended_at IS NULL";

/// Condition that finds the person of an action, over `people AS p`.
enum Whom<'a> {
    Id(PersonId),
    Email(&'a EmailAddress),
    /// The first owner, who has not said yet who they are.
    Unnamed,
}

impl Whom<'_> {
    fn statement(&self, dialect: Dialect, select: &str, end: &str) -> Statement {
        let (condition, binds) = match self {
            Self::Id(id) => ("p.id = $1".to_owned(), vec![blob(id.to_bytes())]),
            Self::Email(email) => of_email(email),
            Self::Unnamed => ("p.email IS NULL AND p.ended_at IS NULL".to_owned(), Vec::new()),
        };
        let sql = format!("{select} WHERE {condition}{end}");
        Statement::from_sql_and_values(dialect.backend(), sql, binds)
    }
}

/// The facts that a change is judged by.
pub(super) fn facts(
    dialect: Dialect,
    action: &PersonAction,
    bound: u32,
    now: Timestamp,
) -> Vec<Read> {
    use PersonAction as Action;
    let owners = |id: PersonId| owners(dialect, AdminKeyId::from_u128(0), id, now);
    match action {
        Action::Invite { email, offered, .. } => {
            let mut reads = record(dialect, &Whom::Email(email));
            reads.extend(others(dialect, email, offered.reach, bound));
            reads
        }
        Action::InviteFirstOwner { .. } => {
            let mut reads = record(dialect, &Whom::Unnamed);
            reads.extend(owners(PersonId::from_u128(0)));
            reads
        }
        Action::RenewLink { person, .. } | Action::ChangePassword { person, .. } => {
            record(dialect, &Whom::Id(*person))
        }
        Action::Accept { person, made_by, .. } => {
            let mut reads = record(dialect, &Whom::Id(*person));
            reads.extend(maker(dialect, *made_by, now));
            reads
        }
        Action::AcceptFirstOwner { person, email, .. } => {
            let mut reads = record(dialect, &Whom::Id(*person));
            reads.extend(owners(PersonId::from_u128(0)));
            reads.push(taken_email(dialect, email, *person));
            reads
        }
        Action::EndGrant { person, .. } | Action::End { person, .. } => {
            let mut reads = record(dialect, &Whom::Id(*person));
            reads.extend(owners(*person));
            reads
        }
    }
}

/// People of the wallet of an invitation, but for whoever has the address: they are counted already, or are new.
fn others(dialect: Dialect, email: &EmailAddress, reach: Reach, bound: u32) -> Option<Read> {
    let Reach::Wallet(wallet) = reach else { return None };
    Some(super::bounds::people(dialect, wallet, email, bound))
}

/// Owners in force beside this key and this person.
pub(super) fn owners(
    dialect: Dialect,
    key: AdminKeyId,
    person: PersonId,
    now: Timestamp,
) -> [Read; 2] {
    let keys = [blob(key.to_bytes()), now.as_micros().into()];
    [
        Read {
            statement: dialect.statement(OWNERS_KEYS, keys),
            take: |findings, cells| {
                let facts = &mut findings.facts;
                facts.other_owners = facts.other_owners.saturating_add(cells.small()?);
                let lasting = cells.small()?;
                facts.other_lasting_owners = facts.other_lasting_owners.saturating_add(lasting);
                Ok(())
            },
        },
        Read {
            statement: dialect.statement(OWNERS, [blob(person.to_bytes())]),
            take: |findings, cells| {
                let (facts, people) = (&mut findings.facts, cells.small()?);
                facts.other_owners = facts.other_owners.saturating_add(people);
                facts.other_lasting_owners = facts.other_lasting_owners.saturating_add(people);
                Ok(())
            },
        },
    ]
}

/// What whoever made a link has now. No command changes it meanwhile: they come one after the other.
fn maker(dialect: Dialect, made_by: ActorId, now: Timestamp) -> Option<Read> {
    let statement = match made_by {
        ActorId::Local | ActorId::Anonymous => return None,
        ActorId::AdminKey(id) => {
            dialect.statement(KEYS_AUTHORITY, [blob(id.to_bytes()), now.as_micros().into()])
        }
        ActorId::Person(id) => dialect.statement(PERSONS_AUTHORITY, [blob(id.to_bytes())]),
    };
    Some(Read {
        statement,
        take: |findings, cells| {
            findings.facts.person.maker.push(authority(cells)?);
            Ok(())
        },
    })
}

/// The person that a bound request key of an invitation has invited: its address is in no digest.
pub(super) fn invited(dialect: Dialect, action: &PersonAction, bound: &[Thing]) -> Vec<Read> {
    if let (PersonAction::Invite { .. }, [Thing::Person(id), ..]) = (action, bound) {
        return record(dialect, &Whom::Id(*id));
    }
    Vec::new()
}

/// The person, locked, and then all that they have.
fn record(dialect: Dialect, whom: &Whom<'_>) -> Vec<Read> {
    let people = format!("SELECT {} FROM people AS p", Person::COLUMNS);
    let grants = format!(
        "SELECT {} FROM person_grants AS g JOIN people AS p ON p.id = g.person_id",
        GrantRow::COLUMNS
    );
    let links = LINK_TABLES.map(|table| {
        let links =
            format!("SELECT {LINK} FROM {table} AS l JOIN people AS p ON p.id = l.person_id");
        Read {
            statement: whom.statement(dialect, &links, ""),
            take: |findings, cells| {
                let link = link(cells)?;
                let record = findings.facts.person.record.as_mut();
                record.into_iter().for_each(|record| add_link(&mut record.links, link.clone()));
                Ok(())
            },
        }
    });
    let passwords =
        "SELECT w.hash FROM person_passwords AS w JOIN people AS p ON p.id = w.person_id";
    let mut reads = vec![
        Read {
            // A sign-in takes this lock as well: none begins by what is changed meanwhile.
            statement: whom.statement(dialect, &people, dialect.row_lock()),
            take: |findings, cells| {
                let (person, grants) = (Person::from_cells(cells)?, Vec::new());
                let (links, invitations) = (Vec::new(), Vec::new());
                let record =
                    PersonRecord { person, grants, has_password: false, links, invitations };
                findings.facts.person.record = Some(record);
                Ok(())
            },
        },
        Read {
            statement: whom.statement(dialect, &grants, " ORDER BY g.seq"),
            take: |findings, cells| {
                let (_person, grant) = GrantRow::from_cells(cells)?;
                let record = findings.facts.person.record.as_mut();
                record.into_iter().for_each(|record| record.grants.push(grant));
                Ok(())
            },
        },
        Read {
            statement: whom.statement(dialect, passwords, ""),
            take: |findings, cells| {
                findings.facts.person.password = Some(PasswordHash::new(cells.text()?));
                let record = findings.facts.person.record.as_mut();
                record.into_iter().for_each(|record| record.has_password = true);
                Ok(())
            },
        },
    ];
    reads.extend(links);
    reads
}

fn taken_email(dialect: Dialect, email: &EmailAddress, own: PersonId) -> Read {
    let (is_of_email, mut binds) = of_email(email);
    binds.push(blob(own.to_bytes()));
    let sql = format!(
        "SELECT count(*) FROM people AS p WHERE {is_of_email} AND p.id <> ${}",
        binds.len()
    );
    Read {
        statement: Statement::from_sql_and_values(dialect.backend(), sql, binds),
        take: |findings, cells| {
            findings.facts.person.is_email_taken = cells.int()? > 0;
            Ok(())
        },
    }
}
