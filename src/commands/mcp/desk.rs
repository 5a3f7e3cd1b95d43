//! Opens the folder for a request, and does what a tool is for, by the verbs.
//!
//! The folder is opened anew for each request: its settings, what a person decided, and what may be seen
//! are those of the moment, however long the server has been running. No database is held between requests,
//! so any number of servers stand beside one daemon: what stays is what a search found out, for as long as
//! nothing changes.

use std::{path::PathBuf, sync::Arc};

use chrono::NaiveDate;
use serde_json::Value;

use super::{
    give,
    page::{self, PAGE_BYTES_MAX, PIECES_MAX},
    take::{self, Operation, Whose},
};
use crate::{
    commands::{
        GlobalArgs,
        context::{Call, Root},
        correct, coverage,
        error::{CommandError, Kind},
        log, search,
        session::keeper,
        session_start, show, status, trace,
        ui::{ColorChoice, Ui},
    },
    config::root::RootKind,
    memory::{
        address::Stem,
        period::Period,
        typed::{MemoryType, TypedMemory},
        wisdom::WisdomFile,
    },
    privacy::Rules,
    recall::{
        coverage::Uncovered,
        handed::{self, Handed, NOTICE},
        search::{How, Query, Shelf},
        trace::{Place, Source, Trace},
    },
    session::keep::IMPORT_BYTES_MAX,
    store::layout::FileKind,
};

/// The longest entry that is logged. What is longer is a file of its own.
const ENTRY_BYTES_MAX: usize = 64 * 1024;
/// A folder with more files than this is looked at no further.
const FILES_MAX: usize = 20_000;
/// The longest question.
const QUERY_BYTES_MAX: usize = 4 * 1024;

/// What the server works on.
#[derive(Debug)]
pub(super) struct Desk {
    global: GlobalArgs,
    path: PathBuf,
    writes: bool,
    /// What earlier searches found out.
    shelf: Arc<Shelf>,
}

/// The folder, opened for one request.
#[derive(Debug)]
pub(super) struct Seat {
    pub(super) call: Call,
    /// The one that is served.
    pub(super) agent: Root,
    /// The one about the person, where there is one.
    pub(super) person: Option<Root>,
    writes: bool,
    shelf: Arc<Shelf>,
}

impl Desk {
    /// Works on the folder at `path`.
    pub(super) fn new(global: GlobalArgs, path: PathBuf, writes: bool) -> Self {
        Self { global, path, writes, shelf: Arc::default() }
    }

    /// Returns whether agents may do more than read and log.
    pub(super) fn writes(&self) -> bool {
        self.writes
    }

    /// Opens it.
    pub(super) fn seat(&self) -> Result<Seat, CommandError> {
        let call = Call::read(&self.global)?;
        let agent = call.open(&self.path)?;
        let others = call.config.roots.iter().filter(|it| it.path != self.path);
        // One that cannot be opened is told by `status`, and is none of this one's concern.
        let person = others
            .filter_map(|it| call.open(&it.path).ok())
            .find(|it| it.settings.kind == RootKind::User);
        Ok(Seat { call, agent, person, writes: self.writes, shelf: Arc::clone(&self.shelf) })
    }
}

/// A bad argument.
fn bad(what: String) -> CommandError {
    CommandError::new(Kind::Usage, what)
}

/// Returns words that cannot speak to a verb, only to the person who runs the server.
fn mute() -> Ui {
    Ui::new(true, true, false, ColorChoice::Never)
}

impl Seat {
    /// Returns the folder that is meant.
    pub(super) fn of(&self, whose: Whose) -> Result<&Root, CommandError> {
        match whose {
            Whose::Agent => Ok(&self.agent),
            Whose::Person => self.person.as_ref().ok_or_else(|| {
                bad("`of`: no memory folder about the person is configured".to_owned())
                    .hint("leave `of` out, to ask the folder that is served")
            }),
        }
    }

    fn today(&self) -> NaiveDate {
        self.call.now.with_timezone(&self.agent.settings.zone.name.0).date_naive()
    }

    /// Finds lines.
    pub(super) fn search(&self, asked: &take::Search) -> Result<give::Found, CommandError> {
        if asked.query.len() > QUERY_BYTES_MAX {
            return Err(bad(format!("`query` is longer than {QUERY_BYTES_MAX} bytes"))
                .hint("ask one question at a time"));
        }
        let root = self.of(asked.of)?;
        let mut query = Query::parse(&asked.query);
        query.tiers.extend(asked.tier.iter().flatten().map(|it| it.name().to_owned()));
        query.kind = asked.kind.map(|it| it.kind().name().to_owned()).or(query.kind);
        let since = take::period("since", asked.since.as_ref()).map_err(bad)?;
        let until = take::period("until", asked.until.as_ref()).map_err(bad)?;
        query.since = since.map(Period::first).or(query.since);
        query.until = until.map(Period::last).or(query.until);
        if query.text.trim().is_empty() && query.since.is_none() && query.until.is_none() {
            return Err(bad("`query`: there is nothing to look for in it".to_owned())
                .hint("ask in plain words: memory_search {\"query\": \"why SQLite\"}"));
        }
        let start = page::start(asked.cursor.as_ref()).map_err(bad)?.min(PIECES_MAX);
        let limit = asked.limit.unwrap_or(10).clamp(1, 50);
        let how = How {
            // One more than is shown, so that it is known whether there are more.
            limit: start + limit + 1,
            context: asked.context.unwrap_or(0).min(10),
            raw: asked.raw,
            today: self.today(),
        };
        let found = search::find(&self.call, root, &query, how, Some(&self.shelf))?;
        let hits = found.hits.iter().map(hit).collect();
        let (hits, next_cursor) = page::cut(hits, start, limit);
        let (query, words_only) = (found.query, found.words_only);
        Ok(give::Found { notice: NOTICE, query, words_only, hits, next_cursor })
    }

    /// Reads a file.
    pub(super) fn file(&self, asked: &take::Read) -> Result<give::Text, CommandError> {
        let root = self.of(asked.of)?;
        let (path, handed, since) =
            show::handed_at(&self.call, root, &asked.file, asked.as_of.as_deref())?;
        let from = asked.from.unwrap_or(1);
        let to = asked.to.unwrap_or(usize::MAX);
        if to < from {
            return Err(bad(format!("`to` ({to}) lies before `from` ({from})")));
        }
        text(root, path, handed, since, (from, to))
    }

    /// Composes what is to be read first.
    pub(super) fn context(&self, asked: &take::Context) -> Result<give::Context, CommandError> {
        let budget = asked.budget_tokens.map(|it| it.min(20_000));
        let made = session_start::composed(&self.call, &self.agent, budget, &mute())?;
        let parts = made.parts.into_iter().map(|it| give::Part {
            name: it.name.to_owned(),
            lines: it.lines,
            left_out: it.left_out,
            tokens: it.tokens,
        });
        Ok(give::Context {
            notice: NOTICE,
            date: self.today().to_string(),
            text: made.text.lines().fold(String::new(), |text, it| text + &told_line(it) + "\n"),
            tokens: made.tokens,
            parts: parts.collect(),
        })
    }

    /// Writes an entry down.
    pub(super) fn log(&self, asked: &take::Log) -> Result<give::Logged, CommandError> {
        if asked.text.len() > ENTRY_BYTES_MAX {
            return Err(bad(format!("`text` is longer than {} KiB", ENTRY_BYTES_MAX / 1024))
                .hint("keep it as a file beside the logs, and log in a line what it is"));
        }
        if asked.text.trim().is_empty() {
            return Err(bad("`text`: there is nothing to write down".to_owned()));
        }
        self.agent.refuse_stranger()?;
        let log::Logged { path, line } = log::append(&self.call, &self.agent, &asked.text)?;
        Ok(give::Logged { path, line, stored: true })
    }

    /// Puts an item right.
    pub(super) fn correct(&self, asked: &take::Correct) -> Result<give::Corrected, CommandError> {
        let how = correct::How { folds: true, is_dry: asked.dry_run };
        let (draft, passed) =
            correct::put_right(&self.call, &self.agent, &asked.target, &asked.text, how)?;
        let rules = &self.agent.rules;
        let jobs = passed.iter().flat_map(|it| &it.report.jobs).map(|it| give::Job {
            tier: it.tier.to_owned(),
            period: it.period.clone(),
            outcome: it.outcome.to_owned(),
            reason: it.reason.clone(),
        });
        Ok(give::Corrected {
            path: draft.path.clone(),
            line: draft.corrected.line,
            before: rules.shown(&draft.corrected.before).into_owned(),
            after: rules.shown(&draft.corrected.after).into_owned(),
            changed: !draft.is_said() && !asked.dry_run,
            dry_run: asked.dry_run,
            above: draft.above.iter().map(|(tier, it)| format!("{} {it}", tier.name())).collect(),
            jobs: jobs.collect(),
        })
    }

    /// Leads a line down to the logs, or up from them.
    pub(super) fn trace(&self, asked: &take::Trace) -> Result<give::Traced, CommandError> {
        let start = page::start(asked.cursor.as_ref()).map_err(bad)?;
        let limit = asked.limit.unwrap_or(50).clamp(1, 200);
        if asked.up {
            let up = trace::leading_up(&self.call, &self.agent, &asked.target)?;
            let derived = up.derived.iter().map(|it| give::Derived {
                tier: it.tier.to_owned(),
                path: it.place.path.clone(),
                line: it.place.line,
                text: page::short(&it.place.text),
            });
            let (derived, next_cursor) = page::cut(derived.collect(), start, limit);
            let (target, sources) = (place(&up.target), Vec::new());
            return Ok(give::Traced { notice: NOTICE, target, sources, derived, next_cursor });
        }
        let down = trace::leading_down(&self.call, &self.agent, &asked.target)?;
        let mut all = Vec::new();
        if down.items.is_empty() {
            self.sources(&down, None, &mut all);
        }
        for item in &down.items {
            self.sources(item, Some(&spot(&item.target)), &mut all);
        }
        let (sources, next_cursor) = page::cut(all, start, limit);
        let (target, derived) = (place(&down.target), Vec::new());
        Ok(give::Traced { notice: NOTICE, target, sources, derived, next_cursor })
    }

    fn sources(&self, trace: &Trace, item: Option<&String>, all: &mut Vec<give::Source>) {
        for source in &trace.sources {
            self.source(source, item, None, all);
        }
    }

    fn source(
        &self,
        source: &Source,
        item: Option<&String>,
        beneath: Option<&String>,
        all: &mut Vec<give::Source>,
    ) {
        all.push(give::Source {
            path: source.path.clone(),
            line_start: source.line_start,
            line_end: source.line_end,
            date: self.date_of(&source.path),
            origin: source.origin.map(str::to_owned),
            text: page::short(&source.text),
            gone: source.gone,
            changed: source.changed,
            item: item.cloned(),
            via: source.via.iter().map(spot).collect(),
            beneath: beneath.cloned(),
        });
        let above = format!("{}:{}", source.path, source.line_start);
        for lower in &source.sources {
            self.source(lower, item, Some(&above), all);
        }
    }

    /// Returns the day of a log, or the period of a summary.
    fn date_of(&self, path: &str) -> Option<String> {
        let stem = self.agent.vault.layout().stem_at(path);
        stem.map(|it: Stem| it.date().to_string())
    }

    /// Lists what reached no item.
    pub(super) fn coverage(&self, asked: &take::Coverage) -> Result<give::Coverage, CommandError> {
        let period = take::period("period", asked.period.as_ref()).map_err(bad)?;
        let start = page::start(asked.cursor.as_ref()).map_err(bad)?;
        let told = coverage::of_period(&self.call, &self.agent, period)?;
        let left_out = told.uncovered.len();
        let lines = told.uncovered.into_iter().map(|it| {
            let Uncovered { path, line, text, reason } = it;
            let date = self.date_of(&path);
            give::Uncovered { path, line, date, text: page::short(&text), reason }
        });
        let limit = asked.limit.unwrap_or(50).clamp(1, 200);
        let (uncovered, next_cursor) = page::cut(lines.collect(), start, limit);
        let (period, lines, covered) = (told.period, told.lines, told.covered);
        Ok(give::Coverage {
            notice: NOTICE,
            period,
            lines,
            covered,
            left_out,
            uncovered,
            next_cursor,
        })
    }

    /// Returns all typed memories of a folder.
    fn memories(&self, whose: Whose) -> Result<Vec<(String, TypedMemory)>, CommandError> {
        let root = self.of(whose)?;
        let layout = root.vault.layout();
        let (paths, _) = root.vault.files_below(layout.memory_dir(), FILES_MAX);
        let mut memories = Vec::new();
        for path in paths {
            let name = path.rsplit('/').next().unwrap_or(&path);
            if layout.kind_of(&path) != Some(FileKind::Memory) || layout.typed(name) != path {
                continue;
            }
            let Some(text) = root.vault.read_text(&path)? else { continue };
            // One that cannot be read as such is told of by `status`.
            memories.extend(TypedMemory::parse(name.as_ref(), &text).ok().map(|it| (path, it)));
        }
        memories.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(memories)
    }

    /// Lists typed memories.
    pub(super) fn list(&self, asked: &take::List) -> Result<give::Memories, CommandError> {
        let start = page::start(asked.cursor.as_ref()).map_err(bad)?;
        let kind: Option<MemoryType> = asked.kind.map(take::Type::kind);
        let mut all = Vec::new();
        for whose in [Whose::Person, Whose::Agent] {
            if whose == Whose::Person && self.person.is_none() {
                continue;
            }
            let root = self.of(whose)?;
            for (path, it) in self.memories(whose)? {
                if kind.is_none_or(|kind| it.kind == kind) {
                    all.push(memory(whose, path, &it, &root.rules));
                }
            }
        }
        let total = all.len();
        let (memories, next_cursor) =
            page::cut(all, start, asked.limit.unwrap_or(50).clamp(1, 200));
        Ok(give::Memories { notice: NOTICE, total, memories, next_cursor })
    }

    /// Reads one typed memory.
    pub(super) fn get(&self, asked: &take::Get) -> Result<give::OneMemory, CommandError> {
        let root = self.of(asked.of)?;
        let wanted = asked.name.trim_end_matches(".md");
        let found = self.memories(asked.of)?.into_iter().find(|(_, it)| {
            let file = it.file_name.to_string_lossy();
            it.name == wanted || file.trim_end_matches(".md") == wanted
        });
        let Some((path, it)) = found else {
            let name: String = asked.name.chars().take(80).collect();
            return Err(bad(format!("`name`: there is no memory `{name}`"))
                .hint("memory_list {} says which there are"));
        };
        let body = handed::hand(None, None, &it.body, &root.rules).text;
        let read = page::lines(&body, 1, usize::MAX, PAGE_BYTES_MAX);
        Ok(give::OneMemory {
            notice: NOTICE,
            memory: memory(asked.of, path, &it, &root.rules),
            text: read.text,
            sources: it.sources.iter().map(|(at, _)| at.to_string()).collect(),
            supersedes: it.supersedes.as_deref().map(|it| handed::hand_line(it, &root.rules)),
        })
    }

    /// Lists session records.
    pub(super) fn session_list(
        &self,
        asked: &take::SessionList,
    ) -> Result<give::Records, CommandError> {
        let root = &self.agent;
        let start = page::start(asked.cursor.as_ref()).map_err(bad)?;
        let since = take::period("since", asked.since.as_ref()).map_err(bad)?.map(Period::first);
        let until = take::period("until", asked.until.as_ref()).map_err(bad)?.map(Period::last);
        let mut records = keeper(&self.call, root).records()?;
        records.retain(|it| {
            let date = it.header.ended.map(|it| it.date_naive());
            let date = date.or_else(|| Some(it.header.id.parse::<Stem>().ok()?.date()));
            let project = it.header.project.as_deref().unwrap_or_default();
            asked.project.as_ref().is_none_or(|it| project.contains(it.trim_end_matches('/')))
                && asked.tag.as_ref().is_none_or(|tag| it.header.tags.contains(tag))
                && since.is_none_or(|it| date.is_some_and(|date| it <= date))
                && until.is_none_or(|it| date.is_some_and(|date| date <= it))
        });
        records
            .sort_by(|a, b| b.header.ended.cmp(&a.header.ended).then_with(|| b.path.cmp(&a.path)));
        let seen = |it: String| handed::hand_line(&it, &root.rules);
        let total = records.len();
        let records = records.into_iter().map(|it| give::Record {
            id: it.header.id,
            path: it.path,
            project: it.header.project.map(seen),
            ended: it.header.ended.map(|it| it.to_rfc3339()),
            agent: it.header.agent.map(seen),
            description: it.header.description.map(|it| page::short(&seen(it))),
            tags: it.header.tags.into_iter().map(seen).collect(),
            style: seen(it.header.style),
        });
        let limit = asked.limit.unwrap_or(20).clamp(1, 100);
        let (records, next_cursor) = page::cut(records.collect(), start, limit);
        Ok(give::Records { notice: NOTICE, total, records, next_cursor })
    }

    /// Reads a session record as it may be seen.
    pub(super) fn session_export(
        &self,
        asked: &take::SessionExport,
    ) -> Result<give::Text, CommandError> {
        let name = asked.id.trim_end_matches(".md");
        if !name.parse::<Stem>().is_ok_and(|it| it.is_session()) {
            let name: String = name.chars().take(80).collect();
            return Err(bad(format!("`id`: `{name}` is not the name of a record"))
                .hint("a name like CMEM-20260402-101500; memory_session_list {} has them all"));
        }
        let (path, handed, since) = show::handed_at(&self.call, &self.agent, name, None)?;
        text(&self.agent, path, handed, since, (asked.from.unwrap_or(1), usize::MAX))
    }

    /// Keeps a session record.
    pub(super) fn session_import(
        &self,
        asked: &take::SessionImport,
    ) -> Result<give::Imported, CommandError> {
        if asked.text.trim().is_empty() {
            return Err(bad("`text` is empty".to_owned()));
        }
        if asked.text.len() as u64 > IMPORT_BYTES_MAX {
            return Err(bad(format!("`text` holds more than {} MiB", IMPORT_BYTES_MAX >> 20)));
        }
        self.agent.refuse_stranger()?;
        let (id, path, unchanged) = keeper(&self.call, &self.agent).import(&asked.text)?;
        Ok(give::Imported { id, path, unchanged })
    }

    /// The three above in one.
    pub(super) fn core_memory(
        &self,
        asked: take::CoreMemory,
    ) -> Result<give::CoreMemory, CommandError> {
        let mut given = give::CoreMemory::default();
        match asked.operation {
            Operation::List => {
                let take::CoreMemory { project, tag, limit, cursor, .. } = asked;
                let (since, until) = (None, None);
                let asked = take::SessionList { project, tag, since, until, limit, cursor };
                given.list = Some(self.session_list(&asked)?);
            }
            Operation::Export => {
                let id = asked.id.ok_or_else(|| bad("`id` is missing for `export`".to_owned()))?;
                let asked = take::SessionExport { id, from: asked.from };
                given.export = Some(self.session_export(&asked)?);
            }
            Operation::Import => {
                if !self.writes {
                    return Err(not_allowed("core_memory with `import`"));
                }
                let text =
                    asked.text.ok_or_else(|| bad("`text` is missing for `import`".to_owned()))?;
                given.import = Some(self.session_import(&take::SessionImport { text })?);
            }
        }
        Ok(given)
    }

    /// Says how things stand.
    pub(super) fn status(&self) -> Result<give::Status, CommandError> {
        const PROBLEMS_MAX: usize = 20;
        let whole = status::document(&self.call, self.agent.vault.layout().root())?;
        let word = |it: &Value| it.as_str().unwrap_or_default().to_owned();
        let count = |it: &Value| it.as_array().map_or(0, Vec::len);
        let list = |key: &str| whole[key].as_array().cloned().unwrap_or_default();
        let tiers = list("tiers").into_iter().map(|it| give::TierStatus {
            tier: word(&it["tier"]),
            files: it["files"].as_u64().unwrap_or(0),
            newest: it["newest"].as_str().map(str::to_owned),
            due: count(&it["due"]),
        });
        let all = list("problems");
        let problems = all.iter().take(PROBLEMS_MAX).map(|it| give::Problem {
            path: handed::hand_line(&word(&it["path"]), &self.agent.rules),
            reason: Rules::told(&page::short(&word(&it["reason"]))),
        });
        Ok(give::Status {
            agent_name: word(&whole["agent_name"]),
            today: self.today().to_string(),
            zone: word(&whole["zone"]),
            tiers: tiers.collect(),
            daemon_running: whole["daemon"]["running"].as_bool().unwrap_or(false),
            engine: word(&whole["model"]["engine"]),
            held_for_review: usize::try_from(whole["quarantined"].as_u64().unwrap_or(0))
                .unwrap_or(usize::MAX),
            stuck: count(&whole["parked"]) + count(&whole["failed"]),
            problems: problems.collect(),
            more_problems: all.len().saturating_sub(PROBLEMS_MAX),
            may_write: self.writes,
            person: self.person.is_some(),
        })
    }
}

/// Names tools in the place of verbs, in the lines by which the context says where more is.
fn told_line(line: &str) -> String {
    let is_ours = line.starts_with("More: memoird ")
        || (line.starts_with('[') && line.contains(" lines are left out: memoird "));
    match line.split_once("memoird --root '") {
        Some((start, rest)) if line.starts_with('[') => match rest.split_once("' show ") {
            Some((_, file)) => format!("{start}memory_read, `of` person, {file}"),
            None => line.to_owned(),
        },
        _ if is_ours => in_tools(line),
        _ => line.to_owned(),
    }
}

/// Names tools in the place of verbs, where there is one.
pub(super) fn in_tools(hint: &str) -> String {
    const TOOLS: [(&str, &str); 8] = [
        ("memoird session list", "memory_session_list"),
        ("memoird session show", "memory_session_export"),
        ("memoird status", "memory_status"),
        ("memoird search", "memory_search"),
        ("memoird trace --up", "memory_trace with `up`"),
        ("memoird trace", "memory_trace"),
        ("memoird show", "memory_read"),
        ("memoird coverage", "memory_coverage"),
    ];
    let mut hint = hint.to_owned();
    for (verb, tool) in TOOLS {
        hint = hint.replace(verb, tool);
    }
    hint
}

/// Says that only a person may allow it.
pub(super) fn not_allowed(tool: &str) -> CommandError {
    let what = format!("{tool} changes the memory folder, and this server may only read and log");
    bad(what).hint(
        "a person can allow it: `memoird mcp --allow-write`, or `mcp: { write: true }` in the configuration",
    )
}

/// Takes lines out of a file as it may be seen.
fn text(
    root: &Root,
    path: String,
    handed: Handed,
    since: Option<String>,
    (from, to): (usize, usize),
) -> Result<give::Text, CommandError> {
    let lines = page::lines(&handed.text, from, to, PAGE_BYTES_MAX);
    if from > lines.all.max(1) {
        return Err(bad(format!("`from`: `{path}` has {} lines", lines.all)));
    }
    let kind = root.vault.layout().kind_of(&path);
    Ok(give::Text {
        notice: NOTICE,
        kind: kind.map_or("", FileKind::name).to_owned(),
        origin: handed.note.origin.to_owned(),
        date: handed.note.date.or_else(|| date_in(kind, &handed.text)),
        since,
        from: lines.from,
        to: lines.to,
        lines: lines.all,
        next_from: (lines.to < lines.all.min(to)).then_some(lines.to + 1),
        text: lines.text,
        path,
    })
}

/// Returns the day that a file says it is of, where its name says none.
pub(super) fn date_in(kind: Option<FileKind>, text: &str) -> Option<String> {
    let line = |start: &str| {
        let found = text.lines().take(60).find_map(|it| it.trim().strip_prefix(start));
        found.map(|it| it.trim().trim_matches(['"', '\'']).to_owned())
    };
    let day = match kind? {
        FileKind::Wisdom => {
            let entries = WisdomFile::parse(text);
            let marks = entries
                .entries_with_lines()
                .into_iter()
                .filter_map(|(_, it)| it.mark.as_ref().map(|it| it.last_reinforced.to_string()));
            line("Last compacted:").or_else(|| marks.max())
        }
        FileKind::Memory => line("updated:").or_else(|| line("created:")),
        _ => None,
    };
    day.filter(|it| it.parse::<NaiveDate>().is_ok())
}

fn memory(whose: Whose, path: String, it: &TypedMemory, rules: &Rules) -> give::Memory {
    let seen = |it: &str| page::short(&handed::hand_line(it, rules));
    let of = if whose == Whose::Person { "person" } else { "agent" };
    give::Memory {
        of: of.to_owned(),
        name: seen(&it.name),
        kind: it.kind.name().to_owned(),
        description: seen(&it.description),
        path,
        origin: if it.is_ours() { "derived" } else { "human" }.to_owned(),
        date: it.updated.or(it.created).map(|it| it.to_string()),
    }
}

fn hit(hit: &crate::recall::search::Hit) -> give::Hit {
    let mut more = match serde_json::to_value(hit) {
        Ok(Value::Object(it)) => it,
        _ => serde_json::Map::new(),
    };
    for known in [
        "path", "line", "date", "tier", "origin", "score", "found_by", "text", "before", "after",
        "via",
    ] {
        more.shift_remove(known);
    }
    give::Hit {
        path: hit.path.clone(),
        line: hit.line,
        date: hit.date.to_string(),
        tier: hit.tier.to_owned(),
        origin: hit.origin.to_owned(),
        score: (hit.score * 1e4).round() / 1e4,
        found_by: hit.found_by.iter().map(|it| (*it).to_owned()).collect(),
        text: page::short(&hit.text),
        before: hit.before.iter().map(|it| page::short(it)).collect(),
        after: hit.after.iter().map(|it| page::short(it)).collect(),
        via: hit.via.iter().map(|it| format!("{}:{}", it.path, it.line)).collect(),
        more,
    }
}

fn place(place: &Place) -> give::Place {
    give::Place { path: place.path.clone(), line: place.line, text: page::short(&place.text) }
}

fn spot(place: &Place) -> String {
    match place.line {
        Some(line) => format!("{}:{line}", place.path),
        None => place.path.clone(),
    }
}
