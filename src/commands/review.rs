//! `memoird review`: what waits for a person, one by one or in batches.
//!
//! Held lines are shown here and nowhere else, secrets marked and invisible characters escaped.

use std::process::ExitCode;

use serde::Serialize;

use super::{
    GlobalArgs,
    compact::require_writer,
    error::{CommandError, CommandErrorKind},
    log,
    ui::Ui,
    workspace::{Invocation, MemoryRoot},
};
use crate::{
    compaction::{
        self,
        proposals::change::ProposedChange,
        review::{
            self, QuarantinedLine, ReviewError, ReviewProposal, ReviewQueue, UserReplacement,
        },
    },
    memory::{address::Address, decision::Verdict},
    store::db::lineage::{Lineage, review::QuarantineScope},
};

/// Accept, refuse, or edit what is held or proposed
///
/// Text from elsewhere that reads like an instruction, text with hidden characters, and what an engine
/// would remember though only a stranger said it is kept out of every file until you accept it; the
/// built-in engine remembers none of that by itself. Where the lines beneath a memory of your own, or one that you edited, say otherwise now, what
/// would become of it waits here; with `wisdom.review: manual` changes of WISDOM.md do, too. What a model
/// drafted and its lines do not say is listed, and cannot be accepted. Without
/// a verb it asks, on a terminal, about one after the other; elsewhere it lists them.
#[derive(Debug, clap::Args)]
pub(super) struct ReviewArgs {
    #[command(subcommand)]
    verb: Option<ReviewCommand>,
}

#[derive(Debug, clap::Subcommand)]
enum ReviewCommand {
    /// List what waits
    List {
        /// Also what was decided before
        #[arg(long)]
        decided: bool,
    },
    /// Let lines be seen, and make proposed changes
    Accept(ReviewSelection),
    /// Keep lines out for good, and drop proposed changes
    Refuse(ReviewSelection),
    /// Take back what was said: it waits again. A change that was made is taken back by `undo` first
    Reopen(ReviewSelection),
    /// Say it in your own words: of a change, what is written; of a line, an entry of today's log, and
    /// the line stays out
    Edit {
        /// What it is called in the list
        id: String,
        /// Your words; of a change of WISDOM.md, its heading and text as "Heading: text"
        text: String,
    },
}

/// Which of what waits.
#[derive(Debug, clap::Args)]
struct ReviewSelection {
    /// What they are called in the list; a log (2026-04-02) for all of its lines
    #[arg(value_name = "ID", required_unless_present = "all")]
    ids: Vec<String>,
    /// All that the list shows
    #[arg(long, conflicts_with = "ids")]
    all: bool,
    /// With --all: only those held for this reason (as in the list)
    #[arg(long, value_name = "REASON", requires = "all")]
    why: Option<String>,
}

/// What `--json` prints; a document of `schema/review.schema.json`.
#[derive(Debug, Serialize)]
struct ReviewReport {
    /// What waits, or what was decided about.
    items: Vec<ReviewEntry>,
    /// What was done with them: nothing for a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    done: Option<&'static str>,
}

#[derive(Debug, Serialize)]
struct ReviewEntry {
    id: String,
    /// `line`, `memory`, `wisdom`, `typed`, or `item`.
    what: &'static str,
    /// Why it waits.
    why: Vec<String>,
    /// The line as it stands, secrets marked; of a change, what would be written.
    text: String,
    /// The file: a log, or the one that would be changed.
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<&'static str>,
    /// Of a change, what stands there now.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<String>,
    /// Of a change, the log lines that it rests on.
    #[serde(skip_serializing_if = "Option::is_none")]
    sources: Option<String>,
    /// Of a change, those lines as they may be seen.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    source_lines: Vec<SourceLine>,
    /// Of a change, whether it can no longer be made.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stale: bool,
    /// Of an item, whether it can be accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    acceptable: Option<bool>,
    /// Of an item, who drafted it.
    #[serde(skip_serializing_if = "Option::is_none")]
    engine: Option<String>,
    /// Of a change or an item, the run that it came of.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<i64>,
    /// What was said of it before.
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<&'static str>,
}

#[derive(Debug, Serialize)]
struct SourceLine {
    address: String,
    text: String,
}

pub(super) fn run(
    global: &GlobalArgs,
    args: &ReviewArgs,
    ui: &Ui,
) -> Result<ExitCode, CommandError> {
    let call = Invocation::load(global)?;
    let root = call.selected_root(global)?;
    let decided = matches!(
        &args.verb,
        Some(ReviewCommand::List { decided: true } | ReviewCommand::Reopen(_))
    );
    let mut waiting = load_queue(&root, decided)?;
    match &args.verb {
        None if ui.is_interactive() => return review_interactively(&call, &root, &waiting, ui),
        None | Some(ReviewCommand::List { .. }) => list(&waiting, ui),
        Some(ReviewCommand::Accept(chosen)) => {
            retain_selected(&mut waiting, chosen)?;
            if chosen.all {
                skip_stale(&mut waiting, ui);
                skip_unacceptable(&mut waiting, ui);
            }
            accept(&call, &root, &waiting)?;
            show_done(&waiting, "accepted", ui);
        }
        Some(ReviewCommand::Refuse(chosen)) => {
            retain_selected(&mut waiting, chosen)?;
            record_verdict(&call, &root, &waiting, Some(Verdict::Refused))?;
            show_done(&waiting, "refused", ui);
        }
        Some(ReviewCommand::Reopen(chosen)) => {
            waiting.changes.retain(|it| it.verdict.is_some());
            waiting.lines.retain(|it| it.verdict.is_some());
            retain_selected(&mut waiting, chosen)?;
            record_verdict(&call, &root, &waiting, None)?;
            show_done(&waiting, "reopened", ui);
        }
        Some(ReviewCommand::Edit { id, text }) => {
            let ids = vec![id.clone()];
            retain_selected(&mut waiting, &ReviewSelection { ids, all: false, why: None })?;
            edit(&call, &root, &waiting, text, ui)?;
            show_done(&waiting, "edited", ui);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn load_queue(root: &MemoryRoot, decided: bool) -> Result<ReviewQueue, CommandError> {
    let lineage = Lineage::open_existing(&root.vault.layout().database())?;
    let view = compaction::read_snapshot(&root.vault, lineage.as_ref())?;
    Ok(review::review_queue(&root.vault, lineage.as_ref(), &view.inventory, decided)?)
}

/// Keeps what was chosen.
fn retain_selected(
    waiting: &mut ReviewQueue,
    chosen: &ReviewSelection,
) -> Result<(), CommandError> {
    if chosen.all {
        if let Some(why) = &chosen.why {
            waiting.lines.retain(|it| it.reasons.contains(why));
            waiting.changes.retain(|it| why == change_kind(&it.change));
        }
        return Ok(());
    }
    for id in &chosen.ids {
        let known = waiting.lines.iter().any(|it| line_matches(it, id))
            || waiting.changes.iter().any(|it| it.id == *id);
        if !known {
            return Err(CommandError::new(
                CommandErrorKind::Usage,
                format!("nothing that waits is called `{id}`"),
            )
            .hint("memoird review list"));
        }
    }
    waiting.lines.retain(|it| chosen.ids.iter().any(|id| line_matches(it, id)));
    waiting.changes.retain(|it| chosen.ids.contains(&it.id));
    Ok(())
}

/// Leaves out of a batch what can no longer be made, and says so.
fn skip_stale(waiting: &mut ReviewQueue, ui: &Ui) {
    for stale in waiting.changes.extract_if(.., |it| it.is_stale) {
        ui.warn(format!("{} is left: {STALE}", stale.id));
    }
}

/// Leaves out of a batch what nobody can accept, and says so.
fn skip_unacceptable(waiting: &mut ReviewQueue, ui: &Ui) {
    let told = waiting.changes.extract_if(.., |it| is_unacceptable(&it.change)).count();
    if told > 0 {
        ui.warn(format!("{told} left: {UNACCEPTABLE}"));
    }
}

/// Returns whether it is listed and no more.
fn is_unacceptable(change: &ProposedChange) -> bool {
    matches!(change, ProposedChange::Item { passes: false, .. })
}

/// Why an item that was kept out cannot be accepted.
const UNACCEPTABLE: &str = "no word of a person makes a drafted item true; refuse it when it is read, and say \
                    it in your own words if it is missed";

/// Why a change can no longer be made.
const STALE: &str = "its file or its source lines were changed since it was proposed";

/// Says what a change is about.
fn change_kind(change: &ProposedChange) -> &'static str {
    match change {
        ProposedChange::Memory { .. } => "typed",
        ProposedChange::Item { .. } => "item",
        ProposedChange::Add { .. } | ProposedChange::Merge { .. } | ProposedChange::Drop { .. } => {
            "wisdom"
        }
    }
}

fn line_matches(line: &QuarantinedLine, id: &str) -> bool {
    line.id == id || line.address.to_string() == id || line.address.stem.as_str() == id
}

fn accept(call: &Invocation, root: &MemoryRoot, chosen: &ReviewQueue) -> Result<(), CommandError> {
    if let Some(told) = chosen.changes.iter().find(|it| is_unacceptable(&it.change)) {
        let id = &told.id;
        return Err(CommandError::new(
            CommandErrorKind::Usage,
            format!("{id} cannot be accepted: {UNACCEPTABLE}"),
        )
        .hint(format!("memoird review edit {id} TEXT")));
    }
    if !chosen.lines.is_empty() {
        let lines = ReviewQueue { lines: chosen.lines.clone(), changes: Vec::new() };
        record_verdict(call, root, &lines, Some(Verdict::Accepted))?;
    }
    let (items, changes): (Vec<ReviewProposal>, Vec<ReviewProposal>) =
        chosen.changes.iter().cloned().partition(|it| change_kind(&it.change) == "item");
    let changes: Vec<_> = changes.into_iter().map(|it| (it, None)).collect();
    apply_changes(call, root, &changes)?;
    if items.is_empty() {
        return Ok(());
    }
    require_writer(call, root)?;
    let engine = root.engine(call)?;
    let mut lineage = root.lineage()?;
    let clock = call.clock();
    let mut compactor = root.compactor(&mut lineage, engine.as_ref(), &clock);
    Ok(compactor.accept_items(&items)?)
}

/// Makes changes of files.
fn apply_changes(
    call: &Invocation,
    root: &MemoryRoot,
    changes: &[(ReviewProposal, Option<UserReplacement>)],
) -> Result<(), CommandError> {
    if changes.is_empty() {
        return Ok(());
    }
    require_writer(call, root)?;
    let engine = root.engine(call)?;
    let mut lineage = root.lineage()?;
    let clock = call.clock();
    let mut compactor = root.compactor(&mut lineage, engine.as_ref(), &clock);
    Ok(compactor.accept_changes(changes)?)
}

fn record_verdict(
    call: &Invocation,
    root: &MemoryRoot,
    chosen: &ReviewQueue,
    verdict: Option<Verdict>,
) -> Result<(), CommandError> {
    require_writer(call, root)?;
    let engine = root.engine(call)?;
    let mut lineage = root.lineage()?;
    let clock = call.clock();
    let mut compactor = root.compactor(&mut lineage, engine.as_ref(), &clock);
    if !chosen.lines.is_empty() {
        compactor.review_lines(&chosen.lines, verdict)?;
    }
    match verdict {
        Some(Verdict::Refused) => compactor.refuse_changes(&chosen.changes)?,
        Some(Verdict::Accepted) => {}
        None => compactor.reopen_changes(&chosen.changes)?,
    }
    Ok(())
}

fn edit(
    call: &Invocation,
    root: &MemoryRoot,
    chosen: &ReviewQueue,
    text: &str,
    ui: &Ui,
) -> Result<(), CommandError> {
    let said = text.trim();
    let text = &*root.rules.mask_secrets(said);
    if text != said {
        ui.warn("there is a secret in these words; a mark takes its place");
    }
    if text.is_empty() {
        return Err(CommandError::new(CommandErrorKind::Usage, "there are no words to say it in")
            .hint("memoird review refuse ID"));
    }
    let of = |places: &str| format!("{text} (of {places})");
    if let Some(item) = chosen.changes.first().filter(|it| change_kind(&it.change) == "item") {
        require_writer(call, root)?;
        log::append_entry(call, root, &of(&item.row.sources))?;
        return record_verdict(call, root, chosen, Some(Verdict::Refused));
    }
    if let Some(change) = chosen.changes.first() {
        if let ProposedChange::Memory { .. } = change.change {
            let own = UserReplacement { title: None, text: text.to_owned() };
            return apply_changes(call, root, &[(change.clone(), Some(own))]);
        }
        let Some((title, words)) = text.split_once(": ") else {
            return Err(CommandError::new(
                CommandErrorKind::Usage,
                "an entry of WISDOM.md needs a heading and a text",
            )
            .hint(format!("memoird review edit {} \"Heading: text\"", change.id)));
        };
        let own =
            UserReplacement { title: Some(title.trim().to_owned()), text: words.trim().to_owned() };
        return apply_changes(call, root, &[(change.clone(), Some(own))]);
    }
    require_writer(call, root)?;
    // Words that stand on several lines have one name, and are said once.
    let lines: Vec<String> = chosen.lines.iter().map(|it| it.address.to_string()).collect();
    log::append_entry(call, root, &of(&lines.join(", ")))?;
    record_verdict(call, root, chosen, Some(Verdict::Refused))
}

/// Asks about one after the other.
fn review_interactively(
    call: &Invocation,
    root: &MemoryRoot,
    waiting: &ReviewQueue,
    ui: &Ui,
) -> Result<ExitCode, CommandError> {
    if waiting.lines.is_empty() && waiting.changes.is_empty() {
        ui.note("nothing waits");
        return Ok(ExitCode::SUCCESS);
    }
    require_writer(call, root)?;
    let alone =
        |line: &QuarantinedLine| ReviewQueue { lines: vec![line.clone()], changes: Vec::new() };
    let change = |it: &ReviewProposal| ReviewQueue { lines: Vec::new(), changes: vec![it.clone()] };
    let all: Vec<ReviewQueue> =
        waiting.lines.iter().map(alone).chain(waiting.changes.iter().map(change)).collect();
    for (i, one) in all.iter().enumerate() {
        let Some(item) = entries(one).pop() else { continue };
        ui.note(format!("\n{} of {}", i + 1, all.len()));
        show(&item, ui);
        loop {
            let answer = ui.prompt("accept, refuse, edit, skip, quit? [a/r/e/s/q]");
            match answer.as_deref() {
                Some("a" | "accept")
                    if one.changes.iter().any(|it| is_unacceptable(&it.change)) =>
                {
                    ui.warn(UNACCEPTABLE);
                    continue;
                }
                Some("a" | "accept") => accept(call, root, one)?,
                Some("r" | "refuse") => record_verdict(call, root, one, Some(Verdict::Refused))?,
                Some("e" | "edit") => {
                    let Some(text) = ui.prompt("in your words:") else { continue };
                    if let Err(error) = edit(call, root, one, &text, ui) {
                        ui.warn(error);
                        continue;
                    }
                }
                Some("s" | "skip" | "") => {}
                Some("q" | "quit") | None => return Ok(ExitCode::SUCCESS),
                Some(_) => continue,
            }
            break;
        }
    }
    ui.note("`memoird compact` (or the daemon) makes the summaries again; `memoird review reopen` takes back what was said");
    Ok(ExitCode::SUCCESS)
}

fn entries(waiting: &ReviewQueue) -> Vec<ReviewEntry> {
    waiting
        .lines
        .iter()
        .map(ReviewEntry::of_line)
        .chain(waiting.changes.iter().map(ReviewEntry::of_change))
        .collect()
}

impl ReviewEntry {
    fn of_line(line: &QuarantinedLine) -> Self {
        Self {
            id: line.id.clone(),
            what: match line.what {
                QuarantineScope::Line => "line",
                QuarantineScope::Memory => "memory",
            },
            why: line.reasons.clone(),
            text: line.text.clone(),
            path: line.path.clone(),
            line: Some(line.address.line),
            origin: Some(line.origin.name()),
            before: None,
            sources: None,
            source_lines: Vec::new(),
            stale: false,
            acceptable: None,
            engine: None,
            run: None,
            verdict: line.verdict.map(verdict_name),
        }
    }

    fn of_change(proposed: &ReviewProposal) -> Self {
        let (text, reason) = match &proposed.change {
            ProposedChange::Add { title, text, reason, .. } => (format!("{title}: {text}"), reason),
            ProposedChange::Merge { words: Some((title, text)), reason, .. } => {
                (format!("{title}: {text}"), reason)
            }
            ProposedChange::Merge { words: None, reason, .. } => ("said again".to_owned(), reason),
            ProposedChange::Drop { reason, .. } => ("to be dropped".to_owned(), reason),
            ProposedChange::Memory { words: Some(words), reason, .. } => {
                (words.display_text(), reason)
            }
            ProposedChange::Memory { words: None, reason, .. } => {
                ("to be removed".to_owned(), reason)
            }
            ProposedChange::Item { text, reason, .. } => (text.clone(), reason),
        };
        let (acceptable, engine) = match &proposed.change {
            ProposedChange::Item { passes, engine, .. } => (Some(*passes), Some(engine.clone())),
            _ => (None, None),
        };
        let source_line = |(at, text): &(Address, String)| SourceLine {
            address: at.to_string(),
            text: text.clone(),
        };
        let sources = &proposed.row.sources;
        Self {
            id: proposed.id.clone(),
            what: change_kind(&proposed.change),
            why: vec![reason.clone()],
            text,
            path: proposed.row.target.clone(),
            line: None,
            origin: None,
            before: proposed.current.clone(),
            sources: (!sources.is_empty()).then(|| sources.clone()),
            source_lines: proposed.source_lines.iter().map(source_line).collect(),
            stale: proposed.is_stale,
            acceptable,
            engine,
            run: proposed.run.map(|it| it.0),
            verdict: proposed.verdict.map(verdict_name),
        }
    }
}

fn verdict_name(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Accepted => "accepted",
        Verdict::Refused => "refused",
    }
}

fn list(waiting: &ReviewQueue, ui: &Ui) {
    let items = entries(waiting);
    if ui.is_json() {
        ui.json(&ReviewReport { items, done: None });
        return;
    }
    if items.is_empty() {
        ui.note("nothing waits");
        return;
    }
    for item in &items {
        show(item, ui);
    }
    let waits = match items.iter().filter(|it| it.verdict.is_none()).count() {
        0 => return ui.note("nothing waits; `memoird review reopen ID…` takes back what was said"),
        1 => "1 waits".to_owned(),
        several => format!("{several} wait"),
    };
    ui.note(format!(
        "{waits}: `memoird review accept ID…`, `refuse ID…`, `edit ID TEXT`, or all: `accept --all`"
    ));
}

fn show(item: &ReviewEntry, ui: &Ui) {
    let place = match item.line {
        Some(line) => format!("{}:{line}", item.path),
        None => item.path.clone(),
    };
    let origin = item.origin.map(|it| format!(", {it}")).unwrap_or_default();
    let verdict = item.verdict.map(|it| format!(" – {it}")).unwrap_or_default();
    let run = item.run.map(|it| format!(", run {it}")).unwrap_or_default();
    let by = item.engine.as_ref().map(|it| format!(", kept out of {it}{run}")).unwrap_or_default();
    ui.heading(format!("{}  {place}{origin}{by}: {}{verdict}", item.id, item.why.join(", ")));
    if item.acceptable == Some(false) {
        ui.data("  is only told: `refuse` when it is read, `edit` to say it in your own words");
    }
    if item.stale {
        ui.data(format!("  stale: {STALE}"));
    }
    match &item.before {
        Some(before) => {
            show_text("now: ", before, ui);
            show_text("new: ", &item.text, ui);
        }
        None => show_text("", &item.text, ui),
    }
    for SourceLine { address, text } in &item.source_lines {
        ui.data(format!("  of {address}: {}", text.trim()));
    }
    if let (Some(sources), []) = (&item.sources, &item.source_lines[..]) {
        ui.data(format!("  of {sources}"));
    }
}

/// Shows words of several lines below each other.
fn show_text(label: &str, text: &str, ui: &Ui) {
    for (i, line) in text.trim().lines().filter(|it| !it.trim().is_empty()).enumerate() {
        let label = if i == 0 { label.to_owned() } else { " ".repeat(label.len()) };
        ui.data(format!("  {label}{line}"));
    }
}

fn show_done(waiting: &ReviewQueue, what: &'static str, ui: &Ui) {
    let items = entries(waiting);
    if ui.is_json() {
        ui.json(&ReviewReport { items, done: Some(what) });
        return;
    }
    ui.success(format!("{what}: {}", items.len()));
    let is_item = |it: &ReviewProposal| change_kind(&it.change) == "item";
    let rests_on_it = !waiting.lines.is_empty() || waiting.changes.iter().any(is_item);
    if what == "accepted" && rests_on_it {
        ui.note("`memoird compact` (or the daemon) makes what rests on it again");
    }
}

impl From<ReviewError> for CommandError {
    fn from(error: ReviewError) -> Self {
        match error {
            ReviewError::Pass(error) => error.into(),
            ReviewError::Stale { ref id } | ReviewError::FileChanged { ref id, .. } => {
                let hint = format!("memoird review refuse {id}");
                Self::new(CommandErrorKind::Data, error).hint(hint)
            }
            ReviewError::AlreadyApplied { .. } => {
                Self::new(CommandErrorKind::Usage, error).hint("memoird undo")
            }
            ReviewError::File(_) => {
                Self::new(CommandErrorKind::Data, error).hint("memoird review list")
            }
        }
    }
}
