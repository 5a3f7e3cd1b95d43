//! Workers: what they do to a root, who may do it, and what happens when they die.

use std::{
    fs, thread,
    time::{Duration, Instant},
};

use rustix::process::Signal;
use serde_json::json;

use crate::{
    assert_same_files, check, compacted,
    dice::Dice,
    fleet_home::{Fleet, Network, finish, signal, written_twice},
    namespaces::{Namespace, forward},
    report,
    servers::Bucket,
    size,
    support::{Root, await_pause, files::Files, skipped},
};

/// Returns a small root with a number in its logs, and `days` of logs up to April 12.
fn numbered(number: usize, days: u32) -> Root {
    let root = Root::empty("lexicon");
    root.write("memoird.yaml", &format!("agent_name: lexicon-{number}\nzone: Europe/Berlin\n"));
    let end = chrono::NaiveDate::from_ymd_opt(2026, 4, 13).unwrap();
    for day in 1..=days {
        let date = end - chrono::Days::new(day.into());
        let text = format!(
            "# {date}\n\n- Decided: crane {number} stays blue, lot {day}\n- Backfill of lot {day} complete, {} rows\n\
             - Rule: never rename lot {day} of plant {number} without a ticket\n",
            day * 31 + 7
        );
        root.write(&format!("memory/{date}.md"), &text);
    }
    root
}

/// Returns what a run on one machine writes.
fn undisturbed(root: &Root) -> Files {
    root.run_with_digest(&["compact"]).ok();
    root.files()
}

#[track_caller]
fn assert_files(found: &Files, expected: &Files, what: &str) {
    assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>(), "{what}");
    for (path, text) in expected {
        assert!(found.get(path) == Some(text), "{what}: {path} differs");
    }
}

#[test]
fn a_worker_writes_what_a_run_on_the_machine_would_and_then_has_nothing_to_do() {
    let Some(fleet) = Fleet::start() else { return };
    let local = compacted();
    let machine = Root::new("mara");
    fleet.push(&machine, "acme/mara");
    let ran = fleet.run(&["--until-idle"]);
    check(&ran, 0, &["acme/mara: 2", "generation 2"]);
    assert_same_files(&fleet.pull("acme/mara"), &local);
    assert_eq!(fleet.postgres.sql("acme", "SELECT owner IS NULL, gen FROM memoird.root"), "t|2");
    // It is due again when the week closes.
    let again = fleet.run(&["--until-idle", "--json"]).ok().json_as("worker");
    assert_eq!(again, json!({ "done": 0, "failed": 0, "lost": 0 }));
    assert_eq!(fleet.postgres.sql("acme", "SELECT count(*) FROM memoird.run"), "1");
    // Due or not.
    let report = fleet.run(&["--once", "acme/mara", "--json"]);
    let report = report.ok().json_as("worker");
    assert_eq!(report["written"], 0);
    assert_eq!(report["generation"], 2);
}

#[test]
fn json_sums_up_the_turns_of_all_tenants() {
    let Some(fleet) = Fleet::start() else { return };
    let created = fleet.run(&["--init-claims", "--json"]).ok().json_as("worker");
    assert_eq!(created, json!({ "created": false }));
    for tenant in ["acme", "other"] {
        fleet.push(&Root::small(), &format!("{tenant}/small"));
    }
    fleet.postgres.sql("other", "SELECT memoird.report_root('other', 'missing', 1, NULL, 0)");
    let ran = fleet.run(&["--until-idle", "--json"]);
    let expected = json!({ "done": 2, "failed": 1, "lost": 0 });
    assert_eq!((ran.code, ran.json_as("worker")), (1, expected), "{ran}");
    assert!(ran.stderr.contains("other/missing: "), "{ran}");
}

#[test]
fn roots_that_are_not_due_cost_no_request() {
    let bucket = Bucket::good();
    let variables = bucket.variables();
    let dir = tempfile::tempdir().unwrap();
    let Some(fleet) = Fleet::with_store(dir, "s3://team".to_owned(), variables) else { return };
    for number in 0..5 {
        fleet.push(&numbered(number, 9), &format!("acme/lexicon-{number}"));
    }
    fleet.run(&["--until-idle"]).ok();
    let before = bucket.server.count();
    fleet.run(&["--until-idle"]).ok();
    assert_eq!(bucket.server.count(), before);
    // A log of one of them: the others are not asked about.
    let machine = fleet.pull("acme/lexicon-3");
    machine.run(&["log", "One more"]).ok();
    fleet.push(&machine, "acme/lexicon-3");
    let before = bucket.server.count();
    check(&fleet.run(&["--until-idle"]), 0, &["acme/lexicon-3: "]);
    let requests = bucket.server.count() - before;
    assert!((1..=14).contains(&requests), "{requests}");
}

#[test]
fn what_reads_memory_on_an_agents_machine_first_brings_what_workers_published() {
    let bucket = Bucket::good();
    let variables = bucket.variables();
    let dir = tempfile::tempdir().unwrap();
    let fleet = Fleet::with_store(dir, "s3://team".to_owned(), variables.clone());
    let Some(fleet) = fleet else { return };
    let machine = numbered(1, 9);
    machine.append("memoird.yaml", "writer: fleet\n");
    fleet.push(&machine, "acme/lexicon");
    let run = |args: &[&str]| {
        let before = bucket.server.count();
        let mut command = machine.command(args);
        command.envs(variables.iter().cloned());
        (machine.finish(command, args).ok().stdout, bucket.server.count() - before)
    };
    assert_eq!(run(&["search", "crane"]).1, 1);
    assert!(!machine.path("WISDOM.md").exists());
    fleet.run(&["--until-idle"]).ok();
    let (context, requests) = run(&["context"]);
    assert!(machine.path("WISDOM.md").is_file());
    assert!(context.contains("ticket"), "{context}");
    assert!(requests <= 6, "{requests}");
    assert_eq!(run(&["context"]), (context, 1));
    // Without an answer, the copy is read as it is.
    drop(bucket);
    let mut command = machine.command(&["context"]);
    command.envs(variables).env("AWS_ENDPOINT_URL", "http://127.0.0.1:1");
    let started = Instant::now();
    let offline = machine.finish(command, &["context"]).ok();
    assert!(offline.stdout.contains("ticket"), "{offline}");
    assert!(started.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_worker_without_a_database_works_on_one_root() {
    let dir = tempfile::tempdir().unwrap();
    let store = format!("file://{}", dir.path().canonicalize().unwrap().display());
    let machine = Root::small();
    let url = format!("{store}/acme/small");
    machine.run(&["bundle", "push", &url]).ok();
    let args = ["worker", "--store", &store, "--once", "acme/small"];
    check(&machine.run_with_digest(&args).ok(), 0, &["acme/small: ", "generation 2"]);
    let local = Root::small();
    local.run_with_digest(&["compact"]).ok();
    machine.run(&["bundle", "pull"]).ok();
    assert_same_files(&machine, &local);
    let missing = machine.run(&["worker", "--store", &store, "--once", "acme/other"]);
    check(&missing, 2, &["no bundle at", "acme/other"]);
    // When it is due is noted in the store.
    let list = |machine: &Root| machine.run(&["worker", "--store", &store, "--list-due"]).ok();
    assert_eq!(list(&machine).stdout, "");
    machine.write("memory/2026-04-02.md", "# 2026-04-02\n\n- Decided: the quay opens at noon\n");
    let bad =
        machine.run(&["bundle", "push", "--due", &format!("file://{}/x", dir.path().display())]);
    assert_ne!(bad.code, 0, "{bad}");
    machine.run(&["bundle", "push", "--due", &url]).ok();
    assert_eq!(list(&machine).stdout, "acme/small\n");
    machine.run_with_digest(&args).ok();
    assert_eq!(list(&machine).stdout, "");
    let noted = machine.run(&["worker", "--store", &store, "--list-due", "--json"]).ok();
    assert_eq!(noted.json_as("worker")["roots"][0]["root"], "acme/small");
    check(&machine.run(&["worker", "--store", &store]), 2, &["claims database", "--once"]);
}

#[test]
fn whoever_holds_the_lease_is_the_writer_of_a_fleet() {
    let Some(fleet) = Fleet::start() else { return };
    let machine = Root::small();
    machine.write("memoird.yaml", "agent_name: small\nzone: Europe/Berlin\nwriter: fleet\n");
    check(&machine.run(&["compact"]), 75, &["fleet"]);
    fleet.push(&machine, "acme/small");
    fleet.run(&["--until-idle"]).ok();
    machine.run(&["bundle", "pull"]).ok();
    assert!(machine.path("WISDOM.md").is_file());
    // A log of the machine and the work of a worker are joined.
    machine.run(&["log", "Disk at 35%"]).ok();
    fleet.push(&machine, "acme/small");
    fleet.run(&["--until-idle"]).ok();
    machine.run(&["bundle", "pull"]).ok();
    assert_eq!(written_twice(&machine.path("")), [""; 0]);
    // A root of a certain machine is left to it.
    machine.write("memoird.yaml", "agent_name: small\nzone: Europe/Berlin\nwriter: desk\n");
    machine.write("memory/2026-04-12.md", "- Disk at 36%\n");
    fleet.push(&machine, "acme/small");
    fleet.run(&["--until-idle"]);
    let problem = fleet.postgres.sql("acme", "SELECT problem FROM memoird.root");
    assert!(problem.contains("desk"), "{problem}");
}

#[test]
fn path_manifest_and_row_must_name_the_same_tenant() {
    let Some(fleet) = Fleet::start() else { return };
    let machine = Root::small();
    fleet.push(&machine, "acme/small");
    // Somebody copies a bundle into the folder of another tenant, and reports it.
    fs::create_dir(fleet.path("store/other")).unwrap();
    fs::rename(fleet.path("store/acme/small"), fleet.path("store/other/small")).unwrap();
    fleet.postgres.sql("other", "SELECT memoird.report_root('other', 'small', 1, NULL, 0)");
    let once = fleet.run(&["--once", "other/small"]);
    check(&once, 78, &["is not a root of the tenant `other`", "`acme`"]);
    let once = fleet.run(&["--once", "other/small", "--json"]);
    let report = once.json_as("worker");
    assert_eq!((once.code, &report["outcome"]), (78, &"failed".into()), "{once}");
    assert!(report["problem"].as_str().unwrap().contains("`other`"), "{once}");
    // A policy shows the rows of one tenant only, to the owner of the tables, too.
    let rows = |tenant: &str| fleet.postgres.sql(tenant, "SELECT id, tenant FROM memoird.root");
    assert_eq!(rows("acme"), "small|acme");
    assert_eq!(rows("other"), "small|other");
    assert_eq!(rows(""), "");
    fleet.postgres.admin(
        "INSERT INTO memoird.cap (tenant, span, unit, most) VALUES ('', 'day', 'usd', 9), ('acme', 'day', 'usd', 1)",
    );
    let caps = |tenant: &str| fleet.postgres.sql(tenant, "SELECT count(*) FROM memoird.cap");
    assert_eq!([caps("acme"), caps("other")], ["2", "1"]);
    let forged = "INSERT INTO memoird.root (tenant, id) VALUES ('acme', 'x') RETURNING id";
    let refused = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        fleet.postgres.sql("other", forged)
    }));
    assert!(refused.is_err());
}

#[test]
fn a_root_that_another_worker_holds_is_left_alone_and_lost_leases_publish_nothing() {
    let Some(fleet) = Fleet::start() else { return };
    let machine = numbered(1, 9);
    fleet.push(&machine, "acme/lexicon");
    let expected = undisturbed(&numbered(1, 9));
    let args = ["--once", "acme/lexicon", "--lease", "2s"];
    let resume = fleet.path("slow/resume");
    let reached = resume.with_extension("reached");
    let mut slow = fleet.worker_on("slow", &args);
    slow.env("MEMOIRD_FAIL", format!("wait:{}@bundle.push.manifest", resume.display()));
    let slow = slow.arg("--no-sandbox").spawn().unwrap();
    await_pause(&reached, "bundle.push.manifest", || false);
    check(&fleet.run(&args), 75, &["another worker holds acme/lexicon"]);
    // The process does not run at all for longer than its lease.
    let pid = i32::try_from(slow.id()).unwrap();
    signal(pid, Signal::STOP);
    thread::sleep(Duration::from_secs(3));
    check(&fleet.run(&args), 0, &["generation 2"]);
    fs::File::create(&resume).unwrap();
    signal(pid, Signal::CONT);
    let ended = slow.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(75));
    let manifest = fs::read_to_string(fleet.path("store/acme/lexicon/manifest.json")).unwrap();
    assert!(manifest.contains("\"generation\": 2") || manifest.contains("\"generation\":2"));
    assert_files(&fleet.pull("acme/lexicon").files(), &expected, "lexicon");
    let runs = "SELECT fence, outcome FROM memoird.run ORDER BY fence";
    assert_eq!(fleet.postgres.sql("acme", runs), "1|lost\n2|done");
}

#[test]
fn the_root_of_a_dead_worker_is_claimed_when_its_lease_has_run_out() {
    const LEASE: Duration = Duration::from_secs(3);
    let Some(fleet) = Fleet::start() else { return };
    fleet.push(&numbered(1, 9), "acme/lexicon");
    let other = fleet.spawn("other", &["--lease", "3s"]);
    // Let it see the empty line once it has nothing to do: the first one takes the root.
    signal(i32::try_from(other.0.id()).unwrap(), Signal::STOP);
    let mut dying = fleet.worker_on("dying", &["--once", "acme/lexicon", "--lease", "3s"]);
    dying.env("MEMOIRD_FAIL", "kill@bundle.push.object");
    assert_eq!(finish(dying, &["--once"]).code, -1);
    let died = Instant::now();
    signal(i32::try_from(other.0.id()).unwrap(), Signal::CONT);
    let is_claimed = "SELECT fence FROM memoird.root";
    while fleet.postgres.sql("acme", is_claimed) != "2" {
        assert!(died.elapsed() < LEASE + Duration::from_secs(5), "not claimed");
        thread::sleep(Duration::from_millis(100));
    }
    report(&format!(
        "claimed again {:.1} s after the kill, lease {LEASE:?}",
        died.elapsed().as_secs_f64()
    ));
    drop(other);
}

#[test]
fn a_root_that_its_workers_die_of_waits_longer_each_time() {
    let Some(fleet) = Fleet::start() else { return };
    fleet.postgres.admin(
        "INSERT INTO memoird.root (tenant, id, owner, lease_until, attempts) VALUES \
         ('acme', 'deadly', 'gone', now() - interval '1 second', 5), \
         ('acme', 'unlucky', 'gone', now(), 4); \
         INSERT INTO memoird.root (tenant, id, due_at) VALUES ('acme', 'waiting', now() - interval '1 day')",
    );
    let claim = "SELECT coalesce(id, '-') FROM memoird.claim_root('acme', NULL, 'me', 60000)";
    // What became due while a worker had it does not wait behind the others.
    for id in ["unlucky", "waiting", "-"] {
        assert_eq!(fleet.postgres.admin(claim), id);
    }
    let waits = "SELECT owner IS NULL, due_at > now() + interval '20 seconds' FROM memoird.root WHERE id = 'deadly'";
    assert_eq!(fleet.postgres.admin(waits), "t|t");
}

#[test]
fn a_tenant_with_one_root_does_not_wait_for_one_with_many() {
    let Some(fleet) = Fleet::start() else { return };
    let many = "INSERT INTO memoird.root (tenant, id, due_at) \
                SELECT 'many', 'r' || n, now() - interval '1 day' FROM generate_series(1, 100000) n; \
                INSERT INTO memoird.tenant VALUES ('many', now() - interval '1 day')";
    fleet.postgres.admin(many);
    let turn = || fleet.postgres.admin("SELECT picked FROM memoird.next_turn()");
    assert_eq!(turn(), "many");
    fleet.push(&Root::small(), "one/small");
    let turns: Vec<String> = (0..2).map(|_| turn()).collect();
    assert!(turns.contains(&"one".to_owned()), "{turns:?}");
}

#[test]
fn workers_share_one_connection_of_a_pooler() {
    let Some(mut fleet) = Fleet::start() else { return };
    if !fleet.postgres.start_pooler() {
        return skipped("PgBouncer is missing: apt install pgbouncer");
    }
    let names: Vec<_> = (0..6).map(|it| format!("tenant-{}/lexicon-{it}", it % 2)).collect();
    for (number, name) in names.iter().enumerate() {
        fleet.push(&numbered(number, 9), name);
    }
    let mut workers: Vec<_> =
        ["one", "two", "three"].iter().map(|it| fleet.spawn(it, &["--until-idle"])).collect();
    for worker in &mut workers {
        assert!(worker.0.wait().unwrap().success());
    }
    for (number, name) in names.iter().enumerate() {
        let expected = undisturbed(&numbered(number, 9));
        assert_files(&fleet.pull(name).files(), &expected, name);
    }
    assert_eq!(
        fleet.postgres.admin("SELECT count(*), count(DISTINCT root) FROM memoird.run"),
        "6|6"
    );
}

#[test]
fn pushes_that_were_not_reported_are_found_by_a_sweep() {
    let Some(fleet) = Fleet::start() else { return };
    let machine = Root::small();
    fleet.push(&machine, "acme/small");
    fleet.run(&["--until-idle"]).ok();
    machine.run(&["bundle", "pull"]).ok();
    machine.run(&["log", "One more"]).ok();
    // The database does not answer, and the push succeeds.
    let url = fleet.url("acme/small");
    let args = ["bundle", "push", &url, "--claims", "postgres://worker@127.0.0.1:1/fleet"];
    check(&machine.run(&args), 0, &["published, but not reported", "cannot reach"]);
    let done = || fleet.postgres.sql("acme", "SELECT gen FROM memoird.root");
    fleet.run(&["--until-idle"]).ok();
    assert_eq!(done(), "2");
    let swept = fleet.run(&["--until-idle", "--sweep-every", "0s"]);
    check(&swept, 0, &["found 1 of 1 roots"]);
    assert_eq!(done(), "4");
}

#[test]
fn bad_servers_are_named_and_nothing_is_lost() {
    let Some(fleet) = Fleet::start() else { return };
    let machine = Root::small();
    fleet.push(&machine, "acme/small");
    let port = fleet.postgres.port();
    let with = |claims: &str| {
        let args = ["--until-idle", "--claims", claims];
        fleet.run(&args)
    };
    let wrong = with(&format!("postgres://worker:hunter2@127.0.0.1:{port}/fleet"));
    check(&wrong, 69, &["refuses this user", "authentication failed"]);
    assert!(!wrong.stderr.contains("hunter2"), "{wrong}");
    let silent = with("postgres://worker:hunter2@127.0.0.1:1/fleet");
    check(&silent, 69, &["cannot reach the claims database", "127.0.0.1:1"]);
    check(&with("mysql://x"), 2, &["postgres://USER@HOST/DATABASE"]);
    let tls = with(&format!("postgres://worker:secret@127.0.0.1:{port}/fleet?sslmode=require"));
    check(&tls, 69, &["no TLS with the claims database", "?sslmode=disable"]);
    let no_store = fleet.run(&["--store", "s3://", "--until-idle"]);
    assert_ne!(no_store.code, 0, "{no_store}");
    fleet.postgres.admin("UPDATE memoird.meta SET version = 9");
    check(&fleet.run(&["--until-idle"]), 65, &["newer memoird", "version 9"]);
    fleet.postgres.admin("UPDATE memoird.meta SET version = 1");
    check(&fleet.run(&["--until-idle"]), 78, &["older memoird", "version 1", "--init-claims"]);
    fleet.postgres.admin("UPDATE memoird.meta SET version = 2");
    fleet.run(&["--until-idle"]).ok();
    machine.run(&["bundle", "pull"]).ok();
    assert!(machine.path("WISDOM.md").is_file());
    let plain = fleet.postgres.url().replace("/fleet", "/postgres");
    check(&with(&plain), 78, &["no claims tables", "--init-claims"]);
}

#[test]
fn kills_pauses_and_partitions_change_no_byte_and_leave_no_root_behind() {
    const DAYS: u32 = 21;
    const LEASE: Duration = Duration::from_secs(2);
    let bucket = Bucket::good();
    let dir = tempfile::tempdir().unwrap();
    let started = Fleet::with_store(dir, "s3://team".to_owned(), bucket.variables());
    let Some(fleet) = started else { return };
    let namespaces: Vec<_> = (1..=3).filter_map(Namespace::new).collect();
    if namespaces.len() < 3 {
        skipped("network namespaces need root and iproute2: no partitions");
    }
    let ports = (forward(fleet.postgres.port()), forward(bucket.port()));
    let spawn = |which: usize| match namespaces.get(which) {
        Some(namespace) => {
            let network = Network { namespace, claims_port: ports.0, store_port: ports.1 };
            fleet.spawn_in(&network, &["--lease", "2s"])
        }
        None => fleet.spawn(&format!("machine-{which}"), &["--lease", "2s"]),
    };
    let roots = size("MEMOIRD_FLEET_ROOTS", 12);
    let mut left = [
        (Disturbance::Kill, size("MEMOIRD_FLEET_KILLS", 9)),
        (Disturbance::Pause, size("MEMOIRD_FLEET_PAUSES", 1)),
        (Disturbance::Partition, size("MEMOIRD_FLEET_PARTITIONS", 1) * namespaces.len().min(1)),
    ];
    let mut expected = Vec::new();
    for number in 0..roots {
        let root = numbered(number, DAYS);
        fleet.push(&root, &format!("tenant-{}/lexicon-{number}", number % 5));
        expected.push(undisturbed(&root));
    }
    let mut workers: Vec<_> = (0..3).map(spawn).collect();
    let mut dice = Dice(7);
    let mut done = [0; 3];
    let count = |which: &str| -> usize {
        fleet.postgres.admin(&format!("SELECT count(*) FROM memoird.{which}")).parse().unwrap()
    };
    let started = Instant::now();
    while count("root WHERE owner IS NOT NULL OR gen < 2 OR due_at <= now()") > 0 {
        assert!(started.elapsed() < Duration::from_secs(1800), "roots are stuck");
        thread::sleep(Duration::from_millis(20 + dice.below(150)));
        let which = usize::try_from(dice.below(3)).unwrap();
        // In proportion to what is left, so that all end at about the same time.
        let all: usize = left.iter().map(|it| it.1).sum();
        if all == 0 {
            continue;
        }
        let mut at = usize::try_from(dice.below(all as u64)).unwrap();
        let kind = left.iter().position(|(_, left)| {
            let is_it = at < *left;
            at = at.saturating_sub(*left);
            is_it
        });
        let kind = kind.unwrap();
        let has_happened = match left[kind].0 {
            // Each fourth time the whole worker dies, and its service starts it again.
            Disturbance::Kill if dice.below(4) == 0 => {
                workers[which].kill();
                workers[which] = spawn(which);
                true
            }
            Disturbance::Kill => workers[which].kill_turn(),
            Disturbance::Pause => workers[which].turn().is_some_and(|turn| {
                signal(turn, Signal::STOP);
                thread::sleep(LEASE + Duration::from_secs(1));
                signal(turn, Signal::CONT)
            }),
            Disturbance::Partition => workers[which].turn().is_some_and(|_| {
                namespaces[which].set_cut(true);
                thread::sleep(LEASE + Duration::from_secs(1));
                namespaces[which].set_cut(false);
                true
            }),
        };
        left[kind].1 -= usize::from(has_happened);
        done[kind] += usize::from(has_happened);
    }
    let seconds = started.elapsed().as_secs_f64();
    drop(workers);
    for (number, expected) in expected.iter().enumerate() {
        let name = format!("tenant-{}/lexicon-{number}", number % 5);
        let found = fleet.pull(&name);
        assert_files(&found.files(), expected, &name);
        assert_eq!(written_twice(&found.path("")), [""; 0], "{name}");
    }
    let [kills, pauses, partitions] = done;
    report(&format!(
        "{roots} roots, {kills} kills, {pauses} pauses, {partitions} partitions, {} lost leases, {seconds:.1} s",
        count("run WHERE outcome = 'lost'"),
    ));
}

/// What happens to a worker.
#[derive(Clone, Copy)]
enum Disturbance {
    Kill,
    /// It does not run for longer than its lease.
    Pause,
    /// It reaches no server for longer than its lease.
    Partition,
}
