//! Expressions whose scratch memory can be had back.
//!
//! An expression keeps what its searches needed, for each thread that searched at once and until the
//! process ends: for all of ours together tens of megabytes. A process that sleeps for hours between two
//! searches calls [`rest`] when it has done its work; the next search begins with fresh scratch memory.

use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

/// Something whose clone shares what was compiled, and nothing of what searches needed.
pub(super) struct Lent<T>(Arc<Slot<T>>);

struct Slot<T>(RwLock<Arc<T>>);

trait Rest: Send + Sync {
    fn rest(&self);
}

/// All that are there.
static SLOTS: Mutex<Vec<Weak<dyn Rest>>> = Mutex::new(Vec::new());

impl<T: Clone + Send + Sync + 'static> Lent<T> {
    pub(super) fn new(it: T) -> Self {
        let slot = Arc::new(Slot(RwLock::new(Arc::new(it))));
        let weak: Weak<dyn Rest> = Arc::downgrade(&slot) as Weak<dyn Rest>;
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
        Arc::clone(&self.0.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<T: Clone + Send + Sync> Rest for Slot<T> {
    fn rest(&self) {
        let mut current = self.0.write().unwrap_or_else(PoisonError::into_inner);
        *current = Arc::new(T::clone(&current));
    }
}

/// Gives back what searches needed so far. What is found later is the same.
pub fn rest() {
    let mut slots = SLOTS.lock().unwrap_or_else(PoisonError::into_inner);
    // Those of rules that were read anew are gone.
    slots.retain(|it| {
        it.upgrade().is_some_and(|it| {
            it.rest();
            true
        })
    });
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Counts its clones.
    #[derive(Default)]
    struct Counted(Arc<AtomicUsize>);

    impl Clone for Counted {
        fn clone(&self) -> Self {
            self.0.fetch_add(1, Ordering::SeqCst);
            Self(Arc::clone(&self.0))
        }
    }

    #[test]
    fn what_rests_is_made_anew_and_what_is_gone_is_forgotten() {
        let (count, gone) = (Counted::default(), Counted::default());
        let (clones, of_gone) = (Arc::clone(&count.0), Arc::clone(&gone.0));
        let lent = Lent::new(count);
        drop(Lent::new(gone));
        let before = lent.get();
        rest();
        assert!(!Arc::ptr_eq(&before, &lent.get()));
        assert!(clones.load(Ordering::SeqCst) >= 1);
        assert_eq!(of_gone.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn the_same_is_found_after_a_rest() {
        let lent = Lent::new(regex::Regex::new(r"(?i)gate (\d+)").unwrap());
        let find = || lent.get().find("at Gate 12").map(|it| it.range());
        let before = find();
        rest();
        assert_eq!((find(), before), (Some(3..10), Some(3..10)));
    }
}
