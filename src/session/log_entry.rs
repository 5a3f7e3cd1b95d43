//! The entry of a session in the daily log: one for each day of the session.
//!
//! The entry counts as text of the agent; it contains no tool results, and nothing that a message quotes. Lines cite the session's record,
//! so that a trace leads from the log to the original words.

use std::collections::{BTreeMap, HashSet};

use chrono::{DateTime, NaiveDate, NaiveTime, Utc};
use chrono_tz::Tz;

use super::{
    cited_summary::one_line,
    composed_line::{BLOCKED_LABEL, FILES_LABEL, LEFT_LABEL, PLAN_LABEL},
    digest::{
        EntryIndex, FollowUp, SessionDigest, SessionPlan, SessionStatement, SessionStatementForm,
    },
    message_lines::{MessageLine, label_class, message_lines},
    offline_summary::failure_text,
    sentences::{split_sentences, words_of},
    transcript::{Transcript, tool::TodoState, truncate},
};
use crate::{
    engine::extractive::sentence_class,
    memory::{bare_words::SESSION_LABELS, own_words},
};

/// The most lines of an entry, with its head.
pub(crate) const LINES_MAX: usize = 24;
/// The most outcomes in an entry.
const OUTCOMES_MAX: usize = 4;
/// The most decisions and corrections together, and the most corrections.
const DECISIONS_MAX: usize = 6;
const CORRECTIONS_MAX: usize = 2;
/// The most facts from the user in an entry: the last ones.
const FACTS_MAX: usize = 4;
/// The most open items in an entry.
const OPEN_ITEMS_MAX: usize = 4;
/// The most failures in an entry.
const FAILURES_MAX: usize = 2;
/// The last reply is written if at least this much of it is new, in letters and digits.
const LAST_REPLY_CHARS_MIN: usize = 12;
/// With how many decisions one is compared.
const COMPARED_DECISIONS_MAX: usize = 200;
/// The longest line, in characters.
const CHARS_MAX: usize = 300;
/// The most files that are named.
const FILES_MAX: usize = 8;

/// The entry of one day.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SessionLogEntry {
    /// The day, in the root's zone.
    pub date: NaiveDate,
    /// The time of the last transcript entry of the day.
    pub time: NaiveTime,
    /// The lines, the head first.
    pub lines: Vec<SessionLogLine>,
}

/// One line of an entry.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SessionLogLine {
    pub text: String,
    /// The transcript entries that it cites.
    pub cites: Vec<EntryIndex>,
}

/// Returns the entries of a session, one for each of its days, ascending.
///
/// A day without messages has none. A transcript without any time belongs to the day of `now`.
pub(crate) fn log_entries(
    transcript: &Transcript,
    digest: &SessionDigest<'_>,
    zone: Tz,
    now: DateTime<Utc>,
) -> Vec<SessionLogEntry> {
    let mut days: BTreeMap<NaiveDate, (NaiveTime, usize)> = BTreeMap::new();
    let dates = entry_dates(transcript, zone, now);
    for (entry, (date, time)) in transcript.entries.iter().zip(&dates) {
        let is_message = entry.content.is_message() && !entry.is_subagent;
        let day = days.entry(*date).or_insert((*time, 0));
        day.0 = *time;
        day.1 += usize::from(is_message);
    }
    let days = days.into_iter().filter(|(_, (_, messages))| *messages > 0);
    days.map(|(date, (time, _))| {
        let is_on_day = |at: EntryIndex| dates.get(at.0).is_some_and(|it| it.0 == date);
        let (lines, used) = (Vec::new(), Vec::new());
        let writer = EntryWriter { transcript, digest, is_on_day: &is_on_day, lines, used };
        SessionLogEntry { date, time, lines: writer.write() }
    })
    .collect()
}

/// Returns the day and the time of each transcript entry; without a time, those of the one before.
fn entry_dates(
    transcript: &Transcript,
    zone: Tz,
    now: DateTime<Utc>,
) -> Vec<(NaiveDate, NaiveTime)> {
    let local = |at: DateTime<Utc>| {
        let at = at.with_timezone(&zone);
        (at.date_naive(), at.time())
    };
    let first = transcript.entries.iter().find_map(|it| it.at);
    let mut last = local(first.unwrap_or(now));
    let mut dates = Vec::with_capacity(transcript.entries.len());
    for entry in &transcript.entries {
        last = entry.at.map_or(last, local);
        dates.push(last);
    }
    dates
}

/// Writes the entry of one day.
struct EntryWriter<'a> {
    transcript: &'a Transcript,
    digest: &'a SessionDigest<'a>,
    is_on_day: &'a dyn Fn(EntryIndex) -> bool,
    lines: Vec<SessionLogLine>,
    /// Texts that were written or skipped so far, with their transcript entries; each is written only once.
    used: Vec<(EntryIndex, String)>,
}

impl EntryWriter<'_> {
    fn write(mut self) -> Vec<SessionLogLine> {
        self.add_head();
        let has_outcomes = self.add_outcomes();
        self.add_decisions();
        self.add_facts();
        self.add_open_items();
        if !has_outcomes {
            self.add_last_reply();
        }
        self.add_failures();
        self.add_plan();
        self.add_files();
        debug_assert!(self.lines.len() <= LINES_MAX, "each kind of line has its limit");
        self.lines
    }

    fn add(&mut self, text: impl AsRef<str>, cites: Vec<EntryIndex>) {
        if let Some(text) = without_stray_marks(shorten(text.as_ref())) {
            self.lines.push(SessionLogLine { text, cites });
        }
    }

    /// Returns whether a text was not used before, and marks it as used. Only a text of the same words counts as
    /// used, or whole sentences of a written text of the same transcript entry.
    fn is_new(&mut self, at: EntryIndex, text: &str) -> bool {
        let is_cut =
            |it: &(EntryIndex, String)| it.0 == at && is_verbatim_cut(&shorten(text), &it.1);
        let is_new = !self.is_used(text) && !self.used.iter().any(is_cut);
        self.used.push((at, shorten(text)));
        is_new
    }

    /// Returns whether the same words were used before.
    fn is_used(&self, text: &str) -> bool {
        let (text, words) = (shorten(text), statement_words(text));
        let has_words = |it: &str| !words.is_empty() && statement_words(it) == words;
        self.used.iter().any(|it| it.1 == text || has_words(&it.1))
    }

    fn add_head(&mut self) {
        let transcript = self.transcript;
        let (digest, is_on_day) = (self.digest, self.is_on_day);
        let cwd = transcript.cwd.as_deref();
        let folder = cwd.and_then(|it| it.trim_end_matches('/').rsplit('/').next());
        let folder = folder.filter(|it| !it.is_empty()).map(|it| format!(" in {it}"));
        let branch = transcript.branch.as_deref().filter(|it| *it != "HEAD");
        let branch = branch.map(|it| format!(" on {it}"));
        let place = [folder, branch].into_iter().flatten().collect::<String>();
        match digest.messages.iter().find(|it| is_on_day(it.at) && !it.own.is_empty()) {
            Some(first) => {
                // What the user wants to hold has a line of its own.
                let task = self.task_of(first.at, first.own);
                self.used.push((first.at, shorten(task)));
                self.add(format!("Session{place}: {task}"), vec![first.at]);
            }
            None => self.add(format!("Session{place}, gone on with"), Vec::new()),
        }
    }

    /// Returns the beginning of the first message, before what the user wants to hold, which has lines of its own; or the
    /// whole message, if it says anything else behind that.
    fn task_of<'m>(&self, at: EntryIndex, own: &'m str) -> &'m str {
        // The value of a setting may not find room.
        let is_wanted = |it: &&SessionStatement<'_>| {
            it.is_person && it.at == at && it.form != SessionStatementForm::Setting
        };
        let of_first = self.digest.decisions.iter().filter(is_wanted);
        let wanted: Vec<&str> = of_first.map(|it| it.text).collect();
        let is_start = |it: &usize| *it > 0 && own[..*it].ends_with(char::is_whitespace);
        let starts = wanted.iter().filter_map(|it| own.find(it)).filter(is_start);
        let Some(end) = starts.min() else { return own };
        let behind = one_line(&own[end..]);
        let is_known = |it: &str| wanted.contains(&it) || sentence_class::asks_to_remember(it);
        let says_more = split_sentences(&behind).iter().any(|it| !is_known(it.text));
        let are_written = wanted.len() <= DECISIONS_MAX - CORRECTIONS_MAX;
        if says_more || !are_written { own } else { own[..end].trim_end() }
    }

    /// Writes the last outcomes, then ticked items if there is room, and returns whether there are any of the former.
    fn add_outcomes(&mut self) -> bool {
        let (digest, is_on_day) = (self.digest, self.is_on_day);
        let (ticked, mut outcomes): (Vec<&SessionStatement<'_>>, Vec<_>) = digest
            .outcomes
            .iter()
            .filter(|it| is_on_day(it.at))
            .partition(|it| it.form == SessionStatementForm::Item);
        outcomes.dedup_by_key(|it| it.text);
        // `31 tests pass` says nothing beside what was reached.
        let is_count = |text: &str| is_count_of_tests(text);
        if outcomes.iter().any(|it| !is_count(it.text)) {
            outcomes.retain(|it| !is_count(it.text));
        }
        let outcomes = &outcomes[outcomes.len().saturating_sub(OUTCOMES_MAX)..];
        let room = OUTCOMES_MAX - outcomes.len();
        for outcome in outcomes.iter().chain(&ticked[ticked.len().saturating_sub(room)..]) {
            if self.is_new(outcome.at, outcome.text) {
                self.add(statement_line("Outcome", outcome), vec![outcome.at]);
            }
        }
        !outcomes.is_empty()
    }

    fn add_decisions(&mut self) {
        let (digest, is_on_day) = (self.digest, self.is_on_day);
        let corrections = corrections(digest, is_on_day);
        let corrections = &corrections[corrections.len().saturating_sub(CORRECTIONS_MAX)..];
        for (at, text) in corrections {
            if self.is_new(*at, text) {
                self.add(format!("The user corrected: {text}"), vec![*at]);
            }
        }
        let mut room = DECISIONS_MAX - corrections.len();
        // What a person wants to hold comes before what the agent chose.
        let all: Vec<_> = digest.decisions.iter().filter(|it| is_on_day(it.at)).collect();
        let of = |is_person: bool, is_setting: bool| {
            let is_of = move |it: &&&SessionStatement<'_>| {
                it.is_person == is_person
                    && (it.form == SessionStatementForm::Setting) == is_setting
            };
            all.iter().filter(is_of)
        };
        for decision in of(true, false).chain(of(true, true)).chain(of(false, false)) {
            if room == 0 {
                break;
            }
            if !is_within_other(decision, &all) && self.is_new(decision.at, decision.text) {
                let label = if decision.is_person { "The user decided" } else { "Decided" };
                self.add(statement_line(label, decision), vec![decision.at]);
                room -= 1;
            }
        }
    }

    fn add_facts(&mut self) {
        let (digest, is_on_day) = (self.digest, self.is_on_day);
        let facts: Vec<_> = digest.facts.iter().filter(|it| is_on_day(it.at)).collect();
        for fact in &facts[facts.len().saturating_sub(FACTS_MAX)..] {
            if self.is_new(fact.at, fact.text) {
                self.add(format!("The user stated: {}", fact.text), vec![fact.at]);
            }
        }
    }

    fn add_open_items(&mut self) {
        let (digest, is_on_day) = (self.digest, self.is_on_day);
        let open: Vec<_> = digest.open.iter().filter(|it| is_on_day(it.at)).collect();
        let ticked = digest.outcomes.iter().filter(|it| it.form == SessionStatementForm::Item);
        let mut done_at: BTreeMap<Vec<String>, EntryIndex> = BTreeMap::new();
        for item in ticked {
            done_at.insert(statement_words(item.text), item.at);
        }
        let mut chosen: Vec<&SessionStatement<'_>> = Vec::new();
        let mut said: HashSet<String> = HashSet::new();
        // The newest messages first, each from its start.
        for message in open.chunk_by(|a, b| a.at == b.at).rev() {
            let earlier = said.clone();
            for item in message {
                let words = statement_words(item.text);
                let is_done = done_at.get(&words).is_some_and(|it| *it > item.at);
                // A newer message says it again, perhaps in other sentences.
                let is_repeated = !words.is_empty() && words.iter().all(|it| earlier.contains(it));
                if chosen.len() < OPEN_ITEMS_MAX
                    && !is_done
                    && !is_repeated
                    && self.is_new(item.at, item.text)
                {
                    chosen.push(item);
                    said.extend(words);
                }
            }
        }
        chosen.sort_by_key(|it| it.at);
        for item in chosen {
            self.add(statement_line("Open", item), vec![item.at]);
        }
    }

    /// Writes the longest part of the last reply that no other line says: one piece, without lists of open items.
    fn add_last_reply(&mut self) {
        let (digest, is_on_day) = (self.digest, self.is_on_day);
        let Some(reply) = digest.replies.iter().rev().find(|it| is_on_day(it.at)) else {
            return;
        };
        if let Some(rest) = unsaid_part(reply.own, |it| self.is_used(it)) {
            self.add(format!("Said last: {}", one_line(rest)), vec![reply.at]);
        }
    }

    fn add_failures(&mut self) {
        let (digest, is_on_day) = (self.digest, self.is_on_day);
        let unresolved = digest
            .failures
            .iter()
            .filter(|it| is_on_day(it.at) && !matches!(it.follow_up, FollowUp::Resolved { .. }));
        for failure in unresolved.rev().take(FAILURES_MAX) {
            let cites = vec![failure.call_at, failure.at];
            self.add(format!("{BLOCKED_LABEL}{}", failure_text(failure)), cites);
        }
    }

    fn add_plan(&mut self) {
        let (digest, is_on_day) = (self.digest, self.is_on_day);
        let plan = digest.plan.as_ref().filter(|it| is_on_day(it.at()));
        let Some(SessionPlan::Todo { at, list }) = plan else { return };
        let done = list.iter().filter(|it| it.state == TodoState::Done).count();
        let left: Vec<&str> = list
            .iter()
            .filter(|it| matches!(it.state, TodoState::Open | TodoState::InProgress))
            .map(|it| &it.text[..])
            .collect();
        let left = if left.is_empty() {
            String::new()
        } else {
            format!("{LEFT_LABEL} {}", left.join("; "))
        };
        self.add(format!("{PLAN_LABEL}{done} of {} done{left}", list.len()), vec![*at]);
    }

    fn add_files(&mut self) {
        let transcript = self.transcript;
        let (digest, is_on_day) = (self.digest, self.is_on_day);
        let changed: Vec<_> = digest.changed_files().filter(|it| is_on_day(it.last)).collect();
        if changed.is_empty() {
            return;
        }
        let cwd = transcript.cwd.as_deref();
        let shown = || changed.iter().take(FILES_MAX);
        let names: Vec<&str> = shown().map(|it| relative_path(&it.path, cwd)).collect();
        let more = changed.len().saturating_sub(FILES_MAX);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let cites = shown().map(|it| it.last).collect();
        self.add(format!("{FILES_LABEL}{}{more}", names.join(", ")), cites);
    }
}

/// Returns whether a sentence only says how many tests pass.
fn is_count_of_tests(text: &str) -> bool {
    const WORDS_MAX: usize = 6;
    let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
    let is_test =
        |it: &String| it.trim_end_matches(['.', ',', '!', ':']).trim_end_matches('s') == "test";
    let passes = |it: &String| {
        let bare = it.trim_end_matches(['.', ',', '!']);
        matches!(bare, "pass" | "passes" | "passed" | "green" | "ok")
    };
    words.len() <= WORDS_MAX
        && words.iter().any(is_test)
        && words.iter().any(passes)
        && text.contains(|c: char| c.is_ascii_digit())
}

/// Returns the longest part of a message without lists, headings, and sentences that the entry has already; of two
/// equally long ones the first.
fn unsaid_part(own: &str, is_said: impl Fn(&str) -> bool) -> Option<&str> {
    let start_of = |it: &str| it.as_ptr().addr() - own.as_ptr().addr();
    let mut parts: Vec<&str> = Vec::new();
    let mut is_open = false;
    for line in message_lines(own) {
        let MessageLine::Prose { text } = line else {
            is_open = false;
            continue;
        };
        let is_line_said = is_said(text);
        for sentence in split_sentences(text) {
            if is_line_said || is_said(sentence.text) {
                is_open = false;
                continue;
            }
            let end = start_of(sentence.text) + sentence.text.len();
            match parts.last_mut().filter(|_| is_open) {
                Some(part) => *part = own.get(start_of(part)..end)?,
                None => parts.push(sentence.text),
            }
            is_open = true;
        }
    }
    let length = |it: &&str| it.chars().filter(|it| it.is_alphanumeric()).count();
    let longest = parts.into_iter().rev().max_by_key(length)?;
    (length(&longest) >= LAST_REPLY_CHARS_MIN).then_some(longest)
}

/// Returns the words of a statement, without a label that says what it is.
fn statement_words(text: &str) -> Vec<String> {
    let behind = text.split_once(": ").filter(|it| label_class(it.0).is_some());
    words_of(behind.map_or(text, |it| it.1))
}

/// Returns whether another decision of the same author says the same and more.
fn is_within_other(decision: &SessionStatement<'_>, all: &[&SessionStatement<'_>]) -> bool {
    /// Fewer words occur in others by chance.
    const WORDS_MIN: usize = 4;
    let words = statement_words(decision.text);
    let says_it = |other: &&&SessionStatement<'_>| {
        let longer = statement_words(other.text);
        longer.len() > words.len() && longer.windows(words.len()).any(|it| it == words)
    };
    let others = all.iter().filter(|it| it.is_person == decision.is_person);
    words.len() >= WORDS_MIN && others.take(COMPARED_DECISIONS_MAX).any(|it| says_it(&it))
}

/// Cuts a line before words that the log would leave out as struck out: where a message was shortened, a mark
/// in code that has lost its end strikes out what follows. `None` for names and commands, which are not cut.
fn without_stray_marks(mut text: String) -> Option<String> {
    let is_composed =
        [BLOCKED_LABEL, FILES_LABEL, PLAN_LABEL].iter().any(|it| text.starts_with(it));
    while is_composed || text.contains('~') {
        let Some(own) = own_words::own_words(&text) else { break };
        if is_composed {
            return None;
        }
        let mut pairs =
            text.char_indices().zip(own.chars().map(Some).chain(std::iter::repeat(None)));
        let end = pairs.find(|((_, written), left)| Some(*written) != *left).map_or(0, |it| it.0.0);
        let cut = text[..end].trim_end();
        if cut.is_empty() || cut.len() + '…'.len_utf8() >= text.len() {
            break;
        }
        if cut.ends_with(':') {
            // Nothing is left but the label, which only the head needs.
            return text.starts_with("Session").then(|| cut.to_owned());
        }
        text = format!("{cut}…");
    }
    Some(text)
}

/// Returns whether a line of an entry is a cut of the record's lines that it cites, word for word.
pub(crate) fn is_quoted_from(line: &str, record_lines: &str) -> bool {
    if is_verbatim_cut(line, record_lines) {
        return true;
    }
    if line.starts_with("Session") {
        // The name of a folder or branch may contain `: `.
        return line
            .match_indices(": ")
            .any(|(at, _)| is_verbatim_cut(&line[at + 2..], record_lines));
    }
    let quoted = SESSION_LABELS.iter().find_map(|it| line.strip_prefix(it));
    quoted.is_some_and(|it| is_verbatim_cut(it, record_lines))
}

/// Returns whether a text is cut out of another between lines or sentences, without a change but in white
/// space. After `…` at its end, the rest of the line may be missing.
fn is_verbatim_cut(text: &str, whole: &str) -> bool {
    /// In how many places a text is looked at.
    const PLACES_MAX: usize = 1_000;
    let lines: Vec<String> = whole.lines().map(one_line).filter(|it| !it.is_empty()).collect();
    let whole = lines.join("\n");
    let flat = whole.replace('\n', " ");
    let text = one_line(text);
    let (text, is_open) = match text.strip_suffix('…') {
        Some(cut) if !flat.contains(&text) => (cut.trim_end(), true),
        _ => (&text[..], false),
    };
    let is_mark = |c: char| !c.is_alphanumeric() && c != ',';
    // Some scripts have no space after a sentence.
    let is_wide_mark = |c: char| is_mark(c) && !c.is_ascii();
    let is_cut_at = |start: usize| {
        let (before, after) = (&whole[..start], &whole[start + text.len()..]);
        let in_line = before.trim_end_matches(|c: char| !c.is_alphanumeric() && c != '\n');
        let starts_here = in_line.is_empty()
            || in_line.ends_with('\n')
            || before.ends_with(is_wide_mark)
            || before.strip_suffix(' ').is_some_and(|it| it.ends_with(is_mark));
        let mut next = after.chars();
        let ends_here = is_open
            || after.is_empty()
            || after.starts_with('\n')
            || text.ends_with(is_wide_mark)
            || text.ends_with(is_mark) && after.starts_with(is_mark)
            || next.next().is_some_and(is_mark) && matches!(next.next(), None | Some(' ' | '\n'));
        starts_here && ends_here
    };
    let find_from = |from: usize| Some(from + flat.get(from..)?.find(text)?);
    // What repeats itself is found within itself, too.
    let next = |&at: &usize| find_from(at + text.chars().next().map_or(1, char::len_utf8));
    let mut places = std::iter::successors(find_from(0), next).take(PLACES_MAX);
    !text.is_empty() && places.any(is_cut_at)
}

/// Returns a text in the form of a line.
fn shorten(text: &str) -> String {
    truncate(&one_line(text), CHARS_MAX)
}

/// Returns the user's corrections: messages after a failure, and messages that start with an objection.
/// The first message of a session is never a correction.
fn corrections<'a>(
    digest: &SessionDigest<'a>,
    is_on_day: &dyn Fn(EntryIndex) -> bool,
) -> Vec<(EntryIndex, &'a str)> {
    let mut found: BTreeMap<EntryIndex, &str> = BTreeMap::new();
    for failure in &digest.failures {
        if let FollowUp::Corrected(at, text) = failure.follow_up {
            found.insert(at, text);
        }
    }
    // `/review Never touch dist` objects as `Never touch dist` does.
    let words = |text: &'a str| match text.strip_prefix('/') {
        Some(command) => command.split_once(char::is_whitespace).map_or("", |it| it.1),
        None => text,
    };
    let later = digest.messages.iter().skip(1).filter(|it| starts_with_objection(words(it.own)));
    found.extend(later.map(|it| (it.at, it.own)));
    found.into_iter().filter(|(at, text)| is_on_day(*at) && !text.is_empty()).collect()
}

/// Returns whether a message starts with an objection, unlike `No problem` or `Actually, that looks good`.
fn starts_with_objection(text: &str) -> bool {
    /// How many words are read.
    const WORDS_MAX: usize = 6;
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
        lower.split(|c: char| !is_part(c)).filter(|it| !it.is_empty()).take(WORDS_MAX).collect();
    let Some((first, rest)) = words.split_first() else { return false };
    if rest.iter().any(|it| BUT_NOT.contains(it)) {
        return false;
    }
    match *first {
        // `No, take the other one` is one; `No tests fail now` is not.
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

/// Returns the line of a statement. An item of a list needs a label, unless it has one that says what it is.
fn statement_line(label: &str, statement: &SessionStatement<'_>) -> String {
    let own = statement.text.split_once(": ").map(|it| it.0);
    match own.and_then(label_class) {
        None if statement.form == SessionStatementForm::Item => {
            format!("{label}: {}", statement.text)
        }
        _ => with_label(label, statement.text),
    }
}

/// Prefixes a label, unless the sentence has one. What begins with a mark always gets one: as the first words
/// of a list item, three backticks would open a code block that swallows the lines below.
fn with_label(label: &str, text: &str) -> String {
    let starts_with_mark = text.starts_with(['`', '~', '>', '#', '|', '<', '-', '*', '+']);
    let has_own = !starts_with_mark
        && text.split_once(": ").is_some_and(|(own, _)| own.chars().count() <= 24);
    let opens = text.to_lowercase();
    let says_it =
        ["decided", "i decided", "we decided", "fixed"].iter().any(|it| opens.starts_with(it));
    if has_own || says_it { text.to_owned() } else { format!("{label}: {text}") }
}

/// Returns a path relative to the session's folder, if it is inside.
fn relative_path<'a>(path: &'a str, cwd: Option<&str>) -> &'a str {
    let inner = cwd.and_then(|cwd| path.strip_prefix(cwd.trim_end_matches('/'))?.strip_prefix('/'));
    inner.unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use chrono::TimeZone as _;
    use proptest::prelude::*;

    use super::*;
    use crate::session::transcript::{TranscriptFormat, read};

    /// Returns the lines of the entry of a conversation, with the texts that they cite.
    fn entry_of(turns: &[(&str, &str)]) -> Vec<(String, String)> {
        let line = |(role, text): &(&str, &str)| {
            serde_json::json!({ "role": role, "content": text }).to_string()
        };
        let file = turns.iter().map(line).collect::<Vec<_>>().join("\n");
        let transcript = read(file.as_bytes(), Some(TranscriptFormat::Plain)).unwrap();
        let digest = SessionDigest::of(&transcript);
        let now = Utc.with_ymd_and_hms(2026, 4, 2, 12, 0, 0).unwrap();
        let entries = log_entries(&transcript, &digest, Tz::UTC, now);
        let text_of = |at: &EntryIndex| transcript.entries[at.0].own_words().unwrap().to_owned();
        let lines = entries.into_iter().flat_map(|it| it.lines);
        lines.map(|it| (it.text, it.cites.iter().map(text_of).collect())).collect()
    }

    fn texts_of(turns: &[(&str, &str)]) -> Vec<String> {
        entry_of(turns).into_iter().map(|it| it.0).collect()
    }

    #[test]
    fn a_short_prompt_takes_nothing_out_of_a_reply() {
        let pump = "The pump 11 runs at 1100 rpm, as it should.";
        assert!(
            texts_of(&[("user", "1"), ("assistant", pump)]).iter().any(|it| it.ends_with(pump))
        );
        let backup = "The backup was not deleted, it is there.";
        let lines = texts_of(&[("user", "not"), ("assistant", backup)]);
        assert!(lines.iter().any(|it| it.ends_with(backup)), "{lines:?}");
        // A line that the user wrote already is not repeated at the start.
        let lines =
            texts_of(&[("user", "Ship it"), ("assistant", "Ship it\nThe tide table is out")]);
        assert!(lines.contains(&"Said last: The tide table is out".to_owned()), "{lines:?}");
        // Nor is what the entry says already of the reply.
        let reply = "We decided to keep SQLite, because one file is easier to copy. The tide table is out now. \
                     Still open: the gauge of Brest.";
        let lines = texts_of(&[("user", "Go on"), ("assistant", reply)]);
        assert!(lines.contains(&"Said last: The tide table is out now.".to_owned()), "{lines:?}");
    }

    #[test]
    fn a_decision_within_other_words_is_still_a_decision() {
        let lines = texts_of(&[
            ("user", "Ask them why they decided to drop the tide table, later"),
            ("assistant", "decided to drop the tide table"),
        ]);
        assert!(lines.contains(&"decided to drop the tide table".to_owned()), "{lines:?}");
    }

    #[test]
    fn what_a_user_wants_to_hold_is_written() {
        let lines = texts_of(&[
            (
                "user",
                "Update the README. Deploys only ever happen from main, and never on Fridays. Remember that.",
            ),
            (
                "assistant",
                "We decided to keep one page, because two are never read. Fixed the broken links. 23 tests pass.",
            ),
            (
                "user",
                "The backup goes to the NAS of Jo. Keep that in mind. The build has never been so slow.",
            ),
        ]);
        let decided: Vec<&String> = lines.iter().filter(|it| it.contains("user decided")).collect();
        assert_eq!(
            decided,
            [
                "The user decided: Deploys only ever happen from main, and never on Fridays.",
                "The user decided: The backup goes to the NAS of Jo.",
            ]
        );
        assert!(!lines.iter().any(|it| it.contains("23 tests")), "{lines:?}");
    }

    /// Checks the lines of the entry of a conversation, without the head.
    #[track_caller]
    fn check_lines(turns: &[(&str, &str)], expected: &[&str]) {
        assert_eq!(texts_of(turns)[1..], *expected, "{turns:?}");
    }

    #[test]
    fn lists_of_a_reply_have_lines_of_their_own() {
        check_lines(
            &[
                ("user", "Paint the pier"),
                (
                    "assistant",
                    "The pier is blue, two coats. Still open:\n- buoys 4 and 5, before 3 June\n- Rail: order screws\n\n\
                     Decisions:\n1. keep the old lamps until autumn",
                ),
            ],
            &[
                "Decided: keep the old lamps until autumn",
                "Open: buoys 4 and 5, before 3 June",
                "Open: Rail: order screws",
                "Said last: The pier is blue, two coats.",
            ],
        );
        check_lines(
            &[
                ("user", "Paint the pier"),
                (
                    "assistant",
                    "The pier is blue now.\n\n## Next steps\n1. Order screws\n2. Ask Mirko",
                ),
            ],
            &["Open: Order screws", "Open: Ask Mirko", "Said last: The pier is blue now."],
        );
        // A heading alone is no item.
        check_lines(
            &[("user", "Paint the pier"), ("assistant", "The pier is blue now.\n\n## Next steps")],
            &["Said last: The pier is blue now."],
        );
        // Other lists are part of the reply.
        check_lines(
            &[("user", "What colours?"), ("assistant", "Two are left over:\n- a blue\n- a red")],
            &["Said last: Two are left over: - a blue - a red"],
        );
    }

    #[test]
    fn items_of_a_task_list_are_open_or_done() {
        check_lines(
            &[
                ("user", "Paint the pier"),
                ("assistant", "The pier is blue now.\n\nTODO:\n- [ ] second coat\n- [x] lamps"),
            ],
            &["Outcome: lamps", "Open: second coat", "Said last: The pier is blue now."],
        );
        // What is ticked later is not open, and what is listed again is so once.
        check_lines(
            &[
                ("user", "Paint the pier"),
                ("assistant", "TODO:\n- [ ] second coat\n- [ ] lamps\n- [ ] rail of the stairs"),
                ("user", "Go on"),
                ("assistant", "- [x] second coat\n\nStill open: lamps; rail."),
            ],
            &["Outcome: second coat", "Open: rail of the stairs", "Still open: lamps; rail."],
        );
    }

    #[test]
    fn each_order_of_the_user_is_written() {
        check_lines(
            &[
                ("user", "Paint the pier"),
                ("assistant", "Which colour, and how many coats?"),
                (
                    "user",
                    "Blue it is. Keep the budget at 900. And never paint the bollards, the ropes stick.",
                ),
                ("assistant", "I see."),
                (
                    "user",
                    "By the way, always close the gate. Do not park on the quay. Don't worry about rain.",
                ),
                ("assistant", "I see."),
                ("user", "The regatta moves from 3 June to 17 June, because Ines is ill."),
            ],
            &[
                "The user decided: And never paint the bollards, the ropes stick.",
                "The user decided: By the way, always close the gate.",
                "The user decided: Do not park on the quay.",
                "The user decided: Keep the budget at 900.",
                "The user stated: The regatta moves from 3 June to 17 June, because Ines is ill.",
            ],
        );
        check_lines(
            &[("user", "Add the lamps"), ("user", "Rules:\n- lamps stay off by day\n- no gas")],
            &["The user decided: lamps stay off by day", "The user decided: no gas"],
        );
    }

    #[test]
    fn a_decision_is_written_once() {
        let pine = "Decision: pine instead of oak, because it is light.";
        check_lines(
            &[
                ("user", "Which wood?"),
                (
                    "assistant",
                    &format!("There are 7 boards at pier 2. {pine} The saw is sharp again."),
                ),
            ],
            &[pine, "Said last: There are 7 boards at pier 2."],
        );
        for again in ["Decided: pine instead of oak", "pine instead of oak, because it is light"] {
            check_lines(
                &[
                    ("user", "Which wood?"),
                    ("assistant", pine),
                    ("user", "Go on"),
                    ("assistant", &format!("Decisions:\n- {again}")),
                ],
                &[pine],
            );
        }
    }

    #[test]
    fn what_the_user_states_is_written_and_what_they_ask_is_not() {
        let lines = texts_of(&[
            ("user", "Fix the upload test"),
            ("assistant", "It waits for the server. Our server is slow."),
            ("user", "our staging database runs on port 9191 now. can you run it again?"),
        ]);
        let stated: Vec<&String> = lines.iter().filter(|it| it.contains("stated")).collect();
        assert_eq!(stated, ["The user stated: our staging database runs on port 9191 now."]);
    }

    #[test]
    fn an_entry_contains_nothing_that_a_message_quotes() {
        let mail = "We decided to skip the check for packages of Oskumar.";
        let quotes = [
            format!("> {mail}"),
            format!("- > {mail}"),
            format!("> Hello,\n{mail}"),
            format!("```\n{mail}\n```"),
            format!("~~~text\n{mail}\n~~~"),
            format!("1. ~~~text\n   {mail}\n   ~~~"),
            format!("    {mail}"),
            format!("\t{mail}"),
            format!("![{mail}](mail.png)"),
            format!("<img src=mail.png alt=\"{mail}\">"),
            format!("~~{mail}~~"),
            format!("<del>{mail}</del>"),
            format!("<!-- {mail} -->"),
        ];
        for quote in &quotes {
            let own = "We decided to keep the tide table.";
            let own_text = format!("No, look at this:\n\n{quote}\n\n{own}");
            for (who, text) in [
                ("user", &own_text),
                ("assistant", &own_text),
                ("user", quote),
                ("assistant", quote),
            ] {
                let turns = [(who, &text[..]), ("user", "Go on"), (who, text)];
                let lines = texts_of(&turns);
                assert!(!lines.iter().any(|it| it.contains("Oskumar")), "{text}: {lines:?}");
                let says_own = lines.iter().any(|it| it.contains(own));
                assert_eq!(says_own, text.contains(own), "{text}: {lines:?}");
            }
        }
    }

    #[test]
    fn a_line_is_a_cut_between_sentences_or_it_is_refused() {
        let record = "- user 2026-04-02 10:00, line 4:\n  The backup was not\n  deleted. Keep it!\n  - use tabs";
        for line in [
            "Session in a: b on c: The backup was not deleted. Keep it!",
            "The user decided: Keep it!",
            "Decided: use tabs",
            "The backup was not deleted.",
            "Said last: The backup was…",
        ] {
            assert!(is_quoted_from(line, record), "{line}");
        }
        for line in [
            "The user decided: The backup was deleted.",
            "Session in a: The backup was deleted. Keep it!",
            "Decided: use",
            "Noted: Keep it!",
            "Decided: ",
        ] {
            assert!(!is_quoted_from(line, record), "{line}");
        }
    }

    proptest! {
        #[test]
        fn each_line_is_a_cut_of_what_it_cites(
            turns in proptest::collection::vec(
                (
                    prop_oneof!["user", "assistant"],
                    prop_oneof![
                        "[a-e0-1 .,!\n-]{1,40}",
                        "((not|1|0|deleted|we decided to|use|tabs|Fixed|no,|still open:)[ .!\n]{1,2}){1,12}",
                        "((Next steps:|## Decisions|- |- \\[ \\] |- \\[x\\] |1\\. |at 5\\. And|never use| tabs|\\. )\n?){1,12}",
                        "\\PC{0,400}",
                    ],
                ),
                1..6,
            ),
        ) {
            let turns: Vec<_> = turns.iter().map(|(who, text)| (&who[..], &text[..])).collect();
            for (line, cited) in entry_of(&turns) {
                prop_assert!(cited.is_empty() || is_quoted_from(&line, &cited), "{line:?} of {cited:?}");
            }
        }
    }

    #[test]
    fn objections_are_recognized_and_politeness_is_not() {
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
