//! Finds API keys in the wrong place: in the text of a configuration, in an argument, in a message.
//!
//! A person who puts a key into the wrong place must learn of it, and the message must not repeat the key. So
//! messages that quote user input go through [`mask_keys`], and `doctor` uses [`lines_with_keys`]. Pure.

use std::{borrow::Cow, ops::Range};

/// The prefixes of known providers' keys. In logs, `privacy` finds all kinds of secrets; this list is only for
/// the few places where people put a key by mistake.
const KEY_PREFIXES: [&str; 7] = ["sk-", "gsk_", "xai-", "AIza", "hf_", "nvapi-", "pplx-"];

/// No key has fewer characters after its prefix.
const REST_CHARS_MIN: usize = 16;

/// Returns the byte ranges of words that look like keys.
fn find_keys(text: &str) -> Vec<Range<usize>> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let mut found = Vec::new();
    let mut at = 0;
    for word in text.split(|c| !is_part(c)) {
        let start = at + text[at..].find(word).unwrap_or(0);
        at = start + word.len();
        let rest = KEY_PREFIXES.iter().find_map(|it| word.strip_prefix(it));
        // A name made of words, as of a package, has no digits.
        let is_key =
            |it: &str| it.len() >= REST_CHARS_MIN && it.bytes().any(|c| c.is_ascii_digit());
        if rest.is_some_and(is_key) {
            found.push(start..at);
        }
    }
    found
}

/// Returns the numbers of the lines, from 1, that contain something like a key.
pub fn lines_with_keys(text: &str) -> Vec<usize> {
    let lines = text.lines().zip(1..);
    lines.filter(|(line, _)| !find_keys(line).is_empty()).map(|(_, number)| number).collect()
}

/// Replaces everything that looks like a key by `…`, for messages that quote user input.
pub(super) fn mask_keys(text: &str) -> Cow<'_, str> {
    let found = find_keys(text);
    if found.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut masked = String::new();
    let mut from = 0;
    for it in found {
        masked.push_str(&text[from..it.start]);
        masked.push('…');
        from = it.end;
    }
    Cow::Owned(masked + &text[from..])
}

/// Returns whether a value can be quoted in a message: it contains no password in an address, and no random
/// word, such as a key.
pub(super) fn is_quotable(value: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-_+/=.".contains(c);
    let is_random = |word: &str| {
        word.len() >= REST_CHARS_MIN
            && word.bytes().any(|it| it.is_ascii_digit())
            && word.bytes().any(|it| it.is_ascii_alphabetic())
            // A path has short steps.
            && word.split('/').any(|it| it.len() >= REST_CHARS_MIN)
    };
    let has_user = value.split("://").skip(1).any(|it| it.contains('@'));
    !has_user && find_keys(value).is_empty() && !value.split(|it| !is_part(it)).any(is_random)
}

/// Returns what of an argument is surely the name of a key, with `…` for the rest.
pub(super) fn quotable_key_name(argument: &str) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    let key = argument.split(|it| !is_part(it)).next().unwrap_or_default();
    let shown = if is_quotable(key) { key } else { "" };
    if shown.len() == argument.len() { shown.to_owned() } else { format!("{shown}…") }
}

/// Checks the value of `model.key_file`, and says so where it is the key itself.
pub(super) fn check_file_path(text: &str) -> Result<(), String> {
    let is_name = text.contains(['/', '.']) || text.len() < REST_CHARS_MIN + 4;
    let is_random = !is_name && text.bytes().any(|it| it.is_ascii_digit());
    if is_random || !find_keys(text).is_empty() {
        return Err("this looks like a key, not like the path of a file that holds it; \
                    write the key into a file that only you can read (chmod 600)"
            .to_owned());
    }
    if text.trim().is_empty() { Err("empty".to_owned()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made up.
    const KEY: &str = "sk-test-4f9Qx7mB2vLkR8sT1wZc";

    #[test]
    fn what_looks_like_a_key_is_found_and_veiled() {
        let text = format!("a: 1\n# key: {KEY}\nb: 'AIzaSyD-0123456789abcdefghij', {KEY}\n");
        assert_eq!(lines_with_keys(&text), [2, 3]);
        assert_eq!(mask_keys(&text), "a: 1\n# key: …\nb: '…', …\n");
        for plain in [
            "sk-learn-pipelines-for-everyone", // no digit
            "sk-1",
            "task-0123456789abcdefgh",
            "hf_transfer",
            "roots: []",
            "",
        ] {
            assert_eq!(mask_keys(plain), plain);
        }
    }

    #[test]
    fn a_value_that_may_be_a_secret_is_not_quoted() {
        for value in [
            "q7Rw2mZx9LtPa4Vb8Nc1",
            "Bearer q7Rw2mZx9LtPa4Vb8Nc1",
            "https://mara:sesame@acme.net/v1",
            KEY,
        ] {
            assert!(!is_quotable(value), "{value}");
        }
        for value in ["gpt", "0 3 * * *", "90d", "Europe/Berlin", "/srv/notes-of-2026/a/b1", ""] {
            assert!(is_quotable(value), "{value}");
        }
        assert_eq!(quotable_key_name("compaction.weekly.ratio"), "compaction.weekly.ratio");
        assert_eq!(quotable_key_name("model.api_key:sesame"), "model.api_key…");
        assert_eq!(quotable_key_name(KEY), "sk…");
        assert_eq!(quotable_key_name("q7Rw2mZx9LtPa4Vb8Nc1"), "…");
    }

    #[test]
    fn a_key_in_place_of_its_path_is_refused() {
        for path in [
            "~/key",
            "key",
            "my-anthropic-api-key-file",
            "/run/secrets/abcdef0123456789abcdef",
            "key-2026-11-21-rotated.txt",
        ] {
            assert_eq!(check_file_path(path), Ok(()));
        }
        for key in [KEY, "0123456789abcdef0123456789abcdef"] {
            let said = check_file_path(key).unwrap_err();
            assert!(said.contains("chmod 600") && !said.contains(key));
        }
        assert_eq!(check_file_path(" ").unwrap_err(), "empty");
    }
}
