//! What memoird does to a folder when it is stopped at the worst moment: killed, cut from power,
//! out of space, refused by the system, or started many times at once.
//!
//! ```sh
//! cargo test --test faults                          # the quick form, part of `cargo test`
//! MEMOIRD_FAULTS=short cargo test --test faults     # the short form, a step of `.ci/run`
//! MEMOIRD_FAULTS=full cargo test --test faults      # the full form, for hours
//! ```
//!
//! Each module reports at its end how many trials it ran, how long they took, and what it found:
//!
//! | module | fault | quick | short | full | needs |
//! |---|---|---|---|---|---|
//! | [`failpoints`] | killed or refused at a marked step, also while it recovers | first hit of each step | first and last hit, in each scenario | every hit | a debug build |
//! | [`kills`] | `SIGKILL` at random times, of `compact` and of `run` | 12, on a month of logs | 50, on a month of logs | 1,000 | |
//! | [`power_cut`] | power cut of an ext4 file system at random times | 4 | 10 | 1,000 | root, a loop device, perl or python3 |
//! | [`disk_full`] | a disk that is full at the n-th block | 2 a scenario | 4 a scenario | 200 and more | root |
//! | [`syscalls`] | the n-th call of a kind fails, or is the last | one per kind | a few per kind | every one | strace |
//! | [`corruption`] | flipped bits, zeroed pages, files cut off or swapped | 20 | 60 | 1,000 | |
//! | [`daemons`] | 2 to 20 daemons at once | 2 | 5 | 200 | |
//! | [`soak`] | years of days on a simulated clock, with kills, sleeps, late edits, other commands | 15 days | 45 days | 8 times 3 years | |
//!
//! A module that needs what the machine lacks says so and is skipped.
//!
//! | variable | effect |
//! |---|---|
//! | `MEMOIRD_FAULTS=short`, `=full` | runs a longer form |
//! | `MEMOIRD_FAULTS_BIN=PATH` | uses that program, a release build for instance, in all modules but the first |
//! | `MEMOIRD_FAULTS_ONLY=NAME,NAME` | runs only those scenarios, in the first module |
//! | `MEMOIRD_FAULTS_SEED=N` | repeats the random times of an earlier run |
//! | `MEMOIRD_FAULTS_DAYS=N` | sets the days in each life of the last module |
//!
//! [`oracle`] checks what must hold after each fault, and [`scenario`] lists the commands that are
//! disturbed: a new verb that writes gets an entry there.

#![cfg(test)]

mod corruption;
mod daemons;
mod disk;
mod disk_full;
mod failpoints;
#[path = "../it/support/files.rs"]
mod files;
mod kills;
mod oracle;
mod power_cut;
mod root;
mod scenario;
mod soak;
mod syscalls;
mod trials;
