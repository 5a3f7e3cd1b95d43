//! Secrets in the names of files.
//!
//! A file name is built from words: lower case, shortened, with dashes instead of other characters. No
//! secret rule finds a value in this spelling, but a search for the value itself does: it is still in
//! the log, in a generated file, or in the history.

use std::{collections::BTreeMap, ops::Range};

use super::PrivacyRules;
use crate::memory::typed::{self, MemoryType};

/// Masked values in the spelling of file names, each with its kind.
#[derive(Clone, Debug, Default)]
pub struct FileNameSecrets(BTreeMap<String, String>);

impl FileNameSecrets {
    /// Adds the secrets in a text.
    pub fn add_from(&mut self, rules: &PrivacyRules, text: &str) {
        for found in rules.find_secrets(text).iter().filter(|it| rules.masks(it)) {
            if let Some(spelled) = typed::searchable_slug(&text[found.range.clone()]) {
                self.0.insert(spelled, found.kind.to_string());
            }
        }
    }

    /// Returns the kinds and ranges of the secrets in a name, in order.
    ///
    /// If a person named the file, a rule may find a secret directly.
    fn find_in(&self, rules: &PrivacyRules, name: &str) -> Vec<(String, Range<usize>)> {
        let secrets = rules.find_secrets(name);
        let masked = secrets.iter().filter(|it| rules.masks(it));
        let mut found: Vec<_> = masked.map(|it| (it.kind.to_string(), it.range.clone())).collect();
        for (spelled, kind) in &self.0 {
            found.extend(typed::find_slug(name, spelled).map(|it| (kind.clone(), it)));
        }
        found.sort_by_key(|it| (it.1.start, it.1.end));
        found
    }

    /// Returns the kind of the first secret in the name of a file, if any.
    pub fn kind_in(&self, rules: &PrivacyRules, path: &str) -> Option<String> {
        let (_, name) = split_path(path);
        self.find_in(rules, name).into_iter().next().map(|it| it.0)
    }

    /// Returns a free name for the file of a memory, without these secrets.
    pub fn free_file_name(
        &self,
        rules: &PrivacyRules,
        kind: MemoryType,
        topic: &str,
        is_taken: impl Fn(&str) -> bool,
    ) -> String {
        let name = typed::free_file_name(kind, topic, &is_taken);
        match self.kind_in(rules, &name) {
            Some(secret) => typed::free_file_name(kind, &format!("about a {secret}"), is_taken),
            None => name,
        }
    }

    /// Returns a topic that replaces a forgotten file name.
    ///
    /// It is the same each time, so that an interrupted change is completed with the same name.
    pub fn replacement_topic(rules: &PrivacyRules, path: &str) -> String {
        let mark = rules.secret_mark("name", path);
        let digits: String =
            mark.rsplit('#').next().unwrap_or("").chars().filter(char::is_ascii_hexdigit).collect();
        format!("a name that was taken out {digits}")
    }

    /// Returns a path with `…` instead of the secrets in its name.
    pub fn masked_path(&self, rules: &PrivacyRules, path: &str) -> String {
        let (folder, name) = split_path(path);
        let mut masked = folder.to_owned();
        let mut at = 0;
        for (_, range) in self.find_in(rules, name) {
            if range.start >= at {
                masked.push_str(&name[at..range.start]);
                masked.push('…');
            }
            at = at.max(range.end);
        }
        masked + &name[at..]
    }
}

/// Splits a path into its folders and the name of the file.
fn split_path(path: &str) -> (&str, &str) {
    path.split_at(path.rfind('/').map_or(0, |it| it + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, path: &str, kind: Option<&str>, masked: &str) {
        let rules = PrivacyRules::default();
        let mut secrets = FileNameSecrets::default();
        secrets.add_from(&rules, text);
        assert_eq!(secrets.kind_in(&rules, path).as_deref(), kind, "{path}");
        assert_eq!(secrets.masked_path(&rules, path), masked, "{path}");
    }

    #[test]
    fn a_secret_is_found_in_the_spelling_of_file_names() {
        // Made up, and split so that no scanner reports this file.
        let token = ["ghp_", "FzTcwKEvxhAGiU07qXdyi7MwFxaKQ8QwMdDh"].concat();
        let log = format!("- pushed with {token}\n- DB_PASSWORD=hunter2x\n");
        let lower = token.to_lowercase().replace('_', "-");
        let github = Some("github-token");
        check(&log, &format!("memory/user_{lower}.md"), github, "memory/user_….md");
        check(&log, &format!("user_use-{}.md", &lower[..30]), github, "user_use-….md");
        check(&log, "user_use-hunter2x-here.md", Some("password"), "user_use-…-here.md");
        check(&log, "memory/2026-04-02-hunter2x.md", Some("password"), "memory/2026-04-02-….md");
        // Shortened after a word.
        check(
            "- DB_PASSWORD=horse-4711-tea\n",
            "user_use-horse-4711.md",
            Some("password"),
            "user_use-….md",
        );
        check(
            "- DB_PASSWORD=horse-4711-tea\n",
            "user_horse-4711-2.md",
            Some("password"),
            "user_…-2.md",
        );
        check(
            "- DB_PASSWORD=horse-4711-tea\n",
            "user_seahorse-4711.md",
            None,
            "user_seahorse-4711.md",
        );
        check("- DB_PASSWORD=horse-4711-tea\n", "user_use-horse.md", None, "user_use-horse.md");
        check("", &format!("reference_{token}.md"), github, "reference_….md");
        for name in ["user_use-hunter.md", "memory/user_ghp-tokens.md", "2026-04-02.md", "a/", ""] {
            check(&log, name, None, name);
        }
    }
}
