//! `memoird memories`: lists the typed memories, and where the statements of each are used.
//!
//! What is used is what `memoird context` shows in this folder without options: both come from one composition.

use std::{cmp::Reverse, process::ExitCode};

use chrono::NaiveDate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    GlobalArgs,
    ui::{Ui, shortened},
};
use crate::{
    memory::typed::MemoryType,
    operations::{context::compose_default, error::CommandResult, workspace::Invocation},
    recall::context::blocks::{MemoryToShow, StatementUse, days_between},
};

/// List the typed memories, and where each is used
#[derive(Debug, clap::Args)]
pub(super) struct MemoriesArgs {
    /// Only memories of this type
    #[arg(long = "type", value_enum, value_name = "TYPE")]
    kind: Option<MemoryTypeFilter>,
}

/// The kind of a typed memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum MemoryTypeFilter {
    User,
    Feedback,
    Project,
    Reference,
}

/// What `--json` prints; a document of `schema/memories.schema.json`.
#[derive(Serialize)]
struct MemoryList {
    memories: Vec<MemoryRow>,
}

#[derive(Serialize)]
struct MemoryRow {
    #[serde(rename = "type")]
    kind: &'static str,
    name: String,
    file: String,
    statements: usize,
    /// How many of them are used.
    used: usize,
    /// The day of the newest source; `None` where a person wrote the file.
    newest: Option<NaiveDate>,
    age_days: Option<i64>,
    /// `wisdom`, `context`.
    used_in: Vec<&'static str>,
    /// Why the other statements are not used.
    why_not: Vec<String>,
}

pub(super) fn run(global: &GlobalArgs, args: &MemoriesArgs, ui: &Ui) -> CommandResult {
    let (call, root) = Invocation::with_root(global)?;
    let today = call.now.with_timezone(&root.settings.zone.name.0).date_naive();
    let (_, mut memories) = compose_default(&call, &root, None)?;
    let has_any = !memories.is_empty();
    if let Some(kind) = args.kind {
        memories.retain(|it| it.0.kind == kind.memory_type());
    }
    memories.sort_by(|(a, _), (b, _)| {
        (a.kind, Reverse(a.newest), &a.file).cmp(&(b.kind, Reverse(b.newest), &b.file))
    });
    let rows: Vec<MemoryRow> =
        memories.iter().map(|(memory, uses)| MemoryRow::of(memory, uses, today)).collect();
    if ui.is_json() {
        ui.json(&MemoryList { memories: rows });
    } else if let Some(kind) = args.kind.filter(|_| rows.is_empty() && has_any) {
        ui.note(format!("there are no memories of type {}", kind.memory_type()));
    } else if rows.is_empty() {
        ui.note("there are no typed memories yet: `memoird compact` extracts them from the logs of closed days");
        ui.note("to write one: memoird log \"Decided to use SQLite, because one file is easy to back up\"");
    } else {
        let cells: Vec<Vec<String>> = rows.iter().map(|it| it.cells(today)).collect();
        ui.table(&["TYPE", "STATEMENTS", "AGE", "USED", "NAME", "FILE"], &cells);
    }
    Ok(ExitCode::SUCCESS)
}

impl MemoryTypeFilter {
    pub(super) fn memory_type(self) -> MemoryType {
        match self {
            Self::User => MemoryType::User,
            Self::Feedback => MemoryType::Feedback,
            Self::Project => MemoryType::Project,
            Self::Reference => MemoryType::Reference,
        }
    }
}

impl MemoryRow {
    fn of(memory: &MemoryToShow, uses: &[StatementUse], today: NaiveDate) -> Self {
        let mut distinct: Vec<&StatementUse> = uses.iter().collect();
        distinct.sort();
        distinct.dedup();
        Self {
            kind: memory.kind.name(),
            name: memory.name.clone(),
            file: memory.file.clone(),
            statements: uses.len(),
            used: uses.iter().filter(|it| place_of(it).is_some()).count(),
            newest: memory.newest,
            age_days: memory.newest.map(|it| (today - it).num_days().max(0)),
            used_in: distinct.iter().filter_map(|it| place_of(it)).collect(),
            why_not: distinct.iter().filter_map(|it| why_not(it)).collect(),
        }
    }

    fn cells(&self, today: NaiveDate) -> Vec<String> {
        let place = |it: &&'static str| if *it == "wisdom" { "WISDOM.md" } else { *it };
        let used: Vec<&str> = self.used_in.iter().map(place).collect();
        let why_not = self.why_not.join(", ");
        let used = match (used.join(", "), &why_not[..]) {
            (used, "") => used,
            (used, why_not) if used.is_empty() => format!("no: {why_not}"),
            (used, why_not) => {
                format!("{used}; {} not: {why_not}", self.statements - self.used)
            }
        };
        vec![
            self.kind.to_owned(),
            self.statements.to_string(),
            self.newest.map_or_else(|| "-".to_owned(), |it| days_between(it, today)),
            used,
            shortened(&self.name),
            self.file.clone(),
        ]
    }
}

/// Returns where a statement is used.
fn place_of(it: &StatementUse) -> Option<&'static str> {
    match it {
        StatementUse::Wisdom => Some("wisdom"),
        StatementUse::Context => Some("context"),
        _ => None,
    }
}

/// Returns why a statement is not used.
fn why_not(it: &StatementUse) -> Option<String> {
    Some(match it {
        StatementUse::Wisdom | StatementUse::Context => return None,
        StatementUse::NoRoom => "no room in context".to_owned(),
        StatementUse::OwnNotes => "the agent's own notes say it".to_owned(),
        StatementUse::Repeats(file) => format!("repeats {file}"),
        StatementUse::Replaced(file) => format!("replaced by {file}"),
        StatementUse::Held => "held for review".to_owned(),
    })
}
