//! Damage to the database and to generated files: bits that flip, pages that are zeroed, files that
//! are cut off or take each other's place.
//!
//! What touches bytes that are checked is reported: where `doctor` finds nothing, the database says
//! what it said before, and a generated file that is another one is named. Nothing panics, nothing
//! is deleted, and after `doctor --repair --yes` all is well again.

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
    root::{Ran, Root},
    trials::{Module, Random, by_form},
};

const DATABASE: &str = ".memoird/lineage.db";
const WAL: &str = ".memoird/lineage.db-wal";
const DECISIONS: &str = "memory/.decisions.jsonl";
const PAGE: u64 = 4096;

/// What is done to which file.
#[derive(Clone, Debug)]
struct Damage {
    /// Whether the write-ahead log has not been folded into the database.
    with_wal: bool,
    path: String,
    how: How,
}

#[derive(Clone, Debug)]
enum How {
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
        write!(f, "{}: {:?}{wal}", self.path, self.how)
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
        let how = match below(12) {
            0..6 => How::Flip { at, bit: u8::try_from(below(8)).unwrap() },
            6 => How::Noise { at, seed: below(u64::MAX) },
            7..9 => How::ZeroPage { at: at / PAGE * PAGE },
            9 => How::Cut { to: at },
            10 => How::Cut { to: 0 },
            _ if path.starts_with('.') => How::Remove,
            _ => {
                let with = generated[usize::try_from(below(generated.len() as u64)).unwrap()];
                How::Swap { with: with.0.clone() }
            }
        };
        Self { with_wal, path: path.clone(), how }
    }

    fn apply(&self, root: &Root) {
        let path = root.path(&self.path);
        let open = || OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let put = |at: u64, bytes: &[u8]| {
            let mut file = open();
            file.seek(SeekFrom::Start(at)).unwrap();
            file.write_all(bytes).unwrap();
        };
        match &self.how {
            How::Flip { at, bit } => {
                let mut byte = [0];
                let mut file = open();
                file.seek(SeekFrom::Start(*at)).unwrap();
                file.read_exact(&mut byte).unwrap();
                put(*at, &[byte[0] ^ 1 << bit]);
            }
            How::Noise { at, seed } => put(*at, &seed.to_be_bytes()),
            How::ZeroPage { at } => put(*at, &[0; 4096]),
            How::Cut { to } => open().set_len(*to).unwrap(),
            How::Remove => fs::remove_file(&path).unwrap(),
            How::Swap { with } => {
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

/// All that the database says: files, items, sources; runs, jobs, receipts; versions and bytes.
fn said(root: &Root) -> Result<String, String> {
    let error = |e: &dyn fmt::Display| e.to_string();
    let lineage = Lineage::open_existing(&root.path(DATABASE)).map_err(|e| error(&e))?;
    let Some(lineage) = lineage else { return Ok("no database".to_owned()) };
    let ask = || -> Result<String, memoird::internals::store::db::lineage::LineageError> {
        let runs = lineage.last_runs(u32::MAX)?;
        let mut said = vec![lineage.canonical_dump()?];
        for run in &runs {
            said.push(format!("{run:?}\n{:?}\n", lineage.jobs_of_run(run.id)?));
        }
        for version in lineage.versions()? {
            said.push(format!("{version:?}\n"));
            if let Some(hash) = version.hash {
                said.push(format!("{:?}\n", lineage.content(hash)?.map(|it| it.len())));
            }
        }
        said.push(format!("{:?}\n{:?}\n", lineage.logs()?, lineage.extracted_logs()?));
        Ok(said.concat())
    };
    ask().map_err(|e| error(&e))
}

/// Every file with its bytes, also the private ones.
fn everything(root: &Root) -> BTreeMap<String, Vec<u8>> {
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

/// A folder that was folded twice, with a bullet that a person deleted.
fn folded() -> Root {
    let root = Root::new();
    root.write("memoird.yaml", "agent_name: mara\nzone: Europe/Berlin\nmemory_dir: memory\n");
    root.add_logs(&["2026-01", "2026-02"]);
    root.run(&["compact"]).ok();
    let week = root.files().into_keys().find(|it| it.starts_with("memory/weekly/")).unwrap();
    let text = root.read(&week);
    let bullet = text.lines().find(|it| it.starts_with("- ") && it.ends_with(']')).unwrap();
    root.edit(&week, &format!("{bullet}\n"), "");
    root.run(&["compact"]).ok();
    assert!(root.path(DECISIONS).exists());
    root
}

fn doctor(root: &Root, args: &[&str]) -> Result<(Value, Ran), String> {
    let args = [&["doctor", "--json"], args].concat();
    let ran = root.run(&args);
    if ran.stderr.contains("panicked") || ran.status.code().is_none() {
        return Err(format!("it falls over\n{ran}"));
    }
    let report = serde_json::from_str(&ran.stdout).unwrap_or(Value::Null);
    Ok((report, ran))
}

fn trial(damage: &Damage, base: &Root, before: &str, reported: &AtomicUsize) -> Result<(), String> {
    let root = base.copy();
    damage.apply(&root);
    let harmed = everything(&root);
    let (report, ran) = doctor(&root, &[])?;
    let named = ran.stdout.contains(&damage.path);
    if report["ok"] == true {
        let now = said(&root)?;
        if now != before {
            return Err(format!(
                "`doctor` finds nothing, but the database says something else\n{ran}"
            ));
        }
        let same = harmed.get(&damage.path) == everything(base).get(&damage.path);
        if !damage.path.starts_with('.') && !same && !named {
            return Err(format!("`doctor` does not name the file\n{ran}"));
        }
        if named {
            reported.fetch_add(1, Ordering::Relaxed);
        }
    } else {
        reported.fetch_add(1, Ordering::Relaxed);
    }
    let (_, repair) = doctor(&root, &["--repair", "--yes"])?;
    let (report, after) = doctor(&root, &[])?;
    if report["ok"] != true {
        return Err(format!("it is not well after the repair\n{repair}\nand then\n{after}"));
    }
    let kept: BTreeSet<ContentHash> =
        everything(&root).into_values().map(ContentHash::of).collect();
    let lineage = Lineage::open_existing(&root.path(DATABASE)).unwrap().unwrap();
    let history: BTreeSet<ContentHash> = lineage.contents().unwrap().into_iter().collect();
    let ours = |it: &&String| !it.ends_with("-shm") && !it.ends_with("-wal") && **it != DATABASE;
    for (name, bytes) in harmed.iter().filter(|it| ours(&it.0)) {
        // Witnesses follow the database, locks name processes; an index is made from the memories.
        let follows = ["witness", "decisions.copy", ".lock", "daemon.json"];
        let hash = ContentHash::of(bytes);
        let is_kept = kept.contains(&hash) || history.contains(&hash);
        if !follows.iter().any(|it| name.ends_with(it)) && !is_kept {
            return Err(format!("what stood in {name} is nowhere any more\n{repair}"));
        }
    }
    if harmed.get(DATABASE).is_some_and(|it| !it.is_empty()) {
        let standing = everything(&root).into_keys();
        let aside = standing.filter(|it| it.contains("lineage.db.damaged-")).count();
        if !root.path(DATABASE).exists() && aside == 0 {
            return Err(format!("the database is nowhere any more\n{repair}"));
        }
    }
    Ok(())
}

#[test]
fn damage_is_reported_and_repaired() {
    let mut module = Module::begin("corruption");
    let mut random = Random::seeded(&mut module);
    let base = folded();
    let before = said(&base).unwrap();
    // The same folder, with its last commits in the write-ahead log: a reader keeps it from being
    // folded in.
    let open = folded();
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
    let before_with_wal = said(&with_wal.copy()).unwrap();
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
        let files = everything(root);
        files.into_iter().filter(|it| is_target(&it.0)).map(|(k, v)| (k, v.len() as u64)).collect()
    };
    let (plain, walled) = (sizes(&base), sizes(&with_wal));
    let cases: Vec<Damage> = (0..by_form(20, 60, 1000))
        .map(|i| {
            let wal = i % 3 == 2;
            Damage::choose(&mut random, wal, if wal { &walled } else { &plain })
        })
        .collect();
    let reported = AtomicUsize::new(0);
    module.run(&cases, |damage| {
        let (base, before) =
            if damage.with_wal { (&with_wal, &before_with_wal) } else { (&base, &before) };
        trial(damage, base, before, &reported)
    });
    let reported = reported.into_inner();
    module.note(format!("{reported} reported, the others touched no checked byte"));
    module.end();
}
