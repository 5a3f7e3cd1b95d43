//! Which records that claim to be logged are to be believed.
//!
//! A record names the last line that it covers, but anybody can write a record: an agent imports one, or it
//! comes with a folder. So that a forged one keeps no session out of the logs, a record counts only if it was
//! saved here, which a list in the private folder says. The records of other hosts and of earlier versions are
//! not in it: they count if a log names them and if they repeat what the user said last.

use std::{
    cell::Cell,
    collections::{BTreeSet, HashSet},
};

use chrono::NaiveDate;

use super::{
    offline_summary::SummaryStyle,
    record::RecordHeader,
    save::{SessionStore, StoredRecord},
    transcript::{Transcript, TranscriptEntry},
    unlogged,
};
use crate::{
    memory::address::Stem,
    store::fs::{lock::WriteLock, vault::VaultError},
};

impl SessionStore<'_> {
    /// Returns the part of a session that no log contains; `None` if none of it is logged.
    pub(super) fn unlogged_part(
        &self,
        transcript: &Transcript,
        records: &[StoredRecord],
    ) -> Result<Option<Transcript>, VaultError> {
        let mask = |text: &str| self.rules.mask_secret_lines(text).join("\n");
        let failed = Cell::new(None);
        let was_logged = |record: &StoredRecord| {
            self.was_logged(record, transcript).unwrap_or_else(|error| {
                failed.set(Some(error));
                true
            })
        };
        let part = unlogged::unlogged_part(transcript, records, self.zone, &mask, &was_logged);
        failed.into_inner().map_or(Ok(part), Err)
    }

    /// Returns whether a record that says so belongs to entries in the logs.
    pub(super) fn was_logged(
        &self,
        record: &StoredRecord,
        transcript: &Transcript,
    ) -> Result<bool, VaultError> {
        let list = self.vault.read_text(&self.vault.layout().logged_sessions())?;
        let own = logged_line(&record.header);
        if own.is_some_and(|own| list.is_some_and(|it| it.lines().any(|it| it == own))) {
            return Ok(true);
        }
        let through = record.header.through.as_deref();
        let end = transcript.entries.iter().rposition(|it| Some(&it.id[..]) == through);
        let covered = end.map_or(&[][..], |at| &transcript.entries[..=at]);
        Ok(self.repeats_messages(record, covered) && self.is_named_in_logs(record, covered)?)
    }

    /// Returns whether a record contains the user's last message, or any in a style that quotes only some.
    fn repeats_messages(&self, record: &StoredRecord, covered: &[TranscriptEntry]) -> bool {
        let lines: HashSet<&str> = record.text.lines().map(str::trim).collect();
        let contains = |message: &str| {
            let masked = self.rules.mask_secret_lines(message);
            let mut own = masked.iter().map(|it| it.trim()).filter(|it| {
                // The placeholder of a secret may have changed.
                let is_same = !it.is_empty() && !it.contains("[secret:");
                is_same && !self.rules.is_forgotten_everywhere(it)
            });
            own.all(|it| lines.contains(it))
        };
        let own = covered.iter().filter(|it| !it.is_subagent);
        let mut messages = own.filter_map(|it| it.content.user_words()).rev();
        let all = [SummaryStyle::Full, SummaryStyle::Partial].map(SummaryStyle::name);
        if all.contains(&&record.header.style[..]) {
            messages.next().is_none_or(contains)
        } else {
            messages.any(contains)
        }
    }

    fn is_named_in_logs(
        &self,
        record: &StoredRecord,
        covered: &[TranscriptEntry],
    ) -> Result<bool, VaultError> {
        let local = |it: &TranscriptEntry| Some(it.at?.with_timezone(&self.zone).date_naive());
        let mut days: BTreeSet<NaiveDate> = covered.iter().filter_map(local).collect();
        days.extend(record.header.id.parse::<Stem>().ok().map(|it| it.date()));
        for day in days {
            let path = self.vault.log_path(&Stem::day(day));
            let log = match self.vault.read_text(&path) {
                Err(error) if error.is_read_failure() => return Err(error),
                log => log.ok().flatten().unwrap_or_default(),
            };
            if log.contains(&record.header.id) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Adds a record whose entries are in the logs to the list.
    pub(super) fn note_logged(&self, _: &WriteLock, record: &str) -> Result<(), VaultError> {
        let header = RecordHeader::parse(record).filter(|it| it.is_logged);
        let Some(own) = header.as_ref().and_then(logged_line) else { return Ok(()) };
        let path = self.vault.layout().logged_sessions();
        let mut list = self.vault.read_text(&path)?.unwrap_or_default();
        if list.lines().any(|it| it == own) {
            return Ok(());
        }
        list.push_str(&own);
        list.push('\n');
        self.vault.write_private(&path, &list)
    }
}

/// Returns the line of the list for a record.
fn logged_line(header: &RecordHeader) -> Option<String> {
    Some(format!("{} {}", header.id, header.through.as_deref()?))
}
