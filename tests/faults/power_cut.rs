//! Power cuts at random times: an ext4 file system in an image file is shut down without writing
//! cached data, and mounted again.
//!
//! Until the cut, `compact` processes the whole journal at once or week by week, and `log` adds entries.
//! Everything acknowledged before the cut must exist after it: entries, weeks, and their database
//! records.

use std::{
    fmt, fs,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::sleep,
    time::{Duration, Instant},
};

use memoird::internals::store::db::lineage::{Lineage, jobs::JobOutcome};

use super::{
    disk::{Disk, is_root},
    oracle::{self, Acknowledged},
    root::{Root, finish, program},
    scenario::{Stage, long_run},
    trials::{Module, Random, by_form, workers},
};

struct Case {
    number: usize,
    /// The time from the start to the cut.
    after: Duration,
    /// Whether weeks are compacted one by one, each acknowledged, instead of all at once.
    by_week: bool,
}

/// Weeks of the sample journal that are compacted one by one.
const WEEKS: [&str; 4] = ["2026-W02", "2026-W03", "2026-W04", "2026-W05"];

/// What was acknowledged before the cuts: shows that they happened during the work.
#[derive(Default)]
struct Tally {
    entries: AtomicUsize,
    weeks: AtomicUsize,
    full_runs: AtomicUsize,
}

#[test]
fn a_power_cut_loses_nothing_that_was_acknowledged() {
    let mut module = Module::begin("power cut");
    if !is_root() {
        return module.skip("it needs root");
    }
    if let Err(why) = check_cut_works() {
        return module.skip(format_args!("a power cut is not possible here: {why}"));
    }
    let mut random = Random::seeded(&mut module);
    let stage = long_run().stage();
    let count = by_form(4, 10, 1000);
    let disks: Result<Vec<_>, _> = (0..workers().min(count)).map(|_| Disk::on_file()).collect();
    let disks = disks.unwrap();
    // How long a run takes on such a disk.
    let root = stage.start.copy_to(disks[0].path());
    let begun = Instant::now();
    root.run(&["compact"]).ok();
    // It takes longer beside `log` and with one disk per core in use.
    let most = begun.elapsed() * 4;
    drop(root);
    let cases: Vec<_> = (0..count)
        .map(|number| Case { number, after: random.below(most), by_week: number % 2 == 1 })
        .collect();
    let tally = Tally::default();
    let disks: Vec<_> = disks.into_iter().map(Mutex::new).collect();
    module.run_on(disks.len(), &cases, |thread, case| {
        trial(&disks[thread].lock().unwrap(), &stage, case, &tally)
    });
    module.note(format!(
        "within {} ms each; acknowledged before: {} entries, {} weeks, {} full runs",
        most.as_millis(),
        tally.entries.into_inner(),
        tally.weeks.into_inner(),
        tally.full_runs.into_inner(),
    ));
    module.end();
}

/// Checks that a cut loses unsynced data; otherwise the test would prove nothing.
fn check_cut_works() -> Result<(), String> {
    let disk = Disk::on_file()?;
    let [synced, unsynced] = ["synced", "unsynced"].map(|it| disk.path().join(it));
    for path in [&synced, &unsynced] {
        std::io::Write::write_all(&mut fs::File::create(path).unwrap(), b"text").unwrap();
        if path == &synced {
            disk.sync()?;
        }
    }
    disk.cut()?;
    disk.restart()?;
    let survives = [synced, unsynced].map(|it| fs::read(it).is_ok_and(|it| it == b"text"));
    if survives == [true, false] {
        Ok(())
    } else {
        Err(format!("survives a cut: synced, unsynced: {survives:?}"))
    }
}

fn trial(disk: &Disk, stage: &Stage, case: &Case, tally: &Tally) -> Result<(), String> {
    let root = stage.start.copy_to(disk.path());
    disk.sync()?;
    let mut acknowledged = Acknowledged { with_log: true, ..Acknowledged::default() };
    let mut weeks = Vec::new();
    let is_cut = AtomicBool::new(false);
    let cut = std::thread::scope(|scope| {
        let logging = scope.spawn(|| log_until(&root, &is_cut));
        let compaction = scope.spawn(|| compact_until(&root, case, &is_cut));
        sleep(case.after);
        let cut = disk.cut();
        is_cut.store(true, Ordering::Release);
        acknowledged.entries = logging.join().unwrap();
        (weeks, acknowledged.done) = compaction.join().unwrap();
        cut
    });
    disk.restart()?;
    cut?;
    tally.entries.fetch_add(acknowledged.entries.len(), Ordering::Relaxed);
    tally.weeks.fetch_add(weeks.len(), Ordering::Relaxed);
    tally.full_runs.fetch_add(usize::from(acknowledged.done), Ordering::Relaxed);
    if !weeks.is_empty() {
        check_weeks(stage, &root, &weeks)?;
    }
    oracle::check(stage, &root, &acknowledged)
}

/// Logs one entry after another, and returns the acknowledged ones.
fn log_until(root: &Root, is_cut: &AtomicBool) -> Vec<String> {
    let mut acknowledged = Vec::new();
    for number in 1.. {
        let entry = format!("Entry {number} of a trial");
        let ran = finish(root.command(&program(), &["log", &entry]));
        // A `log` from before the cut may end after it.
        if ran.is_done() {
            acknowledged.push(entry);
        }
        if is_cut.load(Ordering::Acquire) {
            break;
        }
    }
    acknowledged
}

/// Compacts; returns the acknowledged weeks, and whether the full run was acknowledged.
fn compact_until(root: &Root, case: &Case, is_cut: &AtomicBool) -> (Vec<&'static str>, bool) {
    let mut acknowledged = Vec::new();
    if case.by_week {
        // The header of a week lists the days extracted before it.
        let ran = finish(root.command(&program(), &["compact", "extract"]));
        for week in WEEKS.into_iter().filter(|_| ran.is_done()) {
            if finish(root.command(&program(), &["compact", "--period", week])).is_done() {
                acknowledged.push(week);
            }
            if is_cut.load(Ordering::Acquire) {
                return (acknowledged, false);
            }
        }
    }
    let is_done = finish(root.command(&program(), &["compact"])).is_done();
    (acknowledged, is_done)
}

/// Checks that acknowledged weeks exist in the folder and in the database.
fn check_weeks(stage: &Stage, root: &Root, weeks: &[&str]) -> Result<(), String> {
    let lineage = Lineage::open_existing(&root.path(".memoird/lineage.db"));
    let lineage = lineage.map_err(|e| e.to_string())?.ok_or("the database is gone")?;
    let receipts = lineage.last_receipts().map_err(|e| e.to_string())?;
    for week in weeks {
        let path = format!("memory/weekly/{week}.md");
        if fs::read_to_string(root.path(&path)).ok().as_ref() != stage.ends[0].get(&path) {
            return Err(format!("{path} was acknowledged but is missing or different"));
        }
        let is_recorded = receipts.iter().any(|it| {
            it.period.to_string() == *week
                && it.receipt.as_ref().is_some_and(|it| it.outcome == JobOutcome::Written)
        });
        if !is_recorded {
            return Err(format!("{week} was acknowledged but has no receipt"));
        }
    }
    Ok(())
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.by_week { "weeks, then all" } else { "all" };
        write!(f, "{}: cut {:?} after the start of compacting {what}", self.number, self.after)
    }
}
