//! Ends a test that hangs, and the processes that it started with it.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Longest time of a test.
const TEST_MAX: Duration = Duration::from_secs(90);

/// Processes that were started here and not yet waited for.
static STARTED: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

/// Watches one test until it is dropped.
#[derive(Debug)]
pub struct Watchdog {
    _calmed_by_drop: Sender<()>,
}

impl Watchdog {
    /// Begins to watch the test of this thread.
    #[must_use]
    pub fn watch() -> Self {
        Self::watch_for(TEST_MAX)
    }

    /// The same for a test that may take longer than others.
    #[must_use]
    pub fn watch_for(most: Duration) -> Self {
        let name = std::thread::current().name().unwrap_or("a test").to_owned();
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            if receiver.recv_timeout(most) == Err(RecvTimeoutError::Timeout) {
                bite(&name, most);
            }
        });
        Self { _calmed_by_drop: sender }
    }
}

/// The test thread cannot be ended from outside, so its process is.
#[expect(clippy::print_stderr, reason = "the only place left to say why the tests end here")]
fn bite(name: &str, most: Duration) {
    eprintln!("{name} takes longer than {} s: it hangs", most.as_secs());
    let started = STARTED.lock().unwrap_or_else(PoisonError::into_inner).clone();
    for process in started {
        signal(process, "KILL");
    }
    std::process::abort();
}

/// Remembers a process that was started here.
pub(crate) fn started(process: u32) {
    STARTED.lock().unwrap_or_else(PoisonError::into_inner).insert(process);
}

/// Forgets a process that has been waited for: its number may be another program's from now on.
pub(crate) fn ended(process: u32) {
    STARTED.lock().unwrap_or_else(PoisonError::into_inner).remove(&process);
}

/// Sends a signal to a process that was started here and has not been waited for.
pub(crate) fn signal(process: u32, name: &str) {
    let mut kill = Command::new("kill");
    kill.args(["-s", name, &process.to_string()]).stderr(Stdio::null());
    kill.status().expect("kill is a command");
}

/// True if every thread of a process is stopped: the signal comes to one of them first.
pub(crate) fn stands(process: u32) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).expect("it runs");
    threads.flatten().all(|thread| {
        // A thread that has ended meanwhile does not run either.
        let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_none_or(|(_, state)| state.starts_with('T'))
    })
}
