//! Durations as people write them: `6h`, `90s`, `2d`, `0s`. Pure.
//!
//! # Invariants
//!
//! - `Display` and `FromStr` are inverse: a printed duration is parsed as the same duration.
//! - A span is at most [`DAYS_MAX`] long, so that adding one to a date cannot overflow.

use std::{borrow::Cow, fmt, str::FromStr, time::Duration};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// The longest span, in days: a hundred years.
pub const DAYS_MAX: u64 = 36_500;

/// The units, largest first, with their length in milliseconds.
const UNITS: [(&str, u64); 6] = [
    ("w", 7 * 24 * 60 * 60 * 1000),
    ("d", 24 * 60 * 60 * 1000),
    ("h", 60 * 60 * 1000),
    ("m", 60 * 1000),
    ("s", 1000),
    ("ms", 1),
];

/// A length of time, in whole milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(Duration);

/// Why a text is not a length of time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseDurationError {
    /// Not a whole number and a unit.
    #[error("`{0}` is not a length of time (expected a number and a unit, like 90s, 15m, 6h, 2d)")]
    Format(String),
    /// Longer than [`DAYS_MAX`].
    #[error("`{0}` is too long (at most {DAYS_MAX}d)")]
    TooLong(String),
}

impl Span {
    /// Returns a span of whole seconds.
    ///
    /// For the built-in defaults; the maximum is [`DAYS_MAX`].
    pub const fn from_secs(secs: u64) -> Self {
        let max = DAYS_MAX * 24 * 60 * 60;
        Self(Duration::from_secs(if secs > max { max } else { secs }))
    }

    /// Returns the span as the standard library's type.
    pub const fn as_duration(self) -> Duration {
        self.0
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = self.0.as_millis();
        // Weeks are parsed but not printed: `14d` is clearer than `2w`.
        let unit =
            UNITS.iter().skip(1).find(|(_, len)| ms != 0 && ms.is_multiple_of(u128::from(*len)));
        match unit {
            Some((name, len)) => write!(f, "{}{name}", ms / u128::from(*len)),
            None => f.write_str("0s"),
        }
    }
}

impl FromStr for Span {
    type Err = ParseDurationError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let shape = || ParseDurationError::Format(text.to_owned());
        let too_long = || ParseDurationError::TooLong(text.to_owned());
        let trimmed = text.trim();
        let digits = trimmed.trim_end_matches(|it: char| !it.is_ascii_digit());
        if digits.is_empty() || !digits.bytes().all(|it| it.is_ascii_digit()) {
            return Err(shape());
        }
        let unit = trimmed[digits.len()..].trim_start();
        let (_, len) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(shape)?;
        // Only digits are left, so parsing fails only if the number is too large.
        let count: u64 = digits.parse().map_err(|_| too_long())?;
        let ms = count.checked_mul(*len).ok_or_else(too_long)?;
        if ms > DAYS_MAX * 24 * 60 * 60 * 1000 {
            return Err(too_long());
        }
        Ok(Self(Duration::from_millis(ms)))
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<'de, str>::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl JsonSchema for Span {
    fn schema_name() -> Cow<'static, str> {
        "Span".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "format": "span",
            "pattern": "^\\s*[0-9]+\\s*(ms|s|m|h|d|w)\\s*$",
            "description": "A length of time: a whole number and a unit (ms, s, m, h, d, w)."
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<(u64, &str)>) {
        let span: Option<Span> = text.parse().ok();
        let seen = span.map(|it| (u64::try_from(it.0.as_millis()).unwrap(), it.to_string()));
        assert_eq!(seen.as_ref().map(|(ms, name)| (*ms, name.as_str())), expected);
    }

    #[test]
    fn a_number_and_a_unit() {
        check("6h", Some((21_600_000, "6h")));
        check("90s", Some((90_000, "90s")));
        check("120m", Some((7_200_000, "2h")));
        check("2d", Some((172_800_000, "2d")));
        check("2w", Some((1_209_600_000, "14d")));
        check("0s", Some((0, "0s")));
        check("0d", Some((0, "0s")));
        check("250ms", Some((250, "250ms")));
        check(" 15 m ", Some((900_000, "15m")));
        check("36500d", Some((3_153_600_000_000, "36500d")));
        check("36501d", None);
        check("99999999999999999999h", None);
        check("18446744073709551615w", None);
        check("6", None);
        check("h", None);
        check("", None);
        check("-6h", None);
        check("1.5h", None);
        check("6 hours", None);
        check("1h30m", None);
        check("6µ", None);
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(ms in 0..=DAYS_MAX * 24 * 60 * 60 * 1000) {
            let span = Span(Duration::from_millis(ms));
            prop_assert_eq!(span.to_string().parse(), Ok(span));
        }
    }
}
