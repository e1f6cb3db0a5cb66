//! Count of an answer's bytes over all asks for it.
//!
//! A replay begins anew, and what was received before it is dropped: so only bytes beyond the longest
//! ask so far are more of the answer. Without that, a long answer that is cut often enough would meet
//! the bound on what one call may receive.

use std::time::Duration;

use holdfast_domain::answer::Delta;
use holdfast_domain::ports::Sink;
use holdfast_domain::usage::Meters;
use holdfast_domain::{Currency, Micros};

/// Sink of one ask, which counts the bytes of a replay once.
pub(super) struct ReceivedOnce<'a> {
    sink: &'a mut dyn Sink,
    /// Bytes of the longest ask, of which the sink knows.
    longest: &'a mut usize,
    /// Bytes of this ask.
    received: usize,
}

impl<'a> ReceivedOnce<'a> {
    pub(super) fn new(sink: &'a mut dyn Sink, longest: &'a mut usize) -> Self {
        Self { sink, longest, received: 0 }
    }
}

impl Sink for ReceivedOnce<'_> {
    fn on_send(&mut self) {
        self.sink.on_send();
    }

    fn on_delta(&mut self, delta: Delta) {
        self.sink.on_delta(delta);
    }

    fn on_bytes(&mut self, bytes: usize) {
        self.received = self.received.saturating_add(bytes);
        let more = self.received.saturating_sub(*self.longest);
        *self.longest = self.received.max(*self.longest);
        self.sink.on_bytes(more);
    }

    fn on_meters(&mut self, meters: Meters) {
        self.sink.on_meters(meters);
    }

    fn on_retry_after(&mut self, time: Duration) {
        self.sink.on_retry_after(time);
    }

    fn on_charge(&mut self, currency: Currency, charge: Micros) {
        self.sink.on_charge(currency, charge);
    }

    fn may_send_again(&self) -> bool {
        self.sink.may_send_again()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Counter(usize);

    impl Sink for Counter {
        fn on_send(&mut self) {}

        fn on_delta(&mut self, _delta: Delta) {}

        fn on_bytes(&mut self, bytes: usize) {
            self.0 += bytes;
        }
    }

    #[test]
    fn bytes_that_come_again_are_counted_once() {
        let (mut counter, mut longest) = (Counter::default(), 0);
        for (ask, counted) in
            [(&[3, 4][..], 7), (&[7], 7), (&[2, 2], 7), (&[5, 4, 1], 10), (&[], 10), (&[11], 11)]
        {
            let mut once = ReceivedOnce::new(&mut counter, &mut longest);
            for bytes in ask {
                once.on_bytes(*bytes);
            }
            assert_eq!(counter.0, counted, "{ask:?}");
        }
    }
}
