//! The signals that end a process, or make it read its configuration again. The first begins a graceful
//! shutdown.
//!
//! A SIGHUP that the parent had ignored, as `nohup` does, ends no process: its parent expects it to outlive the
//! terminal.

use std::io;
use std::process::{Command, Stdio};

use tokio::signal::unix::{Signal, SignalKind, signal};

pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    /// The terminal is gone, unless the signal has been given another meaning.
    hangup: Option<Signal>,
    is_hangup_ignored: bool,
}

impl Signals {
    /// Takes the signals over from the system: from now on they do not end the process by themselves.
    pub(crate) fn listen() -> io::Result<Self> {
        // Before the handler, which hides what the parent had set.
        let is_hangup_ignored = is_hangup_ignored();
        Ok(Self {
            is_hangup_ignored,
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: Some(signal(SignalKind::hangup())?),
        })
    }

    /// SIGHUP has another meaning from now on.
    pub(super) fn take_hangup(&mut self) -> Option<Signal> {
        self.hangup.take()
    }

    /// The next signal that ends the process. Cancel safe.
    pub(crate) async fn next(&mut self) {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) if !self.is_hangup_ignored => hangup.recv().await,
                Some(_) | None => std::future::pending().await,
            }
        };
        // Receiving is cancel safe: a signal that comes while another branch wins is kept.
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
            _ = hangup => {}
        }
    }
}

/// True if this process was started with SIGHUP ignored. Linux has the mask of ignored signals in a file; elsewhere a
/// child, which inherits it, tries.
fn is_hangup_ignored() -> bool {
    if let Ok(status) = std::fs::read_to_string("/proc/self/status") {
        return has_hangup(&status);
    }
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", "kill -HUP $$"]).stdin(Stdio::null()).stdout(Stdio::null());
    shell.stderr(Stdio::null()).status().is_ok_and(|ended| ended.success())
}

/// True if SIGHUP, the lowest bit, is in the mask of ignored signals.
fn has_hangup(status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ignored_hangup_is_the_lowest_bit_of_the_mask() {
        for (mask, is_ignored) in
            [("0000000000000001", true), ("0000000000001001", true), ("0000000000001000", false)]
        {
            let status = format!("Name:\tholdfast\nSigIgn:\t{mask}\nSigCgt:\t0000000000000001\n");
            assert_eq!(has_hangup(&status), is_ignored, "{mask}");
        }
        assert!(!has_hangup("Name:\tholdfast\n"));
    }
}
