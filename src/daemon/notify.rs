//! Messages to the service manager (systemd): ready, alive, stopping, and a status line.
//!
//! Outside systemd all of this does nothing.

use std::time::Duration;

use sd_notify::NotifyState;

/// The service manager that started the daemon, if any.
#[derive(Debug, Default)]
pub(super) struct ServiceManager {
    /// The last status line, so that it is not sent twice.
    status: String,
}

impl ServiceManager {
    /// Returns how often the watchdog expects a sign of life; `None` when it is off.
    pub(super) fn watchdog_interval() -> Option<Duration> {
        // Half of the allowed time, as the manual of sd_watchdog_enabled recommends.
        sd_notify::watchdog_enabled().map(|it| it / 2).filter(|it| !it.is_zero())
    }

    /// Reports that all folders that can be served are served.
    pub(super) fn ready() {
        send(&[NotifyState::Ready]);
    }

    /// Reports that the configuration is being reloaded; [`ServiceManager::ready`] must follow.
    pub(super) fn reloading() {
        match NotifyState::monotonic_usec_now() {
            Ok(now) => send(&[NotifyState::Reloading, now]),
            Err(_) => send(&[NotifyState::Reloading]),
        }
    }

    /// Sends a sign of life.
    pub(super) fn feed_watchdog() {
        send(&[NotifyState::Watchdog]);
    }

    /// Reports that the daemon is stopping.
    pub(super) fn stopping() {
        send(&[NotifyState::Stopping]);
    }

    /// Sends the status line, if it changed.
    pub(super) fn status(&mut self, text: String) {
        if text != self.status {
            send(&[NotifyState::Status(&text)]);
            self.status = text;
        }
    }
}

/// An unreachable manager is no reason to stop; it may end the daemon itself.
fn send(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::debug!("cannot notify the service manager: {error}");
    }
}
