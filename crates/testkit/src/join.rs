//! Waits for many futures at once, without a runtime: each is polled whenever one of them wakes.
//!
//! ```
//! use holdfast_domain::Journal as _;
//! use holdfast_testkit::{MemoryJournal, join_all, sample};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! // Ten claims of 60 micros race for a wallet of 100: one of them gets its hold.
//! let journal = MemoryJournal::with_funds(100);
//! let claims = (0..10).map(|n| {
//!     let claim = sample::claim().request_key(sample::request_key(n)).hold(60).build();
//!     journal.commit(sample::admission(&claim))
//! });
//! let outcomes = join_all(claims).await;
//! assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1);
//! # }
//! ```

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Runs the futures side by side on the calling task and returns their outputs, in their order.
pub async fn join_all<F: Future>(futures: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    let mut runs: Vec<JoinSlot<F>> =
        futures.into_iter().map(|future| JoinSlot::Busy(Box::pin(future))).collect();
    poll_fn(|context| {
        let mut busy = false;
        for run in &mut runs {
            // Polls all of them after every wake: few futures, and no waker of its own for each.
            busy |= !run.is_done_after(context);
        }
        if busy { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
    runs.into_iter().filter_map(JoinSlot::into_output).collect()
}

/// Lets every other future of the task run first, once.
pub(crate) async fn step_back() {
    let mut stepped = false;
    poll_fn(|context| {
        if stepped {
            return Poll::Ready(());
        }
        // Woken at once: the executor, or the join around it, polls the others before this one
        // again.
        stepped = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

enum JoinSlot<F: Future> {
    Busy(Pin<Box<F>>),
    Done(F::Output),
}

impl<F: Future> JoinSlot<F> {
    fn is_done_after(&mut self, context: &mut Context<'_>) -> bool {
        if let Self::Busy(future) = self
            && let Poll::Ready(output) = future.as_mut().poll(context)
        {
            *self = Self::Done(output);
        }
        matches!(self, Self::Done(_))
    }

    fn into_output(self) -> Option<F::Output> {
        match self {
            Self::Busy(_) => None,
            Self::Done(output) => Some(output),
        }
    }
}
