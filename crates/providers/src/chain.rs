//! Provider that is another Holdfast: a request goes to it under a key of its own, and is repeated under that
//! key if its outcome is unknown.
//!
//! ```text
//! attempt ─▶ AskOutcome ─▶ judge ─┬─▶ answered ─────────────────────────▶ T2
//!  ▲                              ├─▶ not run, at the first one alone ──▶ T3, or the next route
//!  │                              ├─▶ refused ──────────────────────────▶ T4
//!  │                              ├─▶ unknown for good ─────────────────▶ T5
//!  └── pause ◀── may send? ◀── keeps keys? ◀── again ─────┘   no ────▶ T5
//! ```
//!
//! The same bytes under the same key are one run at a server that keeps keys: a repetition then reads the
//! answer of that run, or starts the one that never began. At a server that ignores keys it would be a second
//! run. So the server has to prove that it keeps them, once a process: it answers a POST without a key with 400
//! `idempotency_key_required`. Such a POST has an empty object for a body, which no server runs. It is sent at
//! the start ([`Provider::prepare`]), and, if that brought no answer, before the first repetition.
//!
//! A stream that breaks begins anew with the next attempt: the part that its reader has is dropped from the
//! replay and compared (`resumed`), so that its reader has one answer or none. Its bytes count once
//! (`answer_sink`).
//!
//! A call that is dropped runs on there. The code that has dropped it ends it by [`Provider::end_run`] (`cut`).
//!
//! Never: an attempt under another key or with other bytes, one after the operation may not send any more, or a
//! "not run" after an attempt whose outcome is uncertain. An outcome that stays unknown goes to no other route
//! ([`Provider::repeats_calls`]). The charge of the server is only the operator's cost.
//!
//! Limits: `PAUSE_MAX` between two attempts. The time of all attempts together is the call's, whose future is
//! dropped at the model's total time; that is 60 s before the row's deadline, so no attempt lasts until another
//! process may have reaped the operation.

mod answer_sink;
mod attempt_report;
mod cut;
#[cfg(test)]
mod model;
mod resumed;
mod verdict;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use holdfast_domain::ports::{
    Call, CallFailure, NotRunProof, Provider, Sink, UnknownReason, UnsupportedParam,
};
use holdfast_domain::usage::UsageReport;
use holdfast_domain::{Currency, Micros, RequestKey};
use holdfast_wire::error::Code;
use http::{Request, StatusCode};

use self::answer_sink::AnswerSink;
use self::attempt_report::AskReport;
use self::resumed::ResumedAdapter;
use self::verdict::{Ask, AskOutcome, Verdict, judge};
use crate::adapter::Adapter;
use crate::kinds::holdfast::Holdfast;
use crate::proof;
use crate::provider::HttpProvider;
use crate::response::receive;
use holdfast_net::SendError;

/// The first pause before a request is repeated if the server requests none, and the longest.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// Time for the server's word on keys.
const KEYS_TIME_MAX: Duration = Duration::from_secs(5);

/// Provider that is another gateway.
#[derive(Debug)]
pub struct ChainProvider {
    /// Name in the configuration, for the log.
    name: Box<str>,
    http: HttpProvider,
    currency: Currency,
    /// Set for the life of the process once the server has shown that it keeps keys.
    keeps_keys: AtomicBool,
}

/// Request of one generation with its key: the same bytes under the same key at each attempt.
struct KeyedRequest {
    request: Request<Bytes>,
    key: RequestKey,
}

/// Word of a server on requests without a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyUse {
    /// Refused: it keeps keys.
    Required,
    /// Answered otherwise: it may ignore keys.
    Ignored,
    /// No answer, or one without information about the server.
    Unknown,
}

impl ChainProvider {
    /// A provider for the gateway behind this client.
    #[must_use]
    pub fn new(name: &str, http: HttpProvider, kind: Holdfast) -> Self {
        let keeps_keys = AtomicBool::new(false);
        Self { name: name.into(), http, currency: kind.currency, keeps_keys }
    }

    /// Reads the server's answer to a request without a key, which starts no run and is free of charge. Cancel
    /// safe.
    pub async fn probe_keys(&self) -> KeyUse {
        let answered = tokio::time::timeout(KEYS_TIME_MAX, self.keyless()).await;
        let found = answered.unwrap_or(KeyUse::Unknown);
        if found == KeyUse::Required {
            // Relaxed: a latch that guards no other memory.
            self.keeps_keys.store(true, Ordering::Relaxed);
        }
        found
    }

    async fn keyless(&self) -> KeyUse {
        let Some(request) = self.http.post_without_key() else { return KeyUse::Unknown };
        let sent = self.http.transport().send(request, KEYS_TIME_MAX, None, &mut || {}).await;
        let Ok(reply) = sent else { return KeyUse::Unknown };
        // Of the statuses that say nothing of keys, the first four come before the key is looked at.
        const SAY_NOTHING: [u16; 6] = [401, 403, 404, 407, 408, 429];
        let status = reply.status;
        match attempt_report::error_code(reply).await {
            Some(Code::IdempotencyKeyRequired) => KeyUse::Required,
            Some(_) | None if status.is_server_error() => KeyUse::Unknown,
            Some(_) | None if SAY_NOTHING.contains(&status.as_u16()) => KeyUse::Unknown,
            Some(_) | None => KeyUse::Ignored,
        }
    }

    /// Waits until a request may be repeated; false if it may not be.
    async fn wait_to_repeat(&self, pause: &mut RetryPause, sink: &mut dyn Sink) -> bool {
        loop {
            tokio::time::sleep(pause.next()).await;
            if !sink.may_send_again() {
                return false;
            }
            if self.keeps_keys.load(Ordering::Relaxed) {
                return true;
            }
            match self.probe_keys().await {
                // Whether it may send is asked anew: the question took its time.
                KeyUse::Required => {}
                KeyUse::Ignored => return false,
                KeyUse::Unknown => continue,
            }
        }
    }

    /// The verdict, but that a proof is no proof of a server which has not shown that it keeps keys: a proxy
    /// before it that makes keys by itself may have sent the request twice.
    async fn confirmed(&self, verdict: Verdict, outcome: AskOutcome) -> Verdict {
        let is_proof = matches!(verdict, Verdict::Ended(CallFailure::NotRun(_)));
        if !is_proof || outcome == AskOutcome::Unsent || self.keeps_keys.load(Ordering::Relaxed) {
            return verdict;
        }
        match self.probe_keys().await {
            KeyUse::Required => verdict,
            KeyUse::Ignored | KeyUse::Unknown => Verdict::AskAgain(UnknownReason::Status),
        }
    }

    /// Sends the request once, and reads the answer to its end.
    async fn send(
        &self,
        keyed: &KeyedRequest,
        call: &Call,
        resumed: &Arc<ResumedAdapter>,
        sink: &mut dyn Sink,
    ) -> (AskReport, Option<UsageReport>) {
        let sent = self
            .http
            .transport()
            .send_with_head(Box::new(keyed.request.clone()), call.connect, &mut || sink.on_send())
            .await;
        let (headers, reply) = match sent {
            Ok(answered) => answered,
            Err(error @ SendError::Unsent(_)) => {
                sink.on_failure_note(proof::note_of_send_error(error));
                return (AskReport::of(AskOutcome::Unsent), None);
            }
            Err(error @ (SendError::Sent | SendError::TooLarge)) => {
                // Else the note of an earlier ask would be this one's.
                sink.on_failure_note(proof::note_of_send_error(error));
                return (AskReport::of(AskOutcome::LOST), None);
            }
        };
        if reply.status != StatusCode::OK {
            return (AskReport::of_error(&headers, reply, keyed, sink).await, None);
        }
        let adapter: Arc<dyn Adapter> = Arc::<ResumedAdapter>::clone(resumed);
        match receive(&adapter, reply, self.http.lengths(), call, sink).await {
            Ok(usage) => (AskReport::of(AskOutcome::Completion), usage),
            Err(_failure) if resumed.is_contradicted() => {
                (AskReport::of(AskOutcome::Contradiction), None)
            }
            Err(failure) => (AskReport::of(AskOutcome::of_failure(failure)), None),
        }
    }
}

#[async_trait]
impl Provider for ChainProvider {
    fn check_supported(
        &self,
        request: &holdfast_domain::request::Request,
    ) -> Result<(), UnsupportedParam> {
        self.http.check_supported(request)
    }

    fn semantic_name(&self) -> &'static str {
        self.http.semantic_name()
    }

    fn takes_key(&self) -> bool {
        true
    }

    fn repeats_calls(&self) -> bool {
        true
    }

    async fn end_run(&self, key: RequestKey) -> Option<(Currency, Micros)> {
        let charge = self.cancel_until_ended(key).await;
        match charge {
            Some(_known) => {}
            None => tracing::warn!(
                provider.name = %self.name,
                "the charge of a cut run at a gateway behind this one is not known: its hold is exposure"
            ),
        }
        Some((self.currency, charge?))
    }

    async fn prepare(&self) {
        let provider = &self.name;
        match self.probe_keys().await {
            KeyUse::Required => {
                tracing::debug!(provider.name = %provider, "a gateway behind this one keeps keys");
            }
            KeyUse::Ignored => tracing::error!(
                provider.name = %provider,
                "a provider of the kind holdfast does not require a key: no request is repeated there"
            ),
            KeyUse::Unknown => tracing::warn!(
                provider.name = %provider,
                "a gateway behind this one did not report whether it keeps keys: it is probed \
                again when that matters"
            ),
        }
    }

    async fn run(
        &self,
        call: &Call,
        sink: &mut dyn Sink,
    ) -> Result<Option<UsageReport>, CallFailure> {
        const NOT_SENT: CallFailure = CallFailure::NotRun(NotRunProof::Account);
        // Who claims asks first, and gives a key: so none of these happens; and if it did, nothing was sent.
        self.check_supported(&call.request).map_err(|_unsupported| NOT_SENT)?;
        let (Some(key), Some(request)) = (call.key, self.http.request(call)) else {
            return Err(NOT_SENT);
        };
        let keyed = KeyedRequest { request: request.map(Bytes::from), key };
        let resumed = Arc::new(ResumedAdapter::new(call));
        let sink = &mut AnswerSink::new(sink);
        let (mut attempt, mut pause) = (Ask::First, RetryPause::default());
        loop {
            // In a box: the task of every other kind of call would have room for it.
            let answered = Box::pin(self.send(&keyed, call, &resumed, sink)).await;
            let (AskReport { outcome, retry_after }, usage) = answered;
            let verdict = self.confirmed(judge(attempt, outcome), outcome).await;
            tracing::debug!(ask = ?attempt, ?outcome, ?verdict, "an attempt at a gateway behind this one was judged");
            match verdict {
                Verdict::Answered => {
                    if let Some(charge) = resumed.charge() {
                        sink.on_charge(self.currency, charge);
                    }
                    return Ok(usage);
                }
                Verdict::Ended(failure) => {
                    if outcome.is_conflict() {
                        tracing::error!(
                            provider.name = %self.name,
                            "a gateway behind this one knows another request under a key that was \
                             derived for this one: do two gateways share its API key and a server secret?"
                        );
                    }
                    // Of the last answer alone: an earlier one asked for its own next ask.
                    if let Some(time) = retry_after {
                        sink.on_retry_after(time);
                    }
                    return Err(failure);
                }
                Verdict::AskAgain(why) => {
                    pause.hint = retry_after;
                    if !Box::pin(self.wait_to_repeat(&mut pause, sink)).await {
                        // At most the bill is missing of a stream whose choices have ended.
                        return resumed.end().ok_or(CallFailure::Unknown(why));
                    }
                    resumed.restart();
                    sink.restart();
                    attempt = Ask::Again;
                }
            }
        }
    }
}

/// Pauses between attempts: as the server requests, else doubled.
#[derive(Debug, Default)]
struct RetryPause {
    hint: Option<Duration>,
    taken: u32,
}

impl RetryPause {
    fn next(&mut self) -> Duration {
        let doubled = PAUSE_MIN.saturating_mul(1_u32.checked_shl(self.taken).unwrap_or(u32::MAX));
        self.taken = self.taken.saturating_add(1);
        self.hint.take().unwrap_or(doubled).clamp(PAUSE_MIN, PAUSE_MAX)
    }
}
