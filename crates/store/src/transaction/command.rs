//! Administration: a command is one transaction, written once for both databases.
//!
//! ```text
//! latest audit checksum, request key ─ bound? ─▶ answered from it, nothing is written
//!              └ free ─▶ clock ─▶ admin::decide, which reads its facts ─▶ refusal, at most its event
//!                                         └─▶ writes, events, audit log, checksum, request key, COMMIT
//! ```
//!
//! Statements ([`reads`], [`writes`]) are the same for both dialects; a database's own part ([`Tx`]) only sends
//! them. SQLite does so between two batches of its writer, PostgreSQL on its connections for commands.
//!
//! The latest checksum is locked first, so commands come one after the other, on all nodes: names, keys and
//! references that a command has read are not changed by another one. A wallet is locked after it, if its balance
//! counts, because the batches of the writer move that.
//!
//! A lost answer: the same command again takes the latest checksum, and finds its request key bound or free. A
//! command is never offered again before that check.

pub(crate) mod admin_key;
mod person;
pub(crate) mod reads;
pub(crate) mod seed;
pub(crate) mod trail;
mod webhook;
pub(crate) mod writes;

use std::sync::Arc;

use holdfast_domain::Timestamp;
use holdfast_domain::admin::audit::{TrailHead, TrailRow};
use holdfast_domain::admin::event::{EventInterest, NewEvent};
use holdfast_domain::admin::{
    AccountCommand, AccountEffect, AccountReceipt, AccountRefusal, AccountWrite, Creation,
    NewPosting, Rejection, ResourceId, decide, replay,
};
use holdfast_domain::ledger::PostingKind;
use holdfast_domain::ports::Cause;
use holdfast_domain::secret::ServerSecret;
use holdfast_failpoint::{Fault, Step, is_broken, reach};
use sea_orm::Statement;
use tokio::sync::OwnedSemaphorePermit;

use self::reads::{DecisionError, Reads};
use self::seed::EndedSums;
use crate::rows::{BadRow, Cells, Row};
use crate::schema::Dialect;
use crate::transaction::event;

/// Commands that wait in a process, the one that is done among them. Heartbeats and purges queue for
/// the same writer, and must not stand behind a crowd.
pub(crate) const WAITING_MAX: usize = 16;

/// Failure of one offer.
#[derive(Debug)]
pub(crate) enum OfferError {
    /// The command was not committed.
    Unavailable(Cause),
    /// COMMIT may have been sent: only the request key knows.
    Uncertain(Cause),
}

/// Command with all that its transaction needs; owned, because the transaction may outlive its
/// caller.
#[derive(Debug, Clone)]
pub(crate) struct CommandTransaction {
    pub(crate) dialect: Dialect,
    pub(crate) command: AccountCommand,
    pub(crate) secret: ServerSecret,
    /// Interest in events as the command was offered.
    pub(crate) interest: EventInterest,
    /// Sums for the counters that the command seeds, taken before its transaction.
    ended: Option<Arc<EndedSums>>,
    mode: Mode,
    /// Place among the waiting commands, kept until the last offer ends, even if its caller is gone.
    _place: Arc<OwnedSemaphorePermit>,
}

/// Fate of what a command would write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Written, and committed.
    Commit,
    /// Only judged (dry run).
    Rehearse,
}

/// Verdict of a transaction that was committed, or that wrote no row.
pub(crate) type CommandVerdict = Result<AccountReceipt, AccountRefusal>;

/// Transaction of one database.
pub(crate) trait Tx {
    type Error: From<BadRow>;

    /// The database's clock.
    async fn now(&mut self) -> Result<Timestamp, Self::Error>;

    /// Reads all rows of a statement.
    async fn query<R>(
        &mut self,
        statement: Statement,
        row: fn(&mut Cells<'_>) -> Result<R, BadRow>,
    ) -> Result<Vec<R>, Self::Error>;

    async fn execute(&mut self, statement: Statement) -> Result<(), Self::Error>;
}

impl CommandTransaction {
    pub(crate) fn new(
        dialect: Dialect,
        command: &AccountCommand,
        secret: &ServerSecret,
        (mode, place): (Mode, OwnedSemaphorePermit),
    ) -> Self {
        let (command, secret) = (command.clone(), secret.clone());
        let place = Arc::new(place);
        Self {
            dialect,
            command,
            secret,
            interest: EventInterest::ALL,
            ended: None,
            mode,
            _place: place,
        }
    }

    /// The command with the known receivers of its events.
    pub(crate) fn with_interest(self, interest: EventInterest) -> Self {
        Self { interest, ..self }
    }

    /// The command with the sums for the counters that it seeds.
    pub(crate) fn with_ended(self, ended: Option<Arc<EndedSums>>) -> Self {
        Self { ended, ..self }
    }

    /// Runs the command. None: its sums are outdated, and no row was written.
    pub(crate) async fn run<T: Tx>(&self, tx: &mut T) -> Result<Option<CommandVerdict>, T::Error> {
        let (dialect, command) = (self.dialect, &self.command);
        let mut facts = Reads { tx, dialect, command, now: Timestamp::from_micros(0) };
        // Its lock keeps other commands out.
        let head = facts.last(reads::head(dialect), trail::head).await?;
        let head = head.unwrap_or(TrailHead::EMPTY);
        let bound = facts.last(reads::bound(dialect, command), reads::request).await?;
        if let Some(record) = bound {
            let invited = facts.invited(&record.things).await?;
            return Ok(Some(replay(&record, command, invited.as_ref())));
        }
        // After the head's lock: the moments of the audit log follow its numbers.
        facts.now = facts.tx.now().await?;
        let now = facts.now;
        let (statements, verdict) = match decide(command, &mut facts).await {
            Ok(effect) => match self.written(head, effect, now) {
                Some((statements, receipt)) => (statements, Ok(receipt)),
                None => return Ok(None),
            },
            // It binds nothing and changes nothing, but its event has a receiver: committed all the same.
            Err(DecisionError::Rejection(Rejection { refusal, event })) => {
                let events = event.filter(|_event| self.mode == Mode::Commit).map(|event| *event);
                (self.events(events, now), Err(refusal))
            }
            Err(DecisionError::Failed(error)) => return Err(error),
        };
        reach(Step::CommandJudged);
        for statement in statements {
            facts.tx.execute(statement).await?;
        }
        reach(Step::CommandWritten);
        Ok(Some(verdict))
    }

    /// Statements of an effect, and the receipt. None: the sums are for other counters or windows than it seeds.
    fn written(
        &self,
        before: TrailHead,
        effect: AccountEffect,
        now: Timestamp,
    ) -> Option<(Vec<Statement>, AccountReceipt)> {
        let things: Vec<ResourceId> =
            effect.entries.iter().map(|(thing, _changes)| *thing).collect();
        let receipt = AccountReceipt { things, at: now, replayed: effect.was_done };
        if self.mode == Mode::Rehearse {
            return Some((Vec::new(), receipt));
        }
        let mut statements = Vec::new();
        for write in &with_fault(effect.writes) {
            statements.extend(writes::statements(self.dialect, write, self.ended.as_deref())?);
        }
        // After the rows that they name.
        statements.extend(self.events(effect.events, now));
        let mut head = before;
        let mut rows = Vec::new();
        for (thing, changes) in effect.entries.into_iter().chain(effect.also) {
            // A resource without changes gets no row: the audit log records changes.
            if changes.is_empty() {
                continue;
            }
            let row = TrailRow::after(head, &self.command, (thing, changes), now, &self.secret);
            head = row.head();
            rows.push(row);
        }
        for rows in rows.chunks(trail::ROWS_MAX) {
            statements.push(TrailRow::insert_all(self.dialect, rows));
            statements.extend(trail::insert_addresses(self.dialect, rows, &self.command));
        }
        if head != before {
            statements.push(trail::advance(self.dialect, head));
        }
        let bound = (now, &self.secret);
        statements.push(trail::bind(self.dialect, &self.command, &receipt.things, bound));
        Some((statements, receipt))
    }

    /// Statements of those events that have a receiver.
    fn events(&self, events: impl IntoIterator<Item = NewEvent>, now: Timestamp) -> Vec<Statement> {
        let wanted = events.into_iter().filter(|event| self.interest.wants(event.kind));
        event::insert_all(self.dialect, &wanted.collect::<Vec<_>>(), now)
    }

    /// The receipt for its caller: after a lost answer, a request key that is bound to the effect of this command
    /// was bound by this command.
    pub(crate) fn receipt_for_caller(
        &self,
        receipt: AccountReceipt,
        was_lost: bool,
    ) -> AccountReceipt {
        let is_own = match self.command.action.row().1 {
            Creation::Resource(made) => receipt.things.contains(&made),
            // It may be another offer's, whose secret is another one: that one must not be shown.
            Creation::Secret => false,
            Creation::Nothing => true,
        };
        AccountReceipt { replayed: receipt.replayed && !(was_lost && is_own), ..receipt }
    }
}

/// Writes of a command; a refund pays nothing if that guard is switched off.
fn with_fault(mut writes: Vec<AccountWrite>) -> Vec<AccountWrite> {
    if !is_broken(Fault::RefundLost) {
        return writes;
    }
    let refund = writes.iter().find_map(|write| {
        let AccountWrite::InsertPosting(NewPosting { posting, .. }, _) = write else { return None };
        matches!(posting.kind, PostingKind::Refund(_)).then_some(posting.amount)
    });
    for write in &mut writes {
        if let (AccountWrite::SetAvailable(_, available), Some(refund)) = (write, refund) {
            *available = available.minus(refund).unwrap_or(*available);
        }
    }
    writes
}
