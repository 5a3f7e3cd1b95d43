//! What a model may read that hands a session over: files of one project, and nothing else.
//!
//! A path is followed to where it leads before it is looked at: what lies outside of the project's folder,
//! in it only by a link, or is no text, or too long, is refused with the reason. What is shown has its
//! secrets marked, and a text that looks like an attack is not shown. Files are only read.

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

/// A file that is shown takes no more tokens than this.
const FILE_TOKENS_MAX: u64 = 12_000;
/// All that is shown takes no more than this.
const SHOWN_TOKENS_MAX: u64 = 60_000;
/// So many files are named without their content.
const REFERENCES_MAX: usize = 40;

/// A project that is read for a handoff.
#[derive(Debug)]
pub struct HandoffFileReader<'a> {
    /// The project's folder, without links.
    project: PathBuf,
    rules: &'a PrivacyRules,
    shown_left: u64,
    required_left: u64,
    /// The session's entries, and behind them what was shown of files.
    entries: Vec<SessionEntry>,
    required: Vec<(String, String)>,
    references: Vec<String>,
}

/// What was read and nominated.
#[derive(Debug)]
pub struct HandoffSelection {
    /// The entries that a summary may rest on: files among them, whose place is [`usize::MAX`].
    pub entries: Vec<SessionEntry>,
    /// Files that are embedded, each with its text.
    pub required: Vec<(String, String)>,
    /// Files that are named.
    pub references: Vec<String>,
}

impl<'a> HandoffFileReader<'a> {
    /// Begins; files that are embedded may take `budget` tokens in all. `None` where the folder is not there.
    pub fn new(
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

    /// Does what a tool is called for.
    ///
    /// # Errors
    ///
    /// Returns why not, in words for the model.
    pub fn call_tool(&mut self, tool: &str, path: &str) -> Result<String, String> {
        let (full, name) = self.resolve(path)?;
        match tool {
            "read_file" => {
                let (text, tokens) = self.read_text(&full, self.shown_left.min(FILE_TOKENS_MAX))?;
                self.shown_left -= tokens;
                let number = self.entries.len() + 1;
                let text = format!("file {name}: {text}");
                let shown = format!("[{number}] {text}");
                self.entries.push(SessionEntry {
                    priority: EntryPriority::Result,
                    text,
                    index: usize::MAX,
                });
                Ok(shown)
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

    /// Ends.
    pub fn finish(self) -> HandoffSelection {
        let Self { entries, required, references, .. } = self;
        HandoffSelection { entries, required, references }
    }

    /// Follows a path to a file of the project; returns it, and its name there.
    fn resolve(&self, path: &str) -> Result<(PathBuf, String), String> {
        let shown = truncate(path, 200);
        let full = self.project.join(path).canonicalize();
        let full = full.map_err(|_| format!("there is no file `{shown}` in the project"))?;
        let outside = || format!("`{shown}` lies outside of the project");
        let relative = full.strip_prefix(&self.project).map_err(|_| outside())?;
        if relative.components().any(|it| it.as_os_str() == ".git") {
            return Err(format!("`{shown}` belongs to git"));
        }
        let name = relative.to_str().filter(|it| !it.chars().any(char::is_control));
        let name = name.ok_or_else(|| format!("the name of `{shown}` is no plain text"))?;
        // A name may be a secret itself, and would stand in the handoff.
        if self.rules.mask_secrets(name) != name {
            return Err("its name holds a secret".to_owned());
        }
        if !full.is_file() {
            return Err(format!("`{shown}` is no file"));
        }
        Ok((full.clone(), name.to_owned()))
    }

    /// Reads a text of at most so many tokens, as it may be seen.
    fn read_text(&self, full: &Path, tokens_max: u64) -> Result<(String, u64), String> {
        let failed = |e: std::io::Error| format!("it cannot be read: {}", e.kind());
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let flags = i32::try_from(flags.bits()).unwrap_or_default();
        let mut options = File::options();
        let file = options.read(true).custom_flags(flags).open(full).map_err(failed)?;
        // A folder on the way may have become a link since it was looked at.
        if let Ok(opened) = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))
            && !opened.starts_with(&self.project)
        {
            return Err("it lies outside of the project".to_owned());
        }
        let found = file.metadata().map_err(failed)?;
        if !found.is_file() {
            return Err("it is no file".to_owned());
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
        let text = text.ok_or("it is no text")?;
        if !quarantine::concerns(&text, TextOrigin::External).is_empty() {
            return Err("it holds text that looks like an attack on a model".to_owned());
        }
        Ok((self.rules.mask_secrets(&text).into_owned(), tokens))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[expect(clippy::disallowed_methods, reason = "a project that a test makes")]
    #[test]
    fn nothing_outside_of_the_project_is_read() {
        let place = tempfile::tempdir().unwrap();
        let project = place.path().join("p");
        fs::create_dir_all(project.join("src")).unwrap();
        fs::create_dir_all(project.join(".git")).unwrap();
        fs::write(project.join(".git/config"), "x").unwrap();
        fs::write(project.join("src/a.rs"), "fn a() {}\n").unwrap();
        fs::write(project.join("b.bin"), b"a\0b").unwrap();
        fs::write(project.join("long.txt"), "word ".repeat(20_000)).unwrap();
        fs::write(place.path().join("out.txt"), "out").unwrap();
        symlink(place.path().join("out.txt"), project.join("leads-out")).unwrap();
        symlink(place.path(), project.join("up")).unwrap();
        symlink("src/a.rs", project.join("leads-in")).unwrap();
        let rules = PrivacyRules::default();
        let mut reading = HandoffFileReader::new(&project, &rules, Vec::new(), 20).unwrap();
        for (path, why) in [
            ("../out.txt", "outside"),
            ("/etc/passwd", "outside"),
            ("leads-out", "outside"),
            ("up/out.txt", "outside"),
            ("src/../../out.txt", "outside"),
            ("nowhere", "no file"),
            ("src", "is no file"),
            (".git/config", "belongs to git"),
            ("b.bin", "no text"),
            ("long.txt", "tokens"),
        ] {
            let error = reading.call_tool("read_file", path).unwrap_err();
            assert!(error.contains(why), "{path}: {error}");
        }
        assert_eq!(
            reading.call_tool("read_file", "leads-in").unwrap(),
            "[1] file src/a.rs: fn a() {}\n"
        );
        let told = reading.call_tool("mark_read_required", "src/a.rs").unwrap();
        assert!(told.contains("18 tokens are left"), "{told}");
        assert!(reading.call_tool("add_reference", "leads-in").is_err(), "it is embedded");
        assert!(reading.call_tool("add_reference", "long.txt").is_ok());
        let done = reading.finish();
        assert_eq!((done.required.len(), &done.references[..]), (1, &["long.txt".to_owned()][..]));
    }
}
