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
        address::Citation,
        decision::{Decision, DecisionKind},
        item::Item,
        log::DailyLog,
    },
    privacy::{self, PrivacyRules, SanitizedLine, SanitizedLog},
    store::db::lineage::record::ItemRecord,
};

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
        let mut decide = |what, citation: &Citation| -> Result<(), CompactionError> {
            // A key is created for the first decision only.
            let key = match &mut key {
                Some(key) => key,
                none => none.insert(match &view.inventory.decisions {
                    known if known.has_key() => known.clone(),
                    _ => DecisionFile::new(self.context).create_key()?,
                }),
            };
            let hashes = self
                .cited_texts(citation, &rules)?
                .iter()
                .filter_map(|it| key.line_hash(it))
                .collect::<Vec<_>>();
            if !hashes.is_empty() {
                made.push(Decision { at: now, what, path: path.to_owned(), hashes });
            }
            Ok(())
        };
        for item in before {
            let kept =
                left.get_mut(&item.hash[..]).filter(|it| **it > 0).map(|it| *it -= 1).is_some();
            let Some(citation) = item.citation.as_ref().filter(|_| !kept) else { continue };
            // An item with other words and the same sources was changed, not deleted.
            let reworded = after.iter().any(|it| it.citation.as_ref() == Some(citation));
            if !reworded {
                decide(DecisionKind::Deleted, citation)?;
            }
        }
        let known: BTreeSet<&str> = before.iter().map(|it| &it.hash[..]).collect();
        for item in after.iter().filter(|it| !known.contains(&it.hash[..])) {
            let Some(citation) = &item.citation else { continue };
            let texts = self.cited_texts(citation, &rules)?;
            if view.inventory.decisions.is_deleted(path, texts.iter().map(String::as_str)) {
                decide(DecisionKind::Restored, citation)?;
            }
        }
        Ok(made)
    }

    /// Returns the texts of cited lines as they were when they were cited, as far as they are
    /// known.
    ///
    /// The log may have changed at the same time, so the present lines of these numbers may be
    /// others. The recorded hashes identify the old lines, and the log or the history has their
    /// words.
    fn cited_texts(
        &self,
        citation: &Citation,
        rules: &PrivacyRules,
    ) -> Result<Vec<String>, CompactionError> {
        let mut texts = Vec::new();
        for (stem, lines) in citation.files() {
            // The scan reports a log that cannot be read; its lines cannot come back.
            let log = self.context.vault.read_log(stem).ok().flatten();
            let log = log.map(|it| privacy::sanitize(&it, rules));
            let text = |log: &SanitizedLog, line| Some(log.line(line)?.text().to_owned());
            let hash_of = |line: &SanitizedLine| {
                if stem.is_summary() {
                    records::summary_line_hash(line.text())
                } else {
                    line.hash().prefix64()
                }
            };
            let Some(known) = self
                .context
                .lineage
                .log(stem)?
                .filter(|it| log.as_ref().map(SanitizedLog::hash) != Some(it.hash))
            else {
                texts.extend(lines.iter().filter_map(|it| text(log.as_ref()?, it)));
                continue;
            };
            let mut logs: Vec<SanitizedLog> = log.into_iter().collect();
            let bytes = self.context.lineage.content(known.hash)?;
            let recorded_log = bytes.and_then(|it| DailyLog::parse(stem.clone(), &it).ok());
            logs.extend(recorded_log.map(|it| privacy::sanitize(&it, rules)));
            for hash in lines.iter().filter_map(|it| known.line_hash(it)) {
                let mut all = logs.iter().flat_map(SanitizedLog::lines);
                let line = all.find(|it| hash_of(it) == hash);
                texts.extend(line.map(|it| it.text().to_owned()));
            }
        }
        Ok(texts)
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
            let texts = self.cited_texts(citation, &view.inventory.rules)?;
            if !decisions.is_deleted(path, texts.iter().map(String::as_str)) {
                let citation = item.citation.clone();
                gone.push(ItemRecord { line: 0, hash: item.hash(), citation });
            }
        }
        let made = self.decisions_from_edit(view, path, &gone, &[], now)?;
        DecisionFile::new(self.context).append(&made)
    }
}
