//! Work side by side, on threads that live no longer than the call.

use std::sync::atomic::{AtomicUsize, Ordering};

/// More threads would only wait for each other: a piece of work takes milliseconds.
const THREADS_MAX: usize = 8;

/// Applies `work` to each item and returns the results in the order of the items.
///
/// Whoever is done takes the next item, since one may take much longer than another. A panic of
/// `work` goes on in the caller.
pub(crate) fn map<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
    if items.len() < 2 || threads < 2 {
        return items.iter().map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let (next, work) = (&next, &work);
    let mut done: Vec<(usize, R)> = std::thread::scope(|scope| {
        let take = move || {
            let mut mine = Vec::new();
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(item) = items.get(at) else { return mine };
                mine.push((at, work(item)));
            }
        };
        let workers: Vec<_> = (0..threads.min(items.len())).map(|_| scope.spawn(take)).collect();
        workers
            .into_iter()
            .flat_map(|it| it.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Does two things side by side, the second one on this thread, and returns what came of both.
///
/// A panic of either goes on in the caller.
pub(crate) fn join<A: Send, B>(
    one: impl FnOnce() -> A + Send,
    other: impl FnOnce() -> B,
) -> (A, B) {
    std::thread::scope(|scope| {
        let one = scope.spawn(one);
        let other = other();
        (one.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), other)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_are_done() {
        assert_eq!(join(|| 1, || "two"), (1, "two"));
    }

    #[test]
    fn results_keep_the_order_of_the_items() {
        for count in [0, 1, 2, 7, 64, 1000] {
            let items: Vec<usize> = (0..count).collect();
            let doubled: Vec<usize> = items.iter().map(|it| it * 2).collect();
            assert_eq!(map(&items, |it| it * 2), doubled);
        }
    }
}
