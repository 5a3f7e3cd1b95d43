//! Opens the file of a transcript, and the files that it continues.
//!
//! When the user goes back in a conversation, Codex begins a new file, `rollout-TIME-THREAD_SEGMENT.jsonl`. Its first
//! line names the segment that it continues, and how many bytes of it are part of the conversation.
//! A fork names the file of its parent, too, but the parent has a record of its own.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, BufRead, BufReader, Read as _},
    path::{Path, PathBuf},
};

use serde_json::Value;

use super::{
    line_reader::{BoundedLine, BoundedLines},
    string_field,
};

/// How many files a conversation may have.
const SEGMENTS_MAX: usize = 1_000;
/// How deep the folders of a year, a month and a day are.
const DATE_DEPTH: usize = 3;

/// Opens a transcript. A file of a conversation in several files stands for all of them: what the last one does not
/// continue was discarded.
///
/// # Errors
///
/// Returns the error of a file that cannot be opened. A missing earlier file is left out.
pub fn open(path: &Path) -> io::Result<Box<dyn BufRead>> {
    // The folder of a relative path may have no name.
    let path = std::path::absolute(path)?;
    let mut path = last_segment(&path).unwrap_or(path);
    let mut reader: Box<dyn BufRead> = Box::new(open_file(&path)?);
    for _ in 0..SEGMENTS_MAX {
        let Some((base, bytes)) = base_of(&path) else { break };
        reader = Box::new(open_file(&base)?.take(bytes).chain(reader));
        path = base;
    }
    Ok(reader)
}

/// Removes the files of Codex that a later file of the same conversation continues.
pub fn retain_last_segments(files: &mut Vec<PathBuf>) {
    let mut last: BTreeMap<String, String> = BTreeMap::new();
    for (thread, segment) in files.iter().filter_map(|it| segment_of(it)) {
        let known = last.entry(thread).or_default();
        // The ids begin with the time.
        *known = segment.max(std::mem::take(known));
    }
    files.retain(|it| segment_of(it).is_none_or(|it| last.get(&it.0) == Some(&it.1)));
}

fn open_file(path: &Path) -> io::Result<BufReader<File>> {
    Ok(BufReader::with_capacity(1 << 16, File::open(path)?))
}

/// Returns the ids of the conversation and of the segment in a file's name; the first segment has none.
fn segment_of(path: &Path) -> Option<(String, String)> {
    /// The length of an id.
    const ID_LEN: usize = 36;
    let stem = path.file_stem()?.to_str()?.strip_prefix("rollout-")?;
    let (stem, segment) = stem.split_once('_').unwrap_or((stem, ""));
    let thread = stem.get(stem.len().checked_sub(ID_LEN)?..)?;
    Some((thread.to_owned(), segment.to_owned()))
}

/// Returns the file that a segment continues, and how much of it.
fn base_of(path: &Path) -> Option<(PathBuf, u64)> {
    segment_of(path)?;
    let mut lines = BoundedLines::new(open_file(path).ok()?);
    let Ok(Some(BoundedLine::Text { bytes, .. })) = lines.next_line() else { return None };
    let line: Value = serde_json::from_slice(bytes).ok()?;
    let meta =
        line.get("payload").filter(|_| string_field(&line, "type") == Some("session_meta"))?;
    let base = meta.get("history_base")?;
    let (thread, segment) = (string_field(meta, "id")?, string_field(base, "thread_id")?);
    let end = base.get("end_byte_offset")?.as_u64()?;
    let segment = if segment == thread { "" } else { segment };
    let is_base =
        |it: &PathBuf| segment_of(it).is_some_and(|it| (&it.0[..], &it.1[..]) == (thread, segment));
    let folder = path.parent()?;
    let mut near = files_in(folder, 0).into_iter();
    let base = near.find(is_base).or_else(|| {
        files_in(folder.ancestors().nth(DATE_DEPTH)?, DATE_DEPTH).into_iter().find(is_base)
    });
    Some((base?, end))
}

/// Returns the newest file of the same conversation, begun in the same month.
fn last_segment(path: &Path) -> Option<PathBuf> {
    let (thread, _) = segment_of(path)?;
    let folder = path.parent()?;
    let is_date = |it: &Path| {
        let name = it.file_name().unwrap_or_default().to_string_lossy();
        name.len() == 2 && name.chars().all(|it| it.is_ascii_digit())
    };
    let month = folder.parent().filter(|it| is_date(folder) && is_date(it));
    let files = month.map_or_else(|| files_in(folder, 0), |it| files_in(it, 1));
    let segments = files.into_iter().filter_map(|it| Some((segment_of(&it)?, it)));
    segments.filter(|it| it.0.0 == thread).max().map(|it| it.1)
}

/// Returns the paths in a folder, or in its subfolders of this depth.
fn files_in(folder: &Path, depth: usize) -> Vec<PathBuf> {
    let paths = fs::read_dir(folder).into_iter().flatten().flatten().map(|it| it.path());
    if depth == 0 {
        return paths.collect();
    }
    paths.flat_map(|it| files_in(&it, depth - 1)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::session::transcript;

    const THREAD: &str = "01a219ad-0e86-7a41-a6b3-e5ba982c6e02";
    const SEGMENTS: [&str; 2] =
        ["01a219ad-0fcd-78a3-8c50-a1c7ee361fce", "01a219ad-11fd-7403-bfea-d093ef6635fd"];

    /// Writes a file of a conversation, and returns its path and where each message ends.
    fn write(
        root: &Path,
        day: &str,
        name: &str,
        base: &Value,
        messages: &[&str],
    ) -> (PathBuf, Vec<usize>) {
        let meta = json!({"type": "session_meta", "payload": {"id": THREAD, "history_base": base}});
        let mut text = format!("{meta}\n");
        let mut ends = Vec::new();
        for message in messages {
            let content = json!([{"type": "input_text", "text": message}]);
            let item = json!({"type": "message", "role": "user", "content": content});
            text.push_str(&json!({"type": "response_item", "payload": item}).to_string());
            text.push('\n');
            ends.push(text.len());
        }
        let folder = root.join(day);
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join(format!("rollout-2026-11-26T21-05-01-{name}.jsonl"));
        #[expect(clippy::disallowed_methods, reason = "a file of a test")]
        fs::write(&path, text).unwrap();
        (path, ends)
    }

    #[test]
    fn a_conversation_in_several_files_is_read_as_one() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let base = |segment: &str, end: usize| json!({"thread_id": segment, "end_ordinal_exclusive": 1, "end_byte_offset": end});
        let (first, ends) = write(root, "2026/11/25", THREAD, &Value::Null, &["Start", "Use XML"]);
        let name = format!("{THREAD}_{}", SEGMENTS[0]);
        let start = base(THREAD, ends[0]);
        let (second, ends) = write(root, "2026/11/26", &name, &start, &["Use CSV", "In colour"]);
        let name = format!("{THREAD}_{}", SEGMENTS[1]);
        let start = base(SEGMENTS[0], ends[0]);
        let (third, _) = write(root, "2026/11/26", &name, &start, &["In grey"]);
        let messages = |path: &Path| {
            let read = transcript::read(open(path).unwrap(), None).unwrap();
            let words = read.own_entries().filter_map(|it| it.content.user_words());
            words.map(str::to_owned).collect::<Vec<_>>()
        };
        for file in [&first, &second, &third] {
            assert_eq!(messages(file), ["Start", "Use CSV", "In grey"]);
        }
        let other = root.join("rollout-2026-11-26T21-05-01.jsonl");
        let mut files = vec![third.clone(), first.clone(), other.clone(), second];
        retain_last_segments(&mut files);
        assert_eq!(files, [third.clone(), other]);
        fs::remove_file(first).unwrap();
        assert_eq!(messages(&third), ["Use CSV", "In grey"]);
    }
}
