//! Prints the status for people.

use std::collections::BTreeMap;

use crate::{
    commands::ui::{self, Ui},
    memory::{item::Tier, period::Period},
    operations::{
        format::counted,
        status::{
            BlockedJobs, DAILY, EngineUse, FileFindings, FolderStatus, ServiceState, StatusReport,
            daemon::{ScheduleEntry, WatcherStatus},
            jobs::{StuckJob, TierReport},
        },
    },
};

/// How many entries of a list are shown without `--verbose`.
const SHOWN_MAX: usize = 5;
/// How many due jobs of each tier are shown.
const SHOWN_OF_TIER_MAX: usize = 3;

pub(super) fn print_status(status: &StatusReport, ui: &Ui) {
    let FolderStatus { root, agent_name, zone, zone_source, writer } = &status.folder;
    ui.heading(root);
    let origin = match *zone_source {
        "nobody" => " by default".to_owned(),
        source => format!(", from {source}"),
    };
    ui.data(format!("{agent_name} · time zone {zone}{origin}"));
    if let Some(writer) = writer {
        ui.data(format!("written by the host {writer}; this host only reads it"));
    }
    ui.data("");
    show_tiers(status, ui);
    let FileFindings { quarantined, archived, foreign, problems } = &status.files;
    if *archived > 0 {
        ui.data(format!("{archived} of the logs are archived"));
    }
    ui.data("");
    show_due(status, ui);
    let BlockedJobs { parked, undone, failed } = &status.blocked;
    show_list(ui, "stuck", parked, |it| {
        let StuckJob { tier, period, reason, is_damaged } = it;
        // Running it again changes nothing before a person has mended the file.
        if *is_damaged {
            return format!("{tier} {period} waits until this is mended: {reason}");
        }
        format!(
            "{tier} {period}: {reason}; try `memoird compact{} --period {period} --force`",
            tier_argument(tier)
        )
    });
    let undone = undone_lines(undone);
    show_list(ui, "undone, waiting for changed sources", &undone, Clone::clone);
    show_list(ui, "failed, the next run tries again", failed, |it| {
        format!("{} {}: {}", it.tier, it.period, it.reason)
    });
    show_list(ui, "not written by memoird, read but never changed", foreign, |it| {
        format!("{}; `memoird compact --period {} --force` adopts it", it.path, it.period)
    });
    if *quarantined > 0 {
        ui.data(format!("{quarantined} waiting for review: `memoird review`"));
    }
    show_list(ui, "problems", problems, |it| format!("{}: {}", it.path, it.reason));
    show_sessions(status, ui);
    if let Some(line) = other_engine_line(status) {
        ui.data(line);
    }
    show_engine(status, ui);
}

/// Shows the sessions that hooks queued and that are not saved yet.
fn show_sessions(status: &StatusReport, ui: &Ui) {
    let sessions = &status.sessions;
    show_list(
        ui,
        "sessions that could not be saved; `memoird session retry` tries again, \
         `memoird session dismiss` forgets them",
        &sessions.failed,
        |it| format!("{}: {}", it.transcript, it.reason),
    );
    if sessions.waiting > 0 {
        let waiting = counted(sessions.waiting, "session waits", "sessions wait");
        ui.data(format!("{waiting} to be saved by the daemon"));
    }
    if sessions.homeless > 0 {
        let homeless = counted(sessions.homeless, "session", "sessions");
        ui.data(format!(
            "{homeless} of projects without a memory folder; `memoird init DIR` in a project creates one"
        ));
    }
}

/// Returns a line about the files that another engine than the current one wrote.
fn other_engine_line(status: &StatusReport) -> Option<String> {
    let (days, files): (Vec<_>, Vec<_>) =
        status.tiers.iter().partition(|it| it.tier == Tier::Extract.name());
    let count = |tiers: Vec<&TierReport>| tiers.iter().map(|it| it.older_engine).sum::<usize>();
    let what = match (count(files), count(days)) {
        (0, 0) => return None,
        (files, 0) => format!("{files} files"),
        (0, days) => format!("the typed memories of {days} days"),
        (files, days) => format!("{files} files and the typed memories of {days} days"),
    };
    Some(format!("another engine wrote {what}; `memoird compact --redo` redoes them"))
}

/// Returns the argument that names a tier if the period alone is ambiguous.
fn tier_argument(tier: &str) -> &'static str {
    if tier == Tier::Wisdom.name() { " wisdom" } else { "" }
}

fn show_tiers(status: &StatusReport, ui: &Ui) {
    let rows: Vec<Vec<String>> = status
        .tiers
        .iter()
        .map(|it| {
            let name = match it.tier {
                DAILY => "logs",
                "extract" => "typed memories",
                "weekly" => "weeks",
                "monthly" => "months",
                other => other,
            };
            let due = match it.due.len() {
                _ if it.tier == DAILY => String::new(),
                0 => "-".to_owned(),
                due => due.to_string(),
            };
            let newest = it.newest.clone().unwrap_or_else(|| "-".to_owned());
            vec![name.to_owned(), it.files.to_string(), it.chars.to_string(), newest, due]
        })
        .collect();
    ui.table(&["", "files", "chars", "newest", "due"], &rows);
    if status.tiers.iter().any(|it| it.tier == DAILY && it.files == 0) {
        ui.data("no logs yet; `memoird log TEXT` writes the first entry");
    }
}

fn show_due(status: &StatusReport, ui: &Ui) {
    let count = status.due().count();
    if status.runs.settling > 0 {
        let waiting = counted(status.runs.settling, "job waits", "jobs wait");
        ui.data(format!("{waiting} for logs to settle: they changed moments ago"));
    }
    if count == 0 {
        let next = status.runs.next_due.as_ref();
        let next = next.map(|it| format!("; {} {} closes {}", it.tier, it.period, it.shown));
        let other = if status.runs.settling > 0 { "nothing else" } else { "nothing" };
        ui.data(format!("{other} is due{}", next.unwrap_or_default()));
        return;
    }
    ui.heading(format!("due ({count})"));
    for tier in &status.tiers {
        show_first(ui, SHOWN_OF_TIER_MAX, &tier.due, |it| {
            format!("{} {}: {}", tier.tier, it.period, it.reason)
        });
    }
    if status.service.daemon.running
        && let Some(why) = &status.runs.not_yet
    {
        ui.data(format!("not yet: {}", ui::one_line(why)));
    }
    ui.data("run `memoird compact` to do it now");
}

/// Shows a heading with the first few entries of a list; nothing for an empty one.
fn show_list<T>(ui: &Ui, heading: &str, list: &[T], line: impl Fn(&T) -> String) {
    if list.is_empty() {
        return;
    }
    ui.heading(format!("{heading} ({})", list.len()));
    show_first(ui, SHOWN_MAX, list, line);
}

/// Shows the first few entries of a list, or all with `--verbose`.
fn show_first<T>(ui: &Ui, at_most: usize, list: &[T], line: impl Fn(&T) -> String) {
    let shown = if ui.is_verbose() { list.len() } else { at_most };
    for it in list.iter().take(shown) {
        ui.data(format!("  {}", ui::one_line(&line(it))));
    }
    if list.len() > shown {
        ui.data(format!("  and {} more (-v)", list.len() - shown));
    }
}

fn show_engine(status: &StatusReport, ui: &Ui) {
    let ServiceState { schedule, daemon, watcher } = &status.service;
    let EngineUse { model, budget, embeddings } = &status.engine;
    ui.data("");
    let engine = match (&model.provider, &model.model) {
        (Some(provider), Some(name)) => format!("model {name} ({provider})"),
        _ => "extractive (offline, free)".to_owned(),
    };
    ui.data(format!("engine    {engine}, {}", model.state.as_deref().unwrap_or("unknown")));
    if let (Some(day), Some(month)) = (&budget.day, &budget.month) {
        ui.data(format!("budget    today {}; this month {}", day.describe(), month.describe()));
    }
    if let Some(embeddings) = embeddings {
        ui.data(format!("vectors   {}", embeddings.describe()));
    }
    let since = daemon.since.as_ref().map(|it| format!(" since {it}")).unwrap_or_default();
    let process = daemon.pid.map(|it| format!(" (process {it})")).unwrap_or_default();
    if daemon.running {
        let state = if daemon.paused.is_some() { "paused" } else { "running" };
        ui.data(format!("daemon    {state}{process}{since}"));
        if let Some(why) = &daemon.restart {
            ui.data(format!("          restart it: {why}"));
        }
        ui.data(format!("watching  {}", watching_line(watcher)));
    } else {
        ui.data("daemon    not running; `memoird run` starts it");
    }
    if let Some(run) = &status.runs.last_run {
        let mut outcomes: Vec<String> = Vec::new();
        for (&outcome, &count) in &run.outcomes {
            // As `compact` counts them.
            let count = if outcome == "unchanged" { count - run.quiet_days } else { count };
            outcomes.extend((count > 0).then(|| format!("{count} {outcome}")));
        }
        if run.quiet_days > 0 {
            let days = counted(run.quiet_days, "day", "days");
            outcomes.push(format!("{days} read for typed memories"));
        }
        let ended = if run.ended.is_some() { "" } else { ", not finished" };
        // Other commands have no jobs: `memoird history` says what they changed.
        let what = match outcomes.is_empty() {
            true if matches!(&run.trigger[..], "correct" | "forget" | "review" | "undo") => {
                String::new()
            }
            true => ": nothing".to_owned(),
            false => format!(": {}", outcomes.join(", ")),
        };
        let amounts = match run.amounts {
            0 => String::new(),
            of => format!("; {} of {of} amounts and dates kept", run.amounts_kept),
        };
        ui.data(format!("last run  {} by {}{what}{amounts}{ended}", run.started, run.trigger));
    }
    ui.data(format!("next      {}", next_line(daemon.running, schedule)));
}

/// Returns when which jobs run next. Only a daemon follows the schedule.
fn next_line(is_daemon_running: bool, schedule: &[ScheduleEntry]) -> String {
    if !is_daemon_running {
        return "nothing is scheduled, because no daemon runs; `memoird compact` runs what is due"
            .to_owned();
    }
    let ticks: Vec<String> = schedule.iter().map(|it| format!("{} {}", it.job, it.shown)).collect();
    ticks.join(", ")
}

/// Describes how the daemon notices changes.
fn watching_line(watcher: &WatcherStatus) -> String {
    let WatcherStatus { mode, why, last_scan, missed, overflows, .. } = watcher;
    let mut words = match (mode.as_deref(), why) {
        (Some("poll"), Some(why)) => format!("by polling every half minute, because {why}"),
        (mode, _) => mode.unwrap_or("unknown").to_owned(),
    };
    words.extend(last_scan.iter().map(|it| format!(", last scan {it}")));
    let counts = [(missed, "scans found missed changes"), (overflows, "event queue overflows")];
    for (count, what) in counts {
        words.extend(count.filter(|it| *it > 0).map(|it| format!(", {it} {what}")));
    }
    words
}

/// Describes undone jobs, and how to run them again. The days of a week share one line, with the week
/// itself if it was undone too.
fn undone_lines(undone: &[StuckJob]) -> Vec<String> {
    let of_tier = |tier: Tier| undone.iter().filter(move |it| it.tier == tier.name());
    let mut days: BTreeMap<String, usize> = BTreeMap::new();
    for it in of_tier(Tier::Extract) {
        let week = it.period.parse::<Period>().ok().and_then(Period::parent);
        *days.entry(week.map_or_else(|| it.period.clone(), |it| it.to_string())).or_default() += 1;
    }
    let day_count = |days: usize| counted(days, "day", "days");
    let mut lines = Vec::new();
    for StuckJob { period, .. } in of_tier(Tier::Weekly) {
        let days = days.remove(period);
        let days = days.map(|it| format!(" with the typed memories of {}", day_count(it)));
        lines.push((period.clone(), format!("weekly {period}{}", days.unwrap_or_default()), ""));
    }
    for (week, days) in days {
        let line = format!("typed memories of {} in {week}", day_count(days));
        lines.push((week, line, " extract"));
    }
    lines.sort();
    for it in of_tier(Tier::Monthly).chain(of_tier(Tier::Wisdom)) {
        lines.push((
            it.period.clone(),
            format!("{} {}", it.tier, it.period),
            tier_argument(it.tier),
        ));
    }
    let lines = lines.into_iter().map(|(period, line, tier)| {
        format!("{line}; `memoird compact{tier} --period {period} --force` runs it again")
    });
    lines.collect()
}
