//! How values are stored in columns: hashes as hex, times as RFC 3339 in UTC, names as text.

use std::{error::Error, str::FromStr};

use chrono::{DateTime, SecondsFormat, Utc};
use rusqlite::{Row, types::Type};

use crate::memory::hash::ContentHash;

/// Text in a column that memoird did not write.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not a {1}")]
struct InvalidColumnText(String, &'static str);

/// Reads a hash.
pub(super) fn hash(row: &Row<'_>, at: usize) -> rusqlite::Result<ContentHash> {
    let text: String = row.get(at)?;
    from_hex(&text).ok_or_else(|| unreadable(at, InvalidColumnText(text, "hash")))
}

/// Reads an optional hash.
pub(super) fn hash_or_null(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<ContentHash>> {
    match row.get_ref(at)?.data_type() {
        Type::Null => Ok(None),
        _ => hash(row, at).map(Some),
    }
}

/// Reads a value that was written with `Display`.
pub(super) fn parsed<T>(row: &Row<'_>, at: usize) -> rusqlite::Result<T>
where
    T: FromStr<Err: Error + Send + Sync + 'static>,
{
    row.get::<_, String>(at)?.parse().map_err(|e| unreadable(at, e))
}

/// Reads one name of a closed list.
pub(super) fn named<T>(
    row: &Row<'_>,
    at: usize,
    what: &'static str,
    from_name: impl FnOnce(&str) -> Option<T>,
) -> rusqlite::Result<T> {
    let text: String = row.get(at)?;
    from_name(&text).ok_or_else(|| unreadable(at, InvalidColumnText(text, what)))
}

/// Formats a time.
pub(super) fn from_time(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// Reads a time.
pub(super) fn time(row: &Row<'_>, at: usize) -> rusqlite::Result<DateTime<Utc>> {
    let text: String = row.get(at)?;
    let time = DateTime::parse_from_rfc3339(&text).map_err(|e| unreadable(at, e))?;
    Ok(time.with_timezone(&Utc))
}

/// Reads an optional time.
pub(super) fn time_or_null(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<DateTime<Utc>>> {
    match row.get_ref(at)?.data_type() {
        Type::Null => Ok(None),
        _ => time(row, at).map(Some),
    }
}

/// Returns the error for text that cannot be read.
fn unreadable(at: usize, error: impl Error + Send + Sync + 'static) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(at, Type::Text, Box::new(error))
}

fn from_hex(text: &str) -> Option<ContentHash> {
    let mut bytes = [0; 32];
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if pairs.len() != bytes.len() || !rest.is_empty() {
        return None;
    }
    for (byte, &[high, low]) in bytes.iter_mut().zip(pairs) {
        let digit = |c: u8| char::from(c).to_digit(16).and_then(|it| u8::try_from(it).ok());
        *byte = digit(high)? << 4 | digit(low)?;
    }
    Some(ContentHash::from_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_read_as_they_print() {
        let hash = ContentHash::of("words");
        assert_eq!(from_hex(&hash.to_string()), Some(hash));
        assert_eq!(from_hex(&hash.hex16()), None);
        assert_eq!(from_hex(&"g".repeat(64)), None);
    }
}
