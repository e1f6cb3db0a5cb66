//! The tracer: sampling at the head of a request.
//!
//! The trace id of a request is its request id, whose last seven bytes are random as the conventions require;
//! the sampling reads those bytes, so that every sampler that reads the same bytes decides alike.

use std::sync::Arc;

use uuid::Uuid;

use super::context::{SpanContext, SpanId, TraceId};
use super::queue::{SpanQueue, SpanSender};
use super::request_trace::RequestTrace;
use super::spans::{SpanBase, SpanClock};

/// Random bits of an id that sampling looks at.
const RANDOM_BITS: u32 = 56;
const MILLION: u128 = 1_000_000;

/// Meaning of a caller's `traceparent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParentPolicy {
    /// The request has a trace of its own, with a link to the caller's; whether that was sampled does not matter.
    Link,
    /// The request belongs to the caller's trace, and is sampled if that is.
    Trust,
}

/// Share of requests that are traced, and what a caller's trace means for that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sampling {
    /// Share in millionths.
    pub ratio_millionths: u64,
    /// Meaning of a caller's trace.
    pub parents: ParentPolicy,
}

impl Sampling {
    /// Ids whose random part is below this are sampled.
    fn threshold(self) -> u64 {
        // In 128 bits: a million times 2^56 takes 76.
        let share = u128::from(self.ratio_millionths) << RANDOM_BITS;
        u64::try_from(share / MILLION).unwrap_or(u64::MAX)
    }
}

/// Begins the traces of requests.
#[derive(Debug)]
pub struct Tracer {
    threshold: u64,
    parents: ParentPolicy,
    spans: SpanSender,
}

impl Tracer {
    /// A tracer and the queue that its spans go to. Metrics must be recorded by then.
    #[must_use]
    pub fn new(sampling: Sampling) -> (Arc<Self>, SpanQueue) {
        let (spans, queue) = SpanSender::new();
        let (threshold, parents) = (sampling.threshold(), sampling.parents);
        (Arc::new(Self { threshold, parents, spans }), queue)
    }

    /// Begins the trace of the request with this id, which a caller may have sent within a trace of its own.
    #[must_use]
    pub fn begin(&self, request: Uuid, caller: Option<SpanContext>) -> Arc<RequestTrace> {
        let id = request.as_u128();
        let parent = caller.filter(|_caller| self.parents == ParentPolicy::Trust);
        let (trace, is_sampled) = match parent {
            Some(parent) => (parent.trace, parent.is_sampled),
            None => (TraceId(id.to_be_bytes()), self.is_sampled(id)),
        };
        // This half has the version of the id, so it is never zero, which no span id may be.
        let span = SpanId(u64::try_from(id >> 64).unwrap_or(u64::MAX).to_be_bytes());
        let base = SpanBase {
            own: SpanContext { trace, span, is_sampled },
            parent: parent.map(|parent| parent.span),
            caller: caller.filter(|_caller| self.parents == ParentPolicy::Link),
            followed: None,
            clock: SpanClock::start(),
        };
        Arc::new(RequestTrace::new(self.spans.clone(), request, base))
    }

    fn is_sampled(&self, id: u128) -> bool {
        let random = id & ((1 << RANDOM_BITS) - 1);
        random < u128::from(self.threshold)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampled(ratio_millionths: u64) -> usize {
        let sampling = Sampling { ratio_millionths, parents: ParentPolicy::Link };
        let (tracer, _queue) = Tracer::new(sampling);
        (0..10_000).filter(|_n| tracer.is_sampled(Uuid::new_v4().as_u128())).count()
    }

    #[test]
    fn a_share_of_requests_is_sampled() {
        assert_eq!([sampled(0), sampled(1_000_000)], [0, 10_000]);
        // Ten standard deviations about the mean.
        assert!((2_500 - 433..2_500 + 433).contains(&sampled(250_000)));
    }
}
