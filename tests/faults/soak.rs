//! Years of days under a daemon whose clock is moved: logs that come, grow, and are edited late, sleeps,
//! jumps of the clock, time off, kills, and other commands beside it.
//!
//! At the end, once all is quiet: every line stands in the log of its day, once; every week that has
//! closed names each of its logs as it is now, and says what one fold of these logs would say; nothing
//! was folded twice from the same content, and nothing failed; a `compact` finds nothing to do; and the
//! memory of the daemon did not grow while only its clock went on.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    fs::{self, File, OpenOptions},
    io::Write as _,
    path::PathBuf,
    process::{Child, Stdio},
    sync::Mutex,
    time::{Duration, Instant},
};

use chrono::{DateTime, Datelike as _, Days, NaiveDate, TimeDelta, Utc};
use rusqlite::{Connection, OpenFlags};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::{
    oracle,
    root::{Ran, Root, finish, kill_after, program},
    trials::{Module, Random, by_form, say},
};

/// The first day of it, a Monday.
const FIRST: NaiveDate = NaiveDate::from_ymd_opt(2023, 1, 2).unwrap();
/// What takes longer than this does not happen.
const PATIENCE: Duration = Duration::from_secs(180);
/// Ticks of the clock without news, after which the memory must be what it was before.
const IDLE_TICKS: usize = 6;
/// What it may grow by meanwhile: the allocator keeps some.
const GROWTH_MAX_KB: u64 = 8 * 1024;
/// Days after the last log, so that all that it is part of has closed.
const AFTERWARDS: u64 = 40;
/// What is written to logs.
const SAID: &[&str] = &[
    "Decided to keep the importer on SQLite, because one file is easier to copy",
    "Measured 14 ms at the gate with the new index",
    "Ines prefers numbers first in every report",
    "The pump at station 4 was replaced, 412 EUR",
    "Do not restart the exporter before the drop has been read",
    "Moved the staging rows to UTC",
    "Tobias takes over the loggers from next week on",
    "The build fails when the clock of the runner is behind",
];

struct Case {
    life: usize,
    days: u64,
    seed: u64,
}

/// A folder, the daemon on it, and all that was ever written to its logs.
struct Life {
    root: Root,
    clock: PathBuf,
    log: PathBuf,
    now: DateTime<Utc>,
    daemon: Option<Child>,
    /// It sleeps, maybe with a lock in its hand, for which other commands would wait.
    is_asleep: bool,
    /// The lines of each log, by its name.
    lines: BTreeMap<String, Vec<String>>,
    random: Random,
    said: usize,
    events: BTreeMap<&'static str, usize>,
}

#[test]
fn years_of_days_leave_nothing_undone() {
    let mut module = Module::begin("soak");
    let mut random = Random::seeded(&mut module);
    let days = std::env::var("MEMOIRD_FAULTS_DAYS").ok().and_then(|it| it.parse().ok());
    let days = days.unwrap_or_else(|| by_form(15, 45, 3 * 365));
    let cases: Vec<_> =
        (0..by_form(1, 1, 8)).map(|life| Case { life, days, seed: random.next() }).collect();
    let told = Mutex::new(Vec::new());
    module.run_on(1, &cases, |_, case| {
        let mut life = Life::begin(Random::from(case.seed));
        let lived = life.live(case.days).and_then(|()| life.check());
        told.lock().unwrap().push(lived.as_ref().map_or_else(|_| life.tally(), Clone::clone));
        lived.map(drop).map_err(|it| format!("{it}\n\nlog of the daemon:\n{}", life.end_of_log()))
    });
    module.note(told.into_inner().unwrap().join("; "));
    module.end();
}

impl Life {
    fn begin(random: Random) -> Self {
        let root = Root::new();
        root.write("memoird.yaml", "zone: Europe/Berlin\narchive_after_days: 120\n");
        fs::create_dir(root.path("memory")).unwrap();
        let (clock, log) = (root.home().join("now"), root.home().join("daemon.log"));
        let now = at(FIRST, 7);
        let (lines, events) = (BTreeMap::new(), BTreeMap::new());
        let mut life = Self {
            root,
            clock,
            log,
            now,
            daemon: None,
            is_asleep: false,
            lines,
            random,
            said: 0,
            events,
        };
        life.set_clock();
        life.start();
        life
    }

    /// Lives so many days, and is awake, quiet, and long after the last of them at the end.
    fn live(&mut self, days: u64) -> Result<(), String> {
        let mut asleep = 0;
        for number in 0..days {
            self.now = at(FIRST + Days::new(number), 9);
            self.set_clock();
            match (asleep, self.below(30)) {
                (0, 0) => {
                    self.count("sleeps");
                    self.signal(Signal::STOP);
                    self.is_asleep = true;
                    asleep = 1 + self.below(6);
                }
                (0, 1) => {
                    self.count("times off");
                    self.stop();
                    asleep = 1 + self.below(12);
                }
                (1, _) => {
                    asleep = 0;
                    self.wake();
                }
                (0, 2..5) => {
                    self.count("kills");
                    std::thread::sleep(self.random.below(Duration::from_millis(400)));
                    self.kill();
                    self.start();
                }
                (0, _) => {}
                _ => asleep -= 1,
            }
            self.day()?;
            if asleep == 0 && self.below(3) == 0 {
                self.settle()?;
            }
            if number % 100 == 99 {
                say(format_args!("soak: {} days; {}", number + 1, self.tally()));
            }
        }
        self.now = at(FIRST + Days::new(days + AFTERWARDS), 9);
        self.set_clock();
        self.wake();
        self.settle()
    }

    /// Does what a day brings.
    fn day(&mut self) -> Result<(), String> {
        let today = self.now.date_naive();
        for hour in [9, 13, 17] {
            self.now = at(today, hour);
            self.set_clock();
            match self.below(8) {
                0..4 => self.append(today),
                4 if !self.is_asleep => self.log_by_command(today)?,
                5 => self.edit_an_old_one(),
                6 if !self.is_asleep && self.below(8) == 0 => self.compact_beside()?,
                _ => {}
            }
        }
        self.now = at(today, 21);
        self.set_clock();
        Ok(())
    }

    /// Returns a line that stands nowhere else.
    fn line(&mut self) -> String {
        self.said += 1;
        let pick = self.below(SAID.len());
        format!("- {}, entry {}", SAID[pick], self.said)
    }

    /// Adds a line to the log of a day, as a program would that knows of no archive.
    fn append(&mut self, day: NaiveDate) {
        let line = self.line();
        self.append_to(&format!("memory/{day}.md"), &line);
        self.lines.entry(format!("{day}.md")).or_default().push(line);
        self.count("lines");
    }

    fn append_to(&self, path: &str, line: &str) {
        let mut options = OpenOptions::new();
        let mut file = options.append(true).create(true).open(self.root.path(path)).unwrap();
        writeln!(file, "{line}").unwrap();
        file.set_modified(self.now.into()).unwrap();
    }

    fn log_by_command(&mut self, today: NaiveDate) -> Result<(), String> {
        let line = self.line();
        let entry = line.trim_start_matches("- ").to_owned();
        let mut command = self.root.command(&program(), &["log", &entry]);
        command.env("MEMOIRD_NOW", self.now.to_rfc3339());
        let is_killed = self.below(3) == 0;
        let ran = if is_killed {
            kill_after(command, self.random.below(Duration::from_millis(30)))
        } else {
            finish(command)
        };
        if ran.is_done() {
            self.lines.entry(format!("{today}.md")).or_default().push(entry);
            self.count("entries");
        } else if !is_killed {
            return Err(format!("{ran}"));
        }
        // The file has the time of this machine, in which the log was touched long after the end.
        let path = self.root.path(&format!("memory/{today}.md"));
        if let Ok(file) = File::open(path) {
            file.set_modified(self.now.into()).unwrap();
        }
        Ok(())
    }

    /// Adds a line to a log of a day that is over: where it stands now, or among the logs if it is in the
    /// archive, as it may be a moment later.
    fn edit_an_old_one(&mut self) {
        let back = 1 + self.below(150);
        let today = self.now.date_naive();
        let Some(day) = today.checked_sub_days(Days::new(back as u64)).filter(|it| *it >= FIRST)
        else {
            return;
        };
        self.append(day);
        self.count("late lines");
    }

    fn compact_beside(&mut self) -> Result<(), String> {
        self.count("compacts beside");
        let mut command = self.root.command(&program(), &["compact"]);
        command.env("MEMOIRD_NOW", self.now.to_rfc3339());
        if self.below(2) == 0 {
            kill_after(command, self.random.below(Duration::from_millis(200)));
            return Ok(());
        }
        let ran = finish(command);
        // 75: the daemon is at it.
        let fits = ran.is_done() || ran.status.code() == Some(75);
        if fits { Ok(()) } else { Err(format!("{ran}")) }
    }

    /// Waits until the daemon has done all that it wants to do at this time.
    fn settle(&mut self) -> Result<(), String> {
        self.count("times settled");
        let before = self.state().map_or(0, |it| it.0);
        // A jump is looked at whatever was told.
        self.now += TimeDelta::minutes(10);
        self.set_clock();
        self.await_that("it settles", |life| {
            life.state().is_some_and(|(passes, busy)| passes > before && !busy)
        })
    }

    fn await_that(&mut self, what: &str, done: impl Fn(&mut Self) -> bool) -> Result<(), String> {
        let begun = Instant::now();
        while !done(self) {
            if begun.elapsed() > PATIENCE {
                return Err(format!("not so at {}: {what}: {:?}", self.now, self.state()));
            }
            let ended = self.daemon.as_mut().and_then(|it| it.try_wait().unwrap());
            if let Some(status) = ended {
                return Err(format!("the daemon ended at {}: {status}", self.now));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// Returns how many passes have ended, and whether one is at work or wanted.
    fn state(&self) -> Option<(u64, bool)> {
        let text = fs::read(self.root.path(".memoird/daemon.json")).ok()?;
        let said: Value = serde_json::from_slice(&text).ok()?;
        let is_ours = said["pid"] == self.daemon.as_ref()?.id();
        is_ours.then(|| (said["passes"].as_u64().unwrap(), said["busy"] != false))
    }

    fn set_clock(&self) {
        let next = self.clock.with_extension("next");
        File::create(&next).unwrap().write_all(self.now.to_rfc3339().as_bytes()).unwrap();
        fs::rename(next, &self.clock).unwrap();
    }

    fn start(&mut self) {
        let log = OpenOptions::new().append(true).create(true).open(&self.log).unwrap();
        let mut command = self.root.command(&program(), &["run"]);
        command
            .env("MEMOIRD_NOW", format!("@{}", self.clock.display()))
            .stdout(Stdio::null())
            .stderr(log);
        self.daemon = Some(command.spawn().unwrap());
    }

    fn signal(&self, signal: Signal) {
        if let Some(daemon) = &self.daemon {
            kill_process(Pid::from_child(daemon), signal).unwrap();
        }
    }

    /// Goes on after a sleep, or starts again after time off.
    fn wake(&mut self) {
        if self.daemon.is_some() {
            self.signal(Signal::CONT);
            self.is_asleep = false;
        } else {
            self.start();
        }
    }

    fn stop(&mut self) {
        self.signal(Signal::TERM);
        if let Some(mut daemon) = self.daemon.take() {
            daemon.wait().unwrap();
        }
    }

    fn kill(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            drop(daemon.kill());
            daemon.wait().unwrap();
        }
    }

    fn below(&mut self, most: usize) -> usize {
        usize::try_from(self.random.next() % most as u64).unwrap()
    }

    fn count(&mut self, what: &'static str) {
        *self.events.entry(what).or_default() += 1;
    }

    fn tally(&self) -> String {
        self.events
            .iter()
            .map(|(what, count)| format!("{count} {what}"))
            .collect::<Vec<_>>()
            .join(", ")
    }

    fn end_of_log(&self) -> String {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<_> = text.lines().collect();
        lines[lines.len().saturating_sub(30)..].join("\n")
    }

    /// Checks all of it, and says what was measured.
    fn check(&mut self) -> Result<String, String> {
        let memory = self.idle_memory()?;
        self.stop();
        self.logs_are_whole()?;
        self.folded_once()?;
        let after = self.root.files();
        let compact = self.run(&["compact"]);
        if !compact.is_done() || !compact.stderr.contains("nothing to do") {
            return Err(format!("the daemon left something to do\n{compact}"));
        }
        if self.root.files() != after {
            return Err("a `compact` that has nothing to do changes files".to_owned());
        }
        oracle::well(&self.root)?;
        self.weeks_are_those_of_one_fold(&after)?;
        Ok(format!("{}; {memory} kB at the end", self.tally()))
    }

    /// Only the time goes on: returns the memory after that, which must not have grown.
    fn idle_memory(&mut self) -> Result<u64, String> {
        let mut sizes = Vec::new();
        for _ in 0..IDLE_TICKS {
            self.settle()?;
            sizes.push(self.memory());
        }
        let (before, after) = (sizes[IDLE_TICKS / 2], sizes[IDLE_TICKS - 1]);
        if after > before + GROWTH_MAX_KB {
            return Err(format!("the memory grows while nothing comes: {sizes:?} kB"));
        }
        Ok(after)
    }

    fn memory(&self) -> u64 {
        let id = self.daemon.as_ref().unwrap().id();
        let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap();
        let line = status.lines().find_map(|it| it.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// Every line stands in the log of its day, once, among the logs or in the archive.
    fn logs_are_whole(&self) -> Result<(), String> {
        let files = self.root.files();
        for (name, lines) in &self.lines {
            let places =
                [format!("memory/{name}"), format!("memory/archive/{}/{name}", &name[..4])];
            let texts: Vec<_> = places.iter().filter_map(|it| files.get(it)).collect();
            let [text] = texts[..] else {
                return Err(format!("{name} stands in {} places", texts.len()));
            };
            for line in lines {
                let times = text.lines().filter(|it| it.contains(&**line)).count();
                // An entry `… 1` stands also in `… 12`: the number is the end of a line.
                let ends = text.lines().filter(|it| it.ends_with(&**line)).count();
                if times == 0 || ends != 1 {
                    return Err(format!("`{line}` stands {ends} times in {name}:\n{text}"));
                }
            }
        }
        Ok(())
    }

    /// Nothing was made twice of the same content, and nothing failed. What a kill cut off does not count.
    fn folded_once(&self) -> Result<(), String> {
        let path = self.root.path(".memoird/lineage.db");
        let db = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
        let list = |sql: &str| -> Vec<String> {
            let mut found = db.prepare(sql).unwrap();
            let rows = found.query_map([], |row| row.get(0)).unwrap();
            rows.map(Result::unwrap).collect()
        };
        let twice = list(
            "SELECT tier || ' ' || period || ' ' || count(*) || ' times: ' || group_concat(run || ' ' || \
             started || ' ' || ifnull(reason, ''), '; ') FROM activity \
             WHERE outcome = 'written' AND ifnull(reason, '') <> 'finished after a crash' \
             GROUP BY fingerprint HAVING count(*) > 1",
        );
        let failed = list(
            "SELECT tier || ' ' || period || ': ' || ifnull(reason, '') FROM activity \
             WHERE outcome = 'parked' OR (outcome = 'failed' AND \
             (counts OR reason NOT LIKE '%changed while it was read%' AND reason <> 'ended by a crash'))",
        );
        let open = list("SELECT target FROM intent WHERE state = 'open'");
        for (what, found) in [("made twice", twice), ("failed", failed), ("half written", open)] {
            if !found.is_empty() {
                return Err(format!("{} {what}: {found:#?}", found.len()));
            }
        }
        Ok(())
    }

    /// Every week names each of its logs, and is the file that one fold of the same logs makes.
    fn weeks_are_those_of_one_fold(&self, files: &BTreeMap<String, String>) -> Result<(), String> {
        let fresh = Root::new();
        fresh.write("memoird.yaml", "zone: Europe/Berlin\n");
        for (name, text) in files.iter().filter(|it| day_of(it.0).is_some()) {
            fresh.write(&format!("memory/{}", file_name(name)), text);
            let file = File::open(fresh.path(&format!("memory/{}", file_name(name)))).unwrap();
            file.set_modified(at(FIRST, 9).into()).unwrap();
        }
        let mut command = fresh.command(&program(), &["compact"]);
        command.env("MEMOIRD_NOW", self.now.to_rfc3339());
        let ran = finish(command).ok();
        let made = fresh.files();
        let is_week = |it: &str| it.starts_with("memory/weekly/");
        let names: BTreeSet<_> = files.keys().chain(made.keys()).filter(|it| is_week(it)).collect();
        let differing: Vec<_> =
            names.into_iter().filter(|it| weekly(files, it) != weekly(&made, it)).collect();
        if let Some(name) = differing.first() {
            let found = files.get(*name);
            return Err(format!(
                "{} weeks are not those of one fold, {name}:\n{}\nof\n{}\n{ran}",
                differing.len(),
                oracle::first_difference(
                    weekly(&made, name).as_ref(),
                    weekly(files, name).as_ref()
                ),
                found.map_or("", String::as_str),
            ));
        }
        // A `log` that was killed may have written what it never acknowledged.
        let days = files.keys().filter_map(|it| day_of(it));
        let wanted: BTreeSet<_> = days.map(|it| it.iso_week()).collect();
        let count = files.keys().filter(|it| is_week(it)).count();
        if count != wanted.len() {
            return Err(format!("{count} weeks stand there, and {} have logs", wanted.len()));
        }
        Ok(())
    }

    fn run(&self, args: &[&str]) -> Ran {
        let mut command = self.root.command(&program(), args);
        command.env("MEMOIRD_NOW", self.now.to_rfc3339());
        finish(command)
    }
}

/// Returns what of a week is made of its logs: where these stand is not, nor which of their days had
/// been read for memories when it was last made.
fn weekly(files: &BTreeMap<String, String>, name: &str) -> Option<String> {
    let is_made = |it: &&str| !it.starts_with("  - memory/") && !it.starts_with("  extracted: ");
    Some(files.get(name)?.lines().filter(is_made).collect::<Vec<_>>().join("\n"))
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap()
}

/// Returns the day of a log.
fn day_of(path: &str) -> Option<NaiveDate> {
    file_name(path).strip_suffix(".md")?.parse().ok()
}

fn at(day: NaiveDate, hour: u32) -> DateTime<Utc> {
    day.and_hms_opt(hour, 0, 0).unwrap().and_utc()
}

impl Drop for Life {
    fn drop(&mut self) {
        self.kill();
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "life {} of {} days", self.life, self.days)
    }
}
