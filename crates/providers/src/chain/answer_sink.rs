//! Sink of one call over all attempts at its answer. Each byte of the answer is counted once, however often the
//! server sends it.
//!
//! The bounds on the read part of an answer are the engine's, and are of one answer. A long one that breaks off
//! near its end comes again from its beginning, which takes no more memory. So an attempt counts the bytes
//! beyond the longest attempt before it. The uncounted bytes of an attempt are as many as were counted before,
//! and so have the same bounds.

use std::time::Duration;

use holdfast_domain::answer::Delta;
use holdfast_domain::ports::{FailureNote, Sink};
use holdfast_domain::usage::UsageReport;
use holdfast_domain::{Currency, Micros};

/// Sink that passes everything on, but the bytes that come again.
pub(super) struct AnswerSink<'a> {
    sink: &'a mut dyn Sink,
    bytes: ByteCount,
}

impl<'a> AnswerSink<'a> {
    pub(super) fn new(sink: &'a mut dyn Sink) -> Self {
        Self { sink, bytes: ByteCount::default() }
    }

    /// The next byte is the first of the answer again.
    pub(super) fn restart(&mut self) {
        self.bytes.restart();
    }
}

impl Sink for AnswerSink<'_> {
    fn on_send(&mut self) {
        self.sink.on_send();
    }

    fn on_delta(&mut self, delta: Delta) {
        self.sink.on_delta(delta);
    }

    fn on_usage(&mut self, report: UsageReport) {
        self.sink.on_usage(report);
    }

    fn on_bytes(&mut self, bytes: usize) {
        let more = self.bytes.add(bytes);
        if more > 0 {
            self.sink.on_bytes(more);
        }
    }

    fn on_retry_after(&mut self, time: Duration) {
        self.sink.on_retry_after(time);
    }

    fn on_rejected_field(&mut self, field: &'static str) {
        self.sink.on_rejected_field(field);
    }

    fn on_failure_note(&mut self, note: FailureNote) {
        self.sink.on_failure_note(note);
    }

    fn on_charge(&mut self, currency: Currency, charge: Micros) {
        self.sink.on_charge(currency, charge);
    }

    fn may_send_again(&self) -> bool {
        self.sink.may_send_again()
    }
}

/// Bytes of the answer over all attempts: as many as the longest one has received.
#[derive(Debug, Default)]
struct ByteCount {
    counted: usize,
    /// Bytes of the present attempt.
    received: usize,
}

impl ByteCount {
    fn restart(&mut self) {
        self.received = 0;
    }

    /// Adds bytes of the present attempt, and returns how many of them have not been counted before.
    fn add(&mut self, bytes: usize) -> usize {
        self.received = self.received.saturating_add(bytes);
        let more = self.received.saturating_sub(self.counted);
        self.counted = self.counted.max(self.received);
        more
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Sink that keeps the bytes it is told of.
    #[derive(Default)]
    struct Bytes(Vec<usize>);

    impl Sink for Bytes {
        fn on_send(&mut self) {}

        fn on_delta(&mut self, _delta: Delta) {}

        fn on_bytes(&mut self, bytes: usize) {
            self.0.push(bytes);
        }
    }

    #[test]
    fn bytes_that_come_again_are_told_once() {
        let mut told = Bytes::default();
        let mut sink = AnswerSink::new(&mut told);
        for pieces in [&[10, 20][..], &[25], &[5, 30, 7], &[42]] {
            for piece in pieces {
                sink.on_bytes(*piece);
            }
            sink.restart();
        }
        assert_eq!(told.0, [10, 20, 5, 7]);
    }

    proptest! {
        /// However an answer is cut and whatever its pieces are, the count is that of the longest ask,
        /// and at no moment less than the present one has sent.
        #[test]
        fn the_count_is_that_of_the_longest_ask(
            asks in prop::collection::vec(prop::collection::vec(0_usize..5_000, 0..8), 1..8),
        ) {
            let (mut count, mut told) = (ByteCount::default(), 0);
            for pieces in &asks {
                let mut received = 0;
                for piece in pieces {
                    let more = count.add(*piece);
                    (received, told) = (received + piece, told + more);
                    prop_assert!(more <= *piece && told >= received);
                }
                count.restart();
            }
            let longest = asks.iter().map(|pieces| pieces.iter().sum::<usize>()).max();
            prop_assert_eq!(Some(told), longest);
        }
    }
}
