//! The decisions file `.decisions.jsonl`: its key, new lines, and its replacement.

use crate::compaction::{context::RunContext, error::CompactionError, safety_copies};
use crate::{
    memory::{
        decision::{Decision, Decisions},
        decision_merge::missing_lines,
        hash::ContentHash,
    },
    store::fs::{
        lock::WriteLock,
        private_folder,
        vault::{Vault, VaultError},
    },
};

pub(crate) struct DecisionFile<'c, 'a> {
    context: &'c RunContext<'a>,
}

impl<'c, 'a> DecisionFile<'c, 'a> {
    pub(crate) fn new(context: &'c RunContext<'a>) -> Self {
        Self { context }
    }

    /// Returns the decisions with a key; creates the key before the first decision.
    pub(crate) fn create_key(&self) -> Result<Decisions, CompactionError> {
        let path = self.context.vault.layout().decisions();
        let text = self.context.vault.read_text(&path)?;
        let known = text.as_deref().map(Decisions::parse).unwrap_or_default();
        if known.has_key() {
            return Ok(known);
        }
        let fresh = new_key()?;
        // A file that only records undone work has no key yet; the key is appended.
        let head = fresh.header_line();
        self.context.vault.append(
            &self.context.write_lock()?,
            &path,
            &head,
            text.as_ref().map_or("", |_| &head),
            true,
        )?;
        safety_copies::update_decisions_copy(self.context.vault)?;
        Ok(Decisions::parse(&format!("{}\n{head}", text.unwrap_or_default())))
    }

    pub(crate) fn append(&self, made: &[Decision]) -> Result<(), CompactionError> {
        if made.is_empty() {
            return Ok(());
        }
        let path = self.context.vault.layout().decisions();
        let known = self.context.vault.read_text(&path)?;
        let newest = known.and_then(|it| Decisions::parse(&it).newest());
        // Their times order them, and the clock of another machine may be ahead.
        let print = |it: &Decision| {
            let at = newest.map_or(it.at, |newest| newest.max(it.at));
            Decision { at, ..it.clone() }.print()
        };
        let text: String = made.iter().map(print).collect();
        // `create_key` made the file, so an empty head is never written.
        self.context.vault.append(&self.context.write_lock()?, &path, "", &text, true)?;
        safety_copies::update_decisions_copy(self.context.vault)
    }

    /// Adds the lines that the file of another machine lacks.
    pub(crate) fn merge_copy(&self) -> Result<(), CompactionError> {
        let layout = self.context.vault.layout();
        let copy = private_folder::decisions_copy(layout).unwrap_or_default();
        let copy = String::from_utf8_lossy(&copy).into_owned();
        let Some(text) = self.context.vault.read_text(&layout.decisions())? else { return Ok(()) };
        let missing = missing_lines(&text, &copy).unwrap_or_default();
        if missing.is_empty() {
            return Ok(());
        }
        let lines: String = missing.iter().flat_map(|it| [it, "\n"]).collect();
        let lock = self.context.write_lock()?;
        self.context.vault.append(&lock, &layout.decisions(), "", &lines, true)?;
        safety_copies::update_decisions_copy(self.context.vault)
    }

    /// Changes the paths of decisions, or drops those for which `path_of` returns `None`. Lines
    /// that are no decision stay as they are.
    pub(crate) fn rewrite(
        &self,
        lock: &WriteLock,
        path_of: impl Fn(&Decision) -> Option<String>,
    ) -> Result<(), CompactionError> {
        let path = self.context.vault.layout().decisions();
        let Some(text) = self.context.vault.read_text(&path)? else { return Ok(()) };
        let line_for = |line: &str| match serde_json::from_str::<Decision>(line) {
            Err(_) => line.to_owned(),
            Ok(decision) => match path_of(&decision) {
                None => String::new(),
                Some(path) if path == decision.path => line.to_owned(),
                Some(path) => Decision { path, ..decision }.print(),
            },
        };
        let lines = || text.split_inclusive('\n').map(|it| (it, line_for(it)));
        let new_text: String = lines().map(|it| it.1).collect();
        // The copy first, reduced to the lines that old and new file share, so that a crash looks
        // like no loss. Forgetting goes on with the next run, redacting with the next call; both
        // find the same names.
        let same: String = lines().filter(|(old, new)| old == new).map(|it| it.1).collect();
        let layout = self.context.vault.layout();
        let copy = |text: &str| {
            let failed =
                |source| VaultError::Io { action: "write", path: layout.private_dir(), source };
            private_folder::write_decisions_copy(layout, text.as_bytes()).map_err(failed)
        };
        let known_copy = private_folder::decisions_copy(layout);
        let follows = known_copy.is_some_and(|it| !new_text.as_bytes().starts_with(&it));
        if follows {
            copy(&same)?;
        }
        if new_text != text {
            self.context.vault.replace_decisions(lock, &text, &new_text)?;
        }
        if follows && same != new_text {
            copy(&new_text)?;
        }
        Ok(())
    }

    /// Accepts a decisions file that differs from its copy, as far as it can be read. Both are kept
    /// in the quarantine.
    pub(crate) fn accept(&self) -> Result<(), CompactionError> {
        let layout = self.context.vault.layout();
        let path = layout.decisions();
        let now = (self.context.clock)();
        let failed = |source| VaultError::Io { action: "write", path: path.clone().into(), source };
        let copy = private_folder::decisions_copy(layout).unwrap_or_default();
        private_folder::quarantine_file(layout, now, &format!("{path}.copy"), &copy)
            .map_err(failed)?;
        let mut text = String::new();
        if let Some(found) = self.context.vault.read(&path)? {
            private_folder::quarantine_file(layout, now, &path, &found.bytes).map_err(failed)?;
            let known = String::from_utf8_lossy(&found.bytes).into_owned();
            let decisions = Decisions::parse(&known);
            if !decisions.has_key() {
                text = new_key()?.header_line();
            }
            let can_be_read = |i: usize| !decisions.unreadable().contains(&(i + 1));
            for (_, line) in known.lines().enumerate().filter(|(i, _)| can_be_read(*i)) {
                text.push_str(line);
                text.push('\n');
            }
            self.replace(&text, Some(ContentHash::of(&found.bytes)))?;
        }
        Ok(private_folder::write_decisions_copy(layout, text.as_bytes()).map_err(failed)?)
    }

    pub(crate) fn replace(
        &self,
        text: &str,
        old: Option<ContentHash>,
    ) -> Result<(), CompactionError> {
        let layout = self.context.vault.layout();
        let path = layout.decisions();
        let lock = self.context.write_lock()?;
        let temp = Vault::new_temp_name();
        let staged = self.context.vault.stage(&path, &temp, text.as_bytes())?;
        self.context.vault.publish(&lock, staged, old)?;
        let exposed = private_folder::exposed_files(layout).unwrap_or_default();
        for it in exposed.iter().filter(|it| it.path == layout.full(&path)) {
            private_folder::restrict_access(it).map_err(|source| VaultError::Io {
                action: "write",
                path: path.clone().into(),
                source,
            })?;
        }
        Ok(())
    }
}

fn new_key() -> Result<Decisions, CompactionError> {
    let mut random = [0; 32];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())
        .map_err(|errno| CompactionError::NoRandomness(errno.into()))?;
    Ok(Decisions::with_key(random))
}
