//! Blocks and statements of a log, and how alike two statements are.
//!
//! A log is cut into blocks (a heading, a bullet with its continuation lines, a paragraph), and a
//! block into sentences; each keeps the numbers of its lines, so that whatever is said of it can be
//! cited. Text from outside is not read at all: quotes, code, and logs of external origin give no
//! block. Pure; called by `memories` and `wisdom`.
//!
//! # Invariants
//!
//! - The text of a block is the text of its lines, in order, without list markers, heading marks,
//!   and the asterisks of bold; no word is added or changed.
//! - Lengths are counted in characters.

use std::{borrow::Cow, cell::OnceCell, sync::LazyLock};

use unicode_segmentation::UnicodeSegmentation as _;

use super::cue_phrases::{self, CueTable};
use crate::{
    memory::{log::TextOrigin, markdown::LineKind},
    privacy::{SanitizedLine, SanitizedLog},
    text::{
        calendar,
        hash::{HashedMap, HashedSet, hash_bytes},
        lexicon::CUES,
        sentences::sentence_ranges,
        stems,
    },
};

/// A heading, a bullet, or a paragraph.
#[derive(Clone, Debug)]
pub(super) struct LogBlock {
    /// The words, on one line.
    pub(super) text: String,
    /// What it is.
    pub(super) shape: BlockShape,
    /// The block that introduces it: a bullet above, or the paragraph that ends in a colon.
    pub(super) parent: Option<usize>,
    /// The heading that it stands under.
    pub(super) heading: Option<usize>,
    /// The lines that a person or agent marked with `#keep`.
    pub(super) keep_lines: Vec<u32>,
    /// Where in `text` each line begins, with the line's number; ascending, never empty.
    starts: Vec<(usize, u32)>,
}

/// What a [`LogBlock`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockShape {
    /// A heading of that level.
    Heading(u8),
    /// A list item; a task box makes it a task.
    Bullet {
        /// Whether it has a box to tick.
        task: bool,
    },
    /// Running text.
    Paragraph,
}

/// A sentence and the lines it stands on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LogSentence {
    /// As it stands.
    pub(super) text: String,
    /// Line numbers, ascending.
    pub(super) lines: Vec<u32>,
    /// Cut when a rule first asks for them.
    words: OnceCell<WordList>,
}

/// The words of a text in lower case, ready for cues.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct WordList {
    /// All words, one after the other.
    lower: String,
    list: Vec<WordEntry>,
    /// The tables of which a phrase may stand here: the bits of all words.
    tables: u64,
}

/// One of [`WordList`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct WordEntry {
    /// Where it ends in the text in lower case; it begins where the one before ends.
    end: usize,
    /// Where it begins in the text that was read.
    source_offset: usize,
    /// The hash of its letters.
    hash: u64,
    /// The tables that have a phrase which begins with this word, as [`CueTable::bit`].
    tables: u64,
}

/// What a statement is about: content stems, and apart from them its values (numbers, dates,
/// weekdays), which a newer statement may change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct StatementTerms {
    /// Stems of content words.
    pub(super) stems: TermSet,
    /// Words that hold a digit, months, and weekdays.
    pub(super) values: TermSet,
}

/// A set of words, as hashes.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TermSet(
    /// Invariant: ascending, each once.
    Vec<u64>,
);

/// Makes gists; keeps the stems that it made.
#[derive(Default)]
pub(super) struct TermExtractor {
    class_by_word: HashedMap<WordClass>,
}

/// What a word is in a [`StatementTerms`].
#[derive(Clone, Copy)]
enum WordClass {
    Stem(u64),
    Value(u64),
    StopWord,
}

/// Cuts a log into blocks, in order. Lines of external origin are left out.
pub(super) fn parse_blocks(log: &SanitizedLog) -> Vec<LogBlock> {
    let mut cutter = BlockParser::default();
    for line in log.lines() {
        cutter.push_line(line);
    }
    cutter.blocks
}

#[derive(Default)]
struct BlockParser {
    blocks: Vec<LogBlock>,
    /// Headings above, by level.
    headings: Vec<(u8, usize)>,
    /// Bullets above, by indent.
    bullets: Vec<(usize, usize)>,
    /// The paragraph that ends in a colon and introduces the list that follows.
    intro_block: Option<usize>,
    /// Whether the next text line continues the last block.
    continues: bool,
}

impl BlockParser {
    fn push_line(&mut self, line: &SanitizedLine) {
        if line.origin() == TextOrigin::External {
            self.continues = false;
            return;
        }
        match line.kind() {
            LineKind::Heading { level, .. } => {
                self.headings.retain(|&(above, _)| above < level);
                self.bullets.clear();
                self.intro_block = None;
                let heading = self.headings.last().map(|&(_, at)| at);
                self.push(line, BlockShape::Heading(level), None, heading);
                self.headings.push((level, self.blocks.len() - 1));
                self.continues = false;
            }
            LineKind::ListItem { indent, task, .. } => {
                self.bullets.retain(|&(above, _)| above < indent);
                let parent = self.bullets.last().map(|&(_, at)| at).or(self.intro_block);
                let heading = self.headings.last().map(|&(_, at)| at);
                self.push(line, BlockShape::Bullet { task: task.is_some() }, parent, heading);
                self.bullets.push((indent, self.blocks.len() - 1));
                self.continues = true;
            }
            LineKind::Text if self.continues && !self.starts_new_block(line.words()) => {
                self.extend(line);
            }
            LineKind::Text | LineKind::AfterComment { .. } => {
                let indented = line.text().starts_with([' ', '\t']);
                let parent = self.bullets.last().map(|&(_, at)| at).filter(|_| indented);
                if parent.is_none() {
                    self.bullets.clear();
                }
                let heading = self.headings.last().map(|&(_, at)| at);
                self.push(line, BlockShape::Paragraph, parent, heading);
                self.continues = true;
            }
            LineKind::Blank => self.continues = false,
            _ => {
                self.continues = false;
                self.intro_block = None;
                self.bullets.clear();
            }
        }
        let last = self.blocks.len().checked_sub(1);
        if let Some((at, LineKind::Text)) = last.map(|at| (at, line.kind())) {
            let introduces = self.blocks[at].shape == BlockShape::Paragraph
                && self.blocks[at].text.trim_end().ends_with(':');
            self.intro_block = introduces.then_some(at);
        }
    }

    /// A label opens a statement of its own: `**Why:** …` under a rule, `Note: …` after a full stop.
    fn starts_new_block(&self, words: &str) -> bool {
        let closed = self.blocks.last().is_some_and(|it| it.text.ends_with(['.', '!', '?']));
        let labelled = split_label(words).is_some_and(|(label, _)| {
            label.starts_with(char::is_uppercase) && label.split_whitespace().count() <= 3
        });
        starts_with_bold_label(words) || (closed && labelled)
    }

    fn push(
        &mut self,
        line: &SanitizedLine,
        shape: BlockShape,
        parent: Option<usize>,
        heading: Option<usize>,
    ) {
        self.blocks.push(LogBlock {
            text: strip_bold(line.words()),
            shape,
            parent,
            heading,
            keep_lines: is_marked_keep(line).then_some(line.number()).into_iter().collect(),
            starts: vec![(0, line.number())],
        });
    }

    fn extend(&mut self, line: &SanitizedLine) {
        if let Some(block) = self.blocks.last_mut() {
            block.text.push(' ');
            block.starts.push((block.text.len(), line.number()));
            block.text.push_str(&strip_bold(line.words()));
            block.keep_lines.extend(is_marked_keep(line).then_some(line.number()));
        }
    }
}

impl LogBlock {
    /// Returns the numbers of its lines.
    pub(super) fn lines(&self) -> Vec<u32> {
        self.starts.iter().map(|&(_, line)| line).collect()
    }

    /// Returns the number of its first line.
    pub(super) fn first_line(&self) -> u32 {
        self.starts.first().map_or(0, |&(_, line)| line)
    }

    /// Cuts the text from byte `from` on into sentences.
    pub(super) fn sentences_from(&self, from: usize) -> Vec<LogSentence> {
        let text = self.text.get(from..).unwrap_or_default();
        // A mark is no word, and would hide where a sentence ends; spaces keep the offsets.
        let marked = !self.keep_lines.is_empty();
        let bare = if marked {
            Cow::Owned(text.replace(KEEP_MARK, BLANK_KEEP_MARK))
        } else {
            Cow::Borrowed(text)
        };
        sentence_ranges(&bare)
            .into_iter()
            .map(|(start, end)| {
                let text = bare[start..end].trim();
                let text = if marked {
                    text.split_whitespace().collect::<Vec<_>>().join(" ")
                } else {
                    text.to_owned()
                };
                let lines = self.lines_of(from + start, from + end);
                LogSentence { text, lines, words: OnceCell::new() }
            })
            .filter(|sentence| !sentence.text.is_empty())
            .collect()
    }

    fn lines_of(&self, start: usize, end: usize) -> Vec<u32> {
        let ends = self.starts.iter().skip(1).map(|&(at, _)| at).chain([usize::MAX]);
        self.starts
            .iter()
            .zip(ends)
            .filter(|&(&(at, _), next)| at < end && next > start)
            .map(|(&(_, line), _)| line)
            .collect()
    }
}

/// Returns the blocks that a block stands in, nearest first: those that introduce it, then headings.
pub(super) fn enclosing_blocks(blocks: &[LogBlock], at: usize) -> impl Iterator<Item = usize> {
    let parents = std::iter::successors(blocks[at].parent, |&above| blocks[above].parent);
    parents.chain(std::iter::successors(blocks[at].heading, |&above| blocks[above].heading))
}

/// Splits `Label: rest` or `Label — rest`; returns the label and the byte offset of the rest.
///
/// A label is short, is no sentence, and its colon is followed by a space.
pub(super) fn split_label(text: &str) -> Option<(&str, usize)> {
    /// Longer than this and it is a clause.
    const LABEL_WORDS_MAX: usize = 7;
    const LABEL_CHARS_MAX: usize = 60;
    let (at, width) = label_end(text, LABEL_CHARS_MAX)?;
    let label = text[..at].trim();
    let rest_at = at + width;
    let rest_at = rest_at + (text[rest_at..].len() - text[rest_at..].trim_start().len());
    let words = label.split_whitespace().count();
    let fits = (1..=LABEL_WORDS_MAX).contains(&words)
        && label.chars().count() <= LABEL_CHARS_MAX
        && !label.contains(". ");
    fits.then_some((label, rest_at))
}

/// Returns where the first mark that ends a label stands, and its bytes; `None` also where more than
/// `chars_max` characters come before it.
fn label_end(text: &str, chars_max: usize) -> Option<(usize, usize)> {
    let (mut code, mut chars) = (false, 0);
    for (at, c) in text.char_indices() {
        code ^= c == '`';
        let rest = &text[at + c.len_utf8()..];
        let parts = match c {
            _ if code => false,
            ':' => rest.is_empty() || rest.starts_with(' '),
            '—' | '–' => {
                (rest.is_empty() || rest.starts_with(' ')) && text[..at].ends_with(' ')
            }
            _ => false,
        };
        if parts {
            return Some((at, c.len_utf8()));
        }
        // White space around a label does not count.
        chars += usize::from(chars > 0 || !c.is_whitespace());
        if chars > chars_max && !c.is_whitespace() {
            return None;
        }
    }
    None
}

/// Returns whether a title or label is one of `titles`, whatever its number, date, or case.
pub(super) fn is_one_of_titles(label: &str, titles: &[&str]) -> bool {
    let title = normalized_title(label);
    titles.iter().any(|it| title == *it)
}

/// Returns the words of a title or label in lower case, without numbers and dates; empty for a text
/// that is too long to be one.
pub(super) fn normalized_title(label: &str) -> String {
    const TITLE_BYTES_MAX: usize = 120;
    if label.len() > TITLE_BYTES_MAX {
        return String::new();
    }
    let words = WordList::of(label);
    let plain: Vec<&str> =
        words.iter().filter(|w| !w.chars().any(|c| c.is_ascii_digit())).collect();
    plain.join(" ")
}

impl LogSentence {
    /// Returns its words.
    pub(super) fn words(&self) -> &WordList {
        self.words.get_or_init(|| WordList::of(&self.text))
    }
}

impl WordList {
    /// Reads the words of a text.
    pub(super) fn of(text: &str) -> Self {
        let mut words = Self::default();
        words.read(text);
        words
    }

    /// Forgets its words and reads those of a text, in the memory that it has.
    pub(super) fn read(&mut self, text: &str) {
        self.lower.clear();
        self.lower.reserve(text.len());
        self.list.clear();
        self.list.reserve(text.len() / 5);
        self.tables = 0;
        for (at, word) in text.unicode_word_indices() {
            let start = self.lower.len();
            push_lowercase(&mut self.lower, word);
            let word = &self.lower[start..];
            let hash = hash_bytes(word.as_bytes());
            let tables = LEXICON.tables_of(word, hash);
            self.tables |= tables;
            self.list.push(WordEntry { end: self.lower.len(), source_offset: at, hash, tables });
        }
    }

    /// Returns whether a phrase of one of the tables, given as bits, may stand in a text.
    pub(super) fn may_occur_in(text: &str, tables: u64) -> bool {
        let mut lower = String::new();
        text.unicode_words().any(|word| {
            lower.clear();
            push_lowercase(&mut lower, word);
            LEXICON.tables_of(&lower, hash_bytes(lower.as_bytes())) & tables != 0
        })
    }

    /// Returns how many there are.
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns a word by its place.
    pub(super) fn get(&self, at: usize) -> Option<&str> {
        let end = self.list.get(at)?.end;
        let start = at.checked_sub(1).map_or(0, |before| self.list[before].end);
        Some(&self.lower[start..end])
    }

    /// Returns the byte offset, in the text that was read, at which a word begins.
    pub(super) fn offset(&self, at: usize) -> Option<usize> {
        self.list.get(at).map(|word| word.source_offset)
    }

    /// Returns the place of the first of `cues`, as word index and number of words.
    pub(super) fn find(&self, cues: CueTable) -> Option<(usize, usize)> {
        self.find_from(0, cues)
    }

    /// Like [`Self::find`], from word `from` on.
    pub(super) fn find_from(&self, from: usize, cues: CueTable) -> Option<(usize, usize)> {
        if !self.may_contain(cues.bit()) {
            return None;
        }
        (from..self.len()).find_map(|at| self.longest_cue_at(at, cues).map(|width| (at, width)))
    }

    /// Returns whether any of `cues` stands in the text.
    pub(super) fn has(&self, cues: CueTable) -> bool {
        self.find(cues).is_some()
    }

    /// Returns whether a phrase of one of the tables may stand in the text; each is a bit.
    pub(super) fn may_contain(&self, tables: u64) -> bool {
        self.tables & tables != 0
    }

    /// Returns whether the text begins with one of `cues`.
    pub(super) fn opens_with(&self, cues: CueTable) -> bool {
        self.longest_cue_at(0, cues).is_some()
    }

    /// Returns the words in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len()).filter_map(|at| self.get(at))
    }

    /// Returns the width of the longest cue that stands at word `at`.
    fn longest_cue_at(&self, at: usize, cues: CueTable) -> Option<usize> {
        // This is asked for every word of every log, and most words open no phrase.
        let word = self.list.get(at)?;
        if word.tables & cues.bit() == 0 {
            return None;
        }
        LEXICON
            .phrases_of(word.hash)
            .filter(|(table, _)| *table == cues.bit())
            .filter_map(|(_, phrase)| self.phrase_len_at(at, phrase))
            .max()
    }

    /// Returns the number of words of a phrase, if it stands at word `at`.
    fn phrase_len_at(&self, at: usize, phrase: &str) -> Option<usize> {
        let mut width = 0;
        for part in phrase.split([' ', '-']) {
            let word = self.get(at + width)?;
            // `mon * préféré`: any one word stands for a lone asterisk.
            let same = match part.strip_suffix('*') {
                Some(start) => word.starts_with(start),
                None => word == part,
            };
            if !same {
                return None;
            }
            width += 1;
        }
        (width > 0).then_some(width)
    }
}

fn push_lowercase(lower: &mut String, word: &str) {
    if word.is_ascii() {
        let start = lower.len();
        lower.push_str(word);
        lower[start..].make_ascii_lowercase();
    } else {
        lower.push_str(&word.replace('’', "'").to_lowercase());
    }
}

/// A phrase, with the bit of its table.
type CuePhrase = (u64, &'static str);

/// Which tables have a phrase that begins with a word.
#[derive(Default)]
struct CueIndex {
    /// By the hash of the phrase's first word: the bits of all their tables, and the phrases.
    words: HashedMap<(u64, Vec<CuePhrase>)>,
    /// Phrases whose first word is open, with its start: `j'` of `j'*`.
    prefix_phrases: Vec<(&'static str, CuePhrase)>,
}

static LEXICON: LazyLock<CueIndex> = LazyLock::new(|| {
    let mut lexicon = CueIndex::default();
    let all = cue_phrases::ALL_TABLES
        .iter()
        .flat_map(|table| table.phrases().iter().map(|it| (table.bit(), *it)));
    for (table, phrase) in all {
        let first = phrase.split([' ', '-']).next().unwrap_or_default();
        if let Some(start) = first.strip_suffix('*') {
            lexicon.prefix_phrases.push((start, (table, phrase)));
        } else {
            let entry = lexicon.words.entry(hash_bytes(first.as_bytes())).or_default();
            entry.0 |= table;
            entry.1.push((table, phrase));
        }
    }
    lexicon
});

impl CueIndex {
    fn tables_of(&self, word: &str, hash: u64) -> u64 {
        let open = self.prefix_phrases.iter().filter(|(start, _)| word.starts_with(start));
        open.fold(self.words.get(&hash).map_or(0, |(tables, _)| *tables), |all, (_, (table, _))| {
            all | table
        })
    }

    /// Returns the phrases that may begin with a word, given by its hash.
    fn phrases_of(&self, hash: u64) -> impl Iterator<Item = &CuePhrase> {
        let known = self.words.get(&hash).map_or(&[][..], |(_, phrases)| phrases);
        known.iter().chain(self.prefix_phrases.iter().map(|(_, phrase)| phrase))
    }
}

impl TermExtractor {
    /// Tells what some words are about.
    pub(super) fn extract(&mut self, words: &WordList) -> StatementTerms {
        let (mut stems, mut values) = (Vec::with_capacity(words.len()), Vec::new());
        for (word, entry) in words.iter().zip(&words.list) {
            match *self.class_by_word.entry(entry.hash).or_insert_with(|| WordClass::of(word)) {
                WordClass::Stem(stem) => stems.push(stem),
                WordClass::Value(value) => values.push(value),
                WordClass::StopWord => {}
            }
        }
        StatementTerms { stems: stems.into(), values: values.into() }
    }
}

impl WordClass {
    fn of(word: &str) -> Self {
        let word = word.strip_suffix("'s").unwrap_or(word);
        if word.chars().any(|c| c.is_ascii_digit())
            || cue_phrases::MONTHS.contains(word) && word != "may"
            || calendar::weekday_names().contains(&word)
        {
            Self::Value(hash_bytes(word.as_bytes()))
        } else if is_stop_word(word) {
            Self::StopWord
        } else {
            Self::Stem(hash_bytes(stems::english_stem(word).as_bytes()))
        }
    }
}

impl From<Vec<u64>> for TermSet {
    fn from(mut terms: Vec<u64>) -> Self {
        terms.sort_unstable();
        terms.dedup();
        Self(terms)
    }
}

impl TermSet {
    /// Returns how many there are.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the hashes, ascending.
    pub(super) fn hashes(&self) -> &[u64] {
        &self.0
    }

    /// Returns how many stand in both.
    pub(super) fn shared_count(&self, other: &Self) -> usize {
        let (mut a, mut b) = (self.0.as_slice(), other.0.as_slice());
        let mut shared = 0;
        while let ([first, rest @ ..], [second, others @ ..]) = (a, b) {
            shared += usize::from(first == second);
            (a, b) =
                (if first <= second { rest } else { a }, if second <= first { others } else { b });
        }
        shared
    }

    /// Returns whether all of them stand in `other`.
    pub(super) fn is_subset(&self, other: &Self) -> bool {
        self.shared_count(other) == self.len()
    }

    /// Returns whether none of them stands in `other`.
    pub(super) fn is_disjoint(&self, other: &Self) -> bool {
        self.shared_count(other) == 0
    }
}

impl StatementTerms {
    /// Reads what a text is about.
    pub(super) fn of(text: &str) -> Self {
        TermExtractor::default().extract(&WordList::of(text))
    }

    /// Returns the share of stems that both have, of those that either has.
    pub(super) fn similarity(&self, other: &Self) -> f64 {
        let shared = self.stems.shared_count(&other.stems);
        ratio(shared, self.stems.len() + other.stems.len() - shared)
    }

    /// Returns the share of the stems of the smaller one that both have.
    pub(super) fn overlap(&self, other: &Self) -> f64 {
        ratio(self.stems.shared_count(&other.stems), self.stems.len().min(other.stems.len()))
    }

    /// Returns the share of this one's stems and values that stand in `other`.
    pub(super) fn containment(&self, other: &Self) -> f64 {
        let shared =
            self.stems.shared_count(&other.stems) + self.values.shared_count(&other.values);
        ratio(shared, self.stems.len() + self.values.len())
    }
}

/// Returns whether a word says little by itself.
pub(super) fn is_stop_word(word: &str) -> bool {
    static SMALL: LazyLock<HashedSet> =
        LazyLock::new(|| CUES.stop_words.iter().map(|it| hash_bytes(it.as_bytes())).collect());
    SMALL.contains(&hash_bytes(word.as_bytes()))
}

fn ratio(part: usize, whole: usize) -> f64 {
    let as_f64 = |n: usize| f64::from(u32::try_from(n).unwrap_or(u32::MAX));
    if whole == 0 { 0.0 } else { as_f64(part) / as_f64(whole) }
}

/// Cuts at a word so that at most `chars_max` characters remain, the dots that show the cut counted.
pub(super) fn truncate_at_word(text: &str, chars_max: usize) -> String {
    if text.chars().count() <= chars_max {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut length = 0;
    for word in text.split_whitespace() {
        let width = word.chars().count() + usize::from(!kept.is_empty());
        if length + width + 1 > chars_max {
            break;
        }
        if !kept.is_empty() {
            kept.push(' ');
        }
        kept.push_str(word);
        length += width;
    }
    let cut = kept.trim_end_matches([',', ';', ':', '—', '-', ' ']).to_owned();
    if cut.is_empty() { text.chars().take(chars_max).collect() } else { cut + "…" }
}

/// Returns the lead clause of a statement, at most `chars_max` characters: a title.
pub(super) fn title_of(statement: &str, chars_max: usize) -> String {
    let statement = statement.trim().trim_end_matches(['.', '!', ';', ':']);
    // `Decided with Ana: …` names the act; what was decided comes after.
    let statement = match split_label(statement) {
        Some((label, rest)) if WordList::of(label).opens_with(cue_phrases::DECIDED) => {
            &statement[rest..]
        }
        _ => statement,
    };
    let cuts = [" — ", " – ", "; ", " (", ": ", ". "];
    let clause = cuts.iter().filter_map(|cut| statement.find(cut)).min().map_or(statement, |at| {
        if statement[..at].split_whitespace().count() >= 2 { &statement[..at] } else { statement }
    });
    let clause = if clause.chars().count() > chars_max {
        longest_fitting_clause(clause, chars_max)
    } else {
        clause
    };
    truncate_at_word(strip_outer_quotes(clause.trim().trim_matches('*')), chars_max)
}

/// Returns a text without the quotes around all of it; one that quotes a part keeps them.
fn strip_outer_quotes(text: &str) -> &str {
    let inner =
        [('"', '"'), ('“', '”'), ('„', '“'), ('«', '»')].into_iter().find_map(|(open, shut)| {
            let inner = text.strip_prefix(open)?.strip_suffix(shut)?;
            (!inner.contains([open, shut])).then_some(inner)
        });
    inner.unwrap_or(text)
}

/// Returns the longest start of a clause that fits and ends where a part of it begins.
fn longest_fitting_clause(clause: &str, chars_max: usize) -> &str {
    /// Shorter than this and it is an aside: `By the way, …`.
    const WORDS_MIN: usize = 5;
    let whole = |start: &str| {
        let even = |mark: char| start.matches(mark).count().is_multiple_of(2);
        even('`') && even('"') && start.matches('(').count() == start.matches(')').count()
    };
    CUES.clause_starts
        .iter()
        .flat_map(|mark| clause.match_indices(mark).map(|(at, _)| &clause[..at]))
        .filter(|start| start.chars().count() <= chars_max && whole(start))
        .filter(|start| start.split_whitespace().count() >= WORDS_MIN)
        .max_by_key(|start| start.len())
        .map_or(clause, |start| start.trim_end_matches([',', ';', ' ']))
}

/// Writes the first word of a title large, unless it is a name that must stay as it is.
pub(super) fn capitalize_title(title: &str) -> String {
    let first = title.split_whitespace().next().unwrap_or_default();
    let plain = first
        .trim_end_matches([',', ':', ';'])
        .chars()
        .all(|c| c.is_lowercase() || matches!(c, '\'' | '’'));
    let mut chars = title.chars();
    match chars.next().filter(|_| plain) {
        Some(letter) => letter.to_uppercase().chain(chars).collect(),
        None => title.to_owned(),
    }
}

/// Returns whether nothing in the words points outside of them or ties them to a moment.
pub(super) fn is_self_contained(text: &str) -> bool {
    words_are_self_contained(text, &WordList::of(text))
}

/// Like [`is_self_contained`], of a text whose words are known.
pub(super) fn words_are_self_contained(text: &str, words: &WordList) -> bool {
    const WORDS_MIN: usize = 3;
    const WORDS_MAX: usize = 60;
    let trimmed = text.trim_end();
    (WORDS_MIN..=WORDS_MAX).contains(&words.len())
        && !words.opens_with(cue_phrases::BACK_REFERENCES)
        && !words.has(cue_phrases::TRANSIENT)
        && !words.has(cue_phrases::ROUTINE)
        && !text.contains('?')
        && !text.contains("...")
        && !trimmed.ends_with([':', '…', ',', '→'])
        && !text.contains('→')
        && text.matches('`').count().is_multiple_of(2)
        && text.matches('(').count() == text.matches(')').count()
        && !text.starts_with(['(', '[', '{', '<', '/', '@'])
}

/// Returns the share of a text that is code: names in backticks, paths, calls.
pub(super) fn code_share(text: &str) -> f64 {
    let all = text.split_whitespace().count();
    let mut inside = false;
    let mut code = 0;
    for word in text.split_whitespace() {
        let ticks = word.matches('`').count();
        let coded = inside
            || ticks > 0
            || word.contains("()")
            || word.contains("::")
            || word.contains('_')
            || is_camel(word);
        inside ^= ticks % 2 == 1;
        code += usize::from(coded);
    }
    ratio(code, all)
}

/// `drainQueue` is code; `MySQL` and `GitHub` are names.
fn is_camel(word: &str) -> bool {
    let word = word.trim_matches(|c: char| !c.is_alphanumeric());
    word.starts_with(char::is_lowercase)
        && word.chars().zip(word.chars().skip(1)).any(|(a, b)| a.is_lowercase() && b.is_uppercase())
}

/// Takes the asterisks and underscores of bold away, outside code.
fn strip_bold(text: &str) -> String {
    if !text.contains(['*', '_']) {
        return text.trim().to_owned();
    }
    let mut out = String::with_capacity(text.len());
    for (i, piece) in text.split('`').enumerate() {
        if i > 0 {
            out.push('`');
        }
        if i % 2 == 0 {
            out.push_str(&piece.replace("**", "").replace("__", ""));
        } else {
            out.push_str(piece);
        }
    }
    out.trim().to_owned()
}

fn starts_with_bold_label(words: &str) -> bool {
    words.starts_with("**") && (words.contains(":**") || words.contains("**:"))
}

fn is_marked_keep(line: &SanitizedLine) -> bool {
    line.origin() != TextOrigin::External
        && has_keep_mark(line.text())
        && line
            .text()
            .split('`')
            .step_by(2)
            .any(|part| part.split_whitespace().any(|w| w == KEEP_MARK))
}

/// Returns whether the mark stands anywhere in a text.
pub(super) fn has_keep_mark(text: &str) -> bool {
    text.contains('#') && text.contains(KEEP_MARK)
}

/// The mark that a line is to be kept.
pub(super) const KEEP_MARK: &str = "#keep";
/// As many spaces as [`KEEP_MARK`] has bytes.
const BLANK_KEEP_MARK: &str = "     ";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_cue_stands_where_its_words_do(picks in proptest::collection::vec(0usize..12, 0..10)) {
            let pieces = [
                "mon ", "plat ", "préféré ", "J’ai ", "j'habite ", "always ", "always-on ", "Don't ",
                "from ", "now ", "on ", "日本 ",
            ];
            let text: String = picks.iter().map(|&i| pieces[i]).collect();
            let words = WordList::of(&text);
            for &cues in cue_phrases::ALL_TABLES {
                let longest = |at: usize| {
                    cues.phrases().iter().filter_map(|phrase| words.phrase_len_at(at, phrase)).max()
                };
                let first = (0..words.len()).find_map(|at| longest(at).map(|width| (at, width)));
                prop_assert_eq!(words.find(cues), first, "{:?}", text);
                let may = WordList::may_occur_in(&text, cues.bit());
                prop_assert!(may || first.is_none(), "{:?}", text);
            }
        }
    }
}
