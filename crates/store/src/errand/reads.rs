//! Reads of a command: statements, each with the reader of its rows.
//!
//! ```text
//! opening   the head FOR NO KEY UPDATE, then the request key     every command, first
//! bound     whom an invitation invited                          where its request key is bound
//! facts     names, wallet, API key, posting, reference, refunds   what its action is judged by
//! ```
//!
//! The order is what makes the facts true: what is read after the head no other command changes, and
//! what a batch changes (balances, refunds of a charge) is read after the lock of its wallet.
//!
//! All of them run in the command's transaction, in order. A statement is the same text for both
//! databases, but for the lock of a row, which a transaction of SQLite has of the whole file.

mod bounds;
mod job;
mod person;
mod webhook;

use std::ops::RangeInclusive;

use holdfast_domain::admin::audit::TrailHead;
use holdfast_domain::admin::{
    AccountAction, AccountCommand, AccountFacts, AdminKey, KnownPosting, RefundableOperation,
    RequestRecord, WalletRecord,
};
use holdfast_domain::credential::ApiKey;
use holdfast_domain::ledger::PostingKind;
use holdfast_domain::text::{normal_form, spellings};
use holdfast_domain::{AdminKeyId, ApiKeyId, PersonId, Timestamp, WalletId};
use sea_orm::{Statement, Value};

use super::trail;
use crate::dialect::{Dialect, blob};
use crate::entity::posting_details::{self, DetailsRow};
use crate::rows::{self, BadRow, Cells, FromCells, Row};

/// The head of the trail.
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
const DAY_MICROS: i64 = 86_400_000_000;

/// Findings of a command's reads.
#[derive(Debug)]
pub(crate) struct Findings {
    pub(crate) head: TrailHead,
    pub(crate) request: Option<RequestRecord>,
    pub(crate) facts: AccountFacts,
}

impl Findings {
    pub(crate) const fn at(now: Timestamp) -> Self {
        Self { head: TrailHead::EMPTY, request: None, facts: AccountFacts::at(now) }
    }
}

/// Read of a command: a statement, and the reader of each of its rows.
pub(crate) struct Read {
    pub(crate) statement: Statement,
    pub(crate) take: fn(&mut Findings, &mut Cells<'_>) -> Result<(), BadRow>,
}

/// The first reads: the head, whose lock keeps other commands out, and then the request key.
pub(crate) fn opening(dialect: Dialect, command: &AccountCommand) -> Vec<Read> {
    let head = format!("{HEAD}{}", dialect.row_lock());
    let actor = Value::from(command.actor.to_string());
    let binding = [actor, blob(command.request.key.to_bytes())];
    vec![
        Read {
            statement: dialect.statement(&head, []),
            take: |findings, cells| {
                findings.head = trail::head(cells)?;
                Ok(())
            },
        },
        Read {
            statement: dialect.statement(REQUEST, binding),
            take: |findings, cells| {
                findings.request = Some(request(cells)?);
                Ok(())
            },
        },
    ]
}

/// Reads a row of [`REQUEST`].
pub(crate) fn request(cells: &mut Cells<'_>) -> Result<RequestRecord, BadRow> {
    let (digest, things) = (cells.bytes()?, trail::things(cells)?);
    let at = cells.timestamp()?;
    let canonical = trail::canonical(cells)?.map(|(canonical, _mac)| canonical);
    Ok(RequestRecord { digest, canonical, things, at })
}

/// What a repetition is judged by beside its request key, which is bound to this.
pub(crate) fn bound(
    dialect: Dialect,
    command: &AccountCommand,
    record: Option<&RequestRecord>,
) -> Vec<Read> {
    if let (AccountAction::Person(action), Some(record)) = (&command.action, record) {
        return person::invited(dialect, action, &record.things);
    }
    Vec::new()
}

/// The facts that an action is judged by.
pub(crate) fn facts(dialect: Dialect, command: &AccountCommand, now: Timestamp) -> Vec<Read> {
    use AccountAction as Action;
    match &command.action {
        Action::CreateWallet(record) => {
            let names = [Some(&record.wallet.name), record.external_id.as_ref()];
            taken_of_wallets(dialect, record.wallet.id, names)
        }
        Action::EditWallet { wallet: id, patch, .. } => {
            let external = patch.external_id.as_ref().and_then(Option::as_ref);
            let mut reads = taken_of_wallets(dialect, *id, [patch.name.as_ref(), external]);
            reads.push(wallet(dialect, *id));
            reads
        }
        Action::SuspendWallet(id) | Action::ResumeWallet(id) => vec![wallet(dialect, *id)],
        Action::CloseWallet(id) => vec![wallet(dialect, *id), api_keys_of(dialect, *id)],
        Action::Post(new) => of_posting(dialect, command, new, now),
        Action::IssueApiKeys { wallet: id, keys, .. } => {
            let names = keys.iter().map(|(key, _)| &key.name).collect();
            let external = keys.iter().filter_map(|(key, _)| key.external_id.as_ref()).collect();
            let mut reads = taken_of_keys(dialect, (*id, None), names, external);
            reads.push(wallet(dialect, *id));
            reads.push(bounds::api_keys(dialect, *id, command.bounds.api_keys, now));
            reads
        }
        Action::EditApiKey { api_key: id, wallet: payer, patch, is_bounded, .. } => {
            let external = patch.external_id.iter().flatten().collect();
            let names = patch.name.iter().collect();
            let mut reads = taken_of_keys(dialect, (*payer, Some(*id)), names, external);
            // Its lock is one that batches wait for: only where its bound counts, or where counters are
            // seeded, which no run of the key may move meanwhile.
            let needs_wallet = *is_bounded || patch.concerns_limits();
            reads.extend(needs_wallet.then(|| wallet(dialect, *payer)));
            reads.push(api_key(dialect, *id));
            reads
        }
        Action::SuspendApiKey(id) | Action::ResumeApiKey(id) | Action::RevokeApiKey(id) => {
            vec![api_key(dialect, *id)]
        }
        Action::RotateApiKey { credential, wallet: payer, is_bounded, .. } => {
            let mut reads = Vec::new();
            reads.extend(is_bounded.then(|| wallet(dialect, *payer)));
            reads.push(api_key(dialect, credential.api_key));
            reads.push(bounds::credentials(dialect, credential.api_key, now));
            reads
        }
        Action::AskOperation { .. }
        | Action::ExcludeCosts { .. }
        | Action::NoteRead(..)
        | Action::NoteFailedSignIns { .. } => Vec::new(),
        Action::StartJob { .. } => vec![job::pending(dialect, command)],
        Action::CancelJob(id) => vec![job::state(dialect, *id)],
        Action::IssueAdminKey(key, _) => {
            let mut reads = vec![namesake(dialect, &key.name)];
            reads.extend(bounds::admin_keys(dialect, key, command.bounds.admin_keys, now));
            reads
        }
        Action::RotateAdminKey { credential, .. } => {
            let id = credential.admin_key;
            vec![admin_key(dialect, id), bounds::admin_credentials(dialect, id, now)]
        }
        Action::RevokeAdminKey(id) => {
            let nobody = PersonId::from_u128(0);
            let mut reads = vec![admin_key(dialect, *id)];
            reads.extend(person::owners(dialect, *id, nobody, now));
            reads
        }
        Action::Person(action) => person::facts(dialect, action, command.bounds.people, now),
        Action::Webhook(action) => webhook::facts(dialect, action, now),
    }
}

fn of_posting(
    dialect: Dialect,
    command: &AccountCommand,
    new: &holdfast_domain::admin::NewPosting,
    now: Timestamp,
) -> Vec<Read> {
    let mut reads = vec![posting(dialect, new), wallet(dialect, new.posting.wallet)];
    reads.extend(referenced(dialect, new));
    // After the lock of the wallet that paid: no other refund comes between.
    reads.extend(refundable(dialect, &new.posting.kind));
    if new.allowance.is_some() {
        reads.push(refunded_today(dialect, command, new.posting.wallet, now));
    }
    reads
}

fn wallet(dialect: Dialect, id: WalletId) -> Read {
    let sql = format!(
        "SELECT {} FROM wallets AS w WHERE w.id = $1{}",
        WalletRecord::COLUMNS,
        dialect.row_lock()
    );
    Read {
        statement: dialect.statement(&sql, [blob(id.to_bytes())]),
        take: |findings, cells| {
            findings.facts.wallet = Some(FromCells::from_cells(cells)?);
            Ok(())
        },
    }
}

fn api_key(dialect: Dialect, id: ApiKeyId) -> Read {
    let lock = dialect.row_lock();
    let sql = format!("SELECT {} FROM api_keys AS k WHERE k.id = $1{lock}", ApiKey::COLUMNS);
    Read {
        statement: dialect.statement(&sql, [blob(id.to_bytes())]),
        take: |findings, cells| {
            findings.facts.api_key = Some(FromCells::from_cells(cells)?);
            Ok(())
        },
    }
}

fn api_keys_of(dialect: Dialect, wallet: WalletId) -> Read {
    let sql = format!(
        "SELECT {} FROM api_keys AS k WHERE k.wallet_id = $1 AND k.revoked_at IS NULL
         ORDER BY k.id{}",
        ApiKey::COLUMNS,
        dialect.row_lock()
    );
    Read {
        statement: dialect.statement(&sql, [blob(wallet.to_bytes())]),
        take: |findings, cells| {
            findings.facts.api_keys.push(FromCells::from_cells(cells)?);
            Ok(())
        },
    }
}

fn namesake(dialect: Dialect, name: &str) -> Read {
    let sql = format!(
        "SELECT {} FROM admin_keys AS a WHERE a.name = $1 AND a.revoked_at IS NULL",
        AdminKey::COLUMNS
    );
    Read {
        statement: dialect.statement(&sql, [name.to_owned().into()]),
        take: |findings, cells| {
            findings.facts.namesake = Some(FromCells::from_cells(cells)?);
            Ok(())
        },
    }
}

fn admin_key(dialect: Dialect, id: AdminKeyId) -> Read {
    let sql = format!("SELECT {} FROM admin_keys AS a WHERE a.id = $1", AdminKey::COLUMNS);
    Read {
        statement: dialect.statement(&sql, [blob(id.to_bytes())]),
        take: |findings, cells| {
            findings.facts.admin_key = Some(FromCells::from_cells(cells)?);
            Ok(())
        },
    }
}

fn posting(dialect: Dialect, new: &holdfast_domain::admin::NewPosting) -> Read {
    let sql = format!(
        "SELECT {}, {} FROM postings AS t LEFT JOIN posting_details AS d ON d.posting_id = t.id
         WHERE t.id = $1",
        rows::POSTING,
        DetailsRow::COLUMNS
    );
    Read {
        statement: dialect.statement(&sql, [blob(new.posting.id.to_bytes())]),
        take: |findings, cells| {
            let (posting, details) = (rows::posting(cells)?, posting_details::joined(cells)?);
            findings.facts.posting = Some(KnownPosting { posting, details });
            Ok(())
        },
    }
}

/// The deposit that has a reference. Versions before have booked spellings of one source as several payments: the
/// row that is spelled alike comes last, which is the one that is taken, and else the first that was booked.
fn referenced(dialect: Dialect, new: &holdfast_domain::admin::NewPosting) -> Option<Read> {
    let reference = new.details.reference.clone()?;
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
    Some(Read {
        statement: Statement::from_sql_and_values(dialect.backend(), sql, binds),
        take: |findings, cells| {
            findings.facts.referenced = Some(rows::posting(cells)?);
            Ok(())
        },
    })
}

fn refundable(dialect: Dialect, kind: &PostingKind) -> Option<Read> {
    let PostingKind::Refund(operation) = kind else { return None };
    Some(Read {
        statement: dialect.statement(REFUNDABLE, [blob(operation.to_bytes())]),
        take: |findings, cells| {
            let wallet = WalletId::from_bytes(cells.bytes()?);
            let charge = cells.opt_int()?.map(holdfast_domain::Micros::new);
            let refunded = cells.micros()?;
            findings.facts.operation = Some(RefundableOperation { wallet, charge, refunded });
            Ok(())
        },
    })
}

/// The actor's refunds since midnight, UTC, by the clock that dates the trail.
fn refunded_today(
    dialect: Dialect,
    command: &AccountCommand,
    wallet: WalletId,
    now: Timestamp,
) -> Read {
    let now = now.as_micros();
    let midnight = now.saturating_sub(now.rem_euclid(DAY_MICROS));
    let binds = [command.actor.to_string().into(), midnight.into(), blob(wallet.to_bytes())];
    Read {
        statement: dialect.statement(REFUNDED_SINCE, binds),
        take: |findings, cells| {
            findings.facts.refunded_today = cells.micros()?;
            Ok(())
        },
    }
}

/// Places of the binds of these numbers.
fn places(numbers: RangeInclusive<usize>) -> String {
    numbers.map(|number| format!("${number}")).collect::<Vec<_>>().join(", ")
}

/// Reads of the name and the external id that other wallets have.
fn taken_of_wallets(
    dialect: Dialect,
    own: WalletId,
    [name, external]: [Option<&String>; 2],
) -> Vec<Read> {
    let statement = |column: &str, value: &String| {
        let values = spellings(value);
        let sql = format!(
            "SELECT w.{column} FROM wallets AS w WHERE w.id <> $1 AND w.{column} IN ({})",
            places(2..=values.len().saturating_add(1))
        );
        let binds = [blob(own.to_bytes())].into_iter().chain(values.into_iter().map(Value::from));
        Statement::from_sql_and_values(dialect.backend(), sql, binds)
    };
    let name = name.map(|name| taken_name(statement("name", name)));
    let external = external.map(|id| taken_external_id(statement("external_id", id)));
    name.into_iter().chain(external).collect()
}

/// Reads of the names and external ids, among these, that other keys of a wallet have.
fn taken_of_keys(
    dialect: Dialect,
    (wallet, own): (WalletId, Option<ApiKeyId>),
    names: Vec<&String>,
    external: Vec<&String>,
) -> Vec<Read> {
    let statement = |column: &str, values: &[&String]| {
        let values: Vec<_> = values.iter().flat_map(|value| spellings(value)).collect();
        let sql = format!(
            "SELECT k.{column} FROM api_keys AS k
             WHERE k.wallet_id = $1 AND k.id <> $2 AND k.{column} IN ({})",
            places(3..=values.len().saturating_add(2))
        );
        // No key has the id of zeros: it excludes nothing.
        let own = own.unwrap_or(ApiKeyId::from_u128(0));
        let ids = [blob(wallet.to_bytes()), blob(own.to_bytes())];
        let values = values.into_iter().map(Value::from);
        Statement::from_sql_and_values(dialect.backend(), sql, ids.into_iter().chain(values))
    };
    let mut reads = Vec::new();
    if !names.is_empty() {
        reads.push(taken_name(statement("name", &names)));
    }
    if !external.is_empty() {
        reads.push(taken_external_id(statement("external_id", &external)));
    }
    reads
}

fn taken_name(statement: Statement) -> Read {
    Read {
        statement,
        take: |findings, cells| {
            // A row of before may have another spelling of it.
            findings.facts.taken_names.insert(normal_form(&cells.text()?).into_owned());
            Ok(())
        },
    }
}

fn taken_external_id(statement: Statement) -> Read {
    Read {
        statement,
        take: |findings, cells| {
            findings.facts.taken_external_ids.insert(normal_form(&cells.text()?).into_owned());
            Ok(())
        },
    }
}
