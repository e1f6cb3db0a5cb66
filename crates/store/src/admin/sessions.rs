//! Sessions of people, and their means of signing in. Neither is a part of the audit log.
//!
//! A session begins under the lock of its person, which each change of a person takes first: none begins by a
//! password that is being changed. A session that has ended in spite of that is found at each look-up, which reads
//! person and grants as they are then.
//!
//! Tokens and passwords are stored only as hashes: a copy of the tables does not open a session.

use std::time::Duration;

use async_trait::async_trait;
use holdfast_domain::admin::Directory as _;
use holdfast_domain::admin::ports::Sessions;
use holdfast_domain::admin::{
    Authority, BROWSER_MARKS_MAX, BrowserMark, EmailAddress, KnownLink, KnownPassword,
    KnownSession, NewBrowserMark, NewSession, Person, PersonGrant, SESSION_IDLE, SESSION_LIFETIME,
    SESSIONS_MAX, Session,
};
use holdfast_domain::ports::Unavailable;
use holdfast_domain::private::Private;
use holdfast_domain::secret::TokenHash;
use holdfast_domain::{LinkId, PersonId, SessionId, Timestamp};
use sea_orm::{Statement, Value};

use crate::error::unavailable;
use crate::rows::entity::person_grant::GrantRow;
use crate::rows::person::{
    BROWSER_MARK, LINK_TABLES, PASSWORD, SESSION, browser_mark, of_email, password, session,
};
use crate::rows::{BadRow, Cells, FromCells, Row};
use crate::schema::{Dialect, blob};
use crate::store::Store;
use crate::transaction::command::admin_key::wallet_of;
use crate::transaction::exchange::Exchange;

const DELETE_ENDED: &str = "DELETE FROM sessions WHERE created_at <= $1 OR last_seen_at <= $2";
const DELETE_OLDEST: &str = "DELETE FROM sessions WHERE person_id = $1 AND id NOT IN
    (SELECT s.id FROM sessions AS s WHERE s.person_id = $1
     ORDER BY s.created_at DESC, s.id DESC LIMIT $2)";
/// Inserts no row if the password or the grant is not theirs any more.
const INSERT: &str = "INSERT INTO sessions (id, person_id, token, role, wallet_id, created_at,
    last_seen_at, signed_in_at, address)
    SELECT $1, p.id, $2, g.role, g.wallet_id, $3, $3, $3, $4
    FROM people AS p JOIN person_passwords AS w ON w.person_id = p.id
    JOIN person_grants AS g ON g.person_id = p.id
    WHERE p.id = $5 AND p.ended_at IS NULL AND w.hash = $6
    AND g.role = $7 AND g.wallet_id IS NOT DISTINCT FROM $8";
const TOUCH: &str = "UPDATE sessions SET last_seen_at = $1, address = $2 WHERE id = $3";
const USE_AUTHORITY: &str =
    "UPDATE sessions SET role = $1, wallet_id = $2, token = $4 WHERE id = $3
    AND EXISTS (SELECT 1 FROM person_grants AS g WHERE g.person_id = sessions.person_id
        AND g.role = $1 AND g.wallet_id IS NOT DISTINCT FROM $2)";
/// Inserts no row if the password is not theirs any more.
const INSERT_MARK: &str =
    "INSERT INTO browser_marks (id, person_id, mark, created_at, used_at, address)
    SELECT $1, w.person_id, $2, $3, $3, $4 FROM person_passwords AS w
    WHERE w.person_id = $5 AND w.hash = $6";
const DELETE_OLDEST_MARKS: &str = "DELETE FROM browser_marks WHERE person_id = $1 AND id NOT IN
    (SELECT b.id FROM browser_marks AS b WHERE b.person_id = $1
     ORDER BY b.created_at DESC, b.id DESC LIMIT $2)";
const TOUCH_MARK: &str = "UPDATE browser_marks SET used_at = $1, address = $2 WHERE mark = $3";
const END_SESSIONS: &str = "DELETE FROM sessions WHERE person_id = $1";
const END_MARKS: &str = "DELETE FROM browser_marks WHERE person_id = $1";
/// A node of the version before changes passwords and leaves the marks.
const OF_PASSWORD: &str = "FROM browser_marks AS b JOIN person_passwords AS w
    ON w.person_id = b.person_id AND b.created_at >= w.set_at";
const END: &str = "DELETE FROM sessions WHERE person_id = $1 AND id = $2";

impl Store {
    /// Runs statements that are made of the clock, after this one, in one transaction.
    async fn write_session(
        &self,
        read: Statement,
        statements: impl FnOnce(Timestamp) -> Vec<Statement> + Send + 'static,
    ) -> Result<(), Unavailable> {
        let read = move |_now| read;
        let judge = move |_rows, now| (statements(now), ());
        self.exchange(Exchange::new(read, |cells| cells.bytes::<16>(), judge)).await
    }

    async fn grants_of(&self, person: PersonId) -> Result<Vec<PersonGrant>, Unavailable> {
        let sql = format!(
            "SELECT {} FROM person_grants AS g WHERE g.person_id = $1 ORDER BY g.seq",
            GrantRow::COLUMNS
        );
        let rows = self.quick_query(&sql, [blob(person.to_bytes())]).await?;
        let grants = rows
            .iter()
            .map(|row| GrantRow::from_cells(&mut Cells::new(row)).map(|(_, grant)| grant));
        grants.collect::<Result<_, _>>().map_err(unavailable)
    }

    async fn password_where(
        &self,
        condition: &str,
        binds: Vec<Value>,
    ) -> Result<Option<KnownPassword>, Unavailable> {
        let sql = format!(
            "SELECT {PASSWORD} FROM person_passwords AS w JOIN people AS p ON p.id = w.person_id
             WHERE {condition} AND p.ended_at IS NULL"
        );
        let backend = self.dialect().backend();
        let statement = Statement::from_sql_and_values(backend, sql, binds);
        let rows = self.inner.pools.readers.query(statement).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let known = password(&mut Cells::new(row)).map_err(unavailable)?;
        let grants = self.grants_of(known.person).await?;
        Ok(Some(KnownPassword { grants, ..known }))
    }
}

#[async_trait]
impl Sessions for Store {
    async fn password_of(
        &self,
        email: &EmailAddress,
    ) -> Result<Option<KnownPassword>, Unavailable> {
        let (condition, binds) = of_email(email);
        self.password_where(&condition, binds).await
    }

    async fn password_of_person(
        &self,
        person: PersonId,
    ) -> Result<Option<KnownPassword>, Unavailable> {
        self.password_where("p.id = $1", vec![blob(person.to_bytes())]).await
    }

    async fn begin_session(&self, new: &NewSession) -> Result<(), Unavailable> {
        let (dialect, new) = (self.dialect(), new.clone());
        let lock = format!("SELECT p.id FROM people AS p WHERE p.id = $1{}", dialect.row_lock());
        let lock = dialect.statement(&lock, [blob(new.person.to_bytes())]);
        self.write_session(lock, move |now| begin(dialect, &new, now)).await
    }

    async fn session(&self, token: &TokenHash) -> Result<Option<KnownSession>, Unavailable> {
        let sql = format!(
            "SELECT {}, {SESSION}, {} FROM sessions AS s
             JOIN people AS p ON p.id = s.person_id WHERE s.token = $1",
            self.dialect().clock(),
            Person::COLUMNS
        );
        let rows = self.quick_query(&sql, [blob(token.to_bytes())]).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let read = session_and_person(&mut Cells::new(row)).map_err(unavailable)?;
        let (now, session, person) = read;
        let grants = self.grants_of(person.id).await?;
        Ok(Some(KnownSession { session, person, grants, now: self.seen(now) }))
    }

    async fn touch_session(
        &self,
        session: SessionId,
        address: &Private<String>,
    ) -> Result<(), Unavailable> {
        let (dialect, address) = (self.dialect(), address.0.clone());
        let read = "SELECT s.id FROM sessions AS s WHERE s.id = $1";
        let read = dialect.statement(read, [blob(session.to_bytes())]);
        let touch = move |now: Timestamp| {
            let binds = [now.as_micros().into(), address.into(), blob(session.to_bytes())];
            vec![dialect.statement(TOUCH, binds)]
        };
        self.write_session(read, touch).await
    }

    async fn use_authority(
        &self,
        session: SessionId,
        authority: Authority,
        token: &TokenHash,
    ) -> Result<(), Unavailable> {
        let role = authority.role.label();
        let binds = [
            role.into(),
            wallet_of(authority.reach).into(),
            blob(session.to_bytes()),
            blob(token.to_bytes()),
        ];
        let used = self.dialect().statement(USE_AUTHORITY, binds);
        self.run(move |_now| vec![used]).await
    }

    async fn sessions_of(&self, person: PersonId) -> Result<Vec<Session>, Unavailable> {
        let sql = format!(
            "SELECT {}, {SESSION} FROM sessions AS s WHERE s.person_id = $1
             ORDER BY s.created_at DESC, s.id DESC",
            self.dialect().clock()
        );
        let rows = self.query(&sql, [blob(person.to_bytes())]).await?;
        let read = rows.iter().map(|row| {
            let mut cells = Cells::new(row);
            let now = self.seen(cells.timestamp()?);
            let session = session(&mut cells)?;
            // Rows of ended sessions go as the next session begins: until then they are left out
            // here.
            Ok((!session.has_ended(now)).then_some(session))
        });
        let read: Result<Vec<_>, BadRow> = read.collect();
        Ok(read.map_err(unavailable)?.into_iter().flatten().collect())
    }

    async fn end_session(&self, person: PersonId, session: SessionId) -> Result<(), Unavailable> {
        let binds = [blob(person.to_bytes()), blob(session.to_bytes())];
        let end = self.dialect().statement(END, binds);
        self.run(move |_now| vec![end]).await
    }

    async fn put_browser_mark(&self, new: &NewBrowserMark) -> Result<(), Unavailable> {
        let (dialect, new) = (self.dialect(), new.clone());
        let lock = format!("SELECT p.id FROM people AS p WHERE p.id = $1{}", dialect.row_lock());
        let lock = dialect.statement(&lock, [blob(new.person.to_bytes())]);
        let put = move |now: Timestamp| {
            let person = blob(new.person.to_bytes());
            let insert = [
                blob(new.id.to_bytes()),
                blob(new.token.to_bytes()),
                now.as_micros().into(),
                new.address.0.into(),
                person.clone(),
                new.password.expose().to_owned().into(),
            ];
            let kept = i64::from(BROWSER_MARKS_MAX);
            vec![
                dialect.statement(INSERT_MARK, insert),
                dialect.statement(DELETE_OLDEST_MARKS, [person, kept.into()]),
            ]
        };
        self.write_session(lock, put).await
    }

    async fn marked_person(&self, mark: &TokenHash) -> Result<Option<PersonId>, Unavailable> {
        let sql = format!("SELECT b.person_id {OF_PASSWORD} WHERE b.mark = $1");
        let rows = self.quick_query(&sql, [blob(mark.to_bytes())]).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let person = Cells::new(row).bytes().map_err(unavailable)?;
        Ok(Some(PersonId::from_bytes(person)))
    }

    async fn touch_browser_mark(
        &self,
        mark: &TokenHash,
        address: &Private<String>,
    ) -> Result<(), Unavailable> {
        let (dialect, address, mark) = (self.dialect(), address.0.clone(), *mark);
        let read = "SELECT b.id FROM browser_marks AS b WHERE b.mark = $1";
        let read = dialect.statement(read, [blob(mark.to_bytes())]);
        let touch = move |now: Timestamp| {
            let binds = [now.as_micros().into(), address.into(), blob(mark.to_bytes())];
            vec![dialect.statement(TOUCH_MARK, binds)]
        };
        self.write_session(read, touch).await
    }

    async fn browser_marks_of(&self, person: PersonId) -> Result<Vec<BrowserMark>, Unavailable> {
        let sql = format!(
            "SELECT {BROWSER_MARK} {OF_PASSWORD} WHERE b.person_id = $1
             ORDER BY b.created_at DESC, b.id DESC"
        );
        let rows = self.query(&sql, [blob(person.to_bytes())]).await?;
        let read: Result<Vec<_>, BadRow> =
            rows.iter().map(|row| browser_mark(&mut Cells::new(row))).collect();
        read.map_err(unavailable)
    }

    async fn end_everywhere(&self, person: PersonId) -> Result<(), Unavailable> {
        let of = |sql| self.dialect().statement(sql, [blob(person.to_bytes())]);
        let ends = vec![of(END_SESSIONS), of(END_MARKS)];
        self.run(move |_now| ends).await
    }

    async fn known_link(&self, token: &TokenHash) -> Result<Option<KnownLink>, Unavailable> {
        for table in LINK_TABLES {
            let sql = format!(
                "SELECT {}, l.id, l.person_id FROM {table} AS l WHERE l.token = $1",
                self.dialect().clock()
            );
            let rows = self.query(&sql, [blob(token.to_bytes())]).await?;
            let Some(row) = rows.first() else { continue };
            let (now, link, person) = found_link(&mut Cells::new(row)).map_err(unavailable)?;
            let Some(record) = self.person(person).await? else { return Ok(None) };
            // Another one may have taken its place between the two reads.
            let link = record.links.iter().find(|it| it.id == link).cloned();
            return Ok(link.map(|link| KnownLink { record, link, now: self.seen(now) }));
        }
        Ok(None)
    }
}

fn session_and_person(cells: &mut Cells<'_>) -> Result<(Timestamp, Session, Person), BadRow> {
    Ok((cells.timestamp()?, session(cells)?, Person::from_cells(cells)?))
}

fn found_link(cells: &mut Cells<'_>) -> Result<(Timestamp, LinkId, PersonId), BadRow> {
    let (now, link) = (cells.timestamp()?, LinkId::from_bytes(cells.bytes()?));
    Ok((now, link, PersonId::from_bytes(cells.bytes()?)))
}

/// The statements by which a session begins.
fn begin(dialect: Dialect, new: &NewSession, now: Timestamp) -> Vec<Statement> {
    let before = |span: Duration| {
        let span = i64::try_from(span.as_micros()).unwrap_or(i64::MAX);
        Value::from(now.as_micros().saturating_sub(span))
    };
    let person = blob(new.person.to_bytes());
    // Room for the one that begins.
    let kept = i64::from(SESSIONS_MAX.saturating_sub(1));
    let insert = [
        blob(new.id.to_bytes()),
        blob(new.token.to_bytes()),
        now.as_micros().into(),
        new.address.0.clone().into(),
        person.clone(),
        new.password.expose().to_owned().into(),
        new.authority.role.label().into(),
        wallet_of(new.authority.reach).into(),
    ];
    vec![
        // Ended ones first: counted among the newest, they would push out one that is in use.
        dialect.statement(DELETE_ENDED, [before(SESSION_LIFETIME), before(SESSION_IDLE)]),
        dialect.statement(DELETE_OLDEST, [person, kept.into()]),
        dialect.statement(INSERT, insert),
    ]
}
