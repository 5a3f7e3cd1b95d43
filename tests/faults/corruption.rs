//! Damage to the database and to generated files: flipped bits, zeroed pages, truncated and swapped
//! files.
//!
//! Damage to checked bytes is reported: if `doctor` finds nothing, the content of the database is
//! unchanged, and a changed generated file is named. Nothing panics, nothing is deleted, and after
//! `doctor --repair --yes` `doctor` finds no problem.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    fs::{self, OpenOptions},
    io::{Read as _, Seek as _, SeekFrom, Write as _},
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
};

use memoird::internals::{memory::hash::ContentHash, store::db::lineage::Lineage};
use serde_json::Value;

use super::{
    oracle::beside,
    root::{CommandOutput, Root},
    trials::{Module, Random, by_form},
};

const DATABASE: &str = ".memoird/lineage.db";
const WAL: &str = ".memoird/lineage.db-wal";
const DECISIONS: &str = "memory/.decisions.jsonl";
const PAGE: u64 = 4096;

/// Damage to one file.
#[derive(Clone, Debug)]
struct Damage {
    /// Whether the write-ahead log has not been merged into the database yet.
    with_wal: bool,
    path: String,
    kind: DamageKind,
}

#[derive(Clone, Debug)]
enum DamageKind {
    Flip { at: u64, bit: u8 },
    Noise { at: u64, seed: u64 },
    ZeroPage { at: u64 },
    Cut { to: u64 },
    Remove,
    Swap { with: String },
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wal = if self.with_wal { " (beside a write-ahead log)" } else { "" };
        write!(f, "{}: {:?}{wal}", self.path, self.kind)
    }
}

impl Damage {
    fn choose(random: &mut Random, with_wal: bool, files: &[(String, u64)]) -> Self {
        let mut below = |most: u64| random.next() % most.max(1);
        let generated: Vec<_> = files.iter().filter(|it| !it.0.starts_with('.')).collect();
        let (path, size) = match below(10) {
            0..4 => files.iter().find(|it| it.0 == DATABASE).unwrap(),
            4..6 if with_wal => files.iter().find(|it| it.0 == WAL).unwrap(),
            6 => files.iter().find(|it| it.0 == DECISIONS).unwrap(),
            _ => generated[usize::try_from(below(generated.len() as u64)).unwrap()],
        };
        let at = below(*size);
        let kind = match below(12) {
            0..6 => DamageKind::Flip { at, bit: u8::try_from(below(8)).unwrap() },
            6 => DamageKind::Noise { at, seed: below(u64::MAX) },
            7..9 => DamageKind::ZeroPage { at: at / PAGE * PAGE },
            9 => DamageKind::Cut { to: at },
            10 => DamageKind::Cut { to: 0 },
            _ if path.starts_with('.') => DamageKind::Remove,
            _ => {
                let with = generated[usize::try_from(below(generated.len() as u64)).unwrap()];
                DamageKind::Swap { with: with.0.clone() }
            }
        };
        Self { with_wal, path: path.clone(), kind }
    }

    fn apply(&self, root: &Root) {
        let path = root.path(&self.path);
        let open = || OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let put = |at: u64, bytes: &[u8]| {
            let mut file = open();
            file.seek(SeekFrom::Start(at)).unwrap();
            file.write_all(bytes).unwrap();
        };
        match &self.kind {
            DamageKind::Flip { at, bit } => {
                let mut byte = [0];
                let mut file = open();
                file.seek(SeekFrom::Start(*at)).unwrap();
                file.read_exact(&mut byte).unwrap();
                put(*at, &[byte[0] ^ 1 << bit]);
            }
            DamageKind::Noise { at, seed } => put(*at, &seed.to_be_bytes()),
            DamageKind::ZeroPage { at } => put(*at, &[0; 4096]),
            DamageKind::Cut { to } => open().set_len(*to).unwrap(),
            DamageKind::Remove => fs::remove_file(&path).unwrap(),
            DamageKind::Swap { with } => {
                let (one, other) = (fs::read(&path).unwrap(), fs::read(root.path(with)).unwrap());
                put(0, &other);
                open().set_len(other.len() as u64).unwrap();
                let mut with = OpenOptions::new().write(true).open(root.path(with)).unwrap();
                with.set_len(0).unwrap();
                with.write_all(&one).unwrap();
            }
        }
    }
}

/// Returns the whole content of the database as text: files, items, sources, runs, jobs, receipts, and
/// versions.
fn database_content(root: &Root) -> Result<String, String> {
    let error = |e: &dyn fmt::Display| e.to_string();
    let lineage = Lineage::open_existing(&root.path(DATABASE)).map_err(|e| error(&e))?;
    let Some(lineage) = lineage else { return Ok("no database".to_owned()) };
    let read = || -> Result<String, memoird::internals::store::db::lineage::LineageError> {
        let runs = lineage.last_runs(u32::MAX)?;
        let mut parts = vec![lineage.canonical_dump()?];
        for run in &runs {
            parts.push(format!("{run:?}\n{:?}\n", lineage.jobs_of_run(run.id)?));
        }
        for version in lineage.versions()? {
            parts.push(format!("{version:?}\n"));
            if let Some(hash) = version.hash {
                parts.push(format!("{:?}\n", lineage.content(hash)?.map(|it| it.len())));
            }
        }
        parts.push(format!("{:?}\n{:?}\n", lineage.logs()?, lineage.extracted_logs()?));
        Ok(parts.concat())
    };
    read().map_err(|e| error(&e))
}

/// Returns all files with their bytes, `.memoird/` included.
fn all_files(root: &Root) -> BTreeMap<String, Vec<u8>> {
    fn collect(top: &Path, dir: &Path, files: &mut BTreeMap<String, Vec<u8>>) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                collect(top, &path, files);
            } else {
                let name = path.strip_prefix(top).unwrap().to_str().unwrap().to_owned();
                files.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    let mut files = BTreeMap::new();
    collect(&root.path(""), &root.path(""), &mut files);
    files
}

/// Returns a folder after two runs, with a bullet that the user deleted in between.
fn compacted_twice() -> Root {
    let root = Root::new();
    root.write("memoird.yaml", "agent_name: mara\nzone: Europe/Berlin\nmemory_dir: memory\n");
    root.add_logs(&["2026-01", "2026-02"]);
    root.run(&["compact"]).ok();
    let week = root.files().into_keys().find(|it| it.starts_with("memory/weekly/2")).unwrap();
    let text = root.read(&week);
    let bullet = text.lines().find(|it| it.starts_with("- ") && it.ends_with(']')).unwrap();
    root.edit(&week, &format!("{bullet}\n"), "");
    root.run(&["compact"]).ok();
    assert!(root.path(DECISIONS).exists());
    root
}

fn doctor(root: &Root, args: &[&str]) -> Result<(Value, CommandOutput), String> {
    let args = [&["doctor", "--json"], args].concat();
    let ran = root.run(&args);
    if ran.stderr.contains("panicked") || ran.status.code().is_none() {
        return Err(format!("it crashed\n{ran}"));
    }
    let report = serde_json::from_str(&ran.stdout).unwrap_or(Value::Null);
    Ok((report, ran))
}

fn trial(damage: &Damage, base: &Root, before: &str, reported: &AtomicUsize) -> Result<(), String> {
    let root = base.copy();
    damage.apply(&root);
    let damaged = all_files(&root);
    let (report, ran) = doctor(&root, &[])?;
    // A hidden file is part of the one beside it.
    let is_named = [&damage.path, &beside(&damage.path)].iter().any(|it| ran.stdout.contains(*it));
    if report["ok"] == true {
        let now = database_content(&root)?;
        if now != before {
            return Err(format!(
                "`doctor` finds nothing, but the content of the database changed\n{ran}"
            ));
        }
        let same = damaged.get(&damage.path) == all_files(base).get(&damage.path);
        if !damage.path.starts_with('.') && !same && !is_named {
            return Err(format!("`doctor` does not name the file\n{ran}"));
        }
        if is_named {
            reported.fetch_add(1, Ordering::Relaxed);
        }
    } else {
        reported.fetch_add(1, Ordering::Relaxed);
    }
    let (_, repair) = doctor(&root, &["--repair", "--yes"])?;
    let (report, after) = doctor(&root, &[])?;
    if report["ok"] != true {
        return Err(format!("problems remain after the repair\n{repair}\nand then\n{after}"));
    }
    let hashes: BTreeSet<ContentHash> =
        all_files(&root).into_values().map(ContentHash::of).collect();
    let lineage = Lineage::open_existing(&root.path(DATABASE)).unwrap().unwrap();
    let history: BTreeSet<ContentHash> = lineage.contents().unwrap().into_iter().collect();
    // A damaged hidden file is replaced by the one in the history.
    let is_content = |it: &&String| {
        !it.ends_with("-shm") && !it.ends_with("-wal") && **it != DATABASE && beside(it) == **it
    };
    for (name, bytes) in damaged.iter().filter(|it| is_content(&it.0)) {
        // These files are derived from the database or name processes.
        let derived = ["witness", "decisions.copy", ".lock", "daemon.json"];
        let hash = ContentHash::of(bytes);
        let is_kept = hashes.contains(&hash) || history.contains(&hash);
        if !derived.iter().any(|it| name.ends_with(it)) && !is_kept {
            return Err(format!("the content of {name} is lost\n{repair}"));
        }
    }
    if damaged.get(DATABASE).is_some_and(|it| !it.is_empty()) {
        let names = all_files(&root).into_keys();
        let backups = names.filter(|it| it.contains("lineage.db.damaged-")).count();
        if !root.path(DATABASE).exists() && backups == 0 {
            return Err(format!("the database is lost\n{repair}"));
        }
    }
    Ok(())
}

#[test]
fn damage_is_reported_and_repaired() {
    let mut module = Module::begin("corruption");
    let mut random = Random::seeded(&mut module);
    let base = compacted_twice();
    let before = database_content(&base).unwrap();
    // The same folder, with its last commits in the write-ahead log: an open reader prevents the
    // checkpoint.
    let open = compacted_twice();
    let reader = Lineage::open(&open.path(DATABASE)).unwrap();
    reader.counts().unwrap();
    let week = open.files().into_keys().rfind(|it| it.starts_with("memory/weekly/")).unwrap();
    let text = open.read(&week);
    let bullet = text.lines().find(|it| it.starts_with("- ") && it.ends_with(']')).unwrap();
    open.edit(&week, &format!("{bullet}\n"), "");
    open.run(&["compact"]).ok();
    let with_wal = open.copy();
    drop(reader);
    assert!(fs::metadata(with_wal.path(WAL)).unwrap().len() > 0);
    let before_with_wal = database_content(&with_wal.copy()).unwrap();
    let sizes = |root: &Root| -> Vec<(String, u64)> {
        let is_target = |it: &String| {
            [DATABASE, WAL].contains(&&it[..])
                || it == DECISIONS
                || it.ends_with("WISDOM.md")
                || it.starts_with("memory/weekly/")
                || it.starts_with("memory/monthly/")
                || it.ends_with("MEMORY.md")
                || ["user_", "feedback_", "project_", "reference_"].iter().any(|p| it.contains(p))
        };
        let files = all_files(root);
        files.into_iter().filter(|it| is_target(&it.0)).map(|(k, v)| (k, v.len() as u64)).collect()
    };
    let (sizes_plain, sizes_with_wal) = (sizes(&base), sizes(&with_wal));
    let cases: Vec<Damage> = (0..by_form(20, 60, 1000))
        .map(|i| {
            let wal = i % 3 == 2;
            Damage::choose(&mut random, wal, if wal { &sizes_with_wal } else { &sizes_plain })
        })
        .collect();
    let reported = AtomicUsize::new(0);
    module.run(&cases, |damage| {
        let (base, before) =
            if damage.with_wal { (&with_wal, &before_with_wal) } else { (&base, &before) };
        trial(damage, base, before, &reported)
    });
    let reported = reported.into_inner();
    module.note(format!("{reported} reported, the others damaged no checked byte"));
    module.end();
}
