//! Limiter of the log lines of requests whose API key was refused: 20 lines in ten seconds, then
//! one warning with the number of the rest.
//!
//! Any client can send such requests, as fast as the process answers: a line for each would fill the disk. The
//! metrics count all of them.
//!
//! The window begins with its first refusal. It is closed by the next refusal after its end or by
//! the tick of its listener, whichever is first: without the tick the warning would wait for the next
//! attack.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Window over which lines are counted.
const WINDOW: Duration = Duration::from_secs(10);
/// Lines of one window.
const LINES: u64 = 20;

/// Refused requests of one window.
#[derive(Debug)]
pub struct RefusalLog {
    /// Message of the warning.
    warning: &'static str,
    window: Mutex<Option<Window>>,
}

#[derive(Debug)]
struct Window {
    began: Instant,
    requests: u64,
}

impl RefusalLog {
    /// Time after which a listener reports the old window.
    pub const TICK: Duration = WINDOW;

    /// An empty log. The warning is the message of the line that counts the requests without one.
    #[must_use]
    pub const fn new(warning: &'static str) -> Self {
        Self { warning, window: Mutex::new(None) }
    }

    /// Counts one more; true if it has a line of its own.
    #[must_use]
    pub fn has_line(&self) -> bool {
        self.report_old();
        let mut window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        let window = window.get_or_insert_with(|| Window { began: Instant::now(), requests: 0 });
        window.requests = window.requests.saturating_add(1);
        window.requests <= LINES
    }

    /// Warns of the requests without a line, once their window is over.
    pub fn report_old(&self) {
        let mut window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(old) = window.take_if(|window| window.began.elapsed() >= WINDOW) else { return };
        // The log may block on its writer: other refusals must not wait for it at this lock.
        drop(window);
        let requests = old.requests.saturating_sub(LINES);
        if requests > 0 {
            tracing::warn!(requests, "{}", self.warning);
        }
    }
}
