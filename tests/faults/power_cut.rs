//! The power is cut at random times: an ext4 file system on a file is shut down without writing what
//! it has in memory, and mounted again.
//!
//! While it runs, `compact` folds the whole journal, or one week after the other, and entries are
//! logged. What was acknowledged before the cut must be there after it: entries, weeks, and what the
//! database says of them.

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
    oracle::{self, Acked},
    root::{Root, finish, program},
    scenario::{Stage, long_fold},
    trials::{Module, Random, by_form, workers},
};

struct Case {
    number: usize,
    after: Duration,
    /// One week after the other, each acknowledged, and not all at once.
    by_week: bool,
}

/// Weeks of the sample journal that are asked for one by one.
const WEEKS: [&str; 4] = ["2026-W02", "2026-W03", "2026-W04", "2026-W05"];

/// How much was acknowledged before the cuts, so that it can be seen that they came in between.
#[derive(Default)]
struct Tally {
    entries: AtomicUsize,
    weeks: AtomicUsize,
    whole: AtomicUsize,
}

#[test]
fn a_power_cut_takes_nothing_that_was_acknowledged() {
    let mut module = Module::begin("power cut");
    if !is_root() {
        return module.skip("it needs root");
    }
    if let Err(why) = has_teeth() {
        return module.skip(format_args!("a cut cannot be made here: {why}"));
    }
    let mut random = Random::seeded(&mut module);
    let stage = long_fold().stage();
    let count = by_form(4, 10, 1000);
    let disks: Result<Vec<_>, _> = (0..workers().min(count)).map(|_| Disk::on_file()).collect();
    let disks = disks.unwrap();
    // How long a fold takes on such a disk.
    let root = stage.start.copy_to(disks[0].path());
    let begun = Instant::now();
    root.run(&["compact"]).ok();
    // Beside the log entries, and on as many disks at once as there are cores, it takes longer.
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
        "within {} ms each; acknowledged before: {} entries, {} weeks, {} folds of all",
        most.as_millis(),
        tally.entries.into_inner(),
        tally.weeks.into_inner(),
        tally.whole.into_inner(),
    ));
    module.end();
}

/// Checks that a cut loses what was not synced: else it would prove nothing.
fn has_teeth() -> Result<(), String> {
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
    let kept = [synced, unsynced].map(|it| fs::read(it).is_ok_and(|it| it == b"text"));
    if kept == [true, false] { Ok(()) } else { Err(format!("synced, not synced: {kept:?}")) }
}

fn trial(disk: &Disk, stage: &Stage, case: &Case, tally: &Tally) -> Result<(), String> {
    let root = stage.start.copy_to(disk.path());
    disk.sync()?;
    let mut acked = Acked { logged: true, ..Acked::default() };
    let mut weeks = Vec::new();
    let is_cut = AtomicBool::new(false);
    let cut = std::thread::scope(|scope| {
        let logging = scope.spawn(|| log_until(&root, &is_cut));
        let folding = scope.spawn(|| fold_until(&root, case, &is_cut));
        sleep(case.after);
        let cut = disk.cut();
        is_cut.store(true, Ordering::Release);
        acked.entries = logging.join().unwrap();
        (weeks, acked.done) = folding.join().unwrap();
        cut
    });
    disk.restart()?;
    cut?;
    tally.entries.fetch_add(acked.entries.len(), Ordering::Relaxed);
    tally.weeks.fetch_add(weeks.len(), Ordering::Relaxed);
    tally.whole.fetch_add(usize::from(acked.done), Ordering::Relaxed);
    if !weeks.is_empty() {
        has_weeks(stage, &root, &weeks)?;
    }
    oracle::check(stage, &root, &acked)
}

/// Logs one entry after the other, and returns those that were acknowledged.
fn log_until(root: &Root, is_cut: &AtomicBool) -> Vec<String> {
    let mut acked = Vec::new();
    for number in 1.. {
        let entry = format!("Entry {number} of a trial");
        let ran = finish(root.command(&program(), &["log", &entry]));
        // One that was logged before the cut may end after it.
        if ran.is_done() {
            acked.push(entry);
        }
        if is_cut.load(Ordering::Acquire) {
            break;
        }
    }
    acked
}

/// Folds, and returns the weeks that were acknowledged, and whether all was.
fn fold_until(root: &Root, case: &Case, is_cut: &AtomicBool) -> (Vec<&'static str>, bool) {
    let mut acked = Vec::new();
    if case.by_week {
        // A week says in its head which of its days were extracted before it.
        let ran = finish(root.command(&program(), &["compact", "extract"]));
        for week in WEEKS.into_iter().filter(|_| ran.is_done()) {
            if finish(root.command(&program(), &["compact", "--period", week])).is_done() {
                acked.push(week);
            }
            if is_cut.load(Ordering::Acquire) {
                return (acked, false);
            }
        }
    }
    let is_done = finish(root.command(&program(), &["compact"])).is_done();
    (acked, is_done)
}

/// Checks that weeks that were acknowledged stand, in the folder and in the database.
fn has_weeks(stage: &Stage, root: &Root, weeks: &[&str]) -> Result<(), String> {
    let lineage = Lineage::open_existing(&root.path(".memoird/lineage.db"));
    let lineage = lineage.map_err(|e| e.to_string())?.ok_or("the database is gone")?;
    let receipts = lineage.last_receipts().map_err(|e| e.to_string())?;
    for week in weeks {
        let path = format!("memory/weekly/{week}.md");
        if fs::read_to_string(root.path(&path)).ok().as_ref() != stage.ends[0].get(&path) {
            return Err(format!("{path} was acknowledged, and is not there"));
        }
        let is_recorded = receipts.iter().any(|it| {
            it.period.to_string() == *week
                && it.receipt.as_ref().is_some_and(|it| it.outcome == JobOutcome::Written)
        });
        if !is_recorded {
            return Err(format!("{week} was acknowledged, and has no receipt"));
        }
    }
    Ok(())
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.by_week { "weeks, then all" } else { "all" };
        write!(f, "{}: cut after {:?} of folding {what}", self.number, self.after)
    }
}
