//! Publishes what changed here since the last common state: objects first, then the manifest by compare-and-swap.
//!
//! A crash before the manifest leaves objects that nobody names, which a later push removes when they are older
//! than [`GARBAGE_GRACE`] by the clock of the store. A folder that never had anything in common with a bundle cannot
//! be published over it: a pull comes first. If others published meanwhile, the changes are compared again
//! with what they published; files that only one side changed are published, all others are conflicts and stay as
//! they are on both sides.
//!
//! After `forget` a push writes all contents again without the words, publishes a manifest that is marked as
//! `removing`, and removes every other object at once. Whoever finds that mark finishes the removal.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use serde::Serialize;

use super::{
    error::BundleError,
    file_storage,
    local_files::{self, DATABASE, LocalFiles},
    manifest::{
        FORMAT, FileEntry, MANIFEST, MANIFEST_BYTES_MAX, Manifest, OBJECT_BYTES_MAX, OBJECTS,
        RAW_BYTES_MAX, object_key,
    },
    merge::{self, FileChange},
    pack::{self, PackWriter, PackedObject},
    races,
    repack::{self, PackGroup, StoredFile},
    root_name::ExpectedTenant,
    state::BundleState,
    storage::{
        self, FetchedObject, ListedObject, ObjectStorage, ObjectVersion, OldBytes, StorageError,
        StorageErrorKind,
    },
    tested_stores,
};
use crate::{
    compaction::up_to_date,
    config::root::RootSettings,
    memory::{
        hash,
        period::{Grain, Period},
    },
    store::{
        db::lineage::Lineage,
        failpoint,
        fs::{
            layout::{FileKind, Layout},
            lock::{RunLock, WriteLock},
            vault::Vault,
        },
    },
};

/// How old an object must be, by the clock of the store, before it is garbage: its push may still be running.
pub(crate) const GARBAGE_GRACE: TimeDelta = TimeDelta::hours(24);
/// How often a push looks for garbage, which costs a listing.
const SWEEP_INTERVAL: TimeDelta = TimeDelta::hours(24);
/// A push that takes longer than this begins again, since its objects may count as garbage.
const UPLOAD_TIME_MAX: Duration = Duration::from_secs(12 * 3600);
/// How often others may publish in between.
const TRIES_MAX: usize = 8;

/// A root, as this module needs it.
#[derive(Clone, Copy)]
pub(crate) struct BundleRoot<'a> {
    pub(crate) vault: &'a Vault,
    pub(crate) settings: &'a RootSettings,
    pub(crate) now: DateTime<Utc>,
}

/// What a push is asked to do.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is asked for by itself")]
pub(crate) struct PushRequest {
    /// Paths in conflict of which one's own version is published.
    pub(crate) mine: BTreeSet<String>,
    /// Whether the user answers for former versions that the store keeps.
    pub(crate) accepts_versions: bool,
    /// Whether words were just forgotten that no object may hold any longer.
    pub(crate) removes_forgotten: bool,
    /// Whether many removals are meant.
    pub(crate) accepts_missing: bool,
    /// Changes nothing.
    pub(crate) dry_run: bool,
    /// Whose root it is in a fleet.
    pub(crate) tenant: Option<String>,
    /// Whether the machine that published before has tested the store.
    pub(crate) trusts_store: bool,
    /// The folder of persistent state, in which this machine remembers the stores that passed.
    pub(crate) state_home: Option<PathBuf>,
}

/// Asked after the manifest was read and before it is replaced: whether this process may still publish. If somebody
/// else publishes after the answer, the replacement fails.
pub(crate) type PublishGuard<'a> = &'a dyn Fn() -> Result<(), BundleError>;

/// A path, and what happened to it or why not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct PathNote {
    pub(crate) path: String,
    pub(crate) note: String,
}

/// What a push did.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct PushReport {
    pub(crate) url: String,
    pub(crate) root: String,
    /// Identifies the bundle, if it has an identity.
    #[serde(skip)]
    pub(crate) bundle: Option<String>,
    /// Whose root it is in a fleet, by the manifest.
    #[serde(skip)]
    pub(crate) tenant: Option<String>,
    pub(crate) generation: u64,
    pub(crate) dry_run: bool,
    /// `written` or `removed`.
    pub(crate) published: Vec<PathNote>,
    /// Changed on both sides.
    pub(crate) conflicts: Vec<PathNote>,
    /// Not read, so they stay as they are in the store.
    pub(crate) skipped: Vec<PathNote>,
    /// How many files others changed, which a pull would bring.
    pub(crate) incoming: usize,
    /// How many objects were uploaded.
    pub(crate) objects: usize,
    /// How large they were.
    pub(crate) bytes: usize,
    /// How many objects were removed from the store.
    pub(crate) removed_objects: usize,
    /// After `forget`: files whose content in the store is not the one of this root, and may hold the words.
    pub(crate) survivors: Vec<String>,
}

/// Shows progress: steps done, steps in all, and the name of the step.
pub(crate) type ShowStep<'a> = &'a dyn Fn(u64, u64, &str);

/// What a root and a store differ in.
pub(crate) struct Comparison {
    pub(crate) local: LocalFiles,
    pub(crate) changes: BTreeMap<String, FileChange>,
    /// Generated files that wait because the database is in conflict or could not be read.
    pub(crate) waiting: BTreeSet<String>,
}

/// Publishes the changes of a root.
pub(crate) fn push(
    root: &BundleRoot<'_>,
    url: &str,
    request: &PushRequest,
    show: ShowStep<'_>,
) -> Result<PushReport, BundleError> {
    push_guarded(root, url, request, &|| Ok(()), show)
}

/// Publishes the changes of a root as long as `guard` permits it.
pub(crate) fn push_guarded(
    root: &BundleRoot<'_>,
    url: &str,
    request: &PushRequest,
    guard: PublishGuard<'_>,
    show: ShowStep<'_>,
) -> Result<PushReport, BundleError> {
    let storage = storage::open(url)?;
    refuse_overlap(root.vault.layout().root(), url)?;
    // Another push may have begun before the words were forgotten, and cleared the mark.
    let mut state = if request.removes_forgotten {
        BundleState::mark_forgotten(root.vault, url)?
    } else {
        BundleState::load(root.vault, url)?
    };
    state.accepts_versions |= request.accepts_versions;
    let local = read_finished(root, &state)?;
    let mut push = Push { root, url, storage: &*storage, request, guard, state: &mut state, show };
    let mut compared = Comparison { local, changes: BTreeMap::new(), waiting: BTreeSet::new() };
    for _ in 0..TRIES_MAX {
        if let Some(report) = push.attempt(&mut compared)? {
            return Ok(report);
        }
    }
    Err(BundleError::Contended { url: url.to_owned(), tries: TRIES_MAX })
}

/// Notes for all stores of a root that words are being forgotten, before anything is removed here: if the removal
/// from a store fails, the next push makes up for it. Returns the addresses.
pub(crate) fn note_forgetting(vault: &Vault) -> Result<Vec<String>, BundleError> {
    let states = BundleState::load_all(vault)?.into_iter().filter(|it| it.root.is_some());
    let mut urls = Vec::new();
    for BundleState { url, .. } in states {
        BundleState::mark_forgotten(vault, &url)?;
        urls.push(url);
    }
    Ok(urls)
}

/// Reads the files and the database at one moment, between two runs.
pub(super) fn read_finished(
    root: &BundleRoot<'_>,
    state: &BundleState,
) -> Result<LocalFiles, BundleError> {
    let layout = root.vault.layout();
    root.vault.create_private_dir()?;
    let _run = RunLock::acquire(layout.root(), &layout.run_lock(), &|| false)?;
    let _write = WriteLock::acquire(layout.root())?;
    local_files::require_finished(root.vault)?;
    let note = up_to_date::portable_note(root.vault);
    let mut local = LocalFiles::read(root.vault, &state.base_hashes())?;
    // A log may have been changed while it was read.
    local.up_to_date = note.filter(|it| up_to_date::portable_note(root.vault).as_ref() == Some(it));
    Ok(local)
}

/// Compares a root with a manifest.
pub(super) fn compare(
    root: &BundleRoot<'_>,
    state: &BundleState,
    local: LocalFiles,
    manifest: Option<&Manifest>,
    settled: &BTreeSet<String>,
) -> Comparison {
    let there = manifest.map(|it| {
        it.files.keys().filter_map(|path| Some((path.clone(), it.hash_of(path)?))).collect()
    });
    let there = there.unwrap_or_default();
    let changes = merge::compare_all(&local.contents(), &state.base_hashes(), &there);
    let is_unclear = !settled.contains(DATABASE)
        && matches!(changes.get(DATABASE), Some(FileChange::Conflict | FileChange::Skipped));
    let layout = root.vault.layout();
    let waits = |(path, change): &(&String, &FileChange)| {
        is_unclear && **change != FileChange::None && local_files::is_generated(layout, path)
    };
    let waiting = changes.iter().filter(waits).map(|it| it.0.clone()).collect();
    Comparison { local, changes, waiting }
}

/// Fetches the manifest, unless it has the version `known`.
pub(super) fn fetch_manifest(
    storage: &dyn ObjectStorage,
    known: Option<&ObjectVersion>,
) -> Result<FetchedObject, StorageError> {
    storage.get(MANIFEST, known, MANIFEST_BYTES_MAX)
}

/// Refuses a store in the root, whose files would be published into itself, and a root in the store.
pub(super) fn refuse_overlap(root: &Path, url: &str) -> Result<(), BundleError> {
    let Some(store) = file_storage::folder_of(url) else { return Ok(()) };
    if store.starts_with(root) || root.starts_with(&store) {
        return Err(BundleError::Overlap { store, root: root.to_owned() });
    }
    Ok(())
}

/// Fetches and checks an object.
pub(super) fn fetch_object(
    storage: &dyn ObjectStorage,
    url: &str,
    manifest: &Manifest,
    hash: &str,
) -> Result<(Vec<u8>, Vec<u8>), BundleError> {
    let bad = |reason: &str| BundleError::BadObject {
        url: url.to_owned(),
        object: hash.to_owned(),
        reason: reason.to_owned(),
    };
    let entry = manifest.objects.get(hash).ok_or_else(|| bad("the manifest does not name it"))?;
    match storage.get(&object_key(hash), None, OBJECT_BYTES_MAX) {
        Ok(FetchedObject::Found(bytes, _)) => {
            let raw = pack::unpack(url, hash, *entry, &bytes)?;
            Ok((bytes, raw))
        }
        Ok(_) => Err(bad("it is missing")),
        Err(StorageError { kind: StorageErrorKind::TooLarge, .. }) => Err(bad("it is too large")),
        Err(error) => Err(error.into()),
    }
}

/// Returns the content of a file in an unpacked object, and checks it.
pub(super) fn content_of<'r>(
    url: &str,
    path: &str,
    file: &FileEntry,
    raw: &'r [u8],
) -> Result<&'r [u8], BundleError> {
    let range = usize::try_from(file.offset).ok().zip(usize::try_from(file.size).ok());
    let content = range.and_then(|(from, size)| raw.get(from..from.checked_add(size)?));
    let is_right = |it: &&[u8]| local_files::content_hash(path, it).to_string() == file.hash;
    content.filter(is_right).ok_or_else(|| BundleError::BadObject {
        url: url.to_owned(),
        object: file.object.clone(),
        reason: format!("the content of `{path}` is not the one that the manifest names"),
    })
}

/// Removes all objects that a manifest marked as `removing` does not name, and publishes it without the mark.
///
/// Others may do the same at the same time, and do no harm: what is listed before the manifest is found unchanged
/// was uploaded for manifests that can no longer be published.
fn finish_removal(
    storage: &dyn ObjectStorage,
    manifest: &Manifest,
    version: &ObjectVersion,
) -> Result<(usize, Option<(Manifest, ObjectVersion)>), BundleError> {
    let listed = storage.list(OBJECTS)?;
    if !matches!(fetch_manifest(storage, Some(version))?, FetchedObject::Unchanged) {
        return Ok((0, None));
    }
    let mut removed = 0;
    for object in listed.iter().filter(|it| !is_named(manifest, it)) {
        reach_failpoint("bundle.remove.object")?;
        storage.remove(&object.key)?;
        removed += 1;
    }
    reach_failpoint("bundle.remove.done")?;
    let done = Manifest {
        removing: false,
        generation: manifest.generation + 1,
        publication: new_id()?,
        ..manifest.clone()
    };
    match storage.replace(MANIFEST, &done.to_bytes(), version) {
        Ok(version) => Ok((removed, Some((done, version)))),
        Err(StorageError { kind: StorageErrorKind::Changed, .. }) => Ok((removed, None)),
        Err(error) => Err(error.into()),
    }
}

fn is_named(manifest: &Manifest, object: &ListedObject) -> bool {
    let hash = object.key.rsplit('/').next().unwrap_or_default();
    manifest.objects.contains_key(hash) && object.key == object_key(hash)
}

fn new_id() -> Result<String, BundleError> {
    Ok(hash::hex(&pack::random_bytes()?))
}

pub(super) fn reach_failpoint(name: &'static str) -> Result<(), BundleError> {
    failpoint::at(name).map_err(|source| BundleError::Io { action: name, source })
}

/// A push in progress.
struct Push<'p, 'r> {
    root: &'p BundleRoot<'r>,
    url: &'p str,
    storage: &'p dyn ObjectStorage,
    request: &'p PushRequest,
    guard: PublishGuard<'p>,
    state: &'p mut BundleState,
    show: ShowStep<'p>,
}

/// What a push changes in the manifest.
#[derive(Default)]
struct PlannedChanges {
    written: BTreeSet<String>,
    removed: BTreeSet<String>,
    report: PushReport,
}

impl Push<'_, '_> {
    /// Publishes once. Returns `None` if others published meanwhile.
    fn attempt(&mut self, compared: &mut Comparison) -> Result<Option<PushReport>, BundleError> {
        let remote = match fetch_manifest(self.storage, None)? {
            FetchedObject::Missing | FetchedObject::Unchanged => None,
            FetchedObject::Found(bytes, version) => {
                let manifest = Manifest::parse(&bytes, self.url)?;
                manifest.check_root(self.url, self.state)?;
                self.require_joined(&manifest)?;
                manifest.check_paths(self.url, self.root.vault.layout())?;
                let tenant = self.request.tenant.clone();
                let tenant = tenant.map(|name| ExpectedTenant { name, is_required: false });
                manifest.check_tenant(self.url, tenant.as_ref())?;
                self.state.passed_races |= self.request.trusts_store;
                Some((manifest, version))
            }
        };
        if remote.is_none() && self.state.generation > 0 {
            return Err(BundleError::OlderManifest {
                url: self.url.to_owned(),
                found: 0,
                known: self.state.generation,
            });
        }
        if let Some((manifest, version)) = remote.as_ref().filter(|it| it.0.removing)
            && !self.request.dry_run
        {
            finish_removal(self.storage, manifest, version)?;
            return Ok(None);
        }
        let manifest = remote.as_ref().map(|it| &it.0);
        let local = std::mem::take(&mut compared.local);
        *compared = compare(self.root, self.state, local, manifest, &self.request.mine);
        let mut planned = self.plan(compared, manifest)?;
        planned.report.generation = manifest.map_or(0, |it| it.generation);
        planned.report.root = manifest.map(|it| it.root.clone()).unwrap_or_default();
        planned.report.bundle = manifest.and_then(|it| it.bundle.clone());
        planned.report.tenant = manifest.and_then(|it| it.tenant.clone());
        if self.request.dry_run {
            return Ok(Some(planned.report));
        }
        let is_unchanged = planned.written.is_empty() && planned.removed.is_empty();
        if is_unchanged
            && !self.state.must_remove
            && let Some((manifest, version)) = &remote
            && (self.request.tenant.is_none() || self.request.tenant == manifest.tenant)
        {
            self.record(compared, &planned, manifest, version.clone())?;
            return Ok(Some(planned.report));
        }
        self.publish(compared, planned, remote)
    }

    /// Refuses to join this root with a bundle that it never had anything in common with: a pull shows first what is
    /// there.
    fn require_joined(&self, manifest: &Manifest) -> Result<(), BundleError> {
        let BundleState { root, reserved_root, .. } = &*self.state;
        if root.is_some() || reserved_root.as_ref() == Some(&manifest.root) {
            return Ok(());
        }
        Err(BundleError::NotJoined {
            url: self.url.to_owned(),
            agent_name: manifest.agent_name.clone(),
            found: manifest.root.clone(),
        })
    }

    /// Sorts the changes, and refuses what a person must confirm first.
    fn plan(
        &self,
        compared: &Comparison,
        manifest: Option<&Manifest>,
    ) -> Result<PlannedChanges, BundleError> {
        let mut planned = PlannedChanges::default();
        let report = &mut planned.report;
        self.url.clone_into(&mut report.url);
        report.dry_run = self.request.dry_run;
        let note =
            |path: &String, note: &str| PathNote { path: path.clone(), note: note.to_owned() };
        for path in &self.request.mine {
            if compared.changes.get(path) != Some(&FileChange::Conflict) {
                return Err(BundleError::NoConflict { path: path.clone() });
            }
            if manifest.is_some_and(|it| it.forgets > self.state.forgets) {
                return Err(BundleError::ForgottenElsewhere { path: path.clone() });
            }
        }
        let layout = self.root.vault.layout();
        let takes_database = self.request.mine.contains(DATABASE);
        for (path, change) in &compared.changes {
            // The generated files are those of the database.
            let is_mine = self.request.mine.contains(path)
                || takes_database && local_files::is_generated(layout, path);
            let is_here = compared.local.hash(path).is_some();
            if compared.waiting.contains(path) && !is_mine {
                report.conflicts.push(note(path, "waits for the database, which is in conflict"));
                continue;
            }
            match change {
                FileChange::None => {}
                FileChange::WrittenHere => drop(planned.written.insert(path.clone())),
                FileChange::RemovedHere => drop(planned.removed.insert(path.clone())),
                FileChange::Skipped => {
                    let reason = compared.local.skipped.get(path);
                    report
                        .skipped
                        .push(note(path, reason.map_or("cannot be read", String::as_str)));
                }
                _ if is_mine && is_here => drop(planned.written.insert(path.clone())),
                _ if is_mine => drop(planned.removed.insert(path.clone())),
                FileChange::Conflict => {
                    report.conflicts.push(note(path, conflict_note(manifest, path, is_here)));
                }
                FileChange::WrittenThere | FileChange::RemovedThere => report.incoming += 1,
            }
        }
        let gone: Vec<&String> = planned.removed.iter().collect();
        if !self.request.accepts_missing && is_mass_removal(layout, &gone, self.state) {
            return Err(mass_removal(&gone, self.state.base.len(), "here"));
        }
        let written = planned.written.iter().map(|it| note(it, "written"));
        report.published =
            written.chain(planned.removed.iter().map(|it| note(it, "removed"))).collect();
        Ok(planned)
    }

    fn publish(
        &mut self,
        compared: &Comparison,
        mut planned: PlannedChanges,
        remote: Option<(Manifest, ObjectVersion)>,
    ) -> Result<Option<PushReport>, BundleError> {
        self.require_good_store()?;
        let (before, version) = remote.unzip();
        if let Some(version) = &version {
            // Before any content is uploaded.
            self.refuse_kept_versions(version)?;
        }
        if before.is_none() && self.state.root.is_none() && self.state.reserved_root.is_none() {
            self.state.reserved_root = Some(new_id()?);
            self.state.save(self.root.vault)?;
        }
        let before_forgets = before.as_ref().map_or(0, |it| it.forgets);
        let mut manifest = self.next_manifest(before.as_ref())?;
        let sweeps = self.is_sweep_due(before.as_ref());
        if sweeps || before.is_none() {
            manifest.swept = Some(self.root.now);
        }
        for path in &planned.removed {
            manifest.files.remove(path);
        }
        let mut objects = self.pack(compared, &mut planned, &mut manifest)?;
        // What nobody could pull is not published.
        let too_large = |it: &&PackedObject| it.raw > RAW_BYTES_MAX;
        if let Some(object) = objects.iter().find(too_large) {
            let path = object.files.last().map(|it| it.0.clone()).unwrap_or_default();
            return Err(BundleError::TooLarge { path, size: object.raw });
        }
        manifest.drop_unused_objects();
        if manifest.has_contents(&compared.local.contents()) {
            manifest.up_to_date.clone_from(&compared.local.up_to_date);
        }
        objects.retain(|it| manifest.objects.contains_key(&it.hash));
        let started = Instant::now();
        let total = objects.len() as u64 + 1;
        for (done, object) in objects.iter().enumerate() {
            (self.show)(done as u64, total, "uploading");
            reach_failpoint("bundle.push.object")?;
            match self.storage.create(&object_key(&object.hash), &object.bytes) {
                Ok(created) => self.refuse_kept_versions(&created)?,
                // Nobody else uses the name: the reply of an earlier try was lost.
                Err(StorageError { kind: StorageErrorKind::Changed, .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        if started.elapsed() > UPLOAD_TIME_MAX {
            return Ok(None);
        }
        (self.show)(total - 1, total, "publishing");
        (self.guard)()?;
        reach_failpoint("bundle.push.manifest")?;
        let bytes = manifest.to_bytes();
        let published = match &version {
            Some(version) => self.storage.replace(MANIFEST, &bytes, version),
            None => self.storage.create(MANIFEST, &bytes),
        };
        let version = match published {
            Ok(version) => version,
            Err(StorageError { kind: StorageErrorKind::Changed, .. }) => {
                // The reply of an earlier try may have been lost.
                match fetch_manifest(self.storage, None)? {
                    FetchedObject::Found(found, version) if found == bytes => version,
                    _ => return Ok(None),
                }
            }
            Err(error) => return Err(error.into()),
        };
        reach_failpoint("bundle.push.published")?;
        let report = &mut planned.report;
        report.root.clone_from(&manifest.root);
        report.bundle.clone_from(&manifest.bundle);
        report.tenant.clone_from(&manifest.tenant);
        report.objects = objects.len();
        report.bytes = objects.iter().map(|it| it.bytes.len()).sum();
        let (manifest, version) = if manifest.removing {
            self.record(compared, &planned, &manifest, version.clone())?;
            let (removed, done) = finish_removal(self.storage, &manifest, &version)?;
            planned.report.removed_objects = removed;
            self.state.must_remove = !planned.report.survivors.is_empty();
            if before_forgets == self.state.forgets {
                self.state.forgets = manifest.forgets;
            }
            done.unwrap_or((manifest, version))
        } else {
            if let Some(before) = before.filter(|_| sweeps) {
                planned.report.removed_objects = self.sweep(&before, &manifest, &version)?;
            }
            (manifest, version)
        };
        planned.report.generation = manifest.generation;
        self.record(compared, &planned, &manifest, version)?;
        Ok(Some(planned.report))
    }

    /// Tests the store before its first use.
    fn require_good_store(&mut self) -> Result<(), BundleError> {
        if self.state.passed_races {
            return Ok(());
        }
        let (state_home, now) = (self.request.state_home.as_deref(), self.root.now);
        if !state_home.is_some_and(|it| tested_stores::is_tested(it, self.url, now)) {
            (self.show)(0, 1, "testing the store");
            let passed = races::run_races(self.storage, self.url, &new_id()?)?;
            self.refuse_kept_versions(&passed.version)?;
            let drops = self.storage.keeps_old_bytes(&passed.version) == OldBytes::Dropped;
            // What this folder accepts, others may not.
            if let Some(state_home) = state_home.filter(|_| drops) {
                tested_stores::record(state_home, self.url, now);
            }
        }
        self.state.passed_races = true;
        // Remembered also if the push fails.
        self.state.save(self.root.vault)
    }

    fn refuse_kept_versions(&self, version: &ObjectVersion) -> Result<(), BundleError> {
        let url = self.url.to_owned();
        match self.storage.keeps_old_bytes(version) {
            _ if self.state.accepts_versions => Ok(()),
            OldBytes::Dropped => Ok(()),
            OldBytes::Kept => Err(BundleError::KeepsVersions { url }),
            OldBytes::Unknown => Err(BundleError::MayKeepVersions { url }),
        }
    }

    fn next_manifest(&self, before: Option<&Manifest>) -> Result<Manifest, BundleError> {
        let RootSettings { agent_name, zone, .. } = self.root.settings;
        let memory_dir = self.root.vault.layout().memory_dir();
        let BundleState { root, reserved_root, .. } = &*self.state;
        let own_root = || root.clone().or_else(|| reserved_root.clone());
        let root = before.map(|it| it.root.clone()).or_else(own_root);
        let removing = self.state.must_remove;
        Ok(Manifest {
            format: FORMAT,
            memoird: env!("CARGO_PKG_VERSION").to_owned(),
            root: root.map_or_else(new_id, Ok)?,
            bundle: before.map_or_else(|| new_id().map(Some), |it| Ok(it.bundle.clone()))?,
            tenant: self.request.tenant.clone().or_else(|| before.and_then(|it| it.tenant.clone())),
            generation: before.map_or(0, |it| it.generation) + 1,
            publication: new_id()?,
            forgets: before.map_or(0, |it| it.forgets) + u64::from(removing),
            removing,
            published: self.root.now,
            swept: before.and_then(|it| it.swept),
            agent_name: agent_name.clone(),
            zone: zone.name.to_string(),
            memory_dir: if memory_dir.is_empty() { "." } else { memory_dir }.to_owned(),
            schema: Lineage::schema_version() as u64,
            files: before.map(|it| it.files.clone()).unwrap_or_default(),
            objects: before.map(|it| it.objects.clone()).unwrap_or_default(),
            up_to_date: None,
        })
    }

    /// Packs the contents that are not in the store, and names them in the manifest. A file that changed since it
    /// was read stays as it is in the store.
    fn pack(
        &self,
        compared: &Comparison,
        planned: &mut PlannedChanges,
        manifest: &mut Manifest,
    ) -> Result<Vec<PackedObject>, BundleError> {
        let mut packs = PackSet::default();
        let forgets = self.state.must_remove;
        let by_hash: BTreeMap<String, FileEntry> = if forgets {
            BTreeMap::new()
        } else {
            manifest.files.values().map(|it| (it.hash.clone(), it.clone())).collect()
        };
        for path in std::mem::take(&mut planned.written) {
            let Some(hash) = compared.local.hash(&path) else { continue };
            // A log that was archived keeps its object.
            if let Some(file) = by_hash.get(&hash.to_string()) {
                manifest.files.insert(path.clone(), file.clone());
                planned.written.insert(path);
                continue;
            }
            let Some(content) = compared.local.content(self.root.vault, &path) else {
                let note = "was changed while it was published".to_owned();
                planned.report.published.retain(|it| it.path != path);
                planned.report.skipped.push(PathNote { path, note });
                continue;
            };
            packs.add(self.group(&path), &path, hash, &content)?;
            planned.written.insert(path);
        }
        let groups = packs.groups();
        for path in self.paths_to_repack(compared, planned, &groups, manifest) {
            let Some(file) = manifest.files.get(&path).cloned() else { continue };
            let is_same = compared.local.hash(&path).is_some_and(|it| it.to_string() == file.hash);
            let local = if is_same { compared.local.content(self.root.vault, &path) } else { None };
            let content = if let Some(content) = local {
                content
            } else {
                let (_, raw) = fetch_object(self.storage, self.url, manifest, &file.object)?;
                content_of(self.url, &path, &file, &raw)?.to_vec()
            };
            if forgets && !is_same {
                planned.report.survivors.push(path.clone());
            }
            let hash = local_files::content_hash(&path, &content);
            packs.add(self.group(&path), &path, hash, &content)?;
        }
        let objects = packs.finish()?;
        for object in &objects {
            object.add_to(manifest);
        }
        Ok(objects)
    }

    /// Returns the files whose contents are written again though they did not change: after `forget` all, else
    /// those of [`repack::paths_to_repack`].
    fn paths_to_repack(
        &self,
        compared: &Comparison,
        planned: &PlannedChanges,
        written: &BTreeSet<PackGroup>,
        manifest: &Manifest,
    ) -> BTreeSet<String> {
        let files = manifest.files.iter().filter(|(path, _)| !planned.written.contains(*path));
        if self.state.must_remove {
            return files.map(|it| it.0.clone()).collect();
        }
        let stored: Vec<StoredFile<'_>> = files
            .map(|(path, file)| StoredFile {
                path,
                object: &file.object,
                size: file.size,
                group: self.group(path),
                is_here: compared.local.hash(path) == manifest.hash_of(path),
            })
            .collect();
        repack::paths_to_repack(&stored, &manifest.objects, written)
    }

    fn group(&self, path: &str) -> PackGroup {
        let layout = self.root.vault.layout();
        if path == DATABASE {
            return PackGroup::Database;
        }
        let today: NaiveDate =
            self.root.now.with_timezone(&self.root.settings.zone.name.0).date_naive();
        let month = |date| Period::containing(Grain::Month, date);
        let is_log = layout.kind_of(path) == Some(FileKind::Log);
        let stem = layout.stem_at(path).filter(|_| is_log).map(|it| month(it.date()));
        let closed = stem.filter(|it| *it < month(today));
        closed.map_or(PackGroup::Open, |it| PackGroup::Month(it.to_string()))
    }

    /// Returns whether nobody looked for garbage lately. A new bundle has none, or a push that was interrupted left it
    /// moments ago.
    fn is_sweep_due(&self, before: Option<&Manifest>) -> bool {
        let now = self.root.now;
        let is_recent = |it: DateTime<Utc>| it <= now && now - it < SWEEP_INTERVAL;
        before.is_some_and(|it| !it.swept.is_some_and(is_recent))
    }

    /// Removes objects that neither this manifest nor the one before names and that are older than [`GARBAGE_GRACE`].
    fn sweep(
        &self,
        before: &Manifest,
        manifest: &Manifest,
        version: &ObjectVersion,
    ) -> Result<usize, BundleError> {
        // The manifest was published just now by the clock of the store.
        let Some(store_now) = self.storage.modified(MANIFEST)? else { return Ok(0) };
        let listed = self.storage.list(OBJECTS)?;
        let is_old = |it: &ListedObject| store_now - it.modified > GARBAGE_GRACE;
        let is_used = |it: &&ListedObject| is_named(manifest, it) || is_named(before, it);
        let garbage: Vec<_> = listed.iter().filter(|it| !is_used(it) && is_old(it)).collect();
        let is_current = garbage.is_empty()
            || matches!(fetch_manifest(self.storage, Some(version))?, FetchedObject::Unchanged);
        if !is_current {
            return Ok(0);
        }
        for object in &garbage {
            reach_failpoint("bundle.sweep.object")?;
            self.storage.remove(&object.key)?;
        }
        Ok(garbage.len())
    }

    /// Records which files agree with the published manifest.
    fn record(
        &mut self,
        compared: &Comparison,
        planned: &PlannedChanges,
        manifest: &Manifest,
        version: ObjectVersion,
    ) -> Result<(), BundleError> {
        for (path, change) in &compared.changes {
            let is_done = *change == FileChange::None
                || planned.written.contains(path)
                || planned.removed.contains(path);
            if is_done {
                self.state.agree(path, manifest);
            }
        }
        self.state.record(manifest, version);
        self.state.save(self.root.vault)
    }
}

/// Says what kind of conflict a file is in.
pub(super) fn conflict_note(
    manifest: Option<&Manifest>,
    path: &str,
    is_here: bool,
) -> &'static str {
    match (is_here, manifest.is_some_and(|it| it.files.contains_key(path))) {
        (true, true) => "changed here and in the store",
        (true, false) => "changed here, removed from the store",
        (false, true) => "removed here, changed in the store",
        (false, false) => "removed on both sides",
    }
}

/// Returns whether a person must confirm a removal: of a large part of the files, or of all logs.
pub(super) fn is_mass_removal(layout: &Layout, gone: &[&String], state: &BundleState) -> bool {
    let is_log = |path: &&String| layout.kind_of(path) == Some(FileKind::Log);
    let logs = state.base.keys().filter(is_log).count();
    let has_none_left = logs > 1 && gone.iter().filter(|it| is_log(it)).count() == logs;
    has_none_left || merge::is_mass_removal(gone.len(), state.base.len())
}

pub(super) fn mass_removal(
    gone: &[&String],
    known: usize,
    where_gone: &'static str,
) -> BundleError {
    const EXAMPLES_MAX: usize = 3;
    let examples: Vec<&str> = gone.iter().take(EXAMPLES_MAX).map(|it| it.as_str()).collect();
    BundleError::MassRemoval { gone: gone.len(), known, where_gone, examples: examples.join(", ") }
}

/// Packs that are being filled, by group.
#[derive(Default)]
struct PackSet {
    open: BTreeMap<PackGroup, PackWriter>,
    full: Vec<PackedObject>,
}

impl PackSet {
    fn add(
        &mut self,
        group: PackGroup,
        path: &str,
        hash: hash::ContentHash,
        content: &[u8],
    ) -> Result<(), BundleError> {
        let pack = self.open.entry(group).or_default();
        pack.add(path, hash, content);
        if pack.is_full() {
            self.full.push(std::mem::take(pack).finish()?);
        }
        Ok(())
    }

    fn groups(&self) -> BTreeSet<PackGroup> {
        self.open.keys().cloned().collect()
    }

    fn finish(self) -> Result<Vec<PackedObject>, BundleError> {
        let Self { open, mut full } = self;
        for pack in open.into_values().filter(|it| !it.is_empty()) {
            full.push(pack.finish()?);
        }
        Ok(full)
    }
}
