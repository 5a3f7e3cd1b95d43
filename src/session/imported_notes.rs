//! Notes that other programs have kept: read as they are, kept byte for byte, and told in the daily log.
//!
//! A file becomes a record, as a session does, and its lines go to the log of its day, each with the line of the
//! record that it rests on: so they are the words of an agent, and a trace leads to the file as it was. What is
//! quoted or stands in code is in the record alone. A line that stands in the log is not written again, so the same
//! folder twice changes nothing, and a file that has grown brings in what is new.

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
        frontmatter, log,
    },
    store::fs::{
        lock::WriteLock,
        vault::{FILE_BYTES_MAX, VaultError},
    },
};

/// A line is cut after so many characters; the record has it whole.
const CHARS_MAX: usize = 600;
/// So many logs are read to see what stands in them.
const LOGS_MAX: usize = 100_000;

/// How what is said of a file begins.
const IMPORTED: &str = "Imported from ";

/// Who has kept notes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotesProgram {
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
}

/// A file of notes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedNote {
    /// Its name in the folder that is brought in.
    pub name: String,
    /// Its text.
    pub text: String,
    /// The day that it belongs to.
    pub date: NaiveDate,
}

impl NotesProgram {
    /// Returns the name that people call it by.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenClaw => "openclaw",
            Self::Recall => "recall",
            Self::Teammates => "teammates",
            Self::Hipocampus => "hipocampus",
            Self::BasicMemory => "basic-memory",
        }
    }

    /// Returns whether a file is one of its notes. What it made of others (weeks, months, an index) is not: it would
    /// be told twice.
    pub fn is_note(self, path: &Path) -> bool {
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
            Self::BasicMemory => !folders.iter().any(|it| it.starts_with('.')),
        }
    }
}

/// Returns the day that a file says it belongs to: its name, or its frontmatter.
pub fn note_date(name: &str, text: &str) -> Option<NaiveDate> {
    let stem = name.rsplit('/').next().and_then(|it| it.strip_suffix(".md"))?;
    leading_date(stem).or_else(|| {
        let yaml = frontmatter::split(text).yaml?;
        let keys = ["updated", "last_updated", "modified", "date", "created", "created_at"];
        keys.iter().find_map(|key| {
            let line = yaml.lines().find_map(|it| it.strip_prefix(key)?.strip_prefix(':'))?;
            leading_date(line.trim().trim_matches(['"', '\'']))
        })
    })
}

/// Returns the date that a text begins with.
fn leading_date(text: &str) -> Option<NaiveDate> {
    let date = text.get(..10)?;
    // `2026-03-281` is none.
    let ends = text[10..].chars().next().is_none_or(|it| !it.is_ascii_digit());
    NaiveDate::parse_from_str(date, "%Y-%m-%d").ok().filter(|_| ends)
}

/// Returns the lines of a note that say something of its own, each with its number in the file.
pub fn note_lines(text: &str) -> Vec<(usize, String)> {
    let body = frontmatter::split(text).body(text);
    let before = text.lines().count() - body.lines().count();
    let mut fence: Option<&str> = None;
    let mut said = Vec::new();
    for (n, line) in body.lines().enumerate() {
        let plain = line.trim();
        let mark = ["```", "~~~"].into_iter().find(|it| plain.starts_with(it));
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            (Some(_), _) => {}
            (None, None) => {
                let is_rule = plain.chars().all(|it| "-*_= |:".contains(it));
                if is_rule || plain.starts_with(['#', '>', '<']) {
                    continue;
                }
                let words = plain.trim_start_matches(['-', '*', '+']).trim_start();
                said.push((before + n + 1, truncate(&one_line(words), CHARS_MAX)));
            }
        }
    }
    said
}

/// What stands in the logs already.
#[derive(Debug, Default)]
pub struct LoggedNotes {
    /// The lines of each log, by its path.
    logs: HashMap<String, HashSet<String>>,
    /// The logs that a file was brought into, by what is said of it there.
    imports: HashMap<String, Vec<String>>,
}

impl LoggedNotes {
    fn add_log(&mut self, path: &str, text: &str) {
        let lines = self.logs.entry(path.to_owned()).or_default();
        for line in text.lines() {
            lines.insert(without_markup(line));
            let head = line.find(IMPORTED).and_then(|at| {
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
    /// Reads what stands in the logs.
    ///
    /// # Errors
    ///
    /// Returns why one cannot be read.
    pub fn logged_notes(&self) -> Result<LoggedNotes, SaveError> {
        let layout = self.vault.layout();
        let mut standing = LoggedNotes::default();
        for path in self.vault.files_below(layout.memory_dir(), LOGS_MAX).0 {
            let stem = layout.stem_at(&path);
            // A log is named by its day alone.
            if stem.is_none_or(|it| leading_date(it.as_str()).is_none()) {
                continue;
            }
            let text = match self.vault.read_text(&path) {
                Err(error) if error.is_read_failure() => return Err(error.into()),
                Ok(Some(text)) => text,
                _ => continue,
            };
            standing.add_log(&path, &text);
        }
        Ok(standing)
    }

    /// Returns the lines of a note that are not in the logs yet, each with its number in the file.
    pub fn new_lines(
        &self,
        of: NotesProgram,
        note: &ImportedNote,
        standing: &LoggedNotes,
    ) -> Vec<(usize, String)> {
        let target = self.vault.log_path(&Stem::day(note.date));
        let before =
            standing.imports.get(&import_header(of, &note.name)).map_or(&[][..], |it| &it[..]);
        let paths: Vec<&str> = before.iter().chain([&target]).map(|it| &it[..]).collect();
        let mut seen = HashSet::new();
        let written =
            note_lines(&note.text).into_iter().map(|(n, it)| (n, self.rules.sanitize_output(&it)));
        written
            .filter(|(_, it)| !standing.contains_line(&paths, it) && seen.insert(it.clone()))
            .collect()
    }

    /// Brings a note in; returns its record, and how many lines the log has more.
    ///
    /// # Errors
    ///
    /// Returns why it is not brought in, or not whole: the same again goes on with it.
    pub fn import_note(
        &self,
        of: NotesProgram,
        note: &ImportedNote,
        standing: &mut LoggedNotes,
    ) -> Result<(String, usize), SaveError> {
        if self.new_lines(of, note, standing).is_empty() {
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
        // Somebody may have brought it in meanwhile.
        let text = self.vault.read_text(&path)?.unwrap_or_default();
        standing.add_log(&path, &text);
        let news = self.new_lines(of, note, standing);
        if news.is_empty() {
            return Err(SaveError::NothingNew);
        }
        let mut told = format!("{} [{}]", import_header(of, &note.name), cited(1));
        for (number, words) in &news {
            told.push_str(&["\n- ", words, " [", &cited(*number), "]"].concat());
        }
        let entry = log::format_entry(NaiveTime::MIN, &told).ok_or(SaveError::NothingNew)?;
        if (text.len() + entry.len()) as u64 > FILE_BYTES_MAX {
            return Err(VaultError::TooLarge { path: path.into() }.into());
        }
        self.vault.append(&lock, &path, &log::new_log_header(note.date), &entry, false)?;
        standing.add_log(&path, &entry);
        Ok((id, news.len()))
    }
}

/// Returns the line that says where an entry comes from.
fn import_header(of: NotesProgram, name: &str) -> String {
    format!("{IMPORTED}{}, `{name}`", of.name())
}

/// Returns a line of a log without its bullet and what it rests on.
fn without_markup(line: &str) -> String {
    let words = line.trim().trim_start_matches(['-', '*', '+']).trim_start();
    let words =
        words.rsplit_once(" [CMEM-").filter(|it| it.1.ends_with(']')).map_or(words, |it| it.0);
    words.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_program_s_own_notes_are_read_and_not_what_it_made_of_them() {
        let all = |of: NotesProgram, yes: &[&str], no: &[&str]| {
            for it in yes {
                assert!(of.is_note(Path::new(it)), "{of:?}: {it}");
            }
            for it in no {
                assert!(!of.is_note(Path::new(it)), "{of:?}: {it}");
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
    fn what_is_quoted_or_code_stays_in_the_record() {
        let text = "---\ntitle: A\ncreated: 2026-03-05\n---\n# A\n\n- [decision] JWT #auth\n> quoted\n\
                    ```\ncode\n```\n\n---\nPlain words.\n";
        let expected = [(7, "[decision] JWT #auth".to_owned()), (14, "Plain words.".to_owned())];
        assert_eq!(note_lines(text), expected);
        let date = NaiveDate::from_ymd_opt(2026, 3, 5);
        assert_eq!(note_date("notes/a.md", text), date);
        assert_eq!(note_date("memory/2026-03-05-x.md", ""), date);
        assert_eq!(note_date("a.md", "words"), None);
    }
}
