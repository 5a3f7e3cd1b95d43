//! Finds secrets that are stored where they should not be, and removes them from derived files.
//!
//! What the sanitized view masks is never written. But rules are added later, and people write in
//! generated files, so a week that was summarized before its kind of secret was known may hold a
//! token. It is replaced by the mark of the sanitized view, in every generated file and in every
//! version of one in the history. Logs and their versions stay as they are: they are the person's
//! own.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use super::{
    Compactor,
    error::{CompactionError, JobFailure},
    journal::{
        Journal,
        commit::{FileWrite, RecordedChanges},
        decision_file::DecisionFile,
        records,
    },
    prepare::RunPreparation,
    reconcile::citations::period_of_path,
    snapshot::RootSnapshot,
};
use crate::{
    memory::{
        decision::Decision,
        document::{self, Summary, SummaryBlock, SummaryHeader},
        index, joined,
        period::Period,
        typed::{MemoryType, TypedMemory},
        wisdom::WisdomFile,
    },
    privacy::{FileNameSecrets, PrivacyRules},
    store::{
        db::lineage::{Lineage, history::VersionId},
        fs::{
            layout::{FileKind, Layout, PRIVATE_DIR, REPLY_PREFIX},
            vault::{Vault, VaultError},
        },
    },
};

/// Where a secret is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SecretLocation {
    /// In a daily log or a session record, where it may be.
    Log,
    /// In a file that memoird writes.
    Generated,
    /// In a version of such a file in the history.
    History,
    /// In receipts or proposals, or in a copy in the private folder.
    Private,
}

/// A stored secret; never its value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct StoredSecret {
    pub location: SecretLocation,
    /// The file, relative to the root, with `…` for a secret part of its name.
    pub path: String,
    /// The line, from 1, or 0 for the name of the file; for a version its number.
    pub at: u64,
    pub kind: String,
    /// Whether it identifies a person, rather than grants access.
    pub is_personal: bool,
    /// Whether the rules mask it.
    pub is_redacted: bool,
}

/// What was removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RedactionReport {
    pub files: Vec<String>,
    /// Versions whose bytes were replaced.
    pub versions: usize,
    /// Copies that were removed from the private folder.
    pub copies: Vec<String>,
}

/// A generated file with secrets in it.
struct GeneratedFile {
    path: String,
    kind: FileKind,
    text: String,
}

/// Finds the secrets in the files, and with a database in the kept versions of generated ones.
pub(crate) fn find_secrets(
    vault: &Vault,
    view: &RootSnapshot,
    lineage: Option<&Lineage>,
) -> Result<Vec<StoredSecret>, CompactionError> {
    let rules = &view.inventory.rules;
    let layout = vault.layout();
    let mut findings = Vec::new();
    let mut secrets = FileNameSecrets::default();
    let mut names: Vec<(SecretLocation, String, u64)> = Vec::new();
    let mut add_findings = |place, path: &str, text: &str, version: Option<u64>| {
        secrets.add_from(rules, text);
        for found in rules.find_secrets(text) {
            let line = text[..found.range.start].matches('\n').count() as u64 + 1;
            findings.push(StoredSecret {
                location: place,
                path: path.to_owned(),
                at: version.unwrap_or(line),
                is_redacted: rules.masks(&found),
                kind: found.kind.to_string(),
                is_personal: found.is_personal,
            });
        }
    };
    for file in view.inventory.logs.values().chain(view.inventory.late_logs.values()) {
        if let Some(found) = vault.read(&file.path)? {
            add_findings(
                SecretLocation::Log,
                &file.path,
                &String::from_utf8_lossy(&found.bytes),
                None,
            );
            names.push((SecretLocation::Log, file.path.clone(), 0));
        }
    }
    for file in read_generated_files(vault, view)? {
        let text = visible_text(file.kind, &file.text);
        add_findings(SecretLocation::Generated, &file.path, &text, None);
        names.push((SecretLocation::Generated, file.path, 0));
    }
    if let Some(lineage) = lineage {
        for (id, path, text) in kept_versions(layout, lineage)? {
            add_findings(SecretLocation::History, &path, &text, Some(id.0.cast_unsigned()));
        }
        let past = memory_versions(layout, lineage)?;
        names.extend(past.into_iter().map(|(id, path)| (SecretLocation::History, path, id)));
    }
    for (path, text) in private_copies(vault)? {
        add_findings(SecretLocation::Private, &path, &text, None);
    }
    for (line, path) in decided_memories(vault)? {
        let at = line as u64;
        if let Some(kind) = secrets.kind_in(rules, &path) {
            let path = layout.decisions();
            findings.push(secret_in_name(SecretLocation::Private, path, at, kind));
        }
    }
    for (location, path, at) in names {
        if let Some(kind) = secrets.kind_in(rules, &path) {
            findings.push(secret_in_name(location, path, at, kind));
        }
    }
    for it in &mut findings {
        it.path = secrets.masked_path(rules, &it.path);
    }
    findings.sort();
    findings.dedup();
    Ok(findings)
}

/// Returns the finding for a secret in the name of a file, which the rules always remove.
fn secret_in_name(location: SecretLocation, path: String, at: u64, kind: String) -> StoredSecret {
    StoredSecret { location, path, at, kind, is_personal: false, is_redacted: true }
}

/// Returns the names of typed memories in the history, with the versions that have them.
fn memory_versions(
    layout: &Layout,
    lineage: &Lineage,
) -> Result<Vec<(u64, String)>, CompactionError> {
    let mut versions = lineage.versions()?;
    versions.retain(|it| matches!(layout.kind_of(&it.path), Some(FileKind::Memory)));
    Ok(versions.into_iter().map(|it| (it.id.0.cast_unsigned(), it.path)).collect())
}

/// Returns the visible text of a file, without file names, which an index contains.
fn visible_text(kind: FileKind, text: &str) -> Cow<'_, str> {
    match kind {
        FileKind::Index => index::strip_link_targets(text).into(),
        FileKind::Wisdom | FileKind::Memory | FileKind::Weekly | FileKind::Monthly => {
            joined::visible(text).into()
        }
        _ => text.into(),
    }
}

/// Returns the files that memoird writes, and people's typed memories, which are output too.
fn read_generated_files(
    vault: &Vault,
    view: &RootSnapshot,
) -> Result<Vec<GeneratedFile>, VaultError> {
    let (layout, inventory) = (vault.layout(), &view.inventory);
    let summaries = inventory.weekly.values().chain(inventory.monthly.values());
    let mut paths: BTreeSet<String> = summaries.map(|it| it.path.clone()).collect();
    let names = inventory.memories.iter().map(|it| it.file_name.to_string_lossy().into_owned());
    paths.extend(names.map(|it| layout.typed_memory(&it)));
    paths.extend([layout.index(), layout.wisdom()]);
    let mut files = Vec::new();
    for path in paths {
        let Some(kind) = layout.kind_of(&path) else { continue };
        if let Some(text) = vault.read_text(&path)? {
            files.push(GeneratedFile { path, kind, text });
        }
    }
    Ok(files)
}

/// Returns the texts of generated files in the history, one version at a time.
fn kept_versions(
    layout: &Layout,
    lineage: &Lineage,
) -> Result<Vec<(VersionId, String, String)>, CompactionError> {
    let mut kept = Vec::new();
    for version in lineage.versions()? {
        let is_log =
            matches!(layout.kind_of(&version.path), Some(FileKind::Log | FileKind::Session));
        let Some(hash) = version.hash.filter(|_| !is_log) else { continue };
        let Some(bytes) = lineage.content(hash)? else { continue };
        kept.push((version.id, version.path, String::from_utf8_lossy(&bytes).into_owned()));
    }
    Ok(kept)
}

/// Returns the typed memories about which people decided, with the line of each decision.
fn decided_memories(vault: &Vault) -> Result<Vec<(usize, String)>, VaultError> {
    let layout = vault.layout();
    let Some(text) = vault.read_text(&layout.decisions())? else { return Ok(Vec::new()) };
    let decisions = text.lines().enumerate().filter_map(|(i, line)| {
        let decision = serde_json::from_str::<Decision>(line).ok()?;
        let is_memory = matches!(layout.kind_of(&decision.path), Some(FileKind::Memory));
        is_memory.then_some((i + 1, decision.path))
    });
    Ok(decisions.collect())
}

/// Returns the copies in the private folder that are text, except our own records.
fn private_copies(vault: &Vault) -> Result<Vec<(String, String)>, VaultError> {
    let kinds = [format!("{PRIVATE_DIR}/quarantine/"), format!("{PRIVATE_DIR}/{REPLY_PREFIX}")];
    let mut copies = Vec::new();
    for path in vault.files_below(PRIVATE_DIR, usize::MAX).0 {
        if !kinds.iter().any(|it| path.starts_with(it)) {
            continue;
        }
        if let Some(found) = vault.read(&path)? {
            copies.push((path, String::from_utf8_lossy(&found.bytes).into_owned()));
        }
    }
    Ok(copies)
}

/// Returns a generated file with its secrets masked; `None` if it has none. Ownership does not
/// change: our items stay ours, and a person's stay theirs.
fn without_secrets(
    layout: &Layout,
    path: &str,
    text: &str,
    rules: &PrivacyRules,
) -> Option<String> {
    let kind = layout.kind_of(path)?;
    let words = visible_text(kind, text);
    let Cow::Owned(shown) = rules.mask_secrets(&words) else { return None };
    match kind {
        FileKind::Index => Some(index::replace_user_lines(text, &rules.mask_secret_lines(&words))),
        FileKind::Weekly | FileKind::Monthly => {
            let name = path.rsplit('/').next()?.strip_suffix(".md")?;
            let period: Period = name.parse().ok()?;
            let with_record = || joined::resealed(joined::join(&shown, joined::split(text).1));
            Some(resealed_summary(period, text, &shown).unwrap_or_else(with_record))
        }
        FileKind::Memory => {
            let name = Path::new(path.rsplit('/').next()?);
            let before = TypedMemory::parse(name, text).ok();
            let after = TypedMemory::parse(name, &shown).ok();
            match (before, after) {
                (Some(before), Some(after)) if before.is_managed() => {
                    Some(before.reworded(after).print())
                }
                (Some(before), Some(after)) if before.recorded_body.is_some() => {
                    Some(before.reworded(after).with_record(&shown))
                }
                _ => Some(joined::join(&shown, joined::split(text).1)),
            }
        }
        FileKind::Wisdom => Some(WisdomFile::parse(text).reworded(&shown)),
        _ => Some(shown),
    }
}

/// Returns an old index with its secrets masked, and new names for files whose names held one;
/// `None` if there are none. Nobody generates its lines again, so a line with a secret loses its
/// link.
fn redacted_past_index(
    text: &str,
    rules: &PrivacyRules,
    names: &[(String, String)],
) -> Option<String> {
    let words = index::strip_link_targets(text);
    let shown = rules.mask_secret_lines(&words);
    let lines = text.split('\n').zip(words.split('\n')).zip(&shown);
    let lines = lines.map(|((line, words), shown)| {
        let line = if words == shown { line } else { shown };
        names.iter().fold(line.to_owned(), |line, (old, new)| line.replace(old, new))
    });
    let left = lines.collect::<Vec<_>>().join("\n");
    (left != text).then_some(left)
}

/// Updates the hashes in the list of our bullets.
fn resealed_summary(period: Period, before: &str, shown: &str) -> Option<String> {
    let before = Summary::parse(period, before).ok()?;
    let mut after = Summary::parse(period, shown).ok()?;
    let bullets = |it: &Summary| -> Vec<String> {
        it.blocks
            .iter()
            .filter_map(SummaryBlock::item)
            .map(crate::memory::item::Item::hash)
            .collect()
    };
    let (old, new) = (bullets(&before), bullets(&after));
    let listed = before.header.as_ref()?;
    if old.len() != new.len() {
        return None;
    }
    // What is shown has no record; in an older form it is in the frontmatter.
    let pointers = after.header.take().map_or_else(|| listed.pointers.clone(), |it| it.pointers);
    let header = after.header.insert(SummaryHeader { pointers, ..listed.clone() });
    let renamed: BTreeMap<&String, &String> = old.iter().zip(&new).collect();
    let resealed = |hashes: &[String]| {
        hashes.iter().map(|it| renamed.get(it).copied().unwrap_or(it).clone()).collect()
    };
    (header.items, header.external) = (resealed(&listed.items), resealed(&listed.external));
    Some(after.print())
}

/// Generated files without secrets.
struct RedactedFiles {
    files: Vec<FileWrite>,
    /// Those whose names held a secret.
    removed: Vec<String>,
    /// The old input hashes of weeks, with the new ones.
    weeks: BTreeMap<String, String>,
}

impl Compactor<'_> {
    /// Removes secrets from the generated files and, with `purge`, from the history and the copies.
    /// Without `purge`, the history keeps the old text.
    pub(crate) fn redact(&mut self, purge: bool) -> Result<RedactionReport, CompactionError> {
        let _alone = self.context.acquire_run_lock(&|| false)?;
        let now = (self.context.clock)();
        RunPreparation::new(&mut self.context).reconcile_locked("redact", now)?;
        // Temporary files that a crash left may hold the secret.
        self.context.remove_temp_files()?;
        // The sanitized view depends on the key.
        DecisionFile::new(&self.context).create_key()?;
        let view = self.context.take_snapshot(now)?;
        let rules = view.inventory.rules.clone();
        let layout = self.context.vault.layout().clone();
        let mut redacted = RedactionReport::default();
        let secrets = self.spelled_secrets(&view)?;
        let renamed = self.safe_memory_names(&view, &secrets);
        let RedactedFiles { mut files, removed, weeks } = self.redacted_files(&view, &renamed)?;
        redacted.files =
            files.iter().filter(|it| it.text.is_some()).map(|it| it.path.clone()).collect();
        self.update_week_hashes(&view, &weeks, &mut files)?;
        // Decisions come first: after a crash, the next call finds the same names again, as long as
        // the files still have their old ones.
        let moved = |it: &Decision| match renamed.get(&it.path) {
            Some(name) => Some(layout.typed_memory(name)),
            None => Some(it.path.clone()),
        };
        DecisionFile::new(&self.context).rewrite(&self.context.write_lock()?, moved)?;
        if !files.is_empty() {
            let mut run = None;
            let run = self.context.ensure_run(&mut run, "redact", now)?;
            let documents = files
                .iter()
                .filter_map(|it| records::of_path(&layout, &it.path, it.text.as_deref()?))
                .collect();
            let recorded = RecordedChanges {
                documents,
                removed,
                forgets: purge,
                ..RecordedChanges::default()
            };
            let written =
                Journal::new(&mut self.context).write_files(Some(run), None, &files, &recorded);
            self.context.end_run(run)?;
            match written {
                Ok(()) => {}
                Err(JobFailure::Critical(error)) => return Err(error),
                Err(JobFailure::Vault(error)) => return Err(error.into()),
                Err(error) => return Err(CompactionError::ForgetUnfinished(error.to_string())),
            }
        }
        if purge {
            // A reply that was not used yet may quote a secret.
            self.context.vault.remove_replies()?;
            let names = self.replace_recorded_names(&layout, &rules, &secrets, &renamed)?;
            for (id, path, text) in kept_versions(&layout, self.context.lineage)? {
                let left = match layout.kind_of(&path) {
                    Some(FileKind::Index) => redacted_past_index(&text, &rules, &names),
                    _ => without_secrets(&layout, &path, &text, &rules),
                };
                if let Some(left) = left {
                    self.context.lineage.replace_version_content(id, left.as_bytes())?;
                    redacted.versions += 1;
                }
            }
            let holds = |it: &str| {
                let mut words = it.split_whitespace();
                matches!(rules.mask_secrets(it), Cow::Owned(_))
                    || words.any(|it| it.contains(".md") && secrets.kind_in(&rules, it).is_some())
            };
            self.context.lineage.forget_reasons(&holds)?;
            self.context.lineage.forget_proposals(&holds, &|_| false)?;
            for (path, text) in private_copies(self.context.vault)? {
                if holds(&text) {
                    self.context.vault.remove_private(&path)?;
                    redacted.copies.push(path);
                }
            }
            self.context.lineage.vacuum()?;
        }
        Ok(redacted)
    }

    /// Returns the generated files without secrets, and under names without secrets.
    fn redacted_files(
        &self,
        view: &RootSnapshot,
        renamed: &BTreeMap<String, String>,
    ) -> Result<RedactedFiles, CompactionError> {
        let (layout, rules) = (self.context.vault.layout(), &view.inventory.rules);
        let mut files = Vec::new();
        let mut removed = Vec::new();
        let mut weeks = BTreeMap::new();
        let memories = view.inventory.memories.iter().cloned().map(|mut it| {
            let path = layout.typed_memory(&it.file_name.to_string_lossy());
            if let Some(name) = renamed.get(&path) {
                it.file_name = name.into();
            }
            it
        });
        let memories: Vec<TypedMemory> = memories.collect();
        let input = |period: Period, text: &str| {
            rules.summary_input_hash(period, &document::body_hash(text).hex16())
        };
        for file in read_generated_files(self.context.vault, view)? {
            let text = without_secrets(layout, &file.path, &file.text, rules);
            if let Some(name) = renamed.get(&file.path) {
                let path = layout.typed_memory(name);
                let text = Some(text.unwrap_or_else(|| file.text.clone()));
                files.push(FileWrite { path, text, current: None });
                removed.push(file.path.clone());
                files.push(FileWrite { path: file.path, text: None, current: Some(file.text) });
                continue;
            }
            let text = match text {
                None if file.kind == FileKind::Index && !renamed.is_empty() => file.text.clone(),
                None => continue,
                Some(text) => text,
            };
            let text = match file.kind {
                FileKind::Index => {
                    index::render(Some(&text), &memories, &|it| rules.sanitize_label(it))
                }
                _ => text,
            };
            if file.kind == FileKind::Weekly
                && let Some(week) = period_of_path(&file.path)
            {
                weeks.insert(input(week, &file.text), input(week, &text));
            }
            files.push(FileWrite { path: file.path, text: Some(text), current: Some(file.text) });
        }
        Ok(RedactedFiles { files, removed, weeks })
    }

    /// Returns all known secrets as file names would spell them.
    fn spelled_secrets(&self, view: &RootSnapshot) -> Result<FileNameSecrets, CompactionError> {
        let (layout, rules) = (self.context.vault.layout(), &view.inventory.rules);
        let mut secrets = FileNameSecrets::default();
        for file in view.inventory.logs.values().chain(view.inventory.late_logs.values()) {
            if let Some(found) = self.context.vault.read(&file.path)? {
                secrets.add_from(rules, &String::from_utf8_lossy(&found.bytes));
            }
        }
        for file in read_generated_files(self.context.vault, view)? {
            secrets.add_from(rules, &file.text);
        }
        for (_, _, text) in kept_versions(layout, self.context.lineage)? {
            secrets.add_from(rules, &text);
        }
        Ok(secrets)
    }

    /// Returns new names, by path, for our memories whose names hold a secret. People rename their
    /// own.
    fn safe_memory_names(
        &self,
        view: &RootSnapshot,
        secrets: &FileNameSecrets,
    ) -> BTreeMap<String, String> {
        let (layout, rules) = (self.context.vault.layout(), &view.inventory.rules);
        let mut renamed: BTreeMap<String, String> = BTreeMap::new();
        for memory in view.inventory.memories.iter().filter(|it| it.is_managed()) {
            let path = layout.typed_memory(&memory.file_name.to_string_lossy());
            if secrets.kind_in(rules, &path).is_none() {
                continue;
            }
            let is_taken = |name: &str| {
                self.context.vault.exists(&layout.typed_memory(name))
                    || renamed.values().any(|it| it == name)
            };
            let topic = rules.without_marks(&memory.name);
            let name = secrets.free_file_name(rules, memory.kind, &topic, is_taken);
            renamed.insert(path, name);
        }
        renamed
    }

    /// Renames files whose names hold a secret wherever they are recorded. Returns the old and new
    /// names.
    fn replace_recorded_names(
        &mut self,
        layout: &Layout,
        rules: &PrivacyRules,
        secrets: &FileNameSecrets,
        renamed: &BTreeMap<String, String>,
    ) -> Result<Vec<(String, String)>, CompactionError> {
        let named = memory_versions(layout, self.context.lineage)?;
        let mut paths: BTreeSet<String> = named.into_iter().map(|it| it.1).collect();
        paths.extend(decided_memories(self.context.vault)?.into_iter().map(|it| it.1));
        let mut pairs = BTreeMap::new();
        for path in paths.iter().chain(renamed.keys()) {
            // A person's file keeps its name until they rename it.
            if secrets.kind_in(rules, path).is_none() || self.context.vault.exists(path) {
                continue;
            }
            let kind = MemoryType::of_file_name(Path::new(path.rsplit('/').next().unwrap_or(path)));
            let name = renamed.get(path).cloned().unwrap_or_else(|| {
                let is_taken = |name: &str| {
                    self.context.vault.exists(&layout.typed_memory(name))
                        || pairs.values().any(|it| it == name)
                };
                let kind = kind.unwrap_or(MemoryType::Reference);
                let topic = FileNameSecrets::replacement_topic(rules, path);
                secrets.free_file_name(rules, kind, &topic, is_taken)
            });
            pairs.insert(path.clone(), name);
        }
        // The decisions first, since they outlive the database.
        let path_of = |it: &Decision| match pairs.get(&it.path) {
            Some(name) => Some(layout.typed_memory(name)),
            None => Some(it.path.clone()),
        };
        DecisionFile::new(&self.context).rewrite(&self.context.write_lock()?, path_of)?;
        for (path, name) in &pairs {
            self.context.lineage.forget_name(path, &layout.typed_memory(name))?;
        }
        let name_of = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
        Ok(pairs.into_iter().map(|(path, name)| (name_of(&path), name)).collect())
    }

    /// Updates the hashes of weeks in the months: nothing else of the weeks changed, so no month
    /// becomes due by it.
    fn update_week_hashes(
        &self,
        view: &RootSnapshot,
        weeks: &BTreeMap<String, String>,
        files: &mut Vec<FileWrite>,
    ) -> Result<(), CompactionError> {
        for (period, file) in &view.inventory.monthly {
            let at = files.iter().position(|it| it.path == file.path);
            let current = match at {
                Some(at) => files[at].text.clone(),
                None => self.context.vault.read_text(&file.path)?,
            };
            let Some(text) = current else { continue };
            let Ok(mut summary) = Summary::parse(*period, &text) else { continue };
            let Some(header) = &mut summary.header else { continue };
            let mut is_changed = false;
            for hash in header.sources.values_mut() {
                if let Some(new) = weeks.get(hash) {
                    hash.clone_from(new);
                    is_changed = true;
                }
            }
            if !is_changed {
                continue;
            }
            match at {
                Some(at) => files[at].text = Some(summary.print()),
                None => files.push(FileWrite {
                    path: file.path.clone(),
                    text: Some(summary.print()),
                    current: Some(text),
                }),
            }
        }
        Ok(())
    }
}
