//! Writes of changes of people.

use holdfast_domain::PersonId;
use holdfast_domain::admin::{
    Authority, EndedSessions, LinkPurpose, PersonInvitation, PersonLink, PersonWrite, Reach,
};
use holdfast_domain::secret::TokenHash;
use sea_orm::{Statement, Value};

use super::admin_key::wallet_of;
use crate::rows::Row;
use crate::rows::person::LINK_TABLES;
use crate::schema::{Dialect, blob};

const PUT_PASSWORD: &str = "INSERT INTO person_passwords (person_id, hash, set_at)
    VALUES ($1, $2, $3)
    ON CONFLICT (person_id) DO UPDATE SET hash = excluded.hash, set_at = excluded.set_at";
/// A mark lasts no longer than the password that it was made under.
const DELETE_MARKS: &str = "DELETE FROM browser_marks WHERE person_id = $1";
const DELETE_PASSWORD: &str = "DELETE FROM person_passwords WHERE person_id = $1";
const DELETE_GRANT: &str = "DELETE FROM person_grants WHERE person_id = $1 AND role = $2
    AND wallet_id IS NOT DISTINCT FROM $3";
const DELETE_GRANTS: &str = "DELETE FROM person_grants WHERE person_id = $1";
const PUT_LINK: &str = "INSERT INTO person_links (id, person_id, token, purpose, role, wallet_id,
    expires_at, created_by) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
    ON CONFLICT (person_id) DO UPDATE SET id = excluded.id, token = excluded.token,
    purpose = excluded.purpose, role = excluded.role, wallet_id = excluded.wallet_id,
    expires_at = excluded.expires_at, used_at = NULL, created_by = excluded.created_by";
/// A version before keeps the link of a wallet among those of operators: moved, so that neither takes the other's place.
const MOVE_LINK: &str =
    "INSERT INTO person_wallet_links (id, person_id, token, purpose, role, wallet_id,
    expires_at, used_at, created_by)
    SELECT id, person_id, token, purpose, role, wallet_id, expires_at, used_at, created_by
    FROM person_links WHERE person_id = $1 AND wallet_id IS NOT NULL
    ON CONFLICT (person_id, wallet_id) DO UPDATE SET id = excluded.id, token = excluded.token,
    purpose = excluded.purpose, role = excluded.role, expires_at = excluded.expires_at,
    used_at = excluded.used_at, created_by = excluded.created_by";
const DELETE_MOVED: &str =
    "DELETE FROM person_links WHERE person_id = $1 AND wallet_id IS NOT NULL";
const PUT_WALLET_LINK: &str =
    "INSERT INTO person_wallet_links (id, person_id, token, purpose, role,
    wallet_id, expires_at, created_by) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
    ON CONFLICT (person_id, wallet_id) DO UPDATE SET id = excluded.id, token = excluded.token,
    purpose = excluded.purpose, role = excluded.role, expires_at = excluded.expires_at,
    used_at = NULL, created_by = excluded.created_by";
const KEEP_INVITATION: &str = " ON CONFLICT (person_id, wallet_id)
    DO UPDATE SET name = coalesce(excluded.name, person_invitations.name)";
const DELETE_INVITATION: &str =
    "DELETE FROM person_invitations WHERE person_id = $1 AND wallet_id = $2";
const ERASE_INVITATIONS: &str = "UPDATE person_invitations SET name = NULL WHERE person_id = $1";
const RENEW_SESSION: &str = "UPDATE sessions SET token = $1 WHERE id = $2";
const END_SESSIONS: &str = "DELETE FROM sessions WHERE person_id = $1";

/// The statements of a write.
pub(super) fn statements(dialect: Dialect, write: &PersonWrite) -> Vec<Statement> {
    let of = |sql, person: &PersonId| dialect.statement(sql, [blob(person.to_bytes())]);
    let in_both = |change: &str, binds: &[Value]| {
        let statement = |table| {
            let sql = change.replace("{links}", table);
            Statement::from_sql_and_values(dialect.backend(), sql, binds.to_vec())
        };
        LINK_TABLES.map(statement).to_vec()
    };
    match write {
        PersonWrite::PutPassword(person, hash, at) => {
            let binds =
                [blob(person.to_bytes()), hash.expose().to_owned().into(), at.as_micros().into()];
            vec![dialect.statement(PUT_PASSWORD, binds), of(DELETE_MARKS, person)]
        }
        PersonWrite::DeletePassword(person) => {
            vec![of(DELETE_PASSWORD, person), of(DELETE_MARKS, person)]
        }
        PersonWrite::PutLink(link, token) => vec![
            of(MOVE_LINK, &link.person),
            of(DELETE_MOVED, &link.person),
            put_link(dialect, link, *token),
        ],
        PersonWrite::UseLink(link, at) => in_both(
            "UPDATE {links} SET used_at = $1 WHERE id = $2",
            &[at.as_micros().into(), blob(link.to_bytes())],
        ),
        PersonWrite::DeleteLink(link) => {
            in_both("DELETE FROM {links} WHERE id = $1", &[blob(link.to_bytes())])
        }
        PersonWrite::DeleteLinks(person) => {
            in_both("DELETE FROM {links} WHERE person_id = $1", &[blob(person.to_bytes())])
        }
        PersonWrite::PutInvitation(person, invitation) => {
            vec![put_invitation(dialect, *person, invitation)]
        }
        PersonWrite::DeleteInvitation(person, wallet) => {
            let binds = [blob(person.to_bytes()), blob(wallet.to_bytes())];
            vec![dialect.statement(DELETE_INVITATION, binds)]
        }
        PersonWrite::EraseInvitations(person) => vec![of(ERASE_INVITATIONS, person)],
        PersonWrite::Insert(person) => vec![person.insert(dialect)],
        PersonWrite::Update(person) => vec![person.update(dialect)],
        PersonWrite::InsertGrant(person, grant) => vec![(*person, *grant).insert(dialect)],
        PersonWrite::DeleteGrant(person, authority) => {
            vec![dialect.statement(DELETE_GRANT, authority_of(*person, *authority))]
        }
        PersonWrite::DeleteGrants(person) => vec![of(DELETE_GRANTS, person)],
        PersonWrite::EndSessions(person, which) => vec![end_sessions(dialect, *person, *which)],
        PersonWrite::RenewSession(session, token) => {
            let binds = [blob(token.to_bytes()), blob(session.to_bytes())];
            vec![dialect.statement(RENEW_SESSION, binds)]
        }
    }
}

fn put_invitation(dialect: Dialect, person: PersonId, invitation: &PersonInvitation) -> Statement {
    let mut put = (person, invitation.clone()).insert(dialect);
    put.sql.push_str(KEEP_INVITATION);
    put
}

fn authority_of(person: PersonId, authority: Authority) -> [Value; 3] {
    let role = authority.role.label();
    [blob(person.to_bytes()), role.into(), wallet_of(authority.reach).into()]
}

fn put_link(dialect: Dialect, link: &PersonLink, token: TokenHash) -> Statement {
    // The authority of a first owner is always the same, and has no column.
    let authority = match link.purpose {
        LinkPurpose::Accept(authority) => Some(authority),
        LinkPurpose::SetPassword | LinkPurpose::FirstOwner => None,
    };
    let put = match link.reach {
        Reach::All => PUT_LINK,
        Reach::Wallet(_) => PUT_WALLET_LINK,
    };
    let binds = [
        blob(link.id.to_bytes()),
        blob(link.person.to_bytes()),
        blob(token.to_bytes()),
        link.purpose.label().into(),
        authority.map(|it| it.role.label().to_owned()).into(),
        wallet_of(link.reach).into(),
        link.expires_at.as_micros().into(),
        link.created_by.to_string().into(),
    ];
    dialect.statement(put, binds)
}

fn end_sessions(dialect: Dialect, person: PersonId, which: EndedSessions) -> Statement {
    match which {
        EndedSessions::All => dialect.statement(END_SESSIONS, [blob(person.to_bytes())]),
        EndedSessions::Except(kept) => {
            let sql = format!("{END_SESSIONS} AND id <> $2");
            dialect.statement(&sql, [blob(person.to_bytes()), blob(kept.to_bytes())])
        }
        EndedSessions::Using(authority) => {
            let sql = format!("{END_SESSIONS} AND role = $2 AND wallet_id IS NOT DISTINCT FROM $3");
            dialect.statement(&sql, authority_of(person, authority))
        }
    }
}
