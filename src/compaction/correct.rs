//! Replaces the words of an item by a person's, here and in what is derived from it.
//!
//! [`CorrectionDraft::new`] finds the item and drafts the new text; it writes nothing, so a dry run
//! ends there. `Compactor::correct` writes it in a run of its own, which `undo` can take back, and
//! then does the jobs above it that became due: the month of that week, the wisdom of that month.
//! Called by `correct`.

use std::collections::BTreeMap;

use super::{
    Compactor,
    context::TierRun,
    error::{CompactionError, JobFailure},
    forget::Forgetter,
    integrity::{repair::Repairer, vanished_files::refuse_if_vanished},
    journal::{
        Journal,
        commit::{FileWrite, RecordedChanges},
        records,
    },
    plan::{self, CompactionJob, DueReason, Selection},
    reconcile::{ReconcileRun, Reconciler},
    report::{RunObserver, RunOutcome, RunReport},
    run::{CompactionRun, ReconciledRun},
    snapshot::RootSnapshot,
    undo::Undoer,
    wisdom::edit::WisdomEditor,
};
use crate::{
    memory::{
        address::{Address, Citation},
        correction::{self, CorrectedFile, CorrectionTargetError, CorrectionText},
        document::Summary,
        hash::ContentHash,
        item::Tier,
        period::{Grain, Period},
        typed::TypedMemory,
    },
    store::{
        db::lineage::jobs::RunId,
        fs::{
            layout::FileKind,
            vault::{Vault, VaultError},
        },
    },
};

/// A request of a person.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CorrectionRequest<'a> {
    /// The file, relative to the root.
    pub path: &'a str,
    pub kind: FileKind,
    /// Any line of the item; `None` for the statement of a typed memory.
    pub line: Option<u32>,
    pub words: &'a CorrectionText,
    /// The [`CorrectionDraft::item_hash`] of the item that the person saw; `None` to correct what is there.
    pub seen: Option<u64>,
}

/// A correction that is not written yet.
#[derive(Clone, Debug)]
pub(crate) struct CorrectionDraft {
    /// The file, relative to the root.
    pub path: String,
    pub corrected: CorrectedFile,
    /// The tiers and periods derived from the item.
    pub dependents: Vec<(Tier, Period)>,
    current: String,
}

/// Why nothing can be corrected.
#[derive(Debug, thiserror::Error)]
pub enum CorrectError {
    /// An error that ends the command.
    #[error(transparent)]
    Pass(#[from] CompactionError),
    /// The file cannot be read or written, or a person wrote it first.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// There is no such file.
    #[error("there is no `{path}`")]
    Missing {
        /// The file.
        path: String,
    },
    /// The request does not say which item.
    #[error("`{path}` has many items; name the line of one")]
    NeedsLine {
        /// The file.
        path: String,
    },
    /// The line belongs to no item.
    #[error("line {line} of `{path}` is no item{}", nearest.map_or(String::new(), |it| format!("; the nearest one begins on line {it}")))]
    NoItem {
        /// The file.
        path: String,
        /// The line.
        line: u32,
        /// Where the nearest item begins.
        nearest: Option<u32>,
    },
    /// There is another item than the person saw.
    #[error("line {line} of `{path}` changed since it was shown; nothing was corrected")]
    Changed {
        /// The file.
        path: String,
        /// Where the item begins.
        line: u32,
    },
    /// Only a person writes the file.
    #[error("`{path}` is {what}; memoird does not change it")]
    NotOurs {
        /// The file.
        path: String,
        /// Its kind.
        what: &'static str,
    },
    /// A cited line does not exist.
    #[error("the cited line `{address}` does not exist")]
    NoLine {
        /// The line.
        address: Address,
        /// Whether its log exists.
        is_log_there: bool,
    },
    /// The file cannot be parsed as its kind.
    #[error("{path}: {reason}")]
    Unreadable {
        /// The file.
        path: String,
        /// Why.
        reason: String,
    },
}

impl CorrectionDraft {
    /// Finds the item and drafts the new text. Writes nothing.
    pub(crate) fn new(
        vault: &Vault,
        request: &CorrectionRequest<'_>,
    ) -> Result<Self, CorrectError> {
        let CorrectionRequest { path, kind, line, words, seen } = *request;
        let refused = |what| Err(CorrectError::NotOurs { path: path.to_owned(), what });
        match kind {
            FileKind::Log => return refused("a log: what people and agents wrote"),
            FileKind::Session => return refused("the record of a session"),
            FileKind::Index => {
                return refused("made from the typed memories; correct one of those");
            }
            FileKind::Weekly | FileKind::Monthly | FileKind::Memory | FileKind::Wisdom => {}
        }
        let missing = || CorrectError::Missing { path: path.to_owned() };
        let text = vault.read_text(path)?.ok_or_else(missing)?;
        for address in words.citation.iter().flat_map(Citation::addresses) {
            let there = line_hash(vault, &address)?.is_some();
            if !there {
                let is_log_there = vault.read_log(&address.stem)?.is_some();
                return Err(CorrectError::NoLine { address, is_log_there });
            }
        }
        let unreadable = |error: &dyn std::error::Error| CorrectError::Unreadable {
            path: path.to_owned(),
            reason: error.to_string(),
        };
        let needed = || line.ok_or_else(|| CorrectError::NeedsLine { path: path.to_owned() });
        let name = path.rsplit('/').next().unwrap_or(path);
        let mut dependents = Vec::new();
        let found = match kind {
            FileKind::Wisdom => correction::correct_wisdom(&text, needed()?, words),
            FileKind::Memory => {
                let memory =
                    TypedMemory::parse(name.as_ref(), &text).map_err(|e| unreadable(&e))?;
                if memory.recorded_body.is_none() {
                    return refused("a memory of your own: edit it");
                }
                // A month contains a memory by its newest source.
                let day = memory.updated.map(|it| Period::containing(Grain::Week, it));
                dependents.extend(day.and_then(Period::parent).map(|it| (Tier::Wisdom, it)));
                let hash_of = |at: &Address| line_hash(vault, at).ok().flatten();
                correction::correct_memory(&memory, &text, line, words, &hash_of)
            }
            _ => {
                let period = name.strip_suffix(".md").and_then(|it| it.parse::<Period>().ok());
                let period = period.ok_or_else(missing)?;
                let summary = Summary::parse(period, &text).map_err(|e| unreadable(&e))?;
                if summary.header.is_none() {
                    return refused("a file of your own: edit it");
                }
                match period.parent() {
                    Some(month) => {
                        dependents.extend([(Tier::Monthly, month), (Tier::Wisdom, month)]);
                    }
                    None => dependents.push((Tier::Wisdom, period)),
                }
                correction::correct_summary(&summary, &text, needed()?, words)
            }
        };
        let corrected = found.map_err(|error| match error {
            CorrectionTargetError::NoItem(nearest) => {
                CorrectError::NoItem { path: path.to_owned(), line: line.unwrap_or(1), nearest }
            }
            CorrectionTargetError::FixedSources => CorrectError::Unreadable {
                path: path.to_owned(),
                reason: "its frontmatter was written by hand; change `sources` there".to_owned(),
            },
        })?;
        let draft = Self { path: path.to_owned(), corrected, dependents, current: text };
        if seen.is_some_and(|it| it != draft.item_hash()) {
            return Err(CorrectError::Changed { path: draft.path, line: draft.corrected.line });
        }
        Ok(draft)
    }

    /// Returns a hash of the item as it is in the file.
    pub(crate) fn item_hash(&self) -> u64 {
        ContentHash::of(&self.corrected.before).prefix64()
    }

    /// Returns whether the item has these words already.
    pub(crate) fn is_unchanged(&self) -> bool {
        self.corrected.text == self.current
    }
}

/// Returns the short hash of a source line, if the line exists.
fn line_hash(vault: &Vault, address: &Address) -> Result<Option<String>, VaultError> {
    let log = vault
        .read_log(&address.stem)?
        .map(|it| crate::privacy::sanitize(&it, &crate::privacy::PrivacyRules::default()));
    Ok(log.and_then(|log| Some(log.line(address.line)?.hash().hex4())))
}

impl Compactor<'_> {
    /// Corrects an item and, if `rewrite`, makes again what is derived from it and due by that.
    pub(crate) fn correct(
        &mut self,
        request: &CorrectionRequest<'_>,
        rewrite: bool,
        watcher: &mut dyn RunObserver,
    ) -> Result<(CorrectionDraft, RunOutcome), CorrectError> {
        let _alone = self.context.acquire_run_lock(&|| watcher.should_stop())?;
        let now = (self.context.clock)();
        refuse_if_vanished(&self.context, false)?;
        Journal::new(&mut self.context).recover(now)?;
        Forgetter::new(&mut self.context).finish_forgetting(now, false)?;
        let finished =
            Undoer::new(&mut self.context).finish_undoing(now, false)?.into_iter().collect();
        let (view, put_back) = Repairer::new(&mut self.context).take_repaired_snapshot(now)?;
        view.refuse_damaged(|it| it == request.path)?;
        let report = RunReport { put_back, finished, ..RunReport::default() };
        let mut reconcile_run = ReconcileRun { report, ..ReconcileRun::new(CORRECT_TRIGGER, now) };
        // What a person edited by hand before is recorded separately.
        Reconciler::new(&mut self.context).reconcile_changes(&mut reconcile_run, &view)?;
        let draft = CorrectionDraft::new(self.context.vault, request)?;
        if !draft.is_unchanged() {
            let run = self.context.ensure_run(&mut reconcile_run.run, CORRECT_TRIGGER, now)?;
            self.write_correction(run, &draft)?;
            // What cites the lines of this file, as a month cites an item of a person, follows first.
            let view = self.context.take_snapshot(now)?;
            Reconciler::new(&mut self.context).reconcile_changes(&mut reconcile_run, &view)?;
        }
        let ReconcileRun { mut run, mut report, .. } = reconcile_run;
        let view = self.context.take_snapshot(now)?;
        let mut tiers = Vec::new();
        let mut period = None;
        if rewrite && !draft.is_unchanged() {
            tiers.extend(draft.dependents.iter().map(|it| it.0));
            period = draft.dependents.first().map(|it| it.1);
        }
        // Without a period nothing is selected.
        let selection = Selection { tiers, period, ..Selection::default() };
        let nothing = selection.tiers.is_empty();
        if request.kind == FileKind::Memory && !nothing {
            self.redistill(&mut run, &draft, &view, watcher, &mut report)?;
        }
        let mut selection = if nothing { empty_selection() } else { selection };
        let begun = ReconciledRun { trigger: CORRECT_TRIGGER, now, run, snapshot: view, report };
        let outcome =
            CompactionRun::new(&mut self.context).run_due_jobs(begun, &mut selection, watcher)?;
        Ok((draft, outcome))
    }

    /// Writes the file and records it.
    fn write_correction(
        &mut self,
        run: RunId,
        draft: &CorrectionDraft,
    ) -> Result<(), CorrectError> {
        let CorrectionDraft { path, corrected, current, .. } = draft;
        let text = corrected.text.clone();
        let document = records::of_path(self.context.vault.layout(), path, &text);
        let recorded = RecordedChanges {
            documents: document.into_iter().collect(),
            ..RecordedChanges::default()
        };
        let file =
            FileWrite { path: path.clone(), text: Some(text), current: Some(current.clone()) };
        match Journal::new(&mut self.context).write_files(Some(run), None, &[file], &recorded) {
            Ok(()) => Ok(()),
            Err(JobFailure::Critical(error)) => Err(error.into()),
            Err(JobFailure::Vault(error)) => Err(error.into()),
            Err(error) => {
                Err(CorrectError::Unreadable { path: path.clone(), reason: error.to_string() })
            }
        }
    }

    /// Distills the month of a corrected memory again: nothing else of the month changed, so it is
    /// not due, and only entries that cite it are edited.
    fn redistill(
        &mut self,
        run: &mut Option<RunId>,
        draft: &CorrectionDraft,
        view: &RootSnapshot,
        watcher: &mut dyn RunObserver,
        report: &mut RunReport,
    ) -> Result<(), CorrectError> {
        for &(tier, period) in &draft.dependents {
            let Some(month) = view.inventory.monthly.get(&period) else { continue };
            // A month that was never distilled includes the memory when it becomes due.
            if !view.record.distilled.contains_key(&period) {
                continue;
            }
            let inputs = BTreeMap::from([(period.to_string(), month.body_hash.clone())]);
            let fingerprint = plan::fingerprint(tier, period, &inputs);
            let reason = DueReason::Changed(vec![draft.path.clone()]);
            let job = CompactionJob { tier, period, reason, inputs, fingerprint, partial: false };
            let run = self.context.ensure_run(run, CORRECT_TRIGGER, (self.context.clock)())?;
            WisdomEditor::new(&mut self.context)
                .run_jobs(&[job], &mut TierRun { run, view, watcher, report })?;
        }
        Ok(())
    }
}

const CORRECT_TRIGGER: &str = "correct";

/// Selects nothing: no month is extracted.
fn empty_selection() -> Selection {
    Selection {
        tiers: vec![Tier::Extract],
        period: Some(Period::containing(Grain::Month, chrono::NaiveDate::default())),
        ..Selection::default()
    }
}
