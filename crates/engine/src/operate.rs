//! The task of one operation: claims it, has a route answer it, and brings its ending to the store.
//! It runs to its end whoever still listens.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use holdfast_domain::answer::Answer;
use holdfast_domain::conduct::{ClaimError, Claimed, Concluded, Ending, Order};
use holdfast_domain::limits::Tally;
use holdfast_domain::operation::{
    Attempt, Operation, Phase, ProviderRefusal, SealedResult, Snapshot,
};
use holdfast_domain::ports::{
    Arrival, Call, CommitError, Failure as ProviderFailure, NotRun, Unknown,
};
use holdfast_domain::price::ProviderCost;
use holdfast_domain::state::{Kept, ProviderStates};
use holdfast_domain::usage::{Kind, Metered, Meters, MetersSource, UsageRecord};
use holdfast_failpoint::{Step, reach};
use holdfast_wire::chat::chunk::Chunks;
use holdfast_wire::chat::completion::{CompletionView, render};
use tokio::time::{Instant, timeout};

use crate::Engine;
use crate::admission::Bid;
use crate::assembly::{Assembly, Pulse};
use crate::catalogue::{Guarantee, Timeouts};
use crate::options::Options;
use crate::rates::Rates;
use crate::reply::Failure;
use crate::routes::{Lane, Told, Way};
use crate::seal;
use crate::submit::Ask;
use crate::tape::{Closing, Outcome, Stop, Tape};

/// Bytes of text that an estimate counts as one token.
const BYTES_PER_TOKEN: u64 = 4;

impl Engine {
    /// Runs one operation from its claim to its end.
    pub(crate) async fn operate(
        self: Arc<Self>,
        tape: Arc<Tape>,
        ask: Ask,
        (bid, way): (Box<Bid>, Box<Way>),
        body: Bytes,
    ) {
        let place = self.running.place(Arc::clone(&tape));
        let until = Instant::now() + bid.model.timeouts.total;
        let rebind = self.rebind(&ask, &bid, body);
        let order =
            Order { claim: &bid.claim, now: self.node.now_at_the_latest(), rebind: &rebind };
        reach(Step::ClaimOffered);
        let claimed = self.conduct().claim(&order).await;
        // The run has the request: what it was read from was needed to compare it.
        drop(rebind);
        let outcome = match claimed {
            Ok(Claimed::Mine(operation, tally)) => {
                reach(Step::ClaimCommitted);
                tape.running();
                let (engine, bid, tape) = (&*self, &bid, &*tape);
                let (ask, operation) = (&ask, &*operation);
                Run { engine, tape, ask, bid, operation, tally, until }.perform(way).await
            }
            Ok(Claimed::Ended(found)) => stands(self.metrics.counted(*found)),
            Ok(Claimed::Recorded(snapshot)) => stands(*snapshot),
            Ok(Claimed::InProgress(_)) => Outcome::Elsewhere,
            Ok(Claimed::OtherRequest) => Outcome::OtherRequest,
            Err(error) => Outcome::Unbound(unbound(&error, &bid)),
        };
        // In hand until here: whoever is told next may ask again at once.
        drop(ask);
        place.leave(outcome);
    }
}

/// The run of one claimed operation.
struct Run<'a> {
    engine: &'a Engine,
    tape: &'a Tape,
    ask: &'a Ask,
    bid: &'a Bid,
    operation: &'a Operation,
    /// What the API key's counters stood at after the claim.
    tally: Tally,
    until: Instant,
}

/// What came of the routes.
enum Verdict {
    Answered(Answer, Option<Box<Chunks>>, Ran),
    Refused(ProviderRefusal),
    NotRun,
    Unknown,
}

/// What is known of the run behind an answer.
struct Ran {
    reported: Option<Meters>,
    /// What its route costs the operator.
    cost: Option<Arc<ProviderCost>>,
    /// What the provider wants back in a later turn.
    kept: Option<Box<Kept>>,
}

impl Run<'_> {
    /// Has it answered, and concludes it.
    async fn perform(&self, way: Box<Way>) -> Outcome {
        let id = self.operation.id;
        if let Some(track) = self.tape.track() {
            track.claimed(self.rates(self.operation));
        }
        let mut attempts = Vec::new();
        let answering = async { self.ending(self.answer(way, &mut attempts).await) };
        let ended = AssertUnwindSafe(answering).catch_unwind().await;
        let (ending, body) = ended.unwrap_or_else(|_panic| {
            tracing::error!(operation.id = %id, "an operation's task panicked");
            (Ending::Unknown, None)
        });
        self.tape.settling();
        reach(Step::SettlementOffered);
        let concluded = self.conclude(&ending, &attempts).await;
        reach(Step::SettlementCommitted);
        self.engine.metrics.count_concluded(&concluded);
        let Concluded { snapshot, late, .. } = concluded;
        if late {
            tracing::error!(operation.id = %id, "a result came too late to be billed");
            self.engine.metrics.late_result();
        }
        if let Some(operation) = &snapshot.operation
            && let Phase::Recorded(_) = operation.phase
        {
            tracing::error!(
                operation.id = %operation.id,
                wallet.id = %operation.wallet,
                "the store refuses to settle: the result is kept, run `holdfast ledger verify`"
            );
        }
        let body = body.filter(|_body| !late);
        let rates = self.rates(snapshot.operation.as_ref().unwrap_or(self.operation));
        Outcome::Row { snapshot, body, ran: true, rates }
    }

    /// What the limits stand at when the row says this.
    fn rates(&self, row: &Operation) -> Rates {
        Rates::after(&self.bid.claim.limits, self.tally, row, self.engine.node.now())
    }

    /// Offers the ending until the store takes it; one that it does not take is told to the operator.
    async fn conclude(&self, ending: &Ending, attempts: &[Attempt]) -> Concluded {
        let conduct = self.engine.conduct();
        let mut concluding = pin!(conduct.conclude(self.operation, ending, attempts));
        if let Ok(concluded) = timeout(Options::COMMIT_WAIT, concluding.as_mut()).await {
            return concluded;
        }
        tracing::error!(
            operation.id = %self.operation.id,
            wallet.id = %self.operation.wallet,
            "the store does not take an ending: offering it again"
        );
        concluding.await
    }

    /// Tries one route after the other: the next one only after proof that the last did not run, or
    /// where the operator has chosen to pay for more than one run.
    async fn answer(&self, mut way: Box<Way>, attempts: &mut Vec<Attempt>) -> Verdict {
        // Before anything is sent: without it a provider may refuse for good what it would have taken.
        let earlier = match self.engine.earlier(self.ask, self.bid).await {
            Ok(earlier) => earlier,
            Err(error) => {
                let error: &dyn std::error::Error = &error;
                tracing::warn!(operation.id = %self.operation.id, error, "no earlier turn was read");
                return Verdict::NotRun;
            }
        };
        let mut may_have_run = false;
        while self.may_send()
            && let Some(pass) = way.next(&self.bid.request)
        {
            let pulse = Pulse::new(&pass);
            let mut answer = Assembly::on(self.tape, self.operation, &self.bid.request, &pulse);
            let origin = pass.lane.origin();
            let states = earlier.of(origin);
            let started = Instant::now();
            reach(Step::Sending);
            let called = self.call(states, &mut answer, &pulse).await;
            reach(Step::Answered);
            attempts.push(self.attempt(&pass.lane, &called, answer.is_cut, started.elapsed()));
            pass.tell(self.told(&called, answer.retry_after));
            match called {
                Ok(reported) => {
                    let (answer, chunks) = answer.into_parts();
                    let kept = origin.and_then(|origin| Kept::of(&answer, origin)).map(Box::new);
                    let ran = Ran { reported, cost: pass.lane.route.cost.clone(), kept };
                    return Verdict::Answered(answer, chunks, ran);
                }
                Err(ProviderFailure::Refused(refusal)) => return Verdict::Refused(refusal),
                Err(ProviderFailure::Unknown(_)) if answer.is_told() => return Verdict::Unknown,
                Err(ProviderFailure::Unknown(_)) => match self.bid.model.guarantee {
                    Guarantee::OneRun => return Verdict::Unknown,
                    Guarantee::OneCharge => may_have_run = true,
                },
                // What we cut ourselves says nothing of the route.
                Err(ProviderFailure::NotRun(_)) if self.is_cut() => {}
                Err(ProviderFailure::NotRun(why)) => {
                    self.engine.turned_away.tell(&pass.lane.route, why, self.operation.id);
                }
            }
        }
        // What was passed over comes first: the last one is the last that was tried.
        attempts.splice(..0, way.untried());
        if may_have_run { Verdict::Unknown } else { Verdict::NotRun }
    }

    /// Whether a provider may be called now.
    fn may_send(&self) -> bool {
        Instant::now() < self.until && !self.is_cut() && self.engine.node.may_send()
    }

    /// Whether the run is ended here.
    fn is_cut(&self) -> bool {
        self.tape.stop().is_some()
    }

    /// What a call tells of its route.
    fn told(
        &self,
        called: &Result<Option<Meters>, ProviderFailure>,
        retry_after: Option<Duration>,
    ) -> Told {
        match (called, retry_after) {
            (Ok(_) | Err(ProviderFailure::Refused(_)), _) => Told::Answered,
            (Err(ProviderFailure::Unknown(Unknown::Cut)), _) => Told::Nothing,
            (Err(ProviderFailure::NotRun(_)), _) if self.is_cut() => Told::Nothing,
            (Err(ProviderFailure::NotRun(_) | ProviderFailure::Unknown(_)), Some(time)) => {
                Told::Asked(time)
            }
            (Err(ProviderFailure::NotRun(NotRun::Account)), None) => Told::Account,
            (Err(ProviderFailure::NotRun(_) | ProviderFailure::Unknown(_)), None) => Told::Failed,
        }
    }

    /// Counts a call on a route; what is written down of it.
    fn attempt(
        &self,
        lane: &Lane,
        called: &Result<Option<Meters>, ProviderFailure>,
        is_cut: bool,
        latency: Duration,
    ) -> Attempt {
        let class = match called {
            Ok(_) if is_cut => "cut",
            Ok(_) => "finished",
            Err(failure) => failure.label(),
        };
        self.engine.metrics.upstream(&lane.route.provider, class, latency);
        Attempt {
            route: Arc::clone(&lane.name),
            class: class.into(),
            latency,
            may_be_billed: !matches!(called, Err(ProviderFailure::NotRun(_))),
        }
    }

    /// One call on one route, cut by a timeout, at the bound of what is kept of a stream, by a cancel, or
    /// at the drain deadline.
    async fn call(
        &self,
        states: ProviderStates,
        answer: &mut Assembly<'_>,
        pulse: &Pulse<'_>,
    ) -> Result<Option<Meters>, ProviderFailure> {
        let lane = &pulse.pass().lane;
        let Some(provider) = &lane.provider else {
            return Err(ProviderFailure::NotRun(NotRun::Account));
        };
        let arrival = self.tape.track().map_or(Arrival::Whole, |_heard| Arrival::Streamed);
        let call = Call {
            request: Arc::clone(&self.bid.request),
            model: Arc::clone(&lane.route.model),
            max_output_tokens: self.bid.bound.output_tokens,
            connect: self.bid.model.timeouts.connect,
            arrival,
            states,
        };
        let n = self.bid.request.n;
        let (why, keeps) = tokio::select! {
            // An answer that is there when the time ends is an answer.
            biased;
            called = provider.run(&call, answer) => return outcome(called, answer, n),
            () = tokio::time::sleep_until(self.until) => (Unknown::Timeout, true),
            why = self.bounded(pulse, arrival) => (why, true),
            // The operator's own doing: nobody pays for half an answer because a process ends.
            stop = self.tape.stopped() => (Unknown::Cut, stop == Stop::Caller),
        };
        if !answer.is_sent {
            return Err(ProviderFailure::NotRun(NotRun::Connect));
        }
        // Nothing is missing of an answer that is whole and reported, but the word that it ends.
        let reported = answer.meters.filter(|_| answer.answer.is_whole(n));
        if reported.is_none() && (!keeps || answer.answer.is_empty()) {
            return Err(ProviderFailure::Unknown(why));
        }
        // What arrived is what the caller gets and pays for: as reported, else by an own count.
        answer.cut(n);
        Ok(reported)
    }

    /// Completes when a call whose answer comes in pieces was silent for too long, or has said too much.
    async fn bounded(&self, pulse: &Pulse<'_>, arrival: Arrival) -> Unknown {
        if arrival == Arrival::Whole {
            return std::future::pending().await;
        }
        let Timeouts { first_token, between_tokens, .. } = self.bid.model.timeouts;
        tokio::select! {
            () = pulse.silent(first_token, between_tokens) => Unknown::Timeout,
            () = pulse.full() => Unknown::Cut,
        }
    }

    /// What is told to the store, and the body that the caller gets if the store takes it.
    fn ending(&self, verdict: Verdict) -> (Ending, Option<Bytes>) {
        match verdict {
            Verdict::Answered(mut answer, chunks, ran) => {
                answer.keep_to(&self.bid.request);
                let metered = metered(&ran, self.bid, &answer);
                let operation = self.operation;
                let usage = UsageRecord::of(metered, &operation.price, operation.hold);
                let view = CompletionView {
                    id: operation.id,
                    created: operation.admitted_at,
                    model: &operation.model,
                    answer: &answer,
                    usage: &usage,
                };
                if let (Some(track), Some(mut chunks)) = (self.tape.track(), chunks) {
                    let (finish, usage) = (chunks.finish(&answer), chunks.usage(&view));
                    track.close_with(Closing { finish, usage });
                }
                let body = render(&view);
                self.sealed(body, ran.kept.as_deref(), |result| Ending::Finished {
                    metered,
                    result,
                })
            }
            Verdict::Refused(refusal) => {
                let body = holdfast_wire::error::refused(refusal, self.operation.id).render();
                self.sealed(body, None, |result| Ending::Refused { refusal, result })
            }
            Verdict::NotRun => (Ending::NotRun, None),
            Verdict::Unknown => (Ending::Unknown, None),
        }
    }

    /// An ending with sealed content; without a working cipher there is nothing to replay, and the
    /// caller must not pay for it.
    fn sealed(
        &self,
        body: Vec<u8>,
        kept: Option<&Kept>,
        ending: impl FnOnce(SealedResult) -> Ending,
    ) -> (Ending, Option<Bytes>) {
        let bearer = &self.ask.caller.bearer;
        let key = bearer.secret.result_key(self.operation.id);
        match seal::seal(&key, bearer.id, self.operation, (&body, kept)) {
            Ok(result) => (ending(result), Some(body.into())),
            Err(error) => {
                let error: &dyn std::error::Error = &error;
                tracing::error!(operation.id = %self.operation.id, error, "a result was not sealed");
                (Ending::Unknown, None)
            }
        }
    }
}

/// What a call has come to that ended by itself.
fn outcome(
    called: Result<Option<Meters>, ProviderFailure>,
    answer: &mut Assembly<'_>,
    n: u32,
) -> Result<Option<Meters>, ProviderFailure> {
    if answer.is_full() && !answer.answer.is_empty() {
        // A report would be of more than was kept.
        answer.cut(n);
        return Ok(None);
    }
    match called {
        Ok(meters) if answer.answer.is_whole(n) => Ok(meters),
        Ok(_broken) => Err(ProviderFailure::Unknown(Unknown::Unreadable)),
        // What has opened a choice has run, be it without a word.
        Err(ProviderFailure::NotRun(_)) if answer.answer.choices().next().is_some() => {
            Err(ProviderFailure::Unknown(Unknown::Broken))
        }
        Err(failure) => Err(failure),
    }
}

/// The reported meters, or an own count of the text, and what they cost the operator. Pictures are what
/// the request says they are.
fn metered(ran: &Ran, bid: &Bid, answer: &Answer) -> Metered {
    let (meters, source) = match ran.reported {
        Some(meters) => (meters, MetersSource::Reported),
        None => (estimate(bid, answer), MetersSource::Estimated),
    };
    // Counts of a body that was held in memory are never absurd.
    let meters = meters.with(Kind::Image, bid.bound.images).unwrap_or(meters);
    let paid_in = bid.claim.price.currency;
    let provider_cost = ran.cost.as_ref().and_then(|cost| cost.of(&meters, paid_in));
    Metered { meters, source, provider_cost }
}

fn estimate(bid: &Bid, answer: &Answer) -> Meters {
    let prompt = bid.request.facts().prompt_bytes.div_ceil(BYTES_PER_TOKEN);
    let input = prompt.min(bid.bound.prompt_tokens);
    let output = answer.text_bytes().div_ceil(BYTES_PER_TOKEN).min(bid.bound.all_output_tokens());
    Meters::estimated(input, output)
}

/// What a row says that this run has not written.
fn stands(snapshot: Snapshot) -> Outcome {
    let (snapshot, rates) = (Arc::new(snapshot), Rates::default());
    Outcome::Row { snapshot, body: None, ran: false, rates }
}

/// Why no key was bound, for the caller; what is behind it, for the log.
fn unbound(error: &ClaimError, bid: &Bid) -> Failure {
    let failure = match error {
        ClaimError::Commit(CommitError::InsufficientFunds) => {
            return Failure::InsufficientFunds { hold: bid.claim.hold };
        }
        ClaimError::Commit(CommitError::LimitReached(reached)) => {
            return Failure::LimitReached(*reached);
        }
        ClaimError::Commit(CommitError::Overloaded) => return Failure::Overloaded,
        ClaimError::Commit(CommitError::Collision) | ClaimError::Misjudged(_) => {
            Failure::Internal(None)
        }
        ClaimError::Commit(
            CommitError::Conflict | CommitError::Unavailable(_) | CommitError::Uncertain(_),
        )
        | ClaimError::Load(_)
        | ClaimError::LeaseLost
        | ClaimError::Contended => Failure::Storage(None),
    };
    let error: &dyn std::error::Error = error;
    tracing::warn!(error, "a claim was not committed");
    failure
}
