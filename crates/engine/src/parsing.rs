//! Parse places: large bodies are parsed and compared on threads of their own, few at once.
//!
//! A place is taken until the work has ended, not until its caller hangs up: a thread cannot be cut.

use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::results::on_thread;

/// Large bodies that are parsed at once: as many threads, and as much memory beside the bodies.
const PARSED_AT_ONCE: usize = 2;

/// Places of large bodies that are parsed at once.
#[derive(Debug)]
pub(crate) struct ParsePlaces {
    of_process: Arc<Semaphore>,
}

impl Default for ParsePlaces {
    fn default() -> Self {
        Self { of_process: Arc::new(Semaphore::new(PARSED_AT_ONCE)) }
    }
}

impl ParsePlaces {
    /// Does work on a large body on a thread of its own, once there is a place for it. `kept` is dropped with the
    /// end of the work. `None` if the work panicked, which is logged. Cancel safe: work that has begun goes on, and
    /// keeps its place.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        kept: impl Send + 'static,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        // Never closed.
        let of_process = Arc::clone(&self.of_process).acquire_owned().await.ok()?;
        on_thread(move || {
            let _kept = (kept, of_process);
            work()
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use tokio::sync::oneshot;
    use tokio::task::JoinHandle;

    use super::*;

    /// Work under way, which ends with its sender.
    struct Begun {
        waiting: JoinHandle<Option<()>>,
        end: mpsc::Sender<()>,
    }

    async fn begin(places: &Arc<ParsePlaces>, kept: impl Send + 'static) -> Begun {
        let ((end, ended), (begun, has_begun)) = (mpsc::channel(), oneshot::channel());
        let places = Arc::clone(places);
        let work = move || {
            begun.send(()).unwrap();
            // The sender is dropped.
            ended.recv().unwrap_err();
        };
        let waiting = tokio::spawn(async move { places.run(kept, work).await });
        has_begun.await.unwrap();
        Begun { waiting, end }
    }

    #[tokio::test]
    async fn a_place_is_taken_until_its_work_has_ended_although_its_caller_hung_up() {
        let places = Arc::new(ParsePlaces::default());
        let kept = Arc::new(());
        let mut ends = Vec::new();
        for _place in 0..PARSED_AT_ONCE {
            let Begun { waiting, end } = begin(&places, Arc::clone(&kept)).await;
            waiting.abort();
            assert!(waiting.await.unwrap_err().is_cancelled());
            ends.push(end);
        }
        assert_eq!(places.of_process.available_permits(), 0);
        assert_eq!(Arc::strong_count(&kept), PARSED_AT_ONCE + 1);
        drop(ends);
        assert_eq!(places.run((), || 7).await, Some(7));
    }
}
