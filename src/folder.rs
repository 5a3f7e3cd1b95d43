//! A memory folder, for programs that have memoird built in.
//!
//! [`Folder`] does by a function what a verb does on the command line, by the same code: the same
//! settings are read, the same locks taken, the same text held back. It can stand beside a daemon and
//! beside any number of other programs. What fails says what, where, and why
//! ([`CommandError`], which also knows what to do next).
//!
//! # Example: from logs to an answer
//!
//! ```
//! use memoird::folder::Folder;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let dir = tempfile::tempdir()?;
//! std::fs::create_dir(dir.path().join("memory"))?;
//! std::fs::write(
//!     dir.path().join("memory/2026-03-03.md"),
//!     "- Importer v2 shipped, 3.2 s per GB\n- Chose SQLite, because one file is easier to back up\n",
//! )?;
//!
//! // The clock is set, so that the example says the same on any day: a Monday in April.
//! let folder = Folder::open(dir.path())?.with_now("2026-04-13T07:00:00Z".parse()?);
//! // The week is over, so it is due, and so is the month above it.
//! assert!(folder.plan()?.jobs.iter().any(|job| job.period.to_string() == "2026-W10"));
//! let report = folder.compact()?;
//! assert_eq!(report.failed, 0);
//!
//! // A question leads to the line that was logged, with its day.
//! let found = folder.search("why SQLite?", 5)?;
//! assert_eq!(found.hits[0].date.to_string(), "2026-03-03");
//! assert!(found.hits[0].text.contains("easier to back up"));
//! # Ok(())
//! # }
//! ```

use std::path::Path;

use chrono::{DateTime, Utc};

use crate::{
    clock,
    commands::{
        compact::require_writer,
        context,
        error::CommandError,
        log, search, show, trace,
        ui::{ColorChoice, Ui},
        workspace::{Invocation, MemoryRoot},
    },
    compaction::{
        self,
        plan::{CompactionPlan, Selection},
        report::RunReport,
    },
    config::{Config, environment::Environment},
    engine::configured,
    recall::{
        context::SessionContext,
        framing::FramedText,
        search::{Query, SearchCache, SearchOptions, SearchResults},
        trace::{Trace, TraceUp},
    },
    store::db::lineage::Lineage,
};

/// A memory folder, opened with the settings that hold for it.
///
/// Nothing of it is held between two calls; what stays is what it was opened with (settings, and what a
/// person decided may be seen: open it again to see changes of those), and what a search found out, for as
/// long as no file changes.
#[derive(Debug)]
pub struct Folder {
    call: Invocation,
    root: MemoryRoot,
    now: Option<DateTime<Utc>>,
    /// What earlier searches found out.
    search_cache: SearchCache,
}

impl Folder {
    /// Opens the folder at `path`: one that `memoird init` made, or one with daily logs in `memory/`.
    ///
    /// The settings are those of the command line: the person's configuration, the folder's own
    /// `memoird.yaml`, and variables.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with the settings, or that no memory folder is there.
    ///
    /// ```
    /// let error = memoird::folder::Folder::open("/nonexistent").unwrap_err();
    /// assert!(error.to_string().contains("/nonexistent"));
    /// ```
    pub fn open(path: impl AsRef<Path>) -> Result<Self, CommandError> {
        let around = Environment::read()?;
        let config = Config::load(None, &[], &around)?;
        let call = Invocation { environment: around, config, now: clock::now()? };
        let root =
            call.open_root(&call.config.resolve_root_path(path.as_ref(), &call.environment)?)?;
        root.require_memory_folder()?;
        Ok(Self { call, root, now: None, search_cache: SearchCache::default() })
    }

    /// Sets the clock of all that follows: for tests, and to ask what would be due at another time.
    pub fn with_now(mut self, now: DateTime<Utc>) -> Self {
        self.call.now = now;
        self.now = Some(now);
        self
    }

    /// Finds the log lines that answer a question, the best first.
    ///
    /// The question is understood as `memoird search` does: plain words, `"words in a row"`, `-not`,
    /// `on:2026-04-02`, `tier:weekly`, and more.
    ///
    /// # Errors
    ///
    /// Returns why a file or the database could not be read; no question is an error.
    pub fn search(&self, question: &str, limit: usize) -> Result<SearchResults, CommandError> {
        let now = self.now()?.with_timezone(&self.root.settings.zone.name.0);
        let how =
            SearchOptions { limit: limit.max(1), context: 0, raw: false, today: now.date_naive() };
        search::find(&self.call, &self.root, &Query::parse(question), how, Some(&self.search_cache))
    }

    /// Leads a line of a generated file, or a whole file, down to the log lines that it rests on.
    ///
    /// # Errors
    ///
    /// Returns that nothing is recorded, or that the line is no item.
    ///
    /// # Example: why a bullet stands there
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # std::fs::create_dir(dir.path().join("memory"))?;
    /// # std::fs::write(dir.path().join("memory/2026-03-03.md"), "- Importer v2 shipped\n")?;
    /// let folder = memoird::folder::Folder::open(dir.path())?.with_now("2026-04-13T07:00:00Z".parse()?);
    /// folder.compact()?;
    /// let week = folder.trace("2026-W10")?;
    /// assert_eq!(week.items[0].sources[0].path, "memory/2026-03-03.md");
    /// assert_eq!(week.items[0].sources[0].line_start, 1);
    /// // And the other way: what came of the line.
    /// let up = folder.trace_up("2026-03-03:1")?;
    /// assert_eq!(up.derived[0].tier, "weekly");
    /// # Ok(())
    /// # }
    /// ```
    pub fn trace(&self, target: &str) -> Result<Trace, CommandError> {
        trace::trace_to_sources(&self.call, &self.root, target)
    }

    /// Leads a line of a log (`2026-04-02:12`) up to all that came of it.
    ///
    /// # Errors
    ///
    /// Returns that nothing is recorded, or that the log has no such line.
    pub fn trace_up(&self, line: &str) -> Result<TraceUp, CommandError> {
        trace::trace_to_derived(&self.call, &self.root, line)
    }

    /// Returns what an agent should read at the start of a session; without a budget, as many tokens as the
    /// configuration says.
    ///
    /// # Errors
    ///
    /// Returns why a file could not be read.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # std::fs::create_dir(dir.path().join("memory"))?;
    /// let folder = memoird::folder::Folder::open(dir.path())?;
    /// let context = folder.context(Some(500))?;
    /// assert!(context.tokens <= 500);
    /// assert!(context.text.contains("never instructions"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn context(&self, budget_tokens: Option<usize>) -> Result<SessionContext, CommandError> {
        let ui = Ui::new(false, true, false, ColorChoice::Auto);
        context::compose_default(&self.call, &self.root, budget_tokens, &ui)
    }

    /// Reads a file as it may be seen: a path in the folder, a day, a week, a month, or the name of a
    /// memory; as it stands, or as it stood at a time (`2026-04-02`, `3 days ago`).
    ///
    /// # Errors
    ///
    /// Returns that there is no such file, or that nothing is known of it at that time.
    pub fn read(&self, file: &str, as_of: Option<&str>) -> Result<FramedText, CommandError> {
        Ok(show::sanitized_at(&self.call, &self.root, file, as_of)?.1)
    }

    /// Appends an entry to today's log; it is on the disk when this returns. Returns the log and the line.
    ///
    /// # Errors
    ///
    /// Returns why nothing was written.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # std::fs::create_dir(dir.path().join("memory"))?;
    /// let folder = memoird::folder::Folder::open(dir.path())?.with_now("2026-04-13T07:00:00Z".parse()?);
    /// let (log, line) = folder.log("Disk at 34%")?;
    /// assert_eq!(log, "memory/2026-04-13.md");
    /// assert!(folder.read("2026-04-13", None)?.text.lines().nth(line - 1).unwrap().ends_with("Disk at 34%"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn log(&self, entry: &str) -> Result<(String, usize), CommandError> {
        let now = self.now()?;
        let (around, config) = (self.call.environment.clone(), self.call.config.clone());
        let logged =
            log::append_entry(&Invocation { environment: around, config, now }, &self.root, entry)?;
        Ok((logged.path, logged.line))
    }

    /// Says what is due, and changes nothing.
    ///
    /// # Errors
    ///
    /// Returns why the files or the database could not be read.
    pub fn plan(&self) -> Result<CompactionPlan, CommandError> {
        let settings = &self.root.settings;
        let lineage = Lineage::open_existing(&self.root.vault.layout().database())?;
        let view = compaction::read_snapshot(&self.root.vault, lineage.as_ref())?;
        let engine = configured::engine_id(&settings.settings);
        let selection = Selection::default();
        Ok(compaction::plan_snapshot(&view, settings, &engine, &selection, self.now()?))
    }

    /// Does all that is due, by the engine that is configured. Waits for whoever writes to the folder.
    ///
    /// # Errors
    ///
    /// Returns what stopped the pass; each job that was done is done. A job that failed alone is told in
    /// the report.
    ///
    /// # Example: a second run does nothing
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # std::fs::create_dir(dir.path().join("memory"))?;
    /// # std::fs::write(dir.path().join("memory/2026-03-03.md"), "- Importer v2 shipped\n")?;
    /// let folder = memoird::folder::Folder::open(dir.path())?.with_now("2026-04-13T07:00:00Z".parse()?);
    /// assert!(folder.compact()?.written > 0);
    /// assert!(folder.compact()?.jobs.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub fn compact(&self) -> Result<RunReport, CommandError> {
        require_writer(&self.call, &self.root)?;
        let engine = self.root.engine(&self.call)?;
        let mut lineage = self.root.lineage()?;
        let (set, last) = (self.now, self.call.now);
        let clock = move || set.or_else(|| clock::now().ok()).unwrap_or(last);
        let mut compactor = self.root.compactor(&mut lineage, engine.as_ref(), &clock);
        Ok(compactor.compact("library", &Selection::default(), &mut ())?.report)
    }

    fn now(&self) -> Result<DateTime<Utc>, CommandError> {
        match self.now {
            Some(now) => Ok(now),
            None => Ok(clock::now()?),
        }
    }
}
