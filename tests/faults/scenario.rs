//! What is disturbed: commands that write, each on a folder that it finds in some state.

use super::{
    files::Files,
    root::{Root, built_program, finish},
    trials::by_form,
};

/// A command on a folder, and how the folder may stand once it was disturbed.
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    /// Fills an empty folder.
    pub(crate) prepare: fn(&mut Root),
    /// What is disturbed.
    pub(crate) command: &'static [&'static str],
    /// Commands of which one, undisturbed and with a `compact` after it, must give the same files as
    /// the disturbed command with a `compact` after it. The first is the one that holds when the
    /// disturbed command said that it is done.
    pub(crate) ends: &'static [&'static [&'static str]],
    /// Whether a person does it again where it was cut off, which must then end as the first of `ends`.
    /// Nothing else finishes it, and twice it does no more than once.
    pub(crate) again: bool,
}

/// A scenario with its folder made, and the states that it may end in.
pub(crate) struct Stage {
    pub(crate) name: &'static str,
    pub(crate) command: &'static [&'static str],
    pub(crate) start: Root,
    /// The files before the command.
    pub(crate) before: Files,
    /// The files after each of [`Scenario::ends`].
    pub(crate) ends: Vec<Files>,
    pub(crate) again: bool,
}

/// Line 21 is the first bullet of the week.
const CORRECT: &[&str] = &["correct", "2026-W10:21", "Pilot, day 1: 47,918 rows by 17:00"];

/// The scenario in which logs are copied, not renamed.
pub(crate) const FAR_ARCHIVE: &str = "archive on another disk";

const UNDO: &[&str] = &["undo", "2", "--yes"];
const UNDO_ALL: &[&str] = &["undo", "1", "--with-later", "--yes"];
const REDO: &[&str] = &["undo", "3", "--yes"];
const FORGET: &[&str] = &["forget", "--words", "flagged", "--yes"];
const FORGET_FROM_LOG: &[&str] = &["forget", "--words", "flagged", "--from-log", "--yes"];

/// A line here, and every step of a command is disturbed.
pub(crate) const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "compact",
        prepare: journal,
        command: &["compact"],
        ends: &[&["compact"]],
        again: false,
    },
    Scenario {
        name: "refold",
        prepare: grown,
        command: &["compact"],
        ends: &[&["compact"]],
        again: false,
    },
    Scenario {
        name: "hand edit",
        prepare: |root| {
            folded(root);
            edit_first_bullet(root, "memory/weekly/2026-W10.md");
            let log = root.read("memory/2026-03-04.md");
            root.write("memory/2026-03-04.md", &(log + "- Spare pump ordered at Weber, 412 EUR\n"));
        },
        command: &["compact"],
        ends: &[&["compact"]],
        again: false,
    },
    Scenario {
        name: "deletion",
        prepare: |root| {
            folded(root);
            let bullet = first_bullet(root, "memory/weekly/2026-W10.md");
            root.edit("memory/weekly/2026-W10.md", &(bullet + "\n"), "");
        },
        command: &["compact"],
        ends: &[&["compact"]],
        again: false,
    },
    Scenario {
        name: "leftover of a crash",
        prepare: |root| {
            journal(root);
            root.write("memory/.memoird-tmp-1-0", "---\ntype: weekly\nper");
        },
        command: &["compact"],
        ends: &[&["compact"]],
        again: false,
    },
    Scenario {
        name: "adopt",
        prepare: |root| {
            journal(root);
            root.write("memory/weekly/2026-W10.md", "# A week\n\nWritten by hand.\n");
        },
        command: &["compact", "--period", "2026-W10", "--force"],
        ends: &[&["compact", "--period", "2026-W10", "--force"], &["compact"]],
        again: false,
    },
    Scenario {
        name: "correct",
        prepare: folded,
        command: CORRECT,
        ends: &[CORRECT, &["compact"]],
        again: false,
    },
    Scenario {
        name: "log",
        prepare: |root| {
            folded(root);
            root.write("memory/2026-04-13.md", "# 2026-04-13\n\n- Disk at 34%");
        },
        command: &["log", "The spare pump is in"],
        ends: &[&["log", "The spare pump is in"], &["compact"]],
        again: false,
    },
    Scenario {
        name: "first log of a day",
        prepare: folded,
        command: &["log", "The spare pump is in"],
        ends: &[&["log", "The spare pump is in"], &["compact"]],
        again: false,
    },
    Scenario {
        name: "rebuild",
        prepare: folded,
        command: &["rebuild"],
        ends: &[&["rebuild"]],
        again: false,
    },
    Scenario {
        name: "archive",
        prepare: |root| settled(root),
        command: &["compact"],
        ends: &[&["compact"]],
        again: false,
    },
    Scenario {
        name: FAR_ARCHIVE,
        prepare: |root| {
            root.archive_far();
            settled(root);
        },
        command: &["compact"],
        ends: &[&["compact"]],
        again: false,
    },
    Scenario {
        name: "late lines",
        prepare: |root| {
            settled(root);
            root.run(&["compact"]).ok();
            root.write("memory/2026-03-04.md", "- Spare pump ordered at Weber, 412 EUR\n");
            root.settle();
        },
        command: &["compact"],
        ends: &[&["compact"]],
        again: false,
    },
    Scenario {
        name: "undo",
        prepare: twice,
        command: UNDO,
        ends: &[UNDO, &["compact"]],
        again: true,
    },
    Scenario {
        name: "undo with later",
        prepare: twice,
        command: UNDO_ALL,
        ends: &[UNDO_ALL, &["compact"]],
        again: true,
    },
    Scenario {
        name: "undo of an undo",
        prepare: |root| {
            twice(root);
            root.run(UNDO).ok();
        },
        command: REDO,
        ends: &[REDO, &["compact"]],
        again: true,
    },
    Scenario {
        name: "forget",
        prepare: folded,
        command: FORGET,
        ends: &[FORGET, &["compact"]],
        again: false,
    },
    Scenario {
        name: "forget in a log that is gone",
        prepare: |root| {
            folded(root);
            root.remove("memory/2026-03-04.md");
            root.run(&["compact"]).ok();
        },
        command: FORGET_FROM_LOG,
        ends: &[FORGET_FROM_LOG, &["compact"]],
        again: false,
    },
    Scenario {
        name: "forget from log",
        prepare: |root| {
            folded(root);
            // The copy that is kept of it goes, too.
            root.write("memory/.memoird-tmp-1-0", "57 rows flagged");
            root.run(&["compact"]).ok();
        },
        command: FORGET_FROM_LOG,
        ends: &[FORGET_FROM_LOG, &["compact"]],
        again: false,
    },
];

impl Scenario {
    /// Makes the folder, and finds out how it may end.
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
        assert!(differ, "`{}` does nothing, so it cannot be seen whether it was done", self.name);
        Stage {
            name: self.name,
            command: self.command,
            before: start.files(),
            start,
            ends,
            again: self.again,
        }
    }
}

/// Two weeks of logs, of which a month is made, memories, and wisdom.
fn journal(root: &mut Root) {
    root.write("memoird.yaml", "zone: Europe/Berlin\n");
    root.add_logs(&["2026-03-0", "2026-03-10", "2026-03-11"]);
}

/// The same, with all that is due done.
fn folded(root: &mut Root) {
    journal(root);
    root.run(&["compact"]).ok();
}

/// The same, and a line that came late.
fn grown(root: &mut Root) {
    folded(root);
    let log = root.read("memory/2026-03-04.md");
    root.write("memory/2026-03-04.md", &(log + "- Spare pump ordered at Weber, 412 EUR\n"));
}

/// Folded in two runs.
fn twice(root: &mut Root) {
    grown(root);
    root.run(&["compact"]).ok();
}

/// Folded, with logs that are old enough for the archive.
fn settled(root: &mut Root) {
    journal(root);
    root.settle();
    root.run(&["compact"]).ok();
    root.write("memoird.yaml", "zone: Europe/Berlin\narchive_after_days: 7\n");
}

/// A fold that takes long enough to be disturbed at random times: of the whole sample journal, or in
/// the short form of its first month.
pub(crate) fn long_fold() -> Scenario {
    Scenario {
        name: by_form("first month", "first month", "whole journal"),
        prepare: by_form(first_month, first_month, whole_journal),
        command: &["compact"],
        ends: &[&["compact"]],
        again: false,
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

/// Adds words that no log has, as a person would.
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
