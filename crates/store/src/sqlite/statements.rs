//! The statements of a batch, prepared once for a connection: one row each, constants in the text. [`super::batch`]
//! runs them, [`crate::batch::judge`] judges. Single rows are cheapest here: on the writer's own thread there is no
//! hop to save, and prepared statements are not parsed again. Only transfers, which have few columns, are written
//! together ([`super::transfers`]).
//!
//! A statement that changes another number of rows than it is for has failed: the row is not the one that was judged.
//! The batch is then undone as a whole, because each verdict counts on those before it.

use holdfast_domain::admin::event::NewEvent;
use holdfast_domain::billing::UsageRecord;
use holdfast_domain::ledger::BalanceChange;
use holdfast_domain::model::ModelAlias;
use holdfast_domain::operation::{
    Admission, Attempt, Effect, GenerationStart, ProviderRefusal, SealedResult, Transition, Version,
};
use holdfast_domain::price::{PriceVersion, PriceVersionId};
use holdfast_domain::usage::MeterKind;
use holdfast_domain::{ClaimId, Micros, OperationId, Timestamp, WalletId};
use rusqlite::{Connection, OptionalExtension, Params, PrepFlags, Statement, params};

use super::connect::CLOCK;
use super::endings::{
    ASK_CANCEL, CANCEL, END_METERED, END_UNMETERED, RESULT, SETTLE, SETTLE_RESULT,
};
use super::prices::{KEEP_PRICE, PRICE, find_price, keep_price};
use super::transfers::{TransferRow, Transfers};
use super::write_task::WriteError;
use crate::batch::judge::{Acceptance, OperationRow, WalletBalance, Window};
use crate::rows;
use crate::transaction::event::unfinished;

const WALLET: &str = "SELECT available, held, low_balance, limits_revision, entries
    FROM wallets WHERE id = ?1";
const OPERATION: &str = "SELECT seq, version, claim FROM operations WHERE id = ?1";
const COUNTER: &str = "SELECT used FROM counters
    WHERE api_key_id = ?1 AND counter = ?2 AND window_start = ?3";
const ADMIT: &str = "INSERT INTO operations (id, api_key_id, request_key, wallet_id, model, server_secret,
    fingerprint_version, contract, fingerprint, body_digest, created_at, generation, price_version, hold,
    reserved_counters, reserved_tokens, claim, node, incarnation, admitted_at, deadline, phase, version,
    cancel_asked, attempts, model_alias) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?19, 1, ?11, ?12,
    ?13, ?14, ?15, ?16, ?17, ?19, ?18, 'leased', 1, 0, '[]', ?20)";
// The right sides read the row as it was: `released` grows by the hold of the generation that is over.
const REOPEN: &str = "UPDATE operations SET phase = 'leased', version = version + 1,
    generation = ?3, price_version = ?4, released = coalesce(released, 0) + hold, hold = ?5, reserved_counters = ?6, reserved_tokens = ?7,
    claim = ?8, node = ?9, incarnation = ?10, deadline = ?11, admitted_at = ?12, attempts = '[]'
    WHERE seq = ?1 AND claim = ?13 AND version = ?2 AND phase = 'open'";
// The final value, not a difference: no other write comes between BEGIN IMMEDIATE and COMMIT.
const COUNT: &str = "INSERT INTO counters (api_key_id, counter, window_start, used)
    VALUES (?1, ?2, ?3, ?4)
    ON CONFLICT (api_key_id, counter, window_start) DO UPDATE SET used = excluded.used";
// A difference, which the table checks: whatever the batch judged, no balance goes below zero.
const MOVE: &str = "UPDATE wallets SET available = available + ?2, held = held + ?3, entries = ?4
    WHERE id = ?1";
// A batch does not read the currency: it is appended here as the last member, so `data` comes without its closing
// brace.
const INSERT_EVENT: &str = "INSERT INTO events (id, kind, wallet_id, created_at, data)
    SELECT ?1, ?2, w.id, ?3, ?4 || ',\"currency\":\"' || w.currency || '\"}' FROM wallets AS w
    WHERE w.id = ?5 ON CONFLICT (id) DO NOTHING";

/// Balance of a wallet, and the number of its last entry.
type WalletRow = (WalletBalance, i64);

/// The statements of a batch on one connection.
#[derive(Debug)]
pub(super) struct Statements<'c> {
    pub(super) connection: &'c Connection,
    done: StatementCounts,
    begin: Statement<'c>,
    commit: Statement<'c>,
    rollback: Statement<'c>,
    clock: Statement<'c>,
    wallet: Statement<'c>,
    operation: Statement<'c>,
    counter: Statement<'c>,
    price: Statement<'c>,
    keep_price: Statement<'c>,
    admit: Statement<'c>,
    reopen: Statement<'c>,
    end_metered: Statement<'c>,
    end_unmetered: Statement<'c>,
    settle: Statement<'c>,
    ask_cancel: Statement<'c>,
    cancel: Statement<'c>,
    result: Statement<'c>,
    settle_result: Statement<'c>,
    transfers: Transfers<'c>,
    count: Statement<'c>,
    wallet_move: Statement<'c>,
    insert_event: Statement<'c>,
}

/// Statements run and rows written since the transaction began.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct StatementCounts {
    pub(super) statements: u64,
    pub(super) rows: u64,
}

impl<'c> Statements<'c> {
    pub(super) fn prepare(connection: &'c Connection) -> rusqlite::Result<Self> {
        Self::prepared(connection, |sql| {
            // PERSISTENT keeps statements of so long a life out of the memory for short-lived ones.
            connection.prepare_with_flags(sql, PrepFlags::SQLITE_PREPARE_PERSISTENT)
        })
    }

    pub(super) fn prepared(
        connection: &'c Connection,
        mut prepare: impl FnMut(&str) -> rusqlite::Result<Statement<'c>>,
    ) -> rusqlite::Result<Self> {
        Ok(Self {
            connection,
            done: StatementCounts::default(),
            begin: prepare("BEGIN IMMEDIATE")?,
            commit: prepare("COMMIT")?,
            rollback: prepare("ROLLBACK")?,
            clock: prepare(&format!("SELECT {CLOCK}"))?,
            wallet: prepare(WALLET)?,
            operation: prepare(OPERATION)?,
            counter: prepare(COUNTER)?,
            price: prepare(PRICE)?,
            keep_price: prepare(KEEP_PRICE)?,
            admit: prepare(ADMIT)?,
            reopen: prepare(REOPEN)?,
            end_metered: prepare(END_METERED)?,
            end_unmetered: prepare(END_UNMETERED)?,
            settle: prepare(SETTLE)?,
            ask_cancel: prepare(ASK_CANCEL)?,
            cancel: prepare(CANCEL)?,
            result: prepare(RESULT)?,
            settle_result: prepare(SETTLE_RESULT)?,
            transfers: Transfers::prepared(&mut prepare)?,
            count: prepare(COUNT)?,
            wallet_move: prepare(MOVE)?,
            insert_event: prepare(INSERT_EVENT)?,
        })
    }

    pub(super) fn begin(&mut self) -> rusqlite::Result<()> {
        self.done = StatementCounts { statements: 1, rows: 0 };
        // Those of a batch that was undone.
        self.transfers.clear();
        self.begin.execute([]).map(drop)
    }

    /// An error here proves nothing: it may be durable.
    pub(super) fn commit(&mut self) -> rusqlite::Result<StatementCounts> {
        self.done.statements += 1;
        self.commit.execute([])?;
        Ok(self.done)
    }

    /// Ends the transaction without a trace. SQLite has ended it already after some errors.
    pub(super) fn rollback(&mut self) -> rusqlite::Result<StatementCounts> {
        if !self.connection.is_autocommit() {
            self.done.statements += 1;
            self.rollback.execute([])?;
        }
        Ok(self.done)
    }

    pub(super) fn now(&mut self) -> rusqlite::Result<Timestamp> {
        self.done.statements += 1;
        self.clock.query_row([], |row| row.get(0).map(Timestamp::from_micros))
    }

    pub(super) fn wallet(&mut self, id: WalletId) -> rusqlite::Result<Option<WalletRow>> {
        self.done.statements += 1;
        let balance = |row: &rusqlite::Row<'_>| {
            let (available, held) = (Micros::new(row.get(0)?), Micros::new(row.get(1)?));
            let low_balance = row.get::<_, Option<i64>>(2)?.map(Micros::new);
            let limits_revision = row.get::<_, i64>(3)?.unsigned_abs();
            Ok((WalletBalance { available, held, low_balance, limits_revision }, row.get(4)?))
        };
        self.wallet.query_row([id.to_bytes()], balance).optional()
    }

    pub(super) fn operation(&mut self, id: OperationId) -> rusqlite::Result<Option<OperationRow>> {
        self.done.statements += 1;
        let found = |row: &rusqlite::Row<'_>| {
            let claim = ClaimId::from_bytes(row.get(2)?);
            Ok(OperationRow { seq: row.get(0)?, version: Version::new(row.get(1)?), claim })
        };
        self.operation.query_row([id.to_bytes()], found).optional()
    }

    pub(super) fn counter(&mut self, window: Window) -> rusqlite::Result<Option<i64>> {
        self.done.statements += 1;
        let (api_key, counter, start) = window;
        let key = (api_key.to_bytes(), rows::counter_code(counter), start.as_micros());
        self.counter.query_row(key, |row| row.get(0)).optional()
    }

    pub(super) fn price(
        &mut self,
        id: &PriceVersionId,
    ) -> Result<Option<PriceVersion>, WriteError> {
        self.done.statements += 1;
        find_price(&mut self.price, id)
    }

    pub(super) fn keep_price(&mut self, price: &PriceVersion) -> rusqlite::Result<()> {
        self.done.statements += 1;
        counted(&mut self.done, 1, keep_price(&mut self.keep_price, price)?)
    }

    pub(super) fn move_wallet(
        &mut self,
        id: WalletId,
        moves: BalanceChange,
        entries: i64,
    ) -> rusqlite::Result<()> {
        let params = (id.to_bytes(), moves.available.get(), moves.held.get(), entries);
        one(&mut self.wallet_move, &mut self.done, params)
    }

    /// Writes an event of a change. An existing one is skipped.
    pub(super) fn insert_event(
        &mut self,
        event: &NewEvent,
        now: Timestamp,
    ) -> rusqlite::Result<()> {
        let Some((wallet, data)) = event.wallet.zip(unfinished(event)) else { return Ok(()) };
        let (id, wallet) = (event.id.to_bytes(), wallet.to_bytes());
        self.done.statements += 1;
        let inserted =
            self.insert_event.execute((id, event.kind.label(), now.as_micros(), data, wallet))?;
        self.done.rows += u64::try_from(inserted).unwrap_or(0);
        Ok(())
    }

    pub(super) fn count(&mut self, window: Window, used: i64) -> rusqlite::Result<()> {
        let (api_key, counter, start) = window;
        let code = rows::counter_code(counter);
        let params = (api_key.to_bytes(), code, start.as_micros(), used);
        one(&mut self.count, &mut self.done, params)
    }

    /// Writes an operation's row and its result, and adds its transfers to those of the batch, which count up the
    /// entries of the wallet. The number of the row.
    pub(super) fn transition(
        &mut self,
        transition: &Transition,
        passed: Acceptance,
        now: Timestamp,
        entries: &mut i64,
    ) -> rusqlite::Result<i64> {
        // No row has the number zero, and its update would fail.
        let judged = ExpectedRow {
            claim: transition.claim.map_or([0; 16], ClaimId::to_bytes),
            seq: passed.seq.unwrap_or(0),
            version: transition.expected.map_or(0, Version::get),
        };
        let at = now.as_micros();
        let mut seq = judged.seq;
        match &transition.effect {
            Effect::Admit(admission) => seq = self.admit(transition, admission, now)?,
            Effect::Reopen(start) => self.reopen(judged, transition.generation, start, now)?,
            Effect::Complete { usage, result, attempts } => {
                self.end_metered(judged, "completed", (usage, attempts), Some(at))?;
                self.result(seq, result, Some(at))?;
            }
            Effect::Record { usage, result, attempts } => {
                self.end_metered(judged, "recorded", (usage, attempts), None)?;
                self.result(seq, result, None)?;
            }
            Effect::Settle => self.settle(judged, now)?,
            Effect::AskCancel => {
                let params = (judged.seq, judged.version, judged.claim);
                one(&mut self.ask_cancel, &mut self.done, params)?;
            }
            Effect::Cancel => {
                let params = (judged.seq, judged.version, at, judged.claim);
                one(&mut self.cancel, &mut self.done, params)?;
            }
            Effect::Open { attempts } => {
                self.end_unmetered(judged, "open", (None, attempts), None)?;
            }
            Effect::Refuse { refusal, result, attempts } => {
                self.end_unmetered(judged, "refused", (Some(*refusal), attempts), Some(at))?;
                self.result(seq, result, Some(at))?;
            }
            Effect::Abandon { attempts } => {
                self.end_unmetered(judged, "abandoned", (None, attempts), Some(at))?;
            }
        }
        // After the row: a claim has its number only now, and transfers name it.
        for transfer in transition.funds.transfers() {
            *entries += 1;
            self.transfers.add(TransferRow {
                seq,
                leg: rows::leg(transition.generation, transfer.kind),
                amount: transfer.amount.get(),
                number: *entries,
            });
        }
        Ok(seq)
    }

    /// Writes the transfers of all transitions of the batch.
    pub(super) fn write_transfers(&mut self, now: Timestamp) -> rusqlite::Result<()> {
        let rows = self.transfers.len();
        let (statements, written) = self.transfers.write(now)?;
        self.done.statements += statements;
        counted(&mut self.done, rows, written)
    }

    /// The number of the new row.
    fn admit(
        &mut self,
        transition: &Transition,
        admission: &Admission,
        now: Timestamp,
    ) -> rusqlite::Result<i64> {
        let Admission { request_key, binding, model, alias, start } = admission;
        let params = params![
            transition.operation.to_bytes(),
            transition.api_key.to_bytes(),
            request_key.to_bytes(),
            transition.wallet.to_bytes(),
            model.as_str(),
            binding.terms.server_secret.to_bytes(),
            binding.terms.fingerprint_version,
            binding.terms.contract,
            binding.fingerprint.to_bytes(),
            binding.body_digest.to_bytes(),
            start.price.id.as_str(),
            start.hold.get(),
            start.reserved.counters(),
            rows::signed(start.reserved.tokens()),
            start.owner.claim.to_bytes(),
            start.owner.node.name.as_str(),
            start.owner.node.incarnation.to_bytes(),
            now.after(start.time).as_micros(),
            now.as_micros(),
            alias.as_ref().map(ModelAlias::as_str),
        ];
        one(&mut self.admit, &mut self.done, params)?;
        // At once: the next insert on this connection has another one.
        Ok(self.connection.last_insert_rowid())
    }

    fn reopen(
        &mut self,
        judged: ExpectedRow,
        generation: u32,
        start: &GenerationStart,
        now: Timestamp,
    ) -> rusqlite::Result<()> {
        let params = (
            judged.seq,
            judged.version,
            generation,
            start.price.id.as_str(),
            start.hold.get(),
            start.reserved.counters(),
            rows::signed(start.reserved.tokens()),
            start.owner.claim.to_bytes(),
            start.owner.node.name.as_str(),
            start.owner.node.incarnation.to_bytes(),
            now.after(start.time).as_micros(),
            now.as_micros(),
            judged.claim,
        );
        one(&mut self.reopen, &mut self.done, params)
    }

    fn end_metered(
        &mut self,
        judged: ExpectedRow,
        phase: &str,
        end: (&UsageRecord, &[Attempt]),
        finished_at: Option<i64>,
    ) -> rusqlite::Result<()> {
        let (usage, attempts) = end;
        let meters = MeterKind::ALL.map(|kind| rows::signed(usage.metered.meters.count(kind)));
        // In the order of MeterKind::ALL.
        let [
            input,
            cached_input,
            cache_write,
            audio_input,
            output,
            reasoning,
            audio_output,
            request,
            image,
        ] = meters;
        let params = params![
            judged.seq,
            judged.version,
            phase,
            rows::attempts_text(attempts),
            input,
            cached_input,
            cache_write,
            audio_input,
            output,
            reasoning,
            audio_output,
            request,
            image,
            usage.metered.source.label(),
            usage.charge.get(),
            usage.shortfall.get(),
            finished_at,
            usage.metered.provider_cost.map(Micros::get),
            judged.claim,
            rows::reasons_bits(usage.metered.reasons),
        ];
        one(&mut self.end_metered, &mut self.done, params)
    }

    fn end_unmetered(
        &mut self,
        judged: ExpectedRow,
        phase: &str,
        end: (Option<ProviderRefusal>, &[Attempt]),
        finished_at: Option<i64>,
    ) -> rusqlite::Result<()> {
        let (refusal, attempts) = end;
        let refusal = refusal.map(|refusal| match refusal {
            ProviderRefusal::Request => "request",
            ProviderRefusal::ContextLength => "context_length",
        });
        let attempts = rows::attempts_text(attempts);
        let params = params![
            judged.seq,
            judged.version,
            phase,
            attempts,
            refusal,
            finished_at,
            judged.claim,
        ];
        one(&mut self.end_unmetered, &mut self.done, params)
    }

    fn settle(&mut self, judged: ExpectedRow, now: Timestamp) -> rusqlite::Result<()> {
        let at = now.as_micros();
        one(&mut self.settle, &mut self.done, (judged.seq, judged.version, at, judged.claim))?;
        // A result that was deleted by hand does not keep the money held.
        self.done.statements += 1;
        self.settle_result.execute((judged.seq, at)).map(drop)
    }

    fn result(
        &mut self,
        seq: i64,
        result: &SealedResult,
        finished_at: Option<i64>,
    ) -> rusqlite::Result<()> {
        let SealedResult { credential, format, nonce, sealed, .. } = result;
        let params = (seq, credential.to_bytes(), format, nonce, sealed, finished_at);
        one(&mut self.result, &mut self.done, params)
    }
}

/// The row of an operation as it was judged. The number is compared with the claim: a remembered
/// one may be another operation's in a file that was restored meanwhile, or another run's of the same one.
#[derive(Debug, Clone, Copy)]
struct ExpectedRow {
    claim: [u8; 16],
    seq: i64,
    version: u32,
}

/// Runs a statement that changes one row.
fn one(
    statement: &mut Statement<'_>,
    done: &mut StatementCounts,
    params: impl Params,
) -> rusqlite::Result<()> {
    done.statements += 1;
    counted(done, 1, statement.execute(params)?)
}

/// Counts the rows that a statement has changed, which must be so many.
fn counted(done: &mut StatementCounts, expected: usize, changed: usize) -> rusqlite::Result<()> {
    done.rows += u64::try_from(changed).unwrap_or(0);
    if changed == expected { Ok(()) } else { Err(rusqlite::Error::StatementChangedRows(changed)) }
}
