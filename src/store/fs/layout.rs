//! The path of each file of a root, and the meaning of a file name.
//!
//! Paths are relative to the root, with `/`, as users and JSON see them. Classifying a name is pure.

use std::path::{Path, PathBuf};

use chrono::{Datelike as _, NaiveDate};

use super::log_names;
use crate::memory::{
    address::Stem,
    joined,
    period::{Grain, Period},
    typed::MemoryType,
};

/// Name of the private folder of a root.
pub const PRIVATE_DIR: &str = ".memoird";
/// Prefix of temporary files.
pub const TEMP_PREFIX: &str = ".memoird-tmp-";
/// Prefix of the private files that hold raw replies of a model.
pub const REPLY_PREFIX: &str = "reply-";
/// Name of the configuration file in a root.
pub const ROOT_FILE: &str = "memoird.yaml";
/// Name of the generated file that agents read at session start.
pub const WISDOM_FILE: &str = "WISDOM.md";
/// Name of the index of typed memories.
pub const INDEX_FILE: &str = "MEMORY.md";
/// Name of the file in which an agent notes what it knows of its person.
pub const USER_NOTES_FILE: &str = "USER.md";
/// Name of the record of what people decided.
pub const DECISIONS_FILE: &str = ".decisions.jsonl";

/// Name of the folder for archived logs.
pub const ARCHIVE_DIR: &str = "archive";

/// The paths of one root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Canonical path of the root.
    root: PathBuf,
    /// The memory folder relative to the root, without trailing slash; empty for a flat folder.
    memory_dir: String,
    /// Notes that memoird reads and never changes, relative to the root.
    curated: Vec<String>,
    /// The one of them that holds a block of ours.
    wisdom_block: Option<String>,
}

/// The meaning of a name in the memory folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemoryFileName {
    /// A daily log.
    Log(Stem),
    /// A typed memory.
    Typed(MemoryType),
    /// A name that is almost valid, with the reason why it is not: a person should look at it.
    NearMiss(String),
    /// Any other name.
    Other,
}

/// A file of a root that can be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A daily log.
    Log,
    /// A session record.
    Session,
    /// A weekly summary.
    Weekly,
    /// A monthly summary.
    Monthly,
    /// A typed memory.
    Memory,
    /// `MEMORY.md`.
    Index,
    /// `WISDOM.md`.
    Wisdom,
}

impl FileKind {
    /// Returns the name that JSON uses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Session => "session",
            Self::Weekly => "weekly",
            Self::Monthly => "monthly",
            Self::Memory => "memory",
            Self::Index => "index",
            Self::Wisdom => "wisdom",
        }
    }
}

/// Returns whether a file has a hidden one beside it, so that readers get both as one text ([`joined`]).
fn has_hidden_file(relative: &str) -> bool {
    let (path, name) = relative.rsplit_once('/').unwrap_or(("", relative));
    let dir = path.rsplit('/').next().unwrap_or_default();
    relative == WISDOM_FILE
        || name.strip_suffix(".md").is_some_and(|stem| summary_kind(dir, stem).is_some())
        || matches!(classify(name), MemoryFileName::Typed(_))
}

/// Returns the kind of the summary with this name in a folder of this name; `None` if it is none.
fn summary_kind(dir: &str, stem: &str) -> Option<FileKind> {
    let kind = match stem.parse::<Period>().ok()?.grain() {
        Grain::Week => ("weekly", FileKind::Weekly),
        Grain::Month => ("monthly", FileKind::Monthly),
        Grain::Day => return None,
    };
    (kind.0 == dir).then_some(kind.1)
}

/// Returns those bytes of a file that are visible. In a file without a hidden one all are, whatever they look like.
pub fn visible_bytes<'a>(relative: &str, bytes: &'a [u8]) -> &'a [u8] {
    if has_hidden_file(relative) { &bytes[..joined::visible_len(bytes)] } else { bytes }
}

/// Like [`visible_bytes`], for a text.
pub fn visible_text<'a>(relative: &str, text: &'a str) -> &'a str {
    if has_hidden_file(relative) { joined::visible(text) } else { text }
}

impl Layout {
    /// Describes the root at `root` (canonical) whose memory folder is `memory_dir` (`.` for the
    /// root itself).
    pub fn new(root: impl Into<PathBuf>, memory_dir: &str) -> Self {
        let memory_dir = memory_dir.trim_matches('/');
        let memory_dir = if memory_dir == "." { "" } else { memory_dir };
        let memory_dir = memory_dir.to_owned();
        Self { root: root.into(), memory_dir, curated: Vec::new(), wisdom_block: None }
    }

    /// Names the notes that an agent or a person keeps by themselves.
    #[must_use]
    pub fn with_curated(self, curated: Vec<String>) -> Self {
        Self { curated, ..self }
    }

    /// Names the one of those notes that holds `WISDOM.md` in a block.
    #[must_use]
    pub fn with_wisdom_block(self, path: Option<String>) -> Self {
        Self { wisdom_block: path, ..self }
    }

    /// Returns the path of the file that holds `WISDOM.md` in a block, if the user wants that.
    pub fn wisdom_block(&self) -> Option<&str> {
        self.wisdom_block.as_deref()
    }

    /// Returns the path of the last written text of that block, relative to the root.
    pub fn wisdom_block_record(&self) -> String {
        format!("{PRIVATE_DIR}/wisdom-block.md")
    }

    /// Returns the notes that memoird reads and never changes but for a block, relative to the root.
    pub fn curated(&self) -> &[String] {
        &self.curated
    }

    /// Returns why a file cannot be one of those notes; `None` if it can.
    pub fn curated_refusal(&self, relative: &str) -> Option<&'static str> {
        let (dir, name) = relative.rsplit_once('/').unwrap_or(("", relative));
        if !dir.is_empty() && dir != self.memory_dir {
            return Some("is neither in the root nor in the memory folder");
        }
        match (self.kind_of(relative), classify(name)) {
            (Some(FileKind::Wisdom), _) => Some("is written by memoird"),
            (Some(FileKind::Memory), _) => Some("is a typed memory, which is read anyway"),
            (_, MemoryFileName::Log(_)) => Some("is a log"),
            _ => None,
        }
    }

    /// Returns the canonical path of the root.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the full path of a path relative to the root.
    pub fn full(&self, relative: &str) -> PathBuf {
        self.root.join(relative)
    }

    /// Returns the memory folder, relative; empty when it is the root itself.
    pub fn memory_dir(&self) -> &str {
        &self.memory_dir
    }

    fn in_memory_dir(&self, name: &str) -> String {
        if self.memory_dir.is_empty() {
            name.to_owned()
        } else {
            format!("{}/{name}", self.memory_dir)
        }
    }

    /// Returns the path by which lineage and citations name a log, a session record, or a weekly or monthly
    /// summary. Archiving a log does not change it.
    pub fn source_path(&self, stem: &Stem) -> String {
        if stem.is_session() {
            self.in_memory_dir(&format!("sessions/{stem}.md"))
        } else if let Some(period) = stem.summary_period() {
            self.summary(period)
        } else {
            self.in_memory_dir(&format!("{stem}.md"))
        }
    }

    /// Returns the folder of the archive, which has a folder for each year.
    pub fn archive_dir(&self) -> String {
        self.in_memory_dir(ARCHIVE_DIR)
    }

    /// Returns the path of a daily log in the archive; `None` for session records and summaries, which are
    /// never archived.
    pub fn archive_path(&self, stem: &Stem) -> Option<String> {
        let year = stem.date().year();
        let name = || self.in_memory_dir(&format!("{ARCHIVE_DIR}/{year}/{stem}.md"));
        (!stem.is_session() && stem.summary_period().is_none()).then(name)
    }

    /// Returns the stem of the log, session record, or summary at a path, in the archive or outside of it.
    pub fn stem_at(&self, relative: &str) -> Option<Stem> {
        let (_, name) = relative.rsplit_once('/').unwrap_or(("", relative));
        let stem = name.strip_suffix(".md")?.parse::<Stem>().ok()?;
        let archived = self.archive_path(&stem).is_some_and(|it| it == relative);
        (archived || self.source_path(&stem) == relative).then_some(stem)
    }

    /// Returns the path by which lineage and history name the file at `relative`: for an archived log, its
    /// path before it was archived.
    pub fn recorded_path(&self, relative: &str) -> String {
        self.stem_at(relative).map_or_else(|| relative.to_owned(), |stem| self.source_path(&stem))
    }

    /// Returns the path of the summary of a week or a month; for a day, its log.
    pub fn summary(&self, period: Period) -> String {
        match period.grain() {
            Grain::Day => self.in_memory_dir(&format!("{period}.md")),
            Grain::Week => self.in_memory_dir(&format!("weekly/{period}.md")),
            Grain::Month => self.in_memory_dir(&format!("monthly/{period}.md")),
        }
    }

    /// Returns the path of the folder of weekly or monthly summaries.
    pub fn summary_dir(&self, grain: Grain) -> String {
        self.in_memory_dir(if grain == Grain::Month { "monthly" } else { "weekly" })
    }

    /// Returns the path of the folder of session records.
    pub fn sessions_dir(&self) -> String {
        self.in_memory_dir("sessions")
    }

    /// Returns the path of a typed memory.
    pub fn typed_memory(&self, file_name: &str) -> String {
        self.in_memory_dir(file_name)
    }

    /// Returns the path of the index of typed memories.
    pub fn index(&self) -> String {
        self.in_memory_dir(INDEX_FILE)
    }

    /// Returns the path of the record of decisions.
    pub fn decisions(&self) -> String {
        self.in_memory_dir(DECISIONS_FILE)
    }

    /// Returns the path of `WISDOM.md`.
    pub fn wisdom(&self) -> String {
        WISDOM_FILE.to_owned()
    }

    /// Returns the path of the hidden file beside a generated file, with what is recorded about it; `None` for
    /// a file without one.
    pub fn hidden_path(&self, relative: &str) -> Option<String> {
        if !has_hidden_file(relative) {
            return None;
        }
        let (dir, name) = relative.rsplit_once('/').unwrap_or(("", relative));
        let hidden = format!(".{}.json", name.strip_suffix(".md")?);
        Some(if dir.is_empty() { hidden } else { format!("{dir}/{hidden}") })
    }

    /// Returns whether a file is the hidden one beside a generated file.
    pub fn is_hidden_file(&self, relative: &str) -> bool {
        let (dir, name) = relative.rsplit_once('/').unwrap_or(("", relative));
        let stem = name.strip_prefix('.').and_then(|it| it.strip_suffix(".json"));
        let beside = |stem: &str| match dir {
            "" => format!("{stem}.md"),
            dir => format!("{dir}/{stem}.md"),
        };
        stem.is_some_and(|it| self.hidden_path(&beside(it)).is_some_and(|it| it == relative))
    }

    /// Returns the kind of the file at a path relative to the root, by its name; `None` if it is none of
    /// memoird's files.
    pub fn kind_of(&self, relative: &str) -> Option<FileKind> {
        if relative == WISDOM_FILE {
            return Some(FileKind::Wisdom);
        }
        let within = match &self.memory_dir[..] {
            "" => relative,
            dir => relative.strip_prefix(dir)?.strip_prefix('/')?,
        };
        let Some((dir, name)) = within.rsplit_once('/') else {
            return match classify(within) {
                _ if within == INDEX_FILE => Some(FileKind::Index),
                MemoryFileName::Log(_) => Some(FileKind::Log),
                MemoryFileName::Typed(_) => Some(FileKind::Memory),
                MemoryFileName::NearMiss(_) | MemoryFileName::Other => None,
            };
        };
        let stem = name.strip_suffix(".md")?;
        match dir {
            "weekly" | "monthly" => summary_kind(dir, stem),
            "sessions" => {
                stem.parse::<Stem>().is_ok_and(|it| it.is_session()).then_some(FileKind::Session)
            }
            _ => self.stem_at(relative).map(|_| FileKind::Log),
        }
    }

    /// Returns the full path of the private folder.
    pub fn private_dir(&self) -> PathBuf {
        self.root.join(PRIVATE_DIR)
    }

    /// Returns the full path of the database.
    pub fn database(&self) -> PathBuf {
        self.private_dir().join("lineage.db")
    }

    /// Returns the full path of the search index.
    pub fn search_index(&self) -> PathBuf {
        self.private_dir().join("search.db")
    }

    /// Returns the full path of the embedding vectors.
    pub fn vectors(&self) -> PathBuf {
        self.private_dir().join("vectors.db")
    }

    /// Returns the path of the state of a running `forget`, relative to the root.
    pub fn forget_state(&self) -> String {
        format!("{PRIVATE_DIR}/forgetting.json")
    }

    /// Returns the path of the state of a running `undo`, relative to the root.
    pub fn undo_state(&self) -> String {
        format!("{PRIVATE_DIR}/undoing.json")
    }

    /// Returns the path of the state of a session that is being saved, relative to the root.
    pub fn session_save_state(&self) -> String {
        format!("{PRIVATE_DIR}/keeping.json")
    }

    /// Returns the path of the list of sessions that were logged here, relative to the root.
    pub fn logged_sessions(&self) -> String {
        format!("{PRIVATE_DIR}/sessions.txt")
    }

    /// Returns the full path of the file that the daemon locks.
    pub fn daemon_lock(&self) -> PathBuf {
        self.private_dir().join("daemon.lock")
    }

    /// Returns the full path of the file that a run locks.
    pub fn run_lock(&self) -> PathBuf {
        self.private_dir().join("pass.lock")
    }
}

/// Classifies a file name in the memory folder.
pub fn classify(name: &str) -> MemoryFileName {
    if is_temporary(name) {
        return MemoryFileName::Other;
    }
    if let Some(stem) = name.strip_suffix(".md") {
        if let Ok(stem) = stem.parse::<Stem>() {
            return if stem.is_session() || stem.is_summary() {
                MemoryFileName::NearMiss("a file of this name belongs in a folder below".to_owned())
            } else {
                MemoryFileName::Log(stem)
            };
        }
        let typed = MemoryType::ALL.into_iter().find(|kind| {
            stem.strip_prefix(kind.name())
                .is_some_and(|rest| rest.len() > 1 && rest.starts_with('_'))
        });
        if let Some(kind) = typed {
            return MemoryFileName::Typed(kind);
        }
    }
    explain_near_miss(name).map_or(MemoryFileName::Other, MemoryFileName::NearMiss)
}

/// Returns whether a name is that of a year's folder in the archive.
pub fn is_year(name: &str) -> bool {
    name.len() == 4 && name.bytes().all(|it| it.is_ascii_digit())
}

/// Returns whether editors, sync tools, or memoird use such a name while they write.
pub fn is_temporary(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let ends = [".swp", ".swx", ".tmp", ".part", ".partial", ".bak", ".crdownload"];
    name.starts_with(['.', '#'])
        || name.ends_with('~')
        || name == "4913"
        || ends.iter().any(|end| lower.ends_with(end))
}

/// Returns the name that a file should have whose name begins with a day, but not as that of a log does.
pub fn proposed_log_name(name: &str) -> Option<String> {
    match classify(name) {
        MemoryFileName::NearMiss(_) => {}
        MemoryFileName::Log(_) | MemoryFileName::Typed(_) | MemoryFileName::Other => return None,
    }
    let names = log_names::proposed_log_names(name);
    (!names.is_empty()).then(|| names.join(" or "))
}

/// Explains why a name that looks like a date is no log.
fn explain_near_miss(name: &str) -> Option<String> {
    let proposed = log_names::proposed_log_names(name);
    let lower = name.to_lowercase();
    let digits = name.chars().filter(char::is_ascii_digit).count();
    let starts_with_year = name.get(..4).is_some_and(|y| y.bytes().all(|b| b.is_ascii_digit()));
    if proposed.is_empty() && (!starts_with_year || digits < 6) {
        return None;
    }
    if lower.contains("conflict") {
        return Some(
            "a copy that a sync tool made of two versions; merge it by hand and remove it".into(),
        );
    }
    if !proposed.is_empty() {
        let name = proposed.join(" or ");
        return Some(format!("a log is named YYYY-MM-DD.md; to have it read, rename it to {name}"));
    }
    let markdown = Path::new(name).extension().is_some_and(|it| it.eq_ignore_ascii_case("md"));
    let stem = name.get(..name.len().saturating_sub(3)).filter(|_| markdown);
    let Some(stem) = stem else {
        let day = name.get(..10).is_some_and(|day| day.parse::<NaiveDate>().is_ok());
        return day.then(|| "a log is named YYYY-MM-DD.md; this has another ending".into());
    };
    let reason = match stem.get(..10) {
        Some(day) if looks_like_date(day) => {
            if day.parse::<NaiveDate>().is_err() {
                "there is no such day"
            } else {
                "a log is named YYYY-MM-DD.md or YYYY-MM-DD-topic.md"
            }
        }
        _ => "a log is named YYYY-MM-DD.md, with dashes and two digits for month and day",
    };
    Some(reason.into())
}

fn looks_like_date(text: &str) -> bool {
    text.bytes()
        .enumerate()
        .all(|(i, b)| if i == 4 || i == 7 { b == b'-' } else { b.is_ascii_digit() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, expected: &str) {
        let kind = match classify(name) {
            MemoryFileName::Log(_) => "log",
            MemoryFileName::Typed(_) => "typed",
            MemoryFileName::NearMiss(_) => "near",
            MemoryFileName::Other => "other",
        };
        assert_eq!(kind, expected, "{name}");
    }

    #[test]
    fn names_are_classified() {
        check("2026-04-02.md", "log");
        check("2026-04-02-standup.md", "log");
        check("feedback_testing.md", "typed");
        check("feedback_.md", "other");
        check("feedbacks.md", "other");
        check("notes.md", "other");
        check("MEMORY.md", "other");
        check("2026-02-30.md", "near");
        check("2026-13-01.md", "near");
        check("2026-04-02 (conflicted copy).md", "near");
        check("2026-04-02.sync-conflict-20260403-101500-ABC.md", "near");
        check("2026-04-02.txt", "near");
        check("2026-04-02.MD", "near");
        check("2026_04_02.md", "near");
        check("2026-4-2.md", "near");
        check("20260402.md", "near");
        check("02.04.2026.md", "near");
        check("04-02-2026.md", "near");
        check("10.0.0.1 router.md", "other");
        check("2026-W14.md", "near");
        check("2026-04.md", "near");
        check(".2026-04-02.md.swp", "other");
        check("2026-04-02.md~", "other");
        check("2026 plans.md", "other");
        check("2026-04-0é.md", "near");
    }

    #[track_caller]
    fn check_kind(memory_dir: &str, relative: &str, expected: Option<FileKind>) {
        assert_eq!(Layout::new("/r", memory_dir).kind_of(relative), expected, "{relative}");
    }

    #[test]
    fn paths_are_classified() {
        check_kind("memory", "WISDOM.md", Some(FileKind::Wisdom));
        check_kind("memory", "memory/MEMORY.md", Some(FileKind::Index));
        check_kind("memory", "memory/2026-04-02-call.md", Some(FileKind::Log));
        check_kind("memory", "memory/user_style.md", Some(FileKind::Memory));
        check_kind("memory", "memory/weekly/2026-W14.md", Some(FileKind::Weekly));
        check_kind("memory", "memory/monthly/2026-04.md", Some(FileKind::Monthly));
        check_kind("memory", "memory/sessions/CMEM-20260402-101500.md", Some(FileKind::Session));
        check_kind(".", "2026-04-02.md", Some(FileKind::Log));
        check_kind(".", "weekly/2026-W14.md", Some(FileKind::Weekly));
        check_kind("memory", "2026-04-02.md", None);
        check_kind("memory", "memory/weekly/2026-04.md", None);
        check_kind("memory", "memory/other/2026-04-02.md", None);
        check_kind("memory", "memory/.decisions.jsonl", None);
        check_kind("memory", ".memoird/lineage.db", None);
        check_kind("memory", "memoryx/2026-04-02.md", None);
        check_kind("memory", "memory/2026-02-30.md", None);
        check_kind("memory", "memory/archive/2026/2026-04-02-call.md", Some(FileKind::Log));
        check_kind(".", "archive/2026/2026-04-02.md", Some(FileKind::Log));
        check_kind("memory", "memory/archive/2025/2026-04-02.md", None);
        check_kind("memory", "memory/archive/2026-04-02.md", None);
        check_kind("memory", "memory/archive/2026/2026-W14.md", None);
        check_kind("memory", "archive/2026/2026-04-02.md", None);
    }

    #[test]
    fn a_flat_folder_has_no_memory_prefix() {
        let week: Period = "2026-W14".parse().unwrap();
        assert_eq!(Layout::new("/r", "memory").summary(week), "memory/weekly/2026-W14.md");
        assert_eq!(Layout::new("/r", ".").summary(week), "weekly/2026-W14.md");
        assert_eq!(Layout::new("/r", "notes/log/").index(), "notes/log/MEMORY.md");
    }
}
