//! The recovery record: fourteen fields, and the checks of its completeness.

use super::{
    cited_summary::{CitedSummary, one_line},
    digest::{FileUse, SessionDigest, SessionPlan},
    offline_summary::{
        self, SummaryMaterial, call_at, call_outcome, failure_text, file_role, follow_up_text,
    },
    transcript::{tool::TodoState, truncate},
};
use crate::engine::model::session::{RECOVERY_TITLES, SummaryLine, SummarySections};

/// The names of the fields, in order.
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

/// The sources of a plan, in order of preference.
const PLAN_SOURCES: [&str; 4] = ["workflow", "todo", "user-stated", "inferred"];

/// The most working files that are listed, the last ones.
const WORKING_FILES_MAX: usize = 8;
/// The most read files that are listed.
const READ_FILES_MAX: usize = 12;
/// The most decisions, issues or open items that are listed.
const LINES_MAX: usize = 10;

/// Writes the fields.
///
/// Lines of a model replace those of the program, field by field. The facts (files, commands, the plan,
/// the last action, the user's directives) are never from a model.
pub(super) fn write_fields(
    page: &mut CitedSummary<'_>,
    material: &SummaryMaterial<'_>,
    id: Option<&str>,
    sections: Option<&SummarySections>,
) {
    let digest = material.digest;
    for name in FIELDS {
        page.heading(&format!("## {name}"));
        let model_lines = RECOVERY_TITLES.iter().position(|it| *it == name);
        let model_lines = model_lines.and_then(|at| sections?.get(at)).filter(|it| !it.is_empty());
        match (name, model_lines) {
            ("Session ID", _) => {
                page.line(id.or(material.transcript.session.as_deref()).unwrap_or("(none)"));
            }
            ("Project Root", _) => page.line(material.project.unwrap_or("(none)")),
            ("Execution Plan", _) => plan(page, material),
            ("Working Files (Modified)", _) => working_files(page, digest),
            ("Reference Files (Read-Only)", _) => reference_files(page, digest),
            ("Last Action", _) => last_action(page, digest),
            ("Constraints", _) => offline_summary::write_directives(page, digest),
            ("Dependencies", _) => dependencies(page, digest),
            ("Changes Made", _) => changes_made(page, digest),
            ("Pending", Some(lines)) => {
                pending_of_plan(page, digest);
                offline_summary::write_model_lines(page, lines);
            }
            ("Notes", lines) => notes(page, digest, lines),
            (_, Some(lines)) => offline_summary::write_model_lines(page, lines),
            ("Objective", None) => objective(page, digest),
            ("Decisions", None) => decisions(page, digest),
            ("Known Issues", None) => issues(page, digest),
            (_, None) => pending(page, digest),
        }
    }
}

fn objective(page: &mut CitedSummary<'_>, digest: &SessionDigest<'_>) {
    match digest.messages.iter().find(|it| !it.own.is_empty()) {
        Some(first) => page.bullet(&truncate(&one_line(first.own), 600), [first.at]),
        None => page.nothing(),
    }
}

fn reference_files(page: &mut CitedSummary<'_>, digest: &SessionDigest<'_>) {
    let read: Vec<&FileUse> = digest.read_files().collect();
    if read.is_empty() {
        page.nothing();
    }
    for file in &read[read.len().saturating_sub(READ_FILES_MAX)..] {
        page.bullet(&format!("{} [{}]", file.path, file_role(file)), [file.last]);
    }
}

fn changes_made(page: &mut CitedSummary<'_>, digest: &SessionDigest<'_>) {
    let mut is_empty = true;
    for file in digest.changed_files() {
        page.bullet(&format!("{}: {}", file.path, file_role(file)), [file.last]);
        is_empty = false;
    }
    if is_empty {
        page.nothing();
    }
}

fn notes(
    page: &mut CitedSummary<'_>,
    digest: &SessionDigest<'_>,
    model_lines: Option<&Vec<SummaryLine>>,
) {
    if let Some(lines) = model_lines {
        offline_summary::write_model_lines(page, lines);
    }
    match offline_summary::last_with_words(&digest.replies) {
        Some(reply) => page.bullet(
            &format!("The agent said last: {}", truncate(&one_line(reply.own), 480)),
            [reply.at],
        ),
        None if model_lines.is_none() => page.nothing(),
        None => {}
    }
}

fn decisions(page: &mut CitedSummary<'_>, digest: &SessionDigest<'_>) {
    if digest.decisions.is_empty() {
        page.nothing();
    }
    for decision in digest.decisions.iter().rev().take(LINES_MAX).rev() {
        page.bullet(decision.text, [decision.at]);
    }
}

/// Writes unresolved failures.
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

/// Writes the whole plan verbatim, with its source, in a collapsed block.
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

/// Writes the commands that added packages.
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
    for item in digest.open.iter().rev().take(LINES_MAX).rev() {
        page.bullet(item.text, [item.at]);
    }
    if !any && digest.open.is_empty() {
        page.nothing();
    }
}

/// Writes the unfinished items of the plan, and returns whether there are any.
fn pending_of_plan(page: &mut CitedSummary<'_>, digest: &SessionDigest<'_>) -> bool {
    let pending = digest.plan.as_ref().map(SessionPlan::pending).unwrap_or_default();
    let at = digest.plan.as_ref().map(SessionPlan::at);
    for todo in &pending {
        let progress = if todo.state == TodoState::InProgress { " (under way)" } else { "" };
        page.bullet(&format!("{}{progress}", todo.text), at);
    }
    !pending.is_empty()
}

/// Checks the completeness of a record; returns its problems in words.
pub fn check_record(material: &SummaryMaterial<'_>) -> Vec<String> {
    let digest = material.digest;
    let mut problems = Vec::new();
    let is_absolute =
        |path: &str| path.starts_with(['/', '~', '\\']) || path.as_bytes().get(1) == Some(&b':');
    if material.project.is_none_or(|it| !is_absolute(it)) {
        problems.push("the project's folder is unknown".to_owned());
    }
    if let Some(file) = digest.files.iter().find(|it| !is_absolute(&it.path)) {
        problems.push(format!(
            "`{}` is not an absolute path: the session does not record its folder",
            file.path
        ));
    }
    if material.workflow.is_none() && digest.plan.is_none() {
        problems.push("there is no plan; the first request is used instead".to_owned());
    }
    let files = digest.changed_files().count();
    if !(3..=WORKING_FILES_MAX).contains(&files) {
        problems.push(format!("{files} working files instead of 3 to {WORKING_FILES_MAX}"));
    }
    match digest.last_call {
        None => problems.push("there is no last action".to_owned()),
        Some((_, _, None)) => problems.push("the last action has no result".to_owned()),
        Some((at, ..)) => {
            debug_assert!(
                call_at(material.transcript, at).is_some(),
                "the last call is in the transcript"
            );
        }
    }
    if digest.decisions.is_empty() {
        problems.push("no decision was found".to_owned());
    } else if let Some(decision) = digest.decisions.iter().find(|it| !it.has_reason) {
        problems.push(format!("a decision has no reason: {}", truncate(decision.text, 100)));
    }
    problems
}
