//! `memoird man` and `memoird completions`: what packages and shells take from the program itself.

use crate::support::Root;

#[test]
fn the_manual_names_every_verb() {
    let page = Root::empty("nobody").run(&["man"]).ok().stdout;
    for verb in ["init", "compact", "show", "review", "forget", "doctor"] {
        assert!(page.contains(verb), "{verb}");
    }
}

#[test]
fn each_shell_gets_its_completions() {
    let root = Root::empty("nobody");
    for shell in ["bash", "zsh", "fish"] {
        let told = root.run(&["completions", shell]).ok();
        assert!(told.stdout.contains("review"), "{shell}");
    }
}

#[test]
fn a_service_whose_model_is_a_program_lets_it_run() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("systemd");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let options = |text: String| -> Vec<(String, String)> {
        let lines = text.lines().filter(|it| !it.starts_with('#'));
        let pairs = lines.filter_map(|it| it.split_once('='));
        pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
    };
    let (unit, drop_in) = (options(read("memoird.service")), options(read("memoird-program.conf")));
    // Each of them is one that the unit sets, and says something else of it.
    for (key, value) in &drop_in {
        let there: Vec<_> = unit.iter().filter(|it| it.0 == *key).collect();
        assert!(!there.is_empty() && there.iter().all(|it| it.1 != *value), "{key}={value}");
    }
    // What keeps code from being compiled at run time is among them.
    for key in ["MemoryDenyWriteExecute", "SystemCallFilter"] {
        assert!(drop_in.iter().any(|it| it.0 == key), "{key}");
    }
    // Models over the network need no drop-in.
    let families = unit.iter().find(|it| it.0 == "RestrictAddressFamilies").unwrap();
    assert!(families.1.contains("AF_INET ") && families.1.contains("AF_INET6"), "{families:?}");
}
