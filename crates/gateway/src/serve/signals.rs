//! The signals that ask a process to end, or to read its configuration again. The first asks for an
//! orderly end.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    /// The terminal is gone, until somebody gives it another meaning.
    hangup: Option<Signal>,
}

impl Signals {
    /// Takes the signals over from the system: from now on they end nothing by themselves.
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: Some(signal(SignalKind::hangup())?),
        })
    }

    /// SIGHUP asks for something else from now on.
    pub(super) fn take_hangup(&mut self) -> Option<Signal> {
        self.hangup.take()
    }

    /// The next that asks for the end. Cancel safe.
    pub(crate) async fn next(&mut self) {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
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
