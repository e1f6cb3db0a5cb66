//! A chat completion request on its way through the engine: as it was submitted, then as the context and the
//! body that every step reads, then with the claim that was prepared for it.
//!
//! The body is apart from the context because it is the largest part, and is dropped as soon as it was compared or
//! its run has it: thousands may wait for one run, and none of them needs the prompt for that.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use holdfast_domain::hold::UsageBound;
use holdfast_domain::operation::Claim;
use holdfast_domain::request::Request;
use holdfast_domain::{Micros, OperationId, RequestKey};
use holdfast_wire::chat::request::{BadRequest, Delivery};
use tokio::time::Instant;

use crate::authentication::{Caller, InFlight};
use crate::catalogue::Model;
use crate::serving_config::ServingConfig;

/// How long whoever wants a stream waits for its head where nothing is said: until then an error has its
/// status.
const HEAD_WAIT: Duration = Duration::from_secs(5);

/// A chat completion request of an authenticated caller.
#[derive(Clone)]
pub struct Submission {
    /// What it is served by to the end, whatever takes its place meanwhile.
    pub offer: Arc<ServingConfig>,
    /// Who asks.
    pub caller: Arc<Caller>,
    /// The caller's `Idempotency-Key`.
    pub request_key: RequestKey,
    /// The body as it came.
    pub body: Bytes,
    /// The most that may be held, where the caller says so, or why that cannot be read. A retry that
    /// does not run ignores it.
    pub max_charge: Result<Option<Micros>, Arc<BadRequest>>,
    /// How long an attached caller waits before it is told that the operation still runs.
    pub patience: Duration,
    /// Counts for the API key until the answer is made and the run that it started has ended: who hangs
    /// up does not have less in hand.
    pub in_flight: Arc<InFlight>,
}

impl fmt::Debug for Submission {
    /// Without the body: it is the prompt.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Submission({}, {} bytes)", self.request_key, self.body.len())
    }
}

/// One request while it is answered, without what it says.
#[derive(Clone)]
pub(crate) struct RequestContext {
    pub(crate) offer: Arc<ServingConfig>,
    pub(crate) caller: Arc<Caller>,
    pub(crate) request_key: RequestKey,
    pub(crate) max_charge: Result<Option<Micros>, Arc<BadRequest>>,
    pub(crate) id: OperationId,
    /// How the answer travels.
    pub(crate) delivery: Delivery,
    /// Until when an attached caller waits.
    pub(crate) patience: Instant,
    /// When whoever wants a stream gets its head, whether anything was said or not.
    pub(crate) head_by: Instant,
    _in_flight: Arc<InFlight>,
}

impl RequestContext {
    pub(crate) fn of(submission: Submission) -> (Self, Bytes) {
        let Submission {
            offer,
            caller,
            request_key,
            body,
            max_charge,
            patience,
            in_flight: in_hand,
        } = submission;
        let id = OperationId::of(caller.api_key.id, request_key);
        let now = Instant::now();
        let ask = Self {
            offer,
            caller,
            request_key,
            max_charge,
            id,
            delivery: Delivery::default(),
            patience: now + patience,
            head_by: now + HEAD_WAIT,
            _in_flight: in_hand,
        };
        (ask, body)
    }
}

/// What a request says: the largest part of it, kept only until it was compared or is to be run.
pub(crate) struct RequestBody {
    pub(crate) request: Arc<Request>,
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
    pub(crate) request: Arc<Request>,
    pub(crate) model: Arc<Model>,
    pub(crate) bound: UsageBound,
    pub(crate) claim: Claim,
}
