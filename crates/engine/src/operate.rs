//! The task of one operation: claims it, has a route answer it, and brings its ending to the store.
//! It runs to its end whoever still listens.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt;
use holdfast_domain::answer::{Answer, Delta};
use holdfast_domain::conduct::{ClaimError, Claimed, Concluded, Ending, Order};
use holdfast_domain::operation::{Attempt, Operation, Phase, ProviderRefusal};
use holdfast_domain::ports::{
    Call, CommitError, Failure as ProviderFailure, NotRun, Sink, Unknown,
};
use holdfast_domain::usage::{Kind, Metered, Meters, MetersSource, UsageRecord};
use holdfast_wire::chat::completion::{CompletionView, render};
use metrics::{counter, histogram};
use tokio::time::Instant;

use crate::Engine;
use crate::admission::Bid;
use crate::catalogue::Route;
use crate::reply::Failure;
use crate::seal;
use crate::submit::Submission;
use crate::tape::{Outcome, Tape};

/// Bytes of text that an estimate counts as one token.
const BYTES_PER_TOKEN: u64 = 4;

impl Engine {
    /// Runs one operation from its claim to its end.
    pub(crate) async fn operate(
        self: Arc<Self>,
        tape: Arc<Tape>,
        submission: Submission,
        bid: Bid,
    ) {
        let place = self.running.place(Arc::clone(&tape));
        let until = Instant::now() + bid.model.timeouts.total;
        let rebind = self.rebind(&submission, &bid);
        let order = Order { claim: &bid.claim, now: self.node.now(), rebind: &rebind };
        let outcome = match self.conduct().claim(&order).await {
            Ok(Claimed::Mine(operation)) => {
                tape.running();
                self.run(&tape, &submission, &bid, *operation, until).await
            }
            Ok(Claimed::Ended(snapshot) | Claimed::Recorded(snapshot)) => {
                Outcome::Row { snapshot: Arc::new(*snapshot), body: None, ran: false }
            }
            Ok(Claimed::InProgress(_)) => Outcome::Elsewhere,
            Ok(Claimed::OtherRequest) => Outcome::OtherRequest,
            Err(error) => Outcome::Unbound(unbound(&error, &bid)),
        };
        place.leave(outcome);
    }

    /// Runs a claimed operation and concludes it.
    async fn run(
        &self,
        tape: &Tape,
        submission: &Submission,
        bid: &Bid,
        operation: Operation,
        until: Instant,
    ) -> Outcome {
        let mut attempts = Vec::new();
        let answering = self.answer(tape, bid, &operation, until, &mut attempts);
        let run = match AssertUnwindSafe(answering).catch_unwind().await {
            Ok(run) => run,
            Err(_panic) => {
                tracing::error!(operation.id = %operation.id, "an operation's task panicked");
                Run::Unknown
            }
        };
        tape.settling();
        let (ending, body) = self.ending(submission, bid, &operation, run);
        let Concluded { snapshot, late } =
            self.conduct().conclude(&operation, &ending, &attempts).await;
        if late {
            tracing::error!(operation.id = %operation.id, "a result came too late to be billed");
            counter!("holdfast_late_results_total").increment(1);
        }
        count(snapshot.operation.as_ref());
        let body = body.filter(|_body| !late);
        Outcome::Row { snapshot: Arc::new(snapshot), body, ran: true }
    }

    /// Tries the routes in their order: the next one only after proof that the last did not run.
    async fn answer(
        &self,
        tape: &Tape,
        bid: &Bid,
        operation: &Operation,
        until: Instant,
        attempts: &mut Vec<Attempt>,
    ) -> Run {
        for route in &bid.model.routes {
            if !self.node.may_send() || self.cut.is_cancelled() {
                return Run::NotRun;
            }
            let started = Instant::now();
            let mut answer = Assembly::default();
            tape.sending();
            let verdict = self.call(bid, operation, route, until, &mut answer).await;
            let latency = started.elapsed();
            let class = verdict.as_ref().map_or_else(ProviderFailure::label, |_meters| "finished");
            let may_be_billed = !matches!(verdict, Err(ProviderFailure::NotRun(_)));
            let name = format!("{}/{}", route.provider, route.model);
            histogram!("holdfast_upstream_seconds", "provider" => route.provider.clone(), "class" => class)
                .record(latency);
            attempts.push(Attempt { route: name, class: class.to_owned(), latency, may_be_billed });
            match verdict {
                Ok(meters) => return Run::Answered(answer.0, meters),
                Err(ProviderFailure::Refused(refusal)) => return Run::Refused(refusal),
                Err(ProviderFailure::Unknown(_)) => return Run::Unknown,
                Err(ProviderFailure::NotRun(why)) => {
                    if why == NotRun::Account {
                        let provider = &route.provider;
                        tracing::error!(%provider, "a provider turned its account or route away");
                    }
                }
            }
        }
        Run::NotRun
    }

    /// One call on one route, cut at the total timeout or at the drain deadline.
    async fn call(
        &self,
        bid: &Bid,
        operation: &Operation,
        route: &Route,
        until: Instant,
        answer: &mut Assembly,
    ) -> Result<Option<Meters>, ProviderFailure> {
        let Some(provider) = self.providers.get(&route.provider) else {
            tracing::error!(operation.id = %operation.id, provider = route.provider, "no such provider");
            return Err(ProviderFailure::NotRun(NotRun::Account));
        };
        let call = Call {
            request: Arc::clone(&bid.request),
            model: Arc::clone(&route.model),
            max_output_tokens: bid.bound.output_tokens,
            connect: bid.model.timeouts.connect,
        };
        let meters = tokio::select! {
            verdict = provider.run(&call, answer) => verdict?,
            () = tokio::time::sleep_until(until) => {
                return Err(ProviderFailure::Unknown(Unknown::Timeout));
            }
            () = self.cut.cancelled() => {
                return Err(ProviderFailure::Unknown(Unknown::Timeout));
            }
        };
        if !answer.0.is_whole(bid.request.n) {
            return Err(ProviderFailure::Unknown(Unknown::Unreadable));
        }
        Ok(meters)
    }

    /// What is told to the store, and the body that its caller gets if the store takes it.
    fn ending(
        &self,
        submission: &Submission,
        bid: &Bid,
        operation: &Operation,
        run: Run,
    ) -> (Ending, Option<Bytes>) {
        let bearer = &submission.caller.bearer;
        let sealed = |body: &[u8]| {
            let key = bearer.secret.result_key(operation.id);
            seal::seal(&key, bearer.id, operation, body)
                .inspect_err(|error| {
                    let error: &dyn std::error::Error = error;
                    tracing::error!(operation.id = %operation.id, error, "a result was not sealed");
                })
                .ok()
        };
        match run {
            Run::Answered(answer, meters) => {
                let metered = metered(meters, bid, &answer);
                let usage = UsageRecord::of(metered, &operation.price, operation.hold);
                let body = render(&CompletionView {
                    id: operation.id,
                    created: operation.admitted_at,
                    model: &operation.model,
                    answer: &answer,
                    usage: &usage,
                });
                match sealed(&body) {
                    Some(result) => (Ending::Finished { metered, result }, Some(body.into())),
                    None => (Ending::Unknown, None),
                }
            }
            Run::Refused(refusal) => {
                let (_code, body) = holdfast_wire::error::refused(refusal, operation.id);
                match sealed(&body) {
                    Some(result) => (Ending::Refused { refusal, result }, Some(body.into())),
                    None => (Ending::Unknown, None),
                }
            }
            Run::NotRun => (Ending::NotRun, None),
            Run::Unknown => (Ending::Unknown, None),
        }
    }
}

/// What came of the routes.
enum Run {
    Answered(Answer, Option<Meters>),
    Refused(ProviderRefusal),
    NotRun,
    Unknown,
}

/// Puts an answer together.
#[derive(Debug, Default)]
struct Assembly(Answer);

impl Sink for Assembly {
    fn delta(&mut self, delta: Delta) {
        self.0.append(delta);
    }
}

/// The reported meters, or an own count of the text.
fn metered(reported: Option<Meters>, bid: &Bid, answer: &Answer) -> Metered {
    if let Some(meters) = reported {
        return Metered { meters, source: MetersSource::Reported };
    }
    let prompt = bid.request.facts().prompt_bytes.div_ceil(BYTES_PER_TOKEN);
    let input = prompt.min(bid.bound.prompt_tokens);
    let output = answer.text_bytes().div_ceil(BYTES_PER_TOKEN).min(bid.bound.all_output_tokens());
    // Counts of a body that was held in memory are never absurd.
    let meters = Meters::text(input, output).unwrap_or_default();
    Metered { meters, source: MetersSource::Estimated }
}

/// Why no key was bound, for the caller; what is behind it, for the log.
fn unbound(error: &ClaimError, bid: &Bid) -> Failure {
    let failure = match error {
        ClaimError::Commit(CommitError::InsufficientFunds) => {
            return Failure::InsufficientFunds { hold: bid.claim.hold };
        }
        ClaimError::Commit(CommitError::LimitReached(limit)) => {
            return Failure::LimitReached(*limit);
        }
        ClaimError::Commit(CommitError::Overloaded) => return Failure::Overloaded,
        ClaimError::Commit(CommitError::Collision) => Failure::Internal(None),
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

fn count(operation: Option<&Operation>) {
    let Some(operation) = operation else { return };
    let phase = operation.phase.label();
    counter!("holdfast_operations_total", "outcome" => phase).increment(1);
    if let Some(usage) = operation.phase.usage() {
        let shortfall = u64::try_from(usage.shortfall.get()).unwrap_or(0);
        counter!("holdfast_shortfall_micros_total").increment(shortfall);
        let tokens = usage.metered.meters.prompt_tokens();
        counter!("holdfast_tokens_total", "kind" => Kind::Input.label()).increment(tokens);
        let tokens = usage.metered.meters.completion_tokens();
        counter!("holdfast_tokens_total", "kind" => Kind::Output.label()).increment(tokens);
    }
    if let Phase::Recorded(_) = operation.phase {
        tracing::error!(
            operation.id = %operation.id,
            wallet.id = %operation.wallet,
            "the store refuses to settle: the result is kept, run `holdfast ledger verify`"
        );
    }
}
