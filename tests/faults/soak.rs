//! Simulated years of a daemon whose clock is moved: logs that appear, grow, and are edited late, sleep,
//! clock jumps, downtime, kills, and other commands at the same time.
//!
//! At the end: every line is in the log of its day exactly once; every closed week lists each of its
//! logs as it is now and equals the result of a single run on these logs; nothing was written twice
//! from the same content, and nothing failed; `compact` finds nothing to do; and the memory of the idle
//! daemon did not grow.

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
    root::{CommandOutput, Root, finish, kill_after, program},
    trials::{Module, Random, by_form, report},
};

/// The first day, a Monday.
const FIRST: NaiveDate = NaiveDate::from_ymd_opt(2023, 1, 2).unwrap();
/// The longest wait for the daemon.
const TIMEOUT: Duration = Duration::from_secs(180);
/// Clock ticks without changes over which the memory must not grow.
const IDLE_TICKS: usize = 6;
/// The allowed growth: the allocator keeps some memory.
const GROWTH_MAX_KB: u64 = 8 * 1024;
/// Days after the last log, so that its week and month are closed.
const DAYS_AFTER_END: u64 = 40;
/// Texts of log lines.
const TEXTS: &[&str] = &[
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
    number: usize,
    days: u64,
    seed: u64,
}

/// A memory folder, its daemon, and all lines that were written to its logs.
struct Simulation {
    root: Root,
    clock: PathBuf,
    log: PathBuf,
    now: DateTime<Utc>,
    daemon: Option<Child>,
    /// Whether the daemon is suspended, possibly while it holds a lock that other commands would wait for.
    is_asleep: bool,
    /// The lines of each log, by its name.
    lines: BTreeMap<String, Vec<String>>,
    random: Random,
    line_count: usize,
    events: BTreeMap<&'static str, usize>,
}

#[test]
fn simulated_years_leave_no_work_and_no_errors() {
    let mut module = Module::begin("soak");
    let mut random = Random::seeded(&mut module);
    let days = std::env::var("MEMOIRD_FAULTS_DAYS").ok().and_then(|it| it.parse().ok());
    let days = days.unwrap_or_else(|| by_form(15, 45, 3 * 365));
    let cases: Vec<_> =
        (0..by_form(1, 1, 8)).map(|number| Case { number, days, seed: random.next() }).collect();
    let tallies = Mutex::new(Vec::new());
    module.run_on(1, &cases, |_, case| {
        let mut simulation = Simulation::begin(Random::from(case.seed));
        let result = simulation.run_days(case.days).and_then(|()| simulation.check());
        tallies
            .lock()
            .unwrap()
            .push(result.as_ref().map_or_else(|_| simulation.tally(), Clone::clone));
        result
            .map(drop)
            .map_err(|it| format!("{it}\n\nlog of the daemon:\n{}", simulation.end_of_log()))
    });
    module.note(tallies.into_inner().unwrap().join("; "));
    module.end();
}

impl Simulation {
    fn begin(random: Random) -> Self {
        let root = Root::new();
        root.write("memoird.yaml", "zone: Europe/Berlin\narchive_after_days: 120\n");
        fs::create_dir(root.path("memory")).unwrap();
        let (clock, log) = (root.home().join("now"), root.home().join("daemon.log"));
        let now = at(FIRST, 7);
        let (lines, events) = (BTreeMap::new(), BTreeMap::new());
        let mut simulation = Self {
            root,
            clock,
            log,
            now,
            daemon: None,
            is_asleep: false,
            lines,
            random,
            line_count: 0,
            events,
        };
        simulation.set_clock();
        simulation.start();
        simulation
    }

    /// Simulates so many days, then moves the clock past their end and waits until the daemon is idle.
    fn run_days(&mut self, days: u64) -> Result<(), String> {
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
                    self.count("downtimes");
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
                self.wait_until_idle()?;
            }
            if number % 100 == 99 {
                report(format_args!("soak: {} days; {}", number + 1, self.tally()));
            }
        }
        self.now = at(FIRST + Days::new(days + DAYS_AFTER_END), 9);
        self.set_clock();
        self.wake();
        self.wait_until_idle()
    }

    /// Simulates one day.
    fn day(&mut self) -> Result<(), String> {
        let today = self.now.date_naive();
        for hour in [9, 13, 17] {
            self.now = at(today, hour);
            self.set_clock();
            match self.below(8) {
                0..4 => self.append(today),
                4 if !self.is_asleep => self.log_by_command(today)?,
                5 => self.add_late_line(),
                6 if !self.is_asleep && self.below(8) == 0 => self.compact_concurrently()?,
                _ => {}
            }
        }
        self.now = at(today, 21);
        self.set_clock();
        Ok(())
    }

    /// Returns a unique line.
    fn line(&mut self) -> String {
        self.line_count += 1;
        let pick = self.below(TEXTS.len());
        format!("- {}, entry {}", TEXTS[pick], self.line_count)
    }

    /// Adds a line to the log of a day, like a program that does not know the archive.
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
        // `log` set the time of this machine, which is years after the simulated time.
        let path = self.root.path(&format!("memory/{today}.md"));
        if let Ok(file) = File::open(path) {
            file.set_modified(self.now.into()).unwrap();
        }
        Ok(())
    }

    /// Adds a line to the log of an earlier day, as a new file if the log is in the archive.
    fn add_late_line(&mut self) {
        let back = 1 + self.below(150);
        let today = self.now.date_naive();
        let Some(day) = today.checked_sub_days(Days::new(back as u64)).filter(|it| *it >= FIRST)
        else {
            return;
        };
        self.append(day);
        self.count("late lines");
    }

    fn compact_concurrently(&mut self) -> Result<(), String> {
        self.count("concurrent compacts");
        let mut command = self.root.command(&program(), &["compact"]);
        command.env("MEMOIRD_NOW", self.now.to_rfc3339());
        if self.below(2) == 0 {
            kill_after(command, self.random.below(Duration::from_millis(200)));
            return Ok(());
        }
        let ran = finish(command);
        // 75: the daemon holds the lock.
        let is_expected = ran.is_done() || ran.status.code() == Some(75);
        if is_expected { Ok(()) } else { Err(format!("{ran}")) }
    }

    /// Waits until the daemon has done all work that is due now.
    fn wait_until_idle(&mut self) -> Result<(), String> {
        self.count("idle waits");
        let before = self.state().map_or(0, |it| it.0);
        // A clock jump makes the daemon check for due work.
        self.now += TimeDelta::minutes(10);
        self.set_clock();
        self.await_that("the daemon is idle", |simulation| {
            simulation.state().is_some_and(|(passes, busy)| passes > before && !busy)
        })
    }

    fn await_that(&mut self, what: &str, done: impl Fn(&mut Self) -> bool) -> Result<(), String> {
        let begun = Instant::now();
        while !done(self) {
            if begun.elapsed() > TIMEOUT {
                return Err(format!("timeout at {}: {what}: {:?}", self.now, self.state()));
            }
            let ended = self.daemon.as_mut().and_then(|it| it.try_wait().unwrap());
            if let Some(status) = ended {
                return Err(format!("the daemon ended at {}: {status}", self.now));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// Returns the number of finished runs, and whether one is running or pending.
    fn state(&self) -> Option<(u64, bool)> {
        let text = fs::read(self.root.path(".memoird/daemon.json")).ok()?;
        let state: Value = serde_json::from_slice(&text).ok()?;
        let is_ours = state["pid"] == self.daemon.as_ref()?.id();
        is_ours.then(|| (state["passes"].as_u64().unwrap(), state["busy"] != false))
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

    /// Resumes the suspended daemon, or starts it after a downtime.
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

    /// Checks everything, and returns a report.
    fn check(&mut self) -> Result<String, String> {
        let memory = self.idle_memory()?;
        self.stop();
        self.logs_are_whole()?;
        self.nothing_written_twice()?;
        let after = self.root.files();
        let compact = self.run(&["compact"]);
        if !compact.is_done() || !compact.stderr.contains("nothing to do") {
            return Err(format!("the daemon left work undone\n{compact}"));
        }
        if self.root.files() != after {
            return Err("a `compact` that has nothing to do changes files".to_owned());
        }
        oracle::check_doctor(&self.root)?;
        self.weeks_equal_those_of_one_run(&after)?;
        Ok(format!("{}; {memory} kB at the end", self.tally()))
    }

    /// Moves only the clock; returns the memory in kB, which must not have grown.
    fn idle_memory(&mut self) -> Result<u64, String> {
        let mut sizes = Vec::new();
        for _ in 0..IDLE_TICKS {
            self.wait_until_idle()?;
            sizes.push(self.memory());
        }
        let (before, after) = (sizes[IDLE_TICKS / 2], sizes[IDLE_TICKS - 1]);
        if after > before + GROWTH_MAX_KB {
            return Err(format!("the memory of the idle daemon grows: {sizes:?} kB"));
        }
        Ok(after)
    }

    fn memory(&self) -> u64 {
        let id = self.daemon.as_ref().unwrap().id();
        let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap();
        let line = status.lines().find_map(|it| it.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// Checks that every line is in the log of its day exactly once, active or archived.
    fn logs_are_whole(&self) -> Result<(), String> {
        let files = self.root.files();
        for (name, lines) in &self.lines {
            let paths = [format!("memory/{name}"), format!("memory/archive/{}/{name}", &name[..4])];
            let texts: Vec<_> = paths.iter().filter_map(|it| files.get(it)).collect();
            let [text] = texts[..] else {
                return Err(format!("{name} exists {} times", texts.len()));
            };
            for line in lines {
                let times = text.lines().filter(|it| it.contains(&**line)).count();
                // An entry `… 1` is also part of `… 12`, so the end of the line is compared.
                let ends = text.lines().filter(|it| it.ends_with(&**line)).count();
                if times == 0 || ends != 1 {
                    return Err(format!("`{line}` is {ends} times in {name}:\n{text}"));
                }
            }
        }
        Ok(())
    }

    /// Checks that nothing was written twice from the same content, and nothing failed. Work interrupted
    /// by a kill does not count.
    fn nothing_written_twice(&self) -> Result<(), String> {
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
        for (what, found) in [("written twice", twice), ("failed", failed), ("half written", open)]
        {
            if !found.is_empty() {
                return Err(format!("{} {what}: {found:#?}", found.len()));
            }
        }
        Ok(())
    }

    /// Checks that every week lists each of its logs and equals the result of a single run on them.
    fn weeks_equal_those_of_one_run(&self, files: &BTreeMap<String, String>) -> Result<(), String> {
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
        let expected = fresh.files();
        let is_week = |it: &str| it.starts_with("memory/weekly/2");
        let names: BTreeSet<_> =
            files.keys().chain(expected.keys()).filter(|it| is_week(it)).collect();
        let differing: Vec<_> = names
            .into_iter()
            .filter(|it| comparable_week(files, it) != comparable_week(&expected, it))
            .collect();
        if let Some(name) = differing.first() {
            let found = files.get(*name);
            return Err(format!(
                "{} weeks differ from those of a single run, {name}:\n{}\nof\n{}\n{ran}",
                differing.len(),
                oracle::first_difference(
                    comparable_week(&expected, name).as_ref(),
                    comparable_week(files, name).as_ref()
                ),
                found.map_or("", String::as_str),
            ));
        }
        // A killed `log` may have written an entry that it did not acknowledge.
        let days = files.keys().filter_map(|it| day_of(it));
        let weeks_with_logs: BTreeSet<_> = days.map(|it| it.iso_week()).collect();
        let count = files.keys().filter(|it| is_week(it)).count();
        if count != weeks_with_logs.len() {
            return Err(format!(
                "{count} weekly files, but {} weeks have logs",
                weeks_with_logs.len()
            ));
        }
        Ok(())
    }

    fn run(&self, args: &[&str]) -> CommandOutput {
        let mut command = self.root.command(&program(), args);
        command.env("MEMOIRD_NOW", self.now.to_rfc3339());
        finish(command)
    }
}

/// Returns a weekly file without the paths of its logs and the days extracted so far, which depend on
/// the time of the run.
fn comparable_week(files: &BTreeMap<String, String>, name: &str) -> Option<String> {
    let is_comparable =
        |it: &&str| !it.starts_with("  - memory/") && !it.starts_with("  extracted: ");
    Some(files.get(name)?.lines().filter(is_comparable).collect::<Vec<_>>().join("\n"))
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

impl Drop for Simulation {
    fn drop(&mut self) {
        self.kill();
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "simulation {} of {} days", self.number, self.days)
    }
}
