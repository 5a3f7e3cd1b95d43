//! Signals: what asks the daemon to end, or to read its configuration anew.

use std::io;

use tokio::signal::unix::{Signal as SignalStream, SignalKind, signal};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signal {
    /// End: SIGTERM or SIGINT.
    Stop,
    /// Read the configuration anew: SIGHUP.
    Reload,
}

/// Those that are heard.
pub(super) struct Signals {
    terminate: SignalStream,
    interrupt: SignalStream,
    hangup: SignalStream,
}

impl Signals {
    /// Begins to hear them.
    ///
    /// # Errors
    ///
    /// Returns what the system says.
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for the next one.
    pub(super) async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.terminate.recv() => Signal::Stop,
            _ = self.interrupt.recv() => Signal::Stop,
            _ = self.hangup.recv() => Signal::Reload,
        }
    }
}
