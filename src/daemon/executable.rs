//! The program file of this process, which may be replaced while it runs.

use std::path::{Path, PathBuf};

/// The program file of this process.
pub(super) struct Executable {
    file: Option<PathBuf>,
    id: Option<(u64, u64)>,
    /// Another file is at its path now.
    pub(super) is_replaced: bool,
}

impl Executable {
    pub(super) fn running() -> Self {
        let file = std::env::current_exe().ok();
        let id = file.as_deref().and_then(file_id);
        Self { file, id, is_replaced: false }
    }

    /// Checks whether the file was replaced, and logs that once.
    pub(super) fn check_replaced(&mut self) {
        let now = self.file.as_deref().and_then(file_id);
        // During a replacement there may be no file for a moment.
        if !self.is_replaced && now.is_some() && now != self.id {
            self.is_replaced = true;
            tracing::warn!("restart needed: the program file was replaced");
        }
    }
}

fn file_id(file: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata(file).ok().map(|it| (it.dev(), it.ino()))
}
