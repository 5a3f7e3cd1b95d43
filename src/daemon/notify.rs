//! What the service manager is told: ready, alive, stopping, and a line of plain words.
//!
//! Outside systemd there is nobody to tell, and all of this does nothing.

use std::time::Duration;

use sd_notify::NotifyState;

/// The service manager that started us, if one did.
#[derive(Debug, Default)]
pub(super) struct ServiceManager {
    /// The last line of plain words, so that it is not sent twice.
    status: String,
}

impl ServiceManager {
    /// Returns how often it wants to hear that the loop turns; `None` when it does not ask.
    pub(super) fn watchdog_interval() -> Option<Duration> {
        // Half of what it allows, as its manual advises.
        sd_notify::watchdog_enabled().map(|it| it / 2).filter(|it| !it.is_zero())
    }

    /// Says that all that can be served is served.
    pub(super) fn ready() {
        send(&[NotifyState::Ready]);
    }

    /// Says that the configuration is read anew; [`ServiceManager::ready`] must follow.
    pub(super) fn reloading() {
        match NotifyState::monotonic_usec_now() {
            Ok(now) => send(&[NotifyState::Reloading, now]),
            Err(_) => send(&[NotifyState::Reloading]),
        }
    }

    /// Says that the loop turns.
    pub(super) fn feed_watchdog() {
        send(&[NotifyState::Watchdog]);
    }

    /// Says that the end has begun.
    pub(super) fn stopping() {
        send(&[NotifyState::Stopping]);
    }

    /// Says in plain words what is being done.
    pub(super) fn status(&mut self, text: String) {
        if text != self.status {
            send(&[NotifyState::Status(&text)]);
            self.status = text;
        }
    }
}

/// A manager that cannot be reached would only end us, which it then does by its own means.
fn send(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::debug!("the service manager cannot be told: {error}");
    }
}
