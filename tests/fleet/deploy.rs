//! The examples in `deploy/` and the guides name verbs and options that exist.

use std::fs;

use crate::support::Root;

/// Returns the words of a command line, without what is after a comment.
fn words(line: &str) -> Vec<String> {
    let line = line.split(" #").next().unwrap_or_default();
    line.split_whitespace().map(|it| it.trim_matches('\'').to_owned()).collect()
}

/// Returns the command lines of `memoird` in a file, without the program.
fn command_lines(path: &str) -> Vec<Vec<String>> {
    let text = fs::read_to_string(format!("{}/{path}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let mut found = Vec::new();
    for line in text.replace("\\\n", " ").lines() {
        let line = line.trim();
        if let Some(list) = line.strip_prefix("args: ").or(line.strip_prefix("CMD ")) {
            // A comment may follow the list.
            let mut values = serde_json::Deserializer::from_str(list).into_iter();
            found.push(values.next().unwrap().unwrap());
        } else if let Some(rest) = line
            .strip_prefix("memoird ")
            .or(line.strip_prefix("ExecStart=/usr/local/bin/memoird "))
            // What follows the name of an image; the other examples start its default.
            .or(line.strip_prefix("podman run ").and_then(|it| Some(&it[it.find("worker ")?..])))
        {
            found.push(words(rest));
        }
    }
    found
}

#[test]
fn examples_name_options_that_exist() {
    let root = Root::empty("deploy");
    for (path, least) in [
        ("deploy/Containerfile", 1),
        ("deploy/README.md", 2),
        ("deploy/memoird-worker@.service", 1),
        ("deploy/kubernetes/worker.yaml", 1),
        ("deploy/kubernetes/cronjob.yaml", 1),
        ("docs/src/guides/fleet.md", 7),
        ("docs/src/guides/bundles.md", 6),
    ] {
        let lines = command_lines(path);
        assert!(lines.len() >= least, "{path}: {lines:?}");
        for line in lines {
            // An unknown option before it is refused first.
            let args: Vec<&str> = line.iter().map(|it| &it[..]).chain(["--help"]).collect();
            let shown = root.run(&args);
            assert_eq!(shown.code, 0, "{path}: {shown}");
        }
    }
    let bad = root.run(&["worker", "--no-such-option", "--help"]);
    assert_eq!(bad.code, 2, "{bad}");
}
