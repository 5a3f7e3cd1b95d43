//! Reads the notes that an agent or a person keeps by themselves: `curated` in `memoird.yaml`. One of them may hold a
//! block of ours, for which it is replaced.

use super::{Vault, VaultError};
use crate::{
    memory::{
        hash::ContentHash,
        index,
        wisdom_block::{self, BlockState},
    },
    privacy::{self, PrivacyRules, SanitizedLog},
    store::fs::{
        inventory::{CuratedFile, FileProblem},
        lock::WriteLock,
    },
};

impl CuratedFile {
    /// Returns its sanitized view.
    pub(crate) fn sanitized(&self, rules: &PrivacyRules) -> Option<SanitizedLog> {
        privacy::sanitize_notes(&self.text, rules)
    }
}

impl Vault {
    /// Reads a file of notes; `None` if there is none.
    ///
    /// Returns an error like [`Vault::read_text`], and for a file with a second hard link.
    pub(crate) fn read_curated(&self, path: &str) -> Result<Option<CuratedFile>, VaultError> {
        let Some(text) = self.read_note(path)? else { return Ok(None) };
        // What is in a block of ours changes nothing that is derived from the file.
        let hash = ContentHash::of(index::own_text(&text));
        Ok(Some(CuratedFile { path: path.to_owned(), hash, text: index::own_lines(&text) }))
    }

    /// Returns why the block of `WISDOM.md` is not kept up to date, if so.
    fn wisdom_block_problem(&self) -> Option<FileProblem> {
        let path = self.layout.wisdom_block()?;
        let text = self.read_note(path).ok().flatten()?;
        let reason = match wisdom_block::find(&text) {
            BlockState::Present(found)
                if found.is_ours() || self.exists(&self.layout.wisdom_block_record()) =>
            {
                return None;
            }
            BlockState::Present(_) => {
                "its block of WISDOM.md was edited and is not updated any more; move your text out of it and remove \
                 the block, then run `memoird init --openclaw`"
            }
            BlockState::Broken => {
                "its block of WISDOM.md has no end, or there are two, so it is not updated; remove what is left of it, \
                 then run `memoird init --openclaw`"
            }
            BlockState::Absent => {
                "its block of WISDOM.md was removed and stays away; `memoird init --openclaw` writes it again, and \
                 without `wisdom_block` in memoird.yaml this is no longer reported"
            }
        };
        Some(FileProblem::new(path, reason))
    }

    /// Reads all of a file of notes; `None` if there is none.
    ///
    /// Returns an error like [`Self::read_curated`].
    pub(crate) fn read_note(&self, path: &str) -> Result<Option<String>, VaultError> {
        let Some(found) = self.read(path)? else { return Ok(None) };
        Ok(Some(found.refuse_hard_link(&self.layout.full(path))?.into_text(path)?.0))
    }

    /// Replaces a file of notes, if its text is still `expected`, or removes it. It is somebody's own, so the history
    /// does not contain it.
    ///
    /// Returns [`VaultError::Changed`] if somebody changed it; it is not touched.
    pub(crate) fn replace_note(
        &self,
        lock: &WriteLock,
        path: &str,
        expected: Option<&str>,
        text: Option<&str>,
    ) -> Result<(), VaultError> {
        let temp = Self::new_temp_name();
        let hash = expected.map(ContentHash::of);
        match (text, hash) {
            (Some(text), _) => {
                let staged = self.stage(path, &temp, text.as_bytes())?;
                self.publish(lock, staged, hash)
            }
            (None, Some(hash)) => self.remove(lock, path, &temp, hash),
            (None, None) => Ok(()),
        }
    }

    /// Reads all curated files, and returns why others are left out.
    ///
    /// Returns an error if the system fails to read one that may be fine.
    pub(super) fn curated_files(&self) -> Result<(Vec<CuratedFile>, Vec<FileProblem>), VaultError> {
        let (mut files, mut problems) = (Vec::new(), Vec::new());
        for path in self.layout.curated() {
            let why = match self.layout.curated_refusal(path) {
                Some(why) => why.to_owned(),
                None => match self.read_curated(path) {
                    Ok(Some(file)) => {
                        files.push(file);
                        continue;
                    }
                    Ok(None) => "does not exist".to_owned(),
                    Err(error) if error.is_read_failure() => return Err(error),
                    Err(error) => format!("cannot be read: {error}"),
                },
            };
            if self.layout.wisdom_block() == Some(path) && !self.exists(path) {
                // The next run creates it.
                continue;
            }
            let reason = format!("{why}; `curated` in memoird.yaml names it");
            problems.push(FileProblem::new(path, reason));
        }
        problems.extend(self.wisdom_block_problem());
        files.sort_by(|a, b| a.path.cmp(&b.path));
        files.dedup_by(|a, b| a.path == b.path);
        Ok((files, problems))
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::HashMap, fs};

    use super::{
        super::fixture::{put, vault},
        *,
    };

    #[test]
    fn files_that_are_no_notes_are_reported() {
        let (_dir, plain) = vault();
        let named = [
            "MEMORY.md",
            "memory/notes.md",
            "memory/MEMORY.md",
            "WISDOM.md",
            "memory/2026-04-01.md",
            "2026-04-01.md",
            "memory/user_tone.md",
            "memory/weekly/2026-W14.md",
            "elsewhere/notes.md",
            "missing.md",
            "link.md",
            "twice.md",
        ];
        let layout = plain.layout().clone().with_curated(named.map(str::to_owned).to_vec());
        let vault = Vault::new(layout);
        put(&vault, "MEMORY.md", b"- the pump is in the cellar\n");
        put(&vault, "memory/notes.md", b"- a note\n");
        put(
            &vault,
            "memory/MEMORY.md",
            b"<!-- memoird:begin -->\n- [A](user_a.md)\n- x\n<!-- memoird:end -->\n- mine\n",
        );
        put(&vault, "outside", b"- a key\n");
        let at = |name: &str| vault.layout().full(name);
        std::os::unix::fs::symlink(at("outside"), at("link.md")).unwrap();
        fs::hard_link(at("outside"), at("twice.md")).unwrap();
        let inventory = vault.scan(&HashMap::new()).unwrap().inventory;
        let files: Vec<_> =
            inventory.curated.iter().map(|it| (&it.path[..], &it.text[..])).collect();
        assert_eq!(
            files,
            [
                ("MEMORY.md", "- the pump is in the cellar\n"),
                ("memory/MEMORY.md", "\n\n\n\n- mine\n"),
                ("memory/notes.md", "- a note\n"),
            ]
        );
        let problems: Vec<_> = inventory.problems.iter().map(|it| &it.path[..]).collect();
        let mut others = named[3..].to_vec();
        others.sort_unstable();
        assert_eq!(problems, others);
    }
}
