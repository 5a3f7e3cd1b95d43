//! A server that speaks as much of S3 as a bundle needs, and counts requests; and one that ignores conditions.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    sync::{Arc, Mutex},
};

use assert_cmd::Command;

use crate::{
    assert_same_files, check, compacted, report,
    support::{
        CommandOutput, Root,
        server::{Answer, ModelRequest, Server},
    },
};

/// How a server deviates from what a bundle needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Faults {
    ignores_conditions: bool,
    keeps_versions: bool,
    refuses_credentials: bool,
}

/// Bytes and version of each object.
type Objects = BTreeMap<String, (Vec<u8>, String)>;

/// A bucket in memory.
pub(crate) struct Bucket {
    pub(crate) server: Server,
    objects: Arc<Mutex<Objects>>,
}

const URL: &str = "s3://team/lex";

impl Bucket {
    /// Returns a bucket that does what a bundle needs.
    pub(crate) fn good() -> Self {
        Self::new(Faults::default())
    }

    fn new(faults: Faults) -> Self {
        let objects: Arc<Mutex<Objects>> = Arc::default();
        let shared = Arc::clone(&objects);
        let mut count = 0_u64;
        let server = Server::answering(move |request| {
            count += 1;
            answer(&mut shared.lock().unwrap(), request, count, faults)
        });
        Self { server, objects }
    }

    pub(crate) fn port(&self) -> u16 {
        self.server.url().rsplit(':').next().unwrap().parse().unwrap()
    }

    fn run(&self, root: &Root, args: &[&str]) -> CommandOutput {
        root.finish(self.command(root, args), args)
    }

    /// Returns the variables with its address and credentials.
    pub(crate) fn variables(&self) -> Vec<(String, String)> {
        let url = self.server.url();
        [
            ("AWS_ENDPOINT_URL", &url[..]),
            ("AWS_ALLOW_HTTP", "true"),
            ("AWS_ACCESS_KEY_ID", "testing"),
            ("AWS_SECRET_ACCESS_KEY", "testing"),
            ("AWS_REGION", "us-east-1"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
    }

    fn command(&self, root: &Root, args: &[&str]) -> Command {
        let mut command = root.command(args);
        command.envs(self.variables());
        command
    }
}

fn status(status: u16, code: &str) -> Answer {
    let body = format!(
        "<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>{code}</Message></Error>"
    );
    Answer::Http { status, headers: Vec::new(), body: body.into_bytes() }
}

fn answer(objects: &mut Objects, request: &ModelRequest, count: u64, faults: Faults) -> Answer {
    if faults.refuses_credentials {
        return status(403, "InvalidAccessKeyId");
    }
    let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
    let key = path.strip_prefix("/team/").unwrap_or("").to_owned();
    let found = objects.get(&key).cloned();
    let modified = ("last-modified", "Mon, 13 Apr 2026 07:00:00 GMT".to_owned());
    match &request.method[..] {
        "PUT" => {
            let matches = request.header("if-match");
            let is_wrong = request.header("if-none-match").is_some() && found.is_some()
                || matches.is_some_and(|it| found.as_ref().is_none_or(|(_, tag)| tag != it));
            if is_wrong && !faults.ignores_conditions {
                return status(412, "PreconditionFailed");
            }
            let tag = format!("\"{count}\"");
            objects.insert(key, (request.bytes.clone(), tag.clone()));
            let mut headers = vec![("etag", tag)];
            if faults.keeps_versions {
                headers.push(("x-amz-version-id", format!("v{count}")));
            }
            Answer::Http { status: 200, headers, body: Vec::new() }
        }
        "GET" if query.contains("list-type") => {
            let prefix = query.split('&').find_map(|it| it.strip_prefix("prefix=")).unwrap_or("");
            let prefix = prefix.replace("%2F", "/");
            let mut listed = String::new();
            for (key, (bytes, tag)) in objects.iter().filter(|it| it.0.starts_with(&prefix)) {
                write!(
                    listed,
                    "<Contents><Key>{key}</Key><LastModified>2026-04-13T07:00:00.000Z</LastModified>\
                     <ETag>{tag}</ETag><Size>{}</Size></Contents>",
                    bytes.len()
                )
                .unwrap();
            }
            let body = format!(
                "<?xml version=\"1.0\"?><ListBucketResult><Name>team</Name><IsTruncated>false</IsTruncated>\
                 {listed}</ListBucketResult>"
            );
            Answer::Http { status: 200, headers: Vec::new(), body: body.into_bytes() }
        }
        "GET" | "HEAD" => match found {
            None => status(404, "NoSuchKey"),
            Some((_, tag)) if request.header("if-none-match") == Some(&tag) => {
                Answer::Http { status: 304, headers: vec![("etag", tag)], body: Vec::new() }
            }
            Some((bytes, tag)) => {
                let body = if request.method == "HEAD" { Vec::new() } else { bytes };
                let mut headers = vec![("etag", tag.clone()), modified];
                if faults.keeps_versions {
                    headers.push(("x-amz-version-id", format!("v{}", tag.trim_matches('"'))));
                }
                Answer::Http { status: 200, headers, body }
            }
        },
        "DELETE" => {
            objects.remove(&key);
            Answer::Http { status: 204, headers: Vec::new(), body: Vec::new() }
        }
        "POST" => {
            let body = String::from_utf8_lossy(&request.bytes).into_owned();
            for key in body.split("<Key>").skip(1).filter_map(|it| it.split('<').next()) {
                objects.remove(key);
            }
            let body = b"<?xml version=\"1.0\"?><DeleteResult></DeleteResult>".to_vec();
            Answer::Http { status: 200, headers: Vec::new(), body }
        }
        _ => status(405, "MethodNotAllowed"),
    }
}

#[test]
fn an_unchanged_root_costs_one_request_and_an_active_one_few() {
    let bucket = Bucket::new(Faults::default());
    let mut here = compacted();
    bucket.run(&here, &["bundle", "push", URL]).ok();
    let there = Root::empty("mara");
    bucket.run(&there, &["bundle", "pull", URL, "--root", "."]).ok();
    assert_same_files(&here, &there);
    let requests = |run: &dyn Fn()| {
        let before = bucket.server.count();
        run();
        bucket.server.count() - before
    };
    for root in [&here, &there] {
        let unchanged = requests(&|| drop(bucket.run(root, &["bundle", "pull"]).ok()));
        assert_eq!(unchanged, 1);
    }
    here.set_now("2026-04-21T09:00:00+02:00");
    here.write(
        "memory/2026-04-14.md",
        "# 2026-04-14\n\n- The west crane is red, decided for good\n",
    );
    here.run_with_digest(&["compact"]).ok();
    let pushed = requests(&|| drop(bucket.run(&here, &["bundle", "push"]).ok()));
    let pulled = requests(&|| drop(bucket.run(&there, &["bundle", "pull"]).ok()));
    assert!(pushed + pulled <= 14, "{pushed} + {pulled}");
    assert_same_files(&here, &there);
}

#[test]
fn a_root_that_is_pushed_every_day_is_brought_with_few_requests() {
    const DAYS: u64 = 90;
    let bucket = Bucket::good();
    let url = "s3://team/acme/lex";
    let mut here = Root::empty("lex");
    here.write("memoird.yaml", "agent_name: lex\nzone: Europe/Berlin\n");
    let start = chrono::NaiveDate::from_ymd_opt(2026, 1, 14).unwrap();
    for day in 0..DAYS {
        let date = start + chrono::Days::new(day);
        here.set_now(&format!("{date}T20:00:00Z"));
        here.write(
            &format!("memory/{date}.md"),
            &format!("# {date}\n\n- Decided: lot {day} stays at the quay\n"),
        );
        bucket.run(&here, &["bundle", "push", url]).ok();
    }
    let requests = |run: &dyn Fn() -> CommandOutput| {
        let before = bucket.server.count();
        run().ok();
        bucket.server.count() - before
    };
    let now = "2026-04-13T20:30:00Z";
    let mut there = Root::empty("lex");
    there.set_now(now);
    let first = requests(&|| bucket.run(&there, &["bundle", "pull", url, "--root", "."]));
    // The manifest twice, the settings, three months, and a handful.
    assert!(first <= 12, "{first}");
    assert_same_files(&here, &there);
    assert_eq!(requests(&|| bucket.run(&there, &["bundle", "pull"])), 1);
    // A worker without a copy, then one with it.
    let args = ["worker", "--store", "s3://team", "--once", "acme/lex"];
    for _ in 0..2 {
        let worker = requests(&|| bucket.run(&there, &args));
        report(&format!("{DAYS} pushes: first pull {first} requests, a worker {worker}"));
        assert!(worker <= 14, "{worker}");
        bucket.run(&there, &["bundle", "pull"]).ok();
        there.run(&["log", "One more"]).ok();
        bucket.run(&there, &["bundle", "push"]).ok();
    }
}

#[test]
fn an_entry_of_a_fleets_root_is_in_the_store_before_it_is_acknowledged() {
    let bucket = Bucket::good();
    let url = "s3://team/acme/lex";
    let here = Root::small();
    here.append("memoird.yaml", "writer: fleet\n");
    let unpublished = here.run(&["log", "--json", "Before the first push"]).ok();
    let waits = unpublished.json()["publication"]["waits"].to_string();
    assert!(waits.contains("never published"), "{unpublished}");
    bucket.run(&here, &["bundle", "push", "--due", url]).ok();
    let published = bucket.run(&here, &["log", "--json", "The first entry"]).ok().json();
    assert_eq!(published["publication"], serde_json::json!({ "generation": 2, "waits": null }));
    let in_store = || {
        let there = Root::empty("small");
        bucket.run(&there, &["bundle", "pull", url, "--root", "."]).ok();
        there.read("memory/2026-04-13.md")
    };
    assert!(in_store().contains("The first entry"));
    // Without an answer the log on this machine keeps it, and the next entry publishes both.
    let mut offline = bucket.command(&here, &["log", "The second entry"]);
    offline.env("AWS_ENDPOINT_URL", "http://127.0.0.1:1");
    let kept = here.finish(offline, &["log"]);
    check(&kept, 0, &["memory/2026-04-13.md:", "not in the store yet", "memoird bundle push"]);
    assert!(!in_store().contains("The second entry"));
    bucket.run(&here, &["log", "The third entry"]).ok();
    let text = in_store();
    assert!(text.contains("The second entry") && text.contains("The third entry"), "{text}");
    // A copy does not test the store again.
    let copy = Root::empty("small");
    bucket.run(&copy, &["bundle", "pull", url, "--root", "."]).ok();
    let before = bucket.server.count();
    bucket.run(&copy, &["log", "From a copy"]).ok();
    let requests = bucket.server.count() - before;
    assert!(requests <= 6, "{requests}");
    assert!(in_store().contains("From a copy"));
}

#[test]
fn a_store_that_loses_a_race_is_refused_by_name() {
    let bucket = Bucket::new(Faults { ignores_conditions: true, ..Faults::default() });
    let root = Root::small();
    check(
        &bucket.run(&root, &["bundle", "push", URL]),
        78,
        &[URL, "lost a race", "conditional writes"],
    );
    let left = bucket.objects.lock().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(left, [""; 0]);
}

#[test]
fn a_machine_with_several_folders_tests_a_bucket_once() {
    let bucket = Bucket::good();
    let state = tempfile::tempdir().unwrap();
    let push = |name: &str| {
        let root = Root::small();
        let url = format!("s3://team/acme/{name}");
        let args = ["bundle", "push", &url];
        let mut command = bucket.command(&root, &args);
        command.env("XDG_STATE_HOME", state.path());
        let before = bucket.server.count();
        root.finish(command, &args).ok();
        bucket.server.count() - before
    };
    let (first, second) = (push("one"), push("two"));
    assert!(first > 100 && second <= 6, "{first} {second}");
}

#[test]
fn a_bucket_that_keeps_versions_is_refused_until_its_rule_is_acknowledged() {
    let bucket = Bucket::new(Faults { keeps_versions: true, ..Faults::default() });
    let root = Root::small();
    let words = ["keeps former versions", "lifecycle rule", "--accept-versions"];
    check(&bucket.run(&root, &["bundle", "push", URL]), 78, &words);
    bucket.run(&root, &["bundle", "push", URL, "--accept-versions"]).ok();
    // It is remembered.
    root.run(&["log", "One", "more"]).ok();
    bucket.run(&root, &["bundle", "push"]).ok();
    // Others on this machine are refused before they upload any content.
    let objects = || bucket.objects.lock().unwrap().keys().cloned().collect::<Vec<_>>();
    let before = objects();
    check(&bucket.run(&Root::small(), &["bundle", "push", "s3://team/acme/other"]), 78, &words);
    let there = Root::empty("small");
    bucket.run(&there, &["bundle", "pull", URL, "--root", "."]).ok();
    there.run(&["log", "From there"]).ok();
    check(&bucket.run(&there, &["bundle", "push"]), 78, &words);
    there.append("memoird.yaml", "writer: fleet\n");
    check(&bucket.run(&there, &["log", "Once more"]), 0, &["keeps former versions"]);
    assert_eq!(objects(), before);
}

#[test]
fn wrong_credentials_and_silent_servers_are_named_and_nothing_is_lost() {
    let bucket = Bucket::new(Faults { refuses_credentials: true, ..Faults::default() });
    let root = Root::small();
    let before = root.files();
    let words = [URL, "refuses these credentials", "AWS_ACCESS_KEY_ID"];
    for verb in ["push", "pull"] {
        let output = bucket.run(&root, &["bundle", verb, URL]);
        check(&output, 69, &words);
        assert!(!output.stderr.contains("testing"), "{output}");
    }
    let mut command = bucket.command(&root, &["bundle", "push", URL]);
    command.env("AWS_ENDPOINT_URL", "http://127.0.0.1:1");
    check(&root.finish(command, &["bundle", "push"]), 69, &["cannot reach", URL]);
    assert!(root.files() == before);
}
