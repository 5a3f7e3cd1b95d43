//! A daemon whose model may be asked no more today: it says so, does the rest, and goes on by itself.

use std::fs;

use serde_json::{Value, json};

use super::{Desk, KEY, LOG, WEEK, Wire};
use crate::{
    run::{Daemon, state},
    support::server::Server,
};

/// Returns what `status --json` says of the folder now.
fn status(desk: &Desk) -> Value {
    desk.run(&["status", "--json"]).json_as("status")
}

#[test]
fn a_daemon_that_reached_its_cap_says_so_and_goes_on_the_next_day() {
    let mut desk = Desk::new(Wire::Openai, Server::fluent());
    desk.root.write("memory/2026-03-31.md", LOG);
    desk.set("/budget/day/calls", json!(1));
    let variables = [("MEMOIRD_API_KEY", KEY)];
    let mut daemon = Daemon::spawn(&desk.root, "2026-04-13T09:00:00+02:00", &variables);
    let waits = || {
        desk.root.path(".memoird/daemon.json").exists()
            && !state(&desk.root)["waiting_until"].is_null()
    };
    daemon.await_that("the work waits", waits);
    daemon.await_idle();
    // The one call of the day went to the newest week.
    assert_eq!(desk.server.count(), 1);
    assert!(desk.week().is_some());
    let older = desk.root.path("memory/weekly/2026-W14.md");
    assert!(!older.exists());
    let said = status(&desk)["not_yet"].as_str().unwrap().to_owned();
    assert!(said.contains("1 of 1 calls used"), "{said}");
    // Hours go by, and a log comes that needs no model to be seen: nobody is asked again.
    daemon.await_run_after(|it| {
        desk.root.write("memory/2026-04-13.md", "- The archive has 12 folders now\n");
        it.set_clock("2026-04-13T15:00:00+02:00");
    });
    daemon.set_clock("2026-04-13T23:30:00+02:00");
    daemon.await_pings(10);
    daemon.await_idle();
    assert_eq!(desk.server.count(), 1);
    // A new day has a new budget; what is still over it waits once more.
    daemon.set_clock("2026-04-14T09:00:00+02:00");
    daemon.await_file(&older);
    daemon.await_idle();
    assert_eq!(desk.server.count(), 2);
    let before = fs::read_to_string(&older).unwrap();
    for day in 15..=20 {
        daemon.set_clock(&format!("2026-04-{day}T09:00:00+02:00"));
        daemon.await_pings(10);
        daemon.await_idle();
        let (asked, days) = (desk.server.count(), day - 12);
        assert!(asked <= days, "{asked} calls in {days} days");
    }
    assert!(desk.root.files().contains_key(WEEK));
    assert_eq!(fs::read_to_string(&older).unwrap(), before);
    // All is done by now, one call a day.
    assert!(status(&desk)["not_yet"].is_null(), "{:#}", status(&desk));
}
