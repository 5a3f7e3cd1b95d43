//! `memoird review`: the queue of quarantined lines and proposed changes.
//!
//! Quarantined lines are shown here and nowhere else, with secrets masked and invisible characters
//! escaped.

use std::process::ExitCode;

use chrono::NaiveDate;
use serde::Serialize;

use super::{
    GlobalArgs,
    compact::require_writer,
    error::{CommandError, CommandResult},
    log,
    ui::Ui,
    workspace::{Invocation, MemoryRoot},
};
use crate::{
    compaction::{
        self, Compactor,
        proposals::change::ProposedChange,
        review::{
            self, QuarantinedLine, ReviewContradiction, ReviewError, ReviewProposal, ReviewQueue,
            UserReplacement,
        },
    },
    memory::{address::Address, decision::Verdict},
    recall::contradictions::find_contradictions,
    store::{
        db::lineage::{Lineage, review::QuarantineScope},
        fs::inventory::Inventory,
    },
};

/// Accept, refuse, or edit quarantined lines and proposed changes
///
/// Quarantined lines are external text that reads like an instruction, text with hidden characters, and
/// memories that only external text supports. No file contains them until you accept them.
///
/// Proposed changes are updates to memories that you wrote or edited, if their log lines now say something
/// else; with `wisdom.review: manual`, also changes of WISDOM.md.
///
/// Contradictions are lines of curated files (`curated` in memoird.yaml) about which newer logs say something
/// else. Change the file, or refuse the contradiction.
///
/// Unsupported items are drafts of a model that their log lines do not support. They are listed, but cannot
/// be accepted.
///
/// Without a subcommand, asks about each entry on a terminal, and lists them otherwise.
#[derive(Debug, clap::Args)]
pub(super) struct ReviewArgs {
    #[command(subcommand)]
    verb: Option<ReviewCommand>,
}

#[derive(Debug, clap::Subcommand)]
enum ReviewCommand {
    /// List the queue
    List {
        /// Also list what was decided before
        #[arg(long)]
        decided: bool,
    },
    /// Release quarantined lines and apply proposed changes
    Accept(ReviewSelection),
    /// Keep lines out permanently, drop proposed changes, and dismiss contradictions
    Refuse(ReviewSelection),
    /// Withdraw a decision, so that it waits again; use `undo` first for a change that was applied
    Reopen(ReviewSelection),
    /// Use your own words: for a change, they are written instead; for a line, they become an entry of
    /// today's log, and the line stays out
    Edit {
        /// The id in the list
        id: String,
        /// Your words; for a change of WISDOM.md, "Heading: text"
        text: String,
    },
}

/// Selects parts of the queue.
#[derive(Debug, clap::Args)]
struct ReviewSelection {
    /// The ids in the list; a log (2026-04-02) selects all of its lines
    #[arg(value_name = "ID", required_unless_present = "all")]
    ids: Vec<String>,
    /// Everything in the list
    #[arg(long, conflicts_with = "ids")]
    all: bool,
    /// With --all: only those with this reason (as in the list)
    #[arg(long, value_name = "REASON", requires = "all")]
    why: Option<String>,
}

/// What `--json` prints; a document of `schema/review.schema.json`.
#[derive(Debug, Serialize)]
struct ReviewReport {
    /// The listed or decided entries.
    items: Vec<ReviewEntry>,
    /// The decision; missing for a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    done: Option<&'static str>,
}

/// One entry of the queue, as `--json` and the page show it.
#[derive(Debug, Serialize)]
pub(crate) struct ReviewEntry {
    pub(crate) id: String,
    /// `line`, `memory`, `wisdom`, `typed`, `item`, or `contradiction`.
    pub(crate) what: &'static str,
    /// Why it waits.
    pub(crate) why: Vec<String>,
    /// The current line with secrets masked; for a change, the new text.
    pub(crate) text: String,
    /// The log, or the file to change.
    pub(crate) path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) origin: Option<&'static str>,
    /// For a change: the current text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) before: Option<String>,
    /// For a change: the log lines that it cites.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sources: Option<String>,
    /// For a contradiction: the day since which the logs say something else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) since: Option<NaiveDate>,
    /// For a change: the sanitized text of these lines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) source_lines: Vec<SourceLine>,
    /// For a change: whether it can no longer be applied.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) stale: bool,
    /// For an item: whether it can be accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) acceptable: Option<bool>,
    /// For an item: the engine that drafted it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) engine: Option<String>,
    /// For a change or an item: the run that proposed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) run: Option<i64>,
    /// The earlier decision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) verdict: Option<&'static str>,
}

/// A line of a log that an entry is about.
#[derive(Debug, Serialize)]
pub(crate) struct SourceLine {
    pub(crate) address: String,
    pub(crate) text: String,
}

pub(super) fn run(global: &GlobalArgs, args: &ReviewArgs, ui: &Ui) -> CommandResult {
    let (call, root) = Invocation::with_root_to_write(global, ui)?;
    let decided = matches!(
        &args.verb,
        Some(ReviewCommand::List { decided: true } | ReviewCommand::Reopen(_))
    );
    let mut queue = load_queue(&root, decided)?;
    match &args.verb {
        None if ui.is_interactive() => return review_interactively(&call, &root, &queue, ui),
        None | Some(ReviewCommand::List { .. }) => {
            list(&queue, ui);
            #[cfg(feature = "fleet")]
            super::bundle::note_conflicts(&root, ui);
        }
        Some(ReviewCommand::Accept(selection)) => {
            retain_selected(&mut queue, selection)?;
            if selection.all {
                warn_of_skipped(&remove_unacceptable(&mut queue), ui);
            }
            accept(&call, &root, &queue)?;
            show_done(&queue, "accepted", ui);
        }
        Some(ReviewCommand::Refuse(selection)) => {
            retain_selected(&mut queue, selection)?;
            record_verdict(&call, &root, &queue, Some(Verdict::Refused))?;
            show_done(&queue, "refused", ui);
        }
        Some(ReviewCommand::Reopen(selection)) => {
            retain_decided(&mut queue);
            retain_selected(&mut queue, selection)?;
            record_verdict(&call, &root, &queue, None)?;
            show_done(&queue, "reopened", ui);
        }
        Some(ReviewCommand::Edit { id, text }) => {
            let ids = vec![id.clone()];
            retain_selected(&mut queue, &ReviewSelection { ids, all: false, why: None })?;
            warn_of_secret(&root, text, ui);
            edit(&call, &root, &queue, text)?;
            show_done(&queue, "edited", ui);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the queue of what waits; with `decided` also what was decided before.
pub(crate) fn load_queue(root: &MemoryRoot, decided: bool) -> CommandResult<ReviewQueue> {
    let lineage = Lineage::open_existing(&root.vault.layout().database())?;
    let view = compaction::read_snapshot(&root.vault, lineage.as_ref())?;
    queue_of(root, &view.inventory, decided)
}

/// Returns the queue as [`load_queue`] does, given the files of the root.
pub(crate) fn queue_of(
    root: &MemoryRoot,
    inventory: &Inventory,
    decided: bool,
) -> CommandResult<ReviewQueue> {
    let lineage = Lineage::open_existing(&root.vault.layout().database())?;
    let queue = review::review_queue(&root.vault, lineage.as_ref(), inventory, decided)?;
    let contradictions = find_contradictions(&root.vault, inventory, decided)?;
    Ok(ReviewQueue { contradictions, ..queue })
}

/// Removes everything from the queue that was not selected.
fn retain_selected(queue: &mut ReviewQueue, selection: &ReviewSelection) -> CommandResult<()> {
    if selection.all {
        if let Some(why) = &selection.why {
            queue.lines.retain(|it| it.reasons.contains(why));
            queue.changes.retain(|it| why == change_kind(&it.change));
            queue.contradictions.retain(|_| why == CONTRADICTION);
        }
        return Ok(());
    }
    retain_ids(queue, &selection.ids)
}

/// Removes everything from the queue whose id is not listed; fails if the queue has none with a listed id.
pub(crate) fn retain_ids(queue: &mut ReviewQueue, ids: &[String]) -> CommandResult<()> {
    for id in ids {
        if !has_entry(queue, id) {
            return Err(CommandError::usage(format!("the review queue has no `{id}`"))
                .hint("memoird review list"));
        }
    }
    queue.lines.retain(|it| ids.iter().any(|id| line_matches(it, id)));
    queue.changes.retain(|it| ids.contains(&it.id));
    queue.contradictions.retain(|it| ids.contains(&it.id));
    Ok(())
}

/// Returns whether the queue has an entry with an id.
pub(crate) fn has_entry(queue: &ReviewQueue, id: &str) -> bool {
    queue.lines.iter().any(|it| line_matches(it, id))
        || queue.changes.iter().any(|it| it.id == id)
        || queue.contradictions.iter().any(|it| it.id == id)
}

/// An entry that cannot be accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
struct UnacceptableEntry {
    id: String,
    why: &'static str,
}

/// Removes from a batch what cannot be accepted, and returns it.
fn remove_unacceptable(queue: &mut ReviewQueue) -> Vec<UnacceptableEntry> {
    let changes = queue.changes.extract_if(.., |it| refusal(it).is_some());
    let changes =
        changes.filter_map(|it| Some(UnacceptableEntry { why: refusal(&it)?, id: it.id }));
    let mut removed: Vec<UnacceptableEntry> = changes.collect();
    let contradictions = std::mem::take(&mut queue.contradictions).into_iter();
    removed.extend(contradictions.map(|it| UnacceptableEntry { id: it.id, why: NO_CHANGE }));
    removed
}

/// Returns why a change cannot be accepted; `None` if it can.
fn refusal(proposed: &ReviewProposal) -> Option<&'static str> {
    match () {
        () if is_unacceptable(&proposed.change) => Some(UNACCEPTABLE),
        () if proposed.is_stale => Some(STALE),
        () => None,
    }
}

/// Warns about what is not accepted of a batch: each change that came too late, and how many others.
fn warn_of_skipped(skipped: &[UnacceptableEntry], ui: &Ui) {
    for stale in skipped.iter().filter(|it| it.why == STALE) {
        ui.warn(format!("skipped {}: {STALE}", stale.id));
    }
    for why in [UNACCEPTABLE, NO_CHANGE] {
        let count = skipped.iter().filter(|it| it.why == why).count();
        if count > 0 {
            ui.warn(format!("skipped {count}: {why}"));
        }
    }
}

/// Returns whether the change is only listed and cannot be accepted.
fn is_unacceptable(change: &ProposedChange) -> bool {
    matches!(change, ProposedChange::Item { passes: false, .. })
}

const UNACCEPTABLE: &str = "unsupported items cannot be accepted; refuse them, or edit them to write them in \
                    your own words";

/// The kind of a contradiction, as JSON and `--why` name it.
const CONTRADICTION: &str = "contradiction";

const NO_CHANGE: &str =
    "memoird never changes curated files; edit the file yourself, or refuse the contradiction";

/// Refuses to write anything about a contradiction.
fn refuse_contradictions(chosen: &ReviewQueue) -> CommandResult<()> {
    match chosen.contradictions.first() {
        Some(it) => Err(CommandError::usage(format!("cannot change {}: {NO_CHANGE}", it.path))
            .hint(format!("memoird review refuse {}", it.id))),
        None => Ok(()),
    }
}

/// Why a change can no longer be applied.
const STALE: &str = "its file or its source lines changed since it was proposed";

/// Returns the kind of a change, as JSON and `--why` name it.
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

/// Releases quarantined lines and applies proposed changes.
pub(crate) fn accept(
    call: &Invocation,
    root: &MemoryRoot,
    chosen: &ReviewQueue,
) -> CommandResult<()> {
    if let Some(unsupported) = chosen.changes.iter().find(|it| is_unacceptable(&it.change)) {
        let id = &unsupported.id;
        return Err(CommandError::usage(format!("cannot accept {id}: {UNACCEPTABLE}"))
            .hint(format!("memoird review edit {id} TEXT")));
    }
    refuse_contradictions(chosen)?;
    accept_lines(call, root, chosen)?;
    let (items, changes) = items_and_changes(chosen);
    apply_changes(call, root, &changes)?;
    accept_items(call, root, &items)
}

/// What came of a batch that was accepted as far as possible.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AcceptedBatch {
    /// How many entries were accepted.
    pub(crate) accepted: usize,
    /// The ids of the others. They are still in the queue, which says why.
    pub(crate) left: Vec<String>,
}

/// Accepts what can be accepted of a batch. A change that is refused, because its file has changed or another one of
/// the batch changes it, does not keep the others back.
pub(crate) fn accept_possible(
    call: &Invocation,
    root: &MemoryRoot,
    mut chosen: ReviewQueue,
) -> CommandResult<AcceptedBatch> {
    let removed = remove_unacceptable(&mut chosen);
    let mut left: Vec<String> = removed.into_iter().map(|it| it.id).collect();
    accept_lines(call, root, &chosen)?;
    let (items, mut changes) = items_and_changes(&chosen);
    while !changes.is_empty() {
        let applied = with_compactor(call, root, |it| Ok(it.accept_changes(&changes)))?;
        let refused = match applied {
            Ok(()) => break,
            Err(ReviewError::Stale { id } | ReviewError::FileChanged { id, .. }) => id,
            Err(error) => return Err(error.into()),
        };
        changes.retain(|it| it.0.id != refused);
        left.push(refused);
    }
    accept_items(call, root, &items)?;
    Ok(AcceptedBatch { accepted: chosen.lines.len() + changes.len() + items.len(), left })
}

/// A change, and the words of a person that replace it.
type ChosenChange = (ReviewProposal, Option<UserReplacement>);

fn items_and_changes(chosen: &ReviewQueue) -> (Vec<ReviewProposal>, Vec<ChosenChange>) {
    let is_item = |it: &ReviewProposal| change_kind(&it.change) == "item";
    let (items, changes): (Vec<_>, Vec<_>) = chosen.changes.iter().cloned().partition(is_item);
    (items, changes.into_iter().map(|it| (it, None)).collect())
}

fn accept_lines(call: &Invocation, root: &MemoryRoot, chosen: &ReviewQueue) -> CommandResult<()> {
    if chosen.lines.is_empty() {
        return Ok(());
    }
    let lines = ReviewQueue { lines: chosen.lines.clone(), ..ReviewQueue::default() };
    record_verdict(call, root, &lines, Some(Verdict::Accepted))
}

fn accept_items(
    call: &Invocation,
    root: &MemoryRoot,
    items: &[ReviewProposal],
) -> CommandResult<()> {
    if items.is_empty() {
        return Ok(());
    }
    with_compactor(call, root, |compactor| Ok(compactor.accept_items(items)?))
}

/// Withdraws earlier decisions about entries of the queue.
pub(crate) fn reopen(
    call: &Invocation,
    root: &MemoryRoot,
    mut chosen: ReviewQueue,
) -> CommandResult<()> {
    retain_decided(&mut chosen);
    record_verdict(call, root, &chosen, None)
}

fn retain_decided(queue: &mut ReviewQueue) {
    queue.changes.retain(|it| it.verdict.is_some());
    queue.lines.retain(|it| it.verdict.is_some());
    queue.contradictions.retain(|it| it.verdict.is_some());
}

/// Opens the database for writing and does some work.
fn with_compactor<T>(
    call: &Invocation,
    root: &MemoryRoot,
    work: impl FnOnce(&mut Compactor<'_>) -> CommandResult<T>,
) -> CommandResult<T> {
    require_writer(call, root)?;
    let engine = root.engine(call)?;
    let mut lineage = root.lineage()?;
    let clock = call.clock();
    let mut compactor = root.compactor(&mut lineage, engine.as_ref(), &clock);
    work(&mut compactor)
}

fn apply_changes(
    call: &Invocation,
    root: &MemoryRoot,
    changes: &[ChosenChange],
) -> CommandResult<()> {
    if changes.is_empty() {
        return Ok(());
    }
    with_compactor(call, root, |compactor| Ok(compactor.accept_changes(changes)?))
}

/// Records a decision about entries of the queue; `None` withdraws an earlier one.
pub(crate) fn record_verdict(
    call: &Invocation,
    root: &MemoryRoot,
    chosen: &ReviewQueue,
    verdict: Option<Verdict>,
) -> CommandResult<()> {
    with_compactor(call, root, |compactor| {
        if !chosen.lines.is_empty() {
            compactor.review_lines(&chosen.lines, verdict)?;
        }
        match verdict {
            Some(Verdict::Refused) => compactor.refuse_changes(&chosen.changes)?,
            Some(Verdict::Accepted) => {}
            None => compactor.reopen_changes(&chosen.changes)?,
        }
        compactor.refuse_contradictions(&chosen.contradictions, verdict.is_none())?;
        Ok(())
    })
}

/// Writes a person's words in the place of an entry. Secrets in them are masked.
pub(crate) fn edit(
    call: &Invocation,
    root: &MemoryRoot,
    chosen: &ReviewQueue,
    text: &str,
) -> CommandResult<()> {
    refuse_contradictions(chosen)?;
    let text = &*root.rules.mask_secrets(text.trim());
    if text.is_empty() {
        return Err(CommandError::usage("the text is empty").hint("memoird review refuse ID"));
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
            return Err(CommandError::usage("an entry of WISDOM.md needs a heading and a text")
                .hint(format!("memoird review edit {} \"Heading: text\"", change.id)));
        };
        let own =
            UserReplacement { title: Some(title.trim().to_owned()), text: words.trim().to_owned() };
        return apply_changes(call, root, &[(change.clone(), Some(own))]);
    }
    require_writer(call, root)?;
    // Lines with the same text share one id and get one entry.
    let lines: Vec<String> = chosen.lines.iter().map(|it| it.address.to_string()).collect();
    log::append_entry(call, root, &of(&lines.join(", ")))?;
    record_verdict(call, root, chosen, Some(Verdict::Refused))
}

fn warn_of_secret(root: &MemoryRoot, text: &str, ui: &Ui) {
    if root.rules.mask_secrets(text) != text {
        ui.warn("the text contains a secret, which is masked");
    }
}

/// Asks about each entry of the queue.
fn review_interactively(
    call: &Invocation,
    root: &MemoryRoot,
    queue: &ReviewQueue,
    ui: &Ui,
) -> CommandResult {
    let ReviewQueue { lines, changes, contradictions } = queue;
    if lines.is_empty() && changes.is_empty() && contradictions.is_empty() {
        ui.note("nothing to review");
        return Ok(ExitCode::SUCCESS);
    }
    require_writer(call, root)?;
    let none = ReviewQueue::default;
    let line = |it: &QuarantinedLine| ReviewQueue { lines: vec![it.clone()], ..none() };
    let change = |it: &ReviewProposal| ReviewQueue { changes: vec![it.clone()], ..none() };
    let contradiction =
        |it: &ReviewContradiction| ReviewQueue { contradictions: vec![it.clone()], ..none() };
    let items = lines.iter().map(line).chain(changes.iter().map(change));
    let all: Vec<ReviewQueue> = items.chain(contradictions.iter().map(contradiction)).collect();
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
                Some("a" | "accept") if !one.contradictions.is_empty() => {
                    ui.warn(NO_CHANGE);
                    continue;
                }
                Some("a" | "accept") => accept(call, root, one)?,
                Some("r" | "refuse") => record_verdict(call, root, one, Some(Verdict::Refused))?,
                Some("e" | "edit") => {
                    let Some(text) = ui.prompt("your text:") else { continue };
                    warn_of_secret(root, &text, ui);
                    if let Err(error) = edit(call, root, one, &text) {
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
    ui.note("`memoird compact` (or the daemon) updates the summaries; `memoird review reopen` withdraws a decision");
    Ok(ExitCode::SUCCESS)
}

/// Returns the entries of a queue as they are shown.
pub(crate) fn entries(queue: &ReviewQueue) -> Vec<ReviewEntry> {
    queue
        .lines
        .iter()
        .map(ReviewEntry::of_line)
        .chain(queue.changes.iter().map(ReviewEntry::of_change))
        .chain(queue.contradictions.iter().map(ReviewEntry::of_contradiction))
        .collect()
}

impl ReviewEntry {
    /// Returns why the entry cannot be accepted; `None` if it can.
    pub(crate) fn refusal(&self) -> Option<&'static str> {
        match self.acceptable {
            Some(false) if self.what == CONTRADICTION => Some(NO_CHANGE),
            Some(false) => Some(UNACCEPTABLE),
            _ => self.stale.then_some(STALE),
        }
    }

    fn of_contradiction(
        ReviewContradiction { id, path, found, verdict }: &ReviewContradiction,
    ) -> Self {
        let log = found.log.to_string();
        Self {
            id: id.clone(),
            what: CONTRADICTION,
            why: vec![CONTRADICTION.to_owned()],
            text: found.text.clone(),
            path: path.clone(),
            line: Some(found.line),
            origin: None,
            before: None,
            sources: Some(log.clone()),
            since: Some(found.since),
            source_lines: vec![SourceLine { address: log, text: found.log_text.clone() }],
            stale: false,
            acceptable: Some(false),
            engine: None,
            run: None,
            verdict: verdict.map(verdict_name),
        }
    }

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
            since: None,
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
            since: None,
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

fn list(queue: &ReviewQueue, ui: &Ui) {
    let items = entries(queue);
    if ui.is_json() {
        ui.json(&ReviewReport { items, done: None });
        return;
    }
    if items.is_empty() {
        ui.note("nothing to review");
        return;
    }
    for item in &items {
        show(item, ui);
    }
    let waits = match items.iter().filter(|it| it.verdict.is_none()).count() {
        0 => return ui.note("nothing to review; `memoird review reopen ID…` withdraws a decision"),
        count => format!("{count} to review"),
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
    let by = item.engine.as_ref().map(|it| format!(", rejected draft of {it}{run}"));
    let by = by.unwrap_or_default();
    ui.heading(format!("{}  {place}{origin}{by}: {}{verdict}", item.id, item.why.join(", ")));
    if let Some(since) = item.since {
        show_text(&format!("{} line {} says: ", item.path, item.line.unwrap_or(0)), &item.text, ui);
        for SourceLine { address, text } in &item.source_lines {
            show_text(&format!("since {since} the logs say: "), &format!("{text} [{address}]"), ui);
        }
        return;
    }
    if item.acceptable == Some(false) {
        ui.data("  cannot be accepted: `refuse` it, or `edit` it to write it in your own words");
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

/// Shows a text of several lines, indented below its label.
fn show_text(label: &str, text: &str, ui: &Ui) {
    for (i, line) in text.trim().lines().filter(|it| !it.trim().is_empty()).enumerate() {
        let label = if i == 0 { label.to_owned() } else { " ".repeat(label.len()) };
        ui.data(format!("  {label}{line}"));
    }
}

fn show_done(decided: &ReviewQueue, what: &'static str, ui: &Ui) {
    let items = entries(decided);
    if ui.is_json() {
        ui.json(&ReviewReport { items, done: Some(what) });
        return;
    }
    ui.success(format!("{what}: {}", items.len()));
    let is_item = |it: &ReviewProposal| change_kind(&it.change) == "item";
    let has_dependents = !decided.lines.is_empty() || decided.changes.iter().any(is_item);
    if what == "accepted" && has_dependents {
        ui.note("`memoird compact` (or the daemon) updates what is derived from it");
    }
}

impl From<ReviewError> for CommandError {
    fn from(error: ReviewError) -> Self {
        match error {
            ReviewError::Compaction(error) => error.into(),
            ReviewError::Stale { ref id } | ReviewError::FileChanged { ref id, .. } => {
                let hint = format!("memoird review refuse {id}");
                Self::data(error).hint(hint)
            }
            ReviewError::AlreadyApplied { .. } => Self::usage(error).hint("memoird undo"),
            ReviewError::File(_) => Self::data(error).hint("memoird review list"),
        }
    }
}
