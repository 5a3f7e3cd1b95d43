//! `memoird correct`: corrects an item and everything derived from it.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{GlobalArgs, error_report::exit_code_if_failed, ui::Ui};
use crate::{
    compaction::{
        self, RunOutcome,
        correct::{CorrectError, CorrectionDraft, CorrectionRequest},
        report::JobReport,
    },
    memory::{
        address::Stem,
        correction::{CorrectionText, CorrectionTextError},
        item::{Item, Tier},
    },
    operations::{
        error::{CommandError, CommandErrorKind, CommandResult},
        workspace::{Invocation, MemoryRoot, require_writer},
    },
    recall::trace::split_target,
    store::{
        db::lineage::{Lineage, query::ItemLocation, record::DocumentKind},
        fs::layout::FileKind,
    },
};

/// Correct an item and everything derived from it
///
/// TEXT replaces the text of the bullet, entry or memory. The citation stays unless TEXT ends with its
/// own. From then on the item is yours: memoird keeps it as it is, and updates what is derived from it.
#[derive(Debug, clap::Args)]
pub(super) struct CorrectArgs {
    /// A line of a weekly or monthly file or of WISDOM.md, or a typed memory
    /// (2026-W14:19, memory/monthly/2026-04.md:9, WISDOM.md:12)
    #[arg(value_name = "PATH:LINE")]
    target: String,
    /// The correct text
    #[arg(value_name = "TEXT", required = true)]
    text: Vec<String>,
    /// Leave what is derived from it to the next `compact`
    #[arg(long)]
    no_fold: bool,
    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
}

/// What `--json` prints; a document of `schema/correct.schema.json`.
#[derive(Serialize)]
struct CorrectReport<'a> {
    path: &'a str,
    line: u32,
    before: &'a str,
    after: &'a str,
    citation: Option<String>,
    dry_run: bool,
    changed: bool,
    above: Vec<DependentFile>,
    same_source: Vec<SameSourceItem<'a>>,
    jobs: &'a [JobReport],
}

#[derive(Serialize)]
struct DependentFile {
    tier: &'static str,
    period: String,
}

/// An item that comes from the same log lines.
#[derive(Serialize)]
struct SameSourceItem<'a> {
    path: &'a str,
    line: u32,
    kind: &'static str,
}

pub(super) fn run(global: &GlobalArgs, args: &CorrectArgs, ui: &Ui) -> CommandResult {
    let (call, root) = Invocation::with_root_to_write(global, ui)?;
    let text = args.text.join(" ");
    if root.rules.mask_secrets(&text) != text {
        ui.warn("the text contains a secret, which is masked");
    }
    let options =
        CorrectOptions { update_dependents: !args.no_fold, dry_run: args.dry_run, seen: None };
    let (draft, outcome) = correct_item(&call, &root, &args.target, &text, options)?;
    let failed = outcome.as_ref().is_some_and(|it| it.report.failed > 0);
    // The item is corrected, whatever can be found out about others.
    let same_source = items_of_same_source(&root, &draft).unwrap_or_else(|error| {
        ui.warn(format!("cannot look for other items of these log lines: {error}"));
        Vec::new()
    });
    show(&root, &draft, args, outcome.as_ref(), &same_source, ui);
    Ok(exit_code_if_failed(failed))
}

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
fn items_of_same_source(
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

fn show(
    root: &MemoryRoot,
    draft: &CorrectionDraft,
    args: &CorrectArgs,
    outcome: Option<&RunOutcome>,
    same_source: &[ItemLocation],
    ui: &Ui,
) {
    let jobs = outcome.map_or(&[][..], |it| &it.report.jobs);
    let (path, corrected) = (&draft.path, &draft.corrected);
    let line = corrected.line;
    let (before, after) =
        (root.rules.mask_secrets(&corrected.before), root.rules.mask_secrets(&corrected.after));
    let (before, after) = (&*before, &*after);
    if ui.is_json() {
        let above = draft.dependents.iter();
        ui.json(&CorrectReport {
            path,
            line,
            before,
            after,
            citation: corrected.citation.as_ref().map(ToString::to_string),
            dry_run: args.dry_run,
            changed: !draft.is_unchanged() && !args.dry_run,
            above: above
                .map(|(tier, period)| DependentFile {
                    tier: tier.name(),
                    period: period.to_string(),
                })
                .collect(),
            same_source: same_source
                .iter()
                .map(|it| SameSourceItem { path: &it.path, line: it.line, kind: it.kind.name() })
                .collect(),
            jobs,
        });
        return;
    }
    if draft.is_unchanged() {
        ui.note(format!("{path}:{line} already says that; nothing was changed"));
        return;
    }
    ui.heading(format!("{path}:{line}"));
    for (sign, text, other) in [("-", before, after), ("+", after, before)] {
        for line in text.lines().filter(|line| !other.lines().any(|it| it == *line)) {
            ui.data(format!("{sign} {line}"));
        }
    }
    let names: Vec<String> = draft
        .dependents
        .iter()
        .map(|(tier, period)| match tier {
            Tier::Wisdom => "the entries of WISDOM.md that come from months".to_owned(),
            tier => format!("{tier} {period}"),
        })
        .collect();
    let above = names.join(" and ");
    let Some(RunOutcome { report, plan, .. }) = outcome else {
        ui.note("nothing was changed");
        if !above.is_empty() {
            ui.note(format!("would also update what is derived from it: {above}"));
        }
        return;
    };
    ui.success("corrected; the item is yours now, and memoird will not change it");
    for job in &report.jobs {
        let what = job.path.as_deref().unwrap_or(job.tier);
        let line = match job.outcome {
            "written" => format!("{what} was updated"),
            "unchanged" => format!("{what} did not change"),
            other => format!("{what} {other}: {}", job.reason),
        };
        if matches!(job.outcome, "failed" | "parked") { ui.warn(line) } else { ui.note(line) }
    }
    if args.no_fold && !above.is_empty() {
        ui.note(format!("the next `memoird compact` updates {above}"));
    } else if !plan.due_after.is_empty() || (report.jobs.is_empty() && !draft.dependents.is_empty())
    {
        ui.note(format!("{above} will be updated when due; see `memoird status`"));
    }
    show_same_source(same_source, ui);
}

/// Says which other items have the same source, and how to correct them.
fn show_same_source(items: &[ItemLocation], ui: &Ui) {
    const SHOWN_MAX: usize = 5;
    if items.is_empty() {
        return;
    }
    ui.note("these say the same, from the same log lines, and were not corrected:");
    for item in items.iter().take(SHOWN_MAX) {
        ui.note(format!("  memoird correct {}:{} \"TEXT\"", item.path, item.line));
    }
    if let Some(more) = items.len().checked_sub(SHOWN_MAX).filter(|it| *it > 0) {
        ui.note(format!("  and {more} more; --json lists them"));
    }
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
