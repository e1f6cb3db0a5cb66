//! Parse places: large bodies are parsed and compared on threads of their own, few at once.
//!
//! One API key has one place at most, and its other bodies wait for that one: they do not queue before the bodies
//! of other API keys.
//!
//! A place is taken until the work has ended, not until its caller hangs up: a thread cannot be cut.

use std::sync::Arc;

use holdfast_domain::ApiKeyId;
use tokio::sync::Semaphore;

use crate::results::{KeyPlaces, on_thread};

/// Large bodies that are parsed at once: as many threads, and as much memory besides the bodies.
const PARSED_AT_ONCE: usize = 2;

/// Places of large bodies that are parsed at once.
#[derive(Debug)]
pub(crate) struct ParsePlaces {
    of_keys: KeyPlaces,
    of_process: Arc<Semaphore>,
}

impl Default for ParsePlaces {
    fn default() -> Self {
        let of_process = Arc::new(Semaphore::new(PARSED_AT_ONCE));
        Self { of_keys: KeyPlaces::new(1), of_process }
    }
}

impl ParsePlaces {
    /// Does work on a large body on a thread of its own, once there is a place for it. `kept` is dropped with the
    /// end of the work. `None` if the work panicked, which is logged. Cancel safe: work that has begun goes on, and
    /// keeps its place.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        api_key: ApiKeyId,
        kept: impl Send + 'static,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        // Its own first: of one API key, one body waits among those of others. Neither is ever closed.
        let of_key = self.of_keys.of(api_key).acquire_owned().await.ok()?;
        let of_process = Arc::clone(&self.of_process).acquire_owned().await.ok()?;
        on_thread(move || {
            let _kept = (kept, of_key, of_process);
            work()
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use tokio::sync::oneshot;
    use tokio::task::JoinSet;

    use super::*;

    const KEYS: [ApiKeyId; PARSED_AT_ONCE] = [ApiKeyId::from_u128(1), ApiKeyId::from_u128(2)];

    /// Work under way, which ends with its sender.
    struct SlowWork {
        waiting: JoinSet<Option<()>>,
        end: mpsc::Sender<()>,
    }

    async fn begin(
        places: &Arc<ParsePlaces>,
        api_key: ApiKeyId,
        kept: impl Send + 'static,
    ) -> SlowWork {
        let ((end, ended), (begun, has_begun)) = (mpsc::channel(), oneshot::channel());
        let places = Arc::clone(places);
        let work = move || {
            begun.send(()).unwrap();
            // The sender is dropped.
            ended.recv().unwrap_err();
        };
        let mut waiting = JoinSet::new();
        waiting.spawn(async move { places.run(api_key, kept, work).await });
        has_begun.await.unwrap();
        SlowWork { waiting, end }
    }

    #[tokio::test]
    async fn a_place_is_taken_until_its_work_has_ended_although_its_caller_hung_up() {
        let places = Arc::new(ParsePlaces::default());
        let kept = Arc::new(());
        let mut ends = Vec::new();
        for api_key in KEYS {
            let SlowWork { mut waiting, end } = begin(&places, api_key, Arc::clone(&kept)).await;
            waiting.shutdown().await;
            ends.push(end);
        }
        assert_eq!(places.of_process.available_permits(), 0);
        assert_eq!(Arc::strong_count(&kept), PARSED_AT_ONCE + 1);
        drop(ends);
        assert_eq!(places.run(KEYS[0], (), || 7).await, Some(7));
    }

    #[tokio::test]
    async fn many_bodies_of_one_api_key_leave_a_place_to_others() {
        let places = Arc::new(ParsePlaces::default());
        let [busy, other] = KEYS;
        let first = begin(&places, busy, ()).await;
        let mut later = JoinSet::new();
        for _body in 0..3 {
            let places = Arc::clone(&places);
            later.spawn(async move { places.run(busy, (), || 1).await });
        }
        for _turn in 0..100 {
            tokio::task::yield_now().await;
        }
        assert!(later.try_join_next().is_none());
        assert_eq!(places.of_process.available_permits(), PARSED_AT_ONCE - 1);
        assert_eq!(places.run(other, (), || 7).await, Some(7));
        drop(first.end);
        assert_eq!(first.waiting.join_all().await, [Some(())]);
        assert_eq!(later.join_all().await, [Some(1); 3]);
    }
}
