//! Distinguishes a misspelled word from another one. Pure.

/// Returns whether one letter was inserted, left out, or replaced, or two neighbours were swapped.
pub(super) fn is_one_edit(a: &str, b: &str) -> bool {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let (short, long) = if a.len() <= b.len() { (&a[..], &b[..]) } else { (&b[..], &a[..]) };
    let same = short.iter().zip(long).take_while(|(x, y)| x == y).count();
    let (short, long) = (&short[same..], &long[same..]);
    match long.len() - short.len() {
        0 => {
            let is_swap = short.len() > 1
                && (short[0], short[1]) == (long[1], long[0])
                && short[2..] == long[2..];
            !short.is_empty() && (is_swap || short[1..] == long[1..])
        }
        1 => *short == long[1..],
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(a: &str, b: &str, expected: bool) {
        assert_eq!(is_one_edit(a, b), expected, "{a} {b}");
        assert_eq!(is_one_edit(b, a), expected, "{b} {a}");
    }

    #[test]
    fn one_edit_is_one_letter_or_two_neighbours() {
        check("kaltenegg", "kaltenneg", false);
        check("kaltenegg", "kaltnegg", true);
        check("kaltenegg", "kaltenehg", true);
        check("kaltenegg", "katlenegg", true);
        check("kaltenegg", "kaltenegg", false);
        check("kaltenegg", "kaltenegger", false);
        check("grafana", "grafanas", true);
        check("", "a", true);
    }
}
