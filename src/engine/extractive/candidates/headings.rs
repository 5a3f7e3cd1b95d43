//! Headings, lead-ins and parent items that say what a unit is about.

use crate::{
    engine::extractive::{
        parsed_log::{LogStatement, ParsedLog},
        sections,
    },
    memory::{
        atom::{self, AtomKind},
        log,
    },
    text::{hash::HashedMap, pieces},
};

/// A head of few words that occurs this often in a period belongs to a template; a longer one still says
/// what it is about.
const TEMPLATE_HEADS: u32 = 3;

const TEMPLATE_WORDS_MAX: usize = 3;

/// The longest head; a longer lead-in costs more than it explains.
const HEAD_CHARS_MAX: usize = 110;

/// A parent of more characters is a statement.
const TOPIC_CHARS_MAX: usize = 40;

/// A child of no more stems says little without its parent.
const CHILD_STEMS_MAX: usize = 5;

/// Returns how often the words of each head occur in the pages.
pub(crate) fn template_heads(pages: &[ParsedLog]) -> HashedMap<u32> {
    let mut seen = HashedMap::<u32>::default();
    for head in pages.iter().flat_map(|page| &page.heads).filter(|h| h.statement.is_none()) {
        *seen.entry(head.key).or_default() += 1;
    }
    seen
}

/// Returns whether a head has content besides a template's words and its date.
pub(crate) fn is_meaningful(page: &ParsedLog, head: usize, templates: &HashedMap<u32>) -> bool {
    let head = &page.heads[head];
    let mut letters = head.text.chars().filter(|c| c.is_alphabetic()).count();
    let mut dated = false;
    for atom in atom::find_atoms(&head.text) {
        if matches!(atom.kind, AtomKind::Date | AtomKind::Time) {
            letters -= atom.text(&head.text).chars().filter(|c| c.is_alphabetic()).count();
            let norm = atom.norm(&head.text);
            let day = page.stem.date().to_string();
            dated |= head.text.len() < 40
                && head.level == 1
                && atom.kind == AtomKind::Date
                && day.ends_with(norm.trim_start_matches('-'));
        }
    }
    letters >= 3
        && !dated
        && !head.text.starts_with(log::IMPORTED_TITLE)
        && head.text.chars().count() <= HEAD_CHARS_MAX
        && (head.text.split_whitespace().count() > TEMPLATE_WORDS_MAX
            || templates.get(&head.key).is_none_or(|&times| times < TEMPLATE_HEADS))
        && !sections::is_template_head(&head.text)
}

/// Returns whether a child, of which `text` has `stems` stems, needs its parent or lead-in.
///
/// A topic of few words is always given, since it says what the child belongs to. A long parent is a
/// statement of its own; a child that is one, too, and refers to nothing, is clear without it.
pub(super) fn needs_parent(page: &ParsedLog, head: usize, text: &str, stems: usize) -> bool {
    let head = &page.heads[head];
    let is_topic = head.statement.is_none_or(|it| page.statements[it].introduces)
        || head.text.chars().count() < TOPIC_CHARS_MAX;
    is_topic || stems <= CHILD_STEMS_MAX || pieces::refers_back(text)
}

pub(super) struct PageHeadings {
    /// Per head, whether it is meaningful.
    pub(super) meaningful: Vec<bool>,
    /// Per head, the index of its use, once it has one.
    pub(super) uses: Vec<Option<usize>>,
}

impl PageHeadings {
    pub(super) fn heading_of(&self, page: &ParsedLog, statement: &LogStatement) -> Option<usize> {
        let above = |&head: &usize| page.heads[head].parent;
        std::iter::successors(statement.heading, above).find(|&head| self.meaningful[head])
    }

    /// Returns the lead-in or parent item of a statement, or of its parent if that one only names a kind of
    /// content.
    pub(super) fn lead_of(&self, page: &ParsedLog, statement: &LogStatement) -> Option<usize> {
        let above = |&head: &usize| page.heads[head].parent;
        std::iter::successors(statement.lead, above).find(|&head| self.meaningful[head])
    }
}
