//! What a session says in the daily log: one entry for each day on which it happened.
//!
//! The entry is the agent's: what tools returned is not in it. A line ends in the address of what it
//! rests on in the session's record, so that a trace goes on from the log to the words that were said.

use std::collections::BTreeMap;

use chrono::{NaiveDate, NaiveTime};
use chrono_tz::Tz;

use super::{
    cited_summary::one_line,
    digest::{EntryIndex, FollowUp, SessionDigest, SessionPlan},
    offline_summary::failure_text,
    transcript::{EntryContent, Transcript, tool::TodoState, truncate},
};

/// So many lines an entry has at most, its head counted.
pub const LINES_MAX: usize = 15;
/// So many decisions and corrections are told, and so many of them are corrections.
const DECISIONS_MAX: usize = 4;
const CORRECTIONS_MAX: usize = 2;
/// What was said last is told where so much of it was not told otherwise.
const LAST_REPLY_CHARS_MIN: usize = 12;
/// A line is cut after so many characters.
const CHARS_MAX: usize = 300;
/// So many files are named.
const FILES_MAX: usize = 8;

/// The part of a session that lies in one day.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionLogEntry {
    /// The day, in the root's zone.
    pub date: NaiveDate,
    /// When the part ended.
    pub time: NaiveTime,
    /// The lines, the head first.
    pub lines: Vec<SessionLogLine>,
}

/// One line of an entry.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionLogLine {
    /// Its words.
    pub text: String,
    /// What it rests on.
    pub cites: Vec<EntryIndex>,
}

/// Writes the entries of a session, one for each of its days, ascending. A day on which nobody said
/// anything has none; what has no time at all belongs to `today`.
pub fn log_entries(
    transcript: &Transcript,
    digest: &SessionDigest<'_>,
    zone: Tz,
    today: (NaiveDate, NaiveTime),
) -> Vec<SessionLogEntry> {
    let mut days: BTreeMap<NaiveDate, (NaiveTime, usize)> = BTreeMap::new();
    let dates = entry_dates(transcript, zone, today);
    for (entry, (date, time)) in transcript.entries.iter().zip(&dates) {
        let says = matches!(entry.content, EntryContent::User(_) | EntryContent::Assistant(_))
            && !entry.is_subagent;
        let day = days.entry(*date).or_insert((*time, 0));
        day.0 = *time;
        day.1 += usize::from(says);
    }
    let said = days.into_iter().filter(|(_, (_, said))| *said > 0);
    said.map(|(date, (time, _))| {
        let is_then = |at: EntryIndex| dates.get(at.0).is_some_and(|it| it.0 == date);
        SessionLogEntry { date, time, lines: log_lines(transcript, digest, &is_then) }
    })
    .collect()
}

/// Returns the day and the time of each entry; one without a time has that of the one before it.
fn entry_dates(
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

fn log_lines(
    transcript: &Transcript,
    digest: &SessionDigest<'_>,
    is_then: &dyn Fn(EntryIndex) -> bool,
) -> Vec<SessionLogLine> {
    let mut lines = Vec::new();
    let mut add = |text: String, cites: Vec<EntryIndex>| {
        lines.push(SessionLogLine { text: truncate(&one_line(&text), CHARS_MAX), cites });
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
    let mut told: Vec<String> = messages.first().map(|it| shorten(it.text)).into_iter().collect();
    // A sentence stands once, whatever it is at the same time.
    let mut is_new = |text: &str| {
        let text = shorten(text);
        let is_new = !told.iter().any(|it| it.contains(&text));
        told.push(text);
        is_new
    };
    for said in outcomes.iter().rev().take(3).rev().filter(|it| is_new(it.text)) {
        add(with_label("Outcome", said.text), vec![said.at]);
    }
    let corrections = corrections(digest, is_then);
    let corrected = &corrections[corrections.len().saturating_sub(CORRECTIONS_MAX)..];
    for (at, text) in corrected.iter().filter(|it| is_new(it.1)) {
        add(format!("The user corrected: {text}"), vec![*at]);
    }
    let decided = digest.decisions.iter().filter(|it| is_then(it.at) && is_new(it.text));
    for said in decided.take(DECISIONS_MAX - corrected.len()) {
        let who = if said.is_person { "The user decided" } else { "Decided" };
        add(with_label(who, said.text), vec![said.at]);
    }
    let open = digest.open.iter().filter(|it| is_then(it.at));
    for said in open.rev().take(2).filter(|it| is_new(it.text)) {
        add(with_label("Open", said.text), vec![said.at]);
    }
    if outcomes.is_empty()
        && let Some(said) = digest.replies.iter().rev().find(|it| is_then(it.at))
    {
        // What of it was told above is not told again.
        let rest = told.iter().fold(one_line(said.text), |rest, it| rest.replace(it, " "));
        let rest = one_line(&rest);
        if rest.chars().filter(|it| it.is_alphanumeric()).count() >= LAST_REPLY_CHARS_MIN {
            add(format!("Said last: {rest}"), vec![said.at]);
        }
    }
    let failures = digest.failures.iter().filter(|it| is_then(it.at));
    let unsolved = failures.clone().filter(|it| !matches!(it.follow_up, FollowUp::Resolved { .. }));
    for failure in unsolved.rev().take(2) {
        add(format!("Blocked: {}", failure_text(failure)), vec![failure.call_at, failure.at]);
    }
    if let Some(SessionPlan::Todo { at, list }) = digest.plan.as_ref().filter(|it| is_then(it.at()))
    {
        let done = list.iter().filter(|it| it.state == TodoState::Done).count();
        let left: Vec<&str> = list
            .iter()
            .filter(|it| matches!(it.state, TodoState::Open | TodoState::InProgress))
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
        .map(|it| relative_path(&it.path, transcript.cwd.as_deref()).to_owned())
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

/// Returns a text as a line has it.
fn shorten(text: &str) -> String {
    truncate(&one_line(text), CHARS_MAX)
}

/// Returns where the user set the agent right: what was said to a failure, and a message that begins with
/// a no. The first message of a session corrects nothing.
fn corrections<'a>(
    digest: &SessionDigest<'a>,
    is_then: &dyn Fn(EntryIndex) -> bool,
) -> Vec<(EntryIndex, &'a str)> {
    let mut found: BTreeMap<EntryIndex, &str> = BTreeMap::new();
    for failure in &digest.failures {
        if let FollowUp::Corrected(at, text) = failure.follow_up {
            found.insert(at, text);
        }
    }
    let later = digest.messages.iter().skip(1).filter(|it| starts_with_objection(it.text));
    found.extend(later.map(|it| (it.at, it.text)));
    found.into_iter().filter(|(at, _)| is_then(*at)).collect()
}

/// Whether somebody begins with a no, rather than with `No problem` or `Actually, that looks good`.
fn starts_with_objection(text: &str) -> bool {
    /// So many first words tell.
    const LOOKED_AT: usize = 6;
    const ALWAYS: [&str; 9] =
        ["wrong", "incorrect", "nope", "stop", "nein", "falsch", "stopp", "faux", "incorrecto"];
    const BUT_NOT: [&str; 22] = [
        "problem", "worries", "rush", "hurry", "need", "urgent", "worry", "bother", "mind",
        "thanks", "thank", "good", "great", "perfect", "fine", "nice", "lgtm", "danke", "gut",
        "merci", "bien", "gracias",
    ];
    let is_part = |c: char| c.is_alphanumeric() || c == '\'' || c == '’';
    let lower = text.trim_start_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    let words: Vec<&str> =
        lower.split(|c: char| !is_part(c)).filter(|it| !it.is_empty()).take(LOOKED_AT).collect();
    let Some((first, rest)) = words.split_first() else { return false };
    if rest.iter().any(|it| BUT_NOT.contains(it)) {
        return false;
    }
    match *first {
        // `No, take the other one`; `No tests fail now` is news.
        "no" | "non" => {
            let after = lower[first.len()..].trim_start();
            after.starts_with([',', '.', '!', ':', ';', '-', '–', '—'])
        }
        "not" | "nicht" => {
            rest.first().is_some_and(|it| ["that", "like", "what", "so", "das"].contains(it))
        }
        "don't" | "don’t" | "never" | "actually" | "instead" => !rest.is_empty(),
        first => ALWAYS.contains(&first),
    }
}

/// Puts a label before a sentence that does not say by itself what it is.
fn with_label(label: &str, text: &str) -> String {
    let has_own = text.split_once(": ").is_some_and(|(own, _)| own.chars().count() <= 24);
    let opens = text.to_lowercase();
    let says_it =
        ["decided", "i decided", "we decided", "fixed"].iter().any(|it| opens.starts_with(it));
    if has_own || says_it { text.to_owned() } else { format!("{label}: {text}") }
}

/// Returns a path from the session's folder on.
fn relative_path<'a>(path: &'a str, cwd: Option<&str>) -> &'a str {
    let inner = cwd.and_then(|cwd| path.strip_prefix(cwd.trim_end_matches('/'))?.strip_prefix('/'));
    inner.unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_no_at_the_start_corrects_and_politeness_does_not() {
        for text in [
            "No, take the other branch",
            "no - the tests are in it/",
            "Wrong file.",
            "Not that one, the second",
            "Never push to main without asking",
            "Actually use the older format",
            "Nein, das war die alte Fassung",
        ] {
            assert!(starts_with_objection(text), "{text}");
        }
        for text in [
            "No problem, thanks",
            "No tests fail any more",
            "Not urgent, but look at it some day",
            "Actually, that looks good",
            "Don't worry about the warnings",
            "Never mind",
            "Nothing else for today",
            "",
        ] {
            assert!(!starts_with_objection(text), "{text}");
        }
    }
}
