//! Assertions that a text is absent.

use std::{fs, path::Path};

/// Checks that no file in a folder contains a text, the database included; `except` is not checked.
#[track_caller]
pub(crate) fn assert_in_no_file(dir: &Path, text: &str, except: Option<&Path>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let kind = fs::symlink_metadata(&path).unwrap().file_type();
        if kind.is_dir() {
            assert_in_no_file(&path, text, except);
        } else if kind.is_file() && Some(path.as_path()) != except {
            assert_absent(&fs::read(&path).unwrap(), text, &path.display().to_string());
        }
    }
}

/// Checks that `bytes` do not contain a text; `source` names them in the message.
#[track_caller]
pub(crate) fn assert_absent(bytes: &[u8], text: &str, source: &str) {
    assert!(!bytes.windows(text.len()).any(|it| it == text.as_bytes()), "{text} is in {source}");
}
