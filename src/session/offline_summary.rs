//! The summaries of a session that need no model: made of the words that stand in its transcript.
//!
//! Each style answers another question. [`SummaryStyle::Full`] and [`SummaryStyle::Partial`]: what happened, for an
//! agent that goes on without the transcript. [`SummaryStyle::Handoff`]: what another one must know that takes
//! over. [`SummaryStyle::Recovery`]: what is needed to stand where one stood, as fields that a program checks.
//!
//! # Invariants
//!
//! - Every message of a person that is no result of a tool is in a full summary, word for word.
//! - Every file that was changed is named, every failure with what followed, the plan verbatim.

use std::collections::BTreeMap;

use chrono_tz::Tz;

use super::{
    cited_summary::{CitedSummary, one_line},
    digest::{
        EntryIndex, FailedCall, FileUse, FollowUp, SessionDigest, SessionPlan, SessionStatement,
    },
    recovery,
    transcript::{Transcript, tool::TodoState, truncate},
};

use crate::engine::model::{
    handoff::HANDOFF_TITLES,
    session::{SECTION_TITLES, SummaryLine, SummarySections},
};

/// A title or a first sentence is cut after so many characters.
const BRIEF_CHARS_MAX: usize = 240;
/// So many lines of what failed stand in a summary.
const FAILURE_LINES_MAX: usize = 6;
/// So many lines of what was written into a file stand in a summary.
const CODE_LINES_MAX: usize = 8;
/// So many statements of a kind stand in a summary, the last ones.
const STATEMENTS_MAX: usize = 12;

/// What a summary is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum SummaryStyle {
    /// All of it, in nine sections.
    Full,
    /// What came after a part that is kept as it is, in the same sections.
    Partial,
    /// What who takes over needs.
    Handoff,
    /// Fourteen fields to stand where one stood.
    Recovery,
}

/// What a summary is made of.
#[derive(Clone, Copy, Debug)]
pub struct SummaryMaterial<'a> {
    /// The session, or a part of it.
    pub transcript: &'a Transcript,
    /// What it holds.
    pub digest: &'a SessionDigest<'a>,
    /// In which times are told.
    pub zone: Tz,
    /// The project's folder, absolute.
    pub project: Option<&'a str>,
    /// A plan of a workflow that is under way: its file, and its text.
    pub workflow: Option<(&'a str, &'a str)>,
}

/// Files that a model nominated for whoever takes over.
#[derive(Clone, Copy, Debug, Default)]
pub struct NominatedFiles<'a> {
    /// Those that go with the handoff.
    pub required: &'a [(String, String)],
    /// Those that are named alone.
    pub references: &'a [String],
}

impl SummaryStyle {
    /// Returns the name that records and JSON use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Partial => "partial",
            Self::Handoff => "handoff",
            Self::Recovery => "recovery",
        }
    }
}

/// Writes the summary. `id` is the record's, where one is made.
pub fn summarize<'a>(
    style: SummaryStyle,
    material: &SummaryMaterial<'a>,
    id: Option<&str>,
) -> CitedSummary<'a> {
    let mut page = CitedSummary::new(material.transcript, material.zone);
    match style {
        SummaryStyle::Full | SummaryStyle::Partial => nine_sections(&mut page, material),
        SummaryStyle::Handoff => handoff(&mut page, material),
        SummaryStyle::Recovery => recovery::write_fields(&mut page, material, id, None),
    }
    page
}

/// Writes a summary in a model's words, as far as those stood the check; a section of which nothing
/// is left is made without it. What it may not change is not taken from it: the messages of the user, and
/// the to-do list.
pub fn summarize_with_model<'a>(
    style: SummaryStyle,
    material: &SummaryMaterial<'a>,
    sections: &SummarySections,
    read: &NominatedFiles<'_>,
    id: Option<&str>,
) -> CitedSummary<'a> {
    let mut page = CitedSummary::new(material.transcript, material.zone);
    match style {
        SummaryStyle::Handoff => {
            model_handoff(&mut page, material, sections, read);
            return page;
        }
        SummaryStyle::Recovery => {
            recovery::write_fields(&mut page, material, id, Some(sections));
            return page;
        }
        SummaryStyle::Full | SummaryStyle::Partial => {}
    }
    let digest = material.digest;
    for (n, (title, lines)) in SECTION_TITLES.iter().zip(sections).enumerate() {
        page.heading(&format!("## {}. {title}", n + 1));
        if *title == "All User Messages" || lines.is_empty() {
            section(&mut page, material, n);
            continue;
        }
        if *title == "Pending Tasks" {
            plan(&mut page, digest);
        }
        write_model_lines(&mut page, lines);
    }
    page
}

/// Writes lines of a model's, which rest on entries, or on files that it was shown.
pub(super) fn write_model_lines(page: &mut CitedSummary<'_>, lines: &[SummaryLine]) {
    for line in lines {
        let cites = line.cites.iter().filter(|it| **it != usize::MAX);
        page.cited_line(&line.text, cites.map(|it| EntryIndex(*it)));
    }
}

/// Writes a handoff in a model's words; what is left of a section of which nothing stood the check is said
/// from the session itself.
fn model_handoff(
    page: &mut CitedSummary<'_>,
    material: &SummaryMaterial<'_>,
    sections: &SummarySections,
    read: &NominatedFiles<'_>,
) {
    let digest = material.digest;
    for (n, title) in HANDOFF_TITLES.iter().enumerate() {
        page.heading(&format!("## {title}"));
        match (sections.get(n).filter(|it| !it.is_empty()), n) {
            (Some(lines), _) => write_model_lines(page, lines),
            (None, 3) => write_directives(page, digest),
            (None, 4) => current_work(page, digest),
            (None, _) => page.nothing(),
        }
        // The plan is not for a model to change.
        if n == 1 {
            plan(page, digest);
        }
    }
    let names = |page: &mut CitedSummary<'_>, title: &str, names: &[&str]| {
        if !names.is_empty() {
            page.heading(title);
        }
        for name in names {
            page.bullet(&format!("`{name}`"), []);
        }
    };
    let required: Vec<&str> = read.required.iter().map(|it| &it.0[..]).collect();
    let references: Vec<&str> = read.references.iter().map(|it| &it[..]).collect();
    names(page, "## Required Reading", &required);
    names(page, "## References", &references);
}

fn write_directives(page: &mut CitedSummary<'_>, digest: &SessionDigest<'_>) {
    let directives: Vec<EntryIndex> = directive_messages(digest);
    if directives.is_empty() {
        page.nothing();
    }
    for at in directives {
        page.user_message(at);
    }
}

fn messages(page: &mut CitedSummary<'_>, digest: &SessionDigest<'_>) {
    if digest.messages.is_empty() {
        page.nothing();
    }
    for message in &digest.messages {
        page.user_message(message.at);
    }
}

fn nine_sections(page: &mut CitedSummary<'_>, material: &SummaryMaterial<'_>) {
    for (n, title) in SECTION_TITLES.iter().enumerate() {
        page.heading(&format!("## {}. {title}", n + 1));
        section(page, material, n);
    }
}

/// Writes one of the nine sections, without its heading.
fn section(page: &mut CitedSummary<'_>, material: &SummaryMaterial<'_>, n: usize) {
    let digest = material.digest;
    match n {
        0 => requests(page, digest),
        1 => {
            let concepts = concepts(digest);
            if concepts.is_empty() {
                page.nothing();
            } else {
                page.bullet(&concepts.join(", "), []);
            }
        }
        2 => files(page, material),
        3 => {
            if digest.failures.is_empty() {
                page.nothing();
            }
            for failure in &digest.failures {
                write_failure(page, failure);
            }
        }
        4 => {
            let mut said: Vec<&SessionStatement<'_>> =
                digest.decisions.iter().chain(&digest.outcomes).collect();
            said.sort_by_key(|it| it.at);
            statements(page, &said);
        }
        5 => messages(page, digest),
        6 => pending(page, digest),
        7 => current_work(page, digest),
        _ => next_step(page, digest),
    }
}

/// The first request whole as far as it is short, and the beginnings of the others.
fn requests(page: &mut CitedSummary<'_>, digest: &SessionDigest<'_>) {
    for (n, message) in digest.messages.iter().enumerate() {
        let words = one_line(message.text);
        let chars = if n == 0 { 4 * BRIEF_CHARS_MAX } else { BRIEF_CHARS_MAX / 2 };
        page.bullet(&truncate(&words, chars), [message.at]);
    }
    if digest.messages.is_empty() {
        page.nothing();
    }
}

/// Names in backticks that stand in several messages, and the kinds of the files, most frequent first.
fn concepts(digest: &SessionDigest<'_>) -> Vec<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut count = |word: &str| *counts.entry(word.to_owned()).or_default() += 1;
    for said in digest.messages.iter().chain(&digest.replies) {
        for word in said.text.split('`').skip(1).step_by(2) {
            let is_name = word.len() > 1 && word.chars().count() <= 40 && !word.contains('\n');
            if is_name {
                count(word);
            }
        }
    }
    for ran in &digest.commands {
        let program = ran.command.split_whitespace().find(|it| !it.contains('='));
        let name = program.and_then(|it| it.rsplit('/').next());
        let plain = |it: &str| it.chars().all(|c| c.is_ascii_alphanumeric() || "-_.+".contains(c));
        if let Some(name) = name.filter(|it| it.len() > 1 && plain(it)) {
            count(name);
        }
    }
    let mut counts: Vec<(String, usize)> = counts.into_iter().collect();
    counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    counts.into_iter().take(15).map(|it| format!("`{}`", it.0)).collect()
}

fn files(page: &mut CitedSummary<'_>, material: &SummaryMaterial<'_>) {
    let digest = material.digest;
    if digest.files.is_empty() {
        page.nothing();
    }
    for file in digest.changed_files() {
        page.bullet(&format!("`{}` ({})", file.path, file_role(file)), [file.last]);
        if let Some(call) = call_at(material.transcript, file.last) {
            page.quote(&call.excerpt, CODE_LINES_MAX);
        }
    }
    for file in digest.read_files() {
        page.bullet(&format!("`{}` ({})", file.path, file_role(file)), [file.last]);
    }
}

/// Says what was done with a file.
pub(super) fn file_role(file: &FileUse) -> String {
    let times = |count: usize| match count {
        1 => "once".to_owned(),
        count => format!("{count} times"),
    };
    match (file.changes, file.reads) {
        (0, reads) => format!("read {}", times(reads)),
        (1, _) if file.is_new => "written".to_owned(),
        (changes, _) if file.is_new => format!("written, then changed {}", times(changes - 1)),
        (changes, _) => format!("changed {}", times(changes)),
    }
}

pub(super) fn call_at(
    transcript: &Transcript,
    at: EntryIndex,
) -> Option<&super::transcript::tool::ToolUse> {
    match &transcript.entries.get(at.0)?.content {
        super::transcript::EntryContent::Call(call) => Some(call),
        _ => None,
    }
}

fn write_failure(page: &mut CitedSummary<'_>, failure: &FailedCall<'_>) {
    page.bullet(&failure_text(failure), [failure.call_at, failure.at]);
    page.quote(failure.text, FAILURE_LINES_MAX);
    let (words, at) = follow_up_text(failure);
    page.nested_bullet(&words, at);
}

/// Says what failed, in the words of the call.
pub(super) fn failure_text(failure: &FailedCall<'_>) -> String {
    let Some(call) = failure.call else { return "A call failed".to_owned() };
    match (&call.command, call.files.first()) {
        (Some(command), _) if call.files.is_empty() => {
            format!("`{}` failed", truncate(&one_line(command), 120))
        }
        (_, Some(file)) => format!("{} of `{file}` failed", call.name),
        _ => format!("{} failed", call.name),
    }
}

/// Says what came after a failure, and where.
pub(super) fn follow_up_text(failure: &FailedCall<'_>) -> (String, Vec<EntryIndex>) {
    let brief = |text: &str| truncate(&one_line(text), BRIEF_CHARS_MAX);
    match failure.follow_up {
        FollowUp::Resolved { at, words: Some((said, text)) } => {
            (format!("Then: {} It went well later.", with_full_stop(&brief(text))), vec![said, at])
        }
        FollowUp::Resolved { at, words: None } => ("Then it went well.".to_owned(), vec![at]),
        FollowUp::Corrected(at, text) => (format!("Then the user: {}", brief(text)), vec![at]),
        FollowUp::Replied(at, text) => (format!("Then: {}", brief(text)), vec![at]),
        FollowUp::Called(at, call) => {
            let what = call.command.as_deref().or(call.files.first().map(String::as_str));
            let what =
                what.map(|it| format!(" `{}`", truncate(&one_line(it), 120))).unwrap_or_default();
            (format!("Then: {}{what}.", call.name), vec![at])
        }
        FollowUp::SessionEnded => ("The session ended with it.".to_owned(), Vec::new()),
    }
}

/// Ends a sentence that has no end.
fn with_full_stop(text: &str) -> String {
    if text.ends_with(['.', '!', '?', '…', ':']) { text.to_owned() } else { format!("{text}.") }
}

fn statements(page: &mut CitedSummary<'_>, said: &[&SessionStatement<'_>]) {
    if said.is_empty() {
        page.nothing();
    }
    // The last ones are those that still hold.
    for statement in &said[said.len().saturating_sub(STATEMENTS_MAX)..] {
        let who = if statement.is_person { "User: " } else { "" };
        page.bullet(&format!("{who}{}", statement.text), [statement.at]);
    }
}

fn plan(page: &mut CitedSummary<'_>, digest: &SessionDigest<'_>) {
    if let Some(plan) = &digest.plan {
        let what = match plan {
            SessionPlan::Todo { .. } => "The to-do list as it stood last:",
            SessionPlan::Shown { .. } => "The plan that was shown last:",
        };
        page.bullet(what, [plan.at()]);
        page.blank();
        page.raw_text(&plan.text());
        page.blank();
    }
}

fn pending(page: &mut CitedSummary<'_>, digest: &SessionDigest<'_>) {
    plan(page, digest);
    let open: Vec<&SessionStatement<'_>> = digest.open.iter().collect();
    if digest.plan.is_none() || !open.is_empty() {
        statements(page, &open);
    }
}

/// What was said and done last, exactly.
fn current_work(page: &mut CitedSummary<'_>, digest: &SessionDigest<'_>) {
    let mut is_empty = true;
    if let Some(said) = digest.messages.last() {
        page.bullet(
            &format!("The user said last: {}", truncate(&one_line(said.text), BRIEF_CHARS_MAX)),
            [said.at],
        );
        is_empty = false;
    }
    if let Some((at, call, failed)) = digest.last_call {
        let what = call.command.as_deref().or(call.files.first().map(String::as_str));
        let what =
            what.map(|it| format!(" `{}`", truncate(&one_line(it), 120))).unwrap_or_default();
        page.bullet(
            &format!("The last call: {}{what}, which {}", call.name, call_outcome(failed)),
            [at],
        );
        is_empty = false;
    }
    if let Some(said) = digest.replies.last() {
        page.bullet(
            &format!(
                "The agent said last: {}",
                truncate(&one_line(said.text), 2 * BRIEF_CHARS_MAX)
            ),
            [said.at],
        );
        is_empty = false;
    }
    if is_empty {
        page.nothing();
    }
}

/// Says how a call went.
pub(super) fn call_outcome(failed: Option<bool>) -> &'static str {
    match failed {
        Some(true) => "failed",
        Some(false) => "went well",
        None => "had not returned",
    }
}

/// What is under way, held against the latest request, so that nobody drifts from it.
fn next_step(page: &mut CitedSummary<'_>, digest: &SessionDigest<'_>) {
    let pending = digest.plan.as_ref().map(SessionPlan::pending).unwrap_or_default();
    let begun = pending.iter().find(|it| it.state == TodoState::InProgress).or(pending.first());
    let (Some(todo), Some(said)) = (begun, digest.messages.last()) else { return page.nothing() };
    page.bullet(&todo.text, digest.plan.as_ref().map(SessionPlan::at));
    let words = truncate(&one_line(said.text), BRIEF_CHARS_MAX);
    page.bullet(&format!("The latest request, which comes first: \"{words}\""), [said.at]);
}

fn handoff(page: &mut CitedSummary<'_>, material: &SummaryMaterial<'_>) {
    let digest = material.digest;
    page.heading("## Completed Tasks");
    let mut is_empty = true;
    if let Some(SessionPlan::Todo { at, list }) = &digest.plan {
        for todo in list.iter().filter(|it| it.state == TodoState::Done) {
            page.bullet(&todo.text, [*at]);
            is_empty = false;
        }
    }
    let last = &digest.outcomes[digest.outcomes.len().saturating_sub(STATEMENTS_MAX)..];
    for statement in last {
        page.bullet(statement.text, [statement.at]);
        is_empty = false;
    }
    for failure in digest.failures.iter().rev().take(5).rev() {
        let (words, at) = follow_up_text(failure);
        let cites = [failure.call_at].into_iter().chain(at);
        page.bullet(&format!("Gotcha: {}. {words}", failure_text(failure)), cites);
        is_empty = false;
    }
    if is_empty {
        page.nothing();
    }
    page.heading("## Active Task");
    match digest.messages.first() {
        Some(first) => page.bullet(
            &format!("Goal: {}", truncate(&one_line(first.text), 2 * BRIEF_CHARS_MAX)),
            [first.at],
        ),
        None => page.nothing(),
    }
    if let Some(plan) = &digest.plan {
        page.bullet("State:", [plan.at()]);
        page.blank();
        page.raw_text(&plan.text());
        page.blank();
    }
    if let Some(todo) = digest.plan.as_ref().and_then(|it| it.pending().first().copied()) {
        page.bullet(&format!("Next step: {}", todo.text), []);
    }
    let changed: Vec<&FileUse> = digest.changed_files().collect();
    if !changed.is_empty() {
        page.heading("## Files");
    }
    for file in changed {
        page.bullet(&format!("`{}` ({})", file.path, file_role(file)), [file.last]);
    }
    page.heading("## Key Decisions");
    let decisions: Vec<&SessionStatement<'_>> = digest.decisions.iter().collect();
    statements(page, &decisions);
    page.heading("## User Directives");
    write_directives(page, digest);
    page.heading("## Current Work");
    current_work(page, digest);
}

/// Messages whose wording matters: those that forbid, order for good, or correct.
pub(super) fn directive_messages(digest: &SessionDigest<'_>) -> Vec<EntryIndex> {
    const CUES: [&str; 22] = [
        "never", "always", "must", "only", "don't", "do not", "keep", "instead", "not", "stop",
        "no", "nie", "niemals", "immer", "nicht", "nur", "ne", "jamais", "toujours", "nunca",
        "siempre", "sempre",
    ];
    let says = |text: &str| {
        let words = format!(
            " {} ",
            text.to_lowercase().replace(|c: char| !c.is_alphanumeric() && c != '\'', " ")
        );
        let words = format!(" {} ", one_line(&words));
        CUES.iter().any(|cue| words.contains(&format!(" {cue} ")))
    };
    digest
        .messages
        .iter()
        .filter(|it| it.text.chars().count() <= 1_500 && says(it.text))
        .map(|it| it.at)
        .collect()
}
