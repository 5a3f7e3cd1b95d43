//! Decisions about what waits for review: accept, refuse, reopen, and edit.

use super::queue::{NO_CHANGE, UNACCEPTABLE, change_kind, is_unacceptable, refusal};
use crate::{
    compaction::{
        Compactor,
        proposals::change::ProposedChange,
        review::{ReviewError, ReviewProposal, ReviewQueue, UserReplacement},
    },
    memory::decision::Verdict,
    operations::{
        error::{CommandError, CommandResult},
        log,
        workspace::{Invocation, MemoryRoot, require_writer},
    },
};

/// An entry that cannot be accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnacceptableEntry {
    pub(crate) id: String,
    pub(crate) why: &'static str,
}

/// Removes from a batch what cannot be accepted, and returns it.
pub(crate) fn remove_unacceptable(queue: &mut ReviewQueue) -> Vec<UnacceptableEntry> {
    let changes = queue.changes.extract_if(.., |it| refusal(it).is_some());
    let changes =
        changes.filter_map(|it| Some(UnacceptableEntry { why: refusal(&it)?, id: it.id }));
    let mut removed: Vec<UnacceptableEntry> = changes.collect();
    let contradictions = std::mem::take(&mut queue.contradictions).into_iter();
    removed.extend(contradictions.map(|it| UnacceptableEntry { id: it.id, why: NO_CHANGE }));
    removed
}

/// Refuses to write anything about a contradiction.
fn refuse_contradictions(chosen: &ReviewQueue) -> CommandResult<()> {
    match chosen.contradictions.first() {
        Some(it) => Err(CommandError::usage(format!("cannot change {}: {NO_CHANGE}", it.path))
            .hint(format!("memoird review refuse {}", it.id))),
        None => Ok(()),
    }
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

pub(crate) fn retain_decided(queue: &mut ReviewQueue) {
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
