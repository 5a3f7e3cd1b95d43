//! The public interface of the crate: one memory folder, for programs that embed memoird.
//!
//! A method of [`Folder`] does what a command does, with the same code: it reads the same settings, takes
//! the same locks, and returns only sanitized text. It can be used beside a daemon and any number of other
//! programs. A [`CommandError`] says what failed, on what, and why, and often what to do next.
//!
//! The crate's `examples/` use it on a copy of a sample journal.
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
//! // A fixed time, so that the example gives the same result on any day: a Monday in April.
//! let folder = Folder::open(dir.path())?.with_now("2026-04-13T07:00:00Z".parse()?);
//! // The week is over, so its summary is due.
//! assert!(folder.plan()?.jobs.iter().any(|job| job.period.to_string() == "2026-W10"));
//! let report = folder.compact()?;
//! assert_eq!(report.failed, 0);
//!
//! // The best hit is the logged line, with its date.
//! let found = folder.search("why SQLite?", 5)?;
//! assert_eq!(found.hits[0].date.to_string(), "2026-03-03");
//! assert!(found.hits[0].text.contains("easier to back up"));
//! # Ok(())
//! # }
//! ```

use std::path::Path;

use chrono::{DateTime, Utc};

#[doc(inline)]
pub use crate::{
    compaction::{
        plan::{CompactionJob, CompactionPlan, WaitingPeriod},
        report::{JobReport, RunReport},
    },
    operations::error::{CommandError, CommandErrorKind},
    recall::{
        context::{PartUsage, SessionContext},
        framing::FramedText,
        search::{HitRef, SearchHit, SearchResults},
        trace::{DerivedItem, SourceRange, Trace, TraceUp, TracedItem},
    },
};

use crate::{
    clock,
    compaction::{self, plan::Selection},
    engine::configured,
    operations::{
        context, log, search, show, trace,
        workspace::{ConfigOverrides, Invocation, MemoryRoot, require_writer},
    },
    recall::search::{Query, SearchCache, SearchOptions},
    store::db::lineage::Lineage,
};

/// An open memory folder.
///
/// It holds no lock or file between two calls. It keeps the settings and the review decisions of the
/// moment when it was opened (open it again to see changes), and caches what a search read until a file
/// changes.
#[derive(Debug)]
pub struct Folder {
    call: Invocation,
    root: MemoryRoot,
    now: Option<DateTime<Utc>>,
    search_cache: SearchCache,
}

impl Folder {
    /// Opens the folder at `path`: one created by `memoird init`, or one with daily logs in `memory/`.
    ///
    /// The settings are those of the command line: the user's configuration, the folder's `memoird.yaml`,
    /// and environment variables.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with the settings, or that `path` is not a memory folder.
    ///
    /// ```
    /// let error = memoird::folder::Folder::open("/nonexistent").unwrap_err();
    /// assert!(error.to_string().contains("/nonexistent"));
    /// ```
    pub fn open(path: impl AsRef<Path>) -> Result<Self, CommandError> {
        let call = Invocation::read(&ConfigOverrides::default())?;
        let root =
            call.open_root(&call.config.resolve_root_path(path.as_ref(), &call.environment)?)?;
        root.require_memory_folder()?;
        Ok(Self { call, root, now: None, search_cache: SearchCache::default() })
    }

    /// Fixes the time of all later calls: for tests, and to see what would be due at another time.
    pub fn with_now(mut self, now: DateTime<Utc>) -> Self {
        self.call.now = now;
        self.now = Some(now);
        self
    }

    /// Returns the log lines that best answer a question, best first.
    ///
    /// The syntax is that of `memoird search`: plain words, `"a phrase"`, `-not`, `on:2026-04-02`,
    /// `tier:weekly`, and more.
    ///
    /// # Errors
    ///
    /// Returns why a file or the database could not be read. Every question is valid.
    pub fn search(&self, question: &str, limit: usize) -> Result<SearchResults, CommandError> {
        let now = self.now()?.with_timezone(&self.root.settings.zone.name.0);
        let options =
            SearchOptions { limit: limit.max(1), context: 0, raw: false, today: now.date_naive() };
        let query = Query::parse(question);
        search::find(&self.call, &self.root, &query, options, Some(&self.search_cache))
    }

    /// Returns the source lines of a line of a generated file, or of the whole file.
    ///
    /// # Errors
    ///
    /// Returns that nothing is recorded, or that the line is not an item.
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
    /// // The other direction: what was derived from the line.
    /// let up = folder.trace_up("2026-03-03:1")?;
    /// assert_eq!(up.derived[0].tier, "weekly");
    /// # Ok(())
    /// # }
    /// ```
    pub fn trace(&self, target: &str) -> Result<Trace, CommandError> {
        trace::trace_to_sources(&self.call, &self.root, target)
    }

    /// Returns everything that was derived from a line of a log (`2026-04-02:12`).
    ///
    /// # Errors
    ///
    /// Returns that nothing is recorded, or that the log has no such line.
    pub fn trace_up(&self, line: &str) -> Result<TraceUp, CommandError> {
        trace::trace_to_derived(&self.call, &self.root, line)
    }

    /// Returns what an agent should read at the start of a session.
    ///
    /// The default of `budget_tokens` is the configured budget.
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
        Ok(context::compose_default(&self.call, &self.root, budget_tokens)?.0)
    }

    /// Returns the sanitized text of a file: a path in the folder, a day, a week, a month, or the name of a
    /// memory.
    ///
    /// With `as_of` (`2026-04-02`, `3 days ago`), returns an earlier version.
    ///
    /// # Errors
    ///
    /// Returns that there is no such file, or no version of it from that time.
    pub fn read(&self, file: &str, as_of: Option<&str>) -> Result<FramedText, CommandError> {
        Ok(show::sanitized_at(&self.call, &self.root, file, as_of)?.1)
    }

    /// Appends an entry to today's log and returns the path of the log and the line number.
    ///
    /// The entry is on disk when this function returns.
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
        let (environment, config) = (self.call.environment.clone(), self.call.config.clone());
        let call = Invocation { environment, config, now };
        let logged = log::append_entry(&call, &self.root, entry)?;
        Ok((logged.path, logged.line))
    }

    /// Returns what is due; changes nothing.
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

    /// Compacts the folder: does everything that is due, with the configured engine. Waits for other
    /// writers.
    ///
    /// # Errors
    ///
    /// Returns what ended the run; finished jobs stay finished. A single failed job is not an error but is
    /// listed in the report.
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
        let (fixed, opened) = (self.now, self.call.now);
        let clock = move || fixed.or_else(|| clock::now().ok()).unwrap_or(opened);
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
