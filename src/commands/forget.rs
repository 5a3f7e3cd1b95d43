//! `memoird forget`: removes lines and everything derived from them.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    io::Read as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use serde::Serialize;

use super::{GlobalArgs, error_report::exit_code_if_failed, secrets, ui::Ui};
use crate::{
    compaction::{
        self,
        forget::{
            ForgetOutcome,
            impact::{ForgetImpact, UntouchedFile, find_impact, last_kept_bytes, vanished_logs},
            removal::RemovedText,
            request::ForgetRequest,
        },
        plan::Selection,
        report::RunReport,
    },
    config::environment::Environment,
    memory::{
        address::{Address, Citation, LineSet, Stem},
        bare_words::normalized,
        document::{BulletOwner, Summary},
        frontmatter,
        hash::ContentHash,
        item::Item,
        log::DailyLog,
        period::Period,
        typed::TypedMemory,
        wisdom::WisdomFile,
    },
    operations::{
        compact::run_compaction,
        error::{CommandError, CommandResult},
        format::counted,
        workspace::{self, Invocation, MemoryRoot, require_writer},
    },
    recall::framing::{self, SanitizedLines},
    store::{
        db::lineage::Lineage,
        fs::layout::{FileKind, visible_text},
    },
};

/// Forget lines of logs: remove everything derived from them
///
/// Shows first what would be removed: bullets, entries, typed memories, kept versions, and copies. This
/// cannot be undone. The daily log itself does not change, but no summary will use the line again; with
/// --from-log the line is also removed from the log.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(super) struct ForgetArgs {
    /// A line (2026-04-02:12, memory/2026-04-02.md:12-15), a bullet or entry
    /// (memory/weekly/2026-W14.md:9, WISDOM.md:20), a log, a typed memory, or words (whole ones)
    #[arg(value_name = "LINE|PATH|QUERY", required_unless_present_any = ["from_file", "secrets"])]
    what: Vec<String>,
    /// Read what to forget from a file, one per line; - for stdin
    #[arg(long, value_name = "FILE")]
    from_file: Option<PathBuf>,
    /// Treat every argument as words, even if it looks like a line or a path
    #[arg(long)]
    words: bool,
    /// Also remove the lines from the logs
    #[arg(long)]
    from_log: bool,
    /// Remove secrets that newer rules detect from generated files, the history, and copies; the logs do
    /// not change
    #[arg(long, conflicts_with_all = ["what", "from_file", "words", "from_log"])]
    secrets: bool,
    /// Show what would be removed, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask for confirmation
    #[arg(short, long)]
    yes: bool,
}

/// Shorter words would match nearly every line.
const WORDS_CHARS_MIN: usize = 3;
/// How many entries of a list are shown without `--verbose`.
const SHOWN_MAX: usize = 20;

/// What `--json` prints.
#[derive(Serialize)]
struct ForgetReport<'a> {
    dry_run: bool,
    from_log: bool,
    lines: &'a [RemovedText],
    vanished: &'a [RemovedText],
    items: &'a [RemovedText],
    memories: &'a [RemovedText],
    others: &'a [RemovedText],
    versions: usize,
    copies: &'a [String],
    untouched: &'a [UntouchedFile],
    again: Vec<RegeneratedSummary>,
    vacuumed: Option<bool>,
    refolded: Option<&'a RunReport>,
}

#[derive(Serialize)]
struct RegeneratedSummary {
    tier: &'static str,
    period: String,
}

pub(super) fn run(global: &GlobalArgs, args: &ForgetArgs, ui: &Ui) -> CommandResult {
    let (call, root) = Invocation::with_root_to_write(global, ui)?;
    if args.secrets {
        let request = secrets::SecretsRequest {
            action: secrets::SecretsAction::Purge,
            dry_run: args.dry_run,
            yes: args.yes,
            command: "memoird forget --secrets",
        };
        return secrets::run(&call, &root, request, ui);
    }
    let engine = root.engine(&call)?;
    let now = call.now;
    let targets = args.targets()?;
    if args.dry_run {
        let lineage = Lineage::open_existing(&root.vault.layout().database())?;
        compaction::read_snapshot(&root.vault, lineage.as_ref())?.refuse_damaged(|_| true)?;
        let request = TargetResolver::new(&root, &call.environment, args, lineage.as_ref())?
            .request(&targets)?;
        let impact = find_impact(&root.vault, lineage.as_ref(), &request)?;
        show(&root, &impact, args, None, ui);
        return Ok(ExitCode::SUCCESS);
    }
    require_writer(&call, &root)?;
    let mut lineage = root.lineage()?;
    let clock = call.clock();
    let mut compactor = root.compactor(&mut lineage, engine.as_ref(), &clock);
    // Edits since the last run may have moved the cited lines.
    compactor.reconcile("forget", now)?;
    compactor.context.take_snapshot(now)?.refuse_damaged(|_| true)?;
    let recorded = Some(&*compactor.context.lineage);
    let request =
        TargetResolver::new(&root, &call.environment, args, recorded)?.request(&targets)?;
    let impact = find_impact(&root.vault, recorded, &request)?;
    if impact.is_empty() {
        show(&root, &impact, args, None, ui);
        return Ok(ExitCode::SUCCESS);
    }
    if !args.yes {
        show(&root, &impact, args, None, ui);
        let agreed = ui.confirm_or("Forget all of this? It cannot be undone.", || {
            CommandError::usage(
                "nothing was changed: cannot ask for confirmation without a terminal",
            )
            .hint("add --yes to forget, or --dry-run to preview")
        })?;
        if !agreed {
            return Ok(ExitCode::SUCCESS);
        }
    }
    #[cfg(feature = "fleet")]
    let stores = super::bundle::note_forgetting(&root)?;
    let forgotten = compactor.forget(&request)?;
    let selection = Selection { only_rewrite: true, ..Selection::default() };
    let report = run_compaction(&mut compactor, "forget", &selection, ui)?.report;
    let done = CompletedForget { forgotten: &forgotten, report: &report };
    show(&root, &forgotten.impact, args, Some(done), ui);
    let failed = report.failed > 0;
    #[cfg(feature = "fleet")]
    let failed = {
        drop(lineage);
        !super::bundle::remove_forgotten(&call, &root, &stores, ui) || failed
    };
    Ok(exit_code_if_failed(failed))
}

impl ForgetArgs {
    fn targets(&self) -> CommandResult<Vec<String>> {
        let mut targets = self.what.clone();
        if let Some(path) = &self.from_file {
            let read_error = |error: std::io::Error| {
                let what = format!("cannot read `{}`: {error}", path.display());
                CommandError::usage(what)
            };
            let text = if path.as_os_str() == "-" {
                let mut text = String::new();
                std::io::stdin().read_to_string(&mut text).map_err(read_error)?;
                text
            } else {
                std::fs::read_to_string(path).map_err(read_error)?
            };
            targets
                .extend(text.lines().map(str::trim).filter(|it| !it.is_empty()).map(str::to_owned));
        }
        Ok(targets)
    }
}

/// What `forget` removed, and the run that followed.
#[derive(Clone, Copy)]
struct CompletedForget<'a> {
    forgotten: &'a ForgetOutcome,
    report: &'a RunReport,
}

/// Turns the arguments into a [`ForgetRequest`].
struct TargetResolver<'a> {
    root: &'a MemoryRoot,
    around: &'a Environment,
    args: &'a ForgetArgs,
    lineage: Option<&'a Lineage>,
    memories: Vec<TypedMemory>,
    stems: Vec<Stem>,
    request: ForgetRequest,
}

impl<'a> TargetResolver<'a> {
    fn new(
        root: &'a MemoryRoot,
        around: &'a Environment,
        args: &'a ForgetArgs,
        lineage: Option<&'a Lineage>,
    ) -> CommandResult<Self> {
        let inventory = root.vault.scan(&HashMap::new())?.inventory;
        let request = ForgetRequest { from_log: args.from_log, ..ForgetRequest::default() };
        let mut stems: Vec<Stem> = inventory.logs.into_keys().collect();
        if let Some(lineage) = lineage {
            stems.extend(vanished_logs(&root.vault, lineage)?.into_iter().map(|it| it.0));
        }
        Ok(Self { root, around, args, lineage, memories: inventory.memories, stems, request })
    }

    /// Returns the file that an argument names; a deleted file is found by its history.
    fn resolve_file(&self, named: &str) -> CommandResult<(String, FileKind)> {
        let layout = self.root.vault.layout();
        let is_known = |path: &str| {
            let path = layout.recorded_path(path);
            let versions = self.lineage.map(|it| it.versions_of(&path)).transpose()?;
            Ok(versions.is_some_and(|it| !it.is_empty()))
        };
        let path = self.root.resolve_known_file(self.around, named, &is_known)?;
        let kind = layout.kind_of(&path).ok_or_else(|| workspace::no_such_file(named))?;
        Ok((path, kind))
    }

    /// Returns the text of a file, or of its last kept version if it is deleted.
    fn file_text(&self, path: &str) -> CommandResult<String> {
        let vault = &self.root.vault;
        if let Some(text) = vault.read_text(path)? {
            return Ok(text);
        }
        let path = vault.layout().recorded_path(path);
        let kept = self.lineage.map(|it| last_kept_bytes(it, &path)).transpose()?.flatten();
        let text = kept.and_then(|it| String::from_utf8(it).ok());
        text.ok_or_else(|| workspace::no_such_file(&path))
    }

    /// Returns a log, or its last kept version if it is deleted.
    fn log(&self, stem: &Stem) -> Option<DailyLog> {
        let text = self.file_text(&self.root.vault.log_path(stem)).ok()?;
        DailyLog::parse(stem.clone(), text.as_bytes()).ok()
    }

    fn request(mut self, targets: &[String]) -> CommandResult<ForgetRequest> {
        for named in targets {
            self.add(named)?;
        }
        Ok(self.request)
    }

    fn add(&mut self, named: &str) -> CommandResult<()> {
        if self.args.words {
            return self.add_words(named);
        }
        // `2026-02-30:1` names no line, and no words either.
        if let Err(error) = named.split(':').next().unwrap_or_default().parse::<Period>()
            && error.is_outside_calendar()
        {
            return Err(CommandError::usage(error));
        }
        if let Some((file, lines)) = named.rsplit_once(':')
            && let Some(lines) = line_numbers(lines)
            && looks_like_file(file)
        {
            let (path, kind) = self.resolve_file(file)?;
            return self.add_lines(named, &path, kind, &lines);
        }
        // A name with a slash may be words (TCP/IP) unless the file exists.
        let exists = || self.root.vault.exists(named);
        if looks_like_file(named) && (!named.contains('/') || is_markdown(named) || exists()) {
            let (path, kind) = self.resolve_file(named)?;
            return self.add_file(&path, kind);
        }
        self.add_words(named)
    }

    fn add_words(&mut self, words: &str) -> CommandResult<()> {
        let words = normalized(words);
        if words.chars().filter(|it| !it.is_whitespace()).count() < WORDS_CHARS_MIN {
            let what = format!("`{words}` is too short: it would match nearly every line");
            return Err(CommandError::usage(what).hint("name the line, or use more words"));
        }
        self.request.words.insert(words);
        Ok(())
    }

    /// Adds lines of a log, or the items on lines of a generated file.
    fn add_lines(
        &mut self,
        named: &str,
        path: &str,
        kind: FileKind,
        lines: &LineSet,
    ) -> CommandResult<()> {
        let text = self.file_text(path)?;
        let none = |what: &str| {
            let what = format!("there is no {what} at `{named}`");
            CommandError::usage(what).hint(format!("memoird show {path}"))
        };
        match kind {
            FileKind::Log | FileKind::Session => {
                let stem = stem_of(path).ok_or_else(|| workspace::no_such_file(path))?;
                let cited = lines.ranges().iter().fold(None, |all: Option<Citation>, range| {
                    let one = Citation::range(stem.clone(), range.0, range.1);
                    Some(all.map_or(one.clone(), |mut all| {
                        all.merge(&one);
                        all
                    }))
                });
                if cited.is_none_or(|it| self.add_cited(&it) == 0) {
                    return Err(none("line with text"));
                }
            }
            FileKind::Weekly | FileKind::Monthly => {
                let period: Period =
                    stem_name(path).parse().map_err(|_| workspace::no_such_file(path))?;
                let summary = Summary::parse(period, &text).map_err(CommandError::data)?;
                let mut found = false;
                let owners = summary.ownership().owners;
                for ((mut its, item, _), owner) in summary.bullets_with_lines().zip(owners) {
                    if !its.any(|it| lines.contains(it)) {
                        continue;
                    }
                    found = true;
                    self.add_item(
                        path,
                        &item.text,
                        item.citation.as_ref(),
                        owner == BulletOwner::Memoird,
                    );
                }
                if !found {
                    return Err(none("bullet"));
                }
            }
            FileKind::Wisdom => {
                let file = WisdomFile::parse(&text);
                let mut found = false;
                for (line, entry) in file.entries_with_lines() {
                    let more = u32::try_from(entry.raw.trim_end().matches('\n').count());
                    let end = line + more.unwrap_or(0);
                    if !(line..=end).any(|it| lines.contains(it)) {
                        continue;
                    }
                    found = true;
                    let text = entry.words();
                    let citation = entry.meta.as_ref().and_then(|it| {
                        self.lines_as_cited(it.sources.addresses(), &|at| it.lines.get(at))
                    });
                    self.add_item(path, &text, citation.as_ref(), entry.is_managed());
                }
                if !found {
                    return Err(none("entry"));
                }
            }
            FileKind::Memory => {
                if !self.add_statements(path, &text, lines)? {
                    return Err(none("statement"));
                }
            }
            FileKind::Index => return Err(index_error()),
        }
        Ok(())
    }

    /// Adds statements of a memory about a topic; a memory of one statement as a whole.
    /// Returns whether there is any.
    fn add_statements(&mut self, path: &str, text: &str, lines: &LineSet) -> CommandResult<bool> {
        let name = path.rsplit('/').next().unwrap_or(path);
        let is_same = |it: &&TypedMemory| it.file_name.as_os_str() == name;
        let topic = self.memories.iter().find(is_same).filter(|it| it.is_about_topic());
        let Some(memory) = topic.cloned() else {
            return self.add_file(path, FileKind::Memory).map(|()| true);
        };
        let above = text[..frontmatter::split(text).body_at].matches('\n').count();
        let (ours, own) = memory.statements_by_owner();
        let mut found = false;
        for (is_managed, statement) in
            ours.iter().map(|it| (true, it)).chain(own.iter().map(|it| (false, it)))
        {
            let line = u32::try_from(above).unwrap_or(u32::MAX).saturating_add(statement.line);
            if lines.contains(line) {
                found = true;
                self.add_statement(path, &memory, &statement.item, is_managed);
            }
        }
        Ok(found)
    }

    fn add_statement(&mut self, path: &str, memory: &TypedMemory, item: &Item, is_managed: bool) {
        let hash_of = |at: &Address| memory.sources.iter().find(|it| it.0 == *at).map(|it| &it.1);
        let cited = item.citation.iter().flat_map(Citation::addresses);
        let citation = self.lines_as_cited(cited, &hash_of);
        self.add_item(path, &item.text, citation.as_ref(), is_managed);
    }

    /// Adds an item and, if memoird wrote it, the lines that it cites.
    fn add_item(&mut self, path: &str, text: &str, citation: Option<&Citation>, is_managed: bool) {
        self.request.items.entry(path.to_owned()).or_default().insert(normalized(text));
        if let Some(citation) = citation.filter(|_| is_managed) {
            self.add_cited(citation);
        }
    }

    /// Returns the lines that are those that were cited, by their short hashes: another line at the
    /// same place is nobody's source.
    fn lines_as_cited<'h>(
        &self,
        cited: impl Iterator<Item = Address>,
        hash_of: &dyn Fn(&Address) -> Option<&'h String>,
    ) -> Option<Citation> {
        let mut logs: BTreeMap<Stem, Option<DailyLog>> = BTreeMap::new();
        let mut matching = Vec::new();
        for at in cited {
            let log = logs.entry(at.stem.clone()).or_insert_with(|| self.log(&at.stem));
            let lines = log.iter().flat_map(DailyLog::lines);
            let mut hashes = lines.filter(|it| it.0 == at.line).map(|it| line_hash(it.1));
            if hash_of(&at).is_none_or(|hash| hashes.any(|it| it == *hash)) {
                matching.push(at);
            }
        }
        Citation::from_addresses(&matching)
    }

    /// Adds the cited lines that exist, and returns their number.
    fn add_cited(&mut self, citation: &Citation) -> usize {
        let mut added = 0;
        for (stem, lines) in citation.files().filter(|(stem, _)| !is_summary(stem)) {
            let Some(log) = self.log(stem) else { continue };
            for (number, text, _) in log.lines() {
                if lines.contains(number) && !text.trim().is_empty() {
                    self.request.lines.insert(text.trim().to_owned());
                    added += 1;
                }
            }
        }
        added
    }

    fn add_file(&mut self, path: &str, kind: FileKind) -> CommandResult<()> {
        match kind {
            FileKind::Log | FileKind::Session => self.add_log(path),
            FileKind::Memory => {
                let name = path.rsplit('/').next().unwrap_or(path);
                let mut memories = self.memories.iter();
                let memory = memories.find(|it| it.file_name.as_os_str() == name).cloned();
                let past = || TypedMemory::parse(name.as_ref(), &self.file_text(path).ok()?).ok();
                let Some(memory) = memory.or_else(past) else {
                    return Err(workspace::no_such_file(path));
                };
                self.request.memories.insert(path.to_owned());
                if memory.is_about_topic() {
                    // What a person wrote there goes with the file, and is looked for nowhere else.
                    let (ours, _) = memory.statements_by_owner();
                    for statement in ours {
                        let item = &statement.item;
                        self.add_statement(path, &memory, item, true);
                    }
                    return Ok(());
                }
                let hashes: BTreeMap<_, _> = memory.sources.iter().cloned().collect();
                let sources = self.lines_as_cited(hashes.keys().cloned(), &|at| hashes.get(at));
                let found = sources
                    .filter(|_| memory.is_managed())
                    .map_or(0, |citation| self.add_cited(&citation));
                if found == 0 {
                    // Without its lines, what it says is known only from itself.
                    let said = memory.body.lines().chain([&memory.description[..]]).map(str::trim);
                    let said = said.filter(|it| it.chars().count() >= WORDS_CHARS_MIN);
                    self.request.lines.extend(said.map(str::to_owned));
                }
                Ok(())
            }
            FileKind::Index => Err(index_error()),
            FileKind::Weekly | FileKind::Monthly | FileKind::Wisdom => {
                let what = format!("cannot forget all of `{path}`: it would be generated again");
                Err(CommandError::usage(what).hint(format!(
                    "name one bullet or entry, or the log: memoird forget {path}:LINE"
                )))
            }
        }
    }

    /// Adds all lines of a log. Lines that only this log contains are forgotten everywhere; lines that
    /// other logs share, such as headings, only here.
    fn add_log(&mut self, path: &str) -> CommandResult<()> {
        let stem = stem_of(path).ok_or_else(|| workspace::no_such_file(path))?;
        let log = self.log(&stem).ok_or_else(|| workspace::no_such_file(path))?;
        let mut shared = BTreeSet::new();
        for other in self.stems.iter().filter(|it| **it != stem) {
            let Some(other) = self.log(other) else { continue };
            shared.extend(text_lines(&other));
        }
        let lines: BTreeSet<String> = text_lines(&log).collect();
        self.request.lines.extend(lines.difference(&shared).cloned());
        self.request.logs.insert(stem.to_string(), lines);
        Ok(())
    }
}

/// Returns the short hash by which a memory or an entry identifies a line.
fn line_hash(line: &str) -> String {
    ContentHash::of(line).hex4()
}

fn text_lines(log: &DailyLog) -> impl Iterator<Item = String> {
    let lines: Vec<String> = log
        .lines()
        .into_iter()
        .filter(|(_, text, _)| !text.trim().is_empty())
        .map(|(_, text, _)| text.trim().to_owned())
        .collect();
    lines.into_iter()
}

fn index_error() -> CommandError {
    CommandError::usage("MEMORY.md only lists the typed memories")
        .hint("name the file of the memory: `memoird forget memory/feedback_….md`")
}

/// Returns the numbers of `12`, `12-15`, and `4,9-11`.
fn line_numbers(text: &str) -> Option<LineSet> {
    let citation: Citation = format!("2000-01-01:{text}").parse().ok()?;
    citation.files().next().map(|(_, lines)| lines.clone())
}

fn looks_like_file(name: &str) -> bool {
    let plain = !name.is_empty() && !name.contains(char::is_whitespace);
    let known = name.parse::<Stem>().is_ok() || name.parse::<Period>().is_ok();
    plain && (known || name.contains('/') || is_markdown(name))
}

fn is_markdown(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|it| it == "md")
}

fn is_summary(stem: &Stem) -> bool {
    stem.is_summary()
}

fn stem_name(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.strip_suffix(".md").unwrap_or(name)
}

fn stem_of(path: &str) -> Option<Stem> {
    stem_name(path).parse().ok()
}

fn show(
    root: &MemoryRoot,
    impact: &ForgetImpact,
    args: &ForgetArgs,
    done: Option<CompletedForget<'_>>,
    ui: &Ui,
) {
    let mut sanitized = impact.clone();
    let ForgetImpact { lines, vanished_lines, items, memories, user_lines, .. } = &mut sanitized;
    let mut readers: HashMap<String, SanitizedLines> = HashMap::new();
    let lists = [lines, vanished_lines, items, memories, user_lines];
    for removed in lists.into_iter().flat_map(|it| it.iter_mut()) {
        let text = removed.whole.take().and_then(|whole| {
            let whole = visible_text(&removed.path, &whole);
            // A line that a person added to a generated file may have moved since.
            let is_match = |it: &str| it.trim() == removed.text;
            let recorded = usize::try_from(removed.line).unwrap_or(1).saturating_sub(1);
            let at = match whole.split('\n').nth(recorded).filter(|it| is_match(it)) {
                Some(_) => recorded,
                None => whole.split('\n').position(is_match).unwrap_or(recorded),
            };
            let reader = readers.entry(removed.path.clone()).or_insert_with(|| {
                let accepted = framing::accepted_in(&root.vault, &root.rules);
                let stem = stem_of(&removed.path);
                SanitizedLines::new(stem.as_ref(), whole, &root.rules, &accepted)
            });
            reader.line(at).map(str::to_owned)
        });
        removed.text =
            framing::sanitize_line(text.as_deref().unwrap_or(&removed.text), &root.rules);
    }
    show_sanitized(&sanitized, args, done, ui);
}

fn show_sanitized(
    impact: &ForgetImpact,
    args: &ForgetArgs,
    done: Option<CompletedForget<'_>>,
    ui: &Ui,
) {
    if ui.is_json() {
        let again = impact.to_rebuild.iter();
        ui.json(&ForgetReport {
            dry_run: done.is_none(),
            from_log: args.from_log,
            lines: &impact.lines,
            vanished: &impact.vanished_lines,
            items: &impact.items,
            memories: &impact.memories,
            others: &impact.user_lines,
            versions: impact.versions.len(),
            copies: &impact.copies,
            untouched: &impact.untouched,
            again: again
                .map(|it| RegeneratedSummary { tier: it.0.name(), period: it.1.to_string() })
                .collect(),
            vacuumed: done.map(|it| it.forgotten.vacuumed),
            refolded: done.map(|it| it.report),
        });
        return;
    }
    if impact.is_empty() {
        ui.note("nothing to forget: no match");
        return;
    }
    if let Some(CompletedForget { forgotten, report }) = done {
        let ForgetImpact { lines, vanished_lines, items, memories, user_lines, .. } = impact;
        let lines = lines.len() + vanished_lines.len();
        let forgot: Vec<String> = [
            (lines, "line", "lines"),
            (items.len(), "bullet or entry", "bullets and entries"),
            (memories.len(), "typed memory", "typed memories"),
            (user_lines.len(), "line of yours", "lines of yours"),
            (impact.versions.len(), "kept version", "kept versions"),
            (impact.copies.len(), "copy", "copies"),
        ]
        .into_iter()
        .filter(|it| it.0 > 0)
        .map(|(count, one, many)| counted(count, one, many))
        .collect();
        let rewrote = match report.written {
            0 => String::new(),
            count => format!("; rewrote {}", counted(count, "file", "files")),
        };
        ui.success(format!("forgot {}{rewrote}", forgot.join(", ")));
        if !forgotten.vacuumed {
            ui.warn("the database is in use, so the old bytes are not overwritten yet; run `memoird compact` to do it");
        }
    } else {
        show_impact(impact, args, ui);
    }
    if done.is_none() || !args.dry_run {
        for it in &impact.untouched {
            ui.note(format!("not changed: {} ({})", it.path, it.reason));
        }
    }
}

fn show_impact(impact: &ForgetImpact, args: &ForgetArgs, ui: &Ui) {
    let stays = if args.from_log {
        ""
    } else {
        " (stays in the log, but no summary will use it; --from-log removes it)"
    };
    let (line, lines) = (format!("line of a log{stays}"), format!("lines of logs{stays}"));
    for (one, many, list) in [
        (&line[..], &lines[..], &impact.lines),
        ("line of a deleted log", "lines of deleted logs", &impact.vanished_lines),
        ("bullet or entry", "bullets and entries", &impact.items),
        ("typed memory", "typed memories", &impact.memories),
        ("line of yours in these files", "lines of yours in these files", &impact.user_lines),
    ] {
        if list.is_empty() {
            continue;
        }
        ui.heading(counted(list.len(), one, many));
        let shown = if ui.is_verbose() { list.len() } else { SHOWN_MAX };
        for removed in list.iter().take(shown) {
            let yours = if removed.by_person { "  (yours)" } else { "" };
            let text = removed.text.lines().next().unwrap_or_default();
            ui.data(format!("  {}:{}  {text}{yours}", removed.path, removed.line));
        }
        if list.len() > shown {
            ui.data(format!("  … and {} more (--verbose)", list.len() - shown));
        }
    }
    if !impact.versions.is_empty() {
        ui.heading(counted(
            impact.versions.len(),
            "kept version of a file",
            "kept versions of files",
        ));
    }
    if !impact.copies.is_empty() {
        ui.heading(counted(impact.copies.len(), "copy", "copies"));
        for copy in &impact.copies {
            ui.data(format!("  {copy}"));
        }
    }
    let again: Vec<String> =
        impact.to_rebuild.iter().map(|it| format!("{} {}", it.0, it.1)).collect();
    if !again.is_empty() {
        ui.note(format!("rewritten if affected: {}", again.join(", ")));
    }
    ui.note("this cannot be undone");
}
