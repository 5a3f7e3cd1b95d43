//! `memoird demo`: shows every stage on a sample journal, in a folder of its own.
//!
//! Most people see this first. It reads the configuration only to stay out of the folders named
//! there, writes nothing outside its own folder, and sets the clock to the week after the journal's
//! last day, so that everybody gets the same files.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use chrono::{DateTime, NaiveTime, TimeZone as _, Utc};
use include_dir::{Dir, include_dir};
use serde::Serialize;

use super::{GlobalArgs, ui::Ui};
use crate::{
    compaction::{plan::Selection, review},
    config::{
        self, Config,
        root::{ROOT_FILE_NAME, RootFile},
        zone::ZoneName,
    },
    engine::extractive::Extractive,
    memory::{
        document::{Summary, SummaryBlock},
        joined,
        period::{Grain, Period},
        wisdom::WisdomFile,
    },
    operations::{
        error::{CommandError, CommandErrorKind, CommandResult},
        format::shell_quoted,
        workspace::{Invocation, MemoryRoot},
    },
    privacy::PrivacyRules,
    recall::{
        trace::{self, Trace, TracedItem},
        trace_formats::TraceNode,
    },
    store::{
        db::lineage::Lineage,
        fs::{
            inventory::{Inventory, SummaryFile},
            layout::Layout,
            vault::{Vault, settings_files::write_settings},
        },
    },
};

static MARA: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/tests/data/journal/mara");
static JONAS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/tests/data/journal/jonas");

const DIR_DEFAULT: &str = "memoird-demo";
/// The line width, which fits every terminal and every mail.
const WIDTH: usize = 80;
/// How many bullets of the week are shown.
const BULLETS_SHOWN_MAX: usize = 6;
/// How many entries of each section of `WISDOM.md` are shown.
const ENTRIES_SHOWN_MAX: usize = 3;
/// How many characters of one piece of text are shown.
const TEXT_SHOWN_MAX: usize = 300;

/// Show every stage on a sample journal
#[derive(Debug, clap::Args)]
pub(super) struct DemoArgs {
    /// The folder to create [default: ./memoird-demo]
    #[arg(value_name = "DIR")]
    dir: Option<PathBuf>,
    /// The journal to use: mara writes in English, jonas in German
    #[arg(long, value_enum, default_value_t, value_name = "NAME")]
    journal: SampleJournal,
}

#[derive(Clone, Copy, Debug, Default, clap::ValueEnum)]
enum SampleJournal {
    #[default]
    Mara,
    Jonas,
}

/// What `--json` prints.
#[derive(Serialize)]
struct DemoReport {
    root: PathBuf,
    journal: &'static str,
    /// The time that the demo assumes.
    now: DateTime<Utc>,
    first_log: Option<String>,
    last_log: Option<String>,
    tiers: Vec<TierSize>,
    week: DemoFile,
    wisdom: Vec<DemoEntry>,
    /// One bullet traced to its log lines.
    trace: Option<Trace>,
    next: Vec<NextCommand>,
}

#[derive(Serialize)]
struct TierSize {
    tier: &'static str,
    files: usize,
    chars: usize,
    /// Characters, as a share of the characters of the logs.
    share: f64,
}

#[derive(Serialize)]
struct DemoFile {
    path: String,
    text: String,
}

#[derive(Serialize)]
struct DemoEntry {
    category: Option<String>,
    title: String,
    text: String,
}

#[derive(Serialize)]
struct NextCommand {
    command: String,
    does: &'static str,
}

pub(super) fn run(global: &GlobalArgs, args: &DemoArgs, ui: &Ui) -> CommandResult {
    let call = Invocation::load(global)?;
    let dir = args.dir.clone().unwrap_or_else(|| DIR_DEFAULT.into());
    let path = demo_folder(&call, &dir)?;
    let root = unpack(global, &call, args, &path)?;
    let inventory = root.vault.scan(&HashMap::new())?.inventory;
    let now = demo_now(&call, &root, &inventory);

    let mut lineage = root.lineage()?;
    let clock = || now;
    let mut compactor = root.compactor(&mut lineage, &Extractive, &clock);
    let report = compactor.compact("demo", &Selection::default(), &mut ())?.report;
    if let Some(job) = report.jobs.iter().find(|it| matches!(it.outcome, "failed" | "parked")) {
        let what = format!("{} {} failed: {}", job.tier, job.period, job.reason);
        return Err(CommandError::new(CommandErrorKind::Job, what)
            .hint(format!("memoird --root {} status", path.display())));
    }

    let inventory = root.vault.scan(&HashMap::new())?.inventory;
    let week = inventory.weekly.values().next_back().map_or_else(String::new, |it| it.path.clone());
    let month = inventory.monthly.values().next_back();
    let trace = month.map(|it| traceable_bullet(&it.path, &root, &lineage)).transpose()?.flatten();
    let waiting = lineage.review_queue_len()?
        + review::quarantined_in_summaries(&root.vault, &inventory, false)?.len();
    let shown = DemoReport {
        next: next_commands(&dir, trace.as_ref(), &inventory, waiting),
        journal: args.journal.name(),
        now,
        first_log: inventory.logs.keys().next().map(|it| it.date().to_string()),
        last_log: inventory.logs.keys().next_back().map(|it| it.date().to_string()),
        tiers: tier_sizes(&root, &inventory)?,
        week: DemoFile { text: visible_text(&root, &week)?, path: week },
        wisdom: wisdom_entries(&inventory),
        trace,
        root: path,
    };
    if ui.is_json() {
        ui.json(&shown);
    } else {
        shown.print(&dir, ui);
    }
    Ok(ExitCode::SUCCESS)
}

fn visible_text(root: &MemoryRoot, path: &str) -> CommandResult<String> {
    Ok(root.vault.read_text(path)?.map_or_else(String::new, |it| joined::visible(&it).to_owned()))
}

impl SampleJournal {
    fn name(self) -> &'static str {
        match self {
            Self::Mara => "mara",
            Self::Jonas => "jonas",
        }
    }

    fn agent_name(self) -> &'static str {
        match self {
            Self::Mara => "Mara",
            Self::Jonas => "Jonas",
        }
    }

    fn files(self) -> &'static Dir<'static> {
        match self {
            Self::Mara => &MARA,
            Self::Jonas => &JONAS,
        }
    }
}

/// Returns the absolute path of the new folder; it must be empty and outside other roots.
fn demo_folder(call: &Invocation, dir: &Path) -> CommandResult<PathBuf> {
    let elsewhere = "name another folder: `memoird demo /tmp/memoird-demo`";
    let path =
        call.config.resolve_root_path(dir, &call.environment).map_err(|error| match error {
            config::ConfigError::Overlap { .. } => CommandError::usage(error).hint(elsewhere),
            error => error.into(),
        })?;
    let taken = match fs::read_dir(&path) {
        Ok(mut entries) => entries.next().is_some(),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => false,
        Err(_) => true,
    };
    if taken {
        let what = format!("`{}` already exists; the demo needs a new folder", path.display());
        return Err(CommandError::usage(what).hint(elsewhere));
    }
    Ok(path)
}

/// Writes the journal into the folder.
fn unpack(
    global: &GlobalArgs,
    call: &Invocation,
    args: &DemoArgs,
    path: &Path,
) -> CommandResult<MemoryRoot> {
    let unpack_error = |e: std::io::Error| {
        CommandError::cannot_write(format!("cannot unpack into `{}`: {e}", path.display()))
    };
    fs::create_dir_all(path).map_err(unpack_error)?;
    args.journal.files().extract(path).map_err(unpack_error)?;
    let mut file = RootFile::default();
    file.agent_name = Some(args.journal.agent_name().to_owned());
    file.zone = Some(ZoneName(chrono_tz::Europe::Berlin));
    file.memory_dir = Some("memory".to_owned());
    write_settings(&path.join(ROOT_FILE_NAME), &file.print())?;
    // The user's own settings could switch off some stages.
    let settings =
        Config::from_text(None, &global.set, &call.environment)?.open(path, &call.environment)?;
    let layout = Layout::new(settings.path.clone(), &settings.memory_dir.to_string_lossy());
    Ok(MemoryRoot {
        settings,
        vault: Vault::new(layout),
        rules: PrivacyRules::default(),
        only_reads: false,
    })
}

/// Returns the morning after the last log's week, so that all weeks are closed, unless `MEMOIRD_NOW`
/// sets the clock.
fn demo_now(call: &Invocation, root: &MemoryRoot, inventory: &Inventory) -> DateTime<Utc> {
    let last = inventory
        .logs
        .keys()
        .next_back()
        .filter(|_| call.environment.variable("MEMOIRD_NOW").is_none());
    let morning = last.and_then(|last| {
        let day = Period::containing(Grain::Week, last.date()).end();
        let local = day.and_time(NaiveTime::from_hms_opt(9, 0, 0)?);
        root.settings.zone.name.0.from_local_datetime(&local).earliest()
    });
    morning.map_or(call.now, |it| it.with_timezone(&Utc))
}

fn tier_sizes(root: &MemoryRoot, inventory: &Inventory) -> CommandResult<Vec<TierSize>> {
    let mut logs = 0;
    for stem in inventory.logs.keys() {
        logs += root.vault.read_log(stem)?.map_or(0, |it| it.body_chars());
    }
    let summaries = |files: &BTreeMap<Period, SummaryFile>| files.values().map(|it| it.chars).sum();
    let wisdom = inventory.wisdom.as_deref().map(WisdomFile::parse);
    let memories = inventory.memories.iter().map(|it| it.body.trim().chars().count()).sum();
    let tier = |tier, files: usize, chars: usize| {
        #[expect(clippy::cast_precision_loss, reason = "a journal has fewer than 2^52 characters")]
        let share = chars as f64 / (logs.max(1)) as f64;
        TierSize { tier, files, chars, share }
    };
    Ok(vec![
        tier("days", inventory.logs.len(), logs),
        tier("weeks", inventory.weekly.len(), summaries(&inventory.weekly)),
        tier("months", inventory.monthly.len(), summaries(&inventory.monthly)),
        tier("wisdom", usize::from(wisdom.is_some()), wisdom.map_or(0, |it| it.chars())),
        tier("memories", inventory.memories.len(), memories),
    ])
}

fn wisdom_entries(inventory: &Inventory) -> Vec<DemoEntry> {
    let file = inventory.wisdom.as_deref().map(WisdomFile::parse);
    let entries = file.iter().flat_map(WisdomFile::entries);
    entries
        .map(|it| DemoEntry {
            category: it.category.clone(),
            title: if it.title.is_empty() { it.text.clone() } else { it.title.clone() },
            text: it.text.clone(),
        })
        .collect()
}

/// Picks the bullet of a month whose trace is easiest to read: through one week, to a few log lines,
/// none of them a heading, with figures to compare.
fn traceable_bullet(
    month: &str,
    root: &MemoryRoot,
    lineage: &Lineage,
) -> CommandResult<Option<Trace>> {
    let traced = trace::trace(month, None, lineage, root)?;
    let fit = |it: &Trace| it.sources.iter().all(|it| !it.via.is_empty() && !it.gone);
    Ok(traced.items.into_iter().filter(fit).min_by_key(|it| {
        let weeks: BTreeSet<_> =
            it.sources.iter().flat_map(|it| &it.via).map(|it| (&it.path, it.line)).collect();
        let lines: u32 = it.sources.iter().map(|it| it.line_end - it.line_start + 1).sum();
        let heading = it.sources.iter().any(|it| it.text.starts_with('#'));
        let digits = it.target.text.chars().filter(char::is_ascii_digit).count();
        let chars: usize = it.sources.iter().map(|it| it.text.chars().count()).sum();
        (weeks.len() != 1, heading, !(2..=3).contains(&lines), digits < 4, chars)
    }))
}

/// Returns what to try next; `waiting` lines and changes wait for a review.
fn next_commands(
    dir: &Path,
    trace: Option<&Trace>,
    inventory: &Inventory,
    waiting: usize,
) -> Vec<NextCommand> {
    let call = format!(
        "{} --root {}",
        shell_quoted(&program_name()),
        shell_quoted(&dir.to_string_lossy())
    );
    let mut next = Vec::new();
    let mut add = |command: String, does| {
        next.push(NextCommand { command: format!("{call} {command}"), does });
    };
    add("status".to_owned(), "what is there, what is due, and why");
    if let Some(TracedItem { path, line: Some(line), .. }) = trace.map(|it| &it.target) {
        add(format!("trace {path}:{line}"), "the trace above, for any line");
    }
    if let Some(week) = inventory.weekly.keys().next_back() {
        add(format!("coverage {week}"), "what that week left out, and why");
    }
    add("show WISDOM.md".to_owned(), "what an agent reads first");
    if waiting > 0 {
        add("review".to_owned(), "decide about the lines that wait for review");
    }
    add("compact".to_owned(), "run what became due since the demo's date");
    let remove = format!("rm -r {}", shell_quoted(&dir.to_string_lossy()));
    next.push(NextCommand { command: remove, does: "remove the demo" });
    next
}

/// Returns this program as it was called.
fn program_name() -> String {
    std::env::args().next().unwrap_or_else(|| "memoird".to_owned())
}

impl DemoReport {
    fn print(&self, dir: &Path, ui: &Ui) {
        let logs = &self.tiers[0];
        let [first, last] =
            [&self.first_log, &self.last_log].map(|it| it.as_deref().unwrap_or("?"));
        ui.heading("What was read");
        print_wrapped(
            ui,
            "  ",
            &format!(
                "The journal `{}`: {} logs from {first} to {last}, {} characters, unpacked into {}.",
                self.journal,
                logs.files,
                with_thousands_separators(logs.chars),
                dir.display()
            ),
        );

        print_section(ui, "What was written");
        let rows: Vec<Vec<String>> = self
            .tiers
            .iter()
            .map(|it| {
                vec![
                    it.tier.to_owned(),
                    format!("{:>5}", it.files),
                    format!("{:>10}", with_thousands_separators(it.chars)),
                    format!("{:>10.0}%", it.share * 100.0),
                ]
            })
            .collect();
        ui.table(&["tier", "files", "characters", "of the logs"], &rows);

        print_section(ui, &format!("One week: {}", self.week.path));
        self.print_week(ui);

        print_section(ui, "What lasts: WISDOM.md");
        for section in self.wisdom.chunk_by(|a, b| a.category == b.category) {
            if let Some(category) = &section[0].category {
                print_wrapped(ui, "  ", category);
            }
            for entry in section.iter().take(ENTRIES_SHOWN_MAX) {
                print_wrapped(ui, "    - ", &entry.title);
            }
            if let Some(more) = section.len().checked_sub(ENTRIES_SHOWN_MAX).filter(|it| *it > 0) {
                print_wrapped(ui, "    ", &format!("… and {more} more"));
            }
        }

        if let Some(trace) = &self.trace {
            print_section(ui, "Why does it say that? One bullet of a month, down to the log lines");
            print_branch(ui, &TraceNode::from_trace(trace), "  ", "  ");
        }

        print_section(ui, "Try next");
        for NextCommand { command, does } in &self.next {
            ui.data(format_args!("  # {does}\n  {command}"));
        }
    }

    fn print_week(&self, ui: &Ui) {
        let Some(period) =
            Path::new(&self.week.path).file_stem().and_then(|it| it.to_str()?.parse().ok())
        else {
            return;
        };
        let Ok(week) = Summary::parse(period, &self.week.text) else { return };
        let bullets = week.bullets().count();
        let mut shown = 0;
        for block in &week.blocks {
            match block {
                _ if shown == BULLETS_SHOWN_MAX => break,
                SummaryBlock::Section(section, _) => print_wrapped(ui, "  ", section.title()),
                SummaryBlock::Bullet(_, raw) => {
                    shown += 1;
                    print_wrapped(ui, "    - ", raw.trim_start_matches(['-', ' ']));
                }
                SummaryBlock::Other(_) => {}
            }
        }
        if shown < bullets {
            print_wrapped(ui, "    ", &format!("… and {} more", bullets - shown));
        }
    }
}

/// Prints a heading with a blank line above it.
fn print_section(ui: &Ui, title: &str) {
    ui.data("");
    ui.heading(title);
}

/// Prints a node of a tree and its children, wrapped to the width.
fn print_branch(ui: &Ui, branch: &TraceNode, lead: &str, below: &str) {
    ui.data(format_args!("{lead}{}", branch.place));
    let bar = if branch.children.is_empty() { "  " } else { "│ " };
    print_wrapped(ui, &format!("{below}{bar}"), &branch.text);
    for (i, child) in branch.children.iter().enumerate() {
        let last = i + 1 == branch.children.len();
        let (lead, next) = if last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        print_branch(ui, child, &format!("{below}{lead}"), &format!("{below}{next}"));
    }
}

/// Prints a text wrapped to the width; a marker in `lead` appears only before the first line.
fn print_wrapped(ui: &Ui, lead: &str, text: &str) {
    let rest = lead.replace('-', " ");
    for (i, line) in wrapped(text, WIDTH.saturating_sub(lead.chars().count())).iter().enumerate() {
        ui.data(format_args!("{}{line}", if i == 0 { lead } else { &rest }));
    }
}

/// Breaks a text at spaces into lines of at most `width` characters; a longer word gets its own line.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let shown = if text.chars().count() > TEXT_SHOWN_MAX {
        text.chars().take(TEXT_SHOWN_MAX).chain(['…']).collect()
    } else {
        text.to_owned()
    };
    let mut lines: Vec<String> = Vec::new();
    for word in shown.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Formats a number with thousands separators.
fn with_thousands_separators(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, width: usize, expected: &[&str]) {
        assert_eq!(wrapped(text, width), expected);
    }

    #[test]
    fn text_wraps_at_spaces_and_counts_characters() {
        check("one two three", 7, &["one two", "three"]);
        check("größer als süß", 10, &["größer als", "süß"]);
        check("a https://example.org/long b", 6, &["a", "https://example.org/long", "b"]);
        check(" \n", 6, &[]);
    }

    #[test]
    fn numbers_get_thousands_separators() {
        let seen = [0, 999, 1000, 1_234_567].map(with_thousands_separators);
        assert_eq!(seen, ["0", "999", "1,000", "1,234,567"]);
    }
}
