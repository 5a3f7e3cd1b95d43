//! `memoird compact`.

use crate::support::Root;

#[test]
fn a_second_run_finds_nothing_to_do() {
    let root = Root::new("mara");
    let first = root.run(&["compact", "--json"]).ok().json_as("compact");
    assert_eq!(first["failed"], 0);
    let made = root.files();
    insta::assert_snapshot!(root.run(&["compact"]), @r"
    $ memoird compact
    ! nothing to do: all closed periods are up to date; monthly 2026-04 is open until 2026-05-04 00:00 UTC
    ");
    assert_eq!(root.files(), made);
}
