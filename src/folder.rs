//! A memory folder, for programs that embed memoird.
//!
//! [`Folder`] offers the verbs of the command line as functions. They share the same code: settings,
//! locks, and sanitized output. Any number of programs can use a folder beside a daemon. Errors say
//! what failed, where, and why ([`CommandError`], which also suggests the next step).
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

/// A memory folder, opened with its settings.
///
/// It holds no lock between two calls. The settings and review decisions are those of the time when it
/// was opened. A search is cached for the next one while no file changes.
#[derive(Debug)]
pub struct Folder {
    call: Invocation,
    root: MemoryRoot,
    now: Option<DateTime<Utc>>,
    /// The search cache.
    search_cache: SearchCache,
}

impl Folder {
    /// Opens the folder at `path`: one that `memoird init` created, or one with daily logs in
    /// `memory/`.
    ///
    /// The settings are those of the command line: the user's configuration, the folder's
    /// `memoird.yaml`, and environment variables.
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

    /// Sets the clock of all later calls: for tests, and to ask what would be due at another time.
    pub fn with_now(mut self, now: DateTime<Utc>) -> Self {
        self.call.now = now;
        self.now = Some(now);
        self
    }

    /// Searches for the log lines that answer a question, the best first.
    ///
    /// The syntax is that of `memoird search`: plain words, `"words in a row"`, `-not`,
    /// `on:2026-04-02`, `tier:weekly`, and more.
    ///
    /// # Errors
    ///
    /// Returns why a file or the database could not be read. Any text is a question.
    pub fn search(&self, question: &str, limit: usize) -> Result<SearchResults, CommandError> {
        let now = self.now()?.with_timezone(&self.root.settings.zone.name.0);
        let how =
            SearchOptions { limit: limit.max(1), context: 0, raw: false, today: now.date_naive() };
        search::find(&self.call, &self.root, &Query::parse(question), how, Some(&self.search_cache))
    }

    /// Traces a line of a generated file, or a whole file, down to its log lines.
    ///
    /// # Errors
    ///
    /// Returns that the file is not recorded, or that the line is no item.
    ///
    /// # Example: the source of a bullet
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
    /// // And the other way: the items derived from the line.
    /// let up = folder.trace_up("2026-03-03:1")?;
    /// assert_eq!(up.derived[0].tier, "weekly");
    /// # Ok(())
    /// # }
    /// ```
    pub fn trace(&self, target: &str) -> Result<Trace, CommandError> {
        trace::trace_to_sources(&self.call, &self.root, target)
    }

    /// Traces a line of a log (`2026-04-02:12`) up to all items derived from it.
    ///
    /// # Errors
    ///
    /// Returns that nothing is recorded, or that the log has no such line.
    pub fn trace_up(&self, line: &str) -> Result<TraceUp, CommandError> {
        trace::trace_to_derived(&self.call, &self.root, line)
    }

    /// Returns what an agent should read at the start of a session; without a budget, as many tokens as
    /// configured.
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

    /// Reads a sanitized file: a path in the folder, a day, a week, a month, or the name of a memory;
    /// now, or at an earlier time (`2026-04-02`, `3 days ago`).
    ///
    /// # Errors
    ///
    /// Returns that there is no such file, or that it is not known at that time.
    pub fn read(&self, file: &str, as_of: Option<&str>) -> Result<FramedText, CommandError> {
        Ok(show::sanitized_at(&self.call, &self.root, file, as_of)?.1)
    }

    /// Appends an entry to today's log, and returns the log and the line. The entry is on disk when
    /// this returns.
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

    /// Returns what is due, without changing anything.
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

    /// Compacts everything that is due with the configured engine. Waits for other writers.
    ///
    /// # Errors
    ///
    /// Returns what stopped the run; jobs that had ended before are complete. Jobs that failed by
    /// themselves are in the report.
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
