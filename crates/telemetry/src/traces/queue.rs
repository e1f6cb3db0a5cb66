//! Queue of finished spans, and what becomes of them.
//!
//! Bounded, and never waited for: a request must not notice its collector. What finds no room is lost, and
//! counted.

use metrics::{Counter, counter};
use tokio::sync::mpsc;

use super::otlp::OtlpSpan;

const SPANS: &str = "holdfast_spans_total";
/// Finished spans that wait to be exported: some 2 MB.
const QUEUE_MAX: usize = 2_048;

/// Fate of a finished span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanResult {
    /// Taken by the collector.
    Exported,
    /// Lost: the queue was full.
    QueueFull,
    /// Lost: the collector was not reached in time, or refused it.
    Failed,
}

impl SpanResult {
    /// Every one.
    pub const ALL: [Self; 3] = [Self::Exported, Self::QueueFull, Self::Failed];

    const fn label(self) -> &'static str {
        match self {
            Self::Exported => "exported",
            Self::QueueFull => "queue_full",
            Self::Failed => "failed",
        }
    }

    /// Counts spans.
    pub fn count(self, spans: usize) {
        self.counter().increment(u64::try_from(spans).unwrap_or(u64::MAX));
    }

    fn counter(self) -> Counter {
        counter!(SPANS, "result" => self.label())
    }
}

/// Shows the fates of spans with none in them, once a recorder is installed.
pub fn register_results() {
    SpanResult::ALL.into_iter().for_each(|result| result.count(0));
}

/// Way into the queue.
#[derive(Debug, Clone)]
pub(super) struct SpanSender {
    queue: mpsc::Sender<OtlpSpan>,
    lost: Counter,
}

impl SpanSender {
    pub(super) fn new() -> (Self, SpanQueue) {
        let (queue, receiver) = mpsc::channel(QUEUE_MAX);
        let lost = SpanResult::QueueFull.counter();
        (Self { queue, lost }, SpanQueue(receiver))
    }

    pub(super) fn send(&self, span: OtlpSpan) {
        // Without a reader the process is at its end: that loses a span as a full queue does.
        if self.queue.try_send(span).is_err() {
            self.lost.increment(1);
        }
    }
}

/// Finished spans on their way to the exporter.
#[derive(Debug)]
pub struct SpanQueue(mpsc::Receiver<OtlpSpan>);

impl SpanQueue {
    /// Adds at most `limit` spans to a batch, once one is there; none when the queue is closed and empty. Cancel
    /// safe.
    pub async fn receive(&mut self, batch: &mut Vec<OtlpSpan>, limit: usize) -> usize {
        self.0.recv_many(batch, limit).await
    }

    /// Takes no more spans; those that wait can still be received.
    pub fn close(&mut self) {
        self.0.close();
    }
}
