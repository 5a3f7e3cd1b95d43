//! Runs work in parallel, on threads that end with the call.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The most threads. An item takes milliseconds, so more threads would mostly wait for each other.
const THREADS_MAX: usize = 8;

/// Applies `work` to each item and returns the results in the order of the items.
///
/// Each thread takes the next item when it is done, since items may differ much in cost. A panic in `work`
/// continues in the caller.
pub(crate) fn map<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
    if items.len() < 2 || threads < 2 {
        return items.iter().map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let (next, work) = (&next, &work);
    let mut results: Vec<(usize, R)> = std::thread::scope(|scope| {
        let run = move || {
            let mut results = Vec::new();
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(item) = items.get(index) else { return results };
                results.push((index, work(item)));
            }
        };
        let workers: Vec<_> = (0..threads.min(items.len())).map(|_| scope.spawn(run)).collect();
        workers
            .into_iter()
            .flat_map(|it| it.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Runs two functions in parallel, the second one on this thread, and returns both results.
///
/// A panic in either continues in the caller.
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
    fn both_results_are_returned() {
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
