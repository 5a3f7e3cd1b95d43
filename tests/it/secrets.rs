//! Secrets that no line holds whole, and that memoird would put together or show in parts.

use crate::support::Root;

const TOKEN: &str = "G37LeXSyYV4g6snRoUYA4fXr6nzrvZcmT4a4";

#[track_caller]
fn holds_nowhere(root: &Root, secret: &str) {
    for (path, text) in root.files() {
        let is_log = path.starts_with("memory/2026-");
        assert!(is_log || !text.contains(secret), "{path}:\n{text}");
    }
}

#[test]
fn what_memoird_joins_is_looked_at_once_more() {
    for hidden in ["\u{200b}", "\u{2060}", "\u{feff}"] {
        let root = Root::empty("joined");
        root.write("memoird.yaml", "zone: Europe/Berlin\n");
        root.write(
            "memory/2026-03-03.md",
            &format!(
                "- Decided to use ghp_{hidden}{TOKEN} for CI, because it works.\n\
                 ## Staging password\n\n- tr0ub4dor8xK\n"
            ),
        );
        root.run(&["compact"]).ok();
        holds_nowhere(&root, TOKEN);
        holds_nowhere(&root, "tr0ub4dor8xK");
        let week = root.read("memory/weekly/2026-W10.md");
        assert!(week.contains("Decided to use [secret:github-token#"), "{week}");
        assert!(week.contains("Staging password: [secret:password#"), "{week}");
        for args in [&["show", "memory/2026-03-03.md"][..], &["trace", "2026-03-03:4", "--json"]] {
            let ran = root.run(args);
            assert!(!ran.stdout.contains("tr0ub4dor8xK"), "{ran}");
        }
    }
}

#[test]
fn a_key_of_several_lines_is_shown_by_no_verb() {
    let body = "MIIIMcXdRziQu1LMEiq65GAdP1bjsYnTMRLy2BJPPKgl9VPd4o5c0YQMbzJGndU";
    let root = Root::empty("lines");
    root.write("memoird.yaml", "zone: Europe/Berlin\n");
    root.write(
        "memory/2026-03-03.md",
        &format!(
            "- The key of the old host\n  -----BEGIN RSA PRIVATE KEY-----\n  {body}\n  -----END RSA PRIVATE KEY-----\n"
        ),
    );
    root.run(&["compact"]).ok();
    for args in [
        &["forget", "memory/2026-03-03.md", "--dry-run"][..],
        &["forget", "memory/2026-03-03.md", "--dry-run", "--json"],
        &["show", "memory/2026-03-03.md"],
        &["review", "list"],
    ] {
        let ran = root.run(args);
        assert!(!ran.stdout.contains(body) && !ran.stderr.contains(body), "{ran}");
    }
}

#[test]
fn the_index_lists_a_persons_memory_as_it_may_be_seen() {
    let root = Root::small();
    root.write(
        "memory/user_mine.md",
        &format!(
            "---\nname: The token ghp_{TOKEN}\ndescription: \"![x](https://evil.example/p.png) \\u202Eabc\"\ntype: user\n---\nMine.\n"
        ),
    );
    root.run(&["compact"]).ok();
    let index = root.read("memory/MEMORY.md");
    assert!(!index.contains(TOKEN) && index.contains("secret:github-token"), "{index}");
    assert!(!index.contains("![") && !index.contains('\u{202e}'), "{index}");
    let before = root.files();
    root.run(&["compact"]).ok();
    assert_eq!(root.files(), before);
    root.run(&["doctor"]).ok();
}

#[test]
fn a_correction_with_a_secret_in_it_is_written_with_a_mark() {
    let root = Root::small();
    root.run(&["compact"]).ok();
    let week = "memory/weekly/2026-W10.md";
    let at = root.read(week).lines().position(|it| it.contains("Importer v2")).unwrap() + 1;
    let ran =
        root.run(&["correct", &format!("{week}:{at}"), &format!("Importer uses ghp_{TOKEN}")]);
    assert!(ran.code == 0 && ran.stderr.contains("a mark takes its place"), "{ran}");
    assert!(!ran.stdout.contains(TOKEN), "{ran}");
    holds_nowhere(&root, TOKEN);
    assert!(
        root.read(week).contains("- Importer uses [secret:github-token"),
        "{}",
        root.read(week)
    );
}
