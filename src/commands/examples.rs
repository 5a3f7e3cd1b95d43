//! Examples of each verb, which its help shows at the end.

/// The verbs with their examples; a test parses each.
const EXAMPLES: &[(&str, &[&str])] = &[
    ("init", &["memoird init", "memoird init ~/notes", "memoird init --claude-code --dry-run"]),
    ("status", &["memoird status", "memoird status --json"]),
    (
        "log",
        &["memoird log Chose SQLite, because one file is easy to back up", "date | memoird log -"],
    ),
    (
        "search",
        &[
            "memoird search backup rule",
            "memoird search \"what did we decide last week?\"",
            "memoird search importer --since \"two weeks ago\"",
        ],
    ),
    (
        "trace",
        &[
            "memoird trace WISDOM.md:12",
            "memoird trace memory/weekly/2026-W14.md:19",
            "memoird trace 2026-04-02:3",
        ],
    ),
    (
        "correct",
        &[
            "memoird correct 2026-W14:19 \"The importer reads 3.2 s per GB\"",
            "memoird correct WISDOM.md:12 \"No deploy on Fridays\" --dry-run",
        ],
    ),
    ("undo", &["memoird undo", "memoird undo 12 --dry-run", "memoird undo 12 --with-later"]),
    (
        "open",
        &["memoird open", "memoird open --read-only", "memoird open --no-browser --port 8080"],
    ),
    ("demo", &["memoird demo", "memoird demo /tmp/memoird-demo"]),
    ("context", &["memoird context", "memoird context --json"]),
    ("memories", &["memoird memories", "memoird memories --type feedback"]),
    ("coverage", &["memoird coverage", "memoird coverage 2026-W14", "memoird coverage --all"]),
    (
        "show",
        &[
            "memoird show WISDOM.md",
            "memoird show 2026-W14",
            "memoird show WISDOM.md --as-of \"last month\"",
        ],
    ),
    ("history", &["memoird history", "memoird history WISDOM.md"]),
    #[cfg(feature = "fleet")]
    (
        "worker",
        &[
            "memoird worker --store s3://memory --claims postgres://worker@db/fleet",
            "memoird worker --store s3://memory --once acme/lexicon",
            "memoird worker --init-claims --claims postgres://worker@db/fleet",
        ],
    ),
    #[cfg(feature = "fleet")]
    (
        "bundle",
        &[
            "memoird bundle push s3://team-memory/lexicon",
            "memoird bundle pull file:///mnt/backup/lexicon --dry-run",
            "memoird bundle status --json",
        ],
    ),
    #[cfg(feature = "fleet")]
    (
        "bundle push",
        &[
            "memoird bundle push",
            "memoird bundle push s3://team-memory/lexicon --dry-run",
            "memoird bundle push --mine memory/weekly/2026-W14.md",
        ],
    ),
    #[cfg(feature = "fleet")]
    (
        "bundle pull",
        &[
            "memoird bundle pull",
            "memoird bundle pull file:///mnt/backup/lexicon --dry-run",
            "memoird bundle pull --theirs all",
        ],
    ),
    #[cfg(feature = "fleet")]
    ("bundle status", &["memoird bundle status", "memoird bundle status --json"]),
    ("blame", &["memoird blame WISDOM.md", "memoird blame 2026-W14"]),
    ("diff", &["memoird diff WISDOM.md", "memoird diff WISDOM.md --from \"last month\""]),
    ("usage", &["memoird usage", "memoird usage --by model --since \"last month\""]),
    ("list", &["memoird list", "memoird list --json"]),
    ("config", &["memoird config show --origin", "memoird config path", "memoird config edit"]),
    ("config show", &["memoird config show", "memoird config show --origin --json"]),
    ("config path", &["memoird config path", "memoird config path --json"]),
    ("config edit", &["memoird config edit", "EDITOR=nano memoird config edit"]),
    ("serve", &["memoird serve", "memoird serve --read-only --json"]),
    ("export", &["memoird export page", "memoird export ~/backup/memory-page"]),
    (
        "compact",
        &["memoird compact", "memoird compact --dry-run", "memoird compact --period 2026-W14"],
    ),
    ("review", &["memoird review", "memoird review list --json"]),
    ("review list", &["memoird review list", "memoird review list --decided"]),
    ("review accept", &["memoird review accept 0106742b", "memoird review accept 2026-04-02"]),
    ("review refuse", &["memoird review refuse 0106742b", "memoird review refuse --all"]),
    ("review reopen", &["memoird review reopen 0106742b", "memoird review reopen 2026-04-02"]),
    (
        "review edit",
        &[
            "memoird review edit 0106742b \"The vendor's page asks for a restart\"",
            "memoird review edit 4c1e90aa \"How to work: run the tests first\"",
        ],
    ),
    ("forget", &["memoird forget 2026-04-02:3 --dry-run", "memoird forget \"old phone number\""]),
    ("doctor", &["memoird doctor", "memoird doctor --repair", "memoird doctor --secrets"]),
    ("rebuild", &["memoird rebuild", "memoird rebuild --adopt --dry-run"]),
    ("upgrade", &["memoird upgrade --dry-run", "memoird upgrade --yes"]),
    ("uninstall", &["memoird uninstall --dry-run", "memoird uninstall --yes"]),
    ("model", &["memoird model test", "memoird model test --json"]),
    ("model test", &["memoird model test", "memoird model test --set model.timeout=2m"]),
    ("run", &["memoird run", "memoird run --log-format json"]),
    ("service", &["memoird service install", "memoird service status"]),
    ("service install", &["memoird service install", "memoird service install --dry-run"]),
    (
        "service uninstall",
        &["memoird service uninstall --dry-run", "memoird service uninstall --yes"],
    ),
    ("service status", &["memoird service status", "memoird service status --json"]),
    ("service print", &["memoird service print", "memoird service print --for launchd"]),
    ("session", &["memoird session list", "memoird session compact session.jsonl"]),
    (
        "session compact",
        &[
            "memoird session compact session.jsonl",
            "memoird session compact session.jsonl --micro --out summary.md",
        ],
    ),
    ("session list", &["memoird session list", "memoird session list --since \"last week\""]),
    (
        "session show",
        &[
            "memoird session show CMEM-20260402-101500",
            "memoird session show CMEM-20260402-101500 --json",
        ],
    ),
    (
        "session export",
        &[
            "memoird session export --id CMEM-20260402-101500",
            "memoird session export --id CMEM-20260402-101500 --root ~/notes",
        ],
    ),
    ("session import", &["memoird session import record.md", "memoird session import -"]),
    ("session retry", &["memoird session retry", "memoird session retry --json"]),
    ("session dismiss", &["memoird session dismiss", "memoird session dismiss session.jsonl"]),
    ("import", &["memoird import claude-code --dry-run", "memoird import codex"]),
    ("hook", &["memoird hook claude-code session-start", "memoird hook codex session-start"]),
    ("mcp", &["memoird mcp", "memoird mcp --print-config claude-code"]),
    ("completions", &["memoird completions bash", "memoird completions fish"]),
    ("man", &["memoird man", "memoird man | man -l -"]),
    ("version", &["memoird version", "memoird version --json"]),
];

/// Adds the examples to the help of each verb.
pub(super) fn add_to(command: clap::Command) -> clap::Command {
    EXAMPLES.iter().fold(command, |command, (verb, examples)| {
        change_verb(command, verb, &|verb| {
            let before = verb.get_after_help().map(|it| format!("{it}\n\n")).unwrap_or_default();
            verb.after_help(format!("{before}Examples:\n  {}", examples.join("\n  ")))
        })
    })
}

/// Changes a verb, or a verb below one: `review accept`.
pub(super) fn change_verb(
    command: clap::Command,
    verb: &str,
    change: &dyn Fn(clap::Command) -> clap::Command,
) -> clap::Command {
    match verb.split_once(' ') {
        Some((verb, rest)) => command.mut_subcommand(verb, |it| change_verb(it, rest, change)),
        None => command.mut_subcommand(verb, change),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the verbs and those below them, as they are typed.
    fn verbs(command: &clap::Command, before: &str) -> Vec<String> {
        let below = command.get_subcommands().flat_map(|it| {
            let name = format!("{before}{}", it.get_name());
            let inner = verbs(it, &format!("{name} "));
            std::iter::once(name).chain(inner)
        });
        below.collect()
    }

    #[test]
    fn each_verb_has_examples_that_it_accepts() {
        let command = crate::commands::clap_command();
        for verb in verbs(&command, "") {
            let (_, examples) = EXAMPLES.iter().find(|it| it.0 == verb).expect(&verb);
            assert!((2..=3).contains(&examples.len()), "{verb}");
            for example in *examples {
                // The part that is about memoird, without quotes around words.
                let at = example.find(&format!("memoird {verb}")).expect(example);
                let call = example[at..].split(" | ").next().unwrap_or_default();
                let words = call.split('"').enumerate().flat_map(|(at, part)| match at % 2 {
                    0 => part.split_whitespace().collect::<Vec<_>>(),
                    _ => vec![part],
                });
                if let Err(error) = command.clone().try_get_matches_from(words) {
                    panic!("{example}: {error}");
                }
            }
        }
    }
}
