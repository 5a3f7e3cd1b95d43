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
    pub(crate) prepare: fn(&Root),
    /// What is disturbed.
    pub(crate) command: &'static [&'static str],
    /// Commands of which one, undisturbed and with a `compact` after it, must give the same files as
    /// the disturbed command with a `compact` after it. The first is the one that holds when the
    /// disturbed command said that it is done.
    pub(crate) ends: &'static [&'static [&'static str]],
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
}

/// Line 21 is the first bullet of the week.
const CORRECT: &[&str] = &["correct", "2026-W10:21", "Pilot, day 1: 47,918 rows by 17:00"];

/// A line here, and every step of a command is disturbed.
pub(crate) const SCENARIOS: &[Scenario] = &[
    Scenario { name: "compact", prepare: journal, command: &["compact"], ends: &[&["compact"]] },
    Scenario {
        name: "refold",
        prepare: |root| {
            folded(root);
            let log = root.read("memory/2026-03-04.md");
            root.write("memory/2026-03-04.md", &(log + "- Spare pump ordered at Weber, 412 EUR\n"));
        },
        command: &["compact"],
        ends: &[&["compact"]],
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
    },
    Scenario {
        name: "leftover of a crash",
        prepare: |root| {
            journal(root);
            root.write("memory/.memoird-tmp-1-0", "---\ntype: weekly\nper");
        },
        command: &["compact"],
        ends: &[&["compact"]],
    },
    Scenario {
        name: "adopt",
        prepare: |root| {
            journal(root);
            root.write("memory/weekly/2026-W10.md", "# A week\n\nWritten by hand.\n");
        },
        command: &["compact", "--period", "2026-W10", "--force"],
        ends: &[&["compact", "--period", "2026-W10", "--force"], &["compact"]],
    },
    Scenario { name: "correct", prepare: folded, command: CORRECT, ends: &[CORRECT, &["compact"]] },
    Scenario {
        name: "log",
        prepare: |root| {
            folded(root);
            root.write("memory/2026-04-13.md", "# 2026-04-13\n\n- Disk at 34%");
        },
        command: &["log", "The spare pump is in"],
        ends: &[&["log", "The spare pump is in"], &["compact"]],
    },
    Scenario {
        name: "first log of a day",
        prepare: folded,
        command: &["log", "The spare pump is in"],
        ends: &[&["log", "The spare pump is in"], &["compact"]],
    },
    Scenario { name: "rebuild", prepare: folded, command: &["rebuild"], ends: &[&["rebuild"]] },
];

impl Scenario {
    /// Makes the folder, and finds out how it may end.
    pub(crate) fn stage(&self) -> Stage {
        let start = Root::new();
        (self.prepare)(&start);
        let end = |command: &&[&str]| {
            let root = start.copy();
            for args in [command, &["compact"][..]] {
                finish(root.command(&built_program(), args)).ok();
            }
            root.files()
        };
        let ends = self.ends.iter().map(end).collect();
        Stage { name: self.name, command: self.command, before: start.files(), start, ends }
    }
}

/// Two weeks of logs, of which a month is made, memories, and wisdom.
fn journal(root: &Root) {
    root.write("memoird.yaml", "zone: Europe/Berlin\n");
    root.add_logs(&["2026-03-0", "2026-03-10", "2026-03-11"]);
}

/// The same, with all that is due done.
fn folded(root: &Root) {
    journal(root);
    root.run(&["compact"]).ok();
}

/// A fold that takes long enough to be disturbed at random times: of the whole sample journal, or in
/// the short form of its first month.
pub(crate) fn long_fold() -> Scenario {
    Scenario {
        name: by_form("first month", "whole journal"),
        prepare: by_form(first_month, whole_journal),
        command: &["compact"],
        ends: &[&["compact"]],
    }
}

fn first_month(root: &Root) {
    root.write("memoird.yaml", "zone: Europe/Berlin\n");
    root.add_logs(&["2026-01"]);
}

fn whole_journal(root: &Root) {
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
