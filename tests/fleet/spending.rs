//! One budget for all workers: limits hold under races and kills, and nothing is paid twice.

use std::{
    fs, thread,
    time::{Duration, Instant},
};

use serde_json::json;

use crate::{
    check,
    fleet_home::{Fleet, finish},
    report,
    support::{Root, await_pause, server::Server},
};

const LOG: &str =
    "# Log\n\n- Decided: the west crane stays blue, 12 parts\n- Backfill complete, 951 rows\n";

/// Returns a fleet whose workers call this model; `None` without PostgreSQL.
fn with_model(server: &Server) -> Option<Fleet> {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().canonicalize().unwrap().join("store");
    fs::create_dir(&store).unwrap();
    let config = json!({
        "engine": "model",
        "model": {
            "provider": "openai",
            "name": "scripted-1",
            "base_url": format!("{}/v1", server.url()),
        },
        "compaction": {
            "whole_below_chars": 0,
            "extract": false,
            "weekly": { "ratio": 0.9, "max_ratio": 1.0 },
            "monthly": { "ratio": 0.9, "max_ratio": 1.0 },
        },
        "budget": { "day": { "usd": null, "calls": null }, "month": { "usd": null } },
    });
    let file = dir.path().join("config.yaml");
    crate::support::write_file(&file, &config.to_string());
    let variables = vec![
        ("MEMOIRD_CONFIG".to_owned(), file.display().to_string()),
        ("MEMOIRD_API_KEY".to_owned(), "sk-test-0123456789abcdef".to_owned()),
    ];
    Fleet::with_store(dir, format!("file://{}", store.display()), variables)
}

fn root(number: usize) -> Root {
    let root = Root::empty("desk");
    root.write("memoird.yaml", &format!("agent_name: desk-{number}\nzone: Europe/Berlin\n"));
    root.write("memory/2026-04-07.md", &format!("{LOG}- Lot {number} arrived\n"));
    root.write("memory/2026-03-31.md", &format!("{LOG}- Lot {number} was ordered\n"));
    root
}

#[test]
fn ten_workers_never_exceed_a_limit_though_they_are_killed() {
    const LIMIT: usize = 17;
    let server = Server::well_behaved();
    let Some(fleet) = with_model(&server) else { return };
    for number in 0..20 {
        fleet.push(&root(number), &format!("tenant-{}/desk-{number}", number % 3));
    }
    fleet.postgres.admin(&format!(
        "INSERT INTO memoird.cap (span, unit, most) VALUES ('day', 'calls', {LIMIT}); \
         INSERT INTO memoird.cap (tenant, span, unit, most) VALUES ('tenant-1', 'day', 'calls', 3)"
    ));
    let machines: Vec<String> = (0..10).map(|it| format!("m{it}")).collect();
    let args = ["--lease", "2s"];
    let mut workers: Vec<_> = machines.iter().map(|it| fleet.spawn(it, &args)).collect();
    let started = Instant::now();
    let mut kills = 0;
    while started.elapsed() < Duration::from_secs(12) {
        thread::sleep(Duration::from_millis(150));
        let which = kills % workers.len();
        if workers[which].kill_turn() {
            kills += 1;
        } else {
            workers.rotate_left(1);
        }
    }
    drop(workers);
    let calls = |of: &str| -> usize {
        let count = format!("SELECT count(*) FROM memoird.ledger WHERE tenant LIKE '{of}'");
        fleet.postgres.admin(&count).parse().unwrap()
    };
    let sent = server.count();
    assert!(sent > 0 && sent <= LIMIT, "{sent} requests");
    assert!(calls("%") <= LIMIT && calls("tenant-1") <= 3, "{} calls", calls("%"));
    report(&format!(
        "10 workers, limit {LIMIT}: {kills} kills, {} calls, {sent} requests",
        calls("%")
    ));
    // What is charged is what was reserved and what workers still hold.
    let charged = "SELECT amount FROM memoird.spent WHERE tenant = '' AND unit = 'calls' AND period LIKE '%-13'";
    let held = "SELECT coalesce(sum(amount), 0) FROM memoird.tranche WHERE unit = 'calls' AND period LIKE '%-13'";
    let number = |query: &str| -> f64 { fleet.postgres.admin(query).parse().unwrap() };
    let reserved = number("SELECT count(*) FROM memoird.ledger");
    assert!((number(charged) - number(held) - reserved).abs() < 1e-6);
    fleet.push(&root(100), "tenant-1/desk-100");
    let refused = fleet.run(&["--once", "tenant-1/desk-100"]);
    check(&refused, 1, &["budget of the day is exhausted", "memoird.cap"]);
    assert_eq!(server.count(), sent);
}

#[test]
fn what_was_spent_before_a_limit_was_set_counts() {
    let server = Server::well_behaved();
    let Some(fleet) = with_model(&server) else { return };
    fleet.push(&root(1), "acme/desk-1");
    fleet.run(&["--once", "acme/desk-1"]).ok();
    // What was charged at the worst case is settled, and the tranche is given back.
    let charged = |scope: &str| -> f64 {
        let query = format!(
            "SELECT amount FROM memoird.spent WHERE {scope} AND unit = 'tokens' AND period LIKE '%-13'"
        );
        fleet.postgres.admin(&query).parse().unwrap()
    };
    let used: f64 = fleet.postgres.admin("SELECT sum(tokens) FROM memoird.ledger").parse().unwrap();
    for scope in ["tenant = ''", "tenant = 'acme' AND root = ''", "root = 'desk-1'"] {
        assert!((charged(scope) - used).abs() < 1e-6, "{scope}: {} {used}", charged(scope));
    }
    assert_eq!(fleet.postgres.admin("SELECT count(*) FROM memoird.tranche"), "0");
    // A limit of one root leaves the others alone.
    fleet.postgres.admin(
        "INSERT INTO memoird.cap (tenant, root, span, unit, most) VALUES ('other', 'desk-0', 'day', 'calls', 0)",
    );
    fleet.push(&root(0), "other/desk-0");
    let refused = fleet.run(&["--once", "other/desk-0"]);
    check(&refused, 1, &["the root's budget of the day is exhausted"]);
    fleet.push(&root(2), "other/desk-2");
    fleet.run(&["--once", "other/desk-2"]).ok();
    let sent = server.count();
    fleet.postgres.admin(&format!(
        "INSERT INTO memoird.cap (span, unit, most) VALUES ('month', 'calls', {sent})"
    ));
    fleet.push(&root(3), "other/desk-3");
    let refused = fleet.run(&["--once", "other/desk-3"]);
    check(&refused, 1, &["the fleet's budget of the month is exhausted"]);
    assert_eq!(server.count(), sent);
}

#[test]
fn without_a_database_each_tenant_has_a_budget_and_a_ledger_of_its_own() {
    let server = Server::well_behaved();
    let Some(fleet) = with_model(&server) else { return };
    for name in ["acme/desk-1", "acme/desk-2", "other/desk-1"] {
        fleet.push(&root(1), name);
    }
    let once = |name: &str| {
        let args = ["--once", name, "--set", "budget.day.calls=2"];
        let mut worker = fleet.worker(&args);
        worker.env_remove("MEMOIRD_CLAIMS");
        let before = server.count();
        (finish(worker, &args), server.count() - before)
    };
    let (first, calls) = once("acme/desk-1");
    assert_eq!((first.code, calls), (0, 2), "{first}");
    let (refused, calls) = once("acme/desk-2");
    assert_eq!(calls, 0);
    check(&refused, 1, &["the budget of the day is exhausted"]);
    let (other, calls) = once("other/desk-1");
    assert_eq!((other.code, calls), (0, 2), "{other}");
    let roots = |tenant: &str| -> String {
        let state = format!("main/.local/state/memoird-tenants/{tenant}/memoird/ledger.db");
        let ledger = rusqlite::Connection::open(fleet.path(&state)).unwrap();
        let all = "SELECT group_concat(DISTINCT root) FROM call";
        ledger.query_row(all, [], |row| row.get(0)).unwrap()
    };
    assert!(roots("acme").ends_with("/acme/desk-1"), "{}", roots("acme"));
    assert!(roots("other").ends_with("/other/desk-1"), "{}", roots("other"));
    assert!(!fleet.path("main/.local/state/memoird/ledger.db").exists());
}

#[test]
fn the_next_worker_uses_the_reply_that_a_dead_one_paid_for() {
    let server = Server::well_behaved();
    let Some(fleet) = with_model(&server) else { return };
    fleet.push(&root(1), "acme/quiet");
    fleet.run(&["--once", "acme/quiet"]).ok();
    let usual = server.count();
    assert!(usual >= 2, "{usual}");
    fleet.push(&root(1), "acme/deadly");
    let args = ["--once", "acme/deadly", "--lease", "1s"];
    for step in ["model.replied", "model.settled"] {
        let mut dying = fleet.worker_on(step, &args);
        dying.env("MEMOIRD_FAIL", format!("kill@{step}"));
        assert_eq!(finish(dying, &args).code, -1);
        thread::sleep(Duration::from_millis(1200));
    }
    // Another machine, which has none of the files.
    finish(fleet.worker_on("next", &args), &args).ok();
    assert_eq!(server.count(), 2 * usual);
    let twice = "SELECT count(*) FROM (SELECT 1 FROM memoird.ledger GROUP BY root, fingerprint HAVING count(*) > 1) t";
    assert_eq!(fleet.postgres.admin(twice), "0");
    // Replies quote logs, and are kept for as long as they are needed.
    assert_eq!(fleet.postgres.admin("SELECT count(*) FROM memoird.reply"), "0");
    let same = |name: &str| fleet.pull(name).read("memory/weekly/2026-W15.md");
    assert_eq!(same("acme/quiet"), same("acme/deadly"));
}

#[test]
fn without_the_database_no_call_is_made_and_nothing_published() {
    let server = Server::well_behaved();
    let Some(mut fleet) = with_model(&server) else { return };
    fleet.push(&root(1), "acme/desk");
    let args = ["--once", "acme/desk", "--no-sandbox"];
    let resume = fleet.path("main/resume");
    let mut worker = fleet.worker(&args);
    worker.env("MEMOIRD_FAIL", format!("wait:{}@bundle.pull.applied", resume.display()));
    let worker = worker.stderr(std::process::Stdio::piped()).spawn().unwrap();
    await_pause(&resume.with_extension("reached"), "bundle.pull.applied", || false);
    fleet.postgres.stop();
    fs::File::create(&resume).unwrap();
    let ended = worker.wait_with_output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(69), "{said}");
    assert!(said.contains("cannot reach the claims database"), "{said}");
    assert_eq!(server.count(), 0);
    let manifest = fs::read_to_string(fleet.path("store/acme/desk/manifest.json")).unwrap();
    assert!(!manifest.contains("weekly"), "{manifest}");
}
