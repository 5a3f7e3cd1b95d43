//! What a person said of contradictions between curated files and newer logs.

use crate::{
    compaction::{
        Compactor,
        error::CompactionError,
        integrity::vanished_files::refuse_if_vanished,
        journal::{Journal, decision_file::DecisionFile},
    },
    engine::extractive::NoteContradiction,
    memory::{
        decision::{Decision, DecisionKind, Decisions, Verdict},
        hash::ContentHash,
    },
};

/// A statement of a curated file that newer logs contradict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReviewContradiction {
    pub id: String,
    /// The file, relative to the root.
    pub path: String,
    pub found: NoteContradiction,
    /// The verdict; `None` while it waits.
    pub verdict: Option<Verdict>,
}

impl ReviewContradiction {
    pub(crate) fn new(path: String, found: NoteContradiction, decisions: &Decisions) -> Self {
        let words = words_of(&found);
        let id = format!("c{}", ContentHash::of(format!("{path} {words}")).hex8());
        let verdict = decisions.review_verdict(&path, &words);
        Self { id, path, found, verdict }
    }
}

/// Returns the words by which a decision names a contradiction.
fn words_of(found: &NoteContradiction) -> String {
    format!("{} / {}", found.text, found.log_text)
}

impl Compactor<'_> {
    /// Records that contradictions are none, or with `lifted` withdraws that.
    pub(crate) fn refuse_contradictions(
        &mut self,
        refused: &[ReviewContradiction],
        lifted: bool,
    ) -> Result<(), CompactionError> {
        if refused.is_empty() {
            return Ok(());
        }
        let _alone = self.context.acquire_run_lock(&|| false)?;
        let now = (self.context.clock)();
        refuse_if_vanished(&self.context, false)?;
        Journal::new(&mut self.context).recover(now)?;
        let decisions = DecisionFile::new(&self.context).create_key()?;
        let what = if lifted { DecisionKind::Restored } else { DecisionKind::Refused };
        let decision = |it: &ReviewContradiction| {
            let hashes = decisions.line_hashes(&words_of(&it.found)).collect();
            Decision { at: now, what, path: it.path.clone(), hashes }
        };
        let made: Vec<Decision> = refused.iter().map(decision).collect();
        DecisionFile::new(&self.context).append(&made)?;
        self.record_review_run(lifted, now)
    }
}
