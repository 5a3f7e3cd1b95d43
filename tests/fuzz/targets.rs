//! The fuzz targets: parsers, text checks, and writers, with the properties that hold for any bytes.
//!
//! `cargo fuzz` and the short run of `cargo test` use the same functions. A target panics if a property
//! is violated, and returns early on input that it does not cover.

use std::{collections::BTreeMap, path::Path};

use chrono::{DateTime, NaiveDate, Utc};
use memoird::internals::{
    compaction::grounding,
    config::schedule::Schedule,
    engine::{
        Engine, LengthBudget, SummaryInput,
        extractive::{
            self, DigestInput, Extractive,
            corpus_stats::{self, Corpus},
        },
    },
    memory::{
        address::{Address, Citation, Stem},
        atom,
        authorship::{self, Speaker},
        decision::{Decision, DecisionKind, Decisions},
        document::{BulletOwner, Summary, SummaryHeader},
        frontmatter::{self, YAML_BYTES_MAX},
        item::{Item, SummarySection},
        joined,
        log::{DailyLog, TextOrigin},
        period::{Grain, Period},
        typed::{self, MemoryType, TypedMemory},
        wisdom::{WisdomEntry, WisdomFile},
    },
    privacy::{
        self, PrivacyRules, SanitizedLine, neutralize,
        quarantine::{self, Concern, characters, links},
    },
};

/// A fuzz target: its name and its function.
pub type Target = (&'static str, fn(&[u8]));

/// All targets. The name is also that of the corpus folder.
pub const TARGETS: [Target; 19] = [
    ("frontmatter", frontmatter),
    ("daily_log", daily_log),
    ("authorship", authorship),
    ("draft", draft),
    ("citations", citations),
    ("wisdom", wisdom),
    ("typed", typed),
    ("summary", summary),
    ("decisions", decisions),
    ("cron", cron),
    ("secrets", secrets),
    ("quarantined", quarantined),
    ("neutralized", neutralized),
    ("sanitized", sanitized),
    ("grounding_check", grounding_check),
    ("wisdom_writes", wisdom_writes),
    ("typed_writes", typed_writes),
    ("summary_writes", summary_writes),
    ("decision_writes", decision_writes),
];

/// Frontmatter and body fit into the text, and parsing is limited.
pub fn frontmatter(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let split = frontmatter::split(text);
    assert!(split.body(text).len() + split.yaml.map_or(0, str::len) <= text.len());
    drop(frontmatter::parse(split.yaml.unwrap_or(text), YAML_BYTES_MAX));
}

/// Every line has the number that an editor shows, and its unchanged text.
pub fn daily_log(bytes: &[u8]) {
    let stem: Stem = "2026-04-02".parse().expect("a day");
    let Ok(log) = DailyLog::parse(stem, bytes) else { return };
    let raw: Vec<&str> = log.raw().split('\n').collect();
    for (number, line, _) in log.lines() {
        assert!(raw[number as usize - 1].contains(line));
    }
    assert!(log.body_chars() <= bytes.len());
    drop(atom::find_atoms(log.raw()));
}

/// Who wrote each line is known for every line; the words begin inside it, and a turn belongs to a
/// transcript. Quoted, the same text has no speaker.
pub fn authorship(bytes: &[u8]) {
    let stem: Stem = "2026-04-02".parse().expect("a day");
    let Ok(log) = DailyLog::parse(stem.clone(), bytes) else { return };
    let lines = log.lines();
    let found = authorship::classify(&lines);
    assert_eq!(found.lines.len(), lines.len());
    for (author, (_, text, _)) in found.lines.iter().zip(&lines) {
        assert!(author.words_at().is_none_or(|it| text.is_char_boundary(it)));
        assert!(author.session.is_none_or(|it| usize::from(it) < found.sessions.len()));
        let speaks = matches!(author.speaker, Some(Speaker::Owner | Speaker::Assistant));
        assert!(!speaks || (author.session.is_some() && author.reason.is_none()));
        assert!(!author.shape.is_metadata() || author.reason.is_some());
    }
    let quoted: Vec<String> = log.raw().split('\n').map(|it| format!("> {it}")).collect();
    let log = DailyLog::parse(stem, quoted.join("\n").as_bytes()).expect("the same text");
    let view = privacy::sanitize(&log, &PrivacyRules::default());
    let is_quiet = |it: &SanitizedLine| it.speaker().is_none() && it.session().is_none();
    assert!(view.lines().iter().all(is_quiet));
}

/// Each bullet of a week of one log cites lines of the log, whatever its tables and lists look like.
pub fn draft(bytes: &[u8]) {
    let stem: Stem = "2026-04-02".parse().expect("a day");
    let Ok(log) = DailyLog::parse(stem.clone(), bytes) else { return };
    let logs = [privacy::sanitize(&log, &PrivacyRules::default())];
    let mut corpus = Corpus::new();
    for reading in corpus_stats::tokenize(&logs) {
        corpus.add(reading);
    }
    let period = Period::containing(Grain::Week, stem.date());
    let chars = log.body_chars();
    let budget = LengthBudget { target_chars: chars / 2, limit_chars: chars, verbatim: false };
    let counts = corpus.counts(period);
    // A log parses its lines anew on each call.
    let count = log.lines().len();
    let check_citation = |citation: &Citation, text: &str| {
        for (cited, lines) in citation.files() {
            assert_eq!(cited, &stem, "{text}");
            let is_line = |it: u32| (1..=count).contains(&(it as usize));
            assert!(lines.iter().all(is_line), "{text}");
        }
    };
    let room = 2_000;
    let input = DigestInput {
        logs: &logs,
        states_from: NaiveDate::MIN,
        model: &extractive::ModelReading::default(),
        held: &[],
        shown: &str::to_owned,
        entries: &[],
        notes: &extractive::SeenStatements::of_notes(&[]),
        kept_out: &|_, _, _| None,
        kept_out_of_memory: &|_, _, _, _| false,
        room,
    };
    let extractive::Digest { bullets, filed } = extractive::digest(&input);
    // As if the log were notes, too.
    for found in extractive::find_contradictions(&logs, &logs, &|_, _| true) {
        assert!((1..=count).contains(&(found.line as usize)), "{found:?}");
    }
    for bullet in &bullets {
        check_citation(&bullet.citation, &bullet.text);
    }
    for (_, item) in filed.topics.iter().flat_map(|it| &it.statements) {
        check_citation(item.citation.as_ref().expect("a citation"), &item.text);
    }
    assert!(bullets.is_sorted_by_key(|it| it.section), "{bullets:?}");
    assert!(bullets.iter().map(|it| it.text.chars().count()).sum::<usize>() <= room);
    let input = SummaryInput { period, logs: &logs, weeks: &[], budget, counts, check: &|_| None };
    let Ok(draft) = Extractive.summarize(&input) else { return };
    for item in draft.sections.iter().flat_map(|(_, items)| items) {
        let citation = item.citation.as_ref().expect("a citation");
        check_citation(citation, &item.text);
    }
}

/// A parsed citation survives printing and parsing.
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

/// A printed file survives parsing and printing.
pub fn wisdom(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let printed = WisdomFile::parse(text).print();
    let again = WisdomFile::parse(&printed);
    assert_eq!(again.print(), printed);
    drop(again.entries_with_lines());
}

/// A parsed memory survives printing and parsing.
pub fn typed(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let name = Path::new("user_a.md");
    let Ok(memory) = TypedMemory::parse(name, text) else { return };
    let again = TypedMemory::parse(name, &memory.print()).expect("a printed memory can be parsed");
    assert_eq!((&again.name, &again.description), (&memory.name, &memory.description));
    assert_eq!((&again.body, again.is_managed()), (&memory.body, memory.is_managed()));
    // Lines of unknown keys may be formatted differently, but keep their values.
    assert_eq!(again.other_keys.values(), memory.other_keys.values());
}

/// A parsed weekly file keeps its body and survives printing and parsing.
pub fn summary(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let week: Period = "2026-W14".parse().expect("a week");
    let Ok(summary) = Summary::parse(week, text) else { return };
    assert_eq!(SummaryHeader::read(week, text).as_ref(), Ok(&summary.header));
    let printed = summary.print();
    let visible = joined::visible(text);
    assert!(joined::visible(&printed).ends_with(frontmatter::split(visible).body(visible)));
    drop((summary.ownership(), summary.bullets().count()));
    assert_eq!(Summary::parse(week, &printed).map(|it| it.print()), Ok(printed));
}

/// Unreadable lines are counted.
pub fn decisions(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    assert!(Decisions::parse(text).unreadable().len() <= text.lines().count());
}

/// A parsed schedule fires later than now, or never.
pub fn cron(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(schedule) = Schedule::parse(text) else { return };
    let now = DateTime::from_timestamp(1_775_000_000, 0).expect("a time");
    let now = now.with_timezone(&chrono_tz::Europe::Berlin);
    assert!(schedule.next_after(now).is_none_or(|it| it > now));
}

/// Secrets are found in order without overlap, and text without masked secrets is unchanged.
pub fn secrets(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let rules = PrivacyRules::default();
    let found = rules.find_secrets(text);
    assert!(found.iter().all(|it| !text[it.range.clone()].is_empty()));
    assert!(found.windows(2).all(|it| it[0].range.end <= it[1].range.start));
    let masked = rules.mask_secrets(text);
    if !found.iter().any(|it| rules.masks(it)) {
        assert_eq!(masked, text);
    }
}

const ORIGINS: [TextOrigin; 3] = [TextOrigin::Human, TextOrigin::Agent, TextOrigin::External];

/// A block has at least the concerns of its lines.
pub fn quarantined(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    for origin in ORIGINS {
        let lines: Vec<_> = text.lines().map(|it| (it, origin)).collect();
        let block = quarantine::concerns_of_block(&lines);
        assert!(block.windows(2).all(|it| it[0] < it[1]));
        assert!(block.iter().all(|it| it.0 < lines.len()));
        for (i, (line, _)) in lines.iter().enumerate() {
            let alone = quarantine::concerns(line, origin);
            assert!(alone.iter().all(|it| block.binary_search(&(i, *it)).is_ok()));
        }
    }
}

/// The first line is checked against the other lines, and each of those against itself.
pub fn grounding_check(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (statement, lines) = text.split_once('\n').unwrap_or((text, text));
    let stem: Stem = "2026-04-02".parse().expect("a day");
    let Ok(log) = DailyLog::parse(stem, lines.as_bytes()) else { return };
    let logs = [privacy::sanitize(&log, &PrivacyRules::default())];
    let visible_lines = logs[0].lines().iter().filter(|it| !it.text().trim().is_empty());
    let mut all: Option<Citation> = None;
    for line in visible_lines {
        let one = Citation::single_line(logs[0].stem().clone(), line.number());
        match &mut all {
            Some(all) => all.merge(&one),
            None => all = Some(one.clone()),
        }
        let item = Item { text: line.text().to_owned(), citation: Some(one) };
        match grounding::check(&item, &logs[..]) {
            Ok(()) => {}
            Err(why) => assert!(why.is_suspicious(), "{item}: {why}"),
        }
    }
    let item = Item { text: statement.to_owned(), citation: all };
    drop(grounding::check_model_item(&item, &logs[..]));
}

/// Neutralized text is stable, and contains no hidden characters and no remote images.
pub fn neutralized(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let neutralized = neutralize(text);
    assert_eq!(neutralize(&neutralized), neutralized);
    assert_eq!(characters::suspicious_characters(&neutralized).next(), None);
    // Images in code spans are not loaded.
    if !neutralized.contains('`') {
        let left = links::concerns(&neutralized, TextOrigin::Agent);
        assert!(!left.contains(Concern::RemoteImage), "{neutralized}");
    }
}

/// Lines keep their numbers and hashes; a quarantined line is empty.
pub fn sanitized(bytes: &[u8]) {
    let stem: Stem = "2026-04-02".parse().expect("a day");
    let Ok(log) = DailyLog::parse(stem, bytes) else { return };
    let sanitized = privacy::sanitize(&log, &PrivacyRules::default());
    let lines = log.lines();
    assert_eq!(sanitized.lines().len(), lines.len());
    for (line, (number, text, _)) in sanitized.lines().iter().zip(&lines) {
        assert_eq!(line.number(), *number);
        assert!(!line.is_quarantined() || line.text().is_empty());
        assert!(!text.trim().is_empty() || line.text().trim().is_empty());
        assert_eq!(sanitized.line(*number).map(SanitizedLine::hash), Some(line.hash()));
    }
    assert!(sanitized.chars() <= log.body_chars());
}

/// Splits a text into the fields of a written item.
fn parts<const COUNT: usize>(text: &str) -> [&str; COUNT] {
    let mut parts = text.splitn(COUNT, "\n\n");
    std::array::from_fn(|_| parts.next().unwrap_or_default())
}

fn cite(text: &str) -> Citation {
    text.parse().expect("a citation")
}

/// Written entries are read back unchanged, with any text; the entries around them stay.
pub fn wisdom_writes(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let [title, words, category, other] = parts(text);
    let mut file = WisdomFile::new(other);
    let first = file.add("First", "Stands before.", Some("Kept"), cite("2026-04-02:4"));
    let id = file.add(title, words, Some(category), cite("2026-04-03:1,5"));
    let last = file.add("Last", "Stands after.", Some("Kept"), cite("2026-04-04:2"));
    let entries = file.entries().cloned().collect::<Vec<_>>();
    let read = WisdomFile::parse(&file.print());
    assert_eq!(read.entries().cloned().collect::<Vec<_>>(), entries);
    assert!(entries.iter().all(WisdomEntry::is_managed));
    assert_eq!(entries.len(), 3);
    file.reinforce(&id, Some((other, title)), &cite("2026-05-01:1-3"));
    let merged = file.entries().cloned().collect::<Vec<_>>();
    let read = WisdomFile::parse(&file.print());
    assert_eq!(read.entries().cloned().collect::<Vec<_>>(), merged);
    assert!(merged.iter().all(WisdomEntry::is_managed));
    // A user edit of an entry keeps it one entry with the same id.
    let at = merged.iter().position(|it| it.id() == Some(&id)).expect("it was added");
    let mut edited = file.clone();
    edited.reword_entry(at, words, Some(&cite("2026-05-02:1")));
    let read = WisdomFile::parse(&file.reworded(&edited.print_visible()));
    let ids: Vec<_> =
        read.entries().filter(|it| it.is_managed()).filter_map(|it| it.id()).collect();
    let mut expected = merged.iter().filter_map(|it| it.id()).collect::<Vec<_>>();
    expected.retain(|it| ids.contains(it));
    assert_eq!(ids, expected);
    assert!(ids.contains(&&first[..]) && ids.contains(&&last[..]), "{ids:?}");
    assert_eq!(read.entries().count(), 3);
}

/// A written memory with any text is read back unchanged.
pub fn typed_writes(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let [name, description, statement, why] = parts(text);
    if name.trim().is_empty() || description.trim().is_empty() {
        return;
    }
    let address = "2026-04-02:3".parse().expect("an address");
    let mut memory = TypedMemory {
        file_name: "user_a.md".into(),
        kind: MemoryType::User,
        name: name.to_owned(),
        description: description.to_owned(),
        created: "2026-04-02".parse().ok(),
        updated: None,
        sources: vec![(address, "3fa9".to_owned())],
        supersedes: (!why.is_empty()).then(|| why.to_owned()),
        recorded_body: None,
        recorded_description: None,
        items: Vec::new(),
        by_model: Vec::new(),
        other_keys: frontmatter::OtherKeys::default(),
        body: typed::format_body(statement, Some(why), Some(description)),
    };
    memory.record_body_hash();
    let printed = memory.print();
    if frontmatter::split(&printed).yaml.is_none_or(|it| it.len() > YAML_BYTES_MAX) {
        // Only long texts, which the schema rejects, exceed the limit.
        assert!(text.len() > 1000);
        return;
    }
    assert_eq!(TypedMemory::parse(&memory.file_name, &printed), Ok(memory));
}

/// Written bullets with any text are read back as managed ones.
pub fn summary_writes(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let period: Period = "2026-W14".parse().expect("a week");
    let words: [&str; 4] = parts(text);
    let item =
        |text: &&str| Item { text: (*text).to_owned(), citation: Some(cite("2026-04-02:4,9-11")) };
    let items: Vec<Item> = words.iter().map(item).collect();
    let header = SummaryHeader {
        pointers: vec![words[0].to_owned()],
        engine: words[1].to_owned(),
        sources: BTreeMap::from([(words[2].to_owned(), words[3].to_owned())]),
        extracted: vec!["2026-04-02".to_owned()],
        ..SummaryHeader::default()
    };
    let sections = [
        (SummarySection::Decisions, items[..2].to_vec()),
        (SummarySection::Context, items[2..].to_vec()),
    ];
    let summary = Summary::from_draft(period, header, &sections);
    let read = Summary::parse(period, &summary.print()).expect("a written summary can be parsed");
    assert_eq!(read.header, summary.header);
    assert_eq!(read.print(), summary.print());
    let written: Vec<_> = summary.bullets().map(|(_, item, section)| (item, section)).collect();
    assert_eq!(read.bullets().map(|(_, it, section)| (it, section)).collect::<Vec<_>>(), written);
    let ownership = read.ownership();
    assert!(
        ownership.owners.iter().all(|it| *it == BulletOwner::Memoird),
        "{:?}",
        ownership.owners
    );
    assert!(ownership.missing_hashes.is_empty());
    let has_words = |it: &&&str| it.chars().any(char::is_alphanumeric);
    assert!(written.len() >= words.iter().filter(has_words).count());
}

/// A decision with any text is one line that is read back.
pub fn decision_writes(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let [path, line, hash] = parts(text);
    let mut decisions = Decisions::with_key([7; 32]);
    let hashes = decisions.line_hash(line).into_iter().chain([hash.to_owned()]).collect();
    let at: DateTime<Utc> = DateTime::from_timestamp(1_775_000_000, 0).expect("a time");
    let decision = Decision { at, what: DecisionKind::Deleted, path: path.to_owned(), hashes };
    decisions.apply(&decision);
    let printed = decision.print();
    assert_eq!(printed.matches('\n').count(), 1);
    let read = Decisions::parse(&format!("{}{printed}", decisions.header_line()));
    assert!(read.unreadable().is_empty());
    assert_eq!(read.is_deleted(path, [line]), decisions.is_deleted(path, [line]));
    assert!(line.trim().is_empty() || read.is_deleted(path, [line]));
}
