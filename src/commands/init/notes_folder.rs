//! Dated notes that lie deeper than `init` reads, such as `Daily/2026-11-02.md` in a vault.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use super::InitArgs;
use crate::{
    commands::ui::Ui,
    config::root::ROOT_FILE_NAME,
    operations::format::counted,
    store::fs::layout::{self, MemoryFileName},
};

/// How deep folders are searched.
const DEPTH_MAX: usize = 4;
/// How many files and folders are looked at.
const ENTRIES_MAX: usize = 50_000;
/// Folders that hold what programs make.
const SKIPPED: [&str; 4] = [layout::ARCHIVE_DIR, "node_modules", "target", "sessions"];

/// Returns the folder of dated notes below a root, relative to it, if there is one and the user agrees to read it.
pub(super) fn agreed(
    args: &InitArgs,
    root: &Path,
    ui: &Ui,
    to_do: &mut Vec<String>,
) -> Option<String> {
    let folders = note_folders(root);
    let all: usize = folders.values().sum();
    let (folder, notes) = folders.iter().max_by_key(|it| *it.1)?;
    let counted_notes = |it: usize| counted(it, "dated note", "dated notes");
    if notes * 2 <= all {
        to_do.push(format!(
            "{} are in {} folders below this one; memoird reads the logs of one folder: name it as \
             `memory_dir` in {ROOT_FILE_NAME}, for example {folder}",
            counted_notes(all),
            folders.len()
        ));
        return None;
    }
    let found = format!("{} in {folder}/", counted_notes(*notes));
    let question = format!(
        "Found {found}. Are these the logs? memoird reads them, never changes them, and writes \
         its summaries beside them"
    );
    if args.yes || (!args.dry_run && ui.confirm(question) == Some(true)) {
        return Some(folder.clone());
    }
    to_do.push(format!(
        "found {found}; to read them as logs, set memory_dir: {folder} in {ROOT_FILE_NAME} (or run `{}`)",
        args.with_consent()
    ));
    None
}

/// Returns whether dated notes are further below a folder.
pub(super) fn holds_notes(root: &Path) -> bool {
    !note_folders(root).is_empty()
}

/// Returns the folders below a root that hold dated notes, relative to it, with the number of notes.
fn note_folders(root: &Path) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    let mut folders: Vec<(PathBuf, usize)> = vec![(root.to_owned(), 0)];
    let mut entries_left = ENTRIES_MAX;
    while let Some((folder, depth)) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            if entries_left == 0 {
                return found;
            }
            entries_left -= 1;
            let (Ok(kind), Ok(name)) = (entry.file_type(), entry.file_name().into_string()) else {
                continue;
            };
            if kind.is_dir() {
                let is_skipped = name.starts_with('.') || SKIPPED.contains(&name.as_str());
                if !is_skipped && depth < DEPTH_MAX {
                    folders.push((entry.path(), depth + 1));
                }
            } else if depth > 0
                // A name with more than a date may be an article of a website or a record of a decision.
                && name.len() == "2026-11-02.md".len()
                && matches!(layout::classify(&name), MemoryFileName::Log(_))
                && let Some(relative) = folder.strip_prefix(root).ok().and_then(Path::to_str)
            {
                *found.entry(relative.to_owned()).or_default() += 1;
            }
        }
    }
    found
}
