//! A daemon whose budget for today is exhausted reports that, does all other work, and resumes by
//! itself the next day.

use std::fs;

use serde_json::{Value, json};

use super::{KEY, LOG, WEEK, Wire, Workspace};
use crate::{
    run::{Daemon, state},
    support::server::Server,
};

/// Returns `status --json` of the folder.
fn status(workspace: &Workspace) -> Value {
    workspace.run(&["status", "--json"]).json_as("status")
}

#[test]
fn a_daemon_over_budget_reports_it_and_resumes_the_next_day() {
    let mut workspace = Workspace::new(Wire::Openai, Server::well_behaved());
    workspace.root.write("memory/2026-03-31.md", LOG);
    workspace.set("/budget/day/calls", json!(1));
    let variables = [("MEMOIRD_API_KEY", KEY)];
    let mut daemon = Daemon::spawn(&workspace.root, "2026-04-13T09:00:00+02:00", &variables);
    let is_waiting = || {
        workspace.root.path(".memoird/daemon.json").exists()
            && !state(&workspace.root)["waiting_until"].is_null()
    };
    daemon.await_that("the daemon waits for the budget", is_waiting);
    daemon.await_idle();
    // The only call of the day was for the newest week.
    assert_eq!(workspace.server.count(), 1);
    assert!(workspace.week().is_some());
    let older = workspace.root.path("memory/weekly/2026-W14.md");
    assert!(!older.exists());
    let not_yet = status(&workspace)["not_yet"].as_str().unwrap().to_owned();
    assert!(not_yet.contains("1 of 1 calls used"), "{not_yet}");
    // Hours later, after a new log for which no model is needed, there is no further call.
    daemon.await_run_after(|it| {
        workspace.root.write("memory/2026-04-13.md", "- The archive has 12 folders now\n");
        it.set_clock("2026-04-13T15:00:00+02:00");
    });
    daemon.set_clock("2026-04-13T23:30:00+02:00");
    daemon.await_pings(10);
    daemon.await_idle();
    assert_eq!(workspace.server.count(), 1);
    // A new day has a new budget.
    daemon.set_clock("2026-04-14T09:00:00+02:00");
    daemon.await_file(&older);
    daemon.await_idle();
    assert_eq!(workspace.server.count(), 2);
    let before = fs::read_to_string(&older).unwrap();
    for day in 15..=20 {
        daemon.set_clock(&format!("2026-04-{day}T09:00:00+02:00"));
        daemon.await_pings(10);
        daemon.await_idle();
        let (calls, days) = (workspace.server.count(), day - 12);
        assert!(calls <= days, "{calls} calls in {days} days");
    }
    assert!(workspace.root.files().contains_key(WEEK));
    assert_eq!(fs::read_to_string(&older).unwrap(), before);
    // By now all work is done, with one call per day.
    assert!(status(&workspace)["not_yet"].is_null(), "{:#}", status(&workspace));
}
