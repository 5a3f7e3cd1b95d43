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
