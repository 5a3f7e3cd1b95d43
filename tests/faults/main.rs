//! Fault tests: what happens to a memory folder when memoird is killed, loses power, runs out of disk
//! space, gets errors from the system, or is started many times at once.
//!
//! ```sh
//! cargo test --test faults                          # the quick form, part of `cargo test`
//! MEMOIRD_FAULTS=short cargo test --test faults     # the short form, a step of `.ci/run`
//! MEMOIRD_FAULTS=full cargo test --test faults      # the full form, for hours
//! ```
//!
//! At its end each module reports the number of trials, their duration, and the failures:
//!
//! | module | fault | quick | short | full | needs |
//! |---|---|---|---|---|---|
//! | [`failpoints`] | kill or error at a marked step, also during recovery | first hit of each step | first and last hit, in each scenario | every hit | a debug build |
//! | [`kills`] | `SIGKILL` of `compact` and `run` at random times | 12, on a month of logs | 50, on a month of logs | 1,000 | |
//! | [`power_cut`] | power cut of an ext4 file system at random times | 4 | 10 | 1,000 | root, a loop device, perl or python3 |
//! | [`disk_full`] | disk full at the n-th block | 2 a scenario | 4 a scenario | 200 and more | root |
//! | [`syscalls`] | error or kill at the n-th system call of a kind | one per kind | a few per kind | every call | strace |
//! | [`corruption`] | flipped bits, zeroed pages, truncated or swapped files | 20 | 60 | 1,000 | |
//! | [`daemons`] | 2 to 20 daemons at once | 2 | 5 | 200 | |
//! | [`soak`] | simulated years, with kills, sleeps, late edits, other commands | 15 days | 45 days | 8 times 3 years | |
//! | [`histories`] | random histories of two machines, or of one with `undo` and `forget` | 2 each | 8 each | 1,000 each | |
//!
//! A module is skipped, with a message, if the machine lacks what it needs.
//!
//! | variable | effect |
//! |---|---|
//! | `MEMOIRD_FAULTS=short`, `=full` | runs a longer form |
//! | `MEMOIRD_FAULTS_BIN=PATH` | uses this program, for example a release build, in all modules except the first |
//! | `MEMOIRD_FAULTS_ONLY=NAME,NAME` | runs only these scenarios, in the first module |
//! | `MEMOIRD_FAULTS_SEED=N` | repeats the random times of an earlier run |
//! | `MEMOIRD_FAULTS_DAYS=N` | sets the number of simulated days in [`soak`] |
//! | `MEMOIRD_FAULTS_HISTORIES=N` | sets the number of histories of each kind |
//! | `MEMOIRD_FAULTS_HISTORY=N`, `MEMOIRD_FAULTS_MACHINES=1` | repeats a history that a failure reported |
//!
//! [`oracle`] checks the state after each fault. [`scenario`] lists the commands under test: every new
//! command that writes gets an entry there.

#![cfg(test)]

mod corruption;
mod daemons;
mod disk;
mod disk_full;
mod failpoints;
#[path = "../it/support/files.rs"]
mod files;
mod histories;
mod kills;
mod oracle;
mod power_cut;
mod root;
mod scenario;
mod soak;
mod syscalls;
mod trials;
