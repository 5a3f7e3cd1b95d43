//! What the lineage records of each generated file.
//!
//! A commit, a recovery, and a rebuild derive it from the text of the file by these functions, so
//! that a rebuilt database equals the old one.

use std::path::Path;

use crate::{
    memory::{
        address::{Citation, Stem},
        document::{Summary, SummaryHeader},
        frontmatter,
        hash::ContentHash,
        item::{Item, Tier},
        joined,
        log::DailyLog,
        period::{Grain, Period},
        typed::TypedMemory,
        wisdom::WisdomFile,
    },
    store::{
        db::lineage::record::{DocumentKind, DocumentRecord, ItemRecord, LogRecord},
        fs::layout::{self, Layout, MemoryFileName},
    },
};

/// Returns the record of the generated file at `path`, or `None` if it is not ours.
pub(crate) fn of_path(layout: &Layout, path: &str, text: &str) -> Option<DocumentRecord> {
    if path == layout.wisdom() {
        return Some(of_wisdom(path, text));
    }
    let name = path.rsplit_once('/').map_or(path, |(_, name)| name);
    if let Some(period) = name.strip_suffix(".md").and_then(|stem| stem.parse::<Period>().ok())
        && period.grain() != Grain::Day
        && layout.summary(period) == path
    {
        let summary = Summary::parse(period, text).ok()?;
        return Some(of_summary(path, &summary, text));
    }
    let typed = matches!(layout::classify(name), MemoryFileName::Typed(_))
        && layout.typed_memory(name) == path;
    let memory = TypedMemory::parse(Path::new(name), text).ok().filter(|_| typed)?;
    Some(of_memory(path, &memory, text))
}

/// Returns the record of a weekly or monthly file whose text is `text`.
pub(crate) fn of_summary(path: &str, summary: &Summary, text: &str) -> DocumentRecord {
    let kind = match Tier::of_period(summary.period) {
        Tier::Monthly => DocumentKind::Monthly,
        _ => DocumentKind::Weekly,
    };
    let record = |(line, item, _): (u32, &Item, _)| ItemRecord {
        line,
        hash: item.hash(),
        citation: item.citation.clone(),
    };
    // A parsed text may have another spelling of the frontmatter than we print.
    let items = if summary.print() == text {
        summary.bullets().map(record).collect()
    } else {
        summary.bullets_as_read().map(record).collect()
    };
    DocumentRecord { path: path.to_owned(), kind, hash: ContentHash::of(text), items }
}

/// Returns the lines of a weekly or monthly file that is cited itself. The citation at the end of a
/// line does not count: it changes with other files, and the words stay.
pub(crate) fn lines_of_summary(stem: &Stem, path: &str, text: &str) -> Option<LogRecord> {
    let log = DailyLog::parse(stem.clone(), text.as_bytes()).ok()?;
    let lines = log.lines();
    Some(LogRecord {
        stem: stem.clone(),
        path: path.to_owned(),
        hash: ContentHash::of(text),
        first_line: lines.first().map_or(1, |it| it.0),
        line_hashes: lines.iter().map(|it| summary_line_hash(it.1)).collect(),
        quarantined: Vec::new(),
        // The history has the file itself.
        raw: None,
    })
}

/// Returns the hash by which a line of a weekly or monthly file is found again.
pub(crate) fn summary_line_hash(line: &str) -> u64 {
    ContentHash::of(Item::parse(line.trim_end()).text.trim_end()).prefix64()
}

/// Returns the record of a typed memory: each statement of one about a topic, else the file as its only item.
pub(crate) fn of_memory(path: &str, memory: &TypedMemory, text: &str) -> DocumentRecord {
    let visible = joined::visible(text);
    let above = visible[..frontmatter::split(visible).body_at].matches('\n').count();
    let above = u32::try_from(above).unwrap_or(u32::MAX);
    let mut items: Vec<ItemRecord> = memory
        .statements()
        .into_iter()
        .map(|it| ItemRecord {
            line: above.saturating_add(it.line),
            hash: it.item.hash(),
            citation: it.item.citation,
        })
        .collect();
    // One about a topic in which a person deleted all statements has none.
    if !memory.is_about_topic() {
        items.push(ItemRecord {
            line: 1,
            hash: ContentHash::of(memory.body.trim()).hex8(),
            citation: Citation::from_addresses(memory.sources.iter().map(|(address, _)| address)),
        });
    }
    DocumentRecord {
        path: path.to_owned(),
        kind: DocumentKind::Memory,
        hash: ContentHash::of(text),
        items,
    }
}

/// Returns whether the visible text of a generated file holds its record itself, as in an older form.
pub(crate) fn holds_record(path: &str, visible: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    if name == layout::WISDOM_FILE {
        return WisdomFile::parse(visible).entries().any(|it| it.meta.is_some());
    }
    match name.strip_suffix(".md").and_then(|it| it.parse::<Period>().ok()) {
        Some(period) => SummaryHeader::read(period, visible).is_ok_and(|it| it.is_some()),
        None => {
            TypedMemory::parse(Path::new(name), visible).is_ok_and(|it| it.recorded_body.is_some())
        }
    }
}

/// Returns the record of `WISDOM.md`: its entries, a person's own included.
pub(crate) fn of_wisdom(path: &str, text: &str) -> DocumentRecord {
    let file = WisdomFile::parse(text);
    let items = file
        .entries_with_lines()
        .into_iter()
        .map(|(line, entry)| ItemRecord {
            line,
            hash: ContentHash::of(format!("{}\n{}", entry.title, entry.text)).hex8(),
            citation: entry.meta.as_ref().map(|it| it.sources.clone()),
        })
        .collect();
    DocumentRecord {
        path: path.to_owned(),
        kind: DocumentKind::Wisdom,
        hash: ContentHash::of(text),
        items,
    }
}
