//! A person's words in the place of an item's, here and above.
//!
//! [`Draft::new`] finds the item and says what would stand there; it writes nothing, so a dry run
//! ends there. [`Compactor::correct`] writes that in a run of its own, which `undo` can take back,
//! and folds in the same run what became due above it: the month of that week, the wisdom of that
//! month. Called by `correct`.

use std::collections::BTreeMap;

use super::{
    Begun, Compactor, JobError, PassError, Passed, View, Watcher,
    commit::{NewFile, Recorded},
    observe::Noticing,
    plan::{self, Job, Reason, Selection},
    records,
    report::PassReport,
};
use crate::{
    memory::{
        address::{Address, Citation},
        correction::{self, Corrected, PlaceError, Words},
        document::Summary,
        item::Tier,
        period::{Grain, Period},
        typed::TypedMemory,
    },
    store::{
        layout::FileKind,
        lineage::jobs::RunId,
        vault::{Vault, VaultError},
    },
};

/// What a person asks for.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The file, relative to the root.
    pub path: &'a str,
    /// What it is.
    pub kind: FileKind,
    /// Any line of the item; of a typed memory none for its statement.
    pub line: Option<u32>,
    /// What to put there.
    pub words: &'a Words,
}

/// A correction that is not written yet.
#[derive(Clone, Debug)]
pub struct Draft {
    /// The file, relative to the root.
    pub path: String,
    /// What changes.
    pub corrected: Corrected,
    /// What rests on the item.
    pub above: Vec<(Tier, Period)>,
    standing: String,
}

/// Why nothing can be put right.
#[derive(Debug, thiserror::Error)]
pub enum CorrectError {
    /// Ends the verb.
    #[error(transparent)]
    Pass(#[from] PassError),
    /// The file cannot be read or written, or a person was faster.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// There is no such file.
    #[error("there is no `{path}`")]
    Missing {
        /// The file.
        path: String,
    },
    /// Which item is not said.
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
    /// Only a person writes it.
    #[error("`{path}` is {what}; memoird does not change it")]
    NotOurs {
        /// The file.
        path: String,
        /// What it is.
        what: &'static str,
    },
    /// A line that is cited is not there.
    #[error("`{address}` is cited, and there is no such line")]
    NoLine {
        /// The line.
        address: Address,
        /// Whether its log is.
        is_log_there: bool,
    },
    /// The file cannot be read as what it should be.
    #[error("{path}: {reason}")]
    Unreadable {
        /// The file.
        path: String,
        /// Why.
        reason: String,
    },
}

impl Draft {
    /// Finds the item and puts the words there. Writes nothing.
    ///
    /// # Errors
    ///
    /// Returns why there is nothing to put right.
    pub fn new(vault: &Vault, asked: &Asked<'_>) -> Result<Self, CorrectError> {
        let Asked { path, kind, line, words } = *asked;
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
        let mut above = Vec::new();
        let found = match kind {
            FileKind::Wisdom => correction::of_wisdom(&text, needed()?, words),
            FileKind::Memory => {
                let memory =
                    TypedMemory::parse(name.as_ref(), &text).map_err(|e| unreadable(&e))?;
                if memory.recorded_body.is_none() {
                    return refused("a memory of your own: edit it");
                }
                // Months take a memory in by its newest source.
                let day = memory.updated.map(|it| Period::containing(Grain::Week, it));
                above.extend(day.and_then(Period::parent).map(|it| (Tier::Wisdom, it)));
                let hash_of = |at: &Address| line_hash(vault, at).ok().flatten();
                correction::of_memory(&memory, &text, line, words, &hash_of)
            }
            _ => {
                let period = name.strip_suffix(".md").and_then(|it| it.parse::<Period>().ok());
                let period = period.ok_or_else(missing)?;
                let summary = Summary::parse(period, &text).map_err(|e| unreadable(&e))?;
                if summary.header.is_none() {
                    return refused("a file of your own: edit it");
                }
                match period.parent() {
                    Some(month) => above.extend([(Tier::Monthly, month), (Tier::Wisdom, month)]),
                    None => above.push((Tier::Wisdom, period)),
                }
                correction::of_summary(&summary, &text, needed()?, words)
            }
        };
        let corrected = found.map_err(|error| match error {
            PlaceError::NoItem(nearest) => {
                CorrectError::NoItem { path: path.to_owned(), line: line.unwrap_or(1), nearest }
            }
            PlaceError::Sources => CorrectError::Unreadable {
                path: path.to_owned(),
                reason: "its frontmatter was written by hand; change `sources` there".to_owned(),
            },
        })?;
        Ok(Self { path: path.to_owned(), corrected, above, standing: text })
    }

    /// Returns whether the item says so already.
    pub fn is_said(&self) -> bool {
        self.corrected.text == self.standing
    }
}

/// Returns the check beside a source line, if there is such a line.
fn line_hash(vault: &Vault, address: &Address) -> Result<Option<String>, VaultError> {
    let log = vault
        .read_log(&address.stem)?
        .map(|it| crate::privacy::serve(&it, &crate::privacy::Rules::default()));
    Ok(log.and_then(|log| Some(log.line(address.line)?.hash().hex4())))
}

impl Compactor<'_> {
    /// Puts an item right, and, if `fold`, what rests on it and is due by that.
    ///
    /// # Errors
    ///
    /// Returns why nothing was put right, or what stopped the folds above it.
    pub fn correct(
        &mut self,
        asked: &Asked<'_>,
        fold: bool,
        watcher: &mut dyn Watcher,
    ) -> Result<(Draft, Passed), CorrectError> {
        let _alone = self.alone(&|| watcher.is_stopped())?;
        let now = (self.clock)();
        self.refuse_if_missing(false)?;
        self.recover(now)?;
        self.finish_forgetting(now, false)?;
        let finished = self.finish_undoing(now, false)?.into_iter().collect();
        let (view, put_back) = self.look_mended(now)?;
        view.refuse_held(|it| it == asked.path)?;
        let report = PassReport { put_back, finished, ..PassReport::default() };
        let mut noticing = Noticing { report, ..Noticing::new(TRIGGER, now) };
        // What a person did by hand before is told apart from this.
        self.observe(&mut noticing, &view)?;
        let Noticing { mut run, mut report, .. } = noticing;
        let draft = Draft::new(self.vault, asked)?;
        if !draft.is_said() {
            let run = self.run(&mut run, TRIGGER, now)?;
            self.put_right(run, &draft)?;
        }
        let view = self.look(now)?;
        let mut tiers = Vec::new();
        let mut period = None;
        if fold && !draft.is_said() {
            tiers.extend(draft.above.iter().map(|it| it.0));
            period = draft.above.first().map(|it| it.1);
        }
        // Without a period nothing is asked for.
        let selection = Selection { tiers, period, ..Selection::default() };
        let nothing = selection.tiers.is_empty();
        if asked.kind == FileKind::Memory && !nothing {
            self.distil_again(&mut run, &draft, &view, watcher, &mut report)?;
        }
        let mut selection = if nothing { no_work() } else { selection };
        let begun = Begun { trigger: TRIGGER, now, run, view, report };
        let passed = self.go_on(begun, &mut selection, watcher)?;
        Ok((draft, passed))
    }

    /// Writes the file and records it.
    fn put_right(&mut self, run: RunId, draft: &Draft) -> Result<(), CorrectError> {
        let Draft { path, corrected, standing, .. } = draft;
        let text = corrected.text.clone();
        let document = records::of_path(self.vault.layout(), path, &text);
        let recorded =
            Recorded { documents: document.into_iter().collect(), ..Recorded::default() };
        let file =
            NewFile { path: path.clone(), text: Some(text), standing: Some(standing.clone()) };
        match self.write(Some(run), None, &[file], &recorded) {
            Ok(()) => Ok(()),
            Err(JobError::Critical(error)) => Err(error.into()),
            Err(JobError::Vault(error)) => Err(error.into()),
            Err(error) => {
                Err(CorrectError::Unreadable { path: path.clone(), reason: error.to_string() })
            }
        }
    }

    /// Distils the month of a corrected memory again: nothing else of the month has changed, so it is
    /// not due, and only entries that rest on it are touched.
    fn distil_again(
        &mut self,
        run: &mut Option<RunId>,
        draft: &Draft,
        view: &View,
        watcher: &mut dyn Watcher,
        report: &mut PassReport,
    ) -> Result<(), CorrectError> {
        for &(tier, period) in &draft.above {
            let Some(month) = view.inventory.monthly.get(&period) else { continue };
            // A month that was never distilled takes the memory in when its time comes.
            if !view.record.distilled.contains_key(&period) {
                continue;
            }
            let inputs = BTreeMap::from([(period.to_string(), month.body_hash.clone())]);
            let fingerprint = plan::fingerprint(tier, period, &inputs);
            let reason = Reason::Changed(vec![draft.path.clone()]);
            let job = Job { tier, period, reason, inputs, fingerprint, partial: false };
            let run = self.run(run, TRIGGER, (self.clock)())?;
            self.make_wisdom(run, &[job], view, watcher, report)?;
        }
        Ok(())
    }
}

/// What began the run.
const TRIGGER: &str = "correct";

/// Asks for nothing: no month is extracted.
fn no_work() -> Selection {
    Selection {
        tiers: vec![Tier::Extract],
        period: Some(Period::containing(Grain::Month, chrono::NaiveDate::default())),
        ..Selection::default()
    }
}
