//! Numbers by their value, however they are written.

/// A decimal number: equal for all spellings of the same value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Decimal {
    negative: bool,
    /// Without zeros at either end; empty for zero.
    digits: String,
    /// The power of ten that the digits are multiplied by.
    exponent: i32,
}

impl Decimal {
    /// Parses digits with at most one decimal mark.
    pub(super) fn parse(text: &str, negative: bool) -> Self {
        let (whole, part) = text.split_once(['.', ',']).unwrap_or((text, ""));
        let all = format!("{whole}{part}");
        let digits = all.trim_start_matches('0');
        let short = digits.trim_end_matches('0');
        let zeros = i32::try_from(digits.len() - short.len()).unwrap_or(0);
        let decimals = i32::try_from(part.len()).unwrap_or(0);
        let exponent = if short.is_empty() { 0 } else { zeros - decimals };
        Self { negative: negative && !short.is_empty(), digits: short.to_owned(), exponent }
    }

    /// Returns the number that a text with several marks spells, such as a version or a ratio: it equals only
    /// the same text.
    pub(super) fn verbatim(text: &str) -> Self {
        Self { negative: false, digits: text.to_owned(), exponent: 0 }
    }

    pub(super) fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    /// Multiplies the number by a power of ten.
    pub(super) fn scale_by_ten(mut self, zeros: i32) -> Self {
        if !self.digits.is_empty() {
            self.exponent += zeros;
        }
        self
    }

    /// Returns the value if it is a small whole number that is not negative.
    pub(super) fn to_small_integer(&self) -> Option<i64> {
        if self.negative || !(0..4).contains(&self.exponent) || self.digits.len() > 6 {
            return None;
        }
        let digits: i64 = self.digits.parse().ok()?;
        Some(digits * 10_i64.pow(u32::try_from(self.exponent).ok()?))
    }
}

/// Returns the numbers that digits with marks between them may spell: `1.180` is 1180 or 1.18.
pub(super) fn decimal_readings(run: &str, negative: bool) -> Vec<Decimal> {
    let marks: Vec<char> = run.chars().filter(|it| !it.is_ascii_digit()).collect();
    let joined = |mark: char| run.replace(mark, "");
    match marks[..] {
        [] => vec![Decimal::parse(run, negative)],
        [mark] => {
            let (whole, part) = run.split_once(mark).unwrap_or((run, ""));
            let groups = part.len() == 3 && whole.len() <= 3 && whole != "0";
            let mut all = vec![Decimal::parse(run, negative)];
            if groups {
                all.push(Decimal::parse(&joined(mark), negative));
            }
            all
        }
        [first, .., last] if first != last => {
            // `1,200.50` and `1.200,50`
            if marks.iter().filter(|it| **it == last).count() > 1 {
                return Vec::new();
            }
            vec![Decimal::parse(&joined(first), negative)]
        }
        [mark, ..] => {
            let mut groups = run.split(mark);
            let head = groups.next().is_some_and(|it| it.len() <= 3);
            if head && groups.all(|it| it.len() == 3) {
                vec![Decimal::parse(&joined(mark), negative)]
            } else {
                Vec::new()
            }
        }
    }
}
