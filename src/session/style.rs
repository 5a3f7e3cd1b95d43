//! The summaries of a session that need no model: made of the words that stand in its transcript.
//!
//! Each style answers another question. [`Style::Full`] and [`Style::Partial`]: what happened, for an
//! agent that goes on without the transcript. [`Style::Handoff`]: what another one must know that takes
//! over. [`Style::Recovery`]: what is needed to stand where one stood, as fields that a program checks.
//!
//! # Invariants
//!
//! - Every message of a person that is no result of a tool is in a full summary, word for word.
//! - Every file that was changed is named, every failure with what followed, the plan verbatim.

use std::collections::BTreeMap;

use chrono_tz::Tz;

use super::{
    digest::{At, Digest, Failure, FileUse, Followed, Plan, Statement},
    page::{Page, one_line},
    recovery,
    transcript::{Transcript, cut, tool::TodoState},
};

use crate::engine::model::{
    handoff::HANDOFF,
    session::{SECTIONS, SaidLine, SaidSections},
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
pub enum Style {
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
pub struct Material<'a> {
    /// The session, or a part of it.
    pub transcript: &'a Transcript,
    /// What it holds.
    pub digest: &'a Digest<'a>,
    /// In which times are told.
    pub zone: Tz,
    /// The project's folder, absolute.
    pub project: Option<&'a str>,
    /// A plan of a workflow that is under way: its file, and its text.
    pub workflow: Option<(&'a str, &'a str)>,
}

/// Files that a model nominated for whoever takes over.
#[derive(Clone, Copy, Debug, Default)]
pub struct Read<'a> {
    /// Those that go with the handoff.
    pub required: &'a [(String, String)],
    /// Those that are named alone.
    pub references: &'a [String],
}

impl Style {
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
pub fn page<'a>(style: Style, material: &Material<'a>, id: Option<&str>) -> Page<'a> {
    let mut page = Page::new(material.transcript, material.zone);
    match style {
        Style::Full | Style::Partial => nine_sections(&mut page, material),
        Style::Handoff => handoff(&mut page, material),
        Style::Recovery => recovery::fields(&mut page, material, id, None),
    }
    page
}

/// Writes a summary in a model's words, as far as those stood the check; a section of which nothing
/// is left is made without it. What it may not change is not taken from it: the messages of the user, and
/// the to-do list.
pub fn in_other_words<'a>(
    style: Style,
    material: &Material<'a>,
    sections: &SaidSections,
    read: &Read<'_>,
    id: Option<&str>,
) -> Page<'a> {
    let mut page = Page::new(material.transcript, material.zone);
    match style {
        Style::Handoff => {
            handed(&mut page, material, sections, read);
            return page;
        }
        Style::Recovery => {
            recovery::fields(&mut page, material, id, Some(sections));
            return page;
        }
        Style::Full | Style::Partial => {}
    }
    let digest = material.digest;
    for (n, (title, lines)) in SECTIONS.iter().zip(sections).enumerate() {
        page.heading(&format!("## {}. {title}", n + 1));
        if *title == "All User Messages" || lines.is_empty() {
            section(&mut page, material, n);
            continue;
        }
        if *title == "Pending Tasks" {
            plan(&mut page, digest);
        }
        said(&mut page, lines);
    }
    page
}

/// Writes lines of a model's, which rest on entries, or on files that it was shown.
pub(super) fn said(page: &mut Page<'_>, lines: &[SaidLine]) {
    for line in lines {
        let cites = line.cites.iter().filter(|it| **it != usize::MAX);
        page.cited(&line.text, cites.map(|it| At(*it)));
    }
}

/// Writes a handoff in a model's words; what is left of a section of which nothing stood the check is said
/// from the session itself.
fn handed(page: &mut Page<'_>, material: &Material<'_>, sections: &SaidSections, read: &Read<'_>) {
    let digest = material.digest;
    for (n, title) in HANDOFF.iter().enumerate() {
        page.heading(&format!("## {title}"));
        match (sections.get(n).filter(|it| !it.is_empty()), n) {
            (Some(lines), _) => said(page, lines),
            (None, 3) => directives_of(page, digest),
            (None, 4) => current(page, digest),
            (None, _) => page.none(),
        }
        // The plan is not for a model to change.
        if n == 1 {
            plan(page, digest);
        }
    }
    let names = |page: &mut Page<'_>, title: &str, names: &[&str]| {
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

fn directives_of(page: &mut Page<'_>, digest: &Digest<'_>) {
    let directives: Vec<At> = directives(digest);
    if directives.is_empty() {
        page.none();
    }
    for at in directives {
        page.message(at);
    }
}

fn messages(page: &mut Page<'_>, digest: &Digest<'_>) {
    if digest.messages.is_empty() {
        page.none();
    }
    for message in &digest.messages {
        page.message(message.at);
    }
}

fn nine_sections(page: &mut Page<'_>, material: &Material<'_>) {
    for (n, title) in SECTIONS.iter().enumerate() {
        page.heading(&format!("## {}. {title}", n + 1));
        section(page, material, n);
    }
}

/// Writes one of the nine sections, without its heading.
fn section(page: &mut Page<'_>, material: &Material<'_>, n: usize) {
    let digest = material.digest;
    match n {
        0 => requests(page, digest),
        1 => {
            let concepts = concepts(digest);
            if concepts.is_empty() {
                page.none();
            } else {
                page.bullet(&concepts.join(", "), []);
            }
        }
        2 => files(page, material),
        3 => {
            if digest.failures.is_empty() {
                page.none();
            }
            for failure in &digest.failures {
                error(page, failure);
            }
        }
        4 => {
            let mut said: Vec<&Statement<'_>> =
                digest.decisions.iter().chain(&digest.outcomes).collect();
            said.sort_by_key(|it| it.at);
            statements(page, &said);
        }
        5 => messages(page, digest),
        6 => pending(page, digest),
        7 => current(page, digest),
        _ => next_step(page, digest),
    }
}

/// The first request whole as far as it is short, and the beginnings of the others.
fn requests(page: &mut Page<'_>, digest: &Digest<'_>) {
    for (n, message) in digest.messages.iter().enumerate() {
        let words = one_line(message.text);
        let chars = if n == 0 { 4 * BRIEF_CHARS_MAX } else { BRIEF_CHARS_MAX / 2 };
        page.bullet(&cut(&words, chars), [message.at]);
    }
    if digest.messages.is_empty() {
        page.none();
    }
}

/// Names in backticks that stand in several messages, and the kinds of the files, most frequent first.
fn concepts(digest: &Digest<'_>) -> Vec<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut count = |word: &str| *counts.entry(word.to_owned()).or_default() += 1;
    for said in digest.messages.iter().chain(&digest.words) {
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

fn files(page: &mut Page<'_>, material: &Material<'_>) {
    let digest = material.digest;
    if digest.files.is_empty() {
        page.none();
    }
    for file in digest.changed_files() {
        page.bullet(&format!("`{}` ({})", file.path, role(file)), [file.last]);
        if let Some(call) = call_at(material.transcript, file.last) {
            page.quote(&call.brief, CODE_LINES_MAX);
        }
    }
    for file in digest.read_files() {
        page.bullet(&format!("`{}` ({})", file.path, role(file)), [file.last]);
    }
}

/// Says what was done with a file.
pub(super) fn role(file: &FileUse) -> String {
    let times = |count: usize| match count {
        1 => "once".to_owned(),
        count => format!("{count} times"),
    };
    match (file.changes, file.reads) {
        (0, reads) => format!("read {}", times(reads)),
        (1, _) if file.is_written => "written".to_owned(),
        (changes, _) if file.is_written => format!("written, then changed {}", times(changes - 1)),
        (changes, _) => format!("changed {}", times(changes)),
    }
}

pub(super) fn call_at(transcript: &Transcript, at: At) -> Option<&super::transcript::tool::Call> {
    match &transcript.entries.get(at.0)?.what {
        super::transcript::What::Call(call) => Some(call),
        _ => None,
    }
}

fn error(page: &mut Page<'_>, failure: &Failure<'_>) {
    page.bullet(&failed(failure), [failure.call_at, failure.at]);
    page.quote(failure.text, FAILURE_LINES_MAX);
    let (words, at) = what_followed(failure);
    page.bullet_below(&words, at);
}

/// Says what failed, in the words of the call.
pub(super) fn failed(failure: &Failure<'_>) -> String {
    let Some(call) = failure.call else { return "A call failed".to_owned() };
    match (&call.command, call.files.first()) {
        (Some(command), _) if call.files.is_empty() => {
            format!("`{}` failed", cut(&one_line(command), 120))
        }
        (_, Some(file)) => format!("{} of `{file}` failed", call.name),
        _ => format!("{} failed", call.name),
    }
}

/// Says what came after a failure, and where.
pub(super) fn what_followed(failure: &Failure<'_>) -> (String, Vec<At>) {
    let brief = |text: &str| cut(&one_line(text), BRIEF_CHARS_MAX);
    match failure.followed {
        Followed::Solved { at, words: Some((said, text)) } => {
            (format!("Then: {} It went well later.", ended(&brief(text))), vec![said, at])
        }
        Followed::Solved { at, words: None } => ("Then it went well.".to_owned(), vec![at]),
        Followed::Corrected(at, text) => (format!("Then the user: {}", brief(text)), vec![at]),
        Followed::Words(at, text) => (format!("Then: {}", brief(text)), vec![at]),
        Followed::Did(at, call) => {
            let what = call.command.as_deref().or(call.files.first().map(String::as_str));
            let what = what.map(|it| format!(" `{}`", cut(&one_line(it), 120))).unwrap_or_default();
            (format!("Then: {}{what}.", call.name), vec![at])
        }
        Followed::Nothing => ("The session ended with it.".to_owned(), Vec::new()),
    }
}

/// Ends a sentence that has no end.
fn ended(text: &str) -> String {
    if text.ends_with(['.', '!', '?', '…', ':']) { text.to_owned() } else { format!("{text}.") }
}

fn statements(page: &mut Page<'_>, said: &[&Statement<'_>]) {
    if said.is_empty() {
        page.none();
    }
    // The last ones are those that still hold.
    for statement in &said[said.len().saturating_sub(STATEMENTS_MAX)..] {
        let who = if statement.is_person { "User: " } else { "" };
        page.bullet(&format!("{who}{}", statement.text), [statement.at]);
    }
}

fn plan(page: &mut Page<'_>, digest: &Digest<'_>) {
    if let Some(plan) = &digest.plan {
        let what = match plan {
            Plan::Todo { .. } => "The to-do list as it stood last:",
            Plan::Shown { .. } => "The plan that was shown last:",
        };
        page.bullet(what, [plan.at()]);
        page.blank();
        page.text(&plan.text());
        page.blank();
    }
}

fn pending(page: &mut Page<'_>, digest: &Digest<'_>) {
    plan(page, digest);
    let open: Vec<&Statement<'_>> = digest.open.iter().collect();
    if digest.plan.is_none() || !open.is_empty() {
        statements(page, &open);
    }
}

/// What was said and done last, exactly.
fn current(page: &mut Page<'_>, digest: &Digest<'_>) {
    let mut is_empty = true;
    if let Some(said) = digest.messages.last() {
        page.bullet(
            &format!("The user said last: {}", cut(&one_line(said.text), BRIEF_CHARS_MAX)),
            [said.at],
        );
        is_empty = false;
    }
    if let Some((at, call, failed)) = digest.last_call {
        let what = call.command.as_deref().or(call.files.first().map(String::as_str));
        let what = what.map(|it| format!(" `{}`", cut(&one_line(it), 120))).unwrap_or_default();
        page.bullet(
            &format!("The last call: {}{what}, which {}", call.name, outcome(failed)),
            [at],
        );
        is_empty = false;
    }
    if let Some(said) = digest.words.last() {
        page.bullet(
            &format!("The agent said last: {}", cut(&one_line(said.text), 2 * BRIEF_CHARS_MAX)),
            [said.at],
        );
        is_empty = false;
    }
    if is_empty {
        page.none();
    }
}

/// Says how a call went.
pub(super) fn outcome(failed: Option<bool>) -> &'static str {
    match failed {
        Some(true) => "failed",
        Some(false) => "went well",
        None => "had not returned",
    }
}

/// What is under way, held against the latest request, so that nobody drifts from it.
fn next_step(page: &mut Page<'_>, digest: &Digest<'_>) {
    let pending = digest.plan.as_ref().map(Plan::pending).unwrap_or_default();
    let begun = pending.iter().find(|it| it.state == TodoState::Begun).or(pending.first());
    let (Some(todo), Some(said)) = (begun, digest.messages.last()) else { return page.none() };
    page.bullet(&todo.text, digest.plan.as_ref().map(Plan::at));
    let words = cut(&one_line(said.text), BRIEF_CHARS_MAX);
    page.bullet(&format!("The latest request, which comes first: \"{words}\""), [said.at]);
}

fn handoff(page: &mut Page<'_>, material: &Material<'_>) {
    let digest = material.digest;
    page.heading("## Completed Tasks");
    let mut is_empty = true;
    if let Some(Plan::Todo { at, list }) = &digest.plan {
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
        let (words, at) = what_followed(failure);
        let cites = [failure.call_at].into_iter().chain(at);
        page.bullet(&format!("Gotcha: {}. {words}", failed(failure)), cites);
        is_empty = false;
    }
    if is_empty {
        page.none();
    }
    page.heading("## Active Task");
    match digest.messages.first() {
        Some(first) => page.bullet(
            &format!("Goal: {}", cut(&one_line(first.text), 2 * BRIEF_CHARS_MAX)),
            [first.at],
        ),
        None => page.none(),
    }
    if let Some(plan) = &digest.plan {
        page.bullet("State:", [plan.at()]);
        page.blank();
        page.text(&plan.text());
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
        page.bullet(&format!("`{}` ({})", file.path, role(file)), [file.last]);
    }
    page.heading("## Key Decisions");
    let decisions: Vec<&Statement<'_>> = digest.decisions.iter().collect();
    statements(page, &decisions);
    page.heading("## User Directives");
    directives_of(page, digest);
    page.heading("## Current Work");
    current(page, digest);
}

/// Messages whose wording matters: those that forbid, order for good, or correct.
pub(super) fn directives(digest: &Digest<'_>) -> Vec<At> {
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
