//! Corrects an item, and updates the summaries above it.

use std::collections::BTreeMap;

use super::{
    error::{CommandError, CommandErrorKind, CommandResult},
    workspace::{Invocation, MemoryRoot, require_writer},
};
use crate::{
    compaction::{
        self, RunOutcome,
        correct::{CorrectError, CorrectionDraft, CorrectionRequest},
    },
    memory::{
        address::Stem,
        correction::{CorrectionText, CorrectionTextError},
        item::Item,
    },
    recall::trace::split_target,
    store::{
        db::lineage::{Lineage, query::ItemLocation, record::DocumentKind},
        fs::layout::FileKind,
    },
};

#[derive(Clone, Copy, Debug)]
pub(crate) struct CorrectOptions {
    /// Whether to update the files derived from the item at once.
    pub(crate) update_dependents: bool,
    pub(crate) dry_run: bool,
    /// The hash of the item that the person saw; see [`CorrectionRequest::seen`].
    pub(crate) seen: Option<u64>,
}

/// Corrects the item at `PATH:LINE`. In a dry run, returns what would change, and no outcome.
pub(crate) fn correct_item(
    call: &Invocation,
    root: &MemoryRoot,
    target: &str,
    text: &str,
    options: CorrectOptions,
) -> CommandResult<(CorrectionDraft, Option<RunOutcome>)> {
    let words = CorrectionText::parse(&root.rules.mask_secrets(text))
        .map_err(|error| invalid_correction(error, target))?;
    let (name, line) = split_target(target);
    let (path, kind) = root.resolve_file(&call.environment, name)?;
    if !root.vault.layout().full(&path).exists() {
        return Err(root.no_file(call, &path, name));
    }
    if let (FileKind::Log | FileKind::Session, Some(line)) = (kind, line) {
        return Err(log_line_error(root, &path, line));
    }
    let request = CorrectionRequest { path: &path, kind, line, words: &words, seen: options.seen };
    if options.dry_run {
        let lineage = Lineage::open_existing(&root.vault.layout().database())?;
        let view = compaction::read_snapshot(&root.vault, lineage.as_ref())?;
        view.refuse_damaged(|it| it == path)?;
        let draft = CorrectionDraft::new(&root.vault, &request)
            .map_err(|error| missing_line_error(error, target, &words))?;
        return Ok((draft, None));
    }
    require_writer(call, root)?;
    let engine = root.engine(call)?;
    let mut lineage = root.lineage()?;
    let clock = call.clock();
    let mut compactor = root.compactor(&mut lineage, engine.as_ref(), &clock);
    let (draft, outcome) = compactor
        .correct(&request, options.update_dependents, &mut ())
        .map_err(|error| missing_line_error(error, target, &words))?;
    Ok((draft, Some(outcome)))
}

/// Returns a draft that shows which item is at `PATH:LINE`, and which nobody writes.
pub(crate) fn current_item(
    call: &Invocation,
    root: &MemoryRoot,
    target: &str,
) -> CommandResult<CorrectionDraft> {
    let options = CorrectOptions { update_dependents: false, dry_run: true, seen: None };
    Ok(correct_item(call, root, target, "x", options)?.0)
}

/// Returns the statements of memories and the lines of `WISDOM.md` that come from the log lines of a corrected item
/// and still say what it said: they are written from the logs, so that the correction does not reach them.
pub(crate) fn items_of_same_source(
    root: &MemoryRoot,
    draft: &CorrectionDraft,
) -> CommandResult<Vec<ItemLocation>> {
    let database = root.vault.layout().database();
    let (Some(lineage), Some(citation)) =
        (Lineage::open_existing(&database)?, &draft.corrected.citation)
    else {
        return Ok(Vec::new());
    };
    let mut found = Vec::new();
    for (stem, lines) in citation.files() {
        for &range in lines.ranges() {
            let citing = lineage.items_citing_range(stem, range)?;
            found.extend(citing.into_iter().map(|it| it.item));
        }
    }
    found.sort();
    found.dedup();
    let words = |line: &str| {
        let bare = line.trim_start_matches(['-', ' ']);
        Item::parse(bare).text.trim_end_matches('.').to_owned()
    };
    let (before, after) = (words(&draft.corrected.before), words(&draft.corrected.after));
    let mut same = Vec::new();
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for item in found {
        let is_other = item.path != draft.path
            && matches!(item.kind, DocumentKind::Memory | DocumentKind::Wisdom);
        if !is_other {
            continue;
        }
        if !texts.contains_key(&item.path) {
            let text = root.vault.read_text(&item.path).ok().flatten().unwrap_or_default();
            texts.insert(item.path.clone(), text.lines().map(str::to_owned).collect());
        }
        let at = (item.line as usize).checked_sub(1);
        let line = at.and_then(|it| texts.get(&item.path)?.get(it));
        let says_new = |it: &str| it.contains(&after) && !before.contains(&after);
        if !before.is_empty() && line.is_some_and(|it| it.contains(&before) && !says_new(it)) {
            same.push(item);
        }
    }
    Ok(same)
}

fn invalid_correction(error: CorrectionTextError, target: &str) -> CommandError {
    let hint = match error {
        CorrectionTextError::Empty => {
            let (name, _) = split_target(target);
            format!("to remove the item, delete its line in the file: memoird show {name}")
        }
        CorrectionTextError::InvalidCitation(_) => keep_citation_hint(target, "TEXT"),
    };
    CommandError::usage(error).hint(hint)
}

fn keep_citation_hint(target: &str, text: &str) -> String {
    format!("to keep the current citation: memoird correct {target} \"{text}\"")
}

/// Adds a hint to the error of a citation of a missing line.
fn missing_line_error(error: CorrectError, target: &str, words: &CorrectionText) -> CommandError {
    let hint = match &error {
        CorrectError::NoLine { address, is_log_there: true } => {
            format!("to see its lines: memoird show {}", address.stem)
        }
        CorrectError::NoLine { .. } => keep_citation_hint(target, &words.text),
        _ => return error.into(),
    };
    CommandError::from(error).hint(hint)
}

/// Returns the error for a line of a log, with hints to correct the items that cite it instead.
fn log_line_error(root: &MemoryRoot, path: &str, line: u32) -> CommandError {
    let what = format!(
        "cannot correct `{path}`: memoird does not change logs; edit line {line} yourself, or \
         correct the items derived from it"
    );
    let error = CommandError::usage(what);
    let stem = path.rsplit('/').next().and_then(|it| it.strip_suffix(".md"));
    let database = root.vault.layout().database();
    let items = stem
        .and_then(|it| it.parse::<Stem>().ok())
        .and_then(|stem| Lineage::open_existing(&database).ok()??.items_citing(&stem, line).ok());
    let items = items.unwrap_or_default();
    if items.is_empty() {
        return error.hint(format!("no item cites line {line}"));
    }
    items.iter().fold(error, |error, item| {
        error.hint(format!("memoird correct {}:{} \"TEXT\"", item.path, item.line))
    })
}

impl From<CorrectError> for CommandError {
    fn from(error: CorrectError) -> Self {
        let (kind, hint) = match error {
            CorrectError::Pass(error) => return error.into(),
            CorrectError::Vault(error) => return error.into(),
            CorrectError::Missing { .. } => {
                (CommandErrorKind::Usage, Some("memoird status".to_owned()))
            }
            CorrectError::NeedsLine { ref path } => (
                CommandErrorKind::Usage,
                Some(format!("to see the line of each item: memoird trace {path}")),
            ),
            CorrectError::NoItem { ref path, nearest, .. } => (
                CommandErrorKind::Usage,
                nearest.map(|it| format!("memoird correct {path}:{it} \"TEXT\"")),
            ),
            CorrectError::Changed { .. } => (CommandErrorKind::Busy, None),
            CorrectError::NotOurs { .. } | CorrectError::NoLine { .. } => {
                (CommandErrorKind::Usage, None)
            }
            CorrectError::Unreadable { .. } => {
                (CommandErrorKind::Data, Some("memoird doctor".to_owned()))
            }
        };
        Self::new(kind, error).hints_from(hint)
    }
}
