//! Brings what others published: everything is fetched and checked first, then written.
//!
//! 1. The manifest is read, and checked before anything else.
//! 2. The objects that are needed are fetched into the private folder, each with its hash and size.
//! 3. A note with the manifest is written. From here on the pull is decided: every verb that writes to the root
//!    finishes it first, without the store.
//! 4. Under the locks of a run, the files are compared again and written through the vault, the database last, in
//!    one transaction. Each file has its old or its new bytes, and each step can be repeated.
//! 5. The last common state is recorded, the note and the objects are removed.
//!
//! A file is overwritten or removed only if its bytes are those of the last common state. Any other one is a
//! conflict: it stays, and the version of the store is saved in the quarantine folder.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{
    error::BundleError,
    local_files::{self, DATABASE, LocalFiles},
    manifest::{FileEntry, Manifest},
    merge::{self, FileChange},
    pack,
    push::{
        BundleRoot, Comparison, PathNote, ShowStep, compare, conflict_note, content_of,
        fetch_manifest, fetch_object, is_mass_removal, mass_removal, reach_failpoint,
        read_finished, refuse_overlap,
    },
    root_name::ExpectedTenant,
    state::{self, BundleState, INCOMING, OBJECT_PREFIX, SavedConflict, is_incoming},
    storage::{self, FetchedObject, ObjectStorage, ObjectVersion},
};
use crate::{
    compaction::{safety_copies, up_to_date},
    memory::decision_merge::missing_lines,
    store::{
        db::lineage::{Lineage, portable},
        fs::{
            layout::{PRIVATE_DIR, ROOT_FILE, visible_bytes},
            lock::{RunLock, WriteLock},
            private_folder, up_to_date_note,
            vault::{Vault, VaultError},
        },
    },
};

/// The database that a pull brings.
const INCOMING_DATABASE: &str = ".memoird/bundle-database-incoming";
/// How often others may publish, and remove what is being fetched.
const TRIES_MAX: usize = 8;
/// In place of a path: every file in conflict.
const ALL: &str = "all";

/// What a pull is asked to do.
#[derive(Clone, Debug, Default)]
pub(crate) struct PullRequest {
    /// Paths in conflict of which the version of the store replaces one's own; `all` for every one.
    pub(crate) theirs: BTreeSet<String>,
    /// Whether many removals are meant.
    pub(crate) accepts_missing: bool,
    /// Changes nothing.
    pub(crate) dry_run: bool,
    /// Whose root it must be, if that is known.
    pub(crate) tenant: Option<ExpectedTenant>,
    /// The manifest, if it was read moments ago.
    pub(crate) fetched: Option<FetchedManifest>,
}

/// What a pull did.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct PullReport {
    pub(crate) url: String,
    pub(crate) root: String,
    pub(crate) generation: u64,
    pub(crate) dry_run: bool,
    /// `written`, `removed`, or `merged`.
    pub(crate) brought: Vec<PathNote>,
    /// Changed on both sides.
    pub(crate) conflicts: Vec<PathNote>,
    /// Not read, so they stay as they are here.
    pub(crate) skipped: Vec<PathNote>,
    /// How many files changed here, which a push would publish.
    pub(crate) unpublished: usize,
    /// The agent's name in the bundle, if this folder has another one: then generated files would differ.
    pub(crate) other_agent_name: Option<String>,
}

/// What this root and a store differ in, for people.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct StatusReport {
    pub(crate) url: String,
    pub(crate) root: Option<String>,
    /// In the store; `None` if there is no bundle, or no answer.
    pub(crate) generation: Option<u64>,
    pub(crate) published: Option<chrono::DateTime<chrono::Utc>>,
    pub(crate) files: Option<usize>,
    /// Changed here.
    pub(crate) unpublished: Vec<PathNote>,
    /// Changed in the store.
    pub(crate) incoming: Vec<PathNote>,
    pub(crate) conflicts: Vec<PathNote>,
    pub(crate) skipped: Vec<PathNote>,
    /// Whether words were forgotten here that the store may still hold.
    pub(crate) must_remove: bool,
    /// Why the store did not answer.
    pub(crate) unreachable: Option<String>,
}

/// A pull that was fetched, checked, and not yet finished.
#[derive(Debug, Serialize, Deserialize)]
struct IncomingPull {
    url: String,
    manifest: Manifest,
    version: ObjectVersion,
    theirs: BTreeSet<String>,
}

/// A manifest that was read moments ago, so that a pull need not read it again.
#[derive(Clone, Debug)]
pub(crate) struct FetchedManifest {
    manifest: Manifest,
    version: ObjectVersion,
}

/// What a folder that has no settings yet needs of a bundle before a pull.
pub(crate) struct FetchedSettings {
    /// The text of `memoird.yaml`, if the bundle has one.
    pub(crate) text: Option<String>,
    pub(crate) fetched: FetchedManifest,
}

impl FetchedManifest {
    /// Returns the agent's name, the time zone and the folder of the logs, for a bundle without `memoird.yaml`.
    pub(crate) fn description(&self) -> (&str, &str, &str) {
        let Manifest { agent_name, zone, memory_dir, .. } = &self.manifest;
        (agent_name, zone, memory_dir)
    }
}

/// Fetches the settings of a bundle for a folder that has none yet, and checks whose root it is.
pub(crate) fn fetch_settings(
    vault: &Vault,
    url: &str,
    tenant: Option<&ExpectedTenant>,
) -> Result<FetchedSettings, BundleError> {
    let storage = storage::open(url)?;
    refuse_overlap(vault.layout().root(), url)?;
    let FetchedObject::Found(bytes, version) = fetch_manifest(&*storage, None)? else {
        return Err(BundleError::NoBundle { url: url.to_owned() });
    };
    let manifest = Manifest::parse(&bytes, url)?;
    manifest.check_root(url, &BundleState::load(vault, url)?)?;
    manifest.check_tenant(url, tenant)?;
    let text = match manifest.files.get(ROOT_FILE) {
        Some(file) => {
            let (_, raw) = fetch_object(&*storage, url, &manifest, &file.object)?;
            let content = content_of(url, ROOT_FILE, file, &raw)?;
            Some(String::from_utf8_lossy(content).into_owned())
        }
        None => None,
    };
    Ok(FetchedSettings { text, fetched: FetchedManifest { manifest, version } })
}

/// Returns whether a store has another manifest than the known one. Costs one conditional request.
pub(crate) fn has_changed(url: &str, known: Option<&ObjectVersion>) -> Result<bool, BundleError> {
    let fetched = fetch_manifest(&*storage::open(url)?, known)?;
    Ok(matches!(fetched, FetchedObject::Found(..)))
}

/// Brings what others published.
pub(crate) fn pull(
    root: &BundleRoot<'_>,
    url: &str,
    request: &PullRequest,
    show: ShowStep<'_>,
) -> Result<PullReport, BundleError> {
    let storage = storage::open(url)?;
    refuse_overlap(root.vault.layout().root(), url)?;
    if !request.dry_run {
        finish_interrupted(root)?;
    }
    let mut fetched = request.fetched.clone();
    for _ in 0..TRIES_MAX {
        if let Some(report) = attempt(root, &*storage, url, request, fetched.take(), show)? {
            return Ok(report);
        }
    }
    Err(BundleError::Contended { url: url.to_owned(), tries: TRIES_MAX })
}

/// Brings what one manifest names. Returns `None` if an object is gone because a newer manifest needs it no more.
fn attempt(
    root: &BundleRoot<'_>,
    storage: &dyn ObjectStorage,
    url: &str,
    request: &PullRequest,
    fetched: Option<FetchedManifest>,
    show: ShowStep<'_>,
) -> Result<Option<PullReport>, BundleError> {
    let state = BundleState::load(root.vault, url)?;
    let known = state.version.as_ref().filter(|_| request.theirs.is_empty());
    let found = match fetched {
        Some(it) => it,
        None => match fetch_manifest(storage, known)? {
            FetchedObject::Missing => return Err(BundleError::NoBundle { url: url.to_owned() }),
            FetchedObject::Unchanged => {
                return Ok(Some(PullReport {
                    url: url.to_owned(),
                    root: state.root.unwrap_or_default(),
                    generation: state.generation,
                    dry_run: request.dry_run,
                    ..PullReport::default()
                }));
            }
            FetchedObject::Found(bytes, version) => {
                FetchedManifest { manifest: Manifest::parse(&bytes, url)?, version }
            }
        },
    };
    let FetchedManifest { manifest, version } = found;
    manifest.check_root(url, &state)?;
    manifest.check_tenant(url, request.tenant.as_ref())?;
    manifest.check_paths(url, root.vault.layout())?;
    let local = read_finished(root, &state)?;
    let compared = compare(root, &state, local, Some(&manifest), &request.theirs);
    let theirs = settled_paths(root, &request.theirs, &compared)?;
    let gone: Vec<&String> = removed_there(&compared).collect();
    if !request.accepts_missing && is_mass_removal(root.vault.layout(), &gone, &state) {
        return Err(mass_removal(&gone, state.base.len(), "in the store"));
    }
    if request.dry_run {
        return Ok(Some(preview(root, url, &manifest, &compared, &theirs)));
    }
    match fetch_objects(root, storage, url, &manifest, &compared, show) {
        Err(BundleError::BadObject { .. })
            if matches!(fetch_manifest(storage, Some(&version))?, FetchedObject::Found(..)) =>
        {
            return Ok(None);
        }
        fetched => fetched?,
    }
    reach_failpoint("bundle.pull.fetched")?;
    let incoming = IncomingPull { url: url.to_owned(), manifest, version, theirs };
    let text = serde_json::to_string(&incoming).expect("strings and numbers can always be written");
    root.vault.write_private(INCOMING, &text)?;
    reach_failpoint("bundle.pull.noted")?;
    apply(root, &incoming, true).map(Some)
}

/// Finishes a pull that was interrupted after it was decided. Asks no store.
pub(crate) fn finish_interrupted(root: &BundleRoot<'_>) -> Result<(), BundleError> {
    let Some(text) = root.vault.read_text(INCOMING)? else { return Ok(()) };
    let incoming: IncomingPull = serde_json::from_str(&text)
        .map_err(|e| BundleError::BadState { path: INCOMING.to_owned(), reason: e.to_string() })?;
    // What a run left unfinished meanwhile must not keep it from running.
    apply(root, &incoming, false).map(drop)
}

/// Compares this root with a store, or with the last common state if the store does not answer.
pub(crate) fn status(root: &BundleRoot<'_>, url: &str) -> Result<StatusReport, BundleError> {
    let state = BundleState::load(root.vault, url)?;
    let fetched = storage::open(url).and_then(|it| fetch_manifest(&*it, None));
    let (manifest, unreachable) = match fetched {
        Ok(FetchedObject::Found(bytes, _)) => {
            let manifest = Manifest::parse(&bytes, url)?;
            manifest.check_root(url, &state)?;
            (Some(manifest), None)
        }
        Ok(_) => (None, None),
        Err(error) if error.kind == storage::StorageErrorKind::Address => return Err(error.into()),
        Err(error) => (None, Some(error.to_string())),
    };
    let local = read_finished(root, &state)?;
    let base = state.base_hashes();
    let there = match (&manifest, &unreachable) {
        (Some(manifest), _) => {
            let files = manifest.files.keys();
            files.filter_map(|it| Some((it.clone(), manifest.hash_of(it)?))).collect()
        }
        (None, Some(_)) => base.clone(),
        (None, None) => BTreeMap::new(),
    };
    let changes = merge::compare_all(&local.contents(), &base, &there);
    let mut report = StatusReport {
        url: url.to_owned(),
        root: manifest.as_ref().map(|it| it.root.clone()).or(state.root),
        generation: manifest.as_ref().map(|it| it.generation),
        published: manifest.as_ref().map(|it| it.published),
        files: manifest.as_ref().map(|it| it.files.len()),
        unpublished: Vec::new(),
        incoming: Vec::new(),
        conflicts: Vec::new(),
        skipped: Vec::new(),
        must_remove: state.must_remove,
        unreachable,
    };
    for (path, change) in changes {
        let is_here = local.hash(&path).is_some();
        let (list, note) = match change {
            FileChange::None => continue,
            FileChange::WrittenHere => (&mut report.unpublished, "written"),
            FileChange::RemovedHere => (&mut report.unpublished, "removed"),
            FileChange::WrittenThere => (&mut report.incoming, "written"),
            FileChange::RemovedThere => (&mut report.incoming, "removed"),
            FileChange::Conflict => {
                (&mut report.conflicts, conflict_note(manifest.as_ref(), &path, is_here))
            }
            FileChange::Skipped => {
                let reason = local.skipped.get(&path).map_or("cannot be read", String::as_str);
                (&mut report.skipped, reason)
            }
        };
        list.push(PathNote { note: note.to_owned(), path });
    }
    Ok(report)
}

/// Returns the paths in conflict that the version of the store settles.
fn settled_paths(
    root: &BundleRoot<'_>,
    named: &BTreeSet<String>,
    compared: &Comparison,
) -> Result<BTreeSet<String>, BundleError> {
    let takes_database = named.contains(DATABASE) || named.contains(ALL);
    let named = settle_named(named, compared)?;
    if !takes_database || compared.changes.get(DATABASE) != Some(&FileChange::Conflict) {
        return Ok(named);
    }
    // The generated files are those of the database.
    let layout = root.vault.layout();
    let differs = |change: &FileChange| !matches!(change, FileChange::None | FileChange::Skipped);
    let generated = compared
        .changes
        .iter()
        .filter(|(path, change)| differs(change) && local_files::is_generated(layout, path));
    Ok(generated.map(|it| it.0.clone()).chain(named).collect())
}

fn settle_named(
    named: &BTreeSet<String>,
    compared: &Comparison,
) -> Result<BTreeSet<String>, BundleError> {
    let is_open = |path: &String| {
        compared.changes.get(path) == Some(&FileChange::Conflict) || compared.waiting.contains(path)
    };
    if named.contains(ALL) {
        return Ok(compared.changes.keys().filter(|it| is_open(it)).cloned().collect());
    }
    match named.iter().find(|it| !is_open(it)) {
        Some(path) => Err(BundleError::NoConflict { path: path.clone() }),
        None => Ok(named.clone()),
    }
}

fn removed_there(compared: &Comparison) -> impl Iterator<Item = &String> {
    let changes = compared.changes.iter();
    changes.filter(|it| *it.1 == FileChange::RemovedThere).map(|it| it.0)
}

fn preview(
    root: &BundleRoot<'_>,
    url: &str,
    manifest: &Manifest,
    compared: &Comparison,
    theirs: &BTreeSet<String>,
) -> PullReport {
    let mut report = new_report(root, url, manifest);
    report.dry_run = true;
    for (path, change) in &compared.changes {
        let step = next_step(root, compared, theirs, path, *change);
        let is_there = manifest.files.contains_key(path);
        match step {
            PullStep::Write | PullStep::SaveAndWrite | PullStep::Merge => {
                let note = if is_there { "written" } else { "removed" };
                report.brought.push(PathNote { path: path.clone(), note: note.to_owned() });
            }
            step => add_rest(&mut report, compared, manifest, path, *change, step),
        }
    }
    report
}

/// What a pull does with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PullStep {
    /// Both sides agree, so this is recorded.
    Agree,
    /// Nothing.
    Keep,
    /// The content of the store, or no content, replaces the last common one.
    Write,
    /// One's own content is saved first.
    SaveAndWrite,
    /// The lines of both are joined.
    Merge,
    /// The content of the store is saved.
    SaveTheirs,
    /// It waits for the database.
    Wait,
}

fn next_step(
    root: &BundleRoot<'_>,
    compared: &Comparison,
    theirs: &BTreeSet<String>,
    path: &str,
    change: FileChange,
) -> PullStep {
    let layout = root.vault.layout();
    let is_theirs = theirs.contains(path);
    match change {
        FileChange::None => PullStep::Agree,
        FileChange::Skipped | FileChange::WrittenHere | FileChange::RemovedHere if !is_theirs => {
            PullStep::Keep
        }
        FileChange::Skipped => PullStep::Keep,
        _ if compared.waiting.contains(path) && !is_theirs => PullStep::Wait,
        FileChange::WrittenThere | FileChange::RemovedThere => PullStep::Write,
        _ if is_theirs => PullStep::SaveAndWrite,
        FileChange::Conflict if path == layout.decisions() => PullStep::Merge,
        _ => PullStep::SaveTheirs,
    }
}

fn new_report(root: &BundleRoot<'_>, url: &str, manifest: &Manifest) -> PullReport {
    let name = &manifest.agent_name;
    PullReport {
        other_agent_name: (*name != root.settings.agent_name).then(|| name.clone()),
        url: url.to_owned(),
        root: manifest.root.clone(),
        generation: manifest.generation,
        ..PullReport::default()
    }
}

/// Reports a file that a pull leaves as it is.
fn add_rest(
    report: &mut PullReport,
    compared: &Comparison,
    manifest: &Manifest,
    path: &str,
    change: FileChange,
    step: PullStep,
) {
    let is_here = compared.local.hash(path).is_some();
    let note = |note: &str| PathNote { path: path.to_owned(), note: note.to_owned() };
    match (step, change) {
        (PullStep::Wait, _) => {
            report.conflicts.push(note("waits for the database, which is in conflict"));
        }
        (PullStep::SaveTheirs, _) => {
            report.conflicts.push(note(conflict_note(Some(manifest), path, is_here)));
        }
        (_, FileChange::Skipped) => {
            let reason = compared.local.skipped.get(path);
            report.skipped.push(note(reason.map_or("cannot be read", String::as_str)));
        }
        (_, FileChange::WrittenHere | FileChange::RemovedHere) => report.unpublished += 1,
        _ => {}
    }
}

/// Fetches the objects that hold changed files into the private folder.
fn fetch_objects(
    root: &BundleRoot<'_>,
    storage: &dyn ObjectStorage,
    url: &str,
    manifest: &Manifest,
    compared: &Comparison,
    show: ShowStep<'_>,
) -> Result<(), BundleError> {
    remove_objects(root.vault)?;
    let is_needed = |change: &FileChange| is_incoming(*change) || *change == FileChange::Conflict;
    let paths = compared
        .changes
        .iter()
        .filter(|(path, change)| is_needed(change) || compared.waiting.contains(*path));
    let mut files: BTreeMap<&String, Vec<(&String, &FileEntry)>> = BTreeMap::new();
    for (path, _) in paths {
        if let Some(file) = manifest.files.get(path) {
            files.entry(&file.object).or_default().push((path, file));
        }
    }
    let total = files.len() as u64;
    for (done, (hash, files)) in files.into_iter().enumerate() {
        show(done as u64, total, "downloading");
        reach_failpoint("bundle.pull.object")?;
        let (bytes, raw) = fetch_object(storage, url, manifest, hash)?;
        for (path, file) in files {
            let content = content_of(url, path, file, &raw)?;
            if path == DATABASE {
                root.vault.write_private_bytes(INCOMING_DATABASE, content)?;
                let checked = portable::check_copy(&root.vault.layout().full(INCOMING_DATABASE));
                root.vault.remove_private(INCOMING_DATABASE)?;
                checked?;
            }
        }
        root.vault.write_private_bytes(&object_path(hash), &bytes)?;
    }
    Ok(())
}

fn object_path(hash: &str) -> String {
    format!("{PRIVATE_DIR}/{OBJECT_PREFIX}{hash}")
}

fn remove_objects(vault: &Vault) -> Result<(), BundleError> {
    for path in state::private_files(vault, OBJECT_PREFIX) {
        vault.remove_private(&path)?;
    }
    Ok(vault.remove_private(INCOMING_DATABASE)?)
}

/// Writes what was fetched.
fn apply(
    root: &BundleRoot<'_>,
    incoming: &IncomingPull,
    requires_finished: bool,
) -> Result<PullReport, BundleError> {
    let vault = root.vault;
    let layout = vault.layout();
    let run = RunLock::acquire(layout.root(), &layout.run_lock(), &|| false)?;
    let write = WriteLock::acquire(layout.root())?;
    if requires_finished {
        local_files::require_finished(vault)?;
    }
    // What a crash left while a file was written.
    vault.remove_temp_files(&write)?;
    let mut state = BundleState::load(vault, &incoming.url)?;
    let local = LocalFiles::read(vault, &state.base_hashes())?;
    let compared = compare(root, &state, local, Some(&incoming.manifest), &incoming.theirs);
    let mut pull = AppliedPull {
        root,
        incoming,
        lock: &write,
        state: &mut state,
        report: new_report(root, &incoming.url, &incoming.manifest),
        objects: BTreeMap::new(),
    };
    // Settings first: a crash then leaves the new ones with the old files, which they also fit.
    for (path, change) in compared.changes.iter().filter(|it| it.0 != DATABASE) {
        pull.take_file(&compared, path, *change)?;
    }
    if let Some(change) = compared.changes.get(DATABASE) {
        pull.take_database(&compared, *change)?;
    }
    let report = pull.report;
    let is_brought = |it: &FileChange| {
        matches!(it, FileChange::None | FileChange::WrittenThere | FileChange::RemovedThere)
    };
    let is_whole = report.conflicts.is_empty() && compared.changes.values().all(is_brought);
    state.record(&incoming.manifest, incoming.version.clone());
    reach_failpoint("bundle.pull.applied")?;
    state.save(vault)?;
    reach_failpoint("bundle.pull.recorded")?;
    vault.remove_private(INCOMING)?;
    if let Some(note) = incoming.manifest.up_to_date.as_ref().filter(|_| is_whole) {
        // Without it the next run checks for itself. What was written here since the files were compared makes it void.
        if up_to_date::adopt_note(vault, note)
            && !incoming
                .manifest
                .has_contents(&LocalFiles::read(vault, &state.base_hashes())?.contents())
        {
            up_to_date_note::invalidate(&layout.private_dir()).map_err(|source| {
                BundleError::Io { action: "remove the note that the folder is up to date", source }
            })?;
        }
    }
    drop((write, run));
    remove_objects(vault)?;
    Ok(report)
}

/// A pull that is being written.
struct AppliedPull<'p, 'r> {
    root: &'p BundleRoot<'r>,
    incoming: &'p IncomingPull,
    lock: &'p WriteLock,
    state: &'p mut BundleState,
    report: PullReport,
    /// Unpacked objects, by hash.
    objects: BTreeMap<String, Vec<u8>>,
}

impl AppliedPull<'_, '_> {
    fn take_file(
        &mut self,
        compared: &Comparison,
        path: &str,
        change: FileChange,
    ) -> Result<(), BundleError> {
        let IncomingPull { manifest, theirs, .. } = self.incoming;
        let mut step = next_step(self.root, compared, theirs, path, change);
        if step == PullStep::SaveTheirs && self.has_their_text(compared, path)? {
            step = PullStep::Write;
        }
        match step {
            PullStep::Agree => {
                if !manifest.files.contains_key(path) {
                    // A crash may have removed the visible file only.
                    self.root.vault.complete_pair(self.lock, path, "", None)?;
                }
                self.state.agree(path, manifest);
            }
            PullStep::Write => self.write(compared, path)?,
            PullStep::SaveAndWrite => {
                if let Some(own) = compared.local.content(self.root.vault, path) {
                    self.save_copy(path, &own)?;
                }
                self.write(compared, path)?;
            }
            PullStep::Merge => self.merge_decisions(compared, path)?,
            PullStep::SaveTheirs => {
                self.save_theirs(path)?;
                add_rest(&mut self.report, compared, manifest, path, change, step);
            }
            PullStep::Keep | PullStep::Wait => {
                add_rest(&mut self.report, compared, manifest, path, change, step);
            }
        }
        Ok(())
    }

    /// Returns whether only the record of a file differs from the store's, as after a crash between the two files.
    fn has_their_text(&mut self, compared: &Comparison, path: &str) -> Result<bool, BundleError> {
        if self.root.vault.layout().hidden_path(path).is_none() {
            return Ok(false);
        }
        let own = compared.local.content(self.root.vault, path);
        let both = own.zip(self.content(path)?);
        Ok(both.is_some_and(|(a, b)| visible_bytes(path, &a) == visible_bytes(path, &b)))
    }

    /// Writes or removes a file whose bytes are those that were read.
    fn write(&mut self, compared: &Comparison, path: &str) -> Result<(), BundleError> {
        let vault = self.root.vault;
        let expected = compared.local.hash(path);
        reach_failpoint("bundle.pull.file")?;
        let content = self.content(path)?;
        let (written, note) = match (&content, expected) {
            (Some(content), _) => {
                let staged = vault.stage(path, &Vault::new_temp_name(), content)?;
                (vault.publish(self.lock, staged, expected), "written")
            }
            (None, Some(expected)) => {
                (vault.remove(self.lock, path, &Vault::new_temp_name(), expected), "removed")
            }
            (None, None) => (Ok(()), "removed"),
        };
        match written {
            Ok(()) => {}
            // Somebody wrote it at this moment: the next pull finds a conflict.
            Err(VaultError::Changed { .. }) => {
                let note = "was changed here at this moment".to_owned();
                self.report.conflicts.push(PathNote { path: path.to_owned(), note });
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        }
        if path == vault.layout().decisions()
            && let Some(content) = &content
        {
            // Its copy is about the file as it was.
            private_folder::write_decisions_copy(vault.layout(), content)
                .and_then(|()| private_folder::restrict_decisions(vault.layout()))
                .map_err(|source| BundleError::Io { action: "copy the decisions", source })?;
        }
        self.state.agree(path, &self.incoming.manifest);
        self.add_brought(path, note);
        Ok(())
    }

    /// Adds the decisions of others to one's own. The next push publishes them all.
    fn merge_decisions(&mut self, compared: &Comparison, path: &str) -> Result<(), BundleError> {
        let vault = self.root.vault;
        let own = compared.local.content(vault, path);
        let theirs = self.content(path)?;
        let (Some(own), Some(theirs)) = (own, theirs) else {
            self.save_theirs(path)?;
            let is_here = compared.local.hash(path).is_some();
            let note = conflict_note(Some(&self.incoming.manifest), path, is_here).to_owned();
            self.report.conflicts.push(PathNote { path: path.to_owned(), note });
            return Ok(());
        };
        let [text, others] = [&own, &theirs].map(|it| String::from_utf8_lossy(it).into_owned());
        let known: BTreeSet<&str> = text.lines().collect();
        let new: Vec<&str> = match missing_lines(&text, &others) {
            Some(missing) => missing,
            None => others.lines().filter(|it| !known.contains(it)).collect(),
        };
        let mut joined = text.clone();
        if !joined.is_empty() && !joined.ends_with('\n') {
            joined.push('\n');
        }
        for line in new {
            joined.push_str(line);
            joined.push('\n');
        }
        reach_failpoint("bundle.pull.decisions")?;
        if joined != text {
            vault.replace_decisions(self.lock, &text, &joined)?;
        }
        private_folder::write_decisions_copy(vault.layout(), joined.as_bytes())
            .map_err(|source| BundleError::Io { action: "copy the decisions", source })?;
        self.state.agree(path, &self.incoming.manifest);
        self.add_brought(path, "merged");
        Ok(())
    }

    fn take_database(
        &mut self,
        compared: &Comparison,
        change: FileChange,
    ) -> Result<(), BundleError> {
        let IncomingPull { manifest, theirs, .. } = self.incoming;
        let step = next_step(self.root, compared, theirs, DATABASE, change);
        let vault = self.root.vault;
        match step {
            PullStep::Agree => {
                // A crash may have come before this.
                if let Some(mut lineage) = Lineage::open_existing(&vault.layout().database())? {
                    safety_copies::update_commit_marker(vault, &mut lineage)?;
                }
                self.state.agree(DATABASE, manifest);
            }
            PullStep::Write | PullStep::SaveAndWrite => {
                let Some(content) = self.content(DATABASE)? else {
                    // The next run records the files again.
                    self.state.agree(DATABASE, manifest);
                    return Ok(());
                };
                vault.write_private_bytes(INCOMING_DATABASE, &content)?;
                let mut lineage = Lineage::open(&vault.layout().database())?;
                lineage.replace_with_copy(&vault.layout().full(INCOMING_DATABASE))?;
                reach_failpoint("bundle.pull.database")?;
                safety_copies::update_commit_marker(vault, &mut lineage)?;
                vault.remove_private(INCOMING_DATABASE)?;
                self.state.agree(DATABASE, manifest);
                self.add_brought(DATABASE, "written");
            }
            _ => add_rest(&mut self.report, compared, manifest, DATABASE, change, step),
        }
        Ok(())
    }

    /// Saves the version of the store of a file in conflict, once.
    fn save_theirs(&mut self, path: &str) -> Result<(), BundleError> {
        let theirs = self.incoming.manifest.files.get(path).map(|it| it.hash.clone());
        if self.state.conflicts.get(path).is_some_and(|it| it.theirs == theirs) {
            return Ok(());
        }
        let content = self.content(path)?;
        let copy = content.map(|it| self.save_copy(path, &it)).transpose()?;
        self.state.conflicts.insert(path.to_owned(), SavedConflict { theirs, copy });
        Ok(())
    }

    fn save_copy(&self, path: &str, content: &[u8]) -> Result<String, BundleError> {
        let layout = self.root.vault.layout();
        let bytes = visible_bytes(path, content);
        private_folder::quarantine_file(layout, self.root.now, path, bytes).map_err(|source| {
            BundleError::Io { action: "save the other version of a file", source }
        })
    }

    /// Returns the content of a file in the store; `None` if it was removed there.
    fn content(&mut self, path: &str) -> Result<Option<Vec<u8>>, BundleError> {
        let IncomingPull { manifest, url, .. } = self.incoming;
        let Some(file) = manifest.files.get(path) else { return Ok(None) };
        if !self.objects.contains_key(&file.object) {
            let bad = |reason: &str| BundleError::BadObject {
                url: url.clone(),
                object: file.object.clone(),
                reason: reason.to_owned(),
            };
            let found = self.root.vault.read(&object_path(&file.object))?;
            let bytes = found.ok_or_else(|| bad("its copy in .memoird is missing"))?.bytes;
            let entry = manifest.objects.get(&file.object);
            let entry = entry.ok_or_else(|| bad("the manifest does not name it"))?;
            let raw = pack::unpack(url, &file.object, *entry, &bytes)?;
            self.objects.insert(file.object.clone(), raw);
        }
        let raw = self.objects.get(&file.object).map_or(&[][..], |it| it);
        Ok(Some(content_of(url, path, file, raw)?.to_vec()))
    }

    fn add_brought(&mut self, path: &str, note: &str) {
        self.report.brought.push(PathNote { path: path.to_owned(), note: note.to_owned() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conflict_is_settled_only_where_there_is_one() {
        let changes =
            [("a".to_owned(), FileChange::Conflict), ("b".to_owned(), FileChange::WrittenThere)];
        let compared = Comparison {
            local: LocalFiles::default(),
            changes: changes.into(),
            waiting: BTreeSet::new(),
        };
        let named = |it: &str| [it.to_owned()].into();
        assert_eq!(settle_named(&named("a"), &compared).unwrap(), named("a"));
        assert_eq!(settle_named(&named("all"), &compared).unwrap(), named("a"));
        let error = settle_named(&named("b"), &compared).unwrap_err();
        assert!(matches!(error, BundleError::NoConflict { .. }), "{error}");
    }
}
