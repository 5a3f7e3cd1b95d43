//! What is fed to each parser, and what must hold of the outcome whatever the bytes are.
//!
//! One function for each parser, used by `cargo fuzz` and by the short run of `cargo test`. A target
//! panics where a promise is broken; it returns nothing, and refuses nothing but by returning early.

use std::path::Path;

use chrono::DateTime;
use memoird::{
    config::schedule::Schedule,
    memory::{
        address::{Address, Citation, Stem},
        atom,
        decision::Decisions,
        document::{Summary, SummaryHeader},
        frontmatter::{self, YAML_BYTES_MAX},
        item::Item,
        log::DailyLog,
        period::Period,
        typed::TypedMemory,
        wisdom::WisdomFile,
    },
};

/// A parser under test: what it is called, and what is done with the bytes.
pub type Target = (&'static str, fn(&[u8]));

/// All of them, by the name of their corpus.
pub const TARGETS: [Target; 8] = [
    ("frontmatter", frontmatter),
    ("daily_log", daily_log),
    ("citations", citations),
    ("wisdom", wisdom),
    ("typed", typed),
    ("summary", summary),
    ("decisions", decisions),
    ("cron", cron),
];

/// Frontmatter and body are all of the text, and what is read is within limits.
pub fn frontmatter(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let split = frontmatter::split(text);
    assert!(split.body(text).len() + split.yaml.map_or(0, str::len) <= text.len());
    drop(frontmatter::parse(split.yaml.unwrap_or(text), YAML_BYTES_MAX));
}

/// Every line has the number that an editor shows, and its text as it stands.
pub fn daily_log(bytes: &[u8]) {
    let stem: Stem = "2026-04-02".parse().expect("a day");
    let Ok(log) = DailyLog::parse(stem, bytes) else { return };
    let raw: Vec<&str> = log.raw().split('\n').collect();
    for (number, line, _) in log.lines() {
        assert!(raw[number as usize - 1].contains(line));
    }
    assert!(log.body_chars() <= bytes.len());
    drop(atom::atoms(log.raw()));
}

/// What is read as a citation prints as one that is read as the same.
pub fn citations(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(citation) = text.parse::<Citation>() {
        assert_eq!(citation.to_string().parse::<Citation>().as_ref(), Ok(&citation));
    }
    if let Ok(address) = text.parse::<Address>() {
        assert_eq!(address.to_string().parse::<Address>().as_ref(), Ok(&address));
    }
    let item = Item::parse(text);
    assert_eq!(Item::parse(&item.to_string()).citation, item.citation);
}

/// A file that was printed is printed the same.
pub fn wisdom(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let printed = WisdomFile::parse(text).print();
    let again = WisdomFile::parse(&printed);
    assert_eq!(again.print(), printed);
    drop(again.entries_with_lines());
}

/// A memory that is read is printed as one that says the same.
pub fn typed(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let name = Path::new("user_a.md");
    let Ok(memory) = TypedMemory::parse(name, text) else { return };
    let again = TypedMemory::parse(name, &memory.print()).expect("what was printed is read");
    assert_eq!((&again.name, &again.description), (&memory.name, &memory.description));
    assert_eq!((&again.body, again.is_ours()), (&memory.body, memory.is_ours()));
    // The lines of other keys are kept or written anew; what they say is the same.
    assert_eq!(again.other_keys.values(), memory.other_keys.values());
}

/// A weekly file prints as it stands, body and all.
pub fn summary(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let week: Period = "2026-W14".parse().expect("a week");
    let Ok(summary) = Summary::parse(week, text) else { return };
    assert_eq!(SummaryHeader::read(week, text).as_ref(), Ok(&summary.header));
    let printed = summary.print();
    assert!(printed.ends_with(frontmatter::split(text).body(text)));
    drop((summary.ownership(), summary.bullets().count()));
    assert_eq!(Summary::parse(week, &printed).map(|it| it.print()), Ok(printed));
}

/// Lines that cannot be read are counted and never stop the others.
pub fn decisions(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    assert!(Decisions::parse(text).unreadable().len() <= text.lines().count());
}

/// A line that is read fires later than now, or never.
pub fn cron(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(schedule) = Schedule::parse(text) else { return };
    let now = DateTime::from_timestamp(1_775_000_000, 0).expect("a time");
    let now = now.with_timezone(&chrono_tz::Europe::Berlin);
    assert!(schedule.next_after(now).is_none_or(|it| it > now));
}
