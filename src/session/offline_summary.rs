//! Summaries of a session without a model, composed of words of its transcript.
//!
//! Each style answers another question. [`SummaryStyle::Full`] and [`SummaryStyle::Partial`]: what
//! happened, for an agent that continues without the transcript. [`SummaryStyle::Handoff`]: what another
//! agent must know to take over. [`SummaryStyle::Recovery`]: what is needed to resume the work, as
//! fields that a program checks.
//!
//! # Invariants
//!
//! - A full summary contains every message of the user word for word.
//! - It names every changed file and every failure with what followed, and contains the plan verbatim.

use std::collections::BTreeMap;

use chrono_tz::Tz;

use super::{
    cited_summary::{CitedSummary, one_line},
    digest::{
        EntryIndex, FailedCall, FileUse, FollowUp, SessionDigest, SessionPlan, SessionStatement,
        Utterance,
    },
    recovery,
    transcript::{Transcript, tool::TodoState, truncate},
};

use crate::engine::model::{
    handoff::HANDOFF_TITLES,
    session::{SECTION_TITLES, SummaryLine, SummarySections},
};

/// The longest title or first sentence, in characters.
const BRIEF_CHARS_MAX: usize = 240;
/// The most lines of a failure that are quoted.
const FAILURE_LINES_MAX: usize = 6;
/// The most lines of a file change that are quoted.
const CODE_LINES_MAX: usize = 8;
/// The most statements of a kind, the last ones.
const STATEMENTS_MAX: usize = 12;

/// The style of a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum SummaryStyle {
    /// The whole session, in nine sections.
    Full,
    /// The part after messages that are kept verbatim, in the same sections.
    Partial,
    /// What another agent needs to take over.
    Handoff,
    /// Fourteen fields to resume the work.
    Recovery,
}

/// The input of a summary.
#[derive(Clone, Copy, Debug)]
pub struct SummaryMaterial<'a> {
    /// The session, or a part of it.
    pub transcript: &'a Transcript,
    /// Its digest.
    pub digest: &'a SessionDigest<'a>,
    /// The zone of times in the summary.
    pub zone: Tz,
    /// The project's folder, absolute.
    pub project: Option<&'a str>,
    /// The plan of an active workflow: its file and its text.
    pub workflow: Option<(&'a str, &'a str)>,
}

/// Files that a model chose for a handoff.
#[derive(Clone, Copy, Debug, Default)]
pub struct NominatedFiles<'a> {
    /// Files that are embedded: name and text.
    pub required: &'a [(String, String)],
    /// Files that are only listed.
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

/// Writes a summary. `id` is that of the record, if there will be one.
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

/// Writes a summary with the verified lines of a model; sections without such lines are written without
/// the model. The messages of the user and the to-do list are never from the model.
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

/// Writes lines of a model, which cite entries or files that it was shown.
pub(super) fn write_model_lines(page: &mut CitedSummary<'_>, lines: &[SummaryLine]) {
    for line in lines {
        let cites = line.cites.iter().filter(|it| **it != usize::MAX);
        page.cited_line(&line.text, cites.map(|it| EntryIndex(*it)));
    }
}

/// Writes a handoff with the verified lines of a model; sections without such lines are written from
/// the session itself.
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
        // A model may not change the plan.
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

pub(super) fn write_directives(page: &mut CitedSummary<'_>, digest: &SessionDigest<'_>) {
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
            let mut all: Vec<&SessionStatement<'_>> =
                digest.decisions.iter().chain(&digest.outcomes).collect();
            all.sort_by_key(|it| it.at);
            statements(page, &all);
        }
        5 => messages(page, digest),
        6 => pending(page, digest),
        7 => current_work(page, digest),
        _ => next_step(page, digest),
    }
}

/// Writes the start of each request, with more of the first.
fn requests(page: &mut CitedSummary<'_>, digest: &SessionDigest<'_>) {
    let messages = digest.messages.iter().filter(|it| !it.own.is_empty());
    for (n, message) in messages.enumerate() {
        let words = one_line(message.own);
        let chars = if n == 0 { 4 * BRIEF_CHARS_MAX } else { BRIEF_CHARS_MAX / 2 };
        page.bullet(&truncate(&words, chars), [message.at]);
    }
    if digest.messages.is_empty() {
        page.nothing();
    }
}

/// Returns names in backticks and the programs that were run, most frequent first.
fn concepts(digest: &SessionDigest<'_>) -> Vec<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut count = |word: &str| *counts.entry(word.to_owned()).or_default() += 1;
    for message in digest.messages.iter().chain(&digest.replies) {
        for word in message.own.split('`').skip(1).step_by(2) {
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

/// Returns how a file was used, in words.
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

/// Returns which call failed, in words.
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

/// Returns what followed a failure, in words, with its entries.
pub(super) fn follow_up_text(failure: &FailedCall<'_>) -> (String, Vec<EntryIndex>) {
    let brief = |text: &str| truncate(&one_line(text), BRIEF_CHARS_MAX);
    match failure.follow_up {
        FollowUp::Resolved { at, words: Some((reply_at, text)) } => (
            format!("Then: {} It went well later.", with_full_stop(&brief(text))),
            vec![reply_at, at],
        ),
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

/// Returns a sentence with a full stop if it has no end mark.
fn with_full_stop(text: &str) -> String {
    if text.ends_with(['.', '!', '?', '…', ':']) { text.to_owned() } else { format!("{text}.") }
}

fn statements(page: &mut CitedSummary<'_>, all: &[&SessionStatement<'_>]) {
    if all.is_empty() {
        page.nothing();
    }
    // The last statements are those that still apply.
    for statement in &all[all.len().saturating_sub(STATEMENTS_MAX)..] {
        let author = if statement.is_person { "User: " } else { "" };
        page.bullet(&format!("{author}{}", statement.text), [statement.at]);
    }
}

fn plan(page: &mut CitedSummary<'_>, digest: &SessionDigest<'_>) {
    if let Some(plan) = &digest.plan {
        let label = match plan {
            SessionPlan::Todo { .. } => "The to-do list as it stood last:",
            SessionPlan::Shown { .. } => "The plan that was shown last:",
        };
        page.bullet(label, [plan.at()]);
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

/// Returns the last message that contains words of its own.
pub(super) fn last_with_words<'a, 'd>(messages: &'d [Utterance<'a>]) -> Option<&'d Utterance<'a>> {
    messages.iter().rev().find(|it| !it.own.is_empty())
}

/// Writes the last message, call and reply.
fn current_work(page: &mut CitedSummary<'_>, digest: &SessionDigest<'_>) {
    let mut is_empty = true;
    if let Some(message) = last_with_words(&digest.messages) {
        page.bullet(
            &format!("The user said last: {}", truncate(&one_line(message.own), BRIEF_CHARS_MAX)),
            [message.at],
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
    if let Some(reply) = last_with_words(&digest.replies) {
        page.bullet(
            &format!(
                "The agent said last: {}",
                truncate(&one_line(reply.own), 2 * BRIEF_CHARS_MAX)
            ),
            [reply.at],
        );
        is_empty = false;
    }
    if is_empty {
        page.nothing();
    }
}

/// Returns the result of a call, in words.
pub(super) fn call_outcome(failed: Option<bool>) -> &'static str {
    match failed {
        Some(true) => "failed",
        Some(false) => "went well",
        None => "had not returned",
    }
}

/// Writes the current to-do item together with the latest request, which takes precedence.
fn next_step(page: &mut CitedSummary<'_>, digest: &SessionDigest<'_>) {
    let pending = digest.plan.as_ref().map(SessionPlan::pending).unwrap_or_default();
    let current = pending.iter().find(|it| it.state == TodoState::InProgress).or(pending.first());
    let (Some(todo), Some(request)) = (current, last_with_words(&digest.messages)) else {
        return page.nothing();
    };
    page.bullet(&todo.text, digest.plan.as_ref().map(SessionPlan::at));
    let words = truncate(&one_line(request.own), BRIEF_CHARS_MAX);
    page.bullet(&format!("The latest request, which comes first: \"{words}\""), [request.at]);
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
    match digest.messages.iter().find(|it| !it.own.is_empty()) {
        Some(first) => page.bullet(
            &format!("Goal: {}", truncate(&one_line(first.own), 2 * BRIEF_CHARS_MAX)),
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

/// Returns messages whose exact wording matters: prohibitions, lasting instructions, corrections.
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
        .filter(|it| it.text.chars().count() <= 1_500 && says(it.own))
        .map(|it| it.at)
        .collect()
}
