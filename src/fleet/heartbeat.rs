//! Extends a lease while its root is worked on.
//!
//! One thread, which ends with the [`Heartbeat`]. A process that is stopped for longer than the lease loses it; it then
//! finds out here, or at the latest before it publishes.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, RecvTimeoutError, Sender},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use super::claims::{Claims, Lease};

/// How often a lease is extended within its duration.
const RENEWALS: u32 = 3;
/// The pause after an extension failed.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Extends a lease until it is dropped.
pub(crate) struct Heartbeat {
    is_lost: Arc<AtomicBool>,
    /// Dropped to end the thread.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Heartbeat {
    pub(crate) fn start(claims: Arc<Claims>, lease: Lease) -> Self {
        let is_lost = Arc::new(AtomicBool::new(false));
        let lost = Arc::clone(&is_lost);
        let (stop, stopped) = mpsc::channel::<()>();
        let thread = thread::spawn(move || {
            let mut renewed_at = Instant::now();
            let mut pause = lease.duration / RENEWALS;
            while matches!(stopped.recv_timeout(pause), Err(RecvTimeoutError::Timeout)) {
                let asked_at = Instant::now();
                match claims.renew(&lease) {
                    Ok(true) => {
                        renewed_at = asked_at;
                        pause = lease.duration / RENEWALS;
                        continue;
                    }
                    Ok(false) => {}
                    Err(error) => {
                        tracing::warn!("{}: {error}", lease.root);
                        // Others may claim the root only after the whole duration.
                        if renewed_at.elapsed() < lease.duration {
                            pause = RETRY_PAUSE.min(lease.duration / RENEWALS);
                            continue;
                        }
                    }
                }
                lost.store(true, Ordering::SeqCst);
                return;
            }
        });
        Self { is_lost, stop: Some(stop), thread: Some(thread) }
    }

    /// Returns whether others may have claimed the root.
    pub(crate) fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::SeqCst)
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}
