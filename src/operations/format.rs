//! How values are written in messages: numbers with their nouns, words for a shell, paths.

use std::path::Path;

/// Formats a number with its noun: `1 log`, `2 logs`.
pub(crate) fn counted(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// Quotes a word for a shell, if necessary.
pub(crate) fn shell_quoted(word: &str) -> String {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "-_./=:@,+".contains(it);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// Returns a path with `~` for the user's `home`.
pub(crate) fn with_tilde(path: &str, home: &Path) -> String {
    match Path::new(path).strip_prefix(home) {
        Ok(below) => format!("~/{}", below.display()),
        Err(_) => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_a_shell() {
        let seen = ["./memoird-demo", "a b", "it's", ""].map(shell_quoted);
        assert_eq!(seen, ["./memoird-demo", "'a b'", "'it'\\''s'", "''"]);
    }
}
