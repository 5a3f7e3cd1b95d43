//! What a session says in the daily log: one entry for each day on which it happened.
//!
//! The entry is the agent's: what tools returned is not in it. A line ends in the address of what it
//! rests on in the session's record, so that a trace goes on from the log to the words that were said.

use std::collections::BTreeMap;

use chrono::{NaiveDate, NaiveTime};
use chrono_tz::Tz;

use super::{
    digest::{At, Digest, Followed, Plan},
    page::one_line,
    style::failed,
    transcript::{Transcript, What, cut, tool::TodoState},
};

/// So many lines an entry has at most, its head counted.
pub const LINES_MAX: usize = 15;
/// A line is cut after so many characters.
const CHARS_MAX: usize = 300;
/// So many files are named.
const FILES_MAX: usize = 8;

/// The part of a session that lies in one day.
#[derive(Clone, Debug, PartialEq)]
pub struct DayEntry {
    /// The day, in the root's zone.
    pub date: NaiveDate,
    /// When the part ended.
    pub time: NaiveTime,
    /// The lines, the head first.
    pub lines: Vec<EntryLine>,
}

/// One line of an entry.
#[derive(Clone, Debug, PartialEq)]
pub struct EntryLine {
    /// Its words.
    pub text: String,
    /// What it rests on.
    pub cites: Vec<At>,
}

/// Writes the entries of a session, one for each of its days, ascending. A day on which nobody said
/// anything has none; what has no time at all belongs to `today`.
pub fn entries(
    transcript: &Transcript,
    digest: &Digest<'_>,
    zone: Tz,
    today: (NaiveDate, NaiveTime),
) -> Vec<DayEntry> {
    let mut days: BTreeMap<NaiveDate, (NaiveTime, usize)> = BTreeMap::new();
    let dates = dates(transcript, zone, today);
    for (entry, (date, time)) in transcript.entries.iter().zip(&dates) {
        let says = matches!(entry.what, What::User(_) | What::Assistant(_)) && !entry.is_side;
        let day = days.entry(*date).or_insert((*time, 0));
        day.0 = *time;
        day.1 += usize::from(says);
    }
    let said = days.into_iter().filter(|(_, (_, said))| *said > 0);
    said.map(|(date, (time, _))| {
        let is_then = |at: At| dates.get(at.0).is_some_and(|it| it.0 == date);
        DayEntry { date, time, lines: lines(transcript, digest, &is_then) }
    })
    .collect()
}

/// Returns the day and the time of each entry; one without a time has that of the one before it.
fn dates(
    transcript: &Transcript,
    zone: Tz,
    today: (NaiveDate, NaiveTime),
) -> Vec<(NaiveDate, NaiveTime)> {
    let local = |at: chrono::DateTime<chrono::Utc>| {
        let at = at.with_timezone(&zone);
        (at.date_naive(), at.time())
    };
    let first = transcript.entries.iter().find_map(|it| it.at);
    let mut last = first.map_or(today, local);
    let mut dates = Vec::with_capacity(transcript.entries.len());
    for entry in &transcript.entries {
        last = entry.at.map_or(last, local);
        dates.push(last);
    }
    dates
}

fn lines(
    transcript: &Transcript,
    digest: &Digest<'_>,
    is_then: &dyn Fn(At) -> bool,
) -> Vec<EntryLine> {
    let mut lines = Vec::new();
    let mut add = |text: String, cites: Vec<At>| {
        lines.push(EntryLine { text: cut(&one_line(&text), CHARS_MAX), cites });
    };
    let messages: Vec<_> = digest.messages.iter().filter(|it| is_then(it.at)).collect();
    let place =
        transcript.cwd.as_deref().and_then(|it| it.trim_end_matches('/').rsplit('/').next());
    let place = place.filter(|it| !it.is_empty()).map(|it| format!(" in {it}")).unwrap_or_default();
    let branch = transcript.branch.as_deref().filter(|it| *it != "HEAD");
    let branch = branch.map(|it| format!(" on {it}")).unwrap_or_default();
    match messages.first() {
        Some(first) => add(format!("Session{place}{branch}: {}", first.text), vec![first.at]),
        None => add(format!("Session{place}{branch}, gone on with"), Vec::new()),
    }
    let mut outcomes: Vec<_> = digest.outcomes.iter().filter(|it| is_then(it.at)).collect();
    outcomes.dedup_by_key(|it| it.text);
    for said in outcomes.iter().rev().take(3).rev() {
        add(labelled("Outcome", said.text), vec![said.at]);
    }
    if outcomes.is_empty()
        && let Some(said) = digest.words.iter().rev().find(|it| is_then(it.at))
    {
        add(format!("Said last: {}", said.text), vec![said.at]);
    }
    for said in digest.decisions.iter().filter(|it| is_then(it.at)).take(4) {
        let who = if said.is_person { "The user decided" } else { "Decided" };
        add(labelled(who, said.text), vec![said.at]);
    }
    let open = digest.open.iter().filter(|it| is_then(it.at));
    for said in open.rev().take(2) {
        add(labelled("Open", said.text), vec![said.at]);
    }
    let failures = digest.failures.iter().filter(|it| is_then(it.at));
    let unsolved = failures.clone().filter(|it| !matches!(it.followed, Followed::Solved { .. }));
    for failure in unsolved.rev().take(2) {
        add(format!("Blocked: {}", failed(failure)), vec![failure.call_at, failure.at]);
    }
    if let Some(Plan::Todo { at, list }) = digest.plan.as_ref().filter(|it| is_then(it.at())) {
        let done = list.iter().filter(|it| it.state == TodoState::Done).count();
        let left: Vec<&str> = list
            .iter()
            .filter(|it| matches!(it.state, TodoState::Open | TodoState::Begun))
            .map(|it| &it.text[..])
            .collect();
        let left =
            if left.is_empty() { String::new() } else { format!("; left: {}", left.join("; ")) };
        add(format!("Plan: {done} of {} done{left}", list.len()), vec![*at]);
    }
    let changed: Vec<_> = digest.changed_files().filter(|it| is_then(it.last)).collect();
    let names: Vec<String> = changed
        .iter()
        .take(FILES_MAX)
        .map(|it| within(&it.path, transcript.cwd.as_deref()).to_owned())
        .collect();
    let more = changed.len().saturating_sub(FILES_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    if names.is_empty() {
        add("Files: none changed".to_owned(), Vec::new());
    } else {
        let cites = changed.iter().take(FILES_MAX).map(|it| it.last).collect();
        add(format!("Files: {}{more}", names.join(", ")), cites);
    }
    let commands = digest.commands.iter().filter(|it| is_then(it.at)).count();
    let count = |count: usize, one: &str| match count {
        1 => format!("1 {one}"),
        count => format!("{count} {one}s"),
    };
    add(
        format!(
            "Work: {}, {}, {}",
            count(messages.len(), "message"),
            count(commands, "command"),
            count(failures.count(), "failure")
        ),
        Vec::new(),
    );
    debug_assert!(lines.len() <= LINES_MAX, "each kind of line has its limit");
    lines
}

/// Puts a label before a sentence that does not say by itself what it is.
fn labelled(label: &str, text: &str) -> String {
    let has_own = text.split_once(": ").is_some_and(|(own, _)| own.chars().count() <= 24);
    let opens = text.to_lowercase();
    let says_it =
        ["decided", "i decided", "we decided", "fixed"].iter().any(|it| opens.starts_with(it));
    if has_own || says_it { text.to_owned() } else { format!("{label}: {text}") }
}

/// Returns a path from the session's folder on.
fn within<'a>(path: &'a str, cwd: Option<&str>) -> &'a str {
    let inner = cwd.and_then(|cwd| path.strip_prefix(cwd.trim_end_matches('/'))?.strip_prefix('/'));
    inner.unwrap_or(path)
}
