//! Work side by side, on threads that live no longer than the call.

/// More threads would only wait for each other: a piece of work takes milliseconds.
const THREADS_MAX: usize = 8;

/// Applies `work` to each item and returns the results in the order of the items.
///
/// A panic of `work` goes on in the caller.
pub(super) fn map<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
    let share = items.len().div_ceil(threads).max(1);
    if items.len() <= share {
        return items.iter().map(work).collect();
    }
    let work = &work;
    std::thread::scope(|scope| {
        let workers: Vec<_> = items
            .chunks(share)
            .map(|share| scope.spawn(move || share.iter().map(work).collect::<Vec<R>>()))
            .collect();
        workers
            .into_iter()
            .flat_map(|it| it.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_keep_the_order_of_the_items() {
        for count in [0, 1, 2, 7, 64, 1000] {
            let items: Vec<usize> = (0..count).collect();
            let doubled: Vec<usize> = items.iter().map(|it| it * 2).collect();
            assert_eq!(map(&items, |it| it * 2), doubled);
        }
    }
}
