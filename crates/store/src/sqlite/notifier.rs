//! Brings the verdicts of a batch to those who wait for them. A thread outside of the runtime wakes it
//! for each one that it answers; a task inside is woken once for all of them. Not what they are told.

use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio_util::task::TaskTracker;

use crate::job::{CommitResult, Job};

/// Answers on behalf of a thread.
#[derive(Debug)]
pub(super) struct VerdictNotifier(UnboundedSender<Vec<(Job, CommitResult)>>);

impl VerdictNotifier {
    /// Begins a task of the runtime that this is called in. It ends when all is told and the teller dropped.
    pub(super) fn start(tasks: &TaskTracker) -> Self {
        let (told, mut batches) = unbounded_channel();
        tasks.spawn(async move {
            while let Some(batch) = batches.recv().await {
                answer(batch);
            }
        });
        Self(told)
    }

    /// Answers all of them soon, or at once where there is nothing to save or the runtime has ended.
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
