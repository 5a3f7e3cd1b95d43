//! Open items that a later line reports as done.
//!
//! A later sentence resolves an item if it contains a word for "done" that is not one of the item's own
//! words, no word that negates it or shows something open, nearly all words of the item, all its names
//! and figures, and little else. An item that is listed as open again later stays open.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::LazyLock,
};

use aho_corasick::{AhoCorasick, AhoCorasickKind};

use crate::memory::{
    atom::{self, AtomKind},
    log::TextOrigin,
};

use super::resolved_note;
use crate::engine::extractive::{
    candidates::{Annotation, PiecePosition},
    parsed_log::{LogStatement, ParsedLog, StatementForm},
    sections::{self, StatementClass},
    tokens::atom_term_hash,
};
use crate::text::{lexicon::ANNOTATIONS, stems::StemCache, words};

/// An item with fewer words is ambiguous.
const STEMS_MIN: usize = 3;

/// The least share of an item's stems that a resolving sentence must contain.
const SHARE_PERCENT: usize = 75;

/// The most other stems of that sentence, besides as many as the item has.
const OTHER_WORDS_MAX: usize = 5;

/// In a longer item only one part may be done.
const ITEM_CHARS_MAX: usize = 160;

/// A stem in more resolving sentences than this is not used to find them.
const RESOLVERS_PER_STEM_MAX: usize = 200;

/// The terms by which statements are compared.
struct ComparedStatement {
    at: PiecePosition,
    stems: BTreeSet<u64>,
    /// For a sentence, the stems of its words for "done"; for an item, the stems that only mark it as
    /// open, which are not in `stems`.
    cues: BTreeSet<u64>,
    names: BTreeSet<u64>,
    /// Figures, code, files.
    atoms: BTreeSet<u64>,
}

/// Returns the notes on those of the `open` pieces that later lines resolve.
pub(super) fn resolved_notes(
    pages: &[ParsedLog],
    open: &[PiecePosition],
) -> Vec<(PiecePosition, Annotation)> {
    let mut found = ticked_off(pages, open);
    let ticked: HashSet<PiecePosition> = found.iter().map(|it| it.0).collect();
    let mut reader = StatementReader::default();
    let is_short = |at: &&PiecePosition| {
        let (_, statement) = at.statement_in(pages);
        let lower = statement.text.to_lowercase();
        let mut words = words::runs(&lower, "");
        statement.pieces.len() == 1
            && statement.text.chars().count() <= ITEM_CHARS_MAX
            && !words.any(|word| ANNOTATIONS.nothing_open.contains(&word))
    };
    let left = open.iter().filter(|it| !ticked.contains(it));
    let items = left.filter(is_short).map(|&at| reader.read_item(pages, at));
    let items: Vec<ComparedStatement> = items.collect();
    let items: Vec<&ComparedStatement> =
        items.iter().filter(|it| it.stems.len() >= STEMS_MIN).collect();
    if items.is_empty() {
        return found;
    }
    let resolvers = reader.read_resolvers(pages);
    let mut by_stem: HashMap<u64, Vec<usize>> = HashMap::new();
    for (index, resolver) in resolvers.iter().enumerate() {
        for &stem in &resolver.stems {
            by_stem.entry(stem).or_default().push(index);
        }
    }
    for item in &items {
        let holders = item.stems.iter().filter_map(|stem| by_stem.get(stem));
        let Some(rarest) =
            holders.filter(|it| it.len() <= RESOLVERS_PER_STEM_MAX).min_by_key(|it| it.len())
        else {
            continue;
        };
        // Searching by the rarest stem may miss a sentence that lacks it, but is fast.
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
        if let Some(note) = note_on(pages, item.at, resolver.at) {
            found.push((item.at, note));
        }
    }
    found
}

/// Returns the notes on tasks that a later line of the same words ticks off, unless they are open again after it.
fn ticked_off(pages: &[ParsedLog], open: &[PiecePosition]) -> Vec<(PiecePosition, Annotation)> {
    let ticked = ticked_tasks(pages);
    let note = |&at: &PiecePosition| {
        let done = ticked.get(&(at.page, at.statement))?;
        let done = PiecePosition { page: done.0, statement: done.1, piece: 0 };
        let (_, statement) = at.statement_in(pages);
        let whole = statement.pieces.len() == 1;
        whole.then(|| Some((at, note_on(pages, at, done)?))).flatten()
    };
    open.iter().filter_map(note).collect()
}

/// Returns the open tasks that a later line of the same words ticks off, unless they are open again after it: for the page
/// and the number of each statement those of the last one.
pub(super) fn ticked_tasks(pages: &[ParsedLog]) -> HashMap<(usize, usize), (usize, usize)> {
    let mut last = HashMap::<String, ((usize, usize), bool)>::new();
    let mut open = Vec::new();
    for (p, page) in pages.iter().enumerate() {
        for (s, statement) in page.statements.iter().enumerate() {
            let Some(is_done) = statement.task.filter(|_| !statement.pieces.is_empty()) else {
                continue;
            };
            last.insert(task_words(statement), ((p, s), is_done));
            if !is_done {
                open.push((p, s));
            }
        }
    }
    let done = |&(p, s): &(usize, usize)| {
        let last = last.get(&task_words(&pages[p].statements[s]));
        last.filter(|it| it.1).map(|it| ((p, s), it.0))
    };
    open.iter().filter_map(done).collect()
}

fn task_words(statement: &LogStatement) -> String {
    statement.text.trim_end_matches(['.', ' ']).to_lowercase()
}

/// Returns the note on an item; `None` if the resolving sentence is of an earlier day.
fn note_on(
    pages: &[ParsedLog],
    item: PiecePosition,
    resolver: PiecePosition,
) -> Option<Annotation> {
    let (page, statement) = item.statement_in(pages);
    let (resolving_page, resolving) = resolver.statement_in(pages);
    let day = resolving_page.stem.date();
    if day < page.stem.date() {
        return None;
    }
    let cut = resolving.pieces[resolver.piece];
    let lines = resolving.lines_of(cut.start, cut.end);
    let words = statement.piece_text(item.piece).trim_end_matches(['.', ';', ',', ':', '。']);
    let offset = statement.pieces[item.piece].start + words.len();
    let citations = lines.map(|line| resolving_page.address(line)).collect();
    Some(Annotation { offset, text: resolved_note(day), citations })
}

impl ComparedStatement {
    /// Returns whether this contains nearly all stems of an item, and all its names and figures.
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
    /// Per language, the stems of the words that only mark something as open.
    open_stems_by_language: HashMap<usize, HashSet<u64>>,
}

impl StatementReader {
    /// Reads an open item with its label, without the words that mark it as open.
    fn read_item(&mut self, pages: &[ParsedLog], at: PiecePosition) -> ComparedStatement {
        let (page, statement) = at.statement_in(pages);
        let mut words = self.read(page, at, statement.piece_text(at.piece));
        let language = page.language;
        let stems = &mut self.stems;
        let open = self.open_stems_by_language.entry(language.index()).or_insert_with(|| {
            let mut open = HashSet::new();
            for cue in &*ANNOTATIONS.open {
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

    /// Reads all sentences that report something as done.
    fn read_resolvers(&mut self, pages: &[ParsedLog]) -> Vec<ComparedStatement> {
        let mut resolvers = Vec::new();
        for (p, page) in pages.iter().enumerate() {
            for (s, statement) in page.statements.iter().enumerate() {
                for piece in 0..statement.pieces.len() {
                    let text = statement.piece_text(piece);
                    if reports_done(statement, text) && is_not_open(page, statement, text) {
                        let at = PiecePosition { page: p, statement: s, piece };
                        resolvers.push(self.read_resolver(page, statement, at));
                    }
                }
            }
        }
        resolvers
    }

    /// Reads a sentence that reports something as done, with the label of its line.
    fn read_resolver(
        &mut self,
        page: &ParsedLog,
        statement: &LogStatement,
        at: PiecePosition,
    ) -> ComparedStatement {
        let text = statement.piece_text(at.piece);
        let mut words = self.read(page, at, &[statement.label_text(), text].concat());
        for word in words::runs(&text.to_lowercase(), "") {
            if CUE_WORDS.done.contains(word) {
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

/// Returns whether neither structure nor words mark a sentence as being about something open.
fn is_not_open(page: &ParsedLog, statement: &LogStatement, text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut words = words::runs(&lower, "");
    statement.task == Some(true)
        || (!words.any(|word| CUE_WORDS.open.contains(word))
            && sections::class_of(page, statement, text) != StatementClass::Open)
}

/// Returns whether a sentence says that something is done and does not negate it.
fn reports_done(statement: &LogStatement, text: &str) -> bool {
    static DONE: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
        // Every sentence is searched, so the fastest kind is worth its memory.
        AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .kind(Some(AhoCorasickKind::DFA))
            .build(&*ANNOTATIONS.done)
            .ok()
    });
    if let Some(done) = statement.task {
        return done;
    }
    if matches!(statement.form, StatementForm::Code | StatementForm::Quote)
        || statement.origin == TextOrigin::External
    {
        return false;
    }
    // Most sentences contain none of these words and need not be split.
    if !DONE.as_ref().is_some_and(|it| it.is_match(text)) {
        return false;
    }
    let lower = text.to_lowercase();
    let words: Vec<&str> =
        lower.split(|c: char| !(c.is_alphanumeric() || c == '\'' || c == '’')).collect();
    words.iter().any(|it| CUE_WORDS.done.contains(it))
        && !words
            .iter()
            .any(|it| CUE_WORDS.not_done.contains(it) || it.ends_with("n't") || it.ends_with("n’t"))
        && !words.windows(2).any(|it| it == ["to", "be"])
        && !text.trim_end().ends_with(['?', '？', '؟'])
}

struct CueWordSets {
    done: HashSet<&'static str>,
    not_done: HashSet<&'static str>,
    open: HashSet<&'static str>,
}

static CUE_WORDS: LazyLock<CueWordSets> = LazyLock::new(|| CueWordSets {
    done: ANNOTATIONS.done.iter().copied().collect(),
    not_done: ANNOTATIONS.not_done.iter().copied().collect(),
    open: ANNOTATIONS.open.iter().copied().collect(),
});
