//! Imports notes of other programs: each file becomes a record byte for byte, and its lines go to the
//! daily log. The blocks that memoird keeps in such a file are blank lines in both.
//!
//! The lines are added to the log of the note's day, each with a citation of its line in the record.
//! So they count as text of an agent, or as a quote if the note names an external origin, and a trace
//! leads to the original file. Quotes and code are only in the record. A line that the log already contains is not written again, so importing the same
//! folder twice changes nothing, and a file that has grown adds only its new lines.

use std::{
    collections::{HashMap, HashSet},
    path::{Component, Path},
};

use chrono::{NaiveDate, NaiveTime};

use super::{
    cited_summary::one_line,
    save::{SaveError, SessionStore},
    transcript::truncate,
};
use crate::{
    memory::{
        address::{Citation, Stem},
        frontmatter,
        log::{self, DailyLog, TextOrigin},
        markdown::{self, LineKind},
        own_words,
    },
    store::fs::{
        lock::WriteLock,
        vault::{FILE_BYTES_MAX, VaultError},
    },
};

/// The longest line in the log, in characters; the record has the whole line.
const CHARS_MAX: usize = 600;
/// The most logs that are read to find existing lines.
const LOGS_MAX: usize = 100_000;

/// A program whose notes can be imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotesProgram {
    /// `MEMORY.md`, `USER.md`, `memory/DATE.md`, `memory/DATE-name.md` in a workspace.
    OpenClaw,
    /// `WISDOM.md`, `memory/DATE.md`, `memory/TYPE_name.md`.
    Recall,
    /// The same in `.teammates/NAME/`.
    Teammates,
    /// `MEMORY.md`, `USER.md`, `memory/DATE.md`, `knowledge/*.md`.
    Hipocampus,
    /// Notes with frontmatter, in folders.
    BasicMemory,
    /// What Claude Code remembers of a project: one statement in each file, and `MEMORY.md`.
    ClaudeMemory,
}

/// A file of notes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ImportedNote {
    /// Its path in the imported folder.
    pub name: String,
    pub text: String,
    /// The day of the log that it is added to.
    pub date: NaiveDate,
}

impl NotesProgram {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::OpenClaw => "openclaw",
            Self::Recall => "recall",
            Self::Teammates => "teammates",
            Self::Hipocampus => "hipocampus",
            Self::BasicMemory => "basic-memory",
            Self::ClaudeMemory => "claude-memory",
        }
    }

    /// Returns whether a file is one of its notes. Files that it derived from notes (weeks, months, an
    /// index) are not, because their content would be imported twice.
    pub(crate) fn is_note(self, path: &Path) -> bool {
        let parts: Vec<&str> = path
            .components()
            .filter_map(|it| match it {
                Component::Normal(name) => name.to_str(),
                _ => None,
            })
            .collect();
        let Some((name, folders)) = parts.split_last() else { return false };
        let Some(stem) = name.strip_suffix(".md") else { return false };
        let is_in = |folder: &str| folders.last() == Some(&folder);
        let is_dated = leading_date(stem).is_some();
        match self {
            Self::OpenClaw => {
                (is_in("memory") && is_dated)
                    || matches!(stem, "MEMORY" | "USER") && !folders.contains(&"memory")
            }
            Self::Recall | Self::Teammates => {
                (is_in("memory") && !matches!(stem, "README" | "INDEX")) || stem == "WISDOM"
            }
            Self::Hipocampus => {
                (is_in("memory") && is_dated)
                    || folders.contains(&"knowledge")
                    || matches!(stem, "MEMORY" | "USER") && !folders.contains(&"memory")
            }
            Self::BasicMemory | Self::ClaudeMemory => !folders.iter().any(|it| it.starts_with('.')),
        }
    }
}

/// Returns the day in the name of a file, else in its frontmatter.
pub(crate) fn note_date(name: &str, text: &str) -> Option<NaiveDate> {
    let stem = name.rsplit('/').next().and_then(|it| it.strip_suffix(".md"))?;
    leading_date(stem).or_else(|| {
        let yaml = frontmatter::split(text).yaml?;
        let keys = ["updated", "last_updated", "modified", "date", "created", "created_at"];
        keys.iter().find_map(|key| {
            // Claude Code writes it below `metadata`.
            let mut lines = yaml.lines().map(str::trim_start);
            let line = lines.find_map(|it| it.strip_prefix(key)?.strip_prefix(':'))?;
            leading_date(line.trim().trim_matches(['"', '\'']))
        })
    })
}

/// Returns the date at the start of a text.
fn leading_date(text: &str) -> Option<NaiveDate> {
    let date = text.get(..10)?;
    // `2026-03-281` is not a date.
    let ends = text[10..].chars().next().is_none_or(|it| !it.is_ascii_digit());
    NaiveDate::parse_from_str(date, "%Y-%m-%d").ok().filter(|_| ends)
}

/// Returns the lines of a note that are imported, each with its number in the file: its writer's own words.
pub(crate) fn note_lines(text: &str) -> Vec<(usize, String)> {
    let body = frontmatter::split(text).body(text);
    let before = text.lines().count() - body.lines().count();
    let kinds = markdown::classify_lines(body.lines());
    let lines: Vec<(&str, LineKind)> = body.lines().zip(kinds).collect();
    let mut found = Vec::new();
    for (n, line) in own_words::own_lines(&lines).iter().enumerate() {
        let plain = line.trim();
        let is_rule = plain.chars().all(|it| "-*_= |:".contains(it));
        if !is_rule && !plain.starts_with(['#', '<']) {
            // Not the stars of a label: `**Why:** it is tested`.
            let item = plain.strip_prefix(['-', '*', '+']).filter(|it| it.starts_with(' '));
            let words = item.unwrap_or(plain).trim_start();
            found.push((before + n + 1, truncate(&one_line(words), CHARS_MAX)));
        }
    }
    found
}

/// Returns whether a line of an index only names a file: `[Title](file.md) — what it says`.
fn is_pointer(line: &str) -> bool {
    let target = line.strip_prefix('[').and_then(|it| it.split_once("](")?.1.split_once(')'));
    target.is_some_and(|it| it.0.strip_suffix(".md").is_some())
}

/// The lines that are in the logs already.
#[derive(Debug, Default)]
pub(crate) struct LoggedNotes {
    /// The lines of each log, by its path.
    logs: HashMap<String, HashSet<String>>,
    /// The logs with lines of a file, by the header of its import.
    imports: HashMap<String, Vec<String>>,
}

impl LoggedNotes {
    fn add_log(&mut self, path: &str, text: &str) {
        let lines = self.logs.entry(path.to_owned()).or_default();
        for line in text.lines() {
            lines.insert(without_markup(line));
            let head = line.find(log::IMPORTED_TITLE).and_then(|at| {
                let from = &line[at..];
                let end = from.match_indices('`').nth(1)?.0;
                from.get(..=end)
            });
            if let Some(head) = head {
                self.imports.entry(head.to_owned()).or_default().push(path.to_owned());
            }
        }
    }

    fn contains_line(&self, paths: &[&str], line: &str) -> bool {
        paths.iter().filter_map(|it| self.logs.get(*it)).any(|it| it.contains(line))
    }
}

impl SessionStore<'_> {
    /// Reads the lines of all logs.
    pub(crate) fn logged_notes(&self) -> Result<LoggedNotes, SaveError> {
        let layout = self.vault.layout();
        let mut logged = LoggedNotes::default();
        for path in self.vault.files_below(layout.memory_dir(), LOGS_MAX).0 {
            let stem = layout.stem_at(&path);
            // Only logs have names that start with a date.
            if stem.is_none_or(|it| leading_date(it.as_str()).is_none()) {
                continue;
            }
            let text = match self.vault.read_unmerged_text(&path) {
                Err(error) if error.is_read_failure() => return Err(error.into()),
                Ok(Some(text)) => text,
                _ => continue,
            };
            logged.add_log(&path, &text);
        }
        Ok(logged)
    }

    /// Returns the lines of a note that are not in the logs yet, each with its number in the file.
    pub(crate) fn new_lines(
        &self,
        program: NotesProgram,
        note: &ImportedNote,
        logged: &LoggedNotes,
    ) -> Vec<(usize, String)> {
        let target = self.vault.log_path(&Stem::day(note.date));
        let before =
            logged.imports.get(&import_header(program, &note.name)).map_or(&[][..], |it| &it[..]);
        let paths: Vec<&str> = before.iter().chain([&target]).map(|it| &it[..]).collect();
        let mut seen = HashSet::new();
        let is_index = program == NotesProgram::ClaudeMemory && note.name.ends_with("MEMORY.md");
        let own = note_lines(&note.text).into_iter().filter(|it| !(is_index && is_pointer(&it.1)));
        let written = own.map(|(n, it)| (n, self.rules.sanitize_output(&it)));
        written
            .filter(|(_, it)| {
                !logged.contains_line(&paths, &without_markup(it))
                    && !self.rules.is_forgotten_everywhere(it)
                    && seen.insert(it.clone())
            })
            .collect()
    }

    /// Imports a note; returns the id of its record, and how many lines were added to the log.
    /// After a failure, importing it again continues.
    pub(crate) fn import_note(
        &self,
        program: NotesProgram,
        note: &ImportedNote,
        logged: &mut LoggedNotes,
    ) -> Result<(String, usize), SaveError> {
        if self.new_lines(program, note, logged).is_empty() {
            return Err(SaveError::NothingNew);
        }
        let (id, path, _) = self.import(&note.text)?;
        let stem: Stem = id.parse().map_err(|_| SaveError::NothingNew)?;
        let record = self.vault.read_text(&path)?.unwrap_or_default();
        let before = record.lines().count().saturating_sub(note.text.lines().count());
        let cited = |line: usize| {
            let line = u32::try_from(before + line).unwrap_or(u32::MAX);
            Citation::single_line(stem.clone(), line).to_string()
        };
        let lock = WriteLock::acquire(self.vault.layout().root())?;
        let path = self.vault.log_path(&Stem::day(note.date));
        // Another process may have imported it meanwhile.
        let text = self.vault.read_unmerged_text(&path)?.unwrap_or_default();
        logged.add_log(&path, &text);
        let new_lines = self.new_lines(program, note, logged);
        if new_lines.is_empty() {
            return Err(SaveError::NothingNew);
        }
        let mut entry_text = format!("{} [{}]", import_header(program, &note.name), cited(1));
        // The origin that a note names never rises.
        let mark = if is_external_text(&note.text) { "\n> " } else { "\n- " };
        for (number, words) in &new_lines {
            entry_text.push_str(&[mark, words, " [", &cited(*number), "]"].concat());
        }
        let entry = log::format_entry(NaiveTime::MIN, &entry_text).ok_or(SaveError::NothingNew)?;
        if (text.len() + entry.len()) as u64 > FILE_BYTES_MAX {
            return Err(VaultError::TooLarge { path: path.into() }.into());
        }
        self.vault.append(&lock, &path, &log::new_log_header(note.date), &entry, false)?;
        logged.add_log(&path, &entry);
        Ok((id, new_lines.len()))
    }
}

/// Returns whether a text says in its frontmatter that it was written by others.
pub(super) fn is_external_text(text: &str) -> bool {
    // The name of a log does not matter here.
    let log = DailyLog::parse(Stem::day(NaiveDate::MIN), text.as_bytes());
    log.is_ok_and(|it| it.origin == Some(TextOrigin::External))
}

/// Returns the line that names the source of an entry.
fn import_header(program: NotesProgram, name: &str) -> String {
    format!("{}{}, `{name}`", log::IMPORTED_TITLE, program.name())
}

/// Returns a line without its bullet, the stars of a label and its citation.
fn without_markup(line: &str) -> String {
    let words = line.trim().trim_start_matches(['-', '*', '+', '>', ' ']);
    let words =
        words.rsplit_once(" [CMEM-").filter(|it| it.1.ends_with(']')).map_or(words, |it| it.0);
    words.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_of_each_program_are_recognized_and_derived_files_are_not() {
        let all = |program: NotesProgram, yes: &[&str], no: &[&str]| {
            for it in yes {
                assert!(program.is_note(Path::new(it)), "{program:?}: {it}");
            }
            for it in no {
                assert!(!program.is_note(Path::new(it)), "{program:?}: {it}");
            }
        };
        all(
            NotesProgram::OpenClaw,
            &["MEMORY.md", "USER.md", "memory/2026-03-28.md", "memory/2026-03-28-retries.md"],
            &["SOUL.md", "AGENTS.md", "memory/2026-03-28.json", "memory/topics/a.md", "DREAMS.md"],
        );
        all(
            NotesProgram::Teammates,
            &["beacon/memory/2026-03-13.md", "beacon/WISDOM.md", "beacon/memory/decision_a.md"],
            &["beacon/SOUL.md", "beacon/memory/weekly/2026-W11.md", "PROTOCOL.md"],
        );
        all(
            NotesProgram::Hipocampus,
            &["MEMORY.md", "memory/2026-03-15.md", "knowledge/legal-750.md"],
            &["memory/ROOT.md", "memory/daily/2026-03-15.md", "memory/weekly/2026-W11.md"],
        );
        all(
            NotesProgram::BasicMemory,
            &["notes/coffee.md"],
            &[".basic-memory/x.md", "notes/a.txt"],
        );
        all(NotesProgram::Recall, &["memory/2026-03-13.md"], &["memory/monthly/2026-03.md"]);
    }

    #[test]
    fn quotes_and_code_are_not_imported_into_the_log() {
        let text = "---\ntitle: A\ncreated: 2026-03-05\n---\n# A\n\n- [decision] JWT #auth\n> quoted\n\
                    ```\ncode\n```\n\n---\nPlain words.\n";
        let expected = [(7, "[decision] JWT #auth".to_owned()), (14, "Plain words.".to_owned())];
        assert_eq!(note_lines(text), expected);
        let more = "a:\n\n    code\n\n- ![image](x) ~~gone~~\n- ~~gone~~ b\n- > c\n  d\n";
        assert_eq!(note_lines(more), [(1, "a:".to_owned()), (6, "b".to_owned())]);
        assert!(is_external_text("---\norigin: web\n---\na") && !is_external_text("a"));
        let date = NaiveDate::from_ymd_opt(2026, 3, 5);
        assert_eq!(note_date("notes/a.md", text), date);
        assert_eq!(note_date("memory/2026-03-05-x.md", ""), date);
        assert_eq!(note_date("a.md", "words"), None);
        let text =
            "---\nname: a\nmetadata:\n  type: user\n  modified: 2026-03-05T21:08:34Z\n---\nb\n";
        assert_eq!(note_date("a.md", text), date);
        assert!(is_pointer("[Datum](datum-names.md) — by datum"));
        assert!(!is_pointer("[decision] By datum (see a.md)") && !is_pointer("[a](b.png)"));
    }
}
