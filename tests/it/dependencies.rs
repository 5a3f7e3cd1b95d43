//! Checks of the dependencies and of build commands for machines without `cargo deny`.

use std::{collections::BTreeSet, env, fs, path::Path, process::Command};

use serde_json::Value;

fn read(relative: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(relative);
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{relative}: {e}"))
}

/// Returns the quoted words in the lines of `.deny.toml` from one line to another.
fn words_of_policy(from: &str, to: &str) -> Vec<String> {
    let text = read(".deny.toml");
    let lines = text.lines().skip_while(|it| *it != from).skip(1).take_while(|it| *it != to);
    let words = lines.filter_map(|it| it.split('"').nth(1).map(str::to_owned));
    let words: Vec<String> = words.collect();
    assert!(!words.is_empty(), ".deny.toml has no `{from}`");
    words
}

/// Reads a licence as SPDX writes it: names, `AND` before `OR`, parentheses, and the old `/`.
fn is_allowed(licence: &str, allowed: &[String]) -> bool {
    let spaced = licence.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let (is_allowed, rest) = either(&words, allowed);
    is_allowed && rest.is_empty()
}

fn either<'a, 'b>(words: &'a [&'b str], allowed: &[String]) -> (bool, &'a [&'b str]) {
    let (mut is_ok, mut rest) = both(words, allowed);
    while let ["OR", after @ ..] = rest {
        let (also, after) = both(after, allowed);
        (is_ok, rest) = (is_ok | also, after);
    }
    (is_ok, rest)
}

fn both<'a, 'b>(words: &'a [&'b str], allowed: &[String]) -> (bool, &'a [&'b str]) {
    let (mut is_ok, mut rest) = one(words, allowed);
    while let ["AND", after @ ..] = rest {
        let (also, after) = one(after, allowed);
        (is_ok, rest) = (is_ok & also, after);
    }
    (is_ok, rest)
}

fn one<'a, 'b>(words: &'a [&'b str], allowed: &[String]) -> (bool, &'a [&'b str]) {
    match words {
        ["(", within @ ..] => match either(within, allowed) {
            (is_ok, [")", rest @ ..]) => (is_ok, rest),
            (_, rest) => (false, rest),
        },
        // An exception only removes obligations.
        [name, "WITH", _, rest @ ..] | [name, rest @ ..] => {
            (allowed.iter().any(|it| it == name), rest)
        }
        [] => (false, words),
    }
}

#[test]
fn licence_expressions_are_parsed() {
    let allowed = ["MIT", "Apache-2.0", "Unicode-3.0"].map(str::to_owned);
    for good in [
        "MIT",
        "MIT/Apache-2.0",
        "GPL-3.0 OR MIT",
        "(MIT OR GPL-3.0) AND Unicode-3.0",
        "Apache-2.0 WITH LLVM-exception",
        "GPL-3.0 AND GPL-2.0 OR MIT",
    ] {
        assert!(is_allowed(good, &allowed), "{good}");
    }
    for bad in ["", "GPL-3.0", "MIT AND GPL-3.0", "(MIT OR GPL-3.0) AND GPL-2.0", "(MIT", "MIT x"] {
        assert!(!is_allowed(bad, &allowed), "{bad}");
    }
}

#[test]
fn every_crate_has_an_allowed_licence() {
    // Uses only what cargo has already fetched; no network access.
    let run = |program: &str, args: &[&str]| {
        let output = Command::new(program)
            .args(args)
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .unwrap_or_else(|e| panic!("{program}: {e}"));
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{program} {args:?}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    };
    let rustc = run(&env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned()), &["-vV"]);
    let host = rustc.lines().find_map(|it| it.strip_prefix("host: ")).unwrap();
    let cargo = env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let args = ["metadata", "--format-version=1", "--locked", "--offline", "--filter-platform"];
    let metadata: Value =
        serde_json::from_str(&run(&cargo, &[&args[..], &[host]].concat())).unwrap();
    let allowed = words_of_policy("allow = [", "]");
    let packages = metadata["packages"].as_array().unwrap();
    assert!(packages.len() > 100);
    let bad: Vec<String> = packages
        .iter()
        .filter(|it| !is_allowed(it["license"].as_str().unwrap_or_default(), &allowed))
        .map(|it| format!("{} {}: {}", it["name"], it["version"], it["license"]))
        .collect();
    assert!(bad.is_empty(), "not allowed in .deny.toml:\n{}", bad.join("\n"));
}

#[test]
fn every_crate_comes_from_the_registry_and_none_is_banned() {
    let lock = read("Cargo.lock");
    let banned: BTreeSet<String> = words_of_policy("deny = [", "]").into_iter().collect();
    assert!(banned.contains("openssl"));
    for package in lock.split("[[package]]\n").skip(1) {
        let value = |key: &str| {
            let line = package.lines().find_map(|it| it.strip_prefix(key)?.strip_prefix(" = \""));
            line.map(|it| it.trim_end_matches('"').to_owned())
        };
        let name = value("name").unwrap();
        assert!(!banned.contains(&name), "{name} is banned in .deny.toml");
        if name == "memoird" {
            continue;
        }
        let source = value("source").unwrap_or_default();
        assert_eq!(source, "registry+https://github.com/rust-lang/crates.io-index", "{name}");
        assert_eq!(value("checksum").map(|it| it.len()), Some(64), "{name}");
    }
}

/// Every proof that SECURITY.md links to must exist.
#[test]
fn every_link_of_the_security_page_resolves() {
    let page = read("SECURITY.md");
    let links: Vec<&str> = page.split("](").skip(1).filter_map(|it| it.split(')').next()).collect();
    assert!(links.len() > 20);
    for link in links {
        assert!(Path::new(env!("CARGO_MANIFEST_DIR")).join(link).exists(), "{link}");
    }
    assert!(read("README.md").contains("](SECURITY.md)"));
}

#[test]
fn unsafe_code_is_forbidden_and_builds_are_locked() {
    assert!(read("Cargo.toml").contains("\n[lints.rust]\nunsafe_code = \"forbid\"\n"));
    assert!(!read(".gitignore").contains("Cargo.lock"));
    for file in [".ci/run", ".justfile", "README.md"] {
        for line in read(file).lines() {
            let line = line.trim_start().split('#').next().unwrap();
            let builds = ["cargo build", "cargo install", "cargo clippy --", "cargo doc --"];
            let checks = file == ".ci/run" && line.contains("step cargo test");
            assert!(
                line.contains("--locked")
                    || line.contains('`')
                    || !(checks || builds.iter().any(|it| line.contains(it))),
                "{file}: {line}"
            );
        }
    }
}
