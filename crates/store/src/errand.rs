//! Administration: a command is one transaction, written once for both databases.
//!
//! ```text
//! head of the trail, request key ─ bound? ─▶ answered from it, nothing is written
//!        └ free ─▶ clock, facts (wallet, API key, names …) ─▶ account::decide ─▶ refusal, at most its event
//!                                                                  └─▶ writes, events, trail, head, request key, COMMIT
//! ```
//!
//! Each step is a list of statements with their readers ([`reads`], [`writes`]), pure and the same
//! for both dialects; a database's own part only sends them. SQLite does so
//! between two batches of its writer, PostgreSQL on the connections of errands.
//!
//! The head is locked first, so commands come one after the other, on all nodes: what a command has
//! read of names, keys and references no other command changes. A wallet is locked after it, where
//! its balance counts, because the batches of the writer move that.
//!
//! A lost answer: the same command again takes the head, and finds its request key bound or free.
//! Nothing is offered again before that was looked at.

pub(crate) mod admin_key;
mod event;
mod person;
pub(crate) mod reads;
pub(crate) mod seed;
pub(crate) mod trail;
mod webhook;
pub(crate) mod writes;

use std::sync::Arc;

use holdfast_domain::admin::audit::TrailRow;
use holdfast_domain::admin::event::EventInterest;
use holdfast_domain::admin::{
    AccountCommand, AccountReceipt, AccountRefusal, Thing, decide, replay,
};
use holdfast_domain::ports::Cause;
use holdfast_domain::secret::ServerSecret;
use sea_orm::Statement;
use tokio::sync::OwnedSemaphorePermit;

use self::reads::Findings;
use self::seed::EndedSums;
use crate::dialect::Dialect;
use crate::rows::Row;

/// Commands that wait in a process, the one that is done among them. Heartbeats and purges queue for
/// the same writer, and must not stand behind a crowd.
pub(crate) const WAITING_MAX: usize = 16;

/// Failure of one offer.
#[derive(Debug)]
pub(crate) enum OfferError {
    /// Nothing was committed.
    Unavailable(Cause),
    /// COMMIT may have been sent: only the request key knows.
    Uncertain(Cause),
}

/// Command with all that its transaction needs; owned, because the transaction may outlive its
/// caller.
#[derive(Debug, Clone)]
pub(crate) struct Errand {
    pub(crate) dialect: Dialect,
    pub(crate) command: AccountCommand,
    pub(crate) secret: ServerSecret,
    /// Interest in events as the command was offered.
    pub(crate) interest: EventInterest,
    /// Sums for the counters that the command seeds, taken before its transaction.
    ended: Option<Arc<EndedSums>>,
    mode: Mode,
    /// Place among those that wait: had until the last offer ends, whoever still waits for it.
    _place: Arc<OwnedSemaphorePermit>,
}

/// Fate of what a command would write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Written, and committed.
    Commit,
    /// Judged alone.
    Rehearse,
}

/// Verdict of a transaction that was committed, or in which nothing was written.
pub(crate) type Verdict = Result<AccountReceipt, AccountRefusal>;

/// A judgement without anything to write.
pub(crate) enum Unwritten {
    Refused(AccountRefusal),
    /// The sums are for other counters or windows than the command seeds: they are to be taken again.
    SumsOutdated,
}

impl From<AccountRefusal> for Unwritten {
    fn from(refusal: AccountRefusal) -> Self {
        Self::Refused(refusal)
    }
}

impl Errand {
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

    /// The command with what is known of who wants its events.
    pub(crate) fn with_interest(self, interest: EventInterest) -> Self {
        Self { interest, ..self }
    }

    /// The command with the sums for the counters that it seeds.
    pub(crate) fn with_ended(self, ended: Option<Arc<EndedSums>>) -> Self {
        Self { ended, ..self }
    }

    /// Answer where the request key is bound already.
    pub(crate) fn replay(&self, findings: &Findings) -> Option<Verdict> {
        let person = findings.facts.person.record.as_ref();
        findings.request.as_ref().map(|record| replay(record, &self.command, person))
    }

    /// Judges, and says what is to be written.
    pub(crate) fn judge(
        &self,
        findings: &Findings,
    ) -> Result<(Vec<Statement>, AccountReceipt), Unwritten> {
        let effect = decide(&self.command, &findings.facts)?;
        let things: Vec<Thing> = effect.entries.iter().map(|(thing, _changes)| *thing).collect();
        let now = findings.facts.now;
        if self.mode == Mode::Rehearse {
            return Ok((Vec::new(), AccountReceipt { things, at: now, replayed: effect.was_done }));
        }
        let mut statements = Vec::new();
        for write in &effect.writes {
            let written = writes::statements(self.dialect, write, self.ended.as_deref());
            statements.extend(written.ok_or(Unwritten::SumsOutdated)?);
        }
        // After the rows that they name.
        statements.extend(self.events(findings, &effect));
        let mut head = findings.head;
        let mut rows = Vec::new();
        for (thing, changes) in effect.entries.into_iter().chain(effect.also) {
            // What changed nothing leaves no row: the trail says what was done.
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
        if head != findings.head {
            statements.push(trail::advance(self.dialect, head));
        }
        statements.push(trail::bind(self.dialect, &self.command, &things, (now, &self.secret)));
        Ok((statements, AccountReceipt { things, at: now, replayed: effect.was_done }))
    }

    /// The receipt as its caller is told it: after a lost answer, a request key that is bound to
    /// what this command would have made was bound by this command.
    pub(crate) fn told(&self, receipt: AccountReceipt, was_lost: bool) -> AccountReceipt {
        let is_own = match self.command.action.made() {
            Some(made) => receipt.things.contains(&made),
            // A rotation may be another offer's, whose secret is another one: nobody is told that one.
            None => !self.command.action.is_rotation(),
        };
        AccountReceipt { replayed: receipt.replayed && !(was_lost && is_own), ..receipt }
    }
}
