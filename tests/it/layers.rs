//! Imports point down only, one module prints, and one speaks SQL.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// From the lowest layer to the highest. A module may use itself and what stands before it.
const LAYERS: [&str; 14] = [
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
    "daemon",
    "commands",
    "folder",
];

/// Each folder of data has one reader in `src`: a file, or a folder of one module.
const READERS: [(&str, &str); 11] = [
    ("schema/lineage.sql", "src/store/db/lineage/schema.rs"),
    ("schema/ledger.sql", "src/store/db/ledger/mod.rs"),
    ("config/pricing.yaml", "src/model/pricing.rs"),
    ("prompts/", "src/model/prompt.rs"),
    ("schema/typed-memory.schema.json", "src/memory/typed_schema.rs"),
    ("schema/config.schema.json", "src/config/"),
    ("config/memoird.yaml", "src/config/"),
    ("config/secrets.yaml", "src/privacy/secrets/"),
    ("config/quarantine.yaml", "src/privacy/quarantine/"),
    ("systemd/", "src/commands/"),
    ("tests/data/", "src/commands/"),
];

fn rust_files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|it| it == "rs") {
            found.push(path);
        }
    }
}

/// All files of `src`: path relative to the crate, module of the top level, text without its tests.
fn sources() -> Vec<(String, String, String)> {
    let crate_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    rust_files(&crate_dir.join("src"), &mut files);
    files
        .into_iter()
        .filter(|path| path.file_name().is_some_and(|it| it != "tests.rs"))
        .map(|path| {
            let name = path.strip_prefix(crate_dir).unwrap().to_string_lossy().into_owned();
            let module =
                name.strip_prefix("src/").unwrap().split(['/', '.']).next().unwrap().to_owned();
            let text = fs::read_to_string(&path).unwrap();
            let code = text.split("\n#[cfg(test)]\nmod ").next().unwrap().to_owned();
            (name, module, code)
        })
        .collect()
}

/// Returns the top-level modules that a file names after `crate::`, in single paths and in groups.
fn used_modules(code: &str) -> Vec<String> {
    let mut used = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        let group = rest.strip_prefix('{').map(|group| {
            let mut depth = 0;
            let end = group.find(|c: char| {
                depth += i32::from(c == '{') - i32::from(c == '}');
                depth < 0
            });
            &group[..end.unwrap_or(group.len())]
        });
        let Some(group) = group else {
            used.push(
                rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap().to_owned(),
            );
            continue;
        };
        let mut depth = 0;
        let mut name = String::new();
        for c in group.chars() {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 0 => used.push(std::mem::take(&mut name)),
                c if depth == 0 => name.push(c),
                _ => {}
            }
        }
        used.push(name);
    }
    used.iter()
        .map(|it| it.trim().split("::").next().unwrap().trim().to_owned())
        .filter(|it| !it.is_empty())
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
                "{name}: `{module}` may not use `{used}`, which stands above it"
            );
        }
    }
}

/// Whoever reads a file and prints of it must ask what may be seen: [`recall::handed`] is the door.
/// A file below that reads says here why it prints nothing of it.
#[test]
fn what_is_handed_out_goes_through_one_door() {
    const READERS: [(&str, &str); 15] = [
        ("src/commands/compact/mod.rs", "counts characters"),
        ("src/commands/workspace.rs", "is where the door is asked"),
        ("src/commands/coverage.rs", "serves the logs, and reads what was decided"),
        ("src/commands/demo.rs", "shows a journal of its own"),
        ("src/commands/doctor/keys.rs", "looks for keys and says where"),
        ("src/commands/forget.rs", "hands out lines one by one"),
        ("src/commands/history.rs", "hands out versions"),
        ("src/commands/instruction_files.rs", "reads instruction files, which are no logs"),
        ("src/commands/log.rs", "says where an entry stands"),
        ("src/commands/mcp/memories.rs", "hands out memories by their parts"),
        ("src/commands/search.rs", "serves the logs, and hands out lines one by one"),
        ("src/commands/session/records.rs", "hands out records, and exports them for people"),
        ("src/commands/context.rs", "hands out what lasts and the last week"),
        ("src/commands/show.rs", "hands out files, and --raw for people"),
        ("src/commands/status/problems.rs", "counts characters, and looks at origins"),
    ];
    const READS: [&str; 4] = ["read_text(", ".read(&", "read_log(", ".content("];
    const HOSTS: [&str; 3] = ["src/commands/", "src/mcp/", "src/web/"];
    for (name, _, code) in sources() {
        let is_host = HOSTS.iter().any(|it| name.starts_with(it));
        if is_host && READS.iter().any(|it| code.contains(it)) {
            assert!(READERS.iter().any(|(known, _)| *known == name), "{name} reads files");
        }
    }
    let door = |name: &str| sources().into_iter().find(|it| it.0 == name).unwrap().2;
    for name in ["show.rs", "history.rs", "session/records.rs", "context.rs"]
        .map(|it| format!("src/commands/{it}"))
    {
        assert!(door(&name).contains(".hand("), "{name} hands out text past the door");
    }
    // What is served over MCP comes from verbs that stand above, or from a memory's own parts.
    for name in ["src/commands/trace.rs", "src/commands/forget.rs", "src/commands/mcp/memories.rs"]
    {
        assert!(door(name).contains("handed::hand_"), "{name} hands out text past the door");
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
            !code.contains("rusqlite")
                || name.starts_with("src/store/db/lineage/")
                || name.starts_with("src/store/db/ledger/")
                || name.starts_with("src/store/db/search_index/")
                || name == "src/store/db/vectors.rs"
                || name == "src/store/db/cache_db.rs",
            "{name} speaks SQL"
        );
    }
}

/// The one place that may take a key out of its wrapping is the one that writes the header of a
/// request.
#[test]
fn a_key_is_exposed_in_one_place_and_handed_to_no_child() {
    let exposing = ["src/model/client/send.rs"];
    // It becomes itself anew, which is to have the key.
    let becoming = "src/commands/run.rs";
    for (name, _, code) in sources() {
        let exposes = code.contains(".expose()") || code.contains("Secret::expose(");
        assert!(!exposes || exposing.contains(&&name[..]), "{name} exposes a key");
        let starts = ["process::Command", "Command::new(\""].iter().any(|it| code.contains(it));
        let scrubs = code.contains("remove_key_variables(");
        let becomes = name == becoming && code.contains(".exec()") && !code.contains(".spawn()");
        assert!(
            !starts || scrubs || becomes,
            "{name} starts a program and does not take the key from it"
        );
    }
}

/// Whoever opens by a full path follows what somebody else may have put there.
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
        // Settings are no files of a root, and are often links on purpose.
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
    assert_eq!(used_modules(code), ["memory", "config", "store", "clock"]);
}
