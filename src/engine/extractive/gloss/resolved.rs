//! Open items that a later line tells to be done.
//!
//! A later line resolves an item if it says with one of few words that something is done, says no word
//! that takes that back, and holds nearly all words of the item; names and figures among them count
//! most. An item that is told as open again after that is open.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::OnceLock,
};

use aho_corasick::AhoCorasick;

use crate::memory::{
    atom::{self, AtomKind},
    log::Origin,
};

use super::{
    super::{
        cues,
        material::PieceAt,
        page::{Form, Page, Statement},
        tokens::atom_term,
        words::Stems,
    },
    Gloss, resolved_on,
};

/// An item of fewer words could be any.
const STEMS_MIN: usize = 2;

/// So much of an item has to stand in the line that resolves it.
const SHARE_PERCENT: usize = 75;

/// Whoever holds a word that is in more statements than this is not looked for by it.
const COMMON: usize = 200;

/// What a statement is matched by.
struct Words {
    at: PieceAt,
    stems: BTreeSet<u64>,
    /// Stems of names.
    names: BTreeSet<u64>,
    /// Figures, code, files.
    atoms: BTreeSet<u64>,
}

/// Returns what is to be added to which of the `open` pieces.
pub(super) fn of(pages: &[Page], open: &[PieceAt]) -> Vec<(PieceAt, Gloss)> {
    let mut reader = Reader::default();
    let items: Vec<Words> = open.iter().map(|&at| reader.item(pages, at)).collect();
    let items: Vec<&Words> = items.iter().filter(|it| it.stems.len() >= STEMS_MIN).collect();
    if items.is_empty() {
        return Vec::new();
    }
    let mut resolvers = Vec::new();
    for (p, page) in pages.iter().enumerate() {
        for (s, statement) in page.statements.iter().enumerate() {
            if statement.task == Some(true) || tells_done(statement) {
                let at = PieceAt { page: p, statement: s, piece: 0 };
                resolvers.push(reader.statement(page, statement, at));
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
        let Some(rarest) = holders.filter(|it| it.len() <= COMMON).min_by_key(|it| it.len()) else {
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
        let lines = by.statements[resolver.at.statement].lines.iter();
        let day = by.stem.date();
        if day < page.stem.date() {
            continue;
        }
        let end = words.trim_end_matches(['.', ';', ',', ':', '。']).len();
        let cites = lines.map(|&(_, line)| by.address(line)).collect();
        found.push((item.at, Gloss { at: piece.start + end, text: resolved_on(day), cites }));
    }
    found
}

impl Words {
    /// Whether this holds nearly all of an item, and each name and figure in it.
    fn covers(&self, item: &Self) -> bool {
        let shared = item.stems.intersection(&self.stems).count();
        shared >= STEMS_MIN
            && shared * 100 >= item.stems.len() * SHARE_PERCENT
            && item.names.is_subset(&self.stems)
            && item.atoms.is_subset(&self.atoms)
    }
}

#[derive(Default)]
struct Reader {
    stems: Stems,
    /// Per language, the stems of the words that only tell that something is open.
    open: HashMap<usize, HashSet<u64>>,
}

impl Reader {
    /// Reads an open item: with its label, without the words that tell that it is open.
    fn item(&mut self, pages: &[Page], at: PieceAt) -> Words {
        let page = &pages[at.page];
        let statement = &page.statements[at.statement];
        let piece = statement.pieces[at.piece];
        let text = &statement.text[piece.start..piece.end];
        let mut words = self.read(page, at, text);
        let language = page.language;
        let stems = &mut self.stems;
        let open = self.open.entry(language.index()).or_insert_with(|| {
            let mut open = HashSet::new();
            for cue in cues::OPEN_WORDS {
                stems.each(language, cue, |stem| {
                    open.insert(stem);
                });
            }
            open
        });
        words.stems.retain(|it| !open.contains(it));
        words
    }

    fn statement(&mut self, page: &Page, statement: &Statement, at: PieceAt) -> Words {
        self.read(page, at, &statement.text)
    }

    fn read(&mut self, page: &Page, at: PieceAt, text: &str) -> Words {
        let (mut all, mut names, mut atoms) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        self.stems.each(page.language, text, |stem| {
            all.insert(stem);
        });
        for atom in atom::atoms(text) {
            if atom.kind != AtomKind::Name {
                atoms.insert(atom_term(&atom.norm(text)));
            } else if !page.language.capitalises_nouns() {
                let name = atom.text(text).trim_end_matches("'s").trim_end_matches("’s");
                self.stems.each(page.language, name, |stem| {
                    names.insert(stem);
                });
            }
        }
        Words { at, stems: all, names, atoms }
    }
}

/// Whether a statement says that something is done, and nothing that takes it back.
fn tells_done(statement: &Statement) -> bool {
    static DONE: OnceLock<Option<AhoCorasick>> = OnceLock::new();
    if statement.task.is_some()
        || matches!(statement.form, Form::Code | Form::Quote)
        || statement.origin == Origin::External
    {
        return false;
    }
    let done = DONE.get_or_init(|| {
        AhoCorasick::builder().ascii_case_insensitive(true).build(cues::DONE_WORDS).ok()
    });
    // Most statements hold none of them and are not cut into words.
    if !done.as_ref().is_some_and(|it| it.is_match(&statement.text)) {
        return false;
    }
    let lower = statement.text.to_lowercase();
    let words: Vec<&str> =
        lower.split(|c: char| !(c.is_alphanumeric() || c == '\'' || c == '’')).collect();
    words.iter().any(|it| cues::DONE_WORDS.contains(it))
        && !words.iter().any(|it| {
            cues::NOT_DONE_WORDS.contains(it) || it.ends_with("n't") || it.ends_with("n’t")
        })
        && !words.windows(2).any(|it| it == ["to", "be"])
        && !statement.text.trim_end().ends_with(['?', '？', '؟'])
}
