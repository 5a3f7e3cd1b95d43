//! What must stand nowhere.

use std::{fs, path::Path};

/// Sees that a text stands in no file below a folder, the database among them, but for one.
#[track_caller]
pub(crate) fn assert_in_no_file(dir: &Path, text: &str, but: Option<&Path>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let kind = fs::symlink_metadata(&path).unwrap().file_type();
        if kind.is_dir() {
            assert_in_no_file(&path, text, but);
        } else if kind.is_file() && Some(path.as_path()) != but {
            assert_absent(&fs::read(&path).unwrap(), text, &path.display().to_string());
        }
    }
}

/// Sees that a text stands in no part of what `place` holds.
#[track_caller]
pub(crate) fn assert_absent(bytes: &[u8], text: &str, place: &str) {
    assert!(!bytes.windows(text.len()).any(|it| it == text.as_bytes()), "{text} is in {place}");
}
