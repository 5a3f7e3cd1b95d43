//! `model.fallback: extractive`: a week that closes while the model cannot be had is made offline,
//! says so, and is made again with it.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use serde_json::json;

use super::{Desk, LOG, WEEK, Wire};
use crate::support::server::{Answer, Server, fluent};

/// A desk whose server is out of order until the switch is thrown.
fn out_of_order(wire: Wire) -> (Desk, Arc<AtomicBool>) {
    let is_back = Arc::new(AtomicBool::new(false));
    let switch = Arc::clone(&is_back);
    let server = Server::answering(move |asked| {
        if is_back.load(Ordering::SeqCst) {
            fluent(asked)
        } else {
            Answer::text(503, "Later, please.")
        }
    });
    let mut desk = Desk::new(wire, server);
    desk.set("/model/fallback", json!("extractive"));
    (desk, switch)
}

#[test]
fn a_week_is_made_offline_and_again_when_the_model_is_back() {
    for wire in Wire::BOTH {
        let (desk, switch) = out_of_order(wire);
        let compacted = desk.compact();
        assert_eq!(compacted.ran.code, 0, "{}", compacted.ran);
        assert_eq!(compacted.outcome(), "written");
        let offline = desk.week().unwrap();
        assert!(offline.contains("engine: extractive/"), "{offline}");
        assert!(offline.contains("fallback: true"), "{offline}");
        assert!(compacted.reason().contains("made without the model: "), "{}", compacted.ran);
        let asked = desk.server.count();
        // It is left alone for a while; nothing else is made of the same lines, and no call goes out.
        let waits = desk.compact();
        assert_eq!(waits.ran.code, 69, "{}", waits.ran);
        assert_eq!(waits.outcome(), "failed", "{}", waits.ran);
        assert_eq!((desk.server.count(), desk.week().unwrap()), (asked, offline.clone()));
        let status = desk.run(&["status"]);
        assert!(status.stdout.contains("made without the model"), "{status}");

        // What a person writes meanwhile stays.
        let mine = "- Nobody else may restart the importer\n";
        desk.root.write(WEEK, &format!("{}\n{mine}", offline.trim_end()));
        let mut desk = desk;
        desk.root.set_now("2026-04-13T14:00:00+02:00");
        switch.store(true, Ordering::SeqCst);
        let again = desk.compact();
        assert_eq!(again.ran.code, 0, "{}", again.ran);
        assert_eq!(again.reason().split(';').next(), Some("made without the model"));
        let week = desk.week().unwrap();
        assert!(!week.contains("fallback:") && week.contains("model/1 scripted-1"), "{week}");
        assert!(week.contains(mine.trim_end()), "{week}");
        let asked = desk.server.count();
        desk.run(&["compact"]).ok();
        assert_eq!((desk.server.count(), desk.week().unwrap()), (asked, week));

        // Taken back, it stays as it was.
        desk.run(&["undo", "--yes"]).ok();
        let back = desk.week().unwrap();
        assert!(back.contains("fallback: true"), "{back}");
        desk.run(&["compact"]).ok();
        assert_eq!(desk.week().unwrap(), back);
    }
}

#[test]
fn where_a_budget_has_ended_weeks_are_made_offline() {
    let mut desk = Desk::new(Wire::Openai, Server::fluent());
    desk.set("/model/fallback", json!("extractive"));
    desk.set("/budget/day/calls", json!(1));
    desk.root.write("memory/2026-03-31.md", LOG);
    let compacted = desk.compact();
    assert_eq!(compacted.ran.code, 0, "{}", compacted.ran);
    assert_eq!(desk.server.count(), 1);
    let older = desk.root.read("memory/weekly/2026-W14.md");
    assert!(older.contains("fallback: true"), "{older}");
    // What is most likely to be read is what the model was asked for.
    assert!(desk.week().unwrap().contains("model/1 scripted-1"));
}

#[test]
fn without_it_a_week_waits() {
    let (mut desk, _) = out_of_order(Wire::Openai);
    desk.set("/model/fallback", json!("none"));
    assert_eq!(desk.compact().ran.code, 69);
    assert_eq!(desk.week(), None);
}
