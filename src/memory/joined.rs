//! The text of a generated file joined with what memoird records about it.
//!
//! On disk these are two files: the visible one, for readers, and a hidden one beside it (`WISDOM.md` and
//! `.WISDOM.json`), with hashes, sources and dates. Above the vault there is one text: the visible bytes,
//! a separator, and the record. So line numbers are those of the visible file, and one hash, one version
//! and one write concern both. A file of an older form contains its record itself and has no hidden file.

use super::hash::ContentHash;

/// Separates the two: no editor writes this character, and JSON escapes it.
const SEPARATOR: char = '\u{1e}';

/// Returns the part of a text that is in the visible file.
pub fn visible(text: &str) -> &str {
    split(text).0
}

/// Cuts a text into the visible part and the record; `None` if there is no record.
pub fn split(text: &str) -> (&str, Option<&str>) {
    let end = visible_len(text.as_bytes());
    (&text[..end], text.get(end + 1..).filter(|it| !it.is_empty()))
}

/// Joins a visible text and its record.
pub fn join(visible: &str, record: Option<&str>) -> String {
    String::from_utf8_lossy(&join_bytes(visible.as_bytes(), record.map(str::as_bytes))).into_owned()
}

/// Returns where the visible part of a text ends, in bytes; like [`split`], for bytes of any encoding.
pub fn visible_len(bytes: &[u8]) -> usize {
    let at = bytes.iter().rposition(|it| char::from(*it) == SEPARATOR);
    // Elsewhere it is a character of the text.
    at.filter(|it| matches!(bytes.get(it + 1), None | Some(b'{'))).unwrap_or(bytes.len())
}

/// Like [`join`], for bytes of any encoding.
pub fn join_bytes(visible: &[u8], record: Option<&[u8]>) -> Vec<u8> {
    let mut joined = visible.to_vec();
    // Nothing in the visible file may be taken for a record.
    if record.is_some() || visible.contains(&(SEPARATOR as u8)) {
        joined.push(SEPARATOR as u8);
        joined.extend_from_slice(record.unwrap_or_default());
    }
    joined
}

/// Returns whether a record was written with this visible text: both have the same age.
pub fn belongs(record: &str, visible: &[u8]) -> bool {
    let fields = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(record);
    let body = fields.ok().and_then(|it| it.get("body")?.as_str().map(str::to_owned));
    body.is_some_and(|it| it == ContentHash::of(visible).hex16())
}

/// Returns a text whose record, if it has one, belongs to its visible part: a person's words were put into it.
pub fn resealed(text: String) -> String {
    let (visible, record) = split(&text);
    let fields = record.map(serde_json::from_str::<serde_json::Map<String, serde_json::Value>>);
    let Some(Ok(mut fields)) = fields else { return text };
    fields.insert("body".to_owned(), ContentHash::of(visible).hex16().into());
    let record = serde_json::to_string_pretty(&fields).unwrap_or_default() + "\n";
    join(visible, Some(&record))
}

/// Returns whether the content of a hidden file is a record: one JSON object. Half of one, or one that a
/// version control system could not merge, counts as none.
pub fn is_record(text: &str) -> bool {
    !text.contains(SEPARATOR)
        && serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joining_and_splitting_are_inverse() {
        for visible in ["", "one", "one\ntwo\n", "a\u{1e}b", "a\u{1e}{\"body\":\"x\"}", "\u{1e}"] {
            for record in [None, Some("{}"), Some("{\n  \"body\": \"1\"\n}\n")] {
                let joined = join(visible, record);
                assert_eq!(split(&joined), (visible, record), "{joined:?}");
                let bytes = join_bytes(visible.as_bytes(), record.map(str::as_bytes));
                assert_eq!(bytes, joined.as_bytes());
                assert_eq!(visible_len(&bytes), visible.len());
            }
        }
        assert_eq!(visible("a\u{1e}b\n"), "a\u{1e}b\n");
        assert_eq!(join("plain\n", None), "plain\n", "a file of a person stays what it is");
    }

    #[test]
    fn what_is_no_json_object_is_no_record() {
        assert!(is_record("{\"body\": \"1\"}\n"));
        let conflict = "{\n<<<<<<< HEAD\n  \"a\": 1\n=======\n  \"a\": 2\n>>>>>>> x\n}\n";
        for text in ["", "[]", "{\"body\": ", "{} {}", "{}\u{1e}{}", conflict] {
            assert!(!is_record(text), "{text}");
        }
    }
}
