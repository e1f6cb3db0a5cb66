//! Writes of a command, as statements that are the same text for both databases, except for the numbers of entries:
//! a wallet of SQLite counts its own, a server has a sequence.
//!
//! Each kind of write is one statement, or two if rows belong together (a posting and its details, the keys of a
//! wallet and their credentials). All settings of a row are written at once, as the effect has them: the audit log
//! records which of them changed. A balance is set and not added to, because its row is locked and was read.
//!
//! Binds are numbered in the order of their first use, which both drivers agree on.

use holdfast_domain::admin::{AccountWrite, AdminCredential, NewPosting};
use holdfast_domain::credential::Credential;
use holdfast_domain::ledger::PostingKind;
use holdfast_domain::{ApiKeyId, Timestamp};
use sea_orm::{Statement, Value};

use super::seed::EndedSums;
use super::{admin_key, person, webhook};
use crate::rows::{self, Row};
use crate::schema::{Dialect, blob};

/// Balance after a posting, on a file and on a server. On a file the wallet counts its entries, of which the posting is
/// the next; a server numbers entries itself.
const SET_AVAILABLE: [&str; 2] = [
    "UPDATE wallets SET available = $2, entries = entries + 1 WHERE id = $1",
    "UPDATE wallets SET available = $2 WHERE id = $1",
];
/// After [`SET_AVAILABLE`], which has counted it.
const INSERT_POSTING: [&str; 2] = [
    "INSERT INTO postings (id, wallet_id, kind, operation_id, amount, reason, created_at, number)
        VALUES ($1, $2, $3, $4, $5, $6, $7, (SELECT w.entries FROM wallets AS w WHERE w.id = $2))",
    "INSERT INTO postings (id, wallet_id, kind, operation_id, amount, reason, created_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7)",
];
const REVOKE_KEYS: &str = "UPDATE api_keys SET revoked_at = $2, edited = edited + 1
    WHERE wallet_id = $1 AND revoked_at IS NULL";
/// Before the keys are revoked: it finds them by that.
const END_CREDENTIALS_OF_WALLET: &str = "UPDATE credentials SET ends_at = $2
    WHERE api_key_id IN (SELECT id FROM api_keys WHERE wallet_id = $1 AND revoked_at IS NULL)
    AND (ends_at IS NULL OR ends_at > $2)";
const QUEUE_JOB: &str = "INSERT INTO jobs (id, kind, state, since, created_at)
    VALUES ($1, $2, 'queued', $3, $4)";
/// To a node of a version before it is a job that failed.
const CANCEL_JOB: &str = "UPDATE jobs SET state = 'failed', started_at = $2, finished_at = $2,
    step_place = $3 WHERE id = $1 AND state = 'queued'";
const INSERT_CREDENTIAL: &str = "INSERT INTO credentials (id, api_key_id, verifier, server_secret,
    created_at, ends_at) VALUES ($1, $2, $3, $4, $5, $6)";
const END_CREDENTIALS: &str = "UPDATE credentials SET ends_at = $2
    WHERE api_key_id = $1 AND (ends_at IS NULL OR ends_at > $2)";

/// The statements of a write, in order; none if it seeds counters, and these sums are not for them.
pub(crate) fn statements(
    dialect: Dialect,
    write: &AccountWrite,
    ended: Option<&EndedSums>,
) -> Option<Vec<Statement>> {
    if let AccountWrite::SeedCounters(key, counters, at) = write {
        let mut seeds = Vec::new();
        for counter in counters {
            seeds.extend(ended?.seed(dialect, *key, *counter, *at)?);
        }
        return Some(seeds);
    }
    Some(plain_statements(dialect, write))
}

fn plain_statements(dialect: Dialect, write: &AccountWrite) -> Vec<Statement> {
    let by_id = |sql, id: [u8; 16], at: Timestamp| {
        dialect.statement(sql, [blob(id), at.as_micros().into()])
    };
    match write {
        AccountWrite::InsertWallet(record) => vec![record.insert(dialect)],
        AccountWrite::UpdateWallet(record) => vec![record.update(dialect)],
        AccountWrite::SetAvailable(wallet, available) => {
            let binds = [blob(wallet.to_bytes()), available.get().into()];
            vec![dialect.statement(of(dialect, SET_AVAILABLE), binds)]
        }
        AccountWrite::InsertPosting(new, at) => insert_posting(dialect, new, *at),
        AccountWrite::InsertApiKey(key) => vec![key.insert(dialect)],
        AccountWrite::UpdateApiKey(key) => vec![key.update(dialect)],
        // By the sums that were taken before.
        AccountWrite::SeedCounters(..) => Vec::new(),
        AccountWrite::RevokeApiKeysOf(wallet, at) => {
            let id = wallet.to_bytes();
            vec![by_id(END_CREDENTIALS_OF_WALLET, id, *at), by_id(REVOKE_KEYS, id, *at)]
        }
        AccountWrite::InsertCredential(credential, at) => {
            vec![insert_credential(dialect, credential, *at)]
        }
        AccountWrite::EndCredentials(key, at) => {
            vec![end_credentials(dialect, *key, *at)]
        }
        AccountWrite::InsertAdminKey(key) => vec![key.insert(dialect)],
        AccountWrite::UpdateAdminKey(key) => vec![key.update(dialect)],
        AccountWrite::InsertAdminCredential(credential, at) => {
            vec![insert_admin_credential(dialect, credential, *at)]
        }
        AccountWrite::EndAdminCredentials(key, at) => {
            vec![by_id(admin_key::END_CREDENTIALS, key.to_bytes(), *at)]
        }
        AccountWrite::Person(write) => person::statements(dialect, write),
        AccountWrite::Webhook(write) => webhook::statements(dialect, write),
        AccountWrite::QueueJob(id, kind, since, at) => {
            let binds =
                [blob(id.to_bytes()), (*kind).into(), since.clone().into(), at.as_micros().into()];
            vec![dialect.statement(QUEUE_JOB, binds)]
        }
        AccountWrite::CancelJob(id, at) => {
            let place = rows::job::CANCELLED_PLACE.into();
            vec![dialect.statement(CANCEL_JOB, [blob(id.to_bytes()), at.as_micros().into(), place])]
        }
    }
}

/// The text of a dialect.
const fn of(dialect: Dialect, [sqlite, postgres]: [&'static str; 2]) -> &'static str {
    match dialect {
        Dialect::Sqlite => sqlite,
        Dialect::Postgres => postgres,
    }
}

fn moment(at: Option<Timestamp>) -> Value {
    at.map(Timestamp::as_micros).into()
}

fn insert_posting(dialect: Dialect, new: &NewPosting, at: Timestamp) -> Vec<Statement> {
    let NewPosting { posting, details, .. } = new;
    let (operation, reason) = match &posting.kind {
        PostingKind::Deposit => (None, None),
        PostingKind::Refund(operation) => (Some(operation.to_bytes().to_vec()), None),
        PostingKind::Adjustment(reason) => (None, Some(reason.clone())),
    };
    let binds = [
        blob(posting.id.to_bytes()),
        blob(posting.wallet.to_bytes()),
        posting.kind.label().into(),
        operation.into(),
        posting.amount.get().into(),
        reason.into(),
        at.as_micros().into(),
    ];
    let posting = dialect.statement(of(dialect, INSERT_POSTING), binds);
    vec![posting, (new.posting.id, details.clone()).insert(dialect)]
}

/// Ends the credentials of an API key that end later.
pub(crate) fn end_credentials(dialect: Dialect, key: ApiKeyId, at: Timestamp) -> Statement {
    dialect.statement(END_CREDENTIALS, [blob(key.to_bytes()), at.as_micros().into()])
}

pub(crate) fn insert_credential(
    dialect: Dialect,
    credential: &Credential,
    at: Timestamp,
) -> Statement {
    let binds = [
        blob(credential.id.to_bytes()),
        blob(credential.api_key.to_bytes()),
        blob(credential.verifier.to_bytes()),
        blob(credential.server_secret.to_bytes()),
        at.as_micros().into(),
        moment(credential.ends_at),
    ];
    dialect.statement(INSERT_CREDENTIAL, binds)
}

fn insert_admin_credential(
    dialect: Dialect,
    credential: &AdminCredential,
    at: Timestamp,
) -> Statement {
    let binds = [
        blob(credential.id.to_bytes()),
        blob(credential.admin_key.to_bytes()),
        blob(credential.verifier.to_bytes()),
        blob(credential.server_secret.to_bytes()),
        at.as_micros().into(),
        moment(credential.ends_at),
    ];
    dialect.statement(admin_key::INSERT_CREDENTIAL, binds)
}
