//! What an agent should read at the start of a session, within a budget.
//!
//! Reads a few files, the logs of ten days among them, and no database, so that sessions start without delay, and
//! shows only their sanitized view.

mod last_day;
mod last_logs;
mod last_sessions;
mod own_notes;

use std::{
    collections::HashMap,
    path::{Component, Path},
};

use chrono::NaiveDate;

use self::{
    last_day::last_day,
    last_logs::{add_last_logs, logs_among},
    last_sessions::last_session_lines,
    own_notes::own_notes,
};
use super::{
    error::CommandResult,
    workspace::{Invocation, MemoryRoot},
};
use crate::{
    config::root::RootKind,
    engine::extractive::SeenStatements,
    memory::{
        item::SummarySection,
        period::{Grain, Period},
        typed::{self, TypedMemory},
        wisdom_block::{self, BlockState},
    },
    privacy::{self, SanitizedLog},
    recall::{
        context::{
            self, ContextBlock, ContextPart, ContextPartKind, SessionContext,
            blocks::{self, MemoryBlocks, MemoryToShow, SourcedBullet, StatementUse, WisdomBlocks},
        },
        framing::{self, FramedText},
    },
};

/// How many files of a folder are listed at most.
const FILES_MAX: usize = 20_000;

/// Composes the context as `memoird context` does with no option but `--budget`.
pub(crate) fn compose_default(
    call: &Invocation,
    root: &MemoryRoot,
    budget: Option<usize>,
) -> CommandResult<(SessionContext, UsedMemories)> {
    root.require_memory_folder()?;
    let cwd = &call.environment.cwd;
    let chars_max = usize::MAX;
    let options = ComposeOptions { budget, chars_max, cite: false, beside_block: false, cwd };
    compose(call, root, &options, AddedParts::default())
}

/// Returns what the block of `WISDOM.md` in the agent's own notes says.
fn wisdom_block_text(root: &MemoryRoot) -> Option<SanitizedLog> {
    let path = root.settings.wisdom_block.as_ref()?;
    let text = root.vault.read_note(path).ok().flatten()?;
    let BlockState::Present(found) = wisdom_block::find(&text) else { return None };
    privacy::sanitize_notes(found.body(), &root.rules)
}

pub(crate) struct ComposeOptions<'a> {
    pub(crate) budget: Option<usize>,
    pub(crate) chars_max: usize,
    pub(crate) cite: bool,
    pub(crate) beside_block: bool,
    /// The folder in which the session works.
    pub(crate) cwd: &'a Path,
}

/// What is added to wisdom, memories, open items, and the decisions of the newest week.
#[derive(Debug, Default)]
pub(crate) struct AddedParts {
    /// Parts before all others.
    pub(crate) first: Vec<ContextPart>,
    /// Whether to add the newest month.
    pub(crate) month: bool,
    /// Whether to add all of the newest week.
    pub(crate) week: bool,
    /// How many of the last logs to add, in place of a summary of the last day.
    pub(crate) logs: Option<usize>,
    /// Parts after all others.
    pub(crate) last: Vec<ContextPart>,
}

/// The typed memories of a root, each with what became of its statements.
pub(crate) type UsedMemories = Vec<(MemoryToShow, Vec<StatementUse>)>;

/// Composes the context; returns also the typed memories and what became of their statements.
pub(crate) fn compose(
    call: &Invocation,
    root: &MemoryRoot,
    options: &ComposeOptions<'_>,
    added: AddedParts,
) -> CommandResult<(SessionContext, UsedMemories)> {
    let now = call.now.with_timezone(&root.settings.zone.name.0);
    let today = now.date_naive();
    let (files, _) = root.vault.files_below(root.vault.layout().memory_dir(), FILES_MAX);
    let (notes, mut own_notes) = own_notes(root, &files);
    if options.beside_block {
        own_notes.extend(wisdom_block_text(root));
    }
    let topic = project_words(options.cwd, root);
    let mut collector = PartsCollector {
        parts: added.first,
        topic,
        notes: SeenStatements::of_notes(&own_notes),
        today,
        cite: options.cite,
    };
    // Memory about the person applies in every project.
    let mut open = Vec::new();
    for configured in &call.config.roots {
        if configured.path == *root.vault.layout().root() {
            continue;
        }
        // An error of another root is shown by `memoird status`; it must not fail this one.
        let other =
            call.open_root(&configured.path).ok().filter(|it| it.settings.kind == RootKind::User);
        if let Some(other) = other {
            let show = format!("memoird --root '{}'", configured.path.display());
            let heads =
                LastingHeads { wisdom: "About the person", memories: "Memories about the person" };
            open.extend(collector.add_lasting_memory(&other, &heads, &show)?.open);
        }
    }
    let heads = LastingHeads {
        wisdom: "What lasts (WISDOM.md)",
        memories: "Memories that WISDOM.md does not repeat",
    };
    let lasting = collector.add_lasting_memory(root, &heads, "memoird")?;
    let LastingMemory { mut seen, open: of_root, memories, found, part_at } = lasting;
    open.extend(of_root);
    if added.month {
        collector.add_summary_part(root, Grain::Month, &MONTH_PART)?;
    }
    let logs = logs_among(root, &files);
    let logs_shown = added.logs.filter(|it| *it > 0);
    // Of the last logs nothing is left out.
    let last = match logs_shown {
        Some(_) => None,
        None => last_day(root, &logs, today, &|it| {
            collector.notes.find_repeated(it).is_some() || seen.find_repeated(it).is_some()
        })?,
    };
    let (last_day, open_of_day, recent) = match last {
        Some(it) => (Some((it.day, it.bullets)), it.open, it.logs),
        None => (None, Vec::new(), Vec::new()),
    };
    open.extend(open_of_day);
    collector.add_week(root, added.week, (open, &recent), &mut seen)?;
    let sessions = last_session_lines(root, today)?;
    for line in &sessions {
        seen.add(line);
    }
    if let Some((day, mut bullets)) = last_day {
        blocks::remove_seen(&mut bullets, &collector.notes, &mut seen);
        let first = bullets.iter().filter_map(|it| it.since).min().filter(|it| *it < day);
        collector.add(ContextPart {
            kind: ContextPartKind::LastDay,
            head: match first {
                Some(first) => format!("Last days, {first} to {day}"),
                None => format!("Last day, {day}"),
            },
            blocks: collector.lines_of_day(&bullets, day),
            left_out: 0,
            command: format!("memoird show {day}"),
        });
    }
    // The current week has no summary yet.
    collector.add(ContextPart {
        kind: ContextPartKind::Sessions,
        head: "Last sessions".to_owned(),
        blocks: ContextBlock::of_lines(sessions),
        left_out: 0,
        command: "memoird session list; memoird session show ID".to_owned(),
    });
    let PartsCollector { mut parts, .. } = collector;
    if let Some(count) = logs_shown {
        add_last_logs(root, &logs, count, &mut parts)?;
    }
    parts.extend(added.last);
    let today = now.format("%Y-%m-%d, %A").to_string();
    let configured = root.settings.settings.context.budget_tokens;
    let budget = options.budget.unwrap_or(usize::try_from(configured).unwrap_or(usize::MAX));
    let composed = context::compose(&parts, (&today, &notes), budget, options.chars_max);
    let shown = part_at.map_or(&[][..], |at| &composed.parts[at].blocks);
    let uses = found.uses_with_shown(shown);
    Ok((composed, memories.into_iter().zip(uses).collect()))
}

/// Returns the names of the project around a folder and of the folders between; nothing for the root itself.
fn project_words(cwd: &Path, root: &MemoryRoot) -> String {
    if cwd.starts_with(root.vault.layout().root()) {
        return String::new();
    }
    let project = cwd.ancestors().find(|it| it.join(".git").exists()).unwrap_or(cwd);
    let below = cwd.strip_prefix(project).into_iter().flat_map(Path::components);
    let names = project.file_name().into_iter().chain(below.map(Component::as_os_str));
    let names: Vec<String> = names.map(|it| it.to_string_lossy().replace('_', " ")).collect();
    names.join(" ")
}

/// Sections of a summary that make one part of the context.
struct SummaryPart {
    kind: ContextPartKind,
    /// The heading; the period follows.
    head: &'static str,
    sections: &'static [SummarySection],
}

const MONTH_PART: SummaryPart = SummaryPart {
    kind: ContextPartKind::Month,
    head: "Month",
    sections: &[
        SummarySection::Themes,
        SummarySection::Milestones,
        SummarySection::Trajectory,
        SummarySection::CarriedForward,
    ],
};

/// What a week says besides decisions and open items.
const WEEK_PART: SummaryPart = SummaryPart {
    kind: ContextPartKind::Week,
    head: "Outcomes and context of",
    sections: &[SummarySection::KeyOutcomes, SummarySection::Context],
};

/// The headings of wisdom and memories.
struct LastingHeads {
    wisdom: &'static str,
    memories: &'static str,
}

/// What the wisdom and the memories of a root add to the context.
struct LastingMemory {
    /// What the parts so far say.
    seen: SeenStatements,
    /// The open items of `WISDOM.md`.
    open: Vec<SourcedBullet>,
    memories: Vec<MemoryToShow>,
    found: MemoryBlocks,
    /// The place of the part with `found`.
    part_at: Option<usize>,
}

/// Collects the parts, each without what the ones before say.
struct PartsCollector {
    parts: Vec<ContextPart>,
    /// The names of the project.
    topic: String,
    /// What the agent's own notes say.
    notes: SeenStatements,
    today: NaiveDate,
    cite: bool,
}

impl PartsCollector {
    /// Adds a part if it says something, and returns its place.
    fn add(&mut self, part: ContextPart) -> Option<usize> {
        if part.blocks.is_empty() {
            return None;
        }
        self.parts.push(part);
        Some(self.parts.len() - 1)
    }

    /// Adds the wisdom of a root, and the statements of memories that it does not say.
    fn add_lasting_memory(
        &mut self,
        root: &MemoryRoot,
        heads: &LastingHeads,
        program: &str,
    ) -> CommandResult<LastingMemory> {
        let wisdom = root.read_sanitized(&root.vault.layout().wisdom())?;
        let wisdom = wisdom.map(|it| blocks::wisdom_blocks(&it.text, &self.topic, &self.notes));
        let WisdomBlocks { lasting, open, said } = wisdom.unwrap_or_default();
        self.add(ContextPart {
            kind: ContextPartKind::Wisdom,
            head: heads.wisdom.to_owned(),
            blocks: lasting,
            left_out: 0,
            command: format!("{program} show WISDOM.md"),
        });
        let memories = memories_to_show(root)?;
        let found = blocks::memory_blocks(&memories, &self.topic, &self.notes, &said);
        let mut seen = said;
        for block in &found.blocks {
            seen.add(&block.text);
        }
        let part_at = self.add(ContextPart {
            kind: ContextPartKind::Memories,
            head: heads.memories.to_owned(),
            blocks: found.blocks.clone(),
            left_out: 0,
            command: format!("{program} memories"),
        });
        Ok(LastingMemory { seen, open, memories, found, part_at })
    }

    /// Adds the newest week: decisions and open items that nothing else says, and the rest of it on request. What the
    /// `recent` logs report as done is not open.
    fn add_week(
        &mut self,
        root: &MemoryRoot,
        is_whole: bool,
        (mut open, recent): (Vec<SourcedBullet>, &[SanitizedLog]),
        seen: &mut SeenStatements,
    ) -> CommandResult<()> {
        let week = newest_summary(root, Grain::Week, self.today)?;
        let bullets = |sections: &[SummarySection]| match &week {
            Some((_, text)) => {
                let titles: Vec<&str> = sections.iter().map(|it| it.title()).collect();
                blocks::section_bullets(text, &titles)
            }
            None => (Vec::new(), 0),
        };
        let (name, command) = match &week {
            Some((period, _)) => (period.to_string(), format!("memoird show {period}")),
            None => (String::new(), "memoird show WISDOM.md".to_owned()),
        };
        let (mut decisions, left_out) = bullets(&[SummarySection::Decisions]);
        if !is_whole {
            blocks::remove_seen(&mut decisions, &self.notes, seen);
        }
        self.add(ContextPart {
            kind: ContextPartKind::Decisions,
            head: format!("Decisions of {name}"),
            blocks: self.lines_of(&decisions),
            left_out,
            command: command.clone(),
        });
        let (mut of_week, left_out) = bullets(&[SummarySection::BlockersAndOpenItems]);
        // Those of the file are among what it says.
        for bullet in &open {
            seen.add(&bullet.text);
        }
        blocks::remove_seen(&mut of_week, &self.notes, seen);
        open.append(&mut of_week);
        blocks::remove_finished(&mut open, recent);
        blocks::sort_open_items(&mut open, &self.topic, self.today);
        let lines = open.iter().map(|it| it.open_line(self.today, self.cite)).collect();
        self.add(ContextPart {
            kind: ContextPartKind::Open,
            head: "Blockers and open items".to_owned(),
            blocks: ContextBlock::of_lines(lines),
            left_out,
            command,
        });
        if is_whole {
            self.add_summary_part(root, Grain::Week, &WEEK_PART)?;
        }
        Ok(())
    }

    fn lines_of(&self, bullets: &[SourcedBullet]) -> Vec<ContextBlock> {
        ContextBlock::of_lines(bullets.iter().map(|it| it.line(self.cite)).collect())
    }

    /// Returns the lines of what happened on a day, which the heading names.
    fn lines_of_day(&self, bullets: &[SourcedBullet], day: NaiveDate) -> Vec<ContextBlock> {
        let line = |it: &SourcedBullet| match it.since {
            Some(since) if since == day && !self.cite => format!("- {}", it.text),
            _ => it.line(self.cite),
        };
        ContextBlock::of_lines(bullets.iter().map(line).collect())
    }

    /// Adds sections of the newest summary of a tier.
    fn add_summary_part(
        &mut self,
        root: &MemoryRoot,
        grain: Grain,
        part: &SummaryPart,
    ) -> CommandResult<()> {
        let Some((period, text)) = newest_summary(root, grain, self.today)? else { return Ok(()) };
        let sections: Vec<&str> = part.sections.iter().map(|it| it.title()).collect();
        let (bullets, left_out) = blocks::section_bullets(&text, &sections);
        self.add(ContextPart {
            kind: part.kind,
            head: format!("{} {period}", part.head),
            blocks: self.lines_of(&bullets),
            left_out,
            command: format!("memoird show {period}"),
        });
        Ok(())
    }
}

/// Returns the typed memories of a root, sanitized.
fn memories_to_show(root: &MemoryRoot) -> CommandResult<Vec<MemoryToShow>> {
    let memories = root.typed_memories()?;
    let replaced: HashMap<&str, String> = memories
        .iter()
        .filter_map(|(_, it)| {
            Some((&it.supersedes.as_ref()?[..], it.file_name.display().to_string()))
        })
        .collect();
    let is_accepted = framing::accepted_in(&root.vault, &root.rules);
    let shown = |it: &str| framing::frame(None, it, &root.rules, &is_accepted).text;
    let show = |(_, memory): &(String, TypedMemory)| {
        let file = memory.file_name.display().to_string();
        let body = framing::frame_memory_body(memory, &root.rules, &is_accepted);
        MemoryToShow {
            kind: memory.kind,
            name: shown(&memory.name),
            description: shown(&memory.description),
            newest: memory.updated.or(memory.created),
            statements: typed::statements_of_body(&body),
            replaced_by: replaced.get(&file[..]).cloned(),
            file,
        }
    };
    Ok(memories.iter().map(show).collect())
}

/// Returns the newest summary of a tier, sanitized.
///
/// Tries the last weeks or months by name first, because listing the folder takes longer every year.
fn newest_summary(
    root: &MemoryRoot,
    grain: Grain,
    today: NaiveDate,
) -> CommandResult<Option<(Period, FramedText)>> {
    const TRIED_BY_NAME: usize = 8;
    let layout = root.vault.layout();
    // Skips summaries of the future, which a wrong clock may have written.
    let newest = Period::containing(grain, today);
    let before = |it: &Period| it.first().pred_opt().map(|day| Period::containing(grain, day));
    for period in std::iter::successors(Some(newest), before).take(TRIED_BY_NAME) {
        if let Some(text) = root.read_sanitized(&layout.summary(period))? {
            return Ok(Some((period, text)));
        }
    }
    let (paths, _) = root.vault.files_below(&layout.summary_dir(grain), FILES_MAX);
    let period = |path: &String| {
        let name = path.rsplit('/').next()?.strip_suffix(".md")?;
        name.parse::<Period>().ok().filter(|it| it.grain() == grain && layout.summary(*it) == *path)
    };
    let Some(period) = paths.iter().filter_map(period).max() else { return Ok(None) };
    Ok(root.read_sanitized(&layout.summary(period))?.map(|week| (period, week)))
}
