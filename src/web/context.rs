//! What a page is made from: an open memory folder, and how to link to other pages.
//!
//! The folder is opened for each request, so that settings, decisions, and files are current.

use std::{
    cell::{OnceCell, RefCell},
    collections::BTreeSet,
    path::PathBuf,
    sync::Arc,
};

use chrono::NaiveDate;
use maud::{Markup, Render, html};

use super::{
    address::{PageAddress, encoded},
    page_compaction::PageCompaction,
    pages::timeline::FolderTimeline,
    state_cache::{FolderState, StateCache, UndoPreview},
};
use crate::{
    memory::{
        address::{Citation, Stem},
        period::Period,
        wisdom::WisdomFile,
    },
    operations::{
        coverage::coverage_in,
        error::{CommandError, CommandResult},
        review::queue::ReviewEntry,
        status::health::FolderHealth,
        workspace::{ConfigOverrides, Invocation, MemoryRoot},
    },
    privacy::{PrivacyRules, SanitizedLine, SanitizedLog, quarantine},
    recall::{
        coverage::Coverage, framing::FramedText, search::SearchCache, trace::TraceSources as _,
    },
};

/// An open folder, for one page or for all pages of an export.
pub(super) struct PageContext {
    pub(super) call: Invocation,
    pub(super) root: MemoryRoot,
    pub(super) folder: FolderChoice,
    links: LinkStyle,
    /// The token of forms; `None` where nothing can be changed.
    csrf: Option<String>,
    pub(super) shared: Arc<SharedFolder>,
    /// What is known of the files, once it was needed: all pages of an export show one state.
    state: OnceCell<Arc<FolderState>>,
    /// The pages that were linked, for an export.
    linked: RefCell<BTreeSet<PageAddress>>,
}

/// What all requests about one folder share.
#[derive(Default)]
pub(super) struct SharedFolder {
    pub(super) search: SearchCache,
    states: StateCache,
    pub(super) compaction: Arc<PageCompaction>,
}

/// The folders to choose from, and the chosen one.
#[derive(Clone, Debug)]
pub(super) struct FolderChoice {
    pub(super) paths: Arc<[PathBuf]>,
    pub(super) index: usize,
}

/// Where links lead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LinkStyle {
    /// To the server, whose pages are below this path.
    Server(Arc<str>),
    /// To files beside this one.
    Files,
}

impl PageContext {
    /// Opens the chosen folder.
    pub(super) fn open(
        overrides: &ConfigOverrides,
        folder: FolderChoice,
        links: LinkStyle,
        csrf: Option<String>,
        shared: Arc<SharedFolder>,
    ) -> CommandResult<Self> {
        let call = Invocation::read(overrides)?;
        let path = folder.paths.get(folder.index);
        let path = path.ok_or_else(|| CommandError::usage("there is no such memory folder"))?;
        let mut root = call.open_root(path)?;
        // Files change only by a form; an export is asked for as a verb is.
        root.only_reads = matches!(links, LinkStyle::Server(_));
        root.require_memory_folder()?;
        Ok(Self {
            call,
            root,
            folder,
            links,
            csrf,
            shared,
            state: OnceCell::new(),
            linked: RefCell::default(),
        })
    }

    /// Returns the day in the folder's time zone.
    pub(super) fn today(&self) -> NaiveDate {
        self.call.now.with_timezone(&self.root.settings.zone.name.0).date_naive()
    }

    fn state(&self) -> &FolderState {
        self.state.get_or_init(|| self.shared.states.current(&self.root))
    }

    /// Returns what is due, stuck, or wrong in the folder.
    pub(super) fn health(&self) -> CommandResult<Arc<FolderHealth>> {
        self.state().health(&self.call, &self.root)
    }

    /// Returns the files of the folder, and what became of each period.
    pub(super) fn timeline(&self) -> CommandResult<Arc<FolderTimeline>> {
        self.state().timeline(&self.call, &self.root)
    }

    /// Returns what waits for a decision.
    pub(super) fn review_entries(&self) -> CommandResult<Arc<Vec<ReviewEntry>>> {
        self.state().review(&self.call, &self.root)
    }

    /// Returns the logs that name a session record.
    pub(super) fn logs_naming(&self, record: &Stem) -> CommandResult<Vec<Stem>> {
        self.state().logs_naming(&self.call, &self.root, record)
    }

    /// Returns what undoing a run would do.
    pub(super) fn undo_preview(
        &self,
        number: i64,
        read: impl FnOnce() -> CommandResult<UndoPreview>,
    ) -> CommandResult<Arc<UndoPreview>> {
        self.state().undo(number, read)
    }

    /// Says what the jobs that are due would cost.
    pub(super) fn due_cost(&self) -> CommandResult<Arc<String>> {
        self.state().due_cost(&self.call, &self.root)
    }

    /// Returns which lines of a period's logs are in its summary; `None` if there is none.
    pub(super) fn coverage(&self, period: Period) -> Option<Coverage> {
        let timeline = self.timeline().ok()?;
        coverage_in(&self.call, &self.root, timeline.inventory(), period).ok()
    }

    /// Returns the token of forms; `None` if the page has no forms.
    pub(super) fn form_token(&self) -> Option<&str> {
        self.csrf.as_deref()
    }

    /// Returns whether the page is a file of an export.
    pub(super) fn is_export(&self) -> bool {
        self.links == LinkStyle::Files
    }

    /// Returns the URL of a page; `None` if this form of the page has none.
    pub(super) fn href(&self, page: &PageAddress) -> Option<String> {
        match &self.links {
            LinkStyle::Server(base) => {
                Some(format!("{base}/r/{}/{}", self.folder.index, page.path()))
            }
            LinkStyle::Files => {
                let (name, position) = page.file_name()?;
                let target = match page {
                    PageAddress::Line(stem, line) => PageAddress::of_log_line(stem, *line),
                    page => page.clone(),
                };
                self.linked.borrow_mut().insert(target);
                let position = position.map(|it| format!("#{it}")).unwrap_or_default();
                Some(format!("{}{position}", encoded(&name)))
            }
        }
    }

    /// Returns the pages that were linked since the last call.
    pub(super) fn take_linked(&self) -> BTreeSet<PageAddress> {
        self.linked.take()
    }

    /// Returns a link, or only the text if there is no such page.
    pub(super) fn link(&self, page: &PageAddress, text: impl Render) -> Markup {
        html! {
            @if let Some(href) = self.href(page) { a href=(href) { (text) } } @else { (text) }
        }
    }

    /// Returns a link to the versions of a file; nothing in an export, which has only the newest ones.
    pub(super) fn versions_link(&self, path: &str, text: &str) -> Markup {
        let href = self.href(&PageAddress::Versions(path.to_owned()));
        html! { @if let Some(href) = href { a href=(href) { (text) } } }
    }

    /// Returns the URL of a file of the page itself.
    pub(super) fn asset(&self, name: &str) -> String {
        self.server_url(&format!("/assets/{name}")).unwrap_or_else(|| name.to_owned())
    }

    /// Returns the URL of a path below the server's pages; `None` in an export.
    pub(super) fn server_url(&self, path: &str) -> Option<String> {
        match &self.links {
            LinkStyle::Server(base) => Some(format!("{base}{path}")),
            LinkStyle::Files => None,
        }
    }

    /// Returns the log or session record at a path; `None` for another file, such as a summary.
    pub(super) fn log_stem(&self, path: &str) -> Option<Stem> {
        self.root.vault.layout().stem_at(path).filter(|it| !it.is_summary())
    }

    /// Returns a sanitized log or session record; `None` if there is none.
    pub(super) fn log(&self, stem: &Stem) -> Option<Arc<SanitizedLog>> {
        if stem.is_summary() { None } else { self.sanitized(stem) }
    }

    /// Returns a sanitized log, session record, or summary, in which a person may have written; `None` if there is none.
    pub(super) fn sanitized(&self, stem: &Stem) -> Option<Arc<SanitizedLog>> {
        self.state().log(&self.root, stem)
    }

    /// Returns the sanitized text of a memory file; `None` if there is none.
    pub(super) fn file(&self, path: &str) -> CommandResult<Option<FramedText>> {
        if self.root.vault.layout().kind_of(path).is_none() {
            return Ok(None);
        }
        self.root.read_sanitized(path)
    }

    /// Returns `WISDOM.md` with its record and sanitized words; `None` if there is none.
    pub(super) fn wisdom(&self) -> Option<WisdomFile> {
        let path = self.root.vault.layout().wisdom();
        Some(WisdomFile::parse(&self.root.document(&path)?.text))
    }

    /// Returns the name of the folder's agent, or of a person.
    pub(super) fn agent_name(&self) -> String {
        PrivacyRules::default().sanitize_agent_name(&self.root.settings.agent_name)
    }

    /// Returns the cited lines, at most `max` of them, and how many there are.
    pub(super) fn cited_lines(&self, citation: &Citation, max: usize) -> (Vec<CitedLine>, usize) {
        let mut lines = Vec::new();
        let mut count = 0;
        for (stem, ranges) in citation.files() {
            count += ranges.len();
            for number in ranges.iter().take(max.saturating_sub(lines.len())) {
                let log = self.log(stem);
                let text = log.as_ref().and_then(|it| it.line(number)).map(shown_text);
                let text = text.map(str::to_owned);
                lines.push(CitedLine { stem: stem.clone(), number, text });
            }
        }
        (lines, count)
    }
}

/// A line that an item cites.
#[derive(Clone, Debug)]
pub(super) struct CitedLine {
    pub(super) stem: Stem,
    /// From 1.
    pub(super) number: u32,
    /// The sanitized line; `None` if it is gone.
    pub(super) text: Option<String>,
}

/// Returns what is shown of a line.
pub(super) fn shown_text(line: &SanitizedLine) -> &str {
    if line.is_quarantined() { quarantine::PLACEHOLDER } else { line.text() }
}

/// The fields of a query or form, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Fields(Vec<(String, String)>);

impl Fields {
    /// Reads fields as forms send them.
    pub(super) fn parse(text: &[u8]) -> Self {
        Self(form_urlencoded::parse(text).into_owned().collect())
    }

    /// Returns the first value of a field, without blanks around it; `None` if it is empty.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.all(name).map(str::trim).find(|it| !it.is_empty())
    }

    /// Returns all values of a field.
    pub(super) fn all<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |it| it.0 == name).map(|it| &it.1[..])
    }
}
