//! Reads the files of a memory folder.

use std::{collections::BTreeMap, fs, io::ErrorKind, path::Path};

/// Files by path, with their text.
pub(crate) type Files = BTreeMap<String, String>;

/// Reads all files in a folder except those in `.memoird/`.
pub(crate) fn read_all(top: &Path) -> Files {
    let mut files = Files::new();
    collect(top, top, &mut files);
    files
}

fn collect(top: &Path, dir: &Path, files: &mut Files) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.strip_prefix(top).unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            if name != ".memoird" {
                collect(top, &path, files);
            }
        } else {
            match fs::read(path) {
                Ok(bytes) => {
                    files.insert(name, String::from_utf8_lossy(&bytes).into_owned());
                }
                // A daemon that runs meanwhile replaces files through temporary ones.
                Err(err) => assert_eq!(err.kind(), ErrorKind::NotFound, "{name}: {err}"),
            }
        }
    }
}
