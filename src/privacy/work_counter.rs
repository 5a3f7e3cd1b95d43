//! Counts the bytes that detectors read, in tests only.
//!
//! Whoever can write a log can write one that makes a search read the same bytes repeatedly. On a busy
//! machine, elapsed time shows little of that, so tests compare the counts for a text and for one of
//! four times its length. Each loop that decides by itself what to read next counts those bytes.

/// Counts bytes that are read.
#[cfg(not(test))]
#[inline]
pub(crate) fn count_bytes(_bytes: usize) {}

#[cfg(test)]
pub(crate) use counted::{check_linear, count_bytes};

#[cfg(test)]
mod counted {
    use std::cell::Cell;

    thread_local! {
        static COUNTED: Cell<usize> = const { Cell::new(0) };
    }

    /// Counts bytes that are read.
    pub(crate) fn count_bytes(bytes: usize) {
        COUNTED.with(|it| it.set(it.get() + bytes));
    }

    /// Checks that a text of `part` repeated costs about four times as much at four times the length.
    ///
    /// `bytes` must be much more than the farthest that is read ahead from one position.
    #[track_caller]
    pub(crate) fn check_linear(part: &str, bytes: usize, mut scan: impl FnMut(&str)) {
        let mut cost_of = |bytes: usize| {
            let text = part.repeat(bytes.div_ceil(part.len()));
            COUNTED.with(|it| it.set(0));
            scan(&text);
            COUNTED.with(Cell::get)
        };
        let (once, four_times) = (cost_of(bytes), cost_of(4 * bytes));
        assert!(once > 0, "nothing is counted for {part:?}");
        assert!(
            four_times <= once * 5,
            "{part:?}: {once}, and {four_times} at four times the length"
        );
    }

    #[test]
    fn quadratic_cost_fails_the_check() {
        check_linear("a", 1000, |text| count_bytes(text.len() * 7));
        let quadratic = std::panic::catch_unwind(|| {
            check_linear("a", 1000, |text| (0..text.len() / 8).for_each(count_bytes));
        });
        assert!(quadratic.is_err());
    }
}
