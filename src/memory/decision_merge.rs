//! Decisions of several machines: the file is a set of lines, and none may be lost.
//!
//! Version control merges the lines of both sides in any order; a sync tool puts the file of one
//! machine in the place of the other's. Each machine has a copy of the lines that it has seen, so
//! that lines missing from the file are added again. Damage looks different: lines are missing and
//! nothing is new, or a new line is a missing one with some bytes changed.

use std::collections::BTreeSet;

use super::decision::{Decision, Decisions};

/// A line that differs from another one in at most this number of bytes is a damaged copy of it.
const DAMAGED_BYTES_MAX: usize = 4;

/// Returns the lines of the copy that the file of another machine lacks, none if it has all;
/// `None` if the file is damaged.
pub fn missing_lines<'c>(file: &str, copy: &'c str) -> Option<Vec<&'c str>> {
    let lines = |text| -> BTreeSet<&str> { lines_of(text).collect() };
    let (here, known) = (lines(file), lines(copy));
    let missing: Vec<&str> = lines_of(copy).filter(|it| !here.contains(it)).collect();
    if missing.is_empty() {
        return Some(missing);
    }
    let mut new = here.difference(&known).peekable();
    let is_from_elsewhere = |line: &&str| {
        Decisions::parse(line).unreadable().is_empty()
            && !missing.iter().any(|it| is_damaged_copy(line, it) && !is_same_decision(line, it))
    };
    (new.peek().is_some() && new.all(is_from_elsewhere)).then_some(missing)
}

/// Returns whether a line of the file may be a damaged one of the copy, though it can be read: another time
/// does no harm, and may be that of another machine.
pub fn has_damaged_line(file: &str, copy: &str) -> bool {
    let missing = missing_lines(file, copy);
    missing.is_none_or(|it| it.iter().any(|of| lines_of(file).any(|it| is_damaged_copy(it, of))))
}

/// Returns whether a line is another one with a few bytes changed.
pub fn is_damaged_copy(line: &str, of: &str) -> bool {
    let differ = line.bytes().zip(of.bytes()).filter(|(a, b)| a != b).count();
    line.len() == of.len() && (1..=DAMAGED_BYTES_MAX).contains(&differ)
}

/// Returns whether two lines say the same but for the time: two machines record a deletion that both see.
fn is_same_decision(a: &str, b: &str) -> bool {
    let read = |it: &str| serde_json::from_str::<Decision>(it).ok();
    read(a).zip(read(b)).is_some_and(|(a, b)| a == Decision { at: a.at, ..b })
}

fn lines_of(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|it| !it.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(digit: &str) -> String {
        format!("{{\"key\":\"{}\"}}\n", digit.repeat(64))
    }

    fn decided(path: &str) -> String {
        format!(
            "{{\"at\":\"2026-04-06T03:00:12Z\",\"what\":\"deleted\",\"in\":\"{path}\",\"hashes\":[\"9c1f2ab04d7e6f58\"]}}\n"
        )
    }

    #[test]
    fn lines_of_both_machines_are_kept_in_any_order() {
        let ours = key("5") + &decided("memory/user_a.md");
        let theirs = key("a") + &decided("memory/project_of-another-machine.md");
        let check = |file: &str, missing: Option<&[&str]>| {
            assert_eq!(missing_lines(file, &ours).as_deref(), missing, "{file}");
        };
        let all: Vec<&str> = ours.lines().collect();
        check(&ours, Some(&[]));
        check(&(ours.clone() + &theirs), Some(&[]));
        check(&(theirs.clone() + &ours), Some(&[]));
        check(&theirs, Some(&all));
        check(&(key("5") + &theirs), Some(&all[1..]));
        // The other machine saw the same deletion a minute later.
        check(
            &(key("5") + &decided("memory/user_a.md").replace("T03:00", "T03:01")),
            Some(&all[1..]),
        );
    }

    #[test]
    fn damage_is_no_other_machine() {
        let ours = key("5") + &decided("memory/user_a.md") + &decided("memory/user_of-henk.md");
        let turned = ours.replacen('5', "4", 1);
        for file in ["", &ours[..ours.len() - 9], &key("5"), &turned, "no decision\n"] {
            assert_eq!(missing_lines(file, &ours), None, "{file}");
        }
    }
}
