//! The commands under test: commands that write, each on a prepared folder.

use super::{
    files::Files,
    root::{Root, built_program, finish},
    trials::by_form,
};

/// A command on a prepared folder, and the states that are allowed after a fault.
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    /// Fills an empty folder.
    pub(crate) prepare: fn(&mut Root),
    /// The command under test.
    pub(crate) command: &'static [&'static str],
    /// Alternatives to the command. After a fault and a `compact` the files must equal those after one
    /// of these, run without a fault and followed by a `compact`; the first one if the command
    /// reported success.
    pub(crate) ends: &'static [&'static [&'static str]],
    /// Whether the user must repeat an interrupted command, which then ends as the first of `ends`. No
    /// other command completes it, and a repetition has no further effect.
    pub(crate) repeat: bool,
}

/// A scenario with its prepared folder and its allowed end states.
pub(crate) struct Stage {
    pub(crate) name: &'static str,
    pub(crate) command: &'static [&'static str],
    pub(crate) start: Root,
    /// The files before the command.
    pub(crate) before: Files,
    /// The files after each of [`Scenario::ends`].
    pub(crate) ends: Vec<Files>,
    pub(crate) repeat: bool,
}

/// Line 21 is the first bullet of the week.
const CORRECT: &[&str] = &["correct", "2026-W10:22", "Pilot, day 1: 47,918 rows by 17:00"];

/// The scenario in which logs are copied instead of renamed.
pub(crate) const OTHER_DISK_ARCHIVE: &str = "archive on another disk";

const UNDO: &[&str] = &["undo", "2", "--yes"];
const UNDO_ALL: &[&str] = &["undo", "1", "--with-later", "--yes"];
const REDO: &[&str] = &["undo", "3", "--yes"];
const FORGET: &[&str] = &["forget", "--words", "flagged", "--yes"];
const FORGET_FROM_LOG: &[&str] = &["forget", "--words", "flagged", "--from-log", "--yes"];

/// All scenarios. A new entry is enough to test every step of its command.
pub(crate) const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "compact",
        prepare: journal,
        command: &["compact"],
        ends: &[&["compact"]],
        repeat: false,
    },
    Scenario {
        name: "late line",
        prepare: with_late_line,
        command: &["compact"],
        ends: &[&["compact"]],
        repeat: false,
    },
    Scenario {
        name: "user edit",
        prepare: |root| {
            compacted(root);
            edit_first_bullet(root, "memory/weekly/2026-W10.md");
            let log = root.read("memory/2026-03-04.md");
            root.write("memory/2026-03-04.md", &(log + "- Spare pump ordered at Weber, 412 EUR\n"));
        },
        command: &["compact"],
        ends: &[&["compact"]],
        repeat: false,
    },
    Scenario {
        name: "user deletion",
        prepare: |root| {
            compacted(root);
            let bullet = first_bullet(root, "memory/weekly/2026-W10.md");
            root.edit("memory/weekly/2026-W10.md", &(bullet + "\n"), "");
        },
        command: &["compact"],
        ends: &[&["compact"]],
        repeat: false,
    },
    Scenario {
        name: "leftover of a crash",
        prepare: |root| {
            journal(root);
            root.write("memory/.memoird-tmp-1-0", "---\ntype: weekly\nper");
        },
        command: &["compact"],
        ends: &[&["compact"]],
        repeat: false,
    },
    Scenario {
        name: "overwrite a user file",
        prepare: |root| {
            journal(root);
            root.write("memory/weekly/2026-W10.md", "# A week\n\nWritten by hand.\n");
        },
        command: &["compact", "--period", "2026-W10", "--force"],
        ends: &[&["compact", "--period", "2026-W10", "--force"], &["compact"]],
        repeat: false,
    },
    Scenario {
        name: "correct",
        prepare: compacted,
        command: CORRECT,
        ends: &[CORRECT, &["compact"]],
        repeat: false,
    },
    Scenario {
        name: "log",
        prepare: |root| {
            compacted(root);
            root.write("memory/2026-04-13.md", "# 2026-04-13\n\n- Disk at 34%");
        },
        command: &["log", "The spare pump is in"],
        ends: &[&["log", "The spare pump is in"], &["compact"]],
        repeat: false,
    },
    Scenario {
        name: "first log of a day",
        prepare: compacted,
        command: &["log", "The spare pump is in"],
        ends: &[&["log", "The spare pump is in"], &["compact"]],
        repeat: false,
    },
    Scenario {
        name: "rebuild",
        prepare: compacted,
        command: &["rebuild"],
        ends: &[&["rebuild"]],
        repeat: false,
    },
    Scenario {
        name: "archive",
        prepare: |root| with_old_logs(root),
        command: &["compact"],
        ends: &[&["compact"]],
        repeat: false,
    },
    Scenario {
        name: OTHER_DISK_ARCHIVE,
        prepare: |root| {
            root.archive_on_other_disk();
            with_old_logs(root);
        },
        command: &["compact"],
        ends: &[&["compact"]],
        repeat: false,
    },
    Scenario {
        name: "late line in an archived log",
        prepare: |root| {
            with_old_logs(root);
            root.run(&["compact"]).ok();
            root.write("memory/2026-03-04.md", "- Spare pump ordered at Weber, 412 EUR\n");
            root.age_logs();
        },
        command: &["compact"],
        ends: &[&["compact"]],
        repeat: false,
    },
    Scenario {
        name: "undo",
        prepare: compacted_twice,
        command: UNDO,
        ends: &[UNDO, &["compact"]],
        repeat: true,
    },
    Scenario {
        name: "undo with later",
        prepare: compacted_twice,
        command: UNDO_ALL,
        ends: &[UNDO_ALL, &["compact"]],
        repeat: true,
    },
    Scenario {
        name: "undo of an undo",
        prepare: |root| {
            compacted_twice(root);
            root.run(UNDO).ok();
        },
        command: REDO,
        ends: &[REDO, &["compact"]],
        repeat: true,
    },
    Scenario {
        name: "forget",
        prepare: compacted,
        command: FORGET,
        ends: &[FORGET, &["compact"]],
        repeat: false,
    },
    Scenario {
        name: "forget in a log that is gone",
        prepare: |root| {
            compacted(root);
            root.remove("memory/2026-03-04.md");
            root.run(&["compact"]).ok();
        },
        command: FORGET_FROM_LOG,
        ends: &[FORGET_FROM_LOG, &["compact"]],
        repeat: false,
    },
    Scenario {
        name: "forget from log",
        prepare: |root| {
            compacted(root);
            // The copy that is kept of this file is removed, too.
            root.write("memory/.memoird-tmp-1-0", "57 rows flagged");
            root.run(&["compact"]).ok();
        },
        command: FORGET_FROM_LOG,
        ends: &[FORGET_FROM_LOG, &["compact"]],
        repeat: false,
    },
];

impl Scenario {
    /// Prepares the folder and computes the allowed end states.
    pub(crate) fn stage(&self) -> Stage {
        let mut start = Root::new();
        (self.prepare)(&mut start);
        let end = |command: &&[&str]| {
            let root = start.copy();
            for args in [command, &["compact"][..]] {
                finish(root.command(&built_program(), args)).ok();
            }
            root.files()
        };
        let ends: Vec<Files> = self.ends.iter().map(end).collect();
        let differ = ends.iter().skip(1).all(|it| *it != ends[0]);
        assert!(differ, "`{}` changes nothing, so a missing effect would go unnoticed", self.name);
        Stage {
            name: self.name,
            command: self.command,
            before: start.files(),
            start,
            ends,
            repeat: self.repeat,
        }
    }
}

/// Two weeks of logs, enough for a month, memories, and wisdom.
fn journal(root: &mut Root) {
    root.write("memoird.yaml", "zone: Europe/Berlin\n");
    root.add_logs(&["2026-03-0", "2026-03-10", "2026-03-11"]);
}

/// The same after a run.
fn compacted(root: &mut Root) {
    journal(root);
    root.run(&["compact"]).ok();
}

/// The same with a late line.
fn with_late_line(root: &mut Root) {
    compacted(root);
    let log = root.read("memory/2026-03-04.md");
    root.write("memory/2026-03-04.md", &(log + "- Spare pump ordered at Weber, 412 EUR\n"));
}

/// The same after a second run.
fn compacted_twice(root: &mut Root) {
    with_late_line(root);
    root.run(&["compact"]).ok();
}

/// After a run, with logs that are old enough for the archive.
fn with_old_logs(root: &mut Root) {
    journal(root);
    root.age_logs();
    root.run(&["compact"]).ok();
    root.write("memoird.yaml", "zone: Europe/Berlin\narchive_after_days: 7\n");
}

/// A run that is long enough for faults at random times: on the whole sample journal, or in the
/// shorter forms on its first month.
pub(crate) fn long_run() -> Scenario {
    Scenario {
        name: by_form("first month", "first month", "whole journal"),
        prepare: by_form(first_month, first_month, whole_journal),
        command: &["compact"],
        // Entries of today age all statements, so that `log` beside the run leads to the second end.
        ends: &[&["compact"], &["log", "Entries of a trial, one after another beside the run"]],
        repeat: false,
    }
}

fn first_month(root: &mut Root) {
    root.write("memoird.yaml", "zone: Europe/Berlin\n");
    root.add_logs(&["2026-01"]);
}

fn whole_journal(root: &mut Root) {
    root.write("memoird.yaml", "zone: Europe/Berlin\n");
    root.add_logs(&["2026-"]);
}

/// Adds words that are in no log, as a user would.
fn edit_first_bullet(root: &Root, path: &str) {
    let bullet = first_bullet(root, path);
    let (words, sources) = bullet.rsplit_once(" [").unwrap();
    root.edit(path, &bullet, &format!("{words}, as Priya says [{sources}"));
}

fn first_bullet(root: &Root, path: &str) -> String {
    let text = root.read(path);
    text.lines()
        .skip_while(|it| !it.starts_with("# "))
        .find(|it| it.starts_with("- "))
        .unwrap()
        .to_owned()
}
