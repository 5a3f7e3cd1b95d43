//! The status in words.

use std::collections::BTreeMap;

use super::{
    DAILY, StatusReport,
    daemon::WatcherStatus,
    jobs::{StuckJob, TierReport},
};
use crate::{
    commands::ui::{self, Ui},
    memory::{item::Tier, period::Period},
};

/// More than this is said with `--verbose` only.
const SHOWN_MAX: usize = 5;
/// Of what is due, so many of each tier.
const SHOWN_OF_TIER_MAX: usize = 3;

pub(super) fn print_status(status: &StatusReport, ui: &Ui) {
    let zone = &status.zone;
    ui.heading(&status.root);
    ui.data(format!("{} · days in {zone}, named by {}", status.agent_name, status.zone_source));
    if let Some(writer) = &status.writer {
        ui.data(format!("summarised by the host {writer}; this one only reads it"));
    }
    ui.data("");
    show_tiers(status, ui);
    if status.archived > 0 {
        ui.data(format!("{} of the logs are archived", status.archived));
    }
    ui.data("");
    show_due(status, ui);
    show_list(ui, "stuck", &status.parked, |it| {
        let StuckJob { tier, period, reason } = it;
        format!(
            "{tier} {period}: {reason}; try `memoird compact{} --period {period} --force`",
            tier_argument(tier)
        )
    });
    let undone = undone_lines(&status.undone);
    show_list(ui, "taken back by undo, waits for changed input", &undone, Clone::clone);
    show_list(ui, "failed, tried again by the next run", &status.failed, |it| {
        format!("{} {}: {}", it.tier, it.period, it.reason)
    });
    show_list(ui, "files of somebody else, read and never written", &status.foreign, |it| {
        format!("{}; `memoird compact --period {} --force` adopts it", it.path, it.period)
    });
    if status.quarantined > 0 {
        ui.data(format!("{} held for review: `memoird review`", status.quarantined));
    }
    show_list(ui, "to look at", &status.problems, |it| format!("{}: {}", it.path, it.reason));
    show_sessions(status, ui);
    if let Some(told) = other_engine_line(status) {
        ui.data(told);
    }
    show_engine(status, ui);
}

/// Says what hooks left that is not kept.
fn show_sessions(status: &StatusReport, ui: &Ui) {
    let sessions = &status.sessions;
    show_list(
        ui,
        "sessions that could not be kept; `memoird session retry` tries again",
        &sessions.failed,
        |it| format!("{}: {}", it.transcript, it.reason),
    );
    if sessions.waiting > 0 {
        ui.data(format!("{} sessions wait to be kept; the daemon does it", sessions.waiting));
    }
    if sessions.homeless > 0 {
        ui.data(format!(
            "{} sessions are of projects without a memory folder; `memoird init DIR` in a project makes one",
            sessions.homeless
        ));
    }
}

/// Says how much was made or read by another engine than the one at work.
fn other_engine_line(status: &StatusReport) -> Option<String> {
    let (days, files): (Vec<_>, Vec<_>) =
        status.tiers.iter().partition(|it| it.tier == Tier::Extract.name());
    let count = |tiers: Vec<&TierReport>| tiers.iter().map(|it| it.older_engine).sum::<usize>();
    let told = match (count(files), count(days)) {
        (0, 0) => return None,
        (files, 0) => format!("{files} files were made"),
        (0, days) => format!("{days} days were read for typed memories"),
        (files, days) => {
            format!("{files} files were made, and {days} days read for typed memories,")
        }
    };
    Some(format!("{told} by another engine; `memoird compact --redo` does it again"))
}

/// Returns the argument that names a tier where the period does not.
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
}

fn show_due(status: &StatusReport, ui: &Ui) {
    let count = status.due().count();
    if count == 0 {
        let next = status.next_due.as_ref();
        let next = next.map(|it| format!("; {} {} closes {}", it.tier, it.period, it.shown));
        ui.data(format!("nothing is due{}", next.unwrap_or_default()));
        return;
    }
    ui.heading(format!("due ({count})"));
    for tier in &status.tiers {
        show_first(ui, SHOWN_OF_TIER_MAX, &tier.due, |it| {
            format!("{} {}: {}", tier.tier, it.period, it.reason)
        });
    }
    if status.daemon.running
        && let Some(why) = &status.not_yet
    {
        ui.data(format!("not yet: {}", ui::one_line(why)));
    }
    ui.data("`memoird compact` does it now");
}

/// Shows a heading with the first few of a list, or nothing of an empty one.
fn show_list<T>(ui: &Ui, heading: &str, list: &[T], line: impl Fn(&T) -> String) {
    if list.is_empty() {
        return;
    }
    ui.heading(format!("{heading} ({})", list.len()));
    show_first(ui, SHOWN_MAX, list, line);
}

/// Shows the first few of a list, with `--verbose` all.
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
    let StatusReport { daemon, watcher, model, .. } = status;
    ui.data("");
    let engine = match (&model.provider, &model.model) {
        (Some(provider), Some(name)) => format!("model {name} ({provider})"),
        _ => "extractive (offline, free)".to_owned(),
    };
    ui.data(format!("engine    {engine}, {}", model.state.as_deref().unwrap_or("unknown")));
    if let (Some(day), Some(month)) = (&status.budget.day, &status.budget.month) {
        ui.data(format!("budget    today {}; this month {}", day.describe(), month.describe()));
    }
    if let Some(embeddings) = &status.embeddings {
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
    if let Some(run) = &status.last_run {
        let outcomes: Vec<String> =
            run.outcomes.iter().map(|(outcome, count)| format!("{count} {outcome}")).collect();
        let ended = if run.ended.is_some() { "" } else { ", not ended" };
        let what = if outcomes.is_empty() { "nothing".to_owned() } else { outcomes.join(", ") };
        let kept = match run.amounts {
            0 => String::new(),
            of => format!("; {} of {of} amounts and days kept", run.amounts_kept),
        };
        ui.data(format!("last run  {} by {}: {what}{kept}{ended}", run.started, run.trigger));
    }
    let ticks: Vec<String> =
        status.schedule.iter().map(|it| format!("{} {}", it.job, it.shown)).collect();
    ui.data(format!("next      {}", ticks.join(", ")));
}

/// Says how changes are noticed.
fn watching_line(watcher: &WatcherStatus) -> String {
    let WatcherStatus { mode, why, last_scan, missed, overflows, .. } = watcher;
    let mut words = match (mode.as_deref(), why) {
        (Some("poll"), Some(why)) => format!("by looking every half minute, since {why}"),
        (mode, _) => mode.unwrap_or("unknown").to_owned(),
    };
    words.extend(last_scan.iter().map(|it| format!(", last look {it}")));
    let counts =
        [(missed, "looks found what nobody had told of"), (overflows, "times too much to tell")];
    for (count, what) in counts {
        words.extend(count.filter(|it| *it > 0).map(|it| format!(", {it} {what}")));
    }
    words
}

/// Tells of work that was taken back: the days of a week in one line, with the week itself if it is
/// among it, and how each line is lifted.
fn undone_lines(undone: &[StuckJob]) -> Vec<String> {
    let of_tier = |tier: Tier| undone.iter().filter(move |it| it.tier == tier.name());
    let mut days: BTreeMap<String, usize> = BTreeMap::new();
    for it in of_tier(Tier::Extract) {
        let week = it.period.parse::<Period>().ok().and_then(Period::parent);
        *days.entry(week.map_or_else(|| it.period.clone(), |it| it.to_string())).or_default() += 1;
    }
    let counted = |days: usize| format!("{days} {}", if days == 1 { "day" } else { "days" });
    let mut lines = Vec::new();
    for StuckJob { period, .. } in of_tier(Tier::Weekly) {
        let days = days.remove(period);
        let days = days.map(|it| format!(" with the typed memories of {}", counted(it)));
        lines.push((period.clone(), format!("weekly {period}{}", days.unwrap_or_default()), ""));
    }
    for (week, days) in days {
        let line = format!("typed memories of {} in {week}", counted(days));
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
    let told = lines.into_iter().map(|(period, line, tier)| {
        format!("{line}; `memoird compact{tier} --period {period} --force` lifts it")
    });
    told.collect()
}
