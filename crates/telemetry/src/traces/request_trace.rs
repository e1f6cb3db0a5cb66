//! Trace of one request: its ids from the head on, the records of its parts as they end, and its spans when
//! the last of those who hold it lets go.
//!
//! Two hold it: the request, until its answer is written or its client has gone, and the run that it
//! started, until its ending is committed. Either may be the last.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use uuid::Uuid;

use super::attribute::REQUEST_ID;
use super::context::SpanContext;
use super::otlp::Value;
use super::queue::SpanSender;
use super::record::{RunRecord, ServerRecord};
use super::spans::{SpanBase, pair};

/// Trace of a request.
#[derive(Debug)]
pub struct RequestTrace {
    spans: SpanSender,
    request: Uuid,
    base: SpanBase,
    /// True if its spans are built: it was sampled, or its run is unusual.
    is_wanted: AtomicBool,
    /// True once its run has ended: spans that were not needed by then never are.
    is_run_over: AtomicBool,
    /// Records so far. A std mutex: never held across an await.
    parts: Mutex<Parts>,
}

#[derive(Debug, Default)]
struct Parts {
    server: Option<ServerRecord>,
    run: Option<RunRecord>,
    followed: Option<SpanContext>,
}

impl RequestTrace {
    pub(super) fn new(spans: SpanSender, request: Uuid, base: SpanBase) -> Self {
        let is_wanted = AtomicBool::new(base.own.is_sampled);
        let (is_run_over, parts) = (AtomicBool::new(false), Mutex::default());
        Self { spans, request, base, is_wanted, is_run_over, parts }
    }

    /// Span of the request, for records that link to it.
    #[must_use]
    pub const fn context(&self) -> SpanContext {
        self.base.own
    }

    /// The request follows the run of another one, and is linked to it; the last run counts.
    pub fn follow(&self, run: SpanContext) {
        if self.is_wanted() {
            // Only then, so that an unsampled request takes no lock here.
            self.parts().followed = Some(run);
        }
    }

    /// The run that the request started has ended. The record is built if it is exported, which an unusual run
    /// always is.
    pub fn end_run(&self, is_unusual: bool, record: impl FnOnce() -> RunRecord) {
        if is_unusual {
            self.is_wanted.store(true, Ordering::Release);
        }
        // After `is_wanted`, since `end_request` reads the two in the other order: if it sees an
        // unusual run over, it sees that its spans are wanted.
        self.is_run_over.store(true, Ordering::Release);
        if self.is_wanted() {
            self.parts().run = Some(record());
        }
    }

    /// The request has ended. The record is built if it is exported, or if its run may still need it.
    pub fn end_request(self: Arc<Self>, record: impl FnOnce() -> ServerRecord) {
        // Before `is_wanted`, which a run that ends in between has set. A count of one is final:
        // no other holder can appear.
        let may_be_wanted =
            !self.is_run_over.load(Ordering::Acquire) && Arc::strong_count(&self) > 1;
        if may_be_wanted || self.is_wanted() {
            self.parts().server = Some(record());
        }
    }

    fn is_wanted(&self) -> bool {
        self.is_wanted.load(Ordering::Acquire)
    }

    fn parts(&self) -> MutexGuard<'_, Parts> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RequestTrace {
    fn drop(&mut self) {
        // Either holder may be the last: only here are all records there.
        if !self.is_wanted() {
            return;
        }
        let Parts { server, run, followed } = std::mem::take(&mut *self.parts());
        let base = SpanBase { followed, ..self.base };
        for (call, run) in run.iter().flat_map(|run| run.calls.iter().map(move |call| (call, run)))
        {
            self.spans.send(base.client(call, run));
        }
        if let Some(server) = server {
            let mut span = base.server(&server, run.as_ref());
            let id = Value::Text(self.request.to_string());
            span.attributes.push(pair(REQUEST_ID, id));
            self.spans.send(span);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;
    use std::time::Instant;

    use super::super::record::OperationRecord;
    use super::super::tracer::{ParentPolicy, Sampling, Tracer};
    use super::*;

    #[test]
    fn a_request_that_is_not_sampled_has_a_record_only_while_its_run_may_want_it() {
        let sampling = Sampling { ratio_millionths: 0, parents: ParentPolicy::Link };
        let (tracer, _queue) = Tracer::new(sampling);
        let is_made = |is_alone: bool, ended: Option<bool>| {
            let trace = tracer.begin(Uuid::new_v4(), None);
            let run = (!is_alone).then(|| Arc::clone(&trace));
            if let Some(is_unusual) = ended {
                trace.end_run(is_unusual, || RunRecord {
                    operation: OperationRecord::default(),
                    currency: "USD".to_owned(),
                    hold: (Instant::now(), 0),
                    settle: (Instant::now(), None),
                    calls: Vec::new(),
                });
            }
            let mut is_made = false;
            trace.end_request(|| {
                is_made = true;
                ServerRecord {
                    method: "POST",
                    route: None,
                    status: None,
                    error: None,
                    client: IpAddr::from([127, 0, 0, 1]),
                    hung_up: false,
                    replayed: false,
                    provider_route: None,
                    operation: OperationRecord::default(),
                    ended: Instant::now(),
                }
            });
            drop(run);
            is_made
        };
        assert!(!is_made(true, None), "nobody else holds it");
        assert!(is_made(false, None), "its run goes on");
        assert!(!is_made(false, Some(false)), "its run was as usual");
        assert!(is_made(false, Some(true)), "its run was unusual");
    }
}
