//! `memoird man`, `memoird completions`, and the systemd unit.

use crate::support::Root;

#[test]
fn the_manual_lists_the_commands() {
    let page = Root::empty("nobody").run(&["man"]).ok().stdout;
    for verb in ["init", "compact", "show", "review", "forget", "doctor"] {
        assert!(page.contains(verb), "{verb}");
    }
}

#[test]
fn completions_exist_for_each_shell() {
    let root = Root::empty("nobody");
    for shell in ["bash", "zsh", "fish"] {
        let completions = root.run(&["completions", shell]).ok();
        assert!(completions.stdout.contains("review"), "{shell}");
    }
}

#[test]
fn the_drop_in_for_a_model_program_lifts_what_it_needs() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("systemd");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let options = |text: String| -> Vec<(String, String)> {
        let lines = text.lines().filter(|it| !it.starts_with('#'));
        let pairs = lines.filter_map(|it| it.split_once('='));
        pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
    };
    let (unit, drop_in) = (options(read("memoird.service")), options(read("memoird-program.conf")));
    // The drop-in only changes options that the unit sets, and gives each a different value.
    for (key, value) in &drop_in {
        let in_unit: Vec<_> = unit.iter().filter(|it| it.0 == *key).collect();
        assert!(!in_unit.is_empty() && in_unit.iter().all(|it| it.1 != *value), "{key}={value}");
    }
    // It lifts the options that forbid code generation at run time.
    for key in ["MemoryDenyWriteExecute", "SystemCallFilter"] {
        assert!(drop_in.iter().any(|it| it.0 == key), "{key}");
    }
    // Models over the network need no drop-in.
    let families = unit.iter().find(|it| it.0 == "RestrictAddressFamilies").unwrap();
    assert!(families.1.contains("AF_INET ") && families.1.contains("AF_INET6"), "{families:?}");
}
