//! The command line, run as an operator runs it.

use std::process::{Command, Output, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use serde_json::Value;

use crate::{PATIENCE, watchdog};

/// Result of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    /// Its exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

impl Ran {
    /// Runs a command to its end.
    #[must_use]
    pub fn of(command: &mut Command) -> Self {
        Self::within(command, PATIENCE)
    }

    /// The same for a command that may take longer than others.
    #[must_use]
    pub fn within(command: &mut Command, patience: Duration) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let process = child.id();
        watchdog::started(process);
        let (sender, receiver) = channel();
        std::thread::spawn(move || sender.send(child.wait_with_output()));
        let Ok(output) = receiver.recv_timeout(patience) else {
            watchdog::signal(process, "KILL");
            panic!("{command:?} does not end");
        };
        watchdog::ended(process);
        let Output { status, stdout, stderr } = output.expect("its output");
        let text = |bytes| String::from_utf8(bytes).expect("output of text");
        Self { code: status.code(), stdout: text(stdout), stderr: text(stderr) }
    }

    /// Standard output of a command that has to succeed.
    #[track_caller]
    #[must_use]
    pub fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.stdout
    }

    /// JSON of a command that has to succeed.
    #[track_caller]
    #[must_use]
    pub fn json(self) -> Value {
        let stdout = self.ok();
        serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stdout}"))
    }

    /// Standard error of a command that has to fail with this code and a reason.
    #[track_caller]
    #[must_use]
    pub fn failed(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert!(!self.stderr.trim().is_empty(), "it says why: {self:?}");
        self.stderr
    }
}
