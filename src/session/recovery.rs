//! The recovery record: fourteen fields, and the list by which a program checks them.

use super::{
    cited_summary::{CitedSummary, one_line},
    digest::{FileUse, SessionDigest, SessionPlan},
    offline_summary::{
        self, SummaryMaterial, call_at, call_outcome, directive_messages, failure_text, file_role,
        follow_up_text,
    },
    transcript::{tool::TodoState, truncate},
};
use crate::engine::model::session::{RECOVERY_TITLES, SummarySections};

/// The heads of the fields, in their order.
pub const FIELDS: [&str; 14] = [
    "Session ID",
    "Project Root",
    "Objective",
    "Execution Plan",
    "Working Files (Modified)",
    "Reference Files (Read-Only)",
    "Last Action",
    "Decisions",
    "Constraints",
    "Dependencies",
    "Known Issues",
    "Changes Made",
    "Pending",
    "Notes",
];

/// Where a plan is from, in the order in which one is preferred.
const PLAN_SOURCES: [&str; 4] = ["workflow", "todo", "user-stated", "inferred"];

/// So many working files are named; of more the last ones.
const WORKING_FILES_MAX: usize = 8;
/// So many files that were only read are named.
const READ_FILES_MAX: usize = 12;
/// So many of other things.
const LINES_MAX: usize = 10;

/// Writes the fields. What a model `said` stands in the place of what a program finds, field by field; the
/// facts (files, commands, the plan, the last action, what the user wants for good) are never a model's.
pub(super) fn write_fields(
    page: &mut CitedSummary<'_>,
    material: &SummaryMaterial<'_>,
    id: Option<&str>,
    said: Option<&SummarySections>,
) {
    let digest = material.digest;
    let worded = |title: &str| {
        let at = RECOVERY_TITLES.iter().position(|it| *it == title)?;
        said?.get(at).filter(|it| !it.is_empty())
    };
    let mut names = FIELDS.iter();
    let mut head = |page: &mut CitedSummary<'_>| {
        let name = names.next().copied().unwrap_or_default();
        page.heading(&format!("## {name}"));
    };
    head(page);
    page.line(id.or(material.transcript.session.as_deref()).unwrap_or("(none)"));
    head(page);
    page.line(material.project.unwrap_or("(none)"));
    head(page);
    match (worded("Objective"), digest.messages.first()) {
        (Some(lines), _) => offline_summary::write_model_lines(page, lines),
        (None, Some(first)) => page.bullet(&truncate(&one_line(first.text), 600), [first.at]),
        (None, None) => page.nothing(),
    }
    head(page);
    plan(page, material);
    head(page);
    working_files(page, digest);
    head(page);
    let read: Vec<&FileUse> = digest.read_files().collect();
    if read.is_empty() {
        page.nothing();
    }
    for file in &read[read.len().saturating_sub(READ_FILES_MAX)..] {
        page.bullet(&format!("{} [{}]", file.path, file_role(file)), [file.last]);
    }
    head(page);
    last_action(page, digest);
    head(page);
    match worded("Decisions") {
        Some(lines) => offline_summary::write_model_lines(page, lines),
        None => decisions(page, digest),
    }
    head(page);
    let directives = directive_messages(digest);
    if directives.is_empty() {
        page.nothing();
    }
    for at in directives {
        page.user_message(at);
    }
    head(page);
    dependencies(page, digest);
    head(page);
    match worded("Known Issues") {
        Some(lines) => offline_summary::write_model_lines(page, lines),
        None => issues(page, digest),
    }
    head(page);
    let changed: Vec<&FileUse> = digest.changed_files().collect();
    if changed.is_empty() {
        page.nothing();
    }
    for file in changed {
        page.bullet(&format!("{}: {}", file.path, file_role(file)), [file.last]);
    }
    head(page);
    match worded("Pending") {
        Some(lines) => {
            pending_of_plan(page, digest);
            offline_summary::write_model_lines(page, lines);
        }
        None => pending(page, digest),
    }
    head(page);
    let notes = worded("Notes");
    let last = digest.replies.last();
    if let Some(lines) = notes {
        offline_summary::write_model_lines(page, lines);
    }
    match last {
        Some(said) => page.bullet(
            &format!("The agent said last: {}", truncate(&one_line(said.text), 480)),
            [said.at],
        ),
        None if notes.is_none() => page.nothing(),
        None => {}
    }
}

fn decisions(page: &mut CitedSummary<'_>, digest: &SessionDigest<'_>) {
    if digest.decisions.is_empty() {
        page.nothing();
    }
    for said in digest.decisions.iter().rev().take(LINES_MAX).rev() {
        page.bullet(said.text, [said.at]);
    }
}

/// Failures that nothing solved.
fn issues(page: &mut CitedSummary<'_>, digest: &SessionDigest<'_>) {
    let open: Vec<_> = digest
        .failures
        .iter()
        .filter(|it| !matches!(it.follow_up, super::digest::FollowUp::Resolved { .. }))
        .collect();
    if open.is_empty() {
        page.nothing();
    }
    for failure in &open[open.len().saturating_sub(LINES_MAX)..] {
        let (words, at) = follow_up_text(failure);
        let cites = [failure.call_at, failure.at].into_iter().chain(at);
        page.bullet(&format!("{}. {words}", failure_text(failure)), cites);
    }
}

/// The plan verbatim and whole, with its source, folded.
fn plan(page: &mut CitedSummary<'_>, material: &SummaryMaterial<'_>) {
    let digest = material.digest;
    let [workflow, todo, stated, inferred] = PLAN_SOURCES;
    let (source, text) = match (&material.workflow, &digest.plan) {
        (Some((path, text)), _) => (format!("{workflow} ({path})"), (*text).to_owned()),
        (None, Some(plan @ SessionPlan::Todo { .. })) => (todo.to_owned(), plan.text()),
        (None, Some(plan @ SessionPlan::Shown { .. })) => (stated.to_owned(), plan.text()),
        (None, None) => match digest.messages.first() {
            Some(first) => (inferred.to_owned(), first.text.to_owned()),
            None => return page.nothing(),
        },
    };
    page.line(format!("### Source: {source}"));
    page.blank();
    page.line("<details>");
    page.line("<summary>Plan</summary>");
    page.blank();
    page.raw_text(&text);
    page.blank();
    page.line("</details>");
}

fn working_files(page: &mut CitedSummary<'_>, digest: &SessionDigest<'_>) {
    let mut files: Vec<&FileUse> = digest.changed_files().collect();
    files.sort_by_key(|it| std::cmp::Reverse(it.last));
    if files.is_empty() {
        page.nothing();
    }
    let left_out = files.len().saturating_sub(WORKING_FILES_MAX);
    for file in files.iter().take(WORKING_FILES_MAX) {
        page.bullet(&format!("{} [{}]", file.path, file_role(file)), [file.last]);
    }
    if left_out > 0 {
        page.bullet(&format!("and {left_out} more, named under Changes Made"), []);
    }
}

fn last_action(page: &mut CitedSummary<'_>, digest: &SessionDigest<'_>) {
    let Some((at, call, failed)) = digest.last_call else { return page.nothing() };
    let what = call.command.as_deref().or(call.files.first().map(String::as_str));
    let what = what.map(|it| format!(" {}", truncate(&one_line(it), 240))).unwrap_or_default();
    page.bullet(&format!("{}{what} → {}", call.name, call_outcome(failed)), [at]);
}

/// Packages that commands added.
fn dependencies(page: &mut CitedSummary<'_>, digest: &SessionDigest<'_>) {
    const ADDING: [&str; 9] = [
        "cargo add ",
        "npm install ",
        "npm i ",
        "pnpm add ",
        "yarn add ",
        "pip install ",
        "uv add ",
        "poetry add ",
        "go get ",
    ];
    let mut is_empty = true;
    for ran in &digest.commands {
        let adds = ran.failed == Some(false) && ADDING.iter().any(|it| ran.command.contains(it));
        if adds {
            page.bullet(&format!("`{}`", truncate(&one_line(ran.command), 160)), [ran.at]);
            is_empty = false;
        }
    }
    if is_empty {
        page.nothing();
    }
}

fn pending(page: &mut CitedSummary<'_>, digest: &SessionDigest<'_>) {
    let any = pending_of_plan(page, digest);
    for said in digest.open.iter().rev().take(LINES_MAX).rev() {
        page.bullet(said.text, [said.at]);
    }
    if !any && digest.open.is_empty() {
        page.nothing();
    }
}

/// Writes what of the plan is not done, and returns whether there is any.
fn pending_of_plan(page: &mut CitedSummary<'_>, digest: &SessionDigest<'_>) -> bool {
    let pending = digest.plan.as_ref().map(SessionPlan::pending).unwrap_or_default();
    let at = digest.plan.as_ref().map(SessionPlan::at);
    for todo in &pending {
        let begun = if todo.state == TodoState::InProgress { " (under way)" } else { "" };
        page.bullet(&format!("{}{begun}", todo.text), at);
    }
    !pending.is_empty()
}

/// Checks a record against its own list; returns what it fails, in words.
pub fn check_record(material: &SummaryMaterial<'_>) -> Vec<String> {
    let digest = material.digest;
    let mut found = Vec::new();
    let is_absolute =
        |path: &str| path.starts_with(['/', '~', '\\']) || path.as_bytes().get(1) == Some(&b':');
    if material.project.is_none_or(|it| !is_absolute(it)) {
        found.push("the project's folder is not known".to_owned());
    }
    if let Some(file) = digest.files.iter().find(|it| !is_absolute(&it.path)) {
        found.push(format!(
            "`{}` is no absolute path: the session does not say where it ran",
            file.path
        ));
    }
    if material.workflow.is_none() && digest.plan.is_none() {
        found.push("there is no plan; the first request stands in its place".to_owned());
    }
    let files = digest.changed_files().count();
    if !(3..=WORKING_FILES_MAX).contains(&files) {
        found.push(format!("{files} working files instead of 3 to {WORKING_FILES_MAX}"));
    }
    match digest.last_call {
        None => found.push("there is no last action".to_owned()),
        Some((_, _, None)) => found.push("the last action has no result".to_owned()),
        Some((at, ..)) => {
            debug_assert!(
                call_at(material.transcript, at).is_some(),
                "it stands where it was found"
            );
        }
    }
    if digest.decisions.is_empty() {
        found.push("no decision was found".to_owned());
    } else if let Some(said) = digest.decisions.iter().find(|it| !it.has_reason) {
        found.push(format!("a decision has no reason: {}", truncate(said.text, 100)));
    }
    found
}
