//! `memoird correct`: puts an item right, here and above.

use std::process::ExitCode;

use serde::Serialize;

use super::{
    GlobalArgs,
    compact::require_writer,
    error::{CommandError, CommandErrorKind},
    ui::Ui,
    workspace::{Invocation, MemoryRoot},
};
use crate::{
    compaction::{
        self, RunOutcome,
        correct::{CorrectError, CorrectionDraft, CorrectionRequest},
        plan::CompactionPlan,
        report::{JobReport, RunReport},
    },
    memory::{
        address::Stem,
        correction::{CorrectionText, CorrectionTextError},
        item::Tier,
    },
    recall::trace::split_target,
    store::{db::lineage::Lineage, fs::layout::FileKind},
};

/// Put an item right, here and above
///
/// The words take the place of the bullet's, the entry's, or the memory's; its citation stays, unless
/// the words end in one of their own. From then on the item is yours: memoird keeps it as it is, and
/// what rests on it says the same.
#[derive(Debug, clap::Args)]
pub(super) struct CorrectArgs {
    /// A line of a weekly or monthly file or of WISDOM.md, or a typed memory
    /// (2026-W14:19, memory/monthly/2026-04.md:9, WISDOM.md:12)
    #[arg(value_name = "PATH:LINE")]
    target: String,
    /// What is right
    #[arg(value_name = "TEXT", required = true)]
    text: Vec<String>,
    /// Leave what rests on it to the next `compact`
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
    jobs: &'a [JobReport],
}

#[derive(Serialize)]
struct DependentFile {
    tier: &'static str,
    period: String,
}

pub(super) fn run(
    global: &GlobalArgs,
    args: &CorrectArgs,
    ui: &Ui,
) -> Result<ExitCode, CommandError> {
    let call = Invocation::load(global)?;
    let root = call.selected_root(global)?;
    let said = args.text.join(" ");
    if root.rules.mask_secrets(&said) != said {
        ui.warn("there is a secret in these words; a mark takes its place");
    }
    let how = CorrectOptions { update_dependents: !args.no_fold, dry_run: args.dry_run };
    let (draft, passed) = correct_item(&call, &root, &args.target, &said, how)?;
    let failed = passed.as_ref().is_some_and(|it| it.report.failed > 0);
    show(&root, &draft, args, passed.as_ref().map(|it| (&it.report, &it.plan)), ui);
    Ok(if failed { CommandErrorKind::Job.exit_code().into() } else { ExitCode::SUCCESS })
}

/// What is done beside the words.
#[derive(Clone, Copy, Debug)]
pub(super) struct CorrectOptions {
    /// Whether what rests on the item follows at once.
    pub(super) update_dependents: bool,
    /// Whether nothing is written.
    pub(super) dry_run: bool,
}

/// Puts the item at `PATH:LINE` right; where nothing is to be written, only says what would change.
pub(super) fn correct_item(
    call: &Invocation,
    root: &MemoryRoot,
    target: &str,
    said: &str,
    how: CorrectOptions,
) -> Result<(CorrectionDraft, Option<RunOutcome>), CommandError> {
    let words = CorrectionText::parse(&root.rules.mask_secrets(said))
        .map_err(|error| invalid_correction(error, target))?;
    let (name, line) = split_target(target);
    let (path, kind) = root.resolve_file(&call.environment, name)?;
    if let (FileKind::Log | FileKind::Session, Some(line)) = (kind, line) {
        return Err(log_line_error(root, &path, line));
    }
    let asked = CorrectionRequest { path: &path, kind, line, words: &words };
    if how.dry_run {
        let lineage = Lineage::open_existing(&root.vault.layout().database())?;
        let view = compaction::read_snapshot(&root.vault, lineage.as_ref())?;
        view.refuse_damaged(|it| it == path)?;
        let draft = CorrectionDraft::new(&root.vault, &asked)
            .map_err(|error| missing_line_error(error, target, &words))?;
        return Ok((draft, None));
    }
    require_writer(call, root)?;
    let engine = root.engine(call)?;
    let mut lineage = root.lineage()?;
    let clock = call.clock();
    let mut compactor = root.compactor(&mut lineage, engine.as_ref(), &clock);
    let (draft, passed) = compactor
        .correct(&asked, how.update_dependents, &mut ())
        .map_err(|error| missing_line_error(error, target, &words))?;
    Ok((draft, Some(passed)))
}

/// Says what a person can do about words that cannot be put there.
fn invalid_correction(error: CorrectionTextError, target: &str) -> CommandError {
    let hint = match error {
        CorrectionTextError::Empty => {
            let (name, _) = split_target(target);
            format!("memoird show {name}, and delete its line in the file")
        }
        CorrectionTextError::InvalidCitation(_) => keep_citation_hint(target, "TEXT"),
    };
    CommandError::new(CommandErrorKind::Usage, error).hint(hint)
}

fn keep_citation_hint(target: &str, text: &str) -> String {
    format!("memoird correct {target} \"{text}\", which keeps the lines that it cites")
}

/// Says what a person can do about a citation of a line that is not there.
fn missing_line_error(error: CorrectError, target: &str, words: &CorrectionText) -> CommandError {
    let hint = match &error {
        CorrectError::NoLine { address, is_log_there: true } => {
            format!("memoird show {}, which lines there are", address.stem)
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
    done: Option<(&RunReport, &CompactionPlan)>,
    ui: &Ui,
) {
    let jobs = done.map_or(&[][..], |(report, _)| &report.jobs);
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
            jobs,
        });
        return;
    }
    if draft.is_unchanged() {
        ui.note(format!("{path}:{line} says so already; nothing was changed"));
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
            Tier::Wisdom => "WISDOM.md".to_owned(),
            tier => format!("{tier} {period}"),
        })
        .collect();
    let above = names.join(" and ");
    let Some((report, plan)) = done else {
        ui.note("nothing was changed");
        if !above.is_empty() {
            ui.note(format!("what rests on it would follow: {above}"));
        }
        return;
    };
    ui.success("written; it is yours now and stays as it is");
    for job in &report.jobs {
        let what = job.path.as_deref().unwrap_or(job.tier);
        let told = match job.outcome {
            "written" => format!("{what} follows"),
            "unchanged" => format!("{what} says nothing else by it"),
            other => format!("{what} {other}: {}", job.reason),
        };
        if matches!(job.outcome, "failed" | "parked") { ui.warn(told) } else { ui.note(told) }
    }
    if args.no_fold && !above.is_empty() {
        ui.note(format!("{above} will follow with the next `memoird compact`"));
    } else if !plan.due_after.is_empty() || (report.jobs.is_empty() && !draft.dependents.is_empty())
    {
        ui.note(format!("{above} will follow when its time comes; `memoird status` says when"));
    }
}

/// Says that logs are not ours to change, and what of ours rests on the line.
fn log_line_error(root: &MemoryRoot, path: &str, line: u32) -> CommandError {
    let what = format!(
        "`{path}` holds what people and agents wrote, and memoird does not change it; \
         edit line {line} there, or correct what was made of it"
    );
    let error = CommandError::new(CommandErrorKind::Usage, what);
    let stem = path.rsplit('/').next().and_then(|it| it.strip_suffix(".md"));
    let database = root.vault.layout().database();
    let items = stem
        .and_then(|it| it.parse::<Stem>().ok())
        .and_then(|stem| Lineage::open_existing(&database).ok()??.items_citing(&stem, line).ok());
    let items = items.unwrap_or_default();
    if items.is_empty() {
        return error.hint(format!("nothing of memoird's rests on line {line}"));
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
                Some(format!("memoird trace {path}, which shows the line of each")),
            ),
            CorrectError::NoItem { ref path, nearest, .. } => (
                CommandErrorKind::Usage,
                nearest.map(|it| format!("memoird correct {path}:{it} \"TEXT\"")),
            ),
            CorrectError::NotOurs { .. } | CorrectError::NoLine { .. } => {
                (CommandErrorKind::Usage, None)
            }
            CorrectError::Unreadable { .. } => {
                (CommandErrorKind::Data, Some("memoird doctor".to_owned()))
            }
        };
        let wrapped = Self::new(kind, error);
        match hint {
            Some(hint) => wrapped.hint(hint),
            None => wrapped,
        }
    }
}
