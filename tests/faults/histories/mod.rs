//! Random histories of a memory folder: on two machines that share it, and on one with `undo` and
//! `forget`.
//!
//! Each machine has a copy of the folder and its own database. People edit, move, and delete lines
//! of logs and items of generated files; the machines compact; version control or a sync tool merges
//! the copies, in one direction or both; an older `.memoird` is restored. After each command of
//! memoird, on the machine that ran it:
//!
//! - no byte of a log changed, except lines that were to be forgotten;
//! - what people wrote in generated files is still there, and so is each decision;
//! - each item cites lines that say what it says: their short hashes match, and what they number
//!   occurs in them. A line that is gone is cited by a number that no line has.
//!
//! Each line of a log has a number of its own (`t1042`), and so has each edit of a person (`u17`).

mod citations;
mod folder;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use self::folder::{DECISIONS, LOGS, Machine, is_generated, is_log, merge, numbers};
use super::{
    files::Files,
    oracle::record_path,
    trials::{Module, Random, by_form},
};

/// The number of steps of a history.
const STEPS: usize = 40;

struct Case {
    number: usize,
    seed: u64,
    machines: usize,
}

/// The machines, and what happened on them.
struct History {
    random: Random,
    machines: Vec<Machine>,
    /// The files at the last merge.
    base: Files,
    /// The last number of a line or an edit.
    last: usize,
    /// The file of each edit of a person.
    edits: BTreeMap<String, String>,
    /// Weeks and months that once came with the hidden file of the other machine. What that does not list counts as
    /// a person's.
    mixed: BTreeSet<String>,
    /// The numbers of forgotten lines.
    forgotten: BTreeSet<String>,
    /// What happened, for the report of a failure.
    steps: Vec<String>,
}

#[test]
fn two_machines_share_a_folder() {
    run("histories of two machines", 2);
}

#[test]
fn one_machine_undoes_and_forgets() {
    run("histories of one machine", 1);
}

fn run(name: &'static str, machines: usize) {
    let mut module = Module::begin(name);
    let mut random = Random::seeded(&mut module);
    let count = given("MEMOIRD_FAULTS_HISTORIES").unwrap_or_else(|| by_form(2, 8, 1000));
    let cases: Vec<_> = (0..usize::try_from(count).unwrap())
        .map(|number| Case { number, seed: random.next(), machines })
        .collect();
    module.run(&cases, |case| {
        let mut history = History::begin(case);
        let result = history.run_steps();
        let log = || history.steps.join("\n  ");
        result.map_err(|it| format!("{it}\n\nthe history:\n  {}", log()))
    });
    module.end();
}

/// Returns the number in an environment variable.
fn given(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|it| it.parse().ok())
}

/// Runs one history again, with the seed that a failure reported.
#[test]
fn a_reported_history_is_repeated() {
    let Some(seed) = given("MEMOIRD_FAULTS_HISTORY") else { return };
    let machines = usize::try_from(given("MEMOIRD_FAULTS_MACHINES").unwrap_or(2)).unwrap();
    let mut module = Module::begin("one history");
    module.run_on(1, &[Case { number: 0, seed, machines }], |_, case| {
        let mut history = History::begin(case);
        let result = history.run_steps();
        result.map_err(|it| format!("{it}\n\nthe history:\n  {}", history.steps.join("\n  ")))
    });
    module.end();
}

impl History {
    fn begin(case: &Case) -> Self {
        let mut history = Self {
            random: Random::from(case.seed),
            machines: (0..case.machines).map(|_| Machine::new()).collect(),
            base: Files::new(),
            last: 1000,
            edits: BTreeMap::new(),
            mixed: BTreeSet::new(),
            forgotten: BTreeSet::new(),
            steps: Vec::new(),
        };
        for log in LOGS {
            let lines: Vec<String> = (0..3).map(|_| history.line()).collect();
            let text = format!("# Day\n\n{}\n", lines.join("\n"));
            history.machines.iter().for_each(|it| it.write(log, &text));
        }
        history.base = history.machines[0].files();
        history
    }

    fn run_steps(&mut self) -> Result<(), String> {
        for step in 0..STEPS {
            let machine = self.below(self.machines.len());
            self.steps.push(format!("{step}: machine {machine}:"));
            match self.below(100) {
                0..18 => self.insert_line(machine),
                18..26 => self.delete_line(machine),
                26..32 => self.replace_line(machine),
                32..36 => self.swap_lines(machine),
                36..41 => self.edit_log(machine, "a blank line", |lines, at| {
                    lines.insert(at, String::new());
                }),
                41..52 => self.edit_generated(machine),
                52..78 => self.compact(machine)?,
                78..81 => self.restore_database(machine),
                _ if self.machines.len() > 1 => self.merge(machine),
                81..91 => self.undo(machine)?,
                _ => self.forget(machine)?,
            }
        }
        for machine in 0..self.machines.len() {
            self.steps.push(format!("the end: machine {machine}:"));
            self.compact(machine)?;
        }
        Ok(())
    }

    fn below(&mut self, most: usize) -> usize {
        usize::try_from(self.random.next() % most as u64).unwrap()
    }

    fn note(&mut self, what: impl fmt::Display) {
        if let Some(step) = self.steps.last_mut() {
            step.push(' ');
            step.push_str(&what.to_string());
        }
    }

    /// Returns a new line of a log.
    fn line(&mut self) -> String {
        const NAMES: [&str; 6] = ["Henk", "Noor", "Priya", "Antenna", "Gantry", "Vorum"];
        self.last += 1;
        let (name, number) = (NAMES[self.below(NAMES.len())], self.last);
        match self.below(7) {
            0 => format!("- {name} prefers report t{number} before every review"),
            1 => format!("- Decided to keep {name} on SQLite, because t{number} is easier to copy"),
            2 => format!(
                "- Never restart {name} before t{number} has been read, it loses rows #keep"
            ),
            3 => format!("- 11:58 {name} shipped t{number}, 6.9 s per GB"),
            4 => format!("- {name} met Priya about backup t{number}, nothing new."),
            5 => format!(
                "- Always tag {name} with t{number} before the upload, the mirror copies tags"
            ),
            _ => format!("- TODO: ask {name} about t{number}"),
        }
    }

    /// Changes the lines of a log below its heading.
    fn edit_log(
        &mut self,
        machine: usize,
        what: impl fmt::Display,
        edit: impl FnOnce(&mut Vec<String>, usize),
    ) {
        let log = LOGS[self.below(LOGS.len())];
        let text = self.machines[machine].read(log).unwrap_or_else(|| "# Day\n\n".to_owned());
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let at = 1 + self.below(lines.len().max(1));
        let at = at.min(lines.len());
        edit(&mut lines, at);
        self.note(format_args!("{log}:{}: {what}", at + 1));
        self.machines[machine].write(log, &(lines.join("\n") + "\n"));
    }

    fn insert_line(&mut self, machine: usize) {
        let line = self.line();
        self.edit_log(machine, format!("insert {line}"), |lines, at| lines.insert(at, line));
    }

    fn delete_line(&mut self, machine: usize) {
        self.edit_log(machine, "delete", |lines, at| {
            if lines.len() > 4 && at < lines.len() {
                lines.remove(at);
            }
        });
    }

    fn replace_line(&mut self, machine: usize) {
        let line = self.line();
        self.edit_log(machine, format!("replace by {line}"), |lines, at| {
            if let Some(old) = lines.get_mut(at) {
                *old = line;
            }
        });
    }

    fn swap_lines(&mut self, machine: usize) {
        self.edit_log(machine, "swap with the one below", |lines, at| {
            if at + 1 < lines.len() {
                lines.swap(at, at + 1);
            }
        });
    }

    /// Changes a generated file, as a person would.
    fn edit_generated(&mut self, machine: usize) {
        let files = self.machines[machine].files();
        let names: Vec<&String> = files.keys().filter(|it| is_generated(it)).collect();
        if names.is_empty() {
            return;
        }
        let name = names[self.below(names.len())].clone();
        self.last += 1;
        let mark = format!("u{}", self.last);
        let is_memory = !name.contains("ly/") && name != "WISDOM.md";
        if is_memory && self.below(3) == 0 {
            self.note(format_args!("delete {name}"));
            return self.machines[machine].remove(&name);
        }
        let mut lines: Vec<String> = files[&name].lines().map(str::to_owned).collect();
        let body = lines.iter().skip(1).position(|it| it == "---").map_or(0, |it| it + 2);
        let is_words = |it: &&usize| {
            let line = &lines[**it];
            line.starts_with("- ") || (!name.contains("ly/") && line.ends_with(['.', '!']))
        };
        let items: Vec<usize> = (body..lines.len()).collect();
        let items: Vec<usize> = items.iter().filter(is_words).copied().collect();
        let Some(&at) = items.get(self.below(items.len().max(1))) else { return };
        match self.below(3) {
            0 if !is_memory && name != "WISDOM.md" => {
                self.note(format_args!("{name}: delete {}", lines[at]));
                lines.remove(at);
            }
            1 if !is_memory && name != "WISDOM.md" => {
                self.note(format_args!("{name}: add {mark}"));
                lines.insert(at, format!("- Remember {mark}, said by hand"));
            }
            _ => {
                let line = &lines[at];
                let end = line.rfind(" [").filter(|_| line.ends_with(']')).unwrap_or(line.len());
                lines[at] = format!("{} ({mark}){}", &line[..end], &line[end..]);
                self.note(format_args!("{name}: now {}", lines[at]));
            }
        }
        self.machines[machine].write(&name, &(lines.join("\n") + "\n"));
        self.edits.insert(mark, name);
    }

    fn compact(&mut self, machine: usize) -> Result<(), String> {
        self.note("compact");
        let before = self.machines[machine].files();
        self.machines[machine].compact()?;
        self.check(machine, &before)?;
        citations::check(&self.machines[machine].files(), &self.mixed)
    }

    /// Puts an older database in place, or keeps the present one for later.
    fn restore_database(&mut self, machine: usize) {
        let what = self.machines[machine].swap_database();
        self.note(what);
    }

    fn merge(&mut self, machine: usize) {
        let files: Vec<Files> = self.machines.iter().map(Machine::files).collect();
        let (ours, theirs) = (&files[machine], &files[1 - machine]);
        let as_git = self.below(3) > 0;
        let seen = [machine, 1 - machine].map(|it| &self.machines[it].decisions);
        let merged = merge(&self.base, ours, theirs, as_git, seen, &mut self.random);
        let both = self.below(2) == 0 || !as_git;
        self.note(format_args!(
            "merge as {}, {}",
            if as_git { "git" } else { "a sync tool" },
            if both { "both" } else { "only here" }
        ));
        let pair =
            |of: &Files, name: &str| [name, &record_path(name)].map(|it| of.get(it).cloned());
        let is_mixed = |it: &&String| {
            it.contains("ly/2") && [ours, theirs].iter().all(|of| pair(of, it) != pair(&merged, it))
        };
        self.mixed.extend(merged.keys().filter(is_mixed).cloned());
        self.machines[machine].replace_files(&merged);
        if both {
            self.machines[1 - machine].replace_files(&merged);
        }
        self.base = if both { merged } else { theirs.clone() };
    }

    fn undo(&mut self, machine: usize) -> Result<(), String> {
        self.note("undo");
        let before = self.machines[machine].files();
        let ran = self.machines[machine].run(&["undo", "-y"]);
        self.note(format_args!("({:?}) {}", ran.status.code(), ran.stderr.trim()));
        match ran.status.code() {
            // 65: an older text is no longer kept.
            Some(0..=2 | 65) => self.check(machine, &before)?,
            _ => return Err(format!("{ran}")),
        }
        // What is due cites the lines as they were.
        if ran.is_done() { self.compact(machine) } else { Ok(()) }
    }

    fn forget(&mut self, machine: usize) -> Result<(), String> {
        let before = self.machines[machine].files();
        let memories: Vec<&String> =
            before.keys().filter(|it| is_generated(it) && !it.contains("ly/")).collect();
        let memories: Vec<&String> = memories.into_iter().filter(|it| *it != "WISDOM.md").collect();
        let from_log = self.below(2) == 0;
        let (what, said) = if !memories.is_empty() && self.below(2) == 0 {
            let name = memories[self.below(memories.len())];
            (name.clone(), before[name].clone())
        } else {
            let log = LOGS[self.below(LOGS.len())];
            let text = before.get(log).cloned().unwrap_or_default();
            let lines: Vec<_> = text.lines().enumerate().filter(|it| it.1.contains(" t")).collect();
            if lines.is_empty() {
                return Ok(());
            }
            let (at, line) = lines[self.below(lines.len())];
            (format!("{log}:{}", at + 1), line.to_owned())
        };
        self.note(format_args!("forget {what}{}", if from_log { " --from-log" } else { "" }));
        let mut args = vec!["forget", &what, "--yes"];
        args.extend(from_log.then_some("--from-log"));
        let ran = self.machines[machine].run(&args);
        // An older database knows many files that are gone since: a person must confirm first.
        if ran.stderr.contains("known files are gone") {
            self.note("(refused)");
            return self.compact(machine);
        }
        // What the logs say when it was named decides, so the numbers are those of the words.
        self.forgotten.extend(numbers(&said, 't'));
        if !matches!(ran.status.code(), Some(0 | 2)) {
            return Err(format!("{ran}"));
        }
        self.check(machine, &before)?;
        if ran.is_done() { self.compact(machine) } else { Ok(()) }
    }

    /// Checks the folder of a machine on which memoird did something. `before` are its files before
    /// that.
    fn check(&mut self, machine: usize, before: &Files) -> Result<(), String> {
        let after = self.machines[machine].files();
        self.check_logs(before, &after)?;
        self.check_user_texts(before, &after)?;
        self.check_decisions(machine, &after)
    }

    fn check_logs(&self, before: &Files, after: &Files) -> Result<(), String> {
        for (name, text) in before.iter().filter(|it| is_log(it.0)) {
            let now = after.get(name).map_or("", |it| &it[..]);
            let is_forgotten = |line: &str| {
                let mut said = numbers(line, 't').into_iter();
                said.any(|it| self.forgotten.contains(&it))
            };
            let mut left = now.lines();
            for line in text.lines() {
                let mut rest = left.clone();
                if rest.next() == Some(line) {
                    left = rest;
                } else if !is_forgotten(line) {
                    return Err(format!("{name} lost or changed `{line}`:\n{now}"));
                }
            }
            if let Some(new) = left.next() {
                return Err(format!("{name} has a new line `{new}`"));
            }
        }
        Ok(())
    }

    /// Checks that what people wrote is where it was.
    fn check_user_texts(&self, before: &Files, after: &Files) -> Result<(), String> {
        for (name, text) in before.iter().filter(|it| is_generated(it.0)) {
            let now = after.get(name).map_or("", |it| &it[..]);
            for line in text.lines() {
                let is_forgotten = numbers(text, 't').iter().any(|it| self.forgotten.contains(it));
                let is_here = |it: &String| self.edits.get(it) == Some(name);
                let mut lost = numbers(line, 'u');
                lost.retain(|it| is_here(it) && !now.contains(it));
                if !lost.is_empty() && !is_forgotten {
                    return Err(format!("{name} lost {lost:?} of `{line}`:\n{now}"));
                }
            }
        }
        Ok(())
    }

    /// Checks that each decision that a machine ever saw is still in its file.
    fn check_decisions(&mut self, machine: usize, after: &Files) -> Result<(), String> {
        let now: BTreeSet<String> =
            after.get(DECISIONS).into_iter().flat_map(|it| it.lines()).map(str::to_owned).collect();
        let known = &mut self.machines[machine].decisions;
        // Forgetting a memory removes its name, which has its words.
        let is_lost = |it: &&String| !now.contains(*it) && self.forgotten.is_empty();
        if let Some(lost) = known.iter().find(is_lost) {
            return Err(format!("the decision `{lost}` is lost"));
        }
        *known = now;
        Ok(())
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "history {}: MEMOIRD_FAULTS_HISTORY={} MEMOIRD_FAULTS_MACHINES={}",
            self.number, self.seed, self.machines
        )
    }
}
