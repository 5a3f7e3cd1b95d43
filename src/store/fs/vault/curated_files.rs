//! Reads the notes that an agent or a person keeps by themselves: `curated` in `memoird.yaml`.

use super::{Vault, VaultError};
use crate::{
    memory::{hash::ContentHash, index},
    privacy::{self, PrivacyRules, SanitizedLog},
    store::fs::inventory::{CuratedFile, FileProblem},
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
        let Some(found) = self.read(path)? else { return Ok(None) };
        let text = found.refuse_hard_link(&self.layout.full(path))?.into_text(path)?.0;
        let text = index::own_lines(&text);
        Ok(Some(CuratedFile { path: path.to_owned(), hash: ContentHash::of(&text), text }))
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
            let reason = format!("{why}; `curated` in memoird.yaml names it");
            problems.push(FileProblem::new(path, reason));
        }
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
