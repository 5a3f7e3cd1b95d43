//! Lines of an entry that the program composes of several facts: a failed call, the plan, the changed files.
//!
//! They are no cuts of the record, so each of their facts is looked up in it.

use super::cited_summary::one_line;

/// The start of a line about a call that failed.
pub(super) const BLOCKED_LABEL: &str = "Blocked: ";
/// The start of the line about the plan.
pub(crate) const PLAN_LABEL: &str = "Plan: ";
/// The start of the line that names the changed files.
pub(crate) const FILES_LABEL: &str = "Files: ";

/// Between the numbers of a plan and its items.
pub(super) const LEFT_LABEL: &str = "; left:";

/// The most commas that are looked at for the end of a name.
const NAME_COMMAS_MAX: usize = 50;

/// Returns whether a line is composed of facts in the record's lines that it cites; for a plan, of the lines
/// of the whole record.
pub(crate) fn is_composed_of(line: &str, cited: &str, record: &[String]) -> bool {
    let cited = one_line(cited);
    if let Some(failure) = line.strip_prefix(BLOCKED_LABEL) {
        return is_failure_in(failure, &cited);
    }
    if let Some(names) = line.strip_prefix(FILES_LABEL) {
        return are_files_in(names, &cited);
    }
    line.strip_prefix(PLAN_LABEL).is_some_and(|it| is_plan_in(it, record))
}

/// Returns whether a text contains a fact, which may be cut off.
fn has(text: &str, fact: &str) -> bool {
    let fact = fact.trim();
    // Where a text is cut off, its code is closed.
    let cut = fact.strip_suffix('…').map(|it| it.trim_end_matches(['`', ',', ' ']));
    let fact = cut.unwrap_or(fact);
    text.contains(fact)
}

fn is_failure_in(failure: &str, cited: &str) -> bool {
    // The end of a long line is cut off.
    let call = failure.strip_suffix(" failed").unwrap_or(failure);
    let in_ticks = |it: &str| has(cited, it.strip_suffix('`').unwrap_or(it));
    match (call.strip_prefix('`'), call.split_once(" of `")) {
        (Some(command), _) => in_ticks(command),
        (None, Some((name, file))) => has(cited, name) && in_ticks(file),
        (None, None) => call == "A call" || has(cited, call),
    }
}

fn are_files_in(names: &str, cited: &str) -> bool {
    let names = match names.rsplit_once(" and ") {
        Some((names, more)) if more.strip_suffix(" more").is_some_and(is_number) => names,
        _ => names,
    };
    // A name may contain a comma, too, so as much as possible is taken for one.
    let mut rest = names;
    loop {
        let ends = rest.match_indices(", ").map(|it| it.0).chain([rest.len()]);
        let ends: Vec<usize> = ends.take(NAME_COMMAS_MAX).collect();
        let Some(&end) = ends.iter().rev().find(|it| has(cited, &rest[..**it])) else {
            return false;
        };
        if end == rest.len() {
            return true;
        }
        rest = &rest[end + 2..];
    }
}

fn is_plan_in(plan: &str, record: &[String]) -> bool {
    // Lines of somebody's words are indented.
    let is_item =
        |it: &&String| ["- [ ]", "- [~]", "- [x]", "- [-]"].contains(&it.get(..5).unwrap_or(""));
    let list = record.iter().skip_while(|it| !is_item(it)).take_while(|it| !it.is_empty());
    let items: Vec<&String> = list.clone().filter(is_item).collect();
    let done = items.iter().filter(|it| it.starts_with("- [x]")).count();
    let (numbers, left) = plan.split_once(LEFT_LABEL).unwrap_or((plan, ""));
    let list = one_line(&list.map(String::as_str).collect::<Vec<_>>().join(" "));
    numbers == format!("{done} of {} done", items.len())
        && left.split("; ").all(|it| has(&list, it))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_other_facts_is_refused() {
        let cited = "- call of Edit 2026-04-02 10:00, line 3:\n  /home/nia/tide/src/a.rs, src/b, c.rs\n  > x\n\
                     - call of Bash, line 4:\n  make\n  dist\n";
        let record = ["- [x] Look", "- [~] Write; then test", "- [ ] Ship it", "  - [x] said"]
            .map(str::to_owned);
        for line in [
            "Files: src/a.rs, src/b, c.rs",
            "Files: src/a.rs and 3 more",
            "Files: src/a.rs, src/…",
            "Blocked: `make dist` failed",
            "Blocked: Edit of `/home/nia/tide/src/a.rs` failed",
            "Blocked: Edit failed",
            "Plan: 1 of 3 done; left: Write; then test; Ship…",
        ] {
            assert!(is_composed_of(line, cited, &record), "{line}");
        }
        for line in [
            "Files: src/a.rs, src/d.rs",
            "Blocked: `make clean` failed",
            "Blocked: Write of `/home/nia/tide/src/a.rs` failed",
            "Plan: 2 of 3 done; left: Ship it",
            "Plan: 1 of 3 done; left: Sign it",
            "Plan: we drop it",
            "Noted: make dist",
        ] {
            assert!(!is_composed_of(line, cited, &record), "{line}");
        }
    }
}
