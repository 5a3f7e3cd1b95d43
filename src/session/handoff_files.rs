//! The files that a model may read for a handoff: those of one project, and nothing else.
//!
//! A path is resolved before it is checked. A file outside the project's folder, also through a link,
//! is refused with the reason, and so is one that is not text or too long. Secrets are masked, and
//! text that looks like an attack is not shown. Files are only read.

use std::{
    fs::{self, File},
    io::Read as _,
    os::{fd::AsRawFd as _, unix::fs::OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use rustix::fs::OFlags;

use super::{micro_compaction, transcript::truncate};
use crate::{
    engine::model::session::{EntryPriority, SessionEntry},
    memory::log::TextOrigin,
    privacy::{PrivacyRules, quarantine},
};

/// The longest file that is shown, in tokens.
const FILE_TOKENS_MAX: u64 = 12_000;
/// The total size of the files shown, in tokens.
const SHOWN_TOKENS_MAX: u64 = 60_000;
/// The most files that are listed without content.
const REFERENCES_MAX: usize = 40;

/// Reads files of a project for a handoff.
#[derive(Debug)]
pub(crate) struct HandoffFileReader<'a> {
    /// The project's folder, without links.
    project: PathBuf,
    rules: &'a PrivacyRules,
    shown_left: u64,
    required_left: u64,
    /// The session's entries, followed by the files that were shown.
    entries: Vec<SessionEntry>,
    required: Vec<(String, String)>,
    references: Vec<String>,
}

/// The files that the model chose, and what it has read.
#[derive(Debug)]
pub(crate) struct HandoffSelection {
    /// The entries that the summary may cite; the index of a file is [`usize::MAX`].
    pub entries: Vec<SessionEntry>,
    /// Files that are embedded: name and text.
    pub required: Vec<(String, String)>,
    /// Files that are only listed.
    pub references: Vec<String>,
}

impl<'a> HandoffFileReader<'a> {
    /// Returns a reader; embedded files may have `budget` tokens in total. `None` if the folder does not
    /// exist.
    pub(crate) fn new(
        project: &Path,
        rules: &'a PrivacyRules,
        entries: Vec<SessionEntry>,
        budget: u64,
    ) -> Option<Self> {
        Some(Self {
            project: project.canonicalize().ok().filter(|it| it.is_dir())?,
            rules,
            shown_left: SHOWN_TOKENS_MAX,
            required_left: budget,
            entries,
            required: Vec::new(),
            references: Vec::new(),
        })
    }

    /// Executes a tool call and returns the text for the model.
    pub(crate) fn call_tool(&mut self, tool: &str, path: &str) -> Result<String, String> {
        let (full, name) = self.resolve(path)?;
        match tool {
            "read_file" => {
                let (text, tokens) = self.read_text(&full, self.shown_left.min(FILE_TOKENS_MAX))?;
                self.shown_left -= tokens;
                let number = self.entries.len() + 1;
                let text = format!("file {name}: {text}");
                let answer = format!("[{number}] {text}");
                self.entries.push(SessionEntry {
                    priority: EntryPriority::Result,
                    text,
                    index: usize::MAX,
                });
                Ok(answer)
            }
            "mark_read_required" => {
                if self.required.iter().any(|it| it.0 == name) {
                    return Err("it is in the handoff already".to_owned());
                }
                let (text, tokens) = self.read_text(&full, self.required_left)?;
                self.required_left -= tokens;
                self.references.retain(|it| *it != name);
                self.required.push((name, text));
                Ok(format!("It goes with the handoff; {} tokens are left.", self.required_left))
            }
            _ => {
                let is_known =
                    self.required.iter().any(|it| it.0 == name) || self.references.contains(&name);
                if is_known {
                    return Err("it is in the handoff already".to_owned());
                }
                if self.references.len() >= REFERENCES_MAX {
                    return Err(format!("{REFERENCES_MAX} files are named already"));
                }
                self.references.push(name);
                Ok("It is named in the handoff.".to_owned())
            }
        }
    }

    pub(crate) fn finish(self) -> HandoffSelection {
        let Self { entries, required, references, .. } = self;
        HandoffSelection { entries, required, references }
    }

    /// Resolves a path to a file of the project; returns it, and its name relative to the project.
    fn resolve(&self, path: &str) -> Result<(PathBuf, String), String> {
        let shown = truncate(path, 200);
        let full = self.project.join(path).canonicalize();
        let full = full.map_err(|_| format!("there is no file `{shown}` in the project"))?;
        let outside = || format!("`{shown}` is outside the project");
        let relative = full.strip_prefix(&self.project).map_err(|_| outside())?;
        if relative.components().any(|it| it.as_os_str() == ".git") {
            return Err(format!("`{shown}` belongs to git"));
        }
        let name = relative.to_str().filter(|it| !it.chars().any(char::is_control));
        let name = name.ok_or_else(|| format!("the name of `{shown}` is not plain text"))?;
        // The name appears in the handoff and may contain a secret.
        if self.rules.mask_secrets(name) != name {
            return Err("its name contains a secret".to_owned());
        }
        if !full.is_file() {
            return Err(format!("`{shown}` is not a file"));
        }
        Ok((full.clone(), name.to_owned()))
    }

    /// Returns the sanitized text of a file with at most `tokens_max` tokens, and its tokens.
    fn read_text(&self, full: &Path, tokens_max: u64) -> Result<(String, u64), String> {
        let failed = |e: std::io::Error| format!("it cannot be read: {}", e.kind());
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let flags = i32::try_from(flags.bits()).unwrap_or_default();
        let mut options = File::options();
        let file = options.read(true).custom_flags(flags).open(full).map_err(failed)?;
        // A parent folder may have been replaced by a link after the check.
        if let Ok(opened) = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))
            && !opened.starts_with(&self.project)
        {
            return Err("it is outside the project".to_owned());
        }
        let found = file.metadata().map_err(failed)?;
        if !found.is_file() {
            return Err("it is not a file".to_owned());
        }
        let mut bytes = Vec::new();
        // It may grow while it is read.
        let limit = tokens_max.saturating_mul(4).saturating_add(4);
        file.take(limit).read_to_end(&mut bytes).map_err(failed)?;
        let size = found.len().max(bytes.len() as u64);
        let tokens = micro_compaction::estimate_tokens(size);
        if tokens > tokens_max {
            return Err(format!(
                "it takes about {tokens} tokens, and {tokens_max} are left; name it with add_reference"
            ));
        }
        let text = String::from_utf8(bytes).ok().filter(|it| !it.contains('\0'));
        let text = text.ok_or("it is not text")?;
        if !quarantine::concerns(&text, TextOrigin::External).is_empty() {
            return Err("it contains text that looks like an attack on a model".to_owned());
        }
        Ok((self.rules.mask_secrets(&text).into_owned(), tokens))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[expect(clippy::disallowed_methods, reason = "the test creates a project")]
    #[test]
    fn nothing_outside_of_the_project_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let project = folder.path().join("p");
        fs::create_dir_all(project.join("src")).unwrap();
        fs::create_dir_all(project.join(".git")).unwrap();
        fs::write(project.join(".git/config"), "x").unwrap();
        fs::write(project.join("src/a.rs"), "fn a() {}\n").unwrap();
        fs::write(project.join("b.bin"), b"a\0b").unwrap();
        fs::write(project.join("long.txt"), "word ".repeat(20_000)).unwrap();
        fs::write(folder.path().join("out.txt"), "out").unwrap();
        symlink(folder.path().join("out.txt"), project.join("leads-out")).unwrap();
        symlink(folder.path(), project.join("up")).unwrap();
        symlink("src/a.rs", project.join("leads-in")).unwrap();
        let rules = PrivacyRules::default();
        let mut reader = HandoffFileReader::new(&project, &rules, Vec::new(), 20).unwrap();
        for (path, why) in [
            ("../out.txt", "outside"),
            ("/etc/passwd", "outside"),
            ("leads-out", "outside"),
            ("up/out.txt", "outside"),
            ("src/../../out.txt", "outside"),
            ("nowhere", "no file"),
            ("src", "is not a file"),
            (".git/config", "belongs to git"),
            ("b.bin", "not text"),
            ("long.txt", "tokens"),
        ] {
            let error = reader.call_tool("read_file", path).unwrap_err();
            assert!(error.contains(why), "{path}: {error}");
        }
        assert_eq!(
            reader.call_tool("read_file", "leads-in").unwrap(),
            "[1] file src/a.rs: fn a() {}\n"
        );
        let answer = reader.call_tool("mark_read_required", "src/a.rs").unwrap();
        assert!(answer.contains("18 tokens are left"), "{answer}");
        assert!(reader.call_tool("add_reference", "leads-in").is_err(), "it is embedded");
        assert!(reader.call_tool("add_reference", "long.txt").is_ok());
        let done = reader.finish();
        assert_eq!((done.required.len(), &done.references[..]), (1, &["long.txt".to_owned()][..]));
    }
}
