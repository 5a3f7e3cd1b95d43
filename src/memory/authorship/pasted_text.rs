//! Text in notes that somebody read rather than did: articles, posts, products, search results, links.
//!
//! A section is judged as a whole: its heading or its first lines say that it is about something read,
//! it names a source, and few of its lines speak of one's own work. Such lines stay notes within it, and
//! so do parts with a heading such as "Next steps". In doubt a line is a note.

use std::ops::Range;

use super::{
    LineAuthorship, LineShape, NumberedLine, OriginReason,
    host_text::{contains_phrase, is_external_by_kind, words_of},
    machine_report::section_end,
};
use crate::{memory::markdown::LineKind, text::lexicon::AUTHORSHIP};

/// Lines of a section in which the field with its source must be.
const SOURCE_LINES_MAX: usize = 4;
/// The number of links, and of hosts that they lead to, that make a list of links.
const LINKS_MIN: usize = 5;
const LINK_HOSTS_MIN: usize = 3;
/// Different phrases of advertising that make a section one.
const MARKETING_MIN: usize = 3;

/// Marks what was read in a range of notes.
pub(super) fn mark(lines: &[NumberedLine<'_>], range: Range<usize>, found: &mut [LineAuthorship]) {
    mark_links(lines, range.clone(), found);
    let mut at = range.start;
    while at < range.end {
        if !matches!(lines[at].2, LineKind::Heading { .. }) || found[at].reason.is_some() {
            at += 1;
            continue;
        }
        let section = at..section_end(lines, at, range.end);
        let kind = kind_of_section(lines, &section);
        at = if kind == SectionKind::Notes {
            at + 1
        } else {
            mark_section(lines, &section, kind == SectionKind::Post, found);
            section.end
        };
    }
}

/// What a section is about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SectionKind {
    Notes,
    /// Something read, with notes on it.
    Reading,
    /// The text of a post, in which "I" is its author.
    Post,
}

/// What the lines of a section are.
#[derive(Default)]
struct SectionCounts {
    lines: usize,
    own: usize,
    links: usize,
    has_source: bool,
    post_fields: usize,
    has_post_link: bool,
}

fn kind_of_section(lines: &[NumberedLine<'_>], section: &Range<usize>) -> SectionKind {
    let (_, text, kind) = lines[section.start];
    let title = title_words(words_of(text, kind));
    if reports_work(title) {
        return SectionKind::Notes;
    }
    let is_reading = is_reading_title(title);
    // Most sections end here. A field below another heading is about what that one names.
    let first = lines[section.start + 1..section.end]
        .iter()
        .take_while(|it| !matches!(it.2, LineKind::Heading { .. }))
        .filter(|it| is_statement(it.2))
        .take(SOURCE_LINES_MAX);
    let names_source = first.clone().map(|it| words_of(it.1, it.2)).any(|words| {
        // Without a link, a source may be anything: a meeting, a table.
        is_source_field(words) && foreign_link(words).is_some()
    });
    let is_short = section.len() <= 16;
    if !is_reading && !names_source && !is_short {
        return SectionKind::Notes;
    }
    let counts = count(lines, section);
    if is_short && counts.has_post_link && counts.post_fields >= 2 {
        return SectionKind::Post;
    }
    if counts.lines < 3 || counts.own * 4 > counts.lines {
        return SectionKind::Notes;
    }
    let is_sourced = counts.links > 0 || counts.has_source;
    let is_foreign = counts.own * 10 <= counts.lines && counts.lines >= 6;
    if names_source || (is_reading && (is_sourced || is_foreign)) {
        return SectionKind::Reading;
    }
    if counts.own == 0 && advertises(&lines[section.clone()]) {
        return SectionKind::Reading;
    }
    SectionKind::Notes
}

fn count(lines: &[NumberedLine<'_>], section: &Range<usize>) -> SectionCounts {
    let mut counts = SectionCounts::default();
    for &(_, text, kind) in &lines[section.start + 1..section.end] {
        if !is_statement(kind) {
            continue;
        }
        let words = words_of(text, kind);
        counts.lines += 1;
        counts.own += usize::from(is_own_line(words, kind));
        counts.links += usize::from(foreign_link(words).is_some());
        counts.has_source |= is_source_field(words);
        counts.post_fields += usize::from(
            field_of(words).is_some_and(|(name, _)| is_in(name, &AUTHORSHIP.post_fields)),
        );
        counts.has_post_link |= words.contains("/status/") && foreign_link(words).is_some();
    }
    counts
}

/// Marks a section on something that was read.
fn mark_section(
    lines: &[NumberedLine<'_>],
    section: &Range<usize>,
    is_post: bool,
    found: &mut [LineAuthorship],
) {
    let mut own_level = None;
    let mut is_own_block = false;
    for at in section.start + 1..section.end {
        let (_, text, kind) = lines[at];
        let words = words_of(text, kind);
        if let LineKind::Heading { level, .. } = kind {
            is_own_block = false;
            if own_level.is_none_or(|it| level <= it) {
                own_level = starts_own_part(title_words(words)).then_some(level);
            }
        } else if let Some(lead) = lead_in(words) {
            is_own_block = starts_own_part(lead);
        }
        let is_own = own_level.is_some() || is_own_block || is_own_line(words, kind);
        let is_words = is_statement(kind) || matches!(kind, LineKind::Heading { .. });
        if is_words && (is_post || !is_own) {
            paste(&mut found[at]);
        }
    }
}

/// Marks a line as read elsewhere.
pub(super) fn paste(line: &mut LineAuthorship) {
    if line.reason.is_none() {
        line.shape = LineShape::Pasted;
        line.reason = Some(OriginReason::PastedText);
    }
}

/// Marks lists of links to several places.
fn mark_links(lines: &[NumberedLine<'_>], range: Range<usize>, found: &mut [LineAuthorship]) {
    let mut run: Vec<(usize, &str)> = Vec::new();
    for at in range.clone().chain([range.end]) {
        let line = lines.get(at).filter(|_| at < range.end);
        if let Some(&(_, text, kind)) = line {
            if kind == LineKind::Blank {
                continue;
            }
            let words = words_of(text, kind);
            if let Some(host) = bare_link(words).filter(|_| is_statement(kind)) {
                run.push((at, host));
                continue;
            }
        }
        let mut hosts: Vec<&str> = run.iter().map(|it| it.1).collect();
        hosts.sort_unstable();
        hosts.dedup();
        if run.len() >= LINKS_MIN && hosts.len() >= LINK_HOSTS_MIN {
            for &(at, _) in &run {
                paste(&mut found[at]);
            }
        }
        run.clear();
    }
}

/// Returns whether a line of that kind can be a statement of its own.
fn is_statement(kind: LineKind) -> bool {
    kind.is_content() && !is_external_by_kind(kind) && !matches!(kind, LineKind::Heading { .. })
}

/// Returns a heading without number, emoji, or emphasis at its start.
fn title_words(title: &str) -> &str {
    title.trim_start_matches(|c: char| !c.is_alphabetic())
}

fn is_in(word: &str, list: &[&str]) -> bool {
    let word = word.trim().to_lowercase();
    list.contains(&&word[..])
}

fn is_reading_title(title: &str) -> bool {
    let ends = |rest: &str| {
        let rest = rest.trim_start_matches(['*', ' ']);
        rest.is_empty() || rest.starts_with([':', '：', '-', '–', '—', '(', '（', '|', '/', '&'])
    };
    let lower = title.to_lowercase();
    AUTHORSHIP.reading_titles.iter().any(|it| lower.strip_prefix(it).is_some_and(ends)) || {
        let end = lower.split(['(', '（']).next().unwrap_or_default();
        let end = end.trim_end_matches(['*', ':', '：', ' ']);
        AUTHORSHIP.reading_title_ends.iter().any(|it| end.ends_with(it))
    }
}

/// Returns whether a heading says that something was done: "Dashboard installed".
fn reports_work(title: &str) -> bool {
    let lower = title.to_lowercase();
    let mut words = lower.split(|c: char| !c.is_alphanumeric());
    words.any(|it| AUTHORSHIP.own_work.contains(&it) && it != "read")
        || AUTHORSHIP.own_work.iter().any(|it| !it.is_ascii() && it.len() > 3 && lower.contains(it))
}

/// Returns the words of a lead-in, `**Next steps:**`.
fn lead_in(words: &str) -> Option<&str> {
    let (lead, rest) = words.strip_prefix("**")?.split_once("**")?;
    (lead.ends_with(':') || rest.starts_with(':') || rest.trim().is_empty())
        .then(|| title_words(lead))
}

pub(super) fn starts_own_part(title: &str) -> bool {
    let lower = title.to_lowercase();
    let contains = |it: &&str| lower.contains(it);
    AUTHORSHIP.own_title_words.iter().any(contains)
        || AUTHORSHIP.own_titles.iter().any(|it| {
            lower.strip_prefix(it).is_some_and(|rest| {
                // `my` is a word, `opportunit` the start of one.
                it.len() > 4 || !it.is_ascii() || !rest.starts_with(char::is_alphanumeric)
            })
        })
}

/// Returns name and value of a field, `**Source:** https://…`.
pub(super) fn field_of(words: &str) -> Option<(&str, &str)> {
    let (name, value) = match words.strip_prefix("**") {
        Some(rest) => rest.split_once("**")?,
        None => words.split_once([':', '：'])?,
    };
    let name = name.trim_end_matches([':', '：', ' ']);
    (name.len() <= 40).then(|| (name, value.trim_start_matches([':', '：', ' '])))
}

/// Returns whether a line names where a text was read.
fn is_source_field(words: &str) -> bool {
    let words = words.trim_matches(['*', '_', '(', ')', ' ']);
    field_of(words).or_else(|| words.split_once([':', '：'])).is_some_and(|(name, value)| {
        let name = title_words(name).trim_end_matches('*');
        // A path or a command is a place of one's own.
        let is_own = value.starts_with(['`', '~', '/', '$']);
        !value.trim().is_empty() && !is_own && is_in(name, &AUTHORSHIP.source_fields)
    })
}

/// Returns whether a line speaks of one's own work.
fn is_own_line(words: &str, kind: LineKind) -> bool {
    if matches!(kind, LineKind::ListItem { task: Some(_), .. }) {
        return true;
    }
    let text = words.trim_start_matches(['*', '_', '`', ' ']);
    if AUTHORSHIP.own_states.iter().any(|it| text.starts_with(it))
        || AUTHORSHIP.own_characters.iter().any(|it| text.contains(it))
    {
        return true;
    }
    let lower = text.to_lowercase();
    let starts = |it: &&&str| {
        lower.strip_prefix(**it).is_some_and(|rest| {
            !it.is_ascii() || !rest.starts_with(|c: char| c.is_alphanumeric() || c == '-')
        })
    };
    AUTHORSHIP.own_work.iter().any(|it| starts(&it))
        || lower
            .split(|c: char| !c.is_alphanumeric() && !matches!(c, '\'' | '’'))
            .any(|it| AUTHORSHIP.own_words.contains(&&it.replace('’', "'")[..]))
}

/// Returns the host of the first link to somewhere else.
fn foreign_link(words: &str) -> Option<&str> {
    let at = words.find("://")?;
    if !words[..at].ends_with("http") && !words[..at].ends_with("https") {
        return None;
    }
    let rest = &words[at + 3..];
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '.' | '-'));
    let host = &rest[..end.unwrap_or(rest.len())];
    let is_own = host.is_empty()
        || !host.contains('.')
        || host.rsplit('.').next() == Some("local")
        || host.chars().all(|c| c.is_ascii_digit() || c == '.');
    (!is_own).then_some(host)
}

/// Returns the host of a line that is only a link with a title.
fn bare_link(words: &str) -> Option<&str> {
    let host = foreign_link(words)?;
    let is_link = |it: &&str| it.contains("://");
    let others = words.split_whitespace().filter(|it| !is_link(it)).count();
    (others <= 12 && !is_own_line(words, LineKind::Text)).then_some(host)
}

/// Returns whether a section reads like advertising.
fn advertises(section: &[NumberedLine<'_>]) -> bool {
    let has = |phrase: &&&str| {
        section.iter().any(|it| is_statement(it.2) && contains_phrase(words_of(it.1, it.2), phrase))
    };
    AUTHORSHIP.marketing.iter().filter(has).take(MARKETING_MIN).count() == MARKETING_MIN
}
