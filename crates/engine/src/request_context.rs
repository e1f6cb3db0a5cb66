//! A chat completion request on its way through the engine: as it was submitted, then as the context and the
//! body that every step reads, then with the claim that was prepared for it.
//!
//! The body is apart from the context because it is the largest part, and is dropped as soon as it was compared or
//! its run has it: thousands may wait for one run, and none of them needs the prompt for that.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use holdfast_domain::hold::UsageBound;
use holdfast_domain::model::ModelAlias;
use holdfast_domain::operation::Claim;
use holdfast_domain::private::Private;
use holdfast_domain::request::Request;
use holdfast_domain::{ApiKeyId, Micros, OperationId, RequestKey, WalletId};
use holdfast_failpoint::{Fault, is_broken};
use holdfast_telemetry::traces::RequestTrace;
use holdfast_wire::chat::request::{BadRequest, Delivery};
use tokio::time::Instant;

use crate::authentication::{Caller, InFlight};
use crate::catalogue::Model;
use crate::serving_config::ServingConfig;

/// Wait for the first event before the head of a stream goes out without one: until then an
/// error still has its own status.
const HEAD_WAIT: Duration = Duration::from_secs(5);

/// Right of a request whose key holds no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunMode {
    /// Run.
    RunOrReplay,
    /// No run: neither a claim nor the offer of a reservation.
    ReplayOnly,
}

/// Reservation of memory, given back when it is dropped.
pub type MemoryReservation = Arc<dyn fmt::Debug + Send + Sync>;

/// A chat completion request of an authenticated caller.
#[derive(Debug, Clone)]
pub struct Submission {
    /// Serving configuration of this request to its end, also over reloads.
    pub serving: Arc<ServingConfig>,
    /// Authenticated caller.
    pub caller: Arc<Caller>,
    /// The caller's `Idempotency-Key`.
    pub request_key: RequestKey,
    /// Right to run.
    pub mode: RunMode,
    /// The body as it came.
    pub body: Private<Bytes>,
    /// Reservation of the memory of a large body, kept until the run that it began has ended: the request that was read
    /// of it is as large.
    pub memory: Option<MemoryReservation>,
    /// The most that may be held, if the caller sets it, or the reason why its value cannot be read. A retry that
    /// does not run ignores it.
    pub max_charge: Result<Option<Micros>, Arc<BadRequest>>,
    /// Longest wait of an attached caller, after which it gets the failure that the operation still runs.
    pub retry_wait: Duration,
    /// Counts for the API key until the answer is made and the run that it started has ended: a caller that hangs
    /// up does not have less in flight.
    pub in_flight: Arc<InFlight>,
    /// Trace of the request; `None` if traces are off.
    pub trace: Option<Arc<RequestTrace>>,
}

/// Context of one request while it is answered, without its content.
#[derive(Clone)]
pub(crate) struct RequestContext {
    pub(crate) serving: Arc<ServingConfig>,
    pub(crate) caller: Arc<Caller>,
    pub(crate) request_key: RequestKey,
    pub(crate) mode: RunMode,
    pub(crate) max_charge: Result<Option<Micros>, Arc<BadRequest>>,
    pub(crate) id: OperationId,
    /// Delivery of the answer: as one body or as a stream.
    pub(crate) delivery: Delivery,
    /// Until when an attached caller waits.
    pub(crate) wait_until: Instant,
    /// Time at which the head of a stream goes out, with or without an event.
    pub(crate) head_by: Instant,
    pub(crate) trace: Option<Arc<RequestTrace>>,
    pub(crate) in_flight: Arc<InFlight>,
}

impl RequestContext {
    pub(crate) fn of(submission: Submission) -> (Self, Bytes, Option<MemoryReservation>) {
        let Submission {
            serving,
            caller,
            request_key,
            mode,
            body: Private(body),
            memory,
            max_charge,
            retry_wait,
            in_flight,
            trace,
        } = submission;
        let id = OperationId::of(key_scope(&caller), request_key);
        let now = Instant::now();
        let context = Self {
            serving,
            caller,
            request_key,
            mode,
            max_charge,
            id,
            delivery: Delivery::default(),
            wait_until: now + retry_wait,
            head_by: now + HEAD_WAIT,
            trace,
            in_flight,
        };
        (context, body, memory)
    }
}

/// API key that the request keys of a caller belong to: its own.
pub(crate) fn key_scope(caller: &Caller) -> ApiKeyId {
    if is_broken(Fault::KeySharedAcrossApiKeys) {
        return first_of_wallet(caller);
    }
    caller.api_key.id
}

/// The first API key of the caller's wallet that this process has met: the scope without its guard.
fn first_of_wallet(caller: &Caller) -> ApiKeyId {
    static FIRST: Mutex<BTreeMap<WalletId, ApiKeyId>> = Mutex::new(BTreeMap::new());
    let mut first = FIRST.lock().unwrap_or_else(PoisonError::into_inner);
    *first.entry(caller.api_key.wallet).or_insert(caller.api_key.id)
}

/// Content of a request, its largest part: kept until it was compared or handed to a run.
pub(crate) struct RequestBody {
    pub(crate) request: Arc<Request>,
    /// Alias that it names the model by.
    pub(crate) alias: Option<ModelAlias>,
    pub(crate) memory: Option<MemoryReservation>,
    pub(crate) body: Bytes,
}

impl RequestBody {
    pub(crate) fn into_body(self) -> Bytes {
        self.body
    }
}

/// A request that may be claimed.
#[derive(Debug, Clone)]
pub(crate) struct PreparedClaim {
    /// Request that its providers are sent.
    pub(crate) request: Arc<Request>,
    /// The same request as the caller wrote it, if the model ignores some of it. Its key is bound to this one.
    pub(crate) written: Option<Arc<Request>>,
    pub(crate) model: Arc<Model>,
    pub(crate) bound: UsageBound,
    pub(crate) claim: Claim,
    /// Reservation of its memory until the run has ended.
    pub(crate) _memory: Option<MemoryReservation>,
}
