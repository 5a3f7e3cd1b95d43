//! Tests of the built program, one file per verb: what a person types and what comes back.
//!
//! A test reads like a transcript. Each runs in a home of its own, with a cleared environment and
//! a frozen clock; `support` sets that up.

#![cfg(test)]

mod above;
mod archive;
mod bad_inputs;
mod blame;
mod catching_up;
mod compact;
mod correct;
mod coverage;
mod damaged;
mod demo;
mod doctor;
mod edits;
mod forget;
mod grounding;
mod history;
mod init;
mod keys;
mod languages;
mod late;
mod layers;
mod log;
mod many_roots;
mod mcp;
mod meaning;
mod metrics;
mod model;
mod open_week;
mod packaging;
mod rebuild;
mod review;
mod run;
mod sandbox;
mod search;
mod secrets;
mod service;
mod session;
mod show;
mod standstill;
mod status;
mod supply;
mod support;
mod trace;
mod undo;
mod user_manager;
mod vanished;
mod watching;
mod writer;

/// A file that no `mod` line names would never run.
#[test]
fn no_file_is_forgotten() {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it");
    let main = include_str!("main.rs");
    for entry in std::fs::read_dir(dir).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name.starts_with('.') {
            continue;
        }
        let module = name.trim_end_matches(".rs");
        assert!(
            module == "main" || main.contains(&format!("\nmod {module};")),
            "{name} is in no `mod` line"
        );
    }
}
