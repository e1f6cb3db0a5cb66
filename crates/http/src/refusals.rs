//! Limiter of the log lines of requests whose API key was refused: 20 lines in ten seconds, then
//! one warning with the number of the rest.
//!
//! Anybody can make such requests, as fast as the process answers: a line for each would fill the
//! disk. The metrics count all of them.
//!
//! The window begins with its first refusal. It is closed by the next refusal after its end or by
//! the tick of `serve`, whichever is first: without the tick the warning would wait for the next
//! attack.

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
        // The log may block on its writer: other refusals must not wait for it at this lock.
        drop(window);
        let requests = old.requests.saturating_sub(LINES);
        if requests > 0 {
            tracing::warn!(requests, "more requests had their API keys refused than are listed");
        }
    }
}
