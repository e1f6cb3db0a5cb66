//! Changes that passed, as the records of the writing script. Cells are put in the order in which
//! [`super::script`] names them.

use holdfast_domain::ledger::{Posting, PostingKind};
use holdfast_domain::operation::{
    Admission, Attempt, Change, Effect, ProviderRefusal, SealedResult, Start, Transition,
};
use holdfast_domain::price::PriceVersion;
use holdfast_domain::usage::{Kind, MetersSource, UsageRecord};
use holdfast_domain::{OperationId, Timestamp};

use super::records::Records;
use super::script::Writes;
use crate::judge::{Moved, Passed};
use crate::rows;

/// Stands for NULL where only numbers from zero up have a meaning.
const NOTHING: i64 = -1;

/// The records of every statement. New rows are numbered from `last_seq` on.
pub(super) fn writes<'c>(
    passed: impl Iterator<Item = (&'c Change, Passed)>,
    moved: &Moved,
    last_seq: i64,
    now: Timestamp,
) -> Writes {
    let mut pack = Pack { writes: Writes::default(), last_seq, now };
    for (change, passed) in passed {
        match change {
            Change::Operation(transition) => pack.transition(transition, passed),
            Change::Posting(posting) => pack.posting(posting),
        }
    }
    for price in moved.prices.values() {
        pack.price(price);
    }
    for (id, moves) in &moved.wallets {
        let wallets = pack.writes.wallets.row().fixed(&id.to_bytes());
        wallets.int(moves.available.get()).int(moves.held.get());
    }
    for ((api_key, counter, window), used) in &moved.counters {
        let counters = pack.writes.counters.row().fixed(&api_key.to_bytes());
        counters.int(rows::counter_code(*counter)).int(window.as_micros()).int(*used);
    }
    pack.writes
}

struct Pack {
    writes: Writes,
    last_seq: i64,
    now: Timestamp,
}

/// How a run ended.
#[derive(Clone, Copy)]
enum Ended {
    Completed,
    Recorded,
    Open,
    Refused,
    Abandoned,
}

impl Pack {
    fn transition(&mut self, transition: &Transition, passed: Passed) {
        let seq = passed.seq.unwrap_or_else(|| {
            self.last_seq = self.last_seq.saturating_add(1);
            self.last_seq
        });
        let expected = transition.expected.map_or(0, |version| i64::from(version.get()));
        let end = |ended, usage| End { seq, expected, ended, usage, refusal: None };
        match &transition.effect {
            Effect::Admit(admission) => self.admission(seq, transition, admission),
            Effect::Reopen(start) => self.reopening(seq, expected, transition.generation, start),
            Effect::Complete { usage, result, attempts } => {
                self.ending(&end(Ended::Completed, Some(usage)), attempts);
                self.result(seq, result, true);
            }
            Effect::Record { usage, result, attempts } => {
                self.ending(&end(Ended::Recorded, Some(usage)), attempts);
                self.result(seq, result, false);
            }
            Effect::Settle => {
                self.writes.settlements.row().int(seq).int(expected);
                self.writes.settled_results.row().int(seq);
            }
            Effect::AskCancel => {
                self.writes.cancellations.row().int(seq).int(expected);
            }
            Effect::Open { attempts } => self.ending(&end(Ended::Open, None), attempts),
            Effect::Refuse { refusal, result, attempts } => {
                let end = End { refusal: Some(*refusal), ..end(Ended::Refused, None) };
                self.ending(&end, attempts);
                self.result(seq, result, true);
            }
            Effect::Abandon { attempts } => self.ending(&end(Ended::Abandoned, None), attempts),
        }
        for transfer in transition.funds.transfers() {
            let leg = rows::leg(transition.generation, transfer.kind);
            self.writes.transfers.row().int(seq).int(leg).int(transfer.amount.get());
        }
    }

    fn admission(&mut self, seq: i64, transition: &Transition, admission: &Admission) {
        let Admission { request_key, binding, model, start } = admission;
        let deadline = self.deadline(start);
        let rows = self.writes.admissions.row();
        rows.int(seq)
            .fixed(&transition.operation.to_bytes())
            .fixed(&transition.api_key.to_bytes())
            .fixed(&request_key.to_bytes())
            .fixed(&transition.wallet.to_bytes())
            .text(model.as_str())
            .fixed(&binding.terms.server_secret.to_bytes())
            .int(i64::from(binding.terms.fingerprint_version))
            .int(i64::from(binding.terms.contract))
            .fixed(&binding.fingerprint.to_bytes())
            .fixed(&binding.body_digest.to_bytes());
        put_start(rows, start, deadline);
    }

    fn reopening(&mut self, seq: i64, expected: i64, generation: u32, start: &Start) {
        let deadline = self.deadline(start);
        let rows = self.writes.reopenings.row();
        rows.int(seq).int(expected).int(i64::from(generation));
        put_start(rows, start, deadline);
    }

    fn deadline(&self, start: &Start) -> i64 {
        self.now.after(start.time).as_micros()
    }

    fn ending(&mut self, end: &End<'_>, attempts: &[Attempt]) {
        let rows = self.writes.endings.row();
        rows.int(end.seq).int(end.expected).int(match end.ended {
            Ended::Completed => 0,
            Ended::Recorded => 1,
            Ended::Open => 2,
            Ended::Refused => 3,
            Ended::Abandoned => 4,
        });
        match end.usage {
            Some(usage) => {
                for (_, count) in usage.metered.meters.iter() {
                    rows.int(signed(count));
                }
                rows.int(match usage.metered.source {
                    MetersSource::Reported => 0,
                    MetersSource::Estimated => 1,
                });
                rows.int(usage.charge.get()).int(usage.shortfall.get());
            }
            None => {
                for _ in Kind::ALL {
                    rows.int(NOTHING);
                }
                rows.int(NOTHING).int(NOTHING).int(NOTHING);
            }
        }
        rows.int(match end.refusal {
            None => NOTHING,
            Some(ProviderRefusal::Request) => 0,
            Some(ProviderRefusal::ContextLength) => 1,
        });
        rows.text(&rows::attempts_text(attempts));
    }

    fn result(&mut self, seq: i64, result: &SealedResult, ended: bool) {
        self.writes
            .results
            .row()
            .int(seq)
            .fixed(&result.credential.to_bytes())
            .int(i64::from(result.format))
            .fixed(&result.nonce)
            .bytes(&result.sealed)
            .int(i64::from(ended));
    }

    fn posting(&mut self, posting: &Posting) {
        let nobody = OperationId::from_u128(0);
        let (kind, operation, reason) = match &posting.kind {
            PostingKind::Deposit => (0, nobody, ""),
            PostingKind::Refund(operation) => (1, *operation, ""),
            PostingKind::Adjustment(reason) => (2, nobody, reason.as_str()),
        };
        self.writes
            .postings
            .row()
            .fixed(&posting.id.to_bytes())
            .fixed(&posting.wallet.to_bytes())
            .int(kind)
            .fixed(&operation.to_bytes())
            .int(posting.amount.get())
            .text(reason);
    }

    fn price(&mut self, price: &PriceVersion) {
        let rows = self.writes.prices.row();
        rows.text(price.id.as_str()).text(price.currency.as_str());
        for kind in Kind::ALL {
            rows.int(signed(price.rates.rate(kind)));
        }
    }
}

/// What the end of a run writes into its operation's row.
struct End<'c> {
    seq: i64,
    expected: i64,
    ended: Ended,
    usage: Option<&'c UsageRecord>,
    refusal: Option<ProviderRefusal>,
}

fn put_start(rows: &mut Records, start: &Start, deadline: i64) {
    rows.text(start.price.id.as_str())
        .int(start.hold.get())
        .int(i64::from(start.reserved.counters()))
        .int(signed(start.reserved.tokens()))
        .fixed(&start.owner.claim.to_bytes())
        .text(start.owner.node.name.as_str())
        .fixed(&start.owner.node.incarnation.to_bytes())
        .int(deadline);
}

/// Counts beyond the signed range are bounds that nothing reaches.
fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
