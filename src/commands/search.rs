//! `memoird search`: finds the log lines that answer a question.

use std::process::ExitCode;

use super::{GlobalArgs, ui::Ui};
use crate::{
    operations::{
        error::{CommandError, CommandResult},
        format::shell_quoted,
        search::find,
        workspace::{Invocation, MemoryRoot},
    },
    recall::search::{
        self, Highlighter, Query, SearchOptions, SearchResults, time::date_words::DateWords,
    },
};

/// Find the log lines that answer a question
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Query syntax: \"exact phrase\", -word, -\"excluded phrase\", OR between alternatives, and the fields
tier:weekly, type:feedback, on:2026-04-02, after:2026-03, before:2026-W14, until:, project:NAME.
Dates in a question (\"on March 26\", \"last week\") are recognized.")]
pub(super) struct SearchArgs {
    /// What to look for
    #[arg(required = true, value_name = "QUERY")]
    query: Vec<String>,
    /// Only hits in this tier, or found through it: daily, session, weekly, monthly, wisdom, memory
    #[arg(long, value_parser = clap::builder::PossibleValuesParser::new(search::query::TIERS))]
    tier: Vec<String>,
    /// Only sources of typed memories of this kind: user, feedback, project, reference
    #[arg(long = "type", value_name = "TYPE", value_parser = ["user", "feedback", "project", "reference"])]
    kind: Option<String>,
    /// Only from this day, week, or month on (2026-04-02, 2026-W14, 2026-04, "two weeks ago")
    #[arg(long, value_name = "PERIOD")]
    since: Option<DateWords>,
    /// Only up to the end of this day, week, or month
    #[arg(long, value_name = "PERIOD")]
    until: Option<DateWords>,
    /// Show at most this many hits
    #[arg(long, short = 'n', default_value_t = 10, value_name = "N")]
    limit: usize,
    /// Show this many lines before and after each hit
    #[arg(long, short = 'C', default_value_t = 0, value_name = "N")]
    context: usize,
    /// Show items of summaries themselves instead of the log lines they cite
    #[arg(long)]
    raw: bool,
    /// Exit with 1 if nothing is found, as grep does
    #[arg(long)]
    exit_code: bool,
}

pub(super) fn run(global: &GlobalArgs, args: SearchArgs, ui: &Ui) -> CommandResult {
    let (call, root) = Invocation::with_root(global)?;
    #[cfg(feature = "fleet")]
    crate::operations::replica::refresh(&call, &root);
    let text = args.query.join(" ");
    if let Some(filter) = Query::unknown_filter(&text) {
        let words = format!("to search for it as words: memoird search '\"{}\"'", filter.word);
        let is_time = filter.is_time();
        let error = CommandError::usage(filter).hint(words);
        return Err(error.hints_from(is_time.then_some(
            "--since and --until also take words: memoird search QUERY --since yesterday",
        )));
    }
    let today = call.now.with_timezone(&root.settings.zone.name.0).date_naive();
    let mut query = Query::parse(&text);
    query.tiers.extend(args.tier);
    query.kind = args.kind.or(query.kind);
    query.since = args.since.map(|it| it.days(today).0).or(query.since);
    query.until = args.until.map(|it| it.days(today).1).or(query.until);
    if query.text.trim().is_empty() && query.since.is_none() && query.until.is_none() {
        return Err(CommandError::usage("the query has no words to search for")
            .hint("memoird search WORDS"));
    }
    let options =
        SearchOptions { limit: args.limit.max(1), context: args.context, raw: args.raw, today };
    let found = find(&call, &root, &query, options, None)?;
    let is_empty = found.hits.is_empty();
    show(&found, &query.words, ui);
    if is_empty && !ui.is_json() && call.is_unnamed(global, &root) {
        note_other_folders(&call, &root, &text, ui);
    }
    Ok(if is_empty && args.exit_code { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Says which folder was searched, and how to search the others.
fn note_other_folders(call: &Invocation, root: &MemoryRoot, text: &str, ui: &Ui) {
    const SHOWN_MAX: usize = 3;
    let searched = &root.settings.path;
    let others = call.config.roots.iter().map(|it| &it.path).filter(|it| *it != searched);
    let others: Vec<_> = others.collect();
    if others.is_empty() {
        return;
    }
    ui.note(format!("only {} was searched; to search others:", searched.display()));
    for other in others.iter().take(SHOWN_MAX) {
        let (other, text) = (shell_quoted(&other.to_string_lossy()), shell_quoted(text));
        ui.note(format!("  memoird --root {other} search {text}"));
    }
    if others.len() > SHOWN_MAX {
        ui.note("  and others; `memoird list` lists them all");
    }
}

fn show(found: &SearchResults, words: &str, ui: &Ui) {
    if ui.is_json() {
        ui.json(found);
        return;
    }
    if let Some(why) = &found.words_only {
        ui.warn(format!("searched by words only: {why}"));
    }
    if found.hits.is_empty() {
        ui.note("nothing found");
        return;
    }
    if found.similar_spelling {
        ui.note(format!("nothing says \"{words}\"; lines with words of a similar spelling:"));
    }
    let mut highlighter = Highlighter::of(words);
    for (hit, more) in search::group_duplicates(&found.hits) {
        let more = if more > 0 { format!("  (and {more} more like it)") } else { String::new() };
        let origin = if hit.origin == "external" { "  external" } else { "" };
        let by = match hit.found_by[..] {
            ["meaning"] => "  by meaning",
            ["spelling"] => "  similar spelling",
            _ => "",
        };
        let newer = hit.superseded_by.as_ref();
        let newer = newer.map(|it| format!("  superseded by {}:{}", it.path, it.line));
        let newer = newer.unwrap_or_default();
        ui.heading(format!("{}:{}  {}{origin}{by}{newer}{more}", hit.path, hit.line, hit.date));
        for line in &hit.before {
            ui.highlighted("    ", line, &[]);
        }
        ui.highlighted("  ", &hit.text, &highlighter.ranges(&hit.text));
        for line in &hit.after {
            ui.highlighted("    ", line, &[]);
        }
        let via: Vec<String> =
            hit.via.iter().map(|it| format!("{}:{}", it.path, it.line)).collect();
        if !via.is_empty() {
            ui.detail(format!("  via {}", via.join(", ")));
        }
    }
    // It is for agents, which read a pipe.
    if !ui.is_stdout_terminal() {
        ui.note(found.notice);
    }
}
