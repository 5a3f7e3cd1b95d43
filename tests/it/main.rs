//! Tests of the built program, one file per command or topic: what a person types and what is printed.
//!
//! A test reads like a transcript. Each runs in its own home folder, with a cleared environment and
//! a frozen clock; `support` sets that up.

#![cfg(test)]

mod adopt;
mod api_keys;
mod archive;
mod bad_inputs;
mod blame;
mod change_detection;
mod changed_logs;
mod cited_edits;
mod command_line;
mod compact;
mod context;
mod correct;
mod coverage;
mod curated;
mod damaged_files;
mod demo;
mod dependencies;
mod digest;
mod doctor;
mod documentation;
mod edits;
mod external_text;
mod folder_guards;
mod forget;
mod grounding;
mod hidden_files;
mod history;
mod init;
mod languages;
mod layers;
mod log;
mod many_roots;
mod mcp;
mod memories;
mod merge_conflicts;
mod metrics;
mod missed_runs;
mod model;
mod older_databases;
mod open_week;
mod openclaw;
mod packaging;
mod picture;
mod prose;
mod rebuild;
mod reference;
mod review;
mod run;
mod sandbox;
mod search;
mod secrets;
mod semantic_search;
mod service;
mod session;
mod shared_folder;
mod show;
mod statement_kinds;
mod status;
mod support;
mod topics;
mod trace;
mod two_hosts;
mod undo;
mod uninstall;
mod up_to_date;
mod upgrade;
mod user_manager;
mod vanished_files;
mod web;
mod wizard;

/// The tests in a file without a `mod` line would never run.
#[test]
fn every_test_file_has_a_mod_line() {
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
            "{name} has no `mod` line"
        );
    }
}
