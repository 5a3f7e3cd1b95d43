//! The agent's own notes, which `memoird context` names, and whose text it does not repeat.

use crate::{
    memory::{log::TextOrigin, markdown::LineKind},
    operations::workspace::MemoryRoot,
    privacy::{SanitizedLine, SanitizedLog},
    store::fs::layout::{INDEX_FILE, USER_NOTES_FILE},
};

/// The longest name of an undated note that is named, in characters.
const NOTE_NAME_CHARS_MAX: usize = 60;
/// How many undated notes are named.
const UNDATED_NOTES_MAX: usize = 6;

/// Returns the paths of the agent's own notes, the first undated ones among these `files` of the memory folder with them,
/// and the text of those that agents load by themselves or that are curated.
pub(super) fn own_notes(root: &MemoryRoot, files: &[String]) -> (Vec<String>, Vec<SanitizedLog>) {
    let layout = root.vault.layout();
    let curated = layout.curated().iter().filter(|it| layout.curated_refusal(it).is_none());
    let mut paths: Vec<String> = curated.cloned().collect();
    for path in [INDEX_FILE.to_owned(), USER_NOTES_FILE.to_owned(), layout.index()] {
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    let says = |it: &SanitizedLog| it.lines().iter().any(says_something);
    let (mut named, mut loaded) = (Vec::new(), Vec::new());
    for path in paths {
        // A file that cannot be read is shown by `memoird status`.
        let file = root.vault.read_curated(&path).ok().flatten();
        let Some(text) = file.and_then(|it| it.sanitized(&root.rules)).filter(says) else {
            continue;
        };
        if !path.contains('/') || layout.curated().contains(&path) {
            loaded.push(text);
        }
        named.push(path);
    }
    named.extend(undated_notes(root, files));
    (named, loaded)
}

/// Returns the paths of the first notes without a day beside the logs, by name, of those that say something in the
/// words of the person or the agent. A name that could be read as more than a name is left out.
fn undated_notes(root: &MemoryRoot, files: &[String]) -> Vec<String> {
    let layout = root.vault.layout();
    let is_name = |name: &str| {
        !name.starts_with('.')
            && name.chars().count() <= NOTE_NAME_CHARS_MAX
            && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ' '))
            && root.rules.sanitize_agent_name(name) == name
    };
    let is_note = |path: &&String| {
        let name = path.strip_prefix(layout.memory_dir()).and_then(|it| it.strip_prefix('/'));
        let stem = name.and_then(|it| it.strip_suffix(".md"));
        stem.is_some_and(is_name)
            && layout.kind_of(path).is_none()
            && !layout.curated().contains(path)
    };
    let mut paths: Vec<&String> = files.iter().filter(is_note).collect();
    paths.sort();
    let is_own = |path: &&String| {
        let file = root.vault.read_curated(path).ok().flatten();
        let is_ours =
            |it: &SanitizedLine| says_something(it) && it.origin() != TextOrigin::External;
        let text = file.and_then(|it| it.sanitized(&root.rules));
        text.is_some_and(|it| it.lines().iter().any(is_ours))
    };
    paths.into_iter().filter(is_own).take(UNDATED_NOTES_MAX).cloned().collect()
}

fn says_something(line: &SanitizedLine) -> bool {
    line.is_content() && !matches!(line.kind(), LineKind::Heading { .. })
}
