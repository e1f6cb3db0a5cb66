//! Log lines of requests whose API key was refused: the first of each while, and how many more there were.
//! Anybody can make such requests, as fast as the process answers: a line for each would fill the disk.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Window over which lines are counted.
pub(crate) const WHILE: Duration = Duration::from_secs(10);
/// Lines of one while.
const LINES: u64 = 20;

/// The refused requests of a while.
#[derive(Debug, Default)]
pub(crate) struct RefusalLog(Mutex<Option<Window>>);

#[derive(Debug)]
struct Window {
    began: Instant,
    requests: u64,
}

impl RefusalLog {
    /// Counts one more, and says whether it has a line of its own.
    pub(crate) fn has_line(&self) -> bool {
        self.tell_old();
        let mut window = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let window = window.get_or_insert_with(|| Window { began: Instant::now(), requests: 0 });
        window.requests = window.requests.saturating_add(1);
        window.requests <= LINES
    }

    /// Tells of those without a line, once their while is over.
    pub(crate) fn tell_old(&self) {
        let mut window = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(old) = window.take_if(|window| window.began.elapsed() >= WHILE) else { return };
        drop(window);
        let requests = old.requests.saturating_sub(LINES);
        if requests > 0 {
            tracing::warn!(requests, "more requests had their API keys refused than are listed");
        }
    }
}
