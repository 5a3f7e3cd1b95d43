//! Corrections: a person's words replace those of an item; all other bytes stay.
//!
//! The record of what we wrote (the `items` of a summary, the hash in the record of an entry, the
//! hash of a memory's body) stays as it is. So the item no longer matches it and counts as the
//! person's, with or without a database.
//!
//! Called by `compaction::correct`.

use super::{
    address::Citation,
    document::{Summary, SummaryBlock},
    frontmatter,
    item::Item,
    joined,
    markdown::{self, LineKind},
    typed::{self, TypedMemory},
    wisdom::{WisdomFile, is_beginning_of},
};

/// The longest description in the index.
const DESCRIPTION_CHARS_MAX: usize = 119;
/// The longest title.
const TITLE_CHARS_MAX: usize = 80;

/// The words that a person typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CorrectionText {
    /// The words on one line, without list marker and citation.
    pub text: String,
    /// Lines that the person chose; `None` to keep those that the item cites.
    pub citation: Option<Citation>,
}

/// Words that cannot replace an item.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CorrectionTextError {
    /// There are no words.
    #[error("there are no words; to remove an item, delete it in the file")]
    Empty,
    /// It ends in brackets that look like a citation.
    #[error("`[{0}]` is not a citation (expected one like [2026-04-02:4,9-11; 2026-04-03:2])")]
    InvalidCitation(String),
}

/// A file with a corrected item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CorrectedFile {
    /// The whole file.
    pub text: String,
    /// The first line of the item, in the file before the correction.
    pub line: u32,
    /// The item's lines before.
    pub before: String,
    /// The item's lines after.
    pub after: String,
    /// The citation after.
    pub citation: Option<Citation>,
}

/// Why nothing can be corrected at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CorrectionTargetError {
    /// The line belongs to no item; the nearest one begins at this line.
    NoItem(Option<u32>),
    /// A person respelled the frontmatter of the memory, so its sources cannot be changed here.
    FixedSources,
}

impl CorrectionText {
    /// Parses what was typed.
    ///
    /// # Errors
    ///
    /// Returns [`CorrectionTextError`] if there are no words, or a citation is misspelled.
    pub fn parse(typed: &str) -> Result<Self, CorrectionTextError> {
        let line = typed::one_line(typed);
        let bare = ["- ", "* ", "+ "].iter().find_map(|it| line.strip_prefix(it)).unwrap_or(&line);
        let Item { text, citation } = Item::parse(bare);
        if citation.is_none()
            && let Some((_, inner)) = text.strip_suffix(']').and_then(|it| it.rsplit_once('['))
            && looks_like_citation(inner)
        {
            return Err(CorrectionTextError::InvalidCitation(inner.to_owned()));
        }
        if text.trim_matches(['-', '*', '+', ' ']).is_empty() {
            return Err(CorrectionTextError::Empty);
        }
        Ok(Self { text: text.trim().to_owned(), citation })
    }
}

/// Returns whether the text between brackets is meant as a citation.
fn looks_like_citation(inner: &str) -> bool {
    let marks = |c: char| c.is_alphanumeric() || ":;,- _.".contains(c);
    inner.contains(':')
        && inner.chars().all(marks)
        && (inner.starts_with("CMEM-") || inner.starts_with(|c: char| c.is_ascii_digit()))
}

/// Replaces the words of the bullet of a weekly or monthly file that contains `line`.
///
/// # Errors
///
/// Returns where the nearest bullet begins.
pub fn correct_summary(
    summary: &Summary,
    text: &str,
    line: u32,
    words: &CorrectionText,
) -> Result<CorrectedFile, CorrectionTargetError> {
    let front = &text[..frontmatter::split(text).body_at];
    let (mut at, mut number) = (front.len(), 1 + count_newlines(front));
    let mut nearest: Option<u32> = None;
    for block in &summary.blocks {
        let raw = block.raw();
        let lines = count_newlines(raw).max(1);
        if let SummaryBlock::Bullet(item, _) = block {
            if (number..number + lines).contains(&line) {
                let citation = words.citation.clone().or_else(|| item.citation.clone());
                let new =
                    Item { text: with_task_box(item, &words.text), citation: citation.clone() };
                let after = format!("{}{new}", bullet_prefix(raw));
                let end = &raw[raw.trim_end_matches(['\r', '\n']).len()..];
                let whole = [&text[..at], &after, end, &text[at + raw.len()..]].concat();
                let before = raw.trim_end().to_owned();
                let text = joined::resealed(whole);
                return Ok(CorrectedFile { text, line: number, before, after, citation });
            }
            if nearest.is_none_or(|it| number.abs_diff(line) < it.abs_diff(line)) {
                nearest = Some(number);
            }
        }
        at += raw.len();
        number += count_newlines(raw);
    }
    Err(CorrectionTargetError::NoItem(nearest))
}

/// Returns the text before the words of a bullet: indent, marker, blanks.
fn bullet_prefix(raw: &str) -> &str {
    let first = raw.split('\n').next().unwrap_or_default();
    let words_at = match markdown::classify_summary_lines([first]).first() {
        Some(LineKind::ListItem { text_at, task: Some(_), .. }) => {
            first[..*text_at].rfind('[').unwrap_or(*text_at)
        }
        Some(LineKind::ListItem { text_at, .. }) => *text_at,
        _ => 0,
    };
    let blanks = first[..words_at].trim_end().len();
    // A bullet without words has no blank after its marker.
    if blanks == words_at { "- " } else { &first[..words_at] }
}

/// Keeps the box of a task, unless the new words have one.
fn with_task_box(item: &Item, words: &str) -> String {
    let box_of = |text: &str| {
        let inner = text.strip_prefix('[')?.get(..2)?;
        matches!(inner, " ]" | "x]" | "X]").then(|| format!("[{inner} "))
    };
    match (box_of(&item.text), box_of(words)) {
        (Some(task), None) => task + words,
        _ => words.to_owned(),
    }
}

/// Replaces the words of the entry of `WISDOM.md` that contains `line`. Words that begin with
/// `**Title**` also replace the title.
///
/// # Errors
///
/// Returns where the nearest entry begins.
pub fn correct_wisdom(
    text: &str,
    line: u32,
    words: &CorrectionText,
) -> Result<CorrectedFile, CorrectionTargetError> {
    let mut file = WisdomFile::parse(text);
    let mut nearest = None::<u32>;
    let mut chosen = None;
    for (at, (number, entry)) in file.entries_with_lines().into_iter().enumerate() {
        let body = entry.raw.trim_end();
        if (number..=number + count_newlines(body)).contains(&line) {
            // A title that repeats the words is replaced with them.
            let titled = words.text.starts_with("**")
                || entry.title.is_empty()
                || !is_beginning_of(&entry.title, &entry.text);
            let new = if titled {
                words.text.clone()
            } else {
                format!("**{}** {}", shorten(&words.text, TITLE_CHARS_MAX), words.text)
            };
            chosen = Some((at, new, entry.clone()));
            break;
        }
        if nearest.is_none_or(|it| number.abs_diff(line) < it.abs_diff(line)) {
            nearest = Some(number);
        }
    }
    let Some((at, new, entry)) = chosen else { return Err(CorrectionTargetError::NoItem(nearest)) };
    file.reword_entry(at, &new, words.citation.as_ref());
    let text = file.print();
    // In a file of an older form the lines move when its comments leave it.
    let read = WisdomFile::parse(&text);
    let (number, after) = read
        .entries_with_lines()
        .into_iter()
        .nth(at)
        .map_or((line, String::new()), |(number, it)| (number, it.raw.trim_end().to_owned()));
    Ok(CorrectedFile {
        line: number,
        before: entry.raw.trim_end().to_owned(),
        after,
        citation: words.citation.clone().or(entry.meta.map(|it| it.sources)),
        text,
    })
}

/// Replaces the paragraph of a typed memory that contains `line`; without a line, its statement.
///
/// The label of a paragraph (`**Why:**`) stays. A title or a description that repeated the
/// statement follows it. `hash_of` returns the check of a source.
///
/// # Errors
///
/// Returns where the statement begins, for a line outside all paragraphs.
pub fn correct_memory(
    memory: &TypedMemory,
    text: &str,
    line: Option<u32>,
    words: &CorrectionText,
    hash_of: &dyn Fn(&super::address::Address) -> Option<String>,
) -> Result<CorrectedFile, CorrectionTargetError> {
    let is_whole = memory.print() == text;
    let (text, _) = joined::split(text);
    let body_at = frontmatter::split(text).body_at;
    let paragraphs = paragraphs(&text[body_at..]);
    let first = 1 + count_newlines(&text[..body_at]);
    let number = |at: usize| first + count_newlines(&text[body_at..body_at + at]);
    let statement = paragraphs
        .iter()
        .position(|&(from, to)| !text[body_at + from..body_at + to].starts_with('#'));
    let nearest = statement.map(|it| number(paragraphs[it].0));
    let chosen = match line {
        None => statement,
        Some(line) => {
            paragraphs.iter().position(|&(from, to)| (number(from)..=number(to)).contains(&line))
        }
    };
    let chosen = chosen.ok_or(CorrectionTargetError::NoItem(nearest))?;
    let (from, to) = paragraphs[chosen];
    let before = &text[body_at + from..body_at + to];
    let label = ["**Why:** ", "**How to apply:** "].into_iter().find(|it| before.starts_with(it));
    let label = label.filter(|_| !words.text.starts_with("**")).unwrap_or_default();
    // A statement of a memory about a topic keeps its citation.
    let bullet = before.strip_prefix("- ").map(Item::parse).filter(|_| memory.is_about_topic());
    let cited = || match &bullet {
        Some(item) => item.citation.clone(),
        None => Citation::from_addresses(memory.sources.iter().map(|(address, _)| address)),
    };
    let citation = words.citation.clone().or_else(cited);
    let after = match bullet {
        Some(_) => format!("- {}", Item { text: words.text.clone(), citation: citation.clone() }),
        None => format!("{label}{}", words.text),
    };
    let body = [&text[body_at..body_at + from], &after, &text[body_at + to..]].concat();
    // A description that says what the statement said follows it, unless a person wrote it.
    let describes = bullet.as_ref().is_some_and(|it| {
        is_whole && !memory.has_own_description() && is_beginning_of(&memory.description, &it.text)
    });
    let whole = if describes {
        let description = shorten(&words.text, DESCRIPTION_CHARS_MAX);
        let recorded_description = Some(typed::description_hash(&description));
        TypedMemory { description, recorded_description, body, ..memory.clone() }.print()
    } else if !memory.is_about_topic() && is_whole {
        let mut new = TypedMemory { body, ..memory.clone() };
        if Some(chosen) == statement {
            let old = typed::one_line(before);
            if is_beginning_of(&new.description, &old) {
                new.description = shorten(&words.text, DESCRIPTION_CHARS_MAX);
            }
            if is_beginning_of(&new.name, &old) {
                new.name = shorten(&words.text, DESCRIPTION_CHARS_MAX);
            }
        }
        if let Some(citation) = &words.citation {
            let source = |at| Some((hash_of(&at)?, at)).map(|(hash, at)| (at, hash));
            new.sources = citation.addresses().filter_map(source).collect();
        }
        new.print()
    } else if words.citation.is_some() && !memory.is_about_topic() {
        return Err(CorrectionTargetError::FixedSources);
    } else {
        memory.with_record(&[&text[..body_at], &body].concat())
    };
    Ok(CorrectedFile {
        text: whole,
        line: number(from),
        before: before.to_owned(),
        after,
        citation,
    })
}

/// Returns the byte ranges of the paragraphs of a body, without their last line end.
fn paragraphs(body: &str) -> Vec<(usize, usize)> {
    let mut found: Vec<(usize, usize)> = Vec::new();
    let (mut at, mut open) = (0, false);
    for line in body.split_inclusive('\n') {
        let end = at + line.trim_end().len();
        match found.last_mut() {
            _ if line.trim().is_empty() => open = false,
            Some(last) if open && !line.starts_with("- ") => last.1 = end,
            _ => {
                found.push((at, end));
                open = true;
            }
        }
        at += line.len();
    }
    found
}

/// Shortens a text between words, with `…` at its end.
pub(crate) fn shorten(text: &str, chars_max: usize) -> String {
    if text.chars().count() <= chars_max {
        return text.to_owned();
    }
    let cut: String = text.chars().take(chars_max - 1).collect();
    let words = cut.rfind(' ').map_or(&cut[..], |at| &cut[..at]);
    format!("{}…", words.trim_end_matches([',', ';', ':', '—', '-', ' ']))
}

fn count_newlines(text: &str) -> u32 {
    u32::try_from(text.matches('\n').count()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{document::BulletOwner, joined};

    const WEEK: &str = "---\ntype: weekly\nperiod: 2026-W14\nmemoird:\n  engine: extractive/1\n  sources: {}\n  items: [aaaaaaaa]\n---\n\n# Week 2026-W14\n\n### Decisions\n- One [2026-04-02:1]\n  and more\n* [ ] two\r\n- three";

    fn week(line: u32, typed: &str) -> Result<CorrectedFile, CorrectionTargetError> {
        let summary = Summary::parse("2026-W14".parse().unwrap(), WEEK).unwrap();
        correct_summary(&summary, WEEK, line, &CorrectionText::parse(typed).unwrap())
    }

    #[test]
    fn correcting_a_bullet_changes_only_its_words() {
        for (line, typed, old, new) in [
            (13, "Uno", "- One [2026-04-02:1]\n  and more\n", "- Uno [2026-04-02:1]\n"),
            (
                14,
                "- Uno [2026-04-03:7]",
                "- One [2026-04-02:1]\n  and more\n",
                "- Uno [2026-04-03:7]\n",
            ),
            (15, "due", "* [ ] two\r\n", "* [ ] due\r\n"),
            (15, "[x] due", "* [ ] two\r\n", "* [x] due\r\n"),
            (16, "tre\n  volte", "- three", "- tre volte"),
        ] {
            let corrected = week(line, typed).unwrap();
            assert_eq!(corrected.text, WEEK.replace(old, new), "{typed}");
            let read = Summary::parse("2026-W14".parse().unwrap(), &corrected.text).unwrap();
            assert!(read.ownership().owners.iter().all(|it| *it == BulletOwner::User));
        }
        assert_eq!(week(12, "x"), Err(CorrectionTargetError::NoItem(Some(13))));
        assert_eq!(week(400, "x"), Err(CorrectionTargetError::NoItem(Some(16))));
    }

    #[test]
    fn typed_text_is_parsed_strictly() {
        let error = |typed: &str| CorrectionText::parse(typed).unwrap_err();
        assert_eq!(error(" - "), CorrectionTextError::Empty);
        assert_eq!(error("[2026-04-02:1]"), CorrectionTextError::Empty);
        assert_eq!(
            error("x [2026-04-02:0]"),
            CorrectionTextError::InvalidCitation("2026-04-02:0".to_owned())
        );
        assert_eq!(
            error("x [2026-04-31:4]"),
            CorrectionTextError::InvalidCitation("2026-04-31:4".to_owned())
        );
        assert_eq!(CorrectionText::parse("see [1] and [wip]").unwrap().text, "see [1] and [wip]");
    }

    #[test]
    fn an_entry_keeps_its_title_and_its_record() {
        let mut file = WisdomFile::new("A");
        let cite = |text: &str| text.parse::<Citation>().unwrap();
        file.add("Ask Jo", "Jo knows.", None, cite("2026-04-02:1"));
        file.add("Order", "Tag first.", None, cite("2026-04-03:1"));
        file.add("Never on Friday", "Never on Friday.", None, cite("2026-04-03:2"));
        let mine = file.print_visible() + "\n**Mine**\nmy words\nof two lines\n";
        let text = joined::join(&mine, joined::split(&file.print()).1);
        let at = |words: &str| {
            1 + u32::try_from(text.lines().position(|it| it == words).unwrap()).unwrap()
        };
        let words = |typed: &str| CorrectionText::parse(typed).unwrap();
        let new = correct_wisdom(&text, at("Tag first."), &words("Tag last.")).unwrap();
        let shown = |text: &str| joined::visible(text).to_owned();
        assert_eq!(shown(&new.text), shown(&text).replace("Tag first.", "Tag last."));
        assert_eq!((new.line, new.citation), (at("**Order**"), Some(cite("2026-04-03:1"))));
        let read = WisdomFile::parse(&new.text);
        assert!(!read.entries().nth(1).unwrap().is_managed());
        let new = correct_wisdom(&text, at("**Order**"), &words("**Tags** Never. [2026-04-09:2]"))
            .unwrap();
        assert!(new.text.contains("**Tags**\nNever.\n\n"), "{}", new.text);
        assert!(new.text.contains(r#""sources": "2026-04-09:2","#), "{}", new.text);
        let new = correct_wisdom(&text, at("of two lines"), &words("one line")).unwrap();
        assert!(shown(&new.text).ends_with("\n**Mine**\none line\n"), "{}", new.text);
        let new = correct_wisdom(&text, at("- Never on Friday."), &words("Never.")).unwrap();
        assert!(new.text.contains("\n- Never.\n"), "{}", new.text);
        assert!(correct_wisdom(&text, 1, &words("x")).is_err());
    }

    #[test]
    fn correcting_a_memory_changes_one_paragraph_and_what_repeated_it() {
        let mut memory = TypedMemory::parse(
            "feedback_squash.md".as_ref(),
            "---\nname: Always squash\ndescription: Always squash before merging\ntype: feedback\nsources: [2026-04-02:1#3fa9]\nmine: yes\n---\n\nAlways squash before merging.\n\n**Why:** the notes\nlist commits\n",
        )
        .unwrap();
        memory.record_body_hash();
        let text = memory.print();
        let none = |_: &super::super::address::Address| None;
        let words = |typed: &str| CorrectionText::parse(typed).unwrap();
        let new = correct_memory(&memory, &text, None, &words("Never squash."), &none).unwrap();
        assert_eq!(
            joined::visible(&new.text),
            joined::visible(&text)
                .replace("before merging.", "before merging")
                .replace(
                    "description: Always squash before merging",
                    "description: \"Never squash.\""
                )
                .replace("name: Always squash", "name: \"Never squash.\"")
                .replace("\nAlways squash before merging\n", "\nNever squash.\n")
                .replace("\"Always squash before merging\"", "\"Never squash.\"")
                .replace("\"Always squash\"", "\"Never squash.\"")
        );
        let read = TypedMemory::parse("feedback_squash.md".as_ref(), &new.text).unwrap();
        assert!(!read.is_managed() && read.recorded_body.is_some());
        let why =
            1 + u32::try_from(text.lines().position(|it| it == "list commits").unwrap()).unwrap();
        let new = correct_memory(&memory, &text, Some(why), &words("so said Jo"), &none).unwrap();
        assert!(joined::visible(&new.text).ends_with("\n**Why:** so said Jo\n"), "{}", new.text);
        assert!(correct_memory(&memory, &text, Some(2), &words("x"), &none).is_err());
    }

    #[test]
    fn a_description_follows_the_statement_that_it_repeats() {
        let visible = "---\nname: Staging\ndescription: Staging runs on port 8080\ntype: project\n---\n\n## State\n\n\
            - Staging runs on port 8080 [2026-04-02:1]\n- Staging has two workers [2026-04-02:2]\n";
        let mut memory = TypedMemory::parse("project_staging.md".as_ref(), visible).unwrap();
        memory.recorded_description = Some(typed::description_hash(&memory.description));
        memory.record_body_hash();
        let text = memory.print();
        let none = |_: &super::super::address::Address| None;
        let correct = |memory: &TypedMemory, text: &str, of: &str| {
            let at = text.lines().position(|it| it.starts_with(of)).unwrap();
            let line = Some(1 + u32::try_from(at).unwrap());
            let words = CorrectionText::parse("Staging runs on port 9191").unwrap();
            let new = correct_memory(memory, text, line, &words, &none).unwrap();
            TypedMemory::parse("project_staging.md".as_ref(), &new.text).unwrap()
        };
        let new = correct(&memory, &text, "- Staging runs");
        assert_eq!(new.description, "Staging runs on port 9191");
        assert!(!new.has_own_description());
        assert!(new.body.contains("- Staging runs on port 9191 [2026-04-02:1]\n"), "{}", new.body);
        assert_eq!(correct(&memory, &text, "- Staging has").description, memory.description);
        let own = text.replacen("Staging runs on port 8080", "Staging runs", 1);
        let memory = TypedMemory::parse("project_staging.md".as_ref(), &own).unwrap();
        assert_eq!(correct(&memory, &own, "- Staging runs").description, "Staging runs");
    }
}
