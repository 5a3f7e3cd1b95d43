//! Caches whose memory can be freed: compiled expressions, and findings in logs.
//!
//! All compiled expressions take ten megabytes and more, and each keeps scratch memory for every thread
//! that used it at the same time. A process that sleeps for hours between two searches calls
//! [`reclaim_memory`] when its work is done; what is needed later is built again.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError, RwLock, Weak},
};

/// A value that is built on first use, and again after its memory was freed.
pub(super) struct Reclaimable<T>(Arc<ReclaimableSlot<T>>);

struct ReclaimableSlot<T> {
    make: Box<dyn Fn() -> T + Send + Sync>,
    value: RwLock<Option<Arc<T>>>,
}

impl<T> fmt::Debug for Reclaimable<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reclaimable")
    }
}

trait Reclaim: Send + Sync {
    fn reclaim(&self);
}

/// All existing slots.
static SLOTS: Mutex<Vec<Weak<dyn Reclaim>>> = Mutex::new(Vec::new());

impl<T: Send + Sync + 'static> Reclaimable<T> {
    /// Returns an empty slot; `make` builds the value on first use.
    pub(super) fn new(make: impl Fn() -> T + Send + Sync + 'static) -> Self {
        let slot = Arc::new(ReclaimableSlot { make: Box::new(make), value: RwLock::new(None) });
        let weak: Weak<dyn Reclaim> = Arc::downgrade(&slot) as Weak<dyn Reclaim>;
        let mut slots = SLOTS.lock().unwrap_or_else(PoisonError::into_inner);
        // A process that reloads rules for each request must not accumulate dropped slots.
        if slots.len() == slots.capacity() {
            slots.retain(|it| it.strong_count() > 0);
        }
        slots.push(weak);
        drop(slots);
        Self(slot)
    }

    /// Returns the value, built if necessary. A search in progress keeps the value that it has.
    pub(super) fn get(&self) -> Arc<T> {
        let ReclaimableSlot { make, value } = &*self.0;
        if let Some(value) = &*value.read().unwrap_or_else(PoisonError::into_inner) {
            return Arc::clone(value);
        }
        let mut value = value.write().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(value.get_or_insert_with(|| Arc::new(make())))
    }
}

impl<T: Send + Sync> Reclaim for ReclaimableSlot<T> {
    fn reclaim(&self) {
        *self.value.write().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// Frees all reclaimable values and their scratch memory. Later results are the same.
pub fn reclaim_memory() {
    let mut slots = SLOTS.lock().unwrap_or_else(PoisonError::into_inner);
    // Slots of rules that were reloaded are gone.
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
    fn a_freed_value_is_built_again_and_a_dropped_one_is_not() {
        let counting = || {
            let made = Arc::new(AtomicUsize::new(0));
            let count = Arc::clone(&made);
            (made, Reclaimable::new(move || count.fetch_add(1, Ordering::SeqCst)))
        };
        let ((made, value), (made_of_dropped, dropped)) = (counting(), counting());
        drop(dropped);
        assert_eq!(made.load(Ordering::SeqCst), 0);
        let before = value.get();
        assert!(Arc::ptr_eq(&before, &value.get()));
        reclaim_memory();
        assert_eq!(made.load(Ordering::SeqCst), 1);
        assert!(!Arc::ptr_eq(&before, &value.get()));
        assert_eq!(made_of_dropped.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn results_are_the_same_after_memory_was_freed() {
        let regex = Reclaimable::new(|| regex::Regex::new(r"(?i)gate (\d+)").unwrap());
        let find = || regex.get().find("at Gate 12").map(|it| it.range());
        let before = find();
        reclaim_memory();
        assert_eq!((find(), before), (Some(3..10), Some(3..10)));
    }
}
