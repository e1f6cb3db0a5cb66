//! The notifier: brings the verdicts of a batch from the writer's thread to the callers that wait.
//!
//! A thread outside of the runtime wakes a worker of it for each caller that it answers; a task inside
//! is woken once for the whole batch, and answers from there. So the writer hands over and goes on.

use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio_util::task::TaskTracker;

use crate::batch::job::{CommitResult, Job};

/// Answers on behalf of a thread.
#[derive(Debug)]
pub(super) struct VerdictNotifier(UnboundedSender<Vec<(Job, CommitResult)>>);

impl VerdictNotifier {
    /// Starts the task, on the runtime that this is called in. It ends when the notifier is dropped and
    /// all is answered.
    pub(super) fn start(tasks: &TaskTracker) -> Self {
        // Without a bound of its own: at most the callers of the queue wait, and the writer must not.
        let (sender, mut batches) = unbounded_channel();
        tasks.spawn(async move {
            while let Some(batch) = batches.recv().await {
                answer(batch);
            }
        });
        Self(sender)
    }

    /// Answers all of them soon, or at once if the batch has one caller or the runtime has ended.
    pub(super) fn send(&self, batch: Vec<(Job, CommitResult)>) {
        if batch.len() <= 1 {
            answer(batch);
        } else if let Err(unsent) = self.0.send(batch) {
            answer(unsent.0);
        }
    }
}

fn answer(batch: Vec<(Job, CommitResult)>) {
    for (job, verdict) in batch {
        job.answer(verdict);
    }
}
