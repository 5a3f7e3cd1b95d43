//! What memoird does to a folder when it is stopped at the worst moment: killed, cut from power,
//! out of space, refused by the system, or started many times at once.
//!
//! ```sh
//! cargo test --test faults                          # the short form, also part of `cargo test`
//! MEMOIRD_FAULTS=full cargo test --test faults      # the full form
//! ```
//!
//! Each module says at its end how many trials it ran, how long that took, and what it found:
//!
//! | module | fault | short | full | needs |
//! |---|---|---|---|---|
//! | [`failpoints`] | killed or refused at a marked step, also while it recovers | first and last hit of each step | every step | a debug build |
//! | [`kills`] | `SIGKILL` at random times, of `compact` and of `run` | 50, on a month of logs | 1,000 | |
//! | [`power_cut`] | power cut of an ext4 file system at random times | 10 | 1,000 | root, a loop device, perl or python3 |
//! | [`disk_full`] | a disk that is full at the n-th block | 12 | 200 and more | root |
//! | [`syscalls`] | the n-th call of a kind fails, or is the last | few | every one | strace |
//! | [`corruption`] | flipped bits, zeroed pages, files cut off or swapped | 60 | 1,000 | |
//! | [`daemons`] | 2 to 20 daemons at once | 5 | 200 | |
//! | [`soak`] | years of days by a clock that is moved, with kills, sleeps, late edits, other commands | 45 days | 8 times 3 years | |
//!
//! What a machine lacks is said, and its module skipped.
//!
//! | variable | does |
//! |---|---|
//! | `MEMOIRD_FAULTS=full` | the full form |
//! | `MEMOIRD_FAULTS_BIN=PATH` | uses that program, a release build for instance, in all modules but the first |
//! | `MEMOIRD_FAULTS_ONLY=NAME,NAME` | only those scenarios, in the first module |
//! | `MEMOIRD_FAULTS_SEED=N` | repeats the random times of an earlier run |
//! | `MEMOIRD_FAULTS_DAYS=N` | so many days in each life of the last module |
//!
//! What must hold after each fault stands in [`oracle`], and what is disturbed in [`scenario`]: a new
//! verb that writes gets a line there.

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
