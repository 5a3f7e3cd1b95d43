//! `model.fallback: extractive`: a week that closes while the model is unavailable is summarized
//! offline, is marked as such, and is summarized again once the model works.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use serde_json::json;

use super::{LOG, WEEK, Wire, Workspace};
use crate::support::server::{Answer, Server, answer_well};

/// Returns a workspace whose server fails until the returned flag is set.
fn failing_until_set(wire: Wire) -> (Workspace, Arc<AtomicBool>) {
    let is_back = Arc::new(AtomicBool::new(false));
    let switch = Arc::clone(&is_back);
    let server = Server::answering(move |request| {
        if is_back.load(Ordering::SeqCst) {
            answer_well(request)
        } else {
            Answer::text(503, "Later, please.")
        }
    });
    let mut workspace = Workspace::new(wire, server);
    workspace.set("/model/fallback", json!("extractive"));
    (workspace, switch)
}

#[test]
fn a_week_is_summarized_offline_and_again_once_the_model_works() {
    for wire in Wire::BOTH {
        let (workspace, switch) = failing_until_set(wire);
        let compacted = workspace.compact();
        assert_eq!(compacted.ran.code, 0, "{}", compacted.ran);
        assert_eq!(compacted.outcome(), "written");
        let offline = workspace.week().unwrap();
        let record = workspace.week_record();
        assert!(record.contains("\"engine\": \"extractive/"), "{record}");
        assert!(record.contains("\"fallback\": true"), "{record}");
        assert!(compacted.reason().contains("made without the model: "), "{}", compacted.ran);
        let calls = workspace.server.count();
        // The provider is paused: no call, and the file stays as it is.
        let paused = workspace.compact();
        assert_eq!(paused.ran.code, 69, "{}", paused.ran);
        assert_eq!(paused.outcome(), "failed", "{}", paused.ran);
        assert_eq!((workspace.server.count(), workspace.week().unwrap()), (calls, offline.clone()));
        let status = workspace.run(&["status"]);
        assert!(status.stdout.contains("made without the model"), "{status}");

        // A user edit made meanwhile stays.
        let user_line = "- Nobody else may restart the importer\n";
        workspace.root.write(WEEK, &format!("{}\n{user_line}", offline.trim_end()));
        let mut workspace = workspace;
        workspace.root.set_now("2026-04-13T14:00:00+02:00");
        switch.store(true, Ordering::SeqCst);
        let again = workspace.compact();
        assert_eq!(again.ran.code, 0, "{}", again.ran);
        assert_eq!(again.reason().split(';').next(), Some("made without the model"));
        let week = workspace.week().unwrap();
        let record = workspace.week_record();
        assert!(!record.contains("fallback") && record.contains("model/1 scripted-1"), "{record}");
        assert!(week.contains(user_line.trim_end()), "{week}");
        let calls = workspace.server.count();
        workspace.run(&["compact"]).ok();
        assert_eq!((workspace.server.count(), workspace.week().unwrap()), (calls, week));

        // After an undo the file is not summarized again.
        workspace.run(&["undo", "--yes"]).ok();
        let undone = workspace.week().unwrap();
        assert!(workspace.week_record().contains("\"fallback\": true"), "{undone}");
        workspace.run(&["compact"]).ok();
        assert_eq!(workspace.week().unwrap(), undone);
    }
}

#[test]
fn weeks_over_budget_are_summarized_offline() {
    let mut workspace = Workspace::new(Wire::Openai, Server::well_behaved());
    workspace.set("/model/fallback", json!("extractive"));
    workspace.set("/budget/day/calls", json!(1));
    workspace.root.write("memory/2026-03-31.md", LOG);
    let compacted = workspace.compact();
    assert_eq!(compacted.ran.code, 0, "{}", compacted.ran);
    assert_eq!(workspace.server.count(), 1);
    let older = workspace.root.read_record("memory/weekly/2026-W14.md");
    assert!(older.contains("\"fallback\": true"), "{older}");
    // The one call was for the newest week.
    assert!(workspace.week_record().contains("model/1 scripted-1"));
}

#[test]
fn without_fallback_a_week_is_not_summarized() {
    let (mut workspace, _) = failing_until_set(Wire::Openai);
    workspace.set("/model/fallback", json!("none"));
    assert_eq!(workspace.compact().ran.code, 69);
    assert_eq!(workspace.week(), None);
}
