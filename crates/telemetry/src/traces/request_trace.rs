//! Trace of one request: its ids from the head on, the records of its parts as they end, and its spans when
//! the last of those who hold it lets go.
//!
//! Two hold it: the request, until its answer is written or its client has gone, and the run that it
//! started, until its ending is committed. Either may be the last.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use uuid::Uuid;

use super::attribute::REQUEST_ID;
use super::context::SpanContext;
use super::queue::SpanSender;
use super::record::{RunRecord, ServerRecord};
use super::spans::{SpanBase, pair};

/// Trace of a request.
#[derive(Debug)]
pub struct RequestTrace {
    spans: SpanSender,
    request: Uuid,
    base: SpanBase,
    /// True where its spans are built: it was sampled, or its run is unusual.
    is_wanted: AtomicBool,
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
        Self { spans, request, base, is_wanted, parts: Mutex::default() }
    }

    /// Span of the request, for whoever links to it.
    #[must_use]
    pub const fn context(&self) -> SpanContext {
        self.base.own
    }

    /// The request follows the run of another one, and is linked to it; the last run counts.
    pub fn follow(&self, run: SpanContext) {
        if self.is_wanted() {
            self.parts().followed = Some(run);
        }
    }

    /// The run that the request started has ended. The record is made where it is exported: an unusual run is
    /// whatever the sampling says.
    pub fn end_run(&self, is_unusual: bool, record: impl FnOnce() -> RunRecord) {
        if is_unusual {
            self.is_wanted.store(true, Ordering::Release);
        }
        if self.is_wanted() {
            self.parts().run = Some(record());
        }
    }

    /// The request has ended. The record is made where it is exported, or its run may want it yet.
    pub fn end_request(self: Arc<Self>, record: impl FnOnce() -> ServerRecord) {
        // Nobody else can hold it anew: a count of one is final.
        if self.is_wanted() || Arc::strong_count(&self) > 1 {
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
            let id = Value::StringValue(self.request.to_string());
            span.attributes.push(pair(REQUEST_ID, id));
            self.spans.send(span);
        }
    }
}
