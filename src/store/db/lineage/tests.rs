//! Tests of the lineage over files in a temporary folder.

use std::{
    ffi::OsString,
    fs::{self, Permissions},
    io::Write as _,
    os::unix::{
        ffi::OsStringExt as _,
        fs::{MetadataExt as _, PermissionsExt as _, symlink},
    },
    path::PathBuf,
};

use chrono::{DateTime, TimeDelta, Utc};

use super::{
    history::{NewVersion, VersionCause},
    jobs::{
        IntentOutcome, JobMetrics, JobOutcome, JobStage, NewIntent, NewJob, NewRun, Receipt, RunId,
    },
    query::ItemLocation,
    record::{
        Commit, CoverageRecord, DocumentKind, DocumentRecord, ItemRecord, LogRecord, ScannedFile,
    },
    *,
};
use crate::memory::{
    address::{Address, Stem},
    hash::ContentHash,
    item::Tier,
};

struct Fixture {
    dir: tempfile::TempDir,
    lineage: Lineage,
}

fn fixture() -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    let lineage = Lineage::open(&dir.path().join(".memoird/lineage.db")).unwrap();
    Fixture { dir, lineage }
}

fn now() -> DateTime<Utc> {
    "2026-05-04T07:00:00Z".parse().unwrap()
}

fn stem(name: &str) -> Stem {
    name.parse().unwrap()
}

fn run(lineage: &mut Lineage, owner: &str) -> RunId {
    lineage.begin_run(&NewRun { trigger: "tick", version: "0.1.0", owner, now: now() }).unwrap()
}

fn week_job(inputs: &str) -> NewJob {
    NewJob {
        fingerprint: ContentHash::of(format!("weekly 2026-W14 {inputs}")),
        tier: Tier::Weekly,
        period: "2026-W14".parse().unwrap(),
        engine: "extractive/1".to_owned(),
        inputs: ContentHash::of(inputs),
        now: now(),
    }
}

fn receipt(outcome: JobOutcome) -> Receipt {
    Receipt::new(outcome, None, now() + TimeDelta::seconds(1))
}

fn document(kind: DocumentKind, path: &str, items: &[(u32, &str)]) -> DocumentRecord {
    DocumentRecord {
        path: path.to_owned(),
        kind,
        hash: ContentHash::of(format!("{path} {items:?}")),
        items: items
            .iter()
            .map(|&(line, citation)| ItemRecord {
                line,
                hash: ContentHash::of(format!("words {line}")).hex8(),
                citation: citation.parse().ok(),
            })
            .collect(),
    }
}

fn log(name: &str, lines: &[u64]) -> LogRecord {
    LogRecord {
        quarantined: Vec::new(),
        stem: stem(name),
        path: format!("memory/{name}.md"),
        hash: ContentHash::of(format!("{name} {lines:?}")),
        first_line: 3,
        line_hashes: lines.to_vec(),
        raw: None,
    }
}

fn week(items: &[(u32, &str)]) -> DocumentRecord {
    document(DocumentKind::Weekly, "memory/weekly/2026-W14.md", items)
}

#[track_caller]
fn check_citing(lineage: &Lineage, address: &str, expected: &[&str]) {
    let address: Address = address.parse().unwrap();
    let items = lineage.items_citing(&address.stem, address.line).unwrap();
    let found = items.iter().map(|ItemLocation { path, line, .. }| format!("{path}:{line}"));
    assert_eq!(found.collect::<Vec<_>>(), expected, "{address}");
}

#[test]
fn a_new_database_is_private_sound_and_synced() {
    let Fixture { dir, lineage } = fixture();
    lineage.integrity_check().unwrap();
    assert_eq!(lineage.counts().unwrap(), query::LineageCounts::default());
    let mode = |name: &str| fs::metadata(dir.path().join(name)).unwrap().mode() & 0o777;
    assert_eq!(mode(".memoird"), 0o700);
    for name in ["lineage.db", "lineage.db-wal", "lineage.db-shm"] {
        assert_eq!(mode(&format!(".memoird/{name}")), 0o600, "{name}");
    }
    let pragma = |name: &str| -> i64 {
        lineage.conn.pragma_query_value(None, name, |row| row.get(0)).unwrap()
    };
    // FULL is 2.
    assert_eq!(pragma("synchronous"), 2);
    assert_eq!(pragma("foreign_keys"), 1);
    assert_eq!(pragma("trusted_schema"), 0);
    assert_eq!(pragma("mmap_size"), 0);
    assert_eq!(pragma("busy_timeout"), 5000);
    assert_eq!(pragma("user_version"), i64::try_from(Lineage::schema_version()).unwrap());
}

#[test]
fn opening_makes_a_readable_database_private() {
    let Fixture { dir, lineage } = fixture();
    drop(lineage);
    let path = dir.path().join(".memoird/lineage.db");
    fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
    Lineage::open(&path).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
}

#[test]
fn links_are_refused_except_on_the_way_to_the_root() {
    let Fixture { dir, lineage } = fixture();
    drop(lineage);
    let at = |path: &str| dir.path().join(path);
    let bytes = fs::read(at(".memoird/lineage.db")).unwrap();
    symlink(dir.path(), at("root")).unwrap();
    for path in [".memoird/lineage.db", "root/.memoird/lineage.db"] {
        Lineage::open(&at(path)).unwrap();
        assert!(Lineage::open_existing(&at(path)).unwrap().is_some(), "{path}");
    }
    fs::create_dir_all(at("a/.memoird")).unwrap();
    fs::create_dir_all(at("b")).unwrap();
    fs::create_dir_all(at("c/.memoird")).unwrap();
    symlink("../../.memoird/lineage.db", at("a/.memoird/lineage.db")).unwrap();
    symlink("../.memoird", at("b/.memoird")).unwrap();
    fs::copy(at(".memoird/lineage.db"), at("c/.memoird/lineage.db")).unwrap();
    symlink("../../log", at("c/.memoird/lineage.db-wal")).unwrap();
    for (root, link) in [("a", "lineage.db"), ("b", ".memoird"), ("c", "lineage.db-wal")] {
        let path = at(root).join(".memoird/lineage.db");
        let refused = [
            Lineage::open(&path).map(drop),
            Lineage::open_existing(&path).map(drop),
            Lineage::set_aside(&path, now()).map(drop),
        ];
        for error in refused.map(Result::unwrap_err) {
            assert!(
                matches!(&error, LineageError::SymbolicLink { path } if path.ends_with(link)),
                "{root}: {error}"
            );
        }
    }
    assert!(!at("log").exists());
    assert_eq!(fs::read(at(".memoird/lineage.db")).unwrap(), bytes);
}

#[test]
fn several_processes_may_open_a_new_database_at_once() {
    // Whether they meet while the first one sets up the file is chance.
    for _ in 0..20 {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lineage.db");
        std::thread::scope(|scope| {
            let opened: Vec<_> = (0..8).map(|_| scope.spawn(|| Lineage::open(&path))).collect();
            for lineage in opened {
                lineage.join().unwrap().unwrap().counts().unwrap();
            }
        });
    }
}

#[test]
fn damage_is_distinguished_from_a_lock() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lineage.db");
    let mut file = fs::File::create(&path).unwrap();
    file.write_all(&[b'x'; 5000]).unwrap();
    let error = Lineage::open(&path).unwrap_err();
    assert!(matches!(error, LineageError::Damaged { .. }), "{error}");
    assert!(error.to_string().contains("memoird rebuild"));
    assert_eq!(fs::metadata(&path).unwrap().len(), 5000, "a damaged file is not changed");

    let Fixture { dir: _dir, lineage } = fixture();
    let wait = Duration::ZERO;
    let mut other = Lineage::open_with(lineage.path(), schema::MIGRATIONS, wait).unwrap();
    lineage.conn.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = other.end_run(RunId(1), now()).unwrap_err();
    assert!(matches!(error, LineageError::Busy { .. }), "{error}");
    lineage.conn.execute_batch("ROLLBACK").unwrap();
    other.end_run(RunId(1), now()).unwrap();
}

#[test]
fn a_damaged_page_is_found() {
    let Fixture { dir, mut lineage } = fixture();
    let items: Vec<(u32, String)> = (1..2000).map(|it| (it, format!("2026-04-02:{it}"))).collect();
    let items: Vec<(u32, &str)> = items.iter().map(|(line, it)| (*line, it.as_str())).collect();
    lineage.replace_all(&[week(&items)], &[], &[]).unwrap();
    drop(lineage);
    let path = dir.path().join(".memoird/lineage.db");
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 8192].fill(0xa5);
    let mut file = fs::File::create(&path).unwrap();
    file.write_all(&bytes).unwrap();
    let checked = Lineage::open(&path).and_then(|it| it.integrity_check());
    assert!(matches!(checked, Err(LineageError::Damaged { .. })), "{checked:?}");
}

#[test]
fn opening_for_reading_creates_and_changes_nothing() {
    let Fixture { dir, lineage } = fixture();
    let absent = dir.path().join("absent/lineage.db");
    assert!(Lineage::open_existing(&absent).unwrap().is_none());
    assert!(!absent.parent().unwrap().exists());
    let path = lineage.path().to_owned();
    let mut reader = Lineage::open_existing(&path).unwrap().unwrap();
    assert_eq!(reader.counts().unwrap(), lineage.counts().unwrap());
    assert!(reader.replace_all(&[], &[], &[]).is_err());
    let empty = dir.path().join("empty.db");
    fs::File::create(&empty).unwrap();
    assert!(Lineage::open_existing(&empty).unwrap().is_none());
}

#[test]
fn a_damaged_database_is_set_aside_with_its_write_ahead_log() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lineage.db");
    for (name, text) in [("lineage.db", "no database"), ("lineage.db-wal", "frames")] {
        fs::File::create(dir.path().join(name)).unwrap().write_all(text.as_bytes()).unwrap();
    }
    let aside = Lineage::set_aside(&path, now()).unwrap();
    assert_eq!(aside, dir.path().join("lineage.db.damaged-20260504T070000000Z"));
    assert_eq!(fs::read_to_string(&aside).unwrap(), "no database");
    Lineage::open(&path).unwrap().integrity_check().unwrap();
    let mut wal = aside.into_os_string();
    wal.push("-wal");
    assert_eq!(fs::read_to_string(wal).unwrap(), "frames");
}

#[test]
fn an_interrupted_set_aside_keeps_database_and_write_ahead_log_together() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lineage.db");
    let file = |name: &str, text: &str| {
        fs::File::create(dir.path().join(name)).unwrap().write_all(text.as_bytes()).unwrap();
    };
    // A crash came after the write-ahead log was renamed.
    file("lineage.db", "no database");
    file("lineage.db.damaged-next", "20260501T000000000Z");
    file("lineage.db.damaged-20260501T000000000Z-wal", "frames");
    assert!(Lineage::is_set_aside_unfinished(&path));
    let aside = Lineage::set_aside(&path, now()).unwrap();
    assert_eq!(aside, dir.path().join("lineage.db.damaged-20260501T000000000Z"));
    assert!(!Lineage::is_set_aside_unfinished(&path));
    // A later database gets its own name.
    file("lineage.db", "no database either");
    let later = Lineage::set_aside(&path, now()).unwrap();
    assert_eq!(later, dir.path().join("lineage.db.damaged-20260504T070000000Z"));
    assert_eq!(fs::read_to_string(&aside).unwrap(), "no database");
}

#[test]
fn one_fingerprint_is_live_once() {
    let Fixture { mut lineage, .. } = fixture();
    let run = run(&mut lineage, "1");
    let job = lineage.begin_job(run, &week_job("a")).unwrap();
    let again = lineage.begin_job(run, &week_job("a"));
    assert!(matches!(again, Err(LineageError::AlreadyLive { .. })), "{again:?}");
    let other = lineage.begin_job(run, &week_job("b")).unwrap();
    assert_eq!(lineage.live_jobs().unwrap().len(), 2);
    lineage.finish_job(job, &receipt(JobOutcome::Failed)).unwrap();
    let twice = lineage.finish_job(job, &receipt(JobOutcome::Written));
    assert!(matches!(twice, Err(LineageError::NotLive { .. })), "{twice:?}");
    lineage.begin_job(run, &week_job("a")).unwrap();
    lineage.finish_job(other, &receipt(JobOutcome::Skipped)).unwrap();
}

#[test]
fn failures_count_until_the_next_success() {
    let Fixture { mut lineage, .. } = fixture();
    let run = run(&mut lineage, "1");
    let new = week_job("a");
    let mut go = |outcome| {
        let job = lineage.begin_job(run, &new).unwrap();
        lineage.finish_job(job, &receipt(outcome)).unwrap();
        let last = &lineage.last_receipts().unwrap()[0];
        let is_stuck = last.receipt.as_ref().unwrap().outcome == JobOutcome::Stuck;
        (last.attempt, lineage.failed_attempts(new.fingerprint).unwrap(), usize::from(is_stuck))
    };
    assert_eq!(go(JobOutcome::Failed), (1, 1, 0));
    assert_eq!(go(JobOutcome::Skipped), (2, 1, 0));
    assert_eq!(go(JobOutcome::Failed), (2, 2, 0));
    assert_eq!(go(JobOutcome::Stuck), (3, 3, 1));
    assert_eq!(go(JobOutcome::Written), (4, 0, 0));
    assert_eq!(go(JobOutcome::Failed), (1, 1, 0));
    assert_eq!(lineage.failed_attempts(week_job("b").fingerprint).unwrap(), 0);
}

#[test]
fn receipts_read_as_they_were_written() {
    let Fixture { mut lineage, .. } = fixture();
    let run = run(&mut lineage, "1");
    let job = lineage.begin_job(run, &week_job("a")).unwrap();
    let receipt = Receipt {
        outcome: JobOutcome::Written,
        reason: Some("2 parked weeks left out".to_owned()),
        ended: now() + TimeDelta::milliseconds(1234),
        path: Some("memory/weekly/2026-W14.md".to_owned()),
        metrics: JobMetrics {
            sources: 5,
            source_chars: 6_000_000_000,
            output_chars: 2,
            items: 3,
            rejected: 4,
            uncovered: 6,
            amounts: 9,
            amounts_kept: 8,
            model_calls: 7,
            cost_usd: 0.125,
        },
        excused: false,
    };
    lineage.finish_job(job, &receipt).unwrap();
    lineage.end_run(run, now()).unwrap();
    let rows = lineage.jobs_of_run(run).unwrap();
    assert_eq!(rows[0].receipt.as_ref(), Some(&receipt));
    assert_eq!((rows[0].started, rows[0].inputs), (now(), ContentHash::of("a")));
    let runs = lineage.last_runs(5).unwrap();
    assert_eq!((runs[0].id, runs[0].ended), (run, Some(now())));
}

#[test]
fn a_crash_ends_jobs_and_counts_only_those_that_called_a_model() {
    let Fixture { mut lineage, .. } = fixture();
    let (dead, alive) = (run(&mut lineage, "dead"), run(&mut lineage, "alive"));
    lineage.begin_job(dead, &week_job("free")).unwrap();
    let paid = lineage.begin_job(dead, &week_job("paid")).unwrap();
    lineage.set_job_stage(paid, JobStage::Called).unwrap();
    let kept = lineage.begin_job(alive, &week_job("kept")).unwrap();
    let ended = lineage.end_abandoned_jobs(now(), &|owner| owner == "alive").unwrap();
    let reasons: Vec<_> = ended.iter().map(|it| it.receipt.clone().unwrap().reason).collect();
    assert_eq!(reasons, [Some("ended by a crash".to_owned()), Some("ended by a crash".to_owned())]);
    assert_eq!(lineage.failed_attempts(week_job("free").fingerprint).unwrap(), 0);
    assert_eq!(lineage.failed_attempts(week_job("paid").fingerprint).unwrap(), 1);
    assert_eq!(lineage.live_jobs().unwrap().iter().map(|it| it.id).collect::<Vec<_>>(), [kept]);
    assert_eq!(lineage.end_abandoned_jobs(now(), &|owner| owner == "alive").unwrap(), []);
}

#[test]
fn the_journal_lists_open_intents_and_writes_of_a_run() {
    let Fixture { mut lineage, .. } = fixture();
    let run = run(&mut lineage, "1");
    let job = lineage.begin_job(run, &week_job("a")).unwrap();
    let intent = |target, old| NewIntent {
        target,
        source: None,
        temp: ".memoird-tmp-1",
        new: Some(b"new"),
        old,
        discards_old: false,
    };
    let two = [intent("a.md", None), intent("b.md", Some(&b"old"[..]))];
    let begun = lineage.begin_intents(None, Some(job), &two, now()).unwrap();
    let (first, second) = (begun[0], begun[1]);
    let open = lineage.open_intents().unwrap();
    assert_eq!(open.iter().map(|it| it.target.as_str()).collect::<Vec<_>>(), ["a.md", "b.md"]);
    assert_eq!((open[0].old_hash, open[1].old_hash), (None, Some(ContentHash::of("old"))));
    lineage.close_intents(&[first], IntentOutcome::Abandoned).unwrap();
    assert!(matches!(
        lineage.close_intents(&[first], IntentOutcome::Done),
        Err(LineageError::NotOpen { .. })
    ));
    lineage
        .commit(&Commit {
            job: Some((job, &receipt(JobOutcome::Written))),
            intents: &[second],
            ..Commit::default()
        })
        .unwrap();
    assert_eq!(lineage.open_intents().unwrap(), []);
    let wrote = lineage.writes_of_run(run).unwrap();
    assert_eq!(wrote.iter().map(|it| it.target.as_str()).collect::<Vec<_>>(), ["b.md"]);
}

#[test]
fn a_commit_stores_everything() {
    let Fixture { dir, mut lineage } = fixture();
    let run = run(&mut lineage, "1");
    let job = lineage.begin_job(run, &week_job("a")).unwrap();
    let (path, day) = ("memory/weekly/2026-W14.md".to_owned(), stem("2026-04-02"));
    let at = |line| Address { stem: stem("2026-04-02"), line };
    let stamp = ScannedFile {
        inode: u64::MAX,
        size: 9,
        mtime_ns: -1,
        hash: ContentHash::of("x"),
        seen_ns: 12,
    };
    let odd = PathBuf::from(OsString::from_vec(vec![b'a', 0xff]));
    lineage
        .commit(&Commit {
            job: Some((job, &receipt(JobOutcome::Written))),
            used: &["memory/2026-04-02.md".to_owned(), "memory/2026-04-02.md".to_owned()],
            documents: &[week(&[(9, "2026-04-02:4,9-11; 2026-04-03:2"), (12, "")])],
            logs: &[log("2026-04-02", &[1, u64::MAX])],
            coverage: &[CoverageRecord {
                path: path.clone(),
                lines: vec![(at(6), "repeat"), (at(5), "repeat"), (at(7), "over budget")],
            }],
            extracted: &[(day.clone(), ContentHash::of("log"))],
            files: &[(odd.clone(), stamp)],
            ..Commit::default()
        })
        .unwrap();
    // Everything is there after a restart.
    drop(lineage);
    let lineage = Lineage::open(&dir.path().join(".memoird/lineage.db")).unwrap();
    lineage.integrity_check().unwrap();
    let items = lineage.items_of(&path).unwrap();
    let cited = items[0].citation.as_ref().map(ToString::to_string);
    assert_eq!(cited.as_deref(), Some("2026-04-02:4,9-11; 2026-04-03:2"));
    assert_eq!((items[1].line, &items[1].citation), (12, &None));
    assert_eq!(lineage.document_hash(&path).unwrap(), Some(lineage.documents().unwrap()[&path].1));
    check_citing(&lineage, "2026-04-02:4", &["memory/weekly/2026-W14.md:9"]);
    check_citing(&lineage, "2026-04-02:10", &["memory/weekly/2026-W14.md:9"]);
    check_citing(&lineage, "2026-04-02:5", &[]);
    let recorded = lineage.log(&day).unwrap().unwrap();
    assert_eq!((recorded.line_hash(2), recorded.line_hash(4)), (None, Some(u64::MAX)));
    assert_eq!(lineage.logs().unwrap()[&day], recorded);
    assert_eq!(lineage.extracted_logs().unwrap()[&day], ContentHash::of("log"));
    assert_eq!(lineage.scanned_files().unwrap()[&odd], stamp);
    let left: Vec<_> = lineage.uncovered_lines(&path).unwrap().into_iter().collect();
    let why = |line, reason: &str| (at(line), reason.to_owned());
    assert_eq!(left, [why(5, "repeat"), why(6, "repeat"), why(7, "over budget")]);
    assert_eq!(lineage.generated_by(job).unwrap()[0].0, path);
    let used = "SELECT path FROM used JOIN entity ON entity.id = entity WHERE activity = ?1";
    let used: String = lineage.conn.query_row(used, [job.number()], |row| row.get(0)).unwrap();
    assert_eq!(used, recorded.path);
    let counts = lineage.counts().unwrap();
    assert_eq!((counts.items, counts.derivations, counts.logs), (2, 3, 1));
}

#[test]
fn a_commit_that_fails_changes_nothing() {
    let Fixture { mut lineage, .. } = fixture();
    let run = run(&mut lineage, "1");
    let job = lineage.begin_job(run, &week_job("a")).unwrap();
    lineage.replace_all(&[week(&[(9, "2026-04-02:4")])], &[], &[]).unwrap();
    let before = lineage.canonical_dump().unwrap();
    let receipt = receipt(JobOutcome::Written);
    let commit = Commit {
        job: Some((job, &receipt)),
        documents: &[week(&[(8, "2026-04-02:1"), (9, "2026-04-02:2")])],
        removed: &["memory/weekly/2026-W14.md".to_owned()],
        logs: &[log("2026-04-02", &[1])],
        ..Commit::default()
    };
    // The last step of the transaction fails, because the file that the job read has no record.
    let used = ["memory/2026-04-09.md".to_owned()];
    let failed = lineage.commit(&Commit { used: &used, ..commit });
    assert!(matches!(failed, Err(LineageError::NoRecord { .. })), "{failed:?}");
    assert_eq!(lineage.canonical_dump().unwrap(), before);
    assert_eq!(lineage.logs().unwrap().len(), 0);
    assert_eq!(lineage.live_jobs().unwrap().len(), 1);
    // Two items on one line are an error, too.
    let twice = [week(&[(8, "2026-04-02:1"), (8, "2026-04-02:2")])];
    assert!(lineage.commit(&Commit { documents: &twice, ..commit }).is_err());
    assert_eq!(lineage.canonical_dump().unwrap(), before);
    lineage.commit(&commit).unwrap();
    assert_ne!(lineage.canonical_dump().unwrap(), before);
}

#[test]
fn an_interrupted_commit_is_complete_or_absent() {
    let Fixture { mut lineage, .. } = fixture();
    let run = run(&mut lineage, "1");
    let job = lineage.begin_job(run, &week_job("a")).unwrap();
    lineage.replace_all(&[week(&[(9, "2026-04-02:4")])], &[], &[]).unwrap();
    let (dump, counts) = (lineage.canonical_dump().unwrap(), lineage.counts().unwrap());
    let receipt = receipt(JobOutcome::Written);
    let documents = [week(&[(8, "2026-04-02:1"), (9, "2026-04-02:2")])];
    let logs = [log("2026-04-02", &[1]), log("2026-04-03", &[1])];
    let commit = Commit {
        job: Some((job, &receipt)),
        documents: &documents,
        logs: &logs,
        ..Commit::default()
    };
    // Interrupt it after more and more steps of SQLite's virtual machine, until it succeeds.
    let mut interrupted = 0;
    for steps in (1..20_000).step_by(7) {
        let mut step = 0;
        let once = move || {
            step += 1;
            step == steps
        };
        lineage.conn.progress_handler(1, Some(once)).unwrap();
        let done = lineage.commit(&commit);
        lineage.conn.progress_handler(0, None::<fn() -> bool>).unwrap();
        if done.is_ok() {
            break;
        }
        interrupted += 1;
        assert!(matches!(done, Err(LineageError::Sql { .. })), "{done:?}");
        // Interrupted after its last write, SQLite reports an error for a commit that took effect.
        if lineage.live_jobs().unwrap().is_empty() {
            break;
        }
        assert_eq!(lineage.canonical_dump().unwrap(), dump, "after {steps} steps");
        assert_eq!(lineage.counts().unwrap(), counts, "after {steps} steps");
        assert_eq!(lineage.live_jobs().unwrap().len(), 1, "after {steps} steps");
    }
    assert!(interrupted > 10, "{interrupted}");
    assert_ne!(lineage.canonical_dump().unwrap(), dump);
    assert_eq!(lineage.counts().unwrap().logs, 2);
    lineage.integrity_check().unwrap();
}

#[test]
fn a_record_replaces_everything_recorded_for_its_path() {
    let Fixture { mut lineage, .. } = fixture();
    let first = week(&[(9, "2026-04-02:4"), (10, "2026-04-02:5")]);
    let coverage = [CoverageRecord {
        path: first.path.clone(),
        lines: vec![(Address { stem: stem("2026-04-02"), line: 6 }, "repeat")],
    }];
    let documents = [first];
    let commit = Commit { documents: &documents, coverage: &coverage, ..Commit::default() };
    lineage.commit(&commit).unwrap();
    let documents = [week(&[(9, "2026-04-02:5")])];
    lineage.commit(&Commit { documents: &documents, ..Commit::default() }).unwrap();
    check_citing(&lineage, "2026-04-02:4", &[]);
    check_citing(&lineage, "2026-04-02:5", &["memory/weekly/2026-W14.md:9"]);
    // Recording a file again does not change its coverage.
    assert_eq!(lineage.uncovered_lines(&documents[0].path).unwrap().len(), 1);

    let removed = [documents[0].path.clone()];
    lineage.commit(&Commit { removed: &removed, ..Commit::default() }).unwrap();
    assert_eq!(lineage.counts().unwrap().items, 0);
    assert_eq!(lineage.uncovered_lines(&documents[0].path).unwrap().len(), 0);
    lineage.integrity_check().unwrap();
}

#[test]
fn removing_a_log_leaves_nothing() {
    let Fixture { mut lineage, .. } = fixture();
    let (record, hash) = (log("2026-04-02", &[1, 2]), ContentHash::of("x"));
    let extracted = [(record.stem.clone(), hash)];
    lineage.replace_all(&[], std::slice::from_ref(&record), &extracted).unwrap();
    let removed = [record.path];
    lineage.commit(&Commit { removed: &removed, ..Commit::default() }).unwrap();
    assert!(lineage.logs().unwrap().is_empty() && lineage.extracted_logs().unwrap().is_empty());
    let left: i64 =
        lineage.conn.query_row("SELECT count(*) FROM entity", [], |row| row.get(0)).unwrap();
    assert_eq!(left, 0);
}

#[test]
fn a_rebuilt_database_answers_like_the_old_one() {
    let older = week(&[(3, "2026-04-09:9")]);
    let week = week(&[(9, "2026-04-02:4,9-11"), (10, "2026-04-03:2")]);
    let month =
        document(DocumentKind::Monthly, "memory/monthly/2026-04.md", &[(7, "2026-04-02:9")]);
    let typed = document(DocumentKind::Memory, "memory/user_role.md", &[(1, "2026-04-03:2")]);
    let logs = [log("2026-04-02", &[1]), log("2026-04-03", &[2])];

    let Fixture { lineage: mut grown, .. } = fixture();
    // Commits in another order, with versions in between.
    for document in [&typed, &month, &older, &week, &typed] {
        let documents = [document.clone()];
        grown.commit(&Commit { documents: &documents, ..Commit::default() }).unwrap();
    }
    let Fixture { lineage: mut rebuilt, .. } = fixture();
    rebuilt.replace_all(&[week.clone(), month.clone(), typed.clone()], &logs, &[]).unwrap();
    let dump = grown.canonical_dump().unwrap();
    assert!(dump.contains("monthly memory/monthly/2026-04.md"), "{dump}");
    assert_eq!(dump, rebuilt.canonical_dump().unwrap());
    for lineage in [&grown, &rebuilt] {
        check_citing(
            lineage,
            "2026-04-02:9",
            &["memory/weekly/2026-W14.md:9", "memory/monthly/2026-04.md:7"],
        );
    }
    grown.replace_all(&[typed, month, week], &logs, &[]).unwrap();
    assert_eq!(dump, grown.canonical_dump().unwrap());
    grown.integrity_check().unwrap();
}

#[test]
fn scanned_files_that_are_gone_are_removed() {
    let Fixture { mut lineage, .. } = fixture();
    let stamp =
        |size| ScannedFile { inode: 1, size, mtime_ns: 2, hash: ContentHash::of("x"), seen_ns: 3 };
    let (a, b) = (PathBuf::from("a.md"), PathBuf::from("b.md"));
    lineage.update_scanned_files(&[(a.clone(), stamp(1)), (b.clone(), stamp(1))], &[]).unwrap();
    lineage.update_scanned_files(&[(b.clone(), stamp(2))], &[a]).unwrap();
    assert_eq!(lineage.scanned_files().unwrap(), [(b, stamp(2))].into());
}

#[test]
fn an_intent_stores_old_and_new_bytes() {
    let Fixture { mut lineage, .. } = fixture();
    let run = run(&mut lineage, "1");
    let job = lineage.begin_job(run, &week_job("a")).unwrap();
    let new = [NewIntent {
        target: "a.md",
        source: None,
        temp: ".memoird-tmp-1",
        new: Some(b"ours"),
        old: Some(b"theirs"),
        discards_old: false,
    }];
    let intents = lineage.begin_intents(None, Some(job), &new, now()).unwrap();
    // A person's words are in the history before they are replaced.
    let before = lineage.versions_of("a.md").unwrap();
    assert_eq!(before.iter().map(|it| it.cause).collect::<Vec<_>>(), [VersionCause::ExternalWrite]);
    assert_eq!(lineage.content(ContentHash::of("theirs")).unwrap().unwrap(), b"theirs");
    assert_eq!(lineage.content(ContentHash::of("ours")).unwrap().unwrap(), b"ours");
    let versions =
        [NewVersion { path: "a.md", cause: VersionCause::Written, bytes: Some(b"ours") }];
    let receipt = receipt(JobOutcome::Written);
    lineage
        .commit(&Commit {
            job: Some((job, &receipt)),
            intents: &intents,
            versions: &versions,
            at: now(),
            ..Commit::default()
        })
        .unwrap();
    let after = lineage.versions_of("a.md").unwrap();
    assert_eq!(after.iter().map(|it| it.run).collect::<Vec<_>>(), [None, Some(run)]);
    assert_eq!(after[1].trigger.as_deref(), Some("tick"));
    assert_eq!(lineage.version(after[1].id).unwrap().as_ref(), Some(&after[1]));
}

#[test]
fn history_answers_for_a_time_and_records_only_changes() {
    let Fixture { mut lineage, .. } = fixture();
    let put = |lineage: &mut Lineage, hour, bytes: Option<&[u8]>| {
        let cause = if bytes.is_some() {
            VersionCause::ExternalWrite
        } else {
            VersionCause::ExternalRemoval
        };
        let versions = [NewVersion { path: "a.md", cause, bytes }];
        let at = now() + TimeDelta::hours(hour);
        lineage.commit(&Commit { versions: &versions, at, ..Commit::default() }).unwrap();
    };
    put(&mut lineage, 0, None);
    assert_eq!(lineage.versions_of("a.md").unwrap(), [], "the file never existed");
    for (hour, bytes) in [(1, Some("one")), (2, Some("one")), (3, None), (4, Some("two"))] {
        put(&mut lineage, hour, bytes.map(str::as_bytes));
    }
    let versions = lineage.versions_of("a.md").unwrap();
    let versions: Vec<_> = versions.iter().map(|it| (it.cause, it.size)).collect();
    let expected = [
        (VersionCause::ExternalWrite, Some(3)),
        (VersionCause::ExternalRemoval, None),
        (VersionCause::ExternalWrite, Some(3)),
    ];
    assert_eq!(versions, expected, "unchanged bytes are no version");

    // The newest version of a path is never pruned, however old it is.
    let pruned = lineage.prune(now() + TimeDelta::days(9)).unwrap();
    assert_eq!(pruned.versions, 1);
    assert!(lineage.content(ContentHash::of("one")).unwrap().is_none());
    assert_eq!(lineage.content(ContentHash::of("two")).unwrap().unwrap(), b"two");
}

#[test]
fn forgotten_bytes_are_gone_from_the_database_files() {
    let Fixture { dir, mut lineage } = fixture();
    // Short enough that zstd stores it uncompressed.
    let canary = b"canary-7f3a";
    let versions =
        [NewVersion { path: "a.md", cause: VersionCause::ExternalWrite, bytes: Some(canary) }];
    lineage.commit(&Commit { versions: &versions, at: now(), ..Commit::default() }).unwrap();
    let holds = || {
        let bytes = |name| fs::read(dir.path().join(".memoird").join(name)).unwrap_or_default();
        ["lineage.db", "lineage.db-wal"]
            .iter()
            .any(|it| bytes(it).windows(canary.len()).any(|it| it == canary))
    };
    assert!(holds());
    let ids: Vec<_> = lineage.versions().unwrap().iter().map(|it| it.id).collect();
    lineage.forget_versions(&ids).unwrap();
    lineage.vacuum().unwrap();
    assert!(!holds());
    assert_eq!(lineage.versions().unwrap()[0].cause, VersionCause::Forgotten);
}

#[test]
fn changed_bytes_in_the_history_are_reported() {
    let Fixture { mut lineage, .. } = fixture();
    let versions =
        [NewVersion { path: "a.md", cause: VersionCause::ExternalWrite, bytes: Some(b"words") }];
    lineage.commit(&Commit { versions: &versions, at: now(), ..Commit::default() }).unwrap();
    let other = zstd::bulk::compress(b"werds", 3).unwrap();
    lineage.conn.execute("UPDATE content SET packed = ?1", [other]).unwrap();
    let found = lineage.content(ContentHash::of("words"));
    assert!(matches!(found, Err(LineageError::Damaged { .. })), "{found:?}");
}

#[test]
fn a_dead_job_counts_as_written_if_all_its_files_are() {
    let Fixture { mut lineage, .. } = fixture();
    let dead = run(&mut lineage, "dead");
    let intent = |target| NewIntent {
        target,
        source: None,
        temp: ".memoird-tmp-1",
        new: Some(b"new"),
        old: None,
        discards_old: false,
    };
    let whole = lineage.begin_job(dead, &week_job("whole")).unwrap();
    let half = lineage.begin_job(dead, &week_job("half")).unwrap();
    let both = lineage.begin_intents(None, Some(whole), &[intent("a.md")], now()).unwrap();
    lineage.close_intents(&both, IntentOutcome::Done).unwrap();
    let two = [intent("b.md"), intent("c.md")];
    let two = lineage.begin_intents(None, Some(half), &two, now()).unwrap();
    lineage.close_intents(&two[..1], IntentOutcome::Done).unwrap();
    lineage.close_intents(&two[1..], IntentOutcome::Abandoned).unwrap();
    let ended = lineage.end_abandoned_jobs(now(), &|_| false).unwrap();
    let said: Vec<_> = ended
        .iter()
        .map(|it| it.receipt.as_ref().unwrap())
        .map(|it| (it.outcome, it.path.as_deref(), it.reason.as_deref().unwrap()))
        .collect();
    assert_eq!(
        said,
        [
            (JobOutcome::Written, Some("a.md"), "finished after a crash"),
            (JobOutcome::Failed, Some("b.md"), "ended by a crash")
        ]
    );
}
