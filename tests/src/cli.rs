//! The command line, run as an operator runs it.

use std::process::{Command, Output, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use serde_json::Value;

use crate::{PATIENCE, watchdog};

/// What became of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    /// Its exit code; `None` where a signal ended it.
    pub code: Option<i32>,
    /// What it printed.
    pub stdout: String,
    /// What it said about it.
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

    /// It went well: what it printed.
    #[track_caller]
    #[must_use]
    pub fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.stdout
    }

    /// It went well and printed JSON.
    #[track_caller]
    #[must_use]
    pub fn json(self) -> Value {
        let stdout = self.ok();
        serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stdout}"))
    }

    /// It failed with this code and said why: what it said.
    #[track_caller]
    #[must_use]
    pub fn failed(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert!(!self.stderr.trim().is_empty(), "it says why: {self:?}");
        self.stderr
    }
}
