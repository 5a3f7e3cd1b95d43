//! Finds the part of a session that no daily log contains. Pure.
//!
//! A record names the last line that it covers, and a copy of the session has the same line. A fork from an
//! earlier message has not: its copied messages are found by their words in the records of the other session.

use std::collections::HashMap;

use chrono_tz::Tz;

use super::{
    cited_summary::{self, CitedSummary},
    digest::EntryIndex,
    save::StoredRecord,
    transcript::Transcript,
};

/// Returns the part of a session that is not logged; `None` if none of it is. `mask` masks the secrets of a
/// text, as in a record. `was_logged` says whether a record that claims to be logged is to be believed.
pub(super) fn unlogged_part(
    transcript: &Transcript,
    records: &[StoredRecord],
    zone: Tz,
    mask: &dyn Fn(&str) -> String,
    was_logged: &dyn Fn(&StoredRecord) -> bool,
) -> Option<Transcript> {
    let logged: Vec<&StoredRecord> = records.iter().filter(|it| it.header.is_logged).collect();
    let mut through: HashMap<&str, Vec<&StoredRecord>> = HashMap::new();
    for &record in &logged {
        if let Some(line) = record.header.through.as_deref() {
            through.entry(line).or_default().push(record);
        }
    }
    let mut is_end = |line: &str| {
        // A line may have several entries.
        through.remove(line).is_some_and(|it| it.into_iter().any(was_logged))
    };
    let last = transcript.entries.iter().rev().find(|it| is_end(&it.id));
    let rest = last.and_then(|it| transcript.after_line(&it.id));
    let rest_or_all = rest.as_ref().unwrap_or(transcript);
    let copied = copied_entries(rest_or_all, rest.is_some(), &logged, zone, mask, was_logged);
    match (copied, rest) {
        (0, rest) => rest,
        (count, rest) => Some(rest.as_ref().unwrap_or(transcript).without_first(count)),
    }
}

/// Returns how many of the first entries are copies out of other sessions, whose records contain their
/// messages; or in records of this one, if no record's last line `is_found`, because its user reverted it.
fn copied_entries(
    transcript: &Transcript,
    is_found: bool,
    logged: &[&StoredRecord],
    zone: Tz,
    mask: &dyn Fn(&str) -> String,
    was_logged: &dyn Fn(&StoredRecord) -> bool,
) -> usize {
    let Some(session) = &transcript.session else { return 0 };
    let own = |at: &usize| {
        let entry = &transcript.entries[*at];
        !entry.is_subagent && entry.content.is_message()
    };
    let Some(first) = (0..transcript.entries.len()).find(own) else { return 0 };
    let began = transcript.entries[first].at;
    // With their numbers: a word of the fork may repeat one of the other session.
    let mut known: HashMap<String, usize> = HashMap::new();
    for record in logged {
        let header = &record.header;
        let is_parent = header.session.is_some() && header.session == transcript.parent;
        let is_other = header.session.as_ref().is_some_and(|it| it != session);
        let is_own = !is_found && header.session.as_ref() == Some(session);
        let is_then = began.is_some_and(|it| {
            header.started.is_some_and(|from| from <= it) && header.ended.is_some_and(|to| it <= to)
        });
        if (is_parent || is_own || is_other && is_then) && was_logged(record) {
            for (head, words) in cited_summary::embedded_messages(&record.text) {
                // The copies of a fork that names its parent may have times of their own.
                let head = if is_parent { author(head) } else { head };
                *known.entry(message_key(head, &words)).or_default() += 1;
            }
        }
    }
    if known.is_empty() {
        return 0;
    }
    let page = CitedSummary::new(transcript, zone);
    let mut take = |at: usize| {
        let text = mask(&page.embedded_lines(EntryIndex(at)).join("\n"));
        let messages = cited_summary::embedded_messages(&text);
        let Some((head, words)) = messages.first() else { return false };
        [author(head), head].iter().any(|it| match known.get_mut(&message_key(it, words)) {
            Some(count) if *count > 0 => {
                *count -= 1;
                true
            }
            _ => false,
        })
    };
    let new = (first..transcript.entries.len()).filter(own).find(|at| !take(*at));
    match new {
        Some(at) if at == first => 0,
        Some(at) => at,
        None => transcript.entries.len(),
    }
}

fn message_key(head: &str, words: &str) -> String {
    format!("{head}\n{words}")
}

/// Returns the author in a head such as `user 2026-04-02 10:00`.
fn author(head: &str) -> &str {
    head.split_once(' ').map_or(head, |it| it.0)
}
