//! What was made to be faster, and whose memory can be had back: compiled expressions, and what was found
//! in logs.
//!
//! Compiled, all of ours take ten megabytes and more, and each keeps what its searches needed, for each
//! thread that searched at once, until the process ends. A process that sleeps for hours between two
//! searches calls [`reclaim_memory`] when it has done its work; what is needed again is compiled again.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError, RwLock, Weak},
};

/// Something that is made when it is first needed, and again after a rest.
pub(super) struct Reclaimable<T>(Arc<ReclaimableSlot<T>>);

struct ReclaimableSlot<T> {
    make: Box<dyn Fn() -> T + Send + Sync>,
    value: RwLock<Option<Arc<T>>>,
}

impl<T> fmt::Debug for Reclaimable<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lent")
    }
}

trait Reclaim: Send + Sync {
    fn reclaim(&self);
}

/// All that are there.
static SLOTS: Mutex<Vec<Weak<dyn Reclaim>>> = Mutex::new(Vec::new());

impl<T: Send + Sync + 'static> Reclaimable<T> {
    /// Nothing is made yet.
    pub(super) fn new(make: impl Fn() -> T + Send + Sync + 'static) -> Self {
        let slot = Arc::new(ReclaimableSlot { make: Box::new(make), value: RwLock::new(None) });
        let weak: Weak<dyn Reclaim> = Arc::downgrade(&slot) as Weak<dyn Reclaim>;
        let mut slots = SLOTS.lock().unwrap_or_else(PoisonError::into_inner);
        // Who never rests, and reads rules anew for each request, is not to remember them all.
        if slots.len() == slots.capacity() {
            slots.retain(|it| it.strong_count() > 0);
        }
        slots.push(weak);
        drop(slots);
        Self(slot)
    }

    /// Returns it as it is now. A search that is under way keeps what it has.
    pub(super) fn get(&self) -> Arc<T> {
        let ReclaimableSlot { make, value: made } = &*self.0;
        if let Some(made) = &*made.read().unwrap_or_else(PoisonError::into_inner) {
            return Arc::clone(made);
        }
        let mut made = made.write().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(made.get_or_insert_with(|| Arc::new(make())))
    }
}

impl<T: Send + Sync> Reclaim for ReclaimableSlot<T> {
    fn reclaim(&self) {
        *self.value.write().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// Gives back what was compiled and what searches needed so far. What is found later is the same.
pub fn reclaim_memory() {
    let mut slots = SLOTS.lock().unwrap_or_else(PoisonError::into_inner);
    // Those of rules that were read anew are gone.
    slots.retain(|it| {
        it.upgrade().is_some_and(|it| {
            it.reclaim();
            true
        })
    });
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn what_rests_is_made_anew_when_it_is_needed_and_what_is_gone_is_forgotten() {
        let counting = || {
            let made = Arc::new(AtomicUsize::new(0));
            let count = Arc::clone(&made);
            (made, Reclaimable::new(move || count.fetch_add(1, Ordering::SeqCst)))
        };
        let ((made, lent), (of_gone, gone)) = (counting(), counting());
        drop(gone);
        assert_eq!(made.load(Ordering::SeqCst), 0);
        let before = lent.get();
        assert!(Arc::ptr_eq(&before, &lent.get()));
        reclaim_memory();
        assert_eq!(made.load(Ordering::SeqCst), 1);
        assert!(!Arc::ptr_eq(&before, &lent.get()));
        assert_eq!(of_gone.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn the_same_is_found_after_a_rest() {
        let lent = Reclaimable::new(|| regex::Regex::new(r"(?i)gate (\d+)").unwrap());
        let find = || lent.get().find("at Gate 12").map(|it| it.range());
        let before = find();
        reclaim_memory();
        assert_eq!((find(), before), (Some(3..10), Some(3..10)));
    }
}
