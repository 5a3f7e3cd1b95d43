//! Merges user edits of a weekly or monthly file into its new summary.
//!
//! The file itself shows them: its record lists a hash for each bullet as we wrote it. A
//! bullet that is not listed is the person's and keeps its words; a listed one that is missing was
//! deleted and stays out; any other text of the person's stays. So the merge needs no database.
//!
//! # Placement
//!
//! What a person wrote stays in its section, after the bullet of ours that it followed, or after
//! the nearest one before that still exists. Under a heading of the person's own everything stays
//! as they arranged it, including bullets of ours that the new summary has. A bullet of ours with
//! text of a person below it stays for the sake of that text, and becomes theirs once the new
//! summary no longer has it.
//!
//! # Invariants
//!
//! - Each line of the person's is in the result, once; byte for byte, except line ends.
//! - No bullet that they deleted is in it.
//! - Each drafted item is in it, unless it was deleted or a bullet of the person's replaces it.
//! - Merging the same draft again changes nothing.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::memory::{
    document::{BulletOwner, Summary, SummaryBlock, SummaryHeader},
    item::{Item, SummarySection},
    period::Period,
};

/// A merged file, and what a person's words or deletions kept out of it.
#[derive(Debug)]
pub(crate) struct MergedSummary {
    pub summary: Summary,
    /// Drafted items that the person deleted, or that a bullet of the person's already says.
    pub kept_out: Vec<Item>,
    /// Those whose exact words are missing from the file: the person deleted them.
    pub deleted: Vec<Item>,
}

/// Merges drafted sections with the present file.
///
/// `is_deleted` says of an item whether the person deleted everything it cites.
pub(crate) fn merge(
    period: Period,
    current: Option<&Summary>,
    header: SummaryHeader,
    drafted: Vec<(SummarySection, Vec<Item>)>,
    is_deleted: &dyn Fn(&Item) -> bool,
) -> MergedSummary {
    // Of an adopted foreign file, only its own frontmatter keys stay.
    let Some(ours) = current.filter(|it| it.header.is_some()) else {
        let (keep, kept_out) = partition(drafted, &mut |it| !is_deleted(it));
        let mut summary = Summary::from_draft(period, header, &keep);
        if let Some(current) = current {
            summary.copy_other_keys_from(current);
        }
        return MergedSummary { summary, kept_out, deleted: Vec::new() };
    };
    let ownership = ours.ownership();
    let mut present = FileSections::read(ours, &ownership.owners);
    present.adopt_parent_bullets(&drafted);
    let said: Vec<&Item> = present.user_blocks().filter_map(SummaryBlock::item).collect();
    let mut gone =
        DeletedBullets::new(&ownership.missing_hashes, present.generated_items(), &drafted);
    let mut deleted = Vec::new();
    let (keep, kept_out) = partition(drafted, &mut |item| {
        let known = said.iter().any(|it| it.text == item.text || is_covered_by(item, it));
        let gone = gone.excludes(item);
        if gone && !known {
            deleted.push(item.clone());
        }
        !known && !gone && !is_deleted(item)
    });
    let mut summary = Summary::from_draft(period, header, &keep);
    if let Some(header) = &mut summary.header {
        // A hash that stays listed without its bullet marks the deletion for the next merge. If a
        // bullet of theirs had these words, it would count as ours.
        let said: BTreeSet<String> = said.iter().map(|it| it.hash()).collect();
        header
            .items
            .extend(ownership.missing_hashes.iter().filter(|it| !said.contains(*it)).cloned());
    }
    summary.copy_other_keys_from(ours);
    if !present.is_unedited() {
        let body = present.merge_bullets(&summary.blocks);
        summary.set_body(&body);
    }
    summary.copy_line_endings_from(ours);
    MergedSummary { summary, kept_out, deleted }
}

/// Splits the items by `keeps`.
fn partition(
    drafted: Vec<(SummarySection, Vec<Item>)>,
    keeps: &mut dyn FnMut(&Item) -> bool,
) -> (Vec<(SummarySection, Vec<Item>)>, Vec<Item>) {
    let mut kept_out = Vec::new();
    let sections = drafted
        .into_iter()
        .map(|(section, items)| {
            let (keep, out): (Vec<_>, Vec<_>) = items.into_iter().partition(|it| keeps(it));
            kept_out.extend(out);
            (section, keep)
        })
        .collect();
    (sections, kept_out)
}

/// Returns whether a bullet of the person's cites all lines of the item.
///
/// Lines of weekly files are ignored if there are lines of logs: they are the place of a person's
/// bullet when it was cited, which changes with the week.
fn is_covered_by(item: &Item, theirs: &Item) -> bool {
    let (Some(mine), Some(theirs)) = (&item.citation, &theirs.citation) else { return false };
    let on_logs = mine.files().any(|(stem, _)| !stem.is_summary());
    mine.addresses()
        .filter(|it| !on_logs || !it.stem.is_summary())
        .all(|it| theirs.lines_of(&it.stem).is_some_and(|lines| lines.contains(it.line)))
}

/// Drafted items that are kept out because their listed words are missing.
struct DeletedBullets {
    /// Per missing hash, how many bullets with these words may stay, and the items that go first.
    left: HashMap<String, (usize, Vec<Item>)>,
}

impl DeletedBullets {
    /// Of bullets with the same words, as many stay as are still in the file: first the ones that
    /// cite the same lines.
    fn new<'a>(
        missing: &[String],
        present: impl Iterator<Item = &'a Item>,
        drafted: &[(SummarySection, Vec<Item>)],
    ) -> Self {
        let mut left: HashMap<String, (usize, Vec<Item>)> =
            missing.iter().map(|hash| (hash.clone(), (0, Vec::new()))).collect();
        for item in present {
            if let Some((count, _)) = left.get_mut(&item.hash()) {
                *count += 1;
                let same = drafted.iter().flat_map(|(_, items)| items).any(|it| it == item);
                if same {
                    left.entry(item.hash()).and_modify(|it| it.1.push(item.clone()));
                }
            }
        }
        Self { left }
    }

    fn excludes(&mut self, item: &Item) -> bool {
        let Some((count, first)) = self.left.get_mut(&item.hash()) else { return false };
        if let Some(at) = first.iter().position(|it| it == item) {
            first.remove(at);
            *count -= 1;
            return false;
        }
        // The others get what the first ones left.
        if *count > first.len() {
            *count -= 1;
            return false;
        }
        true
    }
}

/// The content of a file of ours, section by section.
#[derive(Default)]
struct FileSections {
    has_title: bool,
    /// The sections; those before the first heading under `None`.
    sections: BTreeMap<Option<SummarySection>, SectionContent>,
    /// A block of the person's that leaves a code fence or a comment open, so that everything after
    /// it would be part of it.
    unclosed: Option<SummaryBlock>,
}

#[derive(Default)]
struct SectionContent {
    /// Its heading as written.
    heading: Option<String>,
    /// Up to the first heading of the person's own.
    head: Vec<FilePiece>,
    /// From there on.
    tail: Vec<FilePiece>,
}

enum FilePiece {
    /// A bullet of ours.
    Generated(Item, String),
    /// Anything of the person's, and whether a blank line precedes it.
    User(SummaryBlock, bool),
}

impl FileSections {
    fn read(current: &Summary, owners: &[BulletOwner]) -> Self {
        let title = Summary::title(current.period);
        let mut present = Self::default();
        let mut section = None;
        let mut owners = owners.iter();
        let mut blank = true;
        let mut blocks = current.blocks.clone();
        if let Some(last) = blocks.last_mut()
            && let Some(at) = last.unclosed_at()
        {
            let raw = last.raw().to_owned();
            present.unclosed = Some(trimmed(&SummaryBlock::Other(raw[at..].to_owned())));
            *last = SummaryBlock::Other(raw[..at].to_owned());
        }
        for block in &blocks {
            let is_blank = |line: Option<&str>| line.is_none_or(|it| it.trim().is_empty());
            let apart = blank || is_blank(block.raw().lines().next());
            blank = is_blank(block.raw().lines().next_back());
            let mut own_heading = block.is_heading();
            match block {
                SummaryBlock::Section(name, raw) => {
                    let area = present.sections.entry(Some(*name)).or_default();
                    if area.heading.is_none() || is_standard_heading(*name, raw) {
                        section = Some(*name);
                        area.heading.get_or_insert_with(|| raw.clone());
                        continue;
                    }
                    // The same section in another spelling is a heading of the person's.
                    own_heading = true;
                }
                SummaryBlock::Other(raw) if raw.trim().is_empty() => continue,
                SummaryBlock::Other(raw)
                    if section.is_none() && raw.trim() == title && !present.has_title =>
                {
                    present.has_title = true;
                    continue;
                }
                _ => {}
            }
            let piece = match block {
                SummaryBlock::Bullet(item, raw) if owners.next() == Some(&BulletOwner::Memoird) => {
                    FilePiece::Generated(item.clone(), raw.clone())
                }
                block => FilePiece::User(trimmed(block), apart),
            };
            let area = present.sections.entry(section).or_default();
            if own_heading || !area.tail.is_empty() {
                area.tail.push(piece);
            } else {
                area.head.push(piece);
            }
        }
        present
    }

    /// Turns our bullets with text of a person below them into theirs, if the new summary no longer
    /// has them: the text would move to another bullet.
    fn adopt_parent_bullets(&mut self, drafted: &[(SummarySection, Vec<Item>)]) {
        let is_drafted = |item: &Item| {
            drafted.iter().any(|(_, items)| items.iter().any(|it| it.text == item.text))
        };
        for pieces in self.sections.values_mut().flat_map(|it| [&mut it.head, &mut it.tail]) {
            for i in 1..pieces.len() {
                let has_user_text = matches!(&pieces[i], FilePiece::User(block, _)
                    if block.raw().starts_with([' ', '\t']));
                if let (FilePiece::Generated(item, raw), true) = (&pieces[i - 1], has_user_text)
                    && !is_drafted(item)
                {
                    let bullet = SummaryBlock::Bullet(item.clone(), raw.clone());
                    pieces[i - 1] = FilePiece::User(trimmed(&bullet), false);
                }
            }
        }
    }

    fn pieces(&self) -> impl Iterator<Item = &FilePiece> {
        self.sections.values().flat_map(|it| it.head.iter().chain(&it.tail))
    }

    fn user_blocks(&self) -> impl Iterator<Item = &SummaryBlock> {
        self.pieces().filter_map(|it| match it {
            FilePiece::User(block, _) => Some(block),
            FilePiece::Generated(..) => None,
        })
    }

    fn generated_items(&self) -> impl Iterator<Item = &Item> {
        self.pieces().filter_map(|it| match it {
            FilePiece::Generated(item, _) => Some(item),
            FilePiece::User(..) => None,
        })
    }

    /// Returns whether there are only bullets of ours, under headings of ours.
    fn is_unedited(&self) -> bool {
        let plain = |(section, area): (&Option<SummarySection>, &SectionContent)| {
            area.heading
                .iter()
                .zip(section)
                .all(|(raw, section)| is_standard_heading(*section, raw))
        };
        self.has_title
            && self.unclosed.is_none()
            && self.user_blocks().next().is_none()
            && self.sections.iter().all(plain)
    }

    /// Inserts the new bullets into the person's text, and returns the body.
    fn merge_bullets(mut self, blocks: &[SummaryBlock]) -> String {
        let mut new_bullets = NewBullets::read(blocks);
        for area in self.sections.values_mut() {
            area.tail.retain_mut(|piece| match piece {
                FilePiece::User(..) => true,
                FilePiece::Generated(item, raw) => match new_bullets.take_matching(item) {
                    Some(bullet) => {
                        bullet.clone_into(raw);
                        true
                    }
                    None => false,
                },
            });
        }
        for section in new_bullets.0.keys() {
            self.sections.entry(Some(*section)).or_default();
        }
        let mut page = BodyWriter::default();
        if self.has_title {
            page.heading(&format!("{}\n", new_bullets.1));
        }
        for (section, area) in self.sections {
            let bullets = section.and_then(|it| new_bullets.0.remove(&it)).unwrap_or_default();
            let own_heading = area
                .heading
                .as_ref()
                .zip(section)
                .is_some_and(|(raw, section)| !is_standard_heading(section, raw));
            if bullets.is_empty()
                && area.user_blocks().next().is_none()
                && area.tail.is_empty()
                && !own_heading
            {
                continue;
            }
            if let Some(section) = section {
                let plain = || format!("### {}\n", section.title());
                page.heading(&area.heading.clone().unwrap_or_else(plain));
            }
            area.print(&bullets, &mut page);
        }
        if let Some(open) = &self.unclosed {
            page.user_block(open, true);
        }
        page.text
    }
}

impl SectionContent {
    fn user_blocks(&self) -> impl Iterator<Item = &SummaryBlock> {
        self.head.iter().filter_map(|it| match it {
            FilePiece::User(block, _) => Some(block),
            FilePiece::Generated(..) => None,
        })
    }

    /// Prints the new bullets in order, and the person's blocks in their places.
    fn print(self, bullets: &[(Item, String)], page: &mut BodyWriter) {
        // First the blocks before the first bullet of ours, then those after each.
        let mut first = Vec::new();
        let mut after: Vec<Vec<(SummaryBlock, bool)>> =
            bullets.iter().map(|_| Vec::new()).collect();
        let mut taken = vec![false; bullets.len()];
        let mut anchor = None;
        for piece in self.head {
            match piece {
                FilePiece::Generated(item, _) => {
                    // The same words, or other words for the same lines.
                    let likeness = |at: usize| {
                        let new = &bullets[at].0;
                        match (new.text == item.text, new.citation == item.citation) {
                            (true, true) => 3,
                            (true, false) => 2,
                            (false, same) => u8::from(same && item.citation.is_some()),
                        }
                    };
                    let free = (0..bullets.len()).filter(|at| !taken[*at] && likeness(*at) > 0);
                    // Of several the first: `max_by_key` would return the last.
                    if let Some(at) = free.min_by_key(|at| 3 - likeness(*at)) {
                        taken[at] = true;
                        anchor = Some(at);
                    }
                }
                FilePiece::User(block, apart) => match anchor {
                    Some(at) => after[at].push((block, apart)),
                    None => first.push((block, apart)),
                },
            }
        }
        for (block, apart) in &first {
            page.user_block(block, *apart);
        }
        for ((_, raw), after) in bullets.iter().zip(&after) {
            page.bullet(raw);
            for (block, apart) in after {
                page.user_block(block, *apart);
            }
        }
        for piece in &self.tail {
            match piece {
                FilePiece::Generated(_, raw) => page.bullet(raw),
                FilePiece::User(block, apart) => page.user_block(block, *apart),
            }
        }
    }
}

/// New bullets by section, each with its line; and the title.
struct NewBullets(BTreeMap<SummarySection, Vec<(Item, String)>>, String);

impl NewBullets {
    fn read(blocks: &[SummaryBlock]) -> Self {
        let mut new_bullets = Self(BTreeMap::new(), String::new());
        let mut section = None;
        for block in blocks {
            match block {
                SummaryBlock::Section(name, _) => section = Some(*name),
                SummaryBlock::Bullet(item, raw) => {
                    if let Some(section) = section {
                        let under = new_bullets.0.entry(section).or_default();
                        under.push((item.clone(), raw.clone()));
                    }
                }
                SummaryBlock::Other(raw) if section.is_none() && block.is_heading() => {
                    raw.trim_end().clone_into(&mut new_bullets.1);
                }
                SummaryBlock::Other(_) => {}
            }
        }
        new_bullets
    }

    /// Takes out the bullet with these words, for a place that the person chose.
    fn take_matching(&mut self, item: &Item) -> Option<String> {
        let all = self.0.iter().flat_map(|(section, items)| {
            items.iter().enumerate().map(move |(i, (it, _))| (*section, i, it))
        });
        let same = all.filter(|(_, _, it)| it.text == item.text);
        let (section, i, _) = same.min_by_key(|(_, _, it)| it.citation != item.citation)?;
        Some(self.0.get_mut(&section)?.remove(i).1)
    }
}

/// The printed body, with blank lines where they are needed.
#[derive(Default)]
struct BodyWriter {
    text: String,
    last: LastBlock,
}

/// The kind of the last printed block.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum LastBlock {
    #[default]
    Nothing,
    Heading,
    Bullet,
    Text,
}

impl BodyWriter {
    fn heading(&mut self, raw: &str) {
        self.text.push('\n');
        self.push(raw, LastBlock::Heading);
    }

    fn bullet(&mut self, raw: &str) {
        if self.last == LastBlock::Text {
            self.text.push('\n');
        }
        self.push(raw, LastBlock::Bullet);
    }

    /// Prints a block of the person's, separated as it was.
    fn user_block(&mut self, block: &SummaryBlock, apart: bool) {
        let is_bullet = block.item().is_some();
        let needed = match self.last {
            LastBlock::Heading => false,
            LastBlock::Bullet => !is_bullet,
            LastBlock::Nothing | LastBlock::Text => true,
        };
        if apart || needed {
            self.text.push('\n');
        }
        let last = match block {
            SummaryBlock::Bullet(..) => LastBlock::Bullet,
            _ if block.is_heading() => LastBlock::Heading,
            _ => LastBlock::Text,
        };
        self.push(block.raw(), last);
    }

    fn push(&mut self, raw: &str, last: LastBlock) {
        self.text.push_str(raw);
        self.last = last;
        if !raw.ends_with('\n') {
            self.text.push('\n');
        }
    }
}

/// Returns whether a section heading is spelled as we write it.
fn is_standard_heading(section: SummarySection, raw: &str) -> bool {
    raw.trim().strip_prefix("### ") == Some(section.title())
}

/// Removes the blank lines around a block, so that they do not grow with every merge, and ends its
/// last line, so that the next one does not join it.
fn trimmed(block: &SummaryBlock) -> SummaryBlock {
    let bare = |raw: &str| {
        let lines: Vec<&str> = raw.split_inclusive('\n').collect();
        let is_text = |line: &&str| !line.trim().is_empty();
        let from = lines.iter().position(is_text).unwrap_or(lines.len());
        let to = lines.iter().rposition(is_text).map_or(from, |it| it + 1);
        let mut text = lines[from..to].concat();
        if !text.ends_with('\n') {
            text.push('\n');
        }
        text
    };
    match block {
        // Another heading than that of its section is text of the person's.
        SummaryBlock::Section(_, raw) | SummaryBlock::Other(raw) => SummaryBlock::Other(bare(raw)),
        SummaryBlock::Bullet(item, raw) => SummaryBlock::Bullet(item.clone(), bare(raw)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::memory::joined;

    const WEEK: &str = "2026-W14";

    fn week() -> Period {
        WEEK.parse().unwrap()
    }

    fn item(text: &str) -> Item {
        Item::parse(text)
    }

    fn draft(outcomes: &[&str], decisions: &[&str]) -> Vec<(SummarySection, Vec<Item>)> {
        let items = |texts: &[&str]| texts.iter().map(|it| item(it)).collect();
        vec![
            (SummarySection::KeyOutcomes, items(outcomes)),
            (SummarySection::Decisions, items(decisions)),
        ]
    }

    /// Merges once, lets `edit` change the text, merges again, and returns the second body.
    fn fold_edit_fold(
        first: Vec<(SummarySection, Vec<Item>)>,
        edit: impl Fn(&str) -> String,
        second: Vec<(SummarySection, Vec<Item>)>,
    ) -> (String, MergedSummary) {
        let header =
            || SummaryHeader { engine: "extractive/1".to_owned(), ..SummaryHeader::default() };
        let none = |_: &Item| false;
        let text = merge(week(), None, header(), first, &none).summary.print();
        let (visible, record) = joined::split(&text);
        let edited = Summary::parse(week(), &joined::join(&edit(visible), record)).unwrap();
        let merged = merge(week(), Some(&edited), header(), second, &none);
        // The printed text must parse to the same file.
        let printed = merged.summary.print();
        assert_eq!(Summary::parse(week(), &printed).unwrap().print(), printed);
        (merged.summary.body(), merged)
    }

    #[test]
    fn an_unedited_file_becomes_the_new_summary() {
        let first = draft(&["Old [2026-04-02:1]"], &[]);
        let (body, merged) =
            fold_edit_fold(first, str::to_owned, draft(&["New [2026-04-02:1]"], &[]));
        assert_eq!(body, "\n# Week 2026-W14\n\n### Key Outcomes\n- New [2026-04-02:1]\n");
        assert!(merged.kept_out.is_empty());
    }

    #[test]
    fn an_edited_bullet_keeps_its_words_and_keeps_out_items_of_its_lines() {
        let first = draft(&["Shipped v2 [2026-04-02:1]", "Other [2026-04-02:5]"], &[]);
        let second = draft(
            &["Shipped v2 today [2026-04-02:1]", "Other [2026-04-02:5]"],
            &["Why [2026-04-02:1-2]"],
        );
        let (body, merged) =
            fold_edit_fold(first, |it| it.replace("Shipped v2", "Shipped v3"), second);
        assert_eq!(
            body,
            "\n# Week 2026-W14\n\n### Key Outcomes\n- Shipped v3 [2026-04-02:1]\n- Other [2026-04-02:5]\n\n\
             ### Decisions\n- Why [2026-04-02:1-2]\n"
        );
        assert_eq!(merged.kept_out, [item("Shipped v2 today [2026-04-02:1]")]);
    }

    #[test]
    fn a_deleted_bullet_stays_deleted_in_every_summary() {
        let both = || draft(&["Keep [2026-04-02:1]", "Gone [2026-04-02:2]"], &[]);
        let delete = |it: &str| it.replace("- Gone [2026-04-02:2]\n", "");
        let (body, merged) = fold_edit_fold(both(), delete, both());
        assert!(!body.contains("Gone"), "{body}");
        let again =
            merge(week(), Some(&merged.summary), SummaryHeader::default(), both(), &|_| false);
        assert!(!again.summary.body().contains("Gone"));
    }

    #[test]
    fn a_recorded_deletion_keeps_out_other_words_too() {
        let merged = merge(
            week(),
            None,
            SummaryHeader::default(),
            draft(&["In other words [2026-04-02:2]"], &[]),
            &|_| true,
        );
        assert_eq!(merged.summary.body(), "\n# Week 2026-W14\n");
        assert_eq!(merged.kept_out.len(), 1);
    }

    #[test]
    fn text_and_sections_of_a_person_stay_in_place() {
        let first = draft(&["One [2026-04-02:1]"], &["Two [2026-04-02:2]"]);
        let edit = |it: &str| {
            it.replace("# Week 2026-W14\n", "# Week 2026-W14\n\nMy summary.\n")
                .replace("### Decisions\n", "#### Aside\n- mine\n\n### Blockers & Open Items\n* wait\n  for Jo\n\n### Decisions\n")
                + "no final newline"
        };
        let (body, _) = fold_edit_fold(
            first,
            edit,
            draft(&["One more [2026-04-02:3]"], &["Two [2026-04-02:2]"]),
        );
        assert_eq!(
            body,
            "\n# Week 2026-W14\n\nMy summary.\n\n### Key Outcomes\n- One more [2026-04-02:3]\n\n#### Aside\n- mine\n\n\
             ### Decisions\n- Two [2026-04-02:2]\n\nno final newline\n\n### Blockers & Open Items\n* wait\n  for Jo\n"
        );
    }

    #[test]
    fn keys_of_a_person_stay_in_the_frontmatter() {
        let first = draft(&["One [2026-04-02:1]"], &[]);
        let edit = |it: &str| it.replacen("---\n", "---\ntags: [a, b]\n", 1);
        let (_, merged) = fold_edit_fold(first, edit, draft(&["New [2026-04-02:1]"], &[]));
        let printed = merged.summary.print();
        assert!(printed.starts_with("---\ntype: weekly\nperiod: 2026-W14\ntags: [a, b]\n---\n"));
    }

    #[test]
    fn text_below_a_bullet_stays_below_it() {
        let first = || draft(&["One [2026-04-02:1]", "Two [2026-04-02:2]"], &[]);
        let edit = |it: &str| {
            it.replace("- One [2026-04-02:1]\n", "- One [2026-04-02:1]\n  - but only here\n")
        };
        let (body, _) = fold_edit_fold(
            first(),
            edit,
            draft(&["New [2026-04-02:9]", "One [2026-04-02:1]"], &[]),
        );
        assert!(
            body.contains("- New [2026-04-02:9]\n- One [2026-04-02:1]\n  - but only here\n"),
            "{body}"
        );
        let (body, merged) = fold_edit_fold(first(), edit, draft(&["Two [2026-04-02:2]"], &[]));
        assert!(
            body.contains("- One [2026-04-02:1]\n  - but only here\n- Two [2026-04-02:2]\n"),
            "{body}"
        );
        assert_eq!(merged.summary.ownership().owners[0], BulletOwner::User);
    }

    #[test]
    fn under_a_heading_of_their_own_everything_stays_as_arranged() {
        let first = draft(&["One [2026-04-02:1]"], &["Two [2026-04-02:2]"]);
        let edit = |it: &str| {
            it.replace(
                "\n### Decisions\n- Two [2026-04-02:2]\n",
                "\n### For the board\n- Two [2026-04-02:2]\nas agreed\n",
            )
        };
        let second = draft(&["More [2026-04-02:7]", "One [2026-04-02:1]"], &["Two [2026-04-02:2]"]);
        let (body, merged) = fold_edit_fold(first, edit, second);
        assert_eq!(
            body,
            "\n# Week 2026-W14\n\n### Key Outcomes\n- More [2026-04-02:7]\n- One [2026-04-02:1]\n\n\
             ### For the board\n- Two [2026-04-02:2]\n\nas agreed\n"
        );
        assert!(merged.summary.ownership().owners.iter().all(|it| *it == BulletOwner::Memoird));
    }

    #[test]
    fn of_two_bullets_with_the_same_words_only_the_deleted_one_goes() {
        let both = || draft(&["Same [2026-04-02:1]", "Same [2026-04-03:1]"], &[]);
        let delete = |it: &str| it.replace("- Same [2026-04-02:1]\n", "");
        let (body, _) = fold_edit_fold(both(), delete, both());
        assert_eq!(body, "\n# Week 2026-W14\n\n### Key Outcomes\n- Same [2026-04-03:1]\n");
    }

    #[test]
    fn a_heading_and_a_title_of_their_own_spelling_stay() {
        let first = draft(&["One [2026-04-02:1]"], &["Two [2026-04-02:2]"]);
        let edit = |it: &str| {
            it.replace("# Week 2026-W14", "# The week of the flood")
                .replace("### Decisions", "## decisions")
        };
        let second = draft(&["One [2026-04-02:1]"], &["Three [2026-04-02:3]"]);
        let (body, _) = fold_edit_fold(first, edit, second);
        assert_eq!(
            body,
            "\n# The week of the flood\n\n### Key Outcomes\n- One [2026-04-02:1]\n\n## decisions\n- Three [2026-04-02:3]\n"
        );
    }

    #[test]
    fn a_fence_that_is_left_open_swallows_no_new_bullet() {
        let first = draft(&["One [2026-04-02:1]"], &["Two [2026-04-02:2]"]);
        let edit =
            |it: &str| it.replace("- One [2026-04-02:1]\n", "- One [2026-04-02:1]\n\n```\ncode\n");
        let (body, merged) = fold_edit_fold(first, edit, draft(&["New [2026-04-02:9]"], &[]));
        assert!(
            body.ends_with(
                "- New [2026-04-02:9]\n\n```\ncode\n\n### Decisions\n- Two [2026-04-02:2]\n"
            ),
            "{body}"
        );
        assert_eq!(merged.summary.bullets().count(), 1);
    }

    #[test]
    fn line_ends_of_a_file_stay() {
        let first = || draft(&["One [2026-04-02:1]"], &[]);
        let edit = |it: &str| (it.to_owned() + "- mine\n").replace('\n', "\r\n");
        let (_, merged) = fold_edit_fold(first(), edit, draft(&["New [2026-04-02:1]"], &[]));
        let printed = merged.summary.print();
        let text = joined::visible(&printed);
        assert!(text.contains("- New [2026-04-02:1]\r\n- mine\r\n"), "{text:?}");
        assert_eq!(text.matches('\n').count(), text.matches("\r\n").count());
    }

    /// One edit of a person.
    #[derive(Clone, Debug)]
    enum UserAct {
        Reword(usize),
        Delete(usize),
        Move(usize, usize),
        Add(usize, &'static str),
    }

    /// What a person may write; each has room for a number, so that all lines are different.
    const THEIRS: [&str; 22] = [
        "- mine #",
        "- mine # [2026-04-0#:1]",
        "  - nested #\n    more of # [2026-04-04:#]",
        "* 1#. 日本語 – ünïcode # \u{1f600}",
        "A paragraph #\nof two lines #.",
        "\nA paragraph # apart.\n",
        "### Heading #\n",
        "#### Below #\n- under a heading #",
        "# Part #",
        "```rust\n- no bullet #\n### Decisions of #\n```",
        "```\nopen # for ever",
        "<!-- a note # -->",
        "<!-- open #",
        "| a# | b |\n|---|---|\n| 1 | 2# |",
        "> quoted #\n> - in a quote #",
        "- [ ] open task #",
        "- with a carriage return #\r",
        "\t- after a tab #",
        "---\nrule #",
        "## Decisions of mine #",
        "12. twelve #",
        "   \n- after blanks # [wip]",
    ];

    fn acts() -> impl Strategy<Value = Vec<UserAct>> {
        let at = 0..40_usize;
        let one = prop_oneof![
            2 => at.clone().prop_map(UserAct::Reword),
            2 => at.clone().prop_map(UserAct::Delete),
            1 => (at.clone(), at.clone()).prop_map(|(from, to)| UserAct::Move(from, to)),
            3 => (at, 0..THEIRS.len()).prop_map(|(at, what)| UserAct::Add(at, THEIRS[what])),
        ];
        proptest::collection::vec(one, 0..8)
    }

    /// Applies all edits to the body of `text`; the frontmatter and the record stay.
    fn edited(text: &str, acts: &[UserAct], crlf: bool, cut: bool) -> String {
        let (text, record) = joined::split(text);
        let body_at = crate::memory::frontmatter::split(text).body_at;
        let mut lines: Vec<String> = text[body_at..].lines().map(str::to_owned).collect();
        for (n, act) in acts.iter().enumerate() {
            let end = lines.len();
            match *act {
                UserAct::Reword(at) if end > 0 => {
                    let line = &mut lines[at % end];
                    if let Some(words) = line.strip_prefix("- ") {
                        *line = format!("- reworded {n} {words}");
                    }
                }
                UserAct::Delete(at) if end > 0 => drop(lines.remove(at % end)),
                UserAct::Move(from, to) if end > 0 => {
                    let line = lines.remove(from % end);
                    lines.insert(to % end, line);
                }
                UserAct::Add(at, what) => {
                    lines.insert(
                        at % (end + 1),
                        what.replace('#', &n.to_string()).replace("[2026-04-00", "[2026-04-09"),
                    );
                }
                _ => {}
            }
        }
        let mut body = lines.join("\n") + "\n";
        if cut {
            body.truncate(body.trim_end().len());
        }
        let text = format!("{}{body}", &text[..body_at]);
        let text = if crlf { crate::memory::frontmatter::with_crlf(&text) } else { text };
        joined::join(&text, record)
    }

    /// Items, some of which repeat words or lines of others.
    fn drafts() -> impl Strategy<Value = Vec<(SummarySection, Vec<Item>)>> {
        let item = (0..9_u32, 1..6_u32, 1..9_u32)
            .prop_map(|(words, day, line)| item(&format!("Said {words} [2026-04-0{day}:{line}]")));
        let sections = SummarySection::WEEKLY;
        proptest::collection::vec(proptest::collection::vec(item, 0..5), 4)
            .prop_map(move |items| sections.into_iter().zip(items).collect())
    }

    fn counts<'a>(lines: impl IntoIterator<Item = &'a str>) -> BTreeMap<&'a str, usize> {
        let mut counts = BTreeMap::new();
        for line in lines {
            *counts.entry(line.trim_end()).or_default() += 1;
        }
        counts
    }

    fn bullets(summary: &Summary) -> Vec<Item> {
        summary.bullets().map(|(_, item, _)| item.clone()).collect()
    }

    proptest! {
        #[test]
        fn user_edits_win_over_any_draft(first in drafts(), acts in acts(), second in drafts(), crlf: bool, cut: bool) {
            let header =
                || SummaryHeader { engine: "extractive/1".to_owned(), ..SummaryHeader::default() };
            let none = |_: &Item| false;
            let made = merge(week(), None, header(), first, &none).summary;
            let text = edited(&made.print(), &acts, crlf, cut);
            let current = Summary::parse(week(), &text).unwrap();
            let merged = merge(week(), Some(&current), header(), second.clone(), &none);
            let printed = merged.summary.print();

            // The printed text parses to the same file.
            let read = Summary::parse(week(), &printed).unwrap();
            prop_assert_eq!(&read.print(), &printed);
            prop_assert_eq!(&read.blocks, &merged.summary.blocks, "{}", printed);

            // Each of their lines is in it, as often as before.
            let (made_body, body) = (made.body(), current.body());
            let ours = counts(made_body.lines());
            let result_body = merged.summary.body();
            let result = counts(result_body.lines());
            for (line, count) in counts(body.lines()) {
                if line.trim().is_empty() || ours.contains_key(line) {
                    continue;
                }
                prop_assert_eq!(result.get(line), Some(&count), "`{}` of:\n{}\nin:\n{}", line, text, printed);
            }

            // What they deleted is not in it: by words, as many as there were.
            let present = bullets(&current);
            for item in bullets(&made) {
                let count = |items: &[Item]| items.iter().filter(|it| it.text == item.text).count();
                let (before, now) = (count(&bullets(&made)), count(&present));
                if now < before {
                    prop_assert!(count(&bullets(&merged.summary)) <= now, "`{}` of:\n{}\nin:\n{}", item, text, printed);
                }
            }

            // What is new is in it, once, unless it was deleted or replaced.
            let owners = current.ownership();
            let theirs: Vec<&Item> = present.iter().zip(&owners.owners)
                .filter(|(_, owner)| **owner == BulletOwner::User).map(|(item, _)| item).collect();
            let result = bullets(&merged.summary);
            for item in second.iter().flat_map(|(_, items)| items) {
                let free = !owners.missing_hashes.contains(&item.hash())
                    && !theirs.iter().any(|it| it.text == item.text || is_covered_by(item, it));
                // A bullet that stays for the text below it is theirs, too.
                let adopted = merged.kept_out.contains(item);
                if free && !adopted {
                    let all = second.iter().flat_map(|(_, items)| items).filter(|it| *it == item).count();
                    prop_assert_eq!(result.iter().filter(|it| *it == item).count(), all, "`{}` of:\n{}\nin:\n{}", item, text, printed);
                }
                prop_assert!(!free || !adopted || present.iter().any(|it| is_covered_by(item, it)),
                    "`{}` of:\n{}\nin:\n{}", item, text, printed);
            }

            // Merging again changes nothing.
            let again = merge(week(), Some(&read), header(), second, &none);
            prop_assert_eq!(again.summary.print(), printed, "of:\n{}", text);
        }
    }
}
