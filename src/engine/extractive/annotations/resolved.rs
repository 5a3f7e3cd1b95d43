//! Open items that a later line tells to be done.
//!
//! A later sentence resolves an item if it says with one of few words, which is none of the item's own,
//! that something is done; if it says no word that takes that back or tells of something open; and if it
//! holds nearly all words of the item, all its names and figures, and little besides. An item that is told
//! as open again after that is open.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::OnceLock,
};

use aho_corasick::AhoCorasick;

use crate::memory::{
    atom::{self, AtomKind},
    log::TextOrigin,
};

use super::{Annotation, cues, resolved_note};
use crate::engine::extractive::{
    candidates::PiecePosition,
    parsed_log::{LogStatement, ParsedLog, StatementForm},
    sections::StatementClass,
    summary,
    tokens::atom_term_hash,
    words::StemCache,
};

/// An item of fewer words could be any.
const STEMS_MIN: usize = 3;

/// So much of an item has to stand in the line that resolves it.
const SHARE_PERCENT: usize = 75;

/// And of the sentence at most so many other words, besides as many as the item has.
const OTHER_WORDS_MAX: usize = 5;

/// A longer item tells a story, of which one part may be done.
const ITEM_CHARS_MAX: usize = 160;

/// A word that is in more sentences than this finds none of them.
const RESOLVERS_PER_STEM_MAX: usize = 200;

/// What a statement is matched by.
struct ComparedStatement {
    at: PiecePosition,
    stems: BTreeSet<u64>,
    /// Of a sentence, the stems of words that tell that something is done; of an item, those that only
    /// tell that it is open, which are not among the others.
    cues: BTreeSet<u64>,
    /// Stems of names.
    names: BTreeSet<u64>,
    /// Figures, code, files.
    atoms: BTreeSet<u64>,
}

/// Returns what is to be added to which of the `open` pieces.
pub(super) fn resolved_notes(
    pages: &[ParsedLog],
    open: &[PiecePosition],
) -> Vec<(PiecePosition, Annotation)> {
    let mut reader = StatementReader::default();
    let is_short = |at: &&PiecePosition| {
        let statement = &pages[at.page].statements[at.statement];
        let lower = statement.text.to_lowercase();
        let mut words = lower.split(|c: char| !c.is_alphanumeric());
        statement.pieces.len() == 1
            && statement.text.chars().count() <= ITEM_CHARS_MAX
            && !words.any(|word| cues::NOTHING_OPEN_WORDS.contains(&word))
    };
    let items = open.iter().filter(is_short).map(|&at| reader.read_item(pages, at));
    let items: Vec<ComparedStatement> = items.collect();
    let items: Vec<&ComparedStatement> =
        items.iter().filter(|it| it.stems.len() >= STEMS_MIN).collect();
    if items.is_empty() {
        return Vec::new();
    }
    let mut resolvers = Vec::new();
    for (p, page) in pages.iter().enumerate() {
        for (s, statement) in page.statements.iter().enumerate() {
            for (piece, cut) in statement.pieces.iter().enumerate() {
                let text = &statement.text[cut.start..cut.end];
                if reports_done(statement, text) && is_not_open(page, statement, text) {
                    let at = PiecePosition { page: p, statement: s, piece };
                    resolvers.push(reader.read_resolver(page, statement, at));
                }
            }
        }
    }
    let mut by_stem: HashMap<u64, Vec<usize>> = HashMap::new();
    for (index, resolver) in resolvers.iter().enumerate() {
        for &stem in &resolver.stems {
            by_stem.entry(stem).or_default().push(index);
        }
    }
    let mut found = Vec::new();
    for item in &items {
        let holders = item.stems.iter().filter_map(|stem| by_stem.get(stem));
        let Some(rarest) =
            holders.filter(|it| it.len() <= RESOLVERS_PER_STEM_MAX).min_by_key(|it| it.len())
        else {
            continue;
        };
        // One that lacks this stem may resolve it as well, but not all that hold it can be passed over.
        let later = rarest.iter().map(|&index| &resolvers[index]);
        let Some(resolver) = later
            .filter(|it| (it.at.page, it.at.statement) > (item.at.page, item.at.statement))
            .find(|it| it.covers(item))
        else {
            continue;
        };
        let again = items.iter().any(|other| {
            let after = (other.at.page, other.at.statement);
            after > (resolver.at.page, resolver.at.statement) && other.covers(item)
        });
        if again {
            continue;
        }
        let (page, statement) = (&pages[item.at.page], &pages[item.at.page].statements);
        let piece = statement[item.at.statement].pieces[item.at.piece];
        let words = &statement[item.at.statement].text[piece.start..piece.end];
        let by = &pages[resolver.at.page];
        let statement = &by.statements[resolver.at.statement];
        let cut = statement.pieces[resolver.at.piece];
        let lines = statement.lines_of(cut.start, cut.end);
        let day = by.stem.date();
        if day < page.stem.date() {
            continue;
        }
        let end = words.trim_end_matches(['.', ';', ',', ':', '。']).len();
        let cites = lines.map(|line| by.address(line)).collect();
        found.push((
            item.at,
            Annotation { offset: piece.start + end, text: resolved_note(day), citations: cites },
        ));
    }
    found
}

impl ComparedStatement {
    /// Whether this holds nearly all of an item, and each name and figure in it.
    fn covers(&self, item: &Self) -> bool {
        let shared = item.stems.intersection(&self.stems).count();
        let own_cue =
            self.cues.iter().any(|it| !item.stems.contains(it) && !item.cues.contains(it));
        (own_cue || self.cues.is_empty())
            && shared >= STEMS_MIN
            && self.stems.len() <= item.stems.len() + shared + OTHER_WORDS_MAX
            && shared * 100 >= item.stems.len() * SHARE_PERCENT
            && item.names.is_subset(&self.stems)
            && item.atoms.is_subset(&self.atoms)
    }
}

#[derive(Default)]
struct StatementReader {
    stems: StemCache,
    /// Per language, the stems of the words that only tell that something is open.
    open_stems_by_language: HashMap<usize, HashSet<u64>>,
}

impl StatementReader {
    /// Reads an open item: with its label, without the words that tell that it is open.
    fn read_item(&mut self, pages: &[ParsedLog], at: PiecePosition) -> ComparedStatement {
        let page = &pages[at.page];
        let statement = &page.statements[at.statement];
        let piece = statement.pieces[at.piece];
        let text = &statement.text[piece.start..piece.end];
        let mut words = self.read(page, at, text);
        let language = page.language;
        let stems = &mut self.stems;
        let open = self.open_stems_by_language.entry(language.index()).or_insert_with(|| {
            let mut open = HashSet::new();
            for cue in cues::OPEN_WORDS {
                stems.for_each_stem(language, cue, |stem| {
                    open.insert(stem);
                });
            }
            open
        });
        words.cues = words.stems.iter().copied().filter(|it| open.contains(it)).collect();
        words.stems.retain(|it| !open.contains(it));
        words
    }

    /// Reads a sentence that tells that something is done, with the label of its line.
    fn read_resolver(
        &mut self,
        page: &ParsedLog,
        statement: &LogStatement,
        at: PiecePosition,
    ) -> ComparedStatement {
        let cut = statement.pieces[at.piece];
        let text = &statement.text[cut.start..cut.end];
        let label = &statement.text[..statement.label];
        let mut words = self.read(page, at, &[label, text].concat());
        for word in text.to_lowercase().split(|c: char| !c.is_alphanumeric()) {
            if cue_word_sets().done.contains(word) {
                self.stems.for_each_stem(page.language, word, |stem| {
                    words.cues.insert(stem);
                });
            }
        }
        words
    }

    fn read(&mut self, page: &ParsedLog, at: PiecePosition, text: &str) -> ComparedStatement {
        let (mut all, mut names, mut atoms) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        self.stems.for_each_stem(page.language, text, |stem| {
            all.insert(stem);
        });
        for atom in atom::find_atoms(text) {
            if atom.kind != AtomKind::Name {
                atoms.insert(atom_term_hash(&atom.norm(text)));
            } else if !page.language.capitalises_nouns() {
                let name = atom.text(text).trim_end_matches("'s").trim_end_matches("’s");
                self.stems.for_each_stem(page.language, name, |stem| {
                    names.insert(stem);
                });
            }
        }
        ComparedStatement { at, stems: all, cues: BTreeSet::new(), names, atoms }
    }
}

/// Whether neither structure nor words tell that a sentence is about something open.
fn is_not_open(page: &ParsedLog, statement: &LogStatement, text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut words = lower.split(|c: char| !c.is_alphanumeric());
    statement.task == Some(true)
        || (!words.any(|word| cue_word_sets().open.contains(word))
            && summary::class_of(page, statement, text) != StatementClass::Open)
}

/// Whether a sentence says that something is done, and nothing that takes it back.
fn reports_done(statement: &LogStatement, text: &str) -> bool {
    static DONE: OnceLock<Option<AhoCorasick>> = OnceLock::new();
    if let Some(done) = statement.task {
        return done;
    }
    if matches!(statement.form, StatementForm::Code | StatementForm::Quote)
        || statement.origin == TextOrigin::External
    {
        return false;
    }
    let done = DONE.get_or_init(|| {
        AhoCorasick::builder().ascii_case_insensitive(true).build(cues::DONE_WORDS).ok()
    });
    // Most sentences hold none of them and are not cut into words.
    if !done.as_ref().is_some_and(|it| it.is_match(text)) {
        return false;
    }
    let lower = text.to_lowercase();
    let words: Vec<&str> =
        lower.split(|c: char| !(c.is_alphanumeric() || c == '\'' || c == '’')).collect();
    words.iter().any(|it| cue_word_sets().done.contains(it))
        && !words.iter().any(|it| {
            cue_word_sets().not_done.contains(it) || it.ends_with("n't") || it.ends_with("n’t")
        })
        && !words.windows(2).any(|it| it == ["to", "be"])
        && !text.trim_end().ends_with(['?', '？', '؟'])
}

/// The tables of words, to look one up in.
struct CueWordSets {
    done: HashSet<&'static str>,
    not_done: HashSet<&'static str>,
    open: HashSet<&'static str>,
}

fn cue_word_sets() -> &'static CueWordSets {
    static SETS: OnceLock<CueWordSets> = OnceLock::new();
    SETS.get_or_init(|| CueWordSets {
        done: cues::DONE_WORDS.iter().copied().collect(),
        not_done: cues::NOT_DONE_WORDS.iter().copied().collect(),
        open: cues::OPEN_WORDS.iter().flat_map(|it| it.split(' ')).collect(),
    })
}
