//! Saves a session: its record, and its entries in the daily log.
//!
//! The only writer of this folder, through [`Vault`]. Record and entries are written as one step: the
//! pending save is stored in the private folder first, and the next process completes an interrupted
//! one. So an entry is written once, whichever hooks fire and whenever they are killed.
//!
//! # Invariants
//!
//! - Everything happens under the write lock. Lines of a record that a log cites never change.
//! - No part of a session is logged twice: each record names the last line that it covers, and a copy of
//!   the session has the same lines. See `logged_sessions`.
//! - Forgotten words are not saved again.
//! - Secrets are masked in everything that is written.

use chrono::{DateTime, FixedOffset, Utc};
use chrono_tz::Tz;
use serde::{Deserialize, Serialize};

use super::{
    cited_summary::{CitedSummary, one_line},
    digest::{SessionDigest, SessionPlan},
    imported_notes, log_entry,
    offline_summary::{self, NominatedFiles, SummaryMaterial, SummaryStyle},
    record::{self, RecordHeader},
    record_update::{self, RecordTarget},
    recovery,
    transcript::{Transcript, truncate},
};
use crate::{
    engine::model::session::SummarySections,
    memory::{address::Stem, frontmatter, hash::ContentHash, log},
    privacy::PrivacyRules,
    store::fs::{
        lock::{LockError, WriteLock},
        vault::{FILE_BYTES_MAX, Vault, VaultError},
    },
};

/// The longest frontmatter of a record, in bytes.
const HEAD_BYTES_MAX: u64 = 16 * 1024;
/// The longest description that is derived from the session, in characters.
const DESCRIPTION_CHARS_MAX: usize = 120;
/// The most records of the same second.
const RECORDS_PER_SECOND_MAX: u32 = 1_000;
/// The largest file that can be imported, in bytes.
pub(crate) const IMPORT_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// The title of a summary that covers more of the session than its record, before the last line of it.
const GROWN_TITLE: &str = "\n# Summary through ";
/// The most records that are listed.
const RECORDS_MAX: usize = 100_000;

/// Stores sessions in a memory folder.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SessionStore<'a> {
    pub vault: &'a Vault,
    /// The privacy rules of the root.
    pub rules: &'a PrivacyRules,
    pub zone: Tz,
    pub now: DateTime<Utc>,
}

/// A session to save, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SaveRequest<'a> {
    /// The session, or a part of it.
    pub transcript: &'a Transcript,
    /// The file that it was read from.
    pub path: Option<&'a str>,
    pub style: SummaryStyle,
    /// The project's folder.
    pub project: Option<&'a str>,
    /// The plan of an active workflow: its file and its text.
    pub workflow: Option<(&'a str, &'a str)>,
    /// What it was about, if the user says so.
    pub description: Option<&'a str>,
    /// Labels chosen by the user.
    pub tags: &'a [String],
    /// Whether the part that is not yet logged is also written to the daily log.
    pub is_logged: bool,
    /// Whether it is a part that the user chose, which has its own record.
    pub is_part: bool,
    /// The id of a model's engine, and its verified sections.
    pub sections: Option<(&'a str, &'a SummarySections)>,
    /// Files that the model chose.
    pub files: NominatedFiles<'a>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct SavedSession {
    /// The id of the record.
    pub id: String,
    pub path: String,
    /// Whether the record existed before.
    pub unchanged: bool,
    /// Whether a record of the session was changed, instead of creating one.
    #[serde(skip)]
    pub updated: bool,
    /// The logs that contain an entry now.
    pub logged: Vec<String>,
    /// Problems of the record, in words.
    pub problems: Vec<String>,
    /// The summary without citations.
    #[serde(skip)]
    pub summary: String,
    #[serde(skip)]
    pub plan: Option<String>,
}

/// A record in the memory folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredRecord {
    /// Its file, relative to the root.
    pub path: String,
    pub header: RecordHeader,
    /// The whole file.
    pub text: String,
}

/// Why a session was not saved.
#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    /// A file could not be read or written.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// Another process holds the lock of the root.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The session contains nothing new.
    #[error("the session contains nothing that is not in a record already")]
    NothingNew,
    /// Another record has this name.
    #[error("`{path}` already exists with different content")]
    NameTaken {
        /// The record.
        path: String,
    },
    /// There are too many records of one second.
    #[error("there are {RECORDS_PER_SECOND_MAX} records of the same second")]
    TooManyRecords,
}

/// The files to write, as stored in the private folder until all are written.
#[derive(Debug, Serialize, Deserialize)]
struct PendingSave {
    path: String,
    text: String,
    /// The hash of the text that it replaces.
    #[serde(default)]
    replaces: Option<String>,
    entries: Vec<PendingLogEntry>,
}

#[derive(Debug, Serialize, Deserialize)]
struct PendingLogEntry {
    stem: String,
    head: String,
    text: String,
}

impl<'a> SaveRequest<'a> {
    /// Returns the request for a session that has ended: a full summary without a model, logged.
    pub(crate) fn for_ended_session(transcript: &'a Transcript, path: Option<&'a str>) -> Self {
        Self {
            transcript,
            path,
            style: SummaryStyle::Full,
            project: None,
            workflow: None,
            description: None,
            tags: &[],
            is_logged: true,
            is_part: false,
            sections: None,
            files: NominatedFiles::default(),
        }
    }
}

impl SessionStore<'_> {
    /// Saves the record of a session, and its log entries if requested. If there is a record of the session in
    /// the same style, it is returned or updated.
    pub(crate) fn save(&self, request: &SaveRequest<'_>) -> Result<SavedSession, SaveError> {
        let lock = WriteLock::acquire(self.vault.layout().root())?;
        self.finish_pending(&lock)?;
        let records = self.records()?;
        let remembered = self.remembered(request.transcript);
        let request = &SaveRequest {
            transcript: remembered.as_ref().unwrap_or(request.transcript),
            ..*request
        };
        let unlogged = if request.is_logged {
            self.unlogged_part(request.transcript, &records)?
        } else {
            None
        };
        let transcript = unlogged.as_ref().unwrap_or(request.transcript);
        if !has_messages(transcript) {
            return Err(SaveError::NothingNew);
        }
        let digest = SessionDigest::of(transcript);
        let material = SummaryMaterial {
            transcript,
            digest: &digest,
            zone: self.zone,
            project: request.project.or(transcript.cwd.as_deref()),
            workflow: request.workflow,
        };
        let mut header = self.header(request, &material);
        let plan = digest.plan.as_ref().map(SessionPlan::text);
        let problems = match request.style {
            SummaryStyle::Recovery => recovery::check_record(&material),
            _ => Vec::new(),
        };
        let existing = |same: &StoredRecord| {
            let page = render_summary(request, &material, Some(&same.header.id));
            SavedSession {
                id: same.header.id.clone(),
                path: same.path.clone(),
                unchanged: true,
                updated: false,
                logged: Vec::new(),
                problems: problems.clone(),
                summary: self.mask_secrets(&page.to_text()),
                plan: plan.clone(),
            }
        };
        for same in records.iter().filter(|it| it.covers_same(&header)) {
            if !same.header.is_logged || self.was_logged(same, request.transcript)? {
                return Ok(existing(same));
            }
        }
        let target = record_update::find_target(&records, request, &mut header);
        let changed = match &target {
            RecordTarget::New => None,
            RecordTarget::Unchanged(same) => return Ok(existing(same)),
            RecordTarget::Rewritten(record) | RecordTarget::Amended { record, .. } => Some(*record),
        };
        let (stem, path) = match changed {
            Some(record) => (record.stem(), record.path.clone()),
            None => self.free_record(
                header.ended.unwrap_or_else(|| self.now.with_timezone(&self.zone).fixed_offset()),
            )?,
        };
        header.id = stem.to_string();
        let (mut pending, mut summary) = self.prepare(request, &material, &header, &stem, path);
        if let RecordTarget::Amended { record, header, adds_summary } = &target {
            let added = adds_summary.then_some(&material);
            let Some(text) = self.amend(request, record, header, added) else {
                return Ok(existing(record));
            };
            (pending.text, pending.entries) = (text, Vec::new());
            summary = existing(record).summary;
        }
        pending.replaces = changed.map(|it| ContentHash::of(it.text.as_bytes()).hex16());
        // A log that cannot take the entry would stop this save halfway, and every later one.
        for entry in &pending.entries {
            self.log_with_room(entry)?;
        }
        self.vault.write_private(&self.vault.layout().session_save_state(), &as_json(&pending))?;
        let logged = self.write_pending(&lock, &pending)?;
        self.vault.remove_private(&self.vault.layout().session_save_state())?;
        let (id, path, unchanged, updated) = (header.id, pending.path, false, changed.is_some());
        Ok(SavedSession { id, path, unchanged, updated, logged, problems, summary, plan })
    }

    /// Returns the record with another header, and with another summary if `added` is given; `None` if the
    /// header has no room.
    fn amend(
        &self,
        request: &SaveRequest<'_>,
        record: &StoredRecord,
        header: &RecordHeader,
        added: Option<&SummaryMaterial<'_>>,
    ) -> Option<String> {
        let (mut text, lines) = record_update::amend(&record.text, header)?;
        if let Some(material) = added {
            let page = render_summary(request, material, Some(&header.id));
            let through = material.transcript.last_line();
            let grown = through.filter(|it| header.through.as_deref() != Some(it));
            let title = match (grown, header.engine.as_deref()) {
                (Some(line), _) => format!("{GROWN_TITLE}{line}\n\n"),
                (None, engine) => format!("\n# Summary by {}\n\n", engine.unwrap_or_default()),
            };
            if grown.is_some() && text.contains(&title) {
                return None;
            }
            // Only the newest of these summaries is kept.
            let before = text.find(GROWN_TITLE).filter(|_| grown.is_some());
            text.truncate(before.unwrap_or(text.len()));
            let lines = u32::try_from(text.lines().count()).unwrap_or(lines);
            let body = page.into_record_body(&record.stem(), lines + 4);
            text.push_str(&title);
            text.push_str(&self.mask_secrets(&self.rules.without_forgotten(&body.text)));
        }
        Some(text)
    }

    /// Returns the id of a new record of a session that ended at `ended`, and its path.
    fn free_record(&self, ended: DateTime<FixedOffset>) -> Result<(Stem, String), SaveError> {
        for copy in 1..=RECORDS_PER_SECOND_MAX {
            let Ok(stem) = record::record_id(ended, copy).parse::<Stem>() else { break };
            let path = self.vault.layout().source_path(&stem);
            if !self.vault.try_exists(&path)? {
                return Ok((stem, path));
            }
        }
        Err(SaveError::TooManyRecords)
    }

    /// Returns the days that would get an entry if a session were saved; none if all of it is logged.
    pub(crate) fn preview_days(
        &self,
        request: &SaveRequest<'_>,
    ) -> Result<Vec<chrono::NaiveDate>, SaveError> {
        let remembered = self.remembered(request.transcript);
        let whole = remembered.as_ref().unwrap_or(request.transcript);
        let unlogged = self.unlogged_part(whole, &self.records()?)?;
        let transcript = unlogged.as_ref().unwrap_or(whole);
        if !has_messages(transcript) {
            return Ok(Vec::new());
        }
        let digest = SessionDigest::of(transcript);
        let days = log_entry::log_entries(transcript, &digest, self.zone, self.now);
        Ok(days.into_iter().map(|it| it.date).collect())
    }

    /// Returns the files to write for a record and its entries, and the summary.
    fn prepare(
        &self,
        request: &SaveRequest<'_>,
        material: &SummaryMaterial<'_>,
        header: &RecordHeader,
        stem: &Stem,
        path: String,
    ) -> (PendingSave, String) {
        let mut page = render_summary(request, material, Some(&header.id));
        let days = if request.is_logged {
            log_entry::log_entries(material.transcript, material.digest, self.zone, self.now)
        } else {
            Vec::new()
        };
        days.iter()
            .flat_map(|it| &it.lines)
            .flat_map(|it| &it.cites)
            .for_each(|it| page.embed(*it));
        page.embed_messages(material.digest);
        let front = header.print();
        let summary = self.mask_secrets(&page.to_text());
        let body = page.into_record_body(stem, header.line_count() + 2);
        let body_text = self.rules.without_forgotten(&body.text);
        let text = format!("{front}\n{}", self.mask_secrets(&body_text));
        let mut entries = Vec::new();
        for day in &days {
            let mut lines = String::new();
            let remembered =
                day.lines.iter().filter(|it| !self.rules.is_forgotten_everywhere(&it.text));
            for (n, line) in remembered.enumerate() {
                let mark = if n == 0 { "" } else { "\n- " };
                lines.push_str(mark);
                lines.push_str(&self.rules.sanitize_output(&line.text));
                match body.citation(&line.cites) {
                    Some(citation) => lines.push_str(&[" [", &citation.to_string(), "]"].concat()),
                    // The head always names the record.
                    None if n == 0 => lines.push_str(&[" (", &header.id, ")"].concat()),
                    None => {}
                }
            }
            let Some(text) = log::format_entry(day.time, &lines) else { continue };
            let stem = Stem::day(day.date).to_string();
            entries.push(PendingLogEntry { stem, head: log::new_log_header(day.date), text });
        }
        (PendingSave { path, text, replaces: None, entries }, summary)
    }

    fn header(&self, request: &SaveRequest<'_>, material: &SummaryMaterial<'_>) -> RecordHeader {
        let transcript = material.transcript;
        let local = |at: DateTime<Utc>| -> DateTime<FixedOffset> {
            at.with_timezone(&self.zone).fixed_offset()
        };
        let span = transcript.time_span();
        let first = material.digest.messages.iter().map(|it| it.own).find(|it| !it.is_empty());
        let sanitized_line = |text: &str| self.rules.sanitize_output(&one_line(text));
        let description = request
            .description
            .map(sanitized_line)
            .or_else(|| Some(truncate(&sanitized_line(first?), DESCRIPTION_CHARS_MAX)))
            .filter(|it| !self.rules.is_forgotten_everywhere(it));
        let masked = |text: &str| self.mask_secrets(text);
        RecordHeader {
            id: String::new(),
            project: material.project.map(masked),
            branch: transcript.branch.as_deref().map(masked),
            started: span.map(|it| local(it.0)),
            ended: span.map(|it| local(it.1)),
            agent: Some(
                transcript
                    .agent
                    .as_deref()
                    .map_or_else(|| transcript.format.name().to_owned(), masked),
            ),
            description,
            tags: request.tags.iter().map(|it| sanitized_line(it)).collect(),
            transcript: request.path.map(masked),
            session: transcript.session.as_deref().map(masked),
            through: transcript.last_line().map(str::to_owned),
            style: request.style.name().to_owned(),
            engine: request.sections.map(|it| it.0.to_owned()),
            is_logged: request.is_logged,
            is_external: false,
        }
    }

    /// Writes pending files; returns the logs that contain an entry now.
    fn write_pending(
        &self,
        lock: &WriteLock,
        pending: &PendingSave,
    ) -> Result<Vec<String>, SaveError> {
        match self.vault.read(&pending.path)? {
            None => {
                let bytes = pending.text.as_bytes();
                let staged = self.vault.stage(&pending.path, &Vault::new_temp_name(), bytes)?;
                self.vault.publish(lock, staged, None)?;
            }
            Some(found) if found.bytes == pending.text.as_bytes() => {}
            Some(found) if pending.replaces == Some(ContentHash::of(&found.bytes).hex16()) => {
                let bytes = pending.text.as_bytes();
                let staged = self.vault.stage(&pending.path, &Vault::new_temp_name(), bytes)?;
                self.vault.publish(lock, staged, Some(ContentHash::of(&found.bytes)))?;
            }
            Some(_) => return Err(SaveError::NameTaken { path: pending.path.clone() }),
        }
        let mut logged = Vec::new();
        for entry in &pending.entries {
            let Some((path, log_text)) = self.log_with_room(entry)? else { continue };
            if !log_text.contains(&entry.text) {
                self.vault.append(lock, &path, &entry.head, &entry.text, false)?;
            }
            logged.push(path);
        }
        if !logged.is_empty() {
            self.note_logged(lock, &pending.text)?;
        }
        Ok(logged)
    }

    /// Returns the path and the text of the log of an entry, if the entry can be added.
    fn log_with_room(
        &self,
        entry: &PendingLogEntry,
    ) -> Result<Option<(String, String)>, VaultError> {
        let Ok(stem) = entry.stem.parse::<Stem>() else { return Ok(None) };
        let path = self.vault.log_path(&stem);
        let log_text = self.vault.read_unmerged_text(&path)?.unwrap_or_default();
        let is_new = !log_text.contains(&entry.text);
        if is_new && (log_text.len() + entry.text.len()) as u64 > FILE_BYTES_MAX {
            return Err(VaultError::TooLarge { path: path.into() });
        }
        Ok(Some((path, log_text)))
    }

    /// Returns a session without forgotten words; `None` if it contains none.
    fn remembered(&self, transcript: &Transcript) -> Option<Transcript> {
        let is_forgotten = |text: &str| self.rules.is_forgotten_everywhere(text);
        self.rules.has_forgotten().then(|| transcript.without_words(&is_forgotten))
    }

    /// Completes a save that a crash interrupted.
    fn finish_pending(&self, lock: &WriteLock) -> Result<(), SaveError> {
        let path = self.vault.layout().session_save_state();
        let Some(text) = self.vault.read_text(&path)? else { return Ok(()) };
        // If the pending save is incomplete, none of its files was written.
        if let Ok(pending) = serde_json::from_str::<PendingSave>(&text) {
            match self.write_pending(lock, &pending) {
                // Somebody else created a record with this name, which takes precedence; or a person made the
                // log unusable meanwhile, which must not stop the sessions of other days.
                Ok(_)
                | Err(
                    SaveError::NameTaken { .. }
                    | SaveError::Vault(
                        VaultError::TooLarge { .. }
                        | VaultError::NotUtf8 { .. }
                        | VaultError::NotAFile { .. }
                        | VaultError::HardLink { .. },
                    ),
                ) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(self.vault.remove_private(&path)?)
    }

    /// Imports a text byte for byte; returns the id and path of its record, and whether it existed before.
    pub(crate) fn import(&self, text: &str) -> Result<(String, String, bool), SaveError> {
        let lock = WriteLock::acquire(self.vault.layout().root())?;
        self.finish_pending(&lock)?;
        let text = &*self.rules.without_forgotten(text);
        if let Some(header) = RecordHeader::parse(text) {
            let stem: Result<Stem, _> = header.id.parse();
            let path = stem
                .map_err(|_| SaveError::NothingNew)
                .map(|it| self.vault.layout().source_path(&it))?;
            let unchanged = match self.vault.read(&path)? {
                Some(found) if found.bytes == text.as_bytes() => true,
                Some(_) => return Err(SaveError::NameTaken { path }),
                None => {
                    self.create_file(&lock, &path, text)?;
                    false
                }
            };
            return Ok((header.id, path, unchanged));
        }
        let same = |it: &StoredRecord| {
            it.header.style == record::IMPORTED && record::export_text(&it.text) == text
        };
        // Only records of a similar size are read.
        let sizes = text.len() as u64..=text.len() as u64 + HEAD_BYTES_MAX;
        let has_size = |path: &str| self.vault.size(path).is_none_or(|it| sizes.contains(&it));
        if let Some(found) = self.records_where(&has_size)?.into_iter().find(same) {
            return Ok((found.header.id, found.path, true));
        }
        let local = self.now.with_timezone(&self.zone).fixed_offset();
        let first = frontmatter::split(text).body(text).lines().find(|it| !it.trim().is_empty());
        let first = first.map(|it| it.trim_start_matches(['#', '-', ' ']));
        let description = first
            .map(|it| truncate(&self.rules.sanitize_output(&one_line(it)), DESCRIPTION_CHARS_MAX));
        let (stem, path) = self.free_record(local)?;
        let header = RecordHeader {
            id: stem.to_string(),
            ended: Some(local),
            description,
            style: record::IMPORTED.to_owned(),
            is_external: imported_notes::is_external_text(text),
            ..RecordHeader::default()
        };
        self.create_file(&lock, &path, &format!("{}{text}", header.print()))?;
        Ok((header.id, path, false))
    }

    fn create_file(&self, lock: &WriteLock, path: &str, text: &str) -> Result<(), VaultError> {
        let staged = self.vault.stage(path, &Vault::new_temp_name(), text.as_bytes())?;
        self.vault.publish(lock, staged, None)
    }

    /// Returns all records, by name. Other files are skipped.
    pub(crate) fn records(&self) -> Result<Vec<StoredRecord>, VaultError> {
        self.records_where(&|_| true)
    }

    fn records_where(
        &self,
        is_wanted: &dyn Fn(&str) -> bool,
    ) -> Result<Vec<StoredRecord>, VaultError> {
        let layout = self.vault.layout();
        let (paths, _) = self.vault.files_below(&layout.sessions_dir(), RECORDS_MAX);
        let mut records = Vec::new();
        for path in paths {
            let Some(stem) = layout.stem_at(&path).filter(Stem::is_session) else { continue };
            if !is_wanted(&path) {
                continue;
            }
            let text = match self.vault.read_text(&path) {
                Err(error) if error.is_read_failure() => return Err(error),
                Ok(Some(text)) => text,
                // Not a text file, so not a record.
                _ => continue,
            };
            let header = RecordHeader::parse(&text).filter(|it| it.id == stem.as_str());
            if let Some(mut header) = header {
                header.description.take_if(|it| self.rules.is_forgotten_everywhere(it));
                records.push(StoredRecord { path, header, text });
            }
        }
        Ok(records)
    }

    /// Masks the secrets in a text, line by line, so that line numbers stay the same.
    fn mask_secrets(&self, text: &str) -> String {
        self.rules.mask_secret_lines(text).join("\n")
    }
}

fn render_summary<'a>(
    request: &SaveRequest<'_>,
    material: &SummaryMaterial<'a>,
    id: Option<&str>,
) -> CitedSummary<'a> {
    match request.sections {
        Some((_, sections)) => offline_summary::summarize_with_model(
            request.style,
            material,
            sections,
            &request.files,
            id,
        ),
        None => offline_summary::summarize(request.style, material, id),
    }
}

impl StoredRecord {
    /// Returns the name of its file.
    fn stem(&self) -> Stem {
        self.header.id.parse().expect("a header with another id is not read")
    }

    /// Returns whether a record covers the same part of the session in the same way.
    fn covers_same(&self, other: &RecordHeader) -> bool {
        let RecordHeader { through, style, session, tags, description, engine, is_logged, .. } =
            &self.header;
        through.is_some()
            && (through, style, session) == (&other.through, &other.style, &other.session)
            && (tags, description, engine) == (&other.tags, &other.description, &other.engine)
            && *is_logged == other.is_logged
    }
}

/// Returns whether the session's own agent or the user wrote a message.
fn has_messages(transcript: &Transcript) -> bool {
    transcript.own_entries().any(|it| it.content.is_message())
}

fn as_json(pending: &PendingSave) -> String {
    serde_json::to_string(pending).expect("it contains only strings")
}
