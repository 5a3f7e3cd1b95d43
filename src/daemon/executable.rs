//! The file of the program that runs, which may be replaced under it.

use std::path::{Path, PathBuf};

/// The file of the program that runs.
pub(super) struct Executable {
    file: Option<PathBuf>,
    id: Option<(u64, u64)>,
    /// Another one stands in its place.
    pub(super) is_replaced: bool,
}

impl Executable {
    /// Takes note of it.
    pub(super) fn running() -> Self {
        let file = std::env::current_exe().ok();
        let id = file.as_deref().and_then(file_id);
        Self { file, id, is_replaced: false }
    }

    /// Looks whether another program stands in its place, and says so once.
    pub(super) fn check_replaced(&mut self) {
        let now = self.file.as_deref().and_then(file_id);
        // While it is being replaced there may be none for a moment.
        if !self.is_replaced && now.is_some() && now != self.id {
            self.is_replaced = true;
            tracing::warn!("restart me: the program that I run was replaced by another one");
        }
    }
}

fn file_id(file: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata(file).ok().map(|it| (it.dev(), it.ino()))
}
