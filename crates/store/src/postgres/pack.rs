//! Rows of the writing statement, made of the changes that passed.
//!
//! Cells are put in the order in which `statements` names its columns, kind by kind; only that order joins the two.
//! Each effect of an operation has its part:
//!
//! * an admission or a reopening: the operation, its hold, and its price version if it is new;
//! * an ending: the operation's row, its result and its attempts, and the settlement with it;
//! * a posting: the posting itself.
//!
//! Entries are numbered in the order of the changes: by the table, or by numbers that were drawn, if they are of
//! two tables.
//!
//! Events are those of the judged batch: few batches have one.
//!
//! Deltas of wallets and new values of counters come from the judged batch: one row for each that moved, however
//! many changes moved it. No rule is applied here: judging is over.

use holdfast_domain::admin::event::NewEvent;
use holdfast_domain::billing::UsageRecord;
use holdfast_domain::ledger::Funds;
use holdfast_domain::model::ModelAlias;
use holdfast_domain::operation::{
    Admission, Attempt, Effect, GenerationStart, ProviderRefusal, SealedResult, Transition,
};
use holdfast_domain::price::PriceVersion;
use holdfast_domain::usage::{MeterKind, MetersSource};
use holdfast_domain::{ClaimId, Micros, Timestamp};

use super::arrays::Rows;
use super::statements::Writes;
use crate::batch::judge::{Acceptance, BookDeltas};
use crate::rows;
use crate::transaction::event::unfinished;

/// Makes the rows of every part, with room for so many changes.
pub(super) fn writes<'c>(
    expected: usize,
    passed: impl Iterator<Item = (&'c Transition, Acceptance)>,
    moved: &BookDeltas,
    now: Timestamp,
) -> Writes {
    let mut pack = WritePacker { writes: Writes::with_room(expected), now };
    for (change, passed) in passed {
        pack.transition(change, passed);
    }
    // New versions only: the book leaves out those that the table has.
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
    for event in &moved.events {
        pack.event(event);
    }
    pack.writes
}

struct WritePacker {
    writes: Writes,
    now: Timestamp,
}

impl WritePacker {
    fn transition(&mut self, transition: &Transition, passed: Acceptance) {
        // A new operation that passed has been given a number.
        let seq = passed.seq.unwrap_or(0);
        let expected = transition.expected.map_or(0, |version| i64::from(version.get()));
        // No other claim has it, and none is made twice: no need to compare more.
        let judged = transition.claim.map_or([0; 16], ClaimId::to_bytes);
        let end = |phase, is_finished, usage| EndUpdate {
            judged,
            seq,
            expected,
            phase,
            is_finished,
            usage,
        };
        match &transition.effect {
            Effect::Admit(admission) => self.admission(seq, transition, admission),
            Effect::Reopen(start) => self.reopening(seq, expected, transition, start),
            Effect::Complete { usage, result, attempts } => {
                self.ending(&end("completed", true, Some(usage)), None, attempts);
                self.result(seq, result, true);
            }
            Effect::Record { usage, result, attempts } => {
                self.ending(&end("recorded", false, Some(usage)), None, attempts);
                self.result(seq, result, false);
            }
            Effect::Settle => {
                self.writes.settlements.row().int(seq).int(expected).fixed(&judged);
                self.writes.settled_results.row().int(seq);
            }
            Effect::AskCancel => {
                self.writes.cancellations.row().int(seq).int(expected).fixed(&judged);
            }
            Effect::Cancel => {
                self.writes.cancelled.row().int(seq).int(expected).fixed(&judged);
            }
            Effect::Open { attempts } => self.ending(&end("open", false, None), None, attempts),
            Effect::Refuse { refusal, result, attempts } => {
                self.ending(&end("refused", true, None), Some(*refusal), attempts);
                self.result(seq, result, true);
            }
            Effect::Abandon { attempts } => {
                self.ending(&end("abandoned", true, None), None, attempts);
            }
        }
        let running = match (transition.funds, &transition.effect) {
            (Funds::Hold(_), Effect::Admit(_)) => Some(&mut self.writes.begun),
            (Funds::Hold(_), _) => Some(&mut self.writes.resumed),
            (Funds::Capture { .. } | Funds::Release(_) | Funds::Lapse(_), _) => {
                Some(&mut self.writes.ended)
            }
            (Funds::Unmoved, _) => None,
        };
        if let Some(rows) = running {
            rows.row().int(seq);
        }
        for transfer in transition.funds.transfers() {
            let leg = rows::leg(transition.generation, transfer.kind);
            let amount = transfer.amount.get();
            self.writes.transfers.row().int(seq).int(leg).int(amount);
        }
    }

    fn admission(&mut self, seq: i64, transition: &Transition, admission: &Admission) {
        let Admission { request_key, binding, model, alias, start } = admission;
        let rows = self.writes.admissions.row();
        rows.int(seq)
            .int(i64::from(binding.terms.fingerprint_version))
            .int(i64::from(binding.terms.contract))
            .fixed(&transition.operation.to_bytes())
            .fixed(&transition.api_key.to_bytes())
            .fixed(&request_key.to_bytes())
            .fixed(&transition.wallet.to_bytes())
            .fixed(&binding.terms.server_secret.to_bytes())
            .fixed(&binding.fingerprint.to_bytes())
            .fixed(&binding.body_digest.to_bytes())
            .name(model.as_str())
            .opt_name(alias.as_ref().map(ModelAlias::as_str));
        put_start(rows, start, self.now);
    }

    fn reopening(
        &mut self,
        seq: i64,
        expected: i64,
        transition: &Transition,
        start: &GenerationStart,
    ) {
        let rows = self.writes.reopenings.row();
        rows.int(seq).int(expected).int(i64::from(transition.generation));
        rows.fixed(&transition.claim.map_or([0; 16], ClaimId::to_bytes));
        put_start(rows, start, self.now);
    }

    fn ending(
        &mut self,
        end: &EndUpdate<'_>,
        refusal: Option<ProviderRefusal>,
        attempts: &[Attempt],
    ) {
        let rows = self.writes.endings.row();
        rows.int(end.seq).int(end.expected).int(i64::from(end.is_finished));
        rows.fixed(&end.judged).name(end.phase);
        let source = match end.usage {
            Some(usage) => {
                for (_, count) in usage.metered.meters.iter() {
                    rows.int(rows::signed(count));
                }
                rows.int(usage.charge.get()).int(usage.shortfall.get());
                rows.opt_int(usage.metered.provider_cost.map(Micros::get));
                rows.opt_int(rows::reasons_bits(usage.metered.reasons));
                Some(match usage.metered.source {
                    MetersSource::Reported => "reported",
                    MetersSource::Estimated => "estimated",
                })
            }
            None => {
                // As many cells as a usage has: a column with fewer would shift the rows after it.
                for _ in MeterKind::ALL {
                    rows.opt_int(None);
                }
                rows.opt_int(None).opt_int(None).opt_int(None).opt_int(None);
                None
            }
        };
        let refusal = refusal.map(|refusal| match refusal {
            ProviderRefusal::Request => "request",
            ProviderRefusal::ContextLength => "context_length",
        });
        rows.opt_name(source).opt_name(refusal).text(rows::attempts_text(attempts));
    }

    fn result(&mut self, seq: i64, result: &SealedResult, is_finished: bool) {
        let rows = self.writes.results.row();
        rows.int(seq).int(i64::from(result.format)).int(i64::from(is_finished));
        rows.fixed(&result.credential.to_bytes())
            .fixed(&result.nonce)
            .opt_blob(Some(&result.sealed));
    }

    /// An event of a change has a wallet, and gets its currency there.
    fn event(&mut self, event: &NewEvent) {
        if let Some((wallet, data)) = event.wallet.zip(unfinished(event)) {
            let rows = self.writes.events.row().fixed(&event.id.to_bytes());
            rows.fixed(&wallet.to_bytes()).name(event.kind.label()).text(data);
        }
    }

    fn price(&mut self, price: &PriceVersion) {
        let rows = self.writes.prices.row();
        for kind in MeterKind::ALL {
            rows.int(rows::signed(price.tariff.rates().rate(kind)));
        }
        let tiers = rows::tariff::tiers_text(&price.tariff);
        rows.text(price.id.as_str()).text(price.currency.as_str()).text(tiers);
    }
}

/// Cells that the end of a run writes into its operation's row.
struct EndUpdate<'c> {
    judged: [u8; 16],
    seq: i64,
    expected: i64,
    phase: &'static str,
    is_finished: bool,
    usage: Option<&'c UsageRecord>,
}

fn put_start(rows: &mut Rows, start: &GenerationStart, now: Timestamp) {
    rows.int(start.hold.get())
        .int(i64::from(start.reserved.counters()))
        .int(rows::signed(start.reserved.tokens()))
        .int(now.after(start.time).as_micros())
        .fixed(&start.owner.claim.to_bytes())
        .fixed(&start.owner.node.incarnation.to_bytes())
        .name(start.price.id.as_str())
        .name(start.owner.node.name.as_str());
}
