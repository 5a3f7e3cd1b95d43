//! Imports point down only, folders of a room form no circle, one module prints, and one speaks SQL.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use crate::support::files_below;

/// From the lowest layer to the highest. A module may use itself and the ones listed before it.
const LAYERS: [&str; 18] = [
    "text",
    "memory",
    "parallel",
    "clock",
    "config",
    "privacy",
    "store",
    "model",
    "engine",
    "session",
    "compaction",
    "recall",
    "fleet",
    "daemon",
    "operations",
    "commands",
    "folder",
    "web",
];

/// Each folder of data has one reader in `src`: a file, or a folder of one module.
const READERS: [(&str, &str); 15] = [
    ("config/lexicon/", "src/text/lexicon.rs"),
    ("schema/lineage.sql", "src/store/db/lineage/schema.rs"),
    ("schema/ledger.sql", "src/store/db/ledger/mod.rs"),
    ("schema/claims.sql", "src/fleet/claims/mod.rs"),
    ("config/pricing.yaml", "src/model/pricing.rs"),
    ("prompts/", "src/model/prompt.rs"),
    ("schema/typed-memory.schema.json", "src/memory/typed_schema.rs"),
    ("schema/config.schema.json", "src/config/"),
    ("config/memoird.yaml", "src/config/"),
    ("config/secrets.yaml", "src/privacy/secrets/"),
    ("config/quarantine.yaml", "src/privacy/quarantine/"),
    ("systemd/", "src/commands/"),
    ("integrations/", "src/commands/hooks/"),
    ("tests/data/", "src/commands/"),
    ("assets/", "src/web/assets.rs"),
];

/// All files of `src`: path relative to the crate, module of the top level, text without its tests.
fn sources() -> Vec<(String, String, String)> {
    let crate_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    files_below(&crate_dir.join("src"), &["rs"], &mut files);
    files
        .into_iter()
        .map(|path| {
            let name = path.strip_prefix(crate_dir).unwrap().to_string_lossy().into_owned();
            let module =
                name.strip_prefix("src/").unwrap().split(['/', '.']).next().unwrap().to_owned();
            let text = fs::read_to_string(&path).unwrap();
            let code = text.split("\n#[cfg(test)]\nmod ").next().unwrap().to_owned();
            (name, module, code)
        })
        .filter(|(name, _, _)| !name.ends_with("tests.rs") && !name.contains("/tests/"))
        .collect()
}

/// Returns the paths of a `use` tree or of a single path, without the part before it:
/// `a::{b, c::d}` gives `a::b` and `a::c::d`.
fn use_paths(tree: &str) -> Vec<Vec<String>> {
    let tree = tree.trim_start();
    let Some(group) = tree.strip_prefix('{') else {
        let end = tree.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(tree.len());
        let (name, rest) = tree.split_at(end);
        if name.is_empty() {
            return vec![Vec::new()];
        }
        let Some(rest) = rest.strip_prefix("::") else { return vec![vec![name.to_owned()]] };
        return use_paths(rest)
            .into_iter()
            .map(|path| [vec![name.to_owned()], path].concat())
            .collect();
    };
    let mut depth = 0;
    let mut paths = Vec::new();
    let mut start = 0;
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => {
                paths.extend(use_paths(&group[start..at]));
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                paths.extend(use_paths(&group[start..at]));
                start = at + 1;
            }
            _ => {}
        }
    }
    paths.retain(|it| !it.is_empty());
    paths
}

/// Returns the length of a `use` tree that ends in a group, or 0 for a single path.
fn group_len(tree: &str) -> usize {
    let Some(open) = tree.find(|c: char| !c.is_alphanumeric() && c != '_' && c != ':') else {
        return 0;
    };
    if !tree[open..].starts_with('{') {
        return 0;
    }
    let mut depth = 0;
    let end = tree[open..].find(|c: char| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        depth == 0
    });
    end.map_or(tree.len(), |it| open + it)
}

/// Returns the absolute module paths that a file names, given its own module path.
fn named_paths(code: &str, own: &[String]) -> Vec<Vec<String>> {
    let code: String =
        code.lines().filter(|it| !it.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
    let parent = &own[..own.len().saturating_sub(1)];
    let mut paths = Vec::new();
    let mut groups: Vec<std::ops::Range<usize>> = Vec::new();
    for (anchor, base) in [("crate::", &[][..]), ("super::", parent), ("self::", own)] {
        for (at, _) in code.match_indices(anchor) {
            let before = code[..at].chars().next_back();
            let in_group = groups.iter().any(|it| it.contains(&at));
            if in_group || before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':') {
                continue;
            }
            groups.push(at..at + anchor.len() + group_len(&code[at + anchor.len()..]));
            for path in use_paths(&code[at + anchor.len()..]) {
                let ups = path.iter().take_while(|it| *it == "super").count();
                let base = &base[..base.len().saturating_sub(ups)];
                paths.push([base, &path[ups..]].concat());
            }
        }
    }
    paths
}

/// Two folders side by side that use each other cannot be understood one at a time.
#[test]
fn folders_of_a_room_form_no_circle() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut uses: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for (name, _, code) in sources() {
        let own: Vec<String> = name
            .trim_start_matches("src/")
            .trim_end_matches(".rs")
            .trim_end_matches("/mod")
            .split('/')
            .map(str::to_owned)
            .collect();
        for path in named_paths(&code, &own) {
            let shared = own.iter().zip(&path).take_while(|(a, b)| a == b).count();
            if shared == own.len() || shared == path.len() {
                continue;
            }
            let (from, to) = (own[..=shared].join("/"), path[..=shared].join("/"));
            if src.join(&from).is_dir() && src.join(&to).is_dir() {
                uses.entry(from).or_default().entry(to).or_insert_with(|| name.clone());
            }
        }
    }
    assert!(uses.len() > 20, "folders are no longer found: {uses:?}");
    for start in uses.keys() {
        let mut reached = BTreeSet::new();
        let mut open = vec![(start.as_str(), vec![start.clone()])];
        while let Some((folder, way)) = open.pop() {
            for (next, file) in uses.get(folder).into_iter().flatten() {
                let way = [way.clone(), vec![format!("{next} (by {file})")]].concat();
                assert!(next != start, "a circle: {}", way.join(" → "));
                if reached.insert(next) {
                    open.push((next, way));
                }
            }
        }
    }
}

#[test]
fn paths_are_read_from_groups_and_relative_names() {
    let own = ["a", "b", "c"].map(str::to_owned);
    let code =
        "use super::{x::Y, super::z}; use crate::{m::{n, o}, p}; self::q::r();\n// super::no";
    let paths: Vec<String> = named_paths(code, &own).iter().map(|it| it.join("::")).collect();
    assert_eq!(paths, ["m::n", "m::o", "p", "a::b::x::Y", "a::z", "a::b::c::q::r"]);
}

/// Returns the top-level modules that a file names after `crate::`, in single paths and in groups.
fn used_modules(code: &str) -> BTreeSet<String> {
    code.match_indices("crate::")
        .flat_map(|(at, anchor)| use_paths(&code[at + anchor.len()..]))
        .filter_map(|path| path.into_iter().next())
        .collect()
}

#[test]
fn imports_point_down_only() {
    let rank = |module: &str| LAYERS.iter().position(|it| *it == module);
    for (name, module, code) in sources() {
        let Some(own) = rank(&module) else { continue }; // lib.rs and main.rs see all
        for used in used_modules(&code) {
            let Some(theirs) = rank(&used) else {
                panic!("{name}: `crate::{used}` is in no layer")
            };
            assert!(
                theirs <= own,
                "{name}: `{module}` may not use `{used}`, which is a higher layer"
            );
        }
    }
}

/// What others share with the verbs are operations, which know nothing of arguments and output.
#[test]
fn nothing_else_uses_the_command_line() {
    for (name, module, code) in sources() {
        let may_use = ["commands", "lib", "main"].contains(&&module[..]);
        assert!(
            may_use || !used_modules(&code).contains("commands"),
            "{name} uses the command line; what it shares with a verb belongs in `operations`"
        );
        assert!(module != "operations" || !code.contains("clap::"), "{name} declares arguments");
    }
}

/// What reads a file and shows part of it must ask what may be shown. Each file below that reads is listed with
/// the reason why it shows nothing unchecked.
#[test]
fn text_of_memories_is_shown_through_one_check() {
    const READERS: [(&str, &str); 14] = [
        ("src/commands/compact/preview.rs", "counts characters"),
        ("src/commands/demo.rs", "shows its own sample journal"),
        ("src/commands/forget.rs", "checks each line"),
        ("src/commands/instruction_files.rs", "reads instruction files, which are not logs"),
        ("src/commands/session/records.rs", "checks records, and exports them for people"),
        ("src/commands/show.rs", "checks files; --raw is for people"),
        ("src/operations/context/last_day.rs", "reads the sanitized logs and checks each line"),
        (
            "src/operations/context/last_sessions.rs",
            "reads the sanitized logs and checks each line",
        ),
        ("src/operations/correct.rs", "compares lines and shows none"),
        ("src/operations/coverage.rs", "reads the sanitized logs and the decisions"),
        ("src/operations/history.rs", "checks each version"),
        ("src/operations/show.rs", "checks files"),
        ("src/operations/status/problems.rs", "counts characters and reads origins"),
        ("src/operations/workspace.rs", "makes that check"),
    ];
    const READS: [&str; 4] = ["read_text(", ".read(&", "read_log(", ".content("];
    let files = sources();
    let shows = |name: &str| {
        ["src/commands/", "src/operations/"].iter().any(|folder| name.starts_with(folder))
    };
    let reading = files
        .iter()
        .filter(|(name, _, code)| shows(name) && READS.iter().any(|it| code.contains(it)));
    let reading: BTreeSet<&str> = reading.map(|it| &it.0[..]).collect();
    assert_eq!(reading, READERS.map(|it| it.0).into());
    let code = |name: &str| &files.iter().find(|it| it.0 == name).unwrap().2;
    for name in [
        "src/commands/session/records.rs",
        "src/commands/show.rs",
        "src/operations/context/last_logs.rs",
        "src/operations/context/mod.rs",
        "src/operations/history.rs",
        "src/operations/show.rs",
    ] {
        let checks = [".sanitized_file(", ".read_sanitized("];
        let is_checked = checks.iter().any(|it| code(name).contains(it));
        assert!(is_checked, "{name} shows text without the check");
    }
    // MCP shows what these verbs show, or parts of a memory.
    for name in
        ["src/operations/trace.rs", "src/commands/forget.rs", "src/commands/mcp/memories.rs"]
    {
        assert!(code(name).contains("framing::"), "{name} shows text without the check");
    }
}

#[test]
fn every_module_has_a_layer_and_a_header() {
    for (name, module, code) in sources() {
        assert!(
            module == "lib" || module == "main" || LAYERS.contains(&&module[..]),
            "{name} is in no layer"
        );
        assert!(code.starts_with("//! "), "{name} has no header that says what it is for");
    }
}

#[test]
fn one_place_prints_and_one_speaks_sql() {
    for (name, _, code) in sources() {
        let prints =
            ["println!", "eprintln!", "stdout()", "stderr()"].iter().any(|it| code.contains(it));
        let allowed = ["src/commands/ui.rs", "src/commands/logging.rs"];
        assert!(!prints || allowed.contains(&&name[..]), "{name} prints");
        assert!(
            !code.contains("rusqlite") || name.starts_with("src/store/db/"),
            "{name} speaks SQL"
        );
        assert!(
            !code.contains("tokio_postgres") || name.starts_with("src/fleet/claims/"),
            "{name} speaks SQL to PostgreSQL"
        );
    }
}

/// Only the code that writes the header of a request may read the text of a key.
#[test]
fn a_key_is_exposed_in_one_place_and_handed_to_no_child() {
    let exposing = ["src/model/client/send.rs"];
    // It replaces itself by `exec`, and that process needs the key.
    let becoming = "src/commands/run.rs";
    // It starts itself for each turn, and that process needs the key.
    let repeating = "src/commands/worker.rs";
    for (name, _, code) in sources() {
        let exposes = code.contains(".expose()") || code.contains("Secret::expose(");
        assert!(!exposes || exposing.contains(&&name[..]), "{name} exposes a key");
        let starts = ["process::Command", "Command::new(\""].iter().any(|it| code.contains(it));
        let scrubs = code.contains("remove_key_variables(");
        let becomes = name == becoming && code.contains(".exec()") && !code.contains(".spawn()");
        assert!(
            !starts || scrubs || becomes || name == repeating,
            "{name} starts a program and does not take the key from it"
        );
    }
}

/// A full path may lead through a symbolic link that somebody else created.
#[test]
fn the_files_of_a_root_are_opened_in_one_place() {
    const BY_PATH: [&str; 13] = [
        "OpenOptions",
        "File::open",
        "File::create",
        "DirBuilder",
        "tempfile",
        "fs::read",
        "fs::metadata",
        "fs::symlink_metadata",
        "fs::rename",
        "fs::remove",
        "fs::create_dir",
        "fs::set_permissions",
        "CWD",
    ];
    let mut seen = 0;
    for (name, _, code) in sources() {
        // Settings are not files of a root, and are often links on purpose.
        let is_vault =
            name.starts_with("src/store/fs/vault/") && !name.ends_with("/settings_files.rs");
        if is_vault || name == "src/store/fs/private_folder.rs" {
            seen += 1;
            let found = BY_PATH.into_iter().find(|it| code.contains(it));
            assert_eq!(found, None, "{name} opens by a path; use `store::fs::rooted_dir`");
        }
    }
    assert!(seen > 7, "the files that this looks at have moved");
}

#[test]
fn each_data_file_has_one_reader() {
    for (name, _, code) in sources() {
        for (at, _) in
            code.match_indices("include_str!(\"").chain(code.match_indices("include_dir!(\""))
        {
            let rest = &code[at..];
            let path = rest
                .split('"')
                .nth(1)
                .unwrap()
                .trim_start_matches("../")
                .trim_start_matches("$CARGO_MANIFEST_DIR/");
            let known = READERS
                .iter()
                .any(|(data, reader)| path.starts_with(data) && name.starts_with(reader));
            assert!(
                known,
                "{name} reads {path}, which has another reader or none that is named here"
            );
        }
    }
}

#[test]
fn used_modules_reads_groups() {
    let code = "use crate::memory::x; use crate::{\n config::{self, a::b},\n store,\n}; crate::clock::now()";
    let used: Vec<String> = used_modules(code).into_iter().collect();
    assert_eq!(used, ["clock", "config", "memory", "store"]);
}
