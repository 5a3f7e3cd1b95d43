//! How much the detectors do for a text: bytes that they look at, counted in tests alone.
//!
//! Who may write a log may write one that makes a search read the same bytes again and again. Time
//! says little of that on a busy machine; what a text of four times the length costs says all. Each
//! loop that decides by itself where to look next takes note of what it is about to read.

/// Takes note of bytes that are looked at.
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

    /// Takes note of bytes that are looked at.
    pub(crate) fn count_bytes(bytes: usize) {
        COUNTED.with(|it| it.set(it.get() + bytes));
    }

    /// Checks that four times as much of `part` costs no more than a little over four times as much.
    /// `bytes` are many, set against the farthest that is looked ahead from one place.
    #[track_caller]
    pub(crate) fn check_linear(part: &str, bytes: usize, mut look: impl FnMut(&str)) {
        let mut of = |bytes: usize| {
            let text = part.repeat(bytes.div_ceil(part.len()));
            COUNTED.with(|it| it.set(0));
            look(&text);
            COUNTED.with(Cell::get)
        };
        let (once, four_times) = (of(bytes), of(4 * bytes));
        assert!(once > 0, "nothing is counted for {part:?}");
        assert!(four_times <= once * 5, "{part:?}: {once}, and {four_times} for four");
    }

    #[test]
    fn a_square_is_told_from_a_line() {
        check_linear("a", 1000, |text| count_bytes(text.len() * 7));
        let square = std::panic::catch_unwind(|| {
            check_linear("a", 1000, |text| (0..text.len() / 8).for_each(count_bytes));
        });
        assert!(square.is_err());
    }
}
