//! Turns what people deleted in generated files or wrote back into decisions about the cited lines.

use std::collections::{BTreeSet, HashMap};

use chrono::{DateTime, Utc};

use super::Reconciler;
use crate::compaction::{
    error::CompactionError,
    journal::{decision_file::DecisionFile, records},
    snapshot::RootSnapshot,
};
use crate::{
    memory::{
        address::{Citation, is_removed_line},
        decision::{Decision, DecisionKind},
        item::Item,
        log::DailyLog,
    },
    privacy::{self, PrivacyRules, SanitizedLine, SanitizedLog},
    store::db::lineage::record::ItemRecord,
};

/// Returns whether a line says more than a heading that many items share.
fn is_statement(line: &str) -> bool {
    !line.trim().is_empty() && !line.trim_start().starts_with('#')
}

/// The texts of cited lines.
#[derive(Default)]
struct CitedTexts {
    texts: Vec<String>,
    /// Whether any of the lines is no longer in its log.
    any_vanished: bool,
}

impl Reconciler<'_, '_> {
    /// Compares the items of a file before and after an edit, and returns the decisions that
    /// follow.
    pub(super) fn decisions_from_edit(
        &self,
        view: &RootSnapshot,
        path: &str,
        before: &[ItemRecord],
        after: &[ItemRecord],
        now: DateTime<Utc>,
    ) -> Result<Vec<Decision>, CompactionError> {
        let mut left: HashMap<&str, usize> = HashMap::new();
        for item in after {
            *left.entry(&item.hash).or_default() += 1;
        }
        let rules = view.inventory.rules.clone();
        let mut made = Vec::new();
        let mut key = None;
        let mut decide = |what, texts: &[String]| -> Result<(), CompactionError> {
            if texts.is_empty() {
                return Ok(());
            }
            // A key is created for the first decision only.
            let key = match &mut key {
                Some(key) => key,
                none => none.insert(match &view.inventory.decisions {
                    known if known.has_key() => known.clone(),
                    _ => DecisionFile::new(self.context).create_key()?,
                }),
            };
            let hashes = texts.iter().flat_map(|it| key.line_hashes(it)).collect();
            made.push(Decision { at: now, what, path: path.to_owned(), hashes });
            Ok(())
        };
        let known: BTreeSet<&str> = before.iter().map(|it| &it.hash[..]).collect();
        let mut new = Vec::new();
        for item in after.iter().filter(|it| !known.contains(&it.hash[..])) {
            let Some(citation) = &item.citation else { continue };
            // A person writes back the recorded lines; another machine cites the present ones.
            let texts =
                [self.cited_lines(citation, &rules)?.texts, self.present_texts(citation, &rules)];
            new.push(texts);
        }
        for item in before {
            let kept =
                left.get_mut(&item.hash[..]).filter(|it| **it > 0).map(|it| *it -= 1).is_some();
            let Some(citation) = item.citation.as_ref().filter(|_| !kept) else { continue };
            let cited = self.cited_lines(citation, &rules)?;
            // An item with other words and the same sources was changed, not deleted. If the lines
            // vanished too, the folder was switched to another state of it.
            let is_same = |it: &String| is_statement(it) && cited.texts.contains(it);
            let is_reworded = after.iter().any(|it| it.citation.as_ref() == Some(citation))
                || new.iter().flatten().flatten().any(is_same);
            if !cited.any_vanished && !is_reworded {
                decide(DecisionKind::Deleted, &cited.texts)?;
            }
        }
        let decisions = &view.inventory.decisions;
        let is_deleted =
            |it: &&Vec<String>| decisions.is_deleted(path, it.iter().map(String::as_str));
        for texts in new.iter().filter_map(|it| it.iter().find(is_deleted)) {
            decide(DecisionKind::Restored, texts)?;
        }
        Ok(made)
    }

    /// Returns the present texts of cited lines.
    fn present_texts(&self, citation: &Citation, rules: &PrivacyRules) -> Vec<String> {
        let mut texts = Vec::new();
        for (stem, lines) in citation.files() {
            let log = self.context.vault.read_log(stem).ok().flatten();
            let Some(log) = log.map(|it| privacy::sanitize(&it, rules)) else { continue };
            texts.extend(lines.iter().filter_map(|it| Some(log.line(it)?.text().to_owned())));
        }
        texts
    }

    /// Returns the texts of cited lines as they were when they were cited, as far as they are
    /// known.
    ///
    /// The log may have changed at the same time, so the present lines of these numbers may be
    /// others. The recorded hashes identify the old lines, and the log or the history has their
    /// words.
    fn cited_lines(
        &self,
        citation: &Citation,
        rules: &PrivacyRules,
    ) -> Result<CitedTexts, CompactionError> {
        let mut cited = CitedTexts::default();
        for (stem, lines) in citation.files() {
            let lines = lines.iter().filter(|it| !is_removed_line(*it));
            // The scan reports a log that cannot be read; its lines cannot come back.
            let log = self.context.vault.read_log(stem).ok().flatten();
            let log = log.map(|it| privacy::sanitize(&it, rules));
            let hash_of = |line: &SanitizedLine| {
                if stem.is_summary() {
                    records::summary_line_hash(line.text())
                } else {
                    line.hash().prefix64()
                }
            };
            let text_of = |log: Option<&SanitizedLog>, hash| {
                let line = log?.lines().iter().find(|it| hash_of(it) == hash)?;
                Some(line.text().to_owned())
            };
            let known = self.context.lineage.log(stem)?;
            let same = known.as_ref().map(|it| it.hash) == log.as_ref().map(SanitizedLog::hash);
            let Some(known) = known.filter(|_| !same) else {
                let line = |it| Some(log.as_ref()?.line(it)?.text().to_owned());
                cited.texts.extend(lines.filter_map(line));
                continue;
            };
            let bytes = self.context.lineage.content(known.hash)?;
            let recorded_log = bytes.and_then(|it| DailyLog::parse(stem.clone(), &it).ok());
            let recorded_log = recorded_log.map(|it| privacy::sanitize(&it, rules));
            for hash in lines.filter_map(|it| known.line_hash(it)) {
                let text = text_of(log.as_ref(), hash);
                cited.any_vanished |= text.is_none();
                cited.texts.extend(text.or_else(|| text_of(recorded_log.as_ref(), hash)));
            }
        }
        Ok(cited)
    }

    /// Records the deletion of bullets that the summary job would write again. If the database was
    /// lost before, only the file itself shows the deletion.
    pub(crate) fn record_deleted_items(
        &self,
        view: &RootSnapshot,
        path: &str,
        items: &[Item],
        now: DateTime<Utc>,
    ) -> Result<(), CompactionError> {
        let decisions = &view.inventory.decisions;
        let mut gone = Vec::new();
        for item in items {
            let Some(citation) = &item.citation else { continue };
            let texts = self.cited_lines(citation, &view.inventory.rules)?.texts;
            if !decisions.is_deleted(path, texts.iter().map(String::as_str)) {
                let citation = item.citation.clone();
                gone.push(ItemRecord { line: 0, hash: item.hash(), citation });
            }
        }
        let made = self.decisions_from_edit(view, path, &gone, &[], now)?;
        DecisionFile::new(self.context).append(&made)
    }
}
