//! Facts of a command, read in its transaction: one kind after the other, in the order of its judgement.
//!
//! The order is what makes the facts true: what is read after the head no other command changes, and
//! what a batch changes (balances, refunds of a charge) is read after the lock of its wallet.
//!
//! A statement is the same text for both databases, but for the lock of a row, which a transaction of SQLite has of
//! the whole file.

mod counts;
mod person;

use std::ops::RangeInclusive;

use holdfast_domain::admin::job::JobState;
use holdfast_domain::admin::{
    AccountCommand, AccountRefusal, ActorId, AdminKey, Authority, Count, DepositReference,
    EmailAddress, Facts, FoundPerson, KnownPosting, NameScope, Names, NewPosting, Owners, PersonBy,
    RefundableOperation, Rejection, RequestRecord, TakenNames, WalletRecord, WebhookRecord,
};
use holdfast_domain::credential::ApiKey;
use holdfast_domain::ledger::Posting;
use holdfast_domain::text::{normal_form, spellings};
use holdfast_domain::{
    AdminKeyId, ApiKeyId, JobId, Micros, OperationId, PersonId, Timestamp, WalletId, WebhookId,
};
use sea_orm::{Statement, Value};

use super::{Tx, trail};
use crate::rows::entity::posting_details::{self, DetailsRow};
use crate::rows::person::authority;
use crate::rows::restore;
use crate::rows::{self, BadRow, Cells, FromCells as _, Row};
use crate::schema::{Dialect, blob};

/// The head of the audit log.
pub(crate) const HEAD: &str = "SELECT h.seq, h.mac FROM audit_head AS h WHERE h.id = 1";

/// The request that a key of an actor is bound to.
pub(crate) const REQUEST: &str = "SELECT r.digest, r.things, r.created_at, r.canonical_digest FROM admin_requests AS r WHERE r.actor = $1 AND r.request_key = $2";
const REFERENCED: &str = "FROM postings AS t JOIN posting_details AS d ON d.posting_id = t.id
    WHERE";
const REFUNDABLE: &str = "SELECT o.wallet_id,
    CASE WHEN o.phase = 'completed' THEN o.charge END,
    (SELECT CAST(coalesce(sum(t.amount), 0) AS bigint) FROM postings AS t
     WHERE t.operation_id = o.id)
    FROM operations AS o WHERE o.id = $1";
/// Its condition on the use case is the one of the partial index `audit_refunds`, letter by letter.
/// Each posting and wallet is looked up by its id: of a join the server would choose the order when
/// the tables were empty, and keep it.
pub(crate) const REFUNDED_SINCE: &str = "SELECT CAST(coalesce(sum((SELECT CASE
        WHEN (SELECT w.currency FROM wallets AS w WHERE w.id = t.wallet_id)
            = (SELECT o.currency FROM wallets AS o WHERE o.id = $3) THEN t.amount END
        FROM postings AS t WHERE t.id = a.thing_id)), 0) AS bigint)
    FROM audit AS a
    WHERE a.actor = $1 AND a.use_case = 'posting.refund' AND a.created_at >= $2";
/// The few jobs that have not ended, by the index of what is to do; each with the rows of the audit log about it.
const PENDING_JOB: &str = "SELECT j.id FROM jobs AS j WHERE j.finished_at IS NULL
    AND EXISTS (SELECT 1 FROM audit AS a WHERE a.thing_id = j.id AND a.thing_kind = 'job'
        AND a.actor = $1)
    ORDER BY j.seq LIMIT 1";
const JOB_STATE: &str = "SELECT j.state, j.step_place FROM jobs AS j WHERE j.id = $1";
const DAY_MICROS: i64 = 86_400_000_000;

/// The statement of the head.
pub(crate) fn head(dialect: Dialect) -> Statement {
    dialect.statement(&format!("{HEAD}{}", dialect.row_lock()), [])
}

/// The statement of what the request key of a command is bound to.
pub(crate) fn bound(dialect: Dialect, command: &AccountCommand) -> Statement {
    let actor = Value::from(command.actor.to_string());
    dialect.statement(REQUEST, [actor, blob(command.request.key.to_bytes())])
}

/// Reads a row of [`REQUEST`].
pub(crate) fn request(cells: &mut Cells<'_>) -> Result<RequestRecord, BadRow> {
    let (digest, things) = (cells.bytes()?, trail::things(cells)?);
    let at = cells.timestamp()?;
    let canonical = trail::canonical(cells)?.map(|(canonical, _mac)| canonical);
    Ok(RequestRecord { digest, canonical, things, at })
}

/// Reader of the facts of a command, in its transaction.
pub(crate) struct Reads<'r, T: Tx> {
    pub(crate) tx: &'r mut T,
    pub(crate) dialect: Dialect,
    pub(crate) command: &'r AccountCommand,
    pub(crate) now: Timestamp,
}

/// Failure of a judgement.
pub(crate) enum DecisionError<E> {
    Rejection(Rejection),
    Failed(E),
}

impl<E> From<AccountRefusal> for DecisionError<E> {
    fn from(refusal: AccountRefusal) -> Self {
        Self::Rejection(refusal.into())
    }
}

impl<E> From<Rejection> for DecisionError<E> {
    fn from(refused: Rejection) -> Self {
        Self::Rejection(refused)
    }
}

impl<T: Tx> Reads<'_, T> {
    /// The last row of a statement.
    pub(crate) async fn last<R>(
        &mut self,
        statement: Statement,
        row: fn(&mut Cells<'_>) -> Result<R, BadRow>,
    ) -> Result<Option<R>, T::Error> {
        Ok(self.tx.query(statement, row).await?.pop())
    }

    async fn all<R>(
        &mut self,
        statement: Statement,
        row: fn(&mut Cells<'_>) -> Result<R, BadRow>,
    ) -> Result<Vec<R>, DecisionError<T::Error>> {
        self.tx.query(statement, row).await.map_err(DecisionError::Failed)
    }

    async fn one<R>(
        &mut self,
        statement: Statement,
        row: fn(&mut Cells<'_>) -> Result<R, BadRow>,
    ) -> Result<Option<R>, DecisionError<T::Error>> {
        Ok(self.all(statement, row).await?.pop())
    }

    /// The row of an id, under a condition that ends with its place.
    async fn row<R: Row>(
        &mut self,
        condition: &str,
        id: Value,
    ) -> Result<Option<R>, DecisionError<T::Error>> {
        let sql = format!("SELECT {} FROM {}", R::COLUMNS, condition);
        self.one(self.dialect.statement(&sql, [id]), R::from_cells).await
    }

    async fn number(&mut self, statement: Statement) -> Result<u32, DecisionError<T::Error>> {
        Ok(self.one(statement, |cells| cells.small()).await?.unwrap_or(0))
    }
}

impl<T: Tx> Facts for Reads<'_, T> {
    type Error = DecisionError<T::Error>;

    fn now(&self) -> Timestamp {
        self.now
    }

    async fn wallet(&mut self, id: WalletId) -> Result<Option<WalletRecord>, Self::Error> {
        let lock = self.dialect.row_lock();
        self.row(&format!("wallets AS w WHERE w.id = $1{lock}"), blob(id.to_bytes())).await
    }

    async fn taken(
        &mut self,
        scope: NameScope,
        among: Names<'_>,
    ) -> Result<TakenNames, Self::Error> {
        let mut taken = TakenNames::default();
        let columns = ["name", "external_id"].into_iter().zip(among);
        for (set, (column, values)) in
            [&mut taken.names, &mut taken.external_ids].into_iter().zip(columns)
        {
            if !values.is_empty() {
                let statement = taken_among(self.dialect, scope, column, &values);
                // A row of before may have another spelling of it.
                let text = |cells: &mut Cells<'_>| Ok(normal_form(&cells.text()?).into_owned());
                set.extend(self.all(statement, text).await?);
            }
        }
        Ok(taken)
    }

    async fn api_key(&mut self, id: ApiKeyId) -> Result<Option<ApiKey>, Self::Error> {
        let lock = self.dialect.row_lock();
        self.row(&format!("api_keys AS k WHERE k.id = $1{lock}"), blob(id.to_bytes())).await
    }

    async fn api_keys_of(&mut self, wallet: WalletId) -> Result<Vec<ApiKey>, Self::Error> {
        let sql = format!(
            "SELECT {} FROM api_keys AS k WHERE k.wallet_id = $1 AND k.revoked_at IS NULL
         ORDER BY k.id{}",
            ApiKey::COLUMNS,
            self.dialect.row_lock()
        );
        let statement = self.dialect.statement(&sql, [blob(wallet.to_bytes())]);
        self.all(statement, ApiKey::from_cells).await
    }

    async fn admin_key(&mut self, id: AdminKeyId) -> Result<Option<AdminKey>, Self::Error> {
        self.row("admin_keys AS a WHERE a.id = $1", blob(id.to_bytes())).await
    }

    async fn namesake(&mut self, name: &str) -> Result<Option<AdminKey>, Self::Error> {
        let of = "admin_keys AS a WHERE a.name = $1 AND a.revoked_at IS NULL";
        self.row(of, name.to_owned().into()).await
    }

    async fn owners(
        &mut self,
        (key, person): (AdminKeyId, PersonId),
    ) -> Result<Owners, Self::Error> {
        let binds = [blob(key.to_bytes()), self.now.as_micros().into()];
        let keys = self.dialect.statement(person::OWNERS_KEYS, binds);
        let both = |cells: &mut Cells<'_>| Ok([cells.small()?, cells.small()?]);
        let [all, lasting]: [u32; 2] = self.one(keys, both).await?.unwrap_or([0; 2]);
        let people = self.dialect.statement(person::OWNERS, [blob(person.to_bytes())]);
        let people = self.number(people).await?;
        let [all, lasting] = [all, lasting].map(|keys| keys.saturating_add(people));
        Ok(Owners { all, lasting })
    }

    async fn posting(&mut self, new: &NewPosting) -> Result<Option<KnownPosting>, Self::Error> {
        let sql = format!(
            "SELECT {}, {} FROM postings AS t LEFT JOIN posting_details AS d ON d.posting_id = t.id
         WHERE t.id = $1",
            rows::POSTING,
            DetailsRow::COLUMNS
        );
        let statement = self.dialect.statement(&sql, [blob(new.posting.id.to_bytes())]);
        let known = |cells: &mut Cells<'_>| {
            let (posting, details) = (rows::posting(cells)?, posting_details::joined(cells)?);
            Ok(KnownPosting { posting, details })
        };
        self.one(statement, known).await
    }

    async fn referenced(&mut self, new: &NewPosting) -> Result<Option<Posting>, Self::Error> {
        let Some(reference) = &new.details.reference else { return Ok(None) };
        self.one(referenced(self.dialect, reference), rows::posting).await
    }

    async fn refundable(
        &mut self,
        id: OperationId,
    ) -> Result<Option<RefundableOperation>, Self::Error> {
        let statement = self.dialect.statement(REFUNDABLE, [blob(id.to_bytes())]);
        let operation = |cells: &mut Cells<'_>| {
            let (wallet, charge) = (cells.get()?, cells.opt_int()?.map(Micros::new));
            Ok(RefundableOperation { wallet, charge, refunded: cells.micros()? })
        };
        self.one(statement, operation).await
    }

    /// By the clock that dates the audit log.
    async fn refunded_today(&mut self, wallet: WalletId) -> Result<Micros, Self::Error> {
        let now = self.now.as_micros();
        let midnight = now.saturating_sub(now.rem_euclid(DAY_MICROS));
        let actor = self.command.actor.to_string();
        let binds = [actor.into(), midnight.into(), blob(wallet.to_bytes())];
        let statement = self.dialect.statement(REFUNDED_SINCE, binds);
        Ok(self.one(statement, |cells| cells.micros()).await?.unwrap_or(Micros::ZERO))
    }

    async fn person(&mut self, of: PersonBy<'_>) -> Result<Option<FoundPerson>, Self::Error> {
        self.found_person(of).await.map_err(DecisionError::Failed)
    }

    async fn has_email(
        &mut self,
        email: &EmailAddress,
        but: PersonId,
    ) -> Result<bool, Self::Error> {
        Ok(self.number(person::taken_email(self.dialect, email, but)).await? > 0)
    }

    async fn authorities(&mut self, actor: ActorId) -> Result<Vec<Authority>, Self::Error> {
        match person::authorities(self.dialect, actor, self.now) {
            Some(statement) => self.all(statement, authority).await,
            None => Ok(Vec::new()),
        }
    }

    async fn webhook(&mut self, id: WebhookId) -> Result<Option<WebhookRecord>, Self::Error> {
        let lock = self.dialect.row_lock();
        self.row(&format!("webhooks AS h WHERE h.id = $1{lock}"), blob(id.to_bytes())).await
    }

    async fn pending_job(&mut self) -> Result<Option<JobId>, Self::Error> {
        let actor = self.command.actor.to_string();
        let statement = self.dialect.statement(PENDING_JOB, [actor.into()]);
        self.one(statement, |cells| Ok(JobId::from_bytes(cells.bytes()?))).await
    }

    /// No process claims it meanwhile.
    async fn job(&mut self, id: JobId) -> Result<Option<JobState>, Self::Error> {
        let sql = format!("{JOB_STATE}{}", self.dialect.row_lock());
        let statement = self.dialect.statement(&sql, [blob(id.to_bytes())]);
        self.one(statement, rows::job::state).await
    }

    async fn unknown_until(&mut self) -> Result<Option<Timestamp>, Self::Error> {
        let last = self.one(self.dialect.statement(restore::LAST, []), restore::restore).await?;
        let now = self.now;
        Ok(last.map(|last| last.unknown_until).filter(|until| *until > now))
    }

    async fn count(&mut self, of: Count<'_>) -> Result<u32, Self::Error> {
        self.number(counts::statement(self.dialect, of, self.now)).await
    }
}

/// The deposit that has a reference. Earlier versions booked spellings of one source as several payments: the row
/// with the same spelling comes last, which is the one that is taken, and else the first that was booked.
fn referenced(dialect: Dialect, reference: &DepositReference) -> Statement {
    let [sources, references] = reference.spellings();
    let lowered: Vec<_> = sources.iter().map(|source| source.to_ascii_lowercase()).collect();
    let from = sources.len();
    let to = from.saturating_add(lowered.len());
    let end = to.saturating_add(references.len());
    let sql = format!(
        "SELECT {} {REFERENCED} {} IN ({}) AND d.external_reference IN ({})
         ORDER BY CASE WHEN d.source IN ({}) THEN 1 ELSE 0 END, t.seq DESC",
        rows::POSTING,
        dialect.ascii_lower("d.source"),
        places(from.saturating_add(1)..=to),
        places(to.saturating_add(1)..=end),
        places(1..=from),
    );
    let binds = sources.into_iter().chain(lowered).chain(references).map(Value::from);
    Statement::from_sql_and_values(dialect.backend(), sql, binds)
}

/// The names, or external ids, among these that other resources of a scope have.
fn taken_among(dialect: Dialect, scope: NameScope, column: &str, values: &[&String]) -> Statement {
    let values: Vec<_> = values.iter().flat_map(|value| spellings(value)).collect();
    let (from, ids) = match scope {
        NameScope::Wallets(own) => (
            format!("SELECT w.{column} FROM wallets AS w WHERE w.id <> $1 AND w.{column}"),
            vec![blob(own.to_bytes())],
        ),
        NameScope::ApiKeys(wallet, own) => {
            // No key has the id of zeros: it excludes none.
            let own = own.unwrap_or(ApiKeyId::from_u128(0));
            let from = format!(
                "SELECT k.{column} FROM api_keys AS k
             WHERE k.wallet_id = $1 AND k.id <> $2 AND k.{column}"
            );
            (from, vec![blob(wallet.to_bytes()), blob(own.to_bytes())])
        }
    };
    let end = ids.len().saturating_add(values.len());
    let sql = format!("{from} IN ({})", places(ids.len().saturating_add(1)..=end));
    let binds = ids.into_iter().chain(values.into_iter().map(Value::from));
    Statement::from_sql_and_values(dialect.backend(), sql, binds)
}

/// Places of the binds of these numbers.
fn places(numbers: RangeInclusive<usize>) -> String {
    numbers.map(|number| format!("${number}")).collect::<Vec<_>>().join(", ")
}
