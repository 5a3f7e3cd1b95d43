//! What a person did to a weekly or monthly file, carried over into its new fold.
//!
//! The file itself tells: its frontmatter lists a hash for each bullet as we wrote it. A bullet
//! that is not listed is the person's and keeps its words and its section; a listed one that is
//! gone was deleted and stays out; any other text of the person's stays in the section that it
//! stood in. So the merge needs no database.

use std::collections::{BTreeMap, BTreeSet};

use crate::memory::{
    document::{Block, Owner, Summary, SummaryHeader},
    item::{Item, Section},
    period::Period,
};

/// A new file, and what a person's words or deletions kept out of it.
#[derive(Debug)]
pub struct Merged {
    /// The file to write.
    pub summary: Summary,
    /// Drafted items that the person deleted, or that a bullet of the person's already says.
    pub kept_out: Vec<Item>,
}

/// Blocks under each section of ours; those before the first one under `None`.
type Sections = BTreeMap<Option<Section>, Vec<Block>>;

/// Merges drafted sections with the file that stands there.
///
/// `is_deleted` tells of an item whether the person deleted all that it rests on.
pub fn merge(
    period: Period,
    current: Option<&Summary>,
    header: SummaryHeader,
    drafted: Vec<(Section, Vec<Item>)>,
    is_deleted: &dyn Fn(&Item) -> bool,
) -> Merged {
    // A foreign file that was adopted leaves nothing but its own keys of the frontmatter.
    let ours = current.filter(|it| it.header.is_some());
    let ownership = ours.map(Summary::ownership);
    let (owners, missing) = ownership.map(|it| (it.owners, it.missing)).unwrap_or_default();
    let theirs = ours.map(|it| theirs(it, &owners)).unwrap_or_default();
    let said: Vec<&Item> = theirs.values().flatten().filter_map(Block::item).collect();
    let gone: BTreeSet<&str> = missing.iter().map(String::as_str).collect();
    let mut kept_out = Vec::new();
    let sections: Vec<(Section, Vec<Item>)> = drafted
        .into_iter()
        .map(|(section, items)| {
            let (keep, out): (Vec<_>, Vec<_>) = items.into_iter().partition(|item| {
                let known = said.iter().any(|it| it.text == item.text || rests_within(item, it));
                !known && !gone.contains(&item.hash()[..]) && !is_deleted(item)
            });
            kept_out.extend(out);
            (section, keep)
        })
        .collect();
    let mut summary = Summary::from_draft(period, header, &sections);
    if let Some(header) = &mut summary.header {
        // A hash that stays listed without its bullet tells the next fold that it was deleted.
        header.items.extend(missing.iter().cloned());
    }
    if let Some(current) = current {
        summary.other_keys = current.other_keys.clone();
    }
    if !theirs.is_empty() {
        summary.blocks = join(std::mem::take(&mut summary.blocks), theirs);
    }
    Merged { summary, kept_out }
}

/// Returns whether all lines that the item rests on are cited by a bullet of the person's.
fn rests_within(item: &Item, theirs: &Item) -> bool {
    let (Some(mine), Some(theirs)) = (&item.citation, &theirs.citation) else { return false };
    mine.addresses()
        .all(|it| theirs.lines_of(&it.stem).is_some_and(|lines| lines.contains(it.line)))
}

/// Collects the blocks that a person wrote or changed.
fn theirs(current: &Summary, owners: &[Owner]) -> Sections {
    let title = Summary::from_draft(current.period, SummaryHeader::default(), &[]).body();
    let mut sections = Sections::new();
    let mut section = None;
    let mut owners = owners.iter();
    for block in &current.blocks {
        let keep = match block {
            Block::Section(name, _) => {
                section = Some(*name);
                false
            }
            Block::Bullet(..) => owners.next() == Some(&Owner::Person),
            Block::Other(raw) => !raw.trim().is_empty() && raw.trim() != title.trim(),
        };
        if keep {
            sections.entry(section).or_default().push(trimmed(block.clone()));
        }
    }
    sections
}

/// Puts the blocks of the person's after ours, section by section.
fn join(blocks: Vec<Block>, theirs: Sections) -> Vec<Block> {
    let mut sections = Sections::new();
    let mut section = None;
    for block in blocks {
        match block {
            Block::Section(name, _) => section = Some(name),
            Block::Other(ref raw) if section.is_some() && raw.trim().is_empty() => {}
            block => sections.entry(section).or_default().push(block),
        }
    }
    if let Some(preamble) = sections.get_mut(&None) {
        // The blank line before the first section is written with the section.
        while matches!(preamble.last(), Some(Block::Other(raw)) if raw.trim().is_empty()) {
            preamble.pop();
        }
    }
    for (section, blocks) in theirs {
        let under = sections.entry(section).or_default();
        for block in blocks {
            // Without a blank line a paragraph would continue the bullet before it.
            if matches!(block, Block::Other(_)) {
                under.push(blank());
            }
            under.push(block);
        }
    }
    sections
        .into_iter()
        .flat_map(|(section, blocks)| {
            let heading = section.map(|it| Block::Section(it, format!("### {}\n", it.title())));
            let lead = heading.map(|it| [blank(), it]).into_iter().flatten();
            lead.chain(blocks).collect::<Vec<_>>()
        })
        .collect()
}

fn blank() -> Block {
    Block::Other("\n".to_owned())
}

/// Takes the blank lines around a block away, so that they do not grow with every fold, and makes
/// sure that it ends its last line, so that the next one does not join it.
fn trimmed(block: Block) -> Block {
    let ended = |raw: &str| format!("{}\n", raw.trim_end_matches(['\n', '\r']));
    match block {
        Block::Section(section, raw) => Block::Section(section, ended(&raw)),
        Block::Bullet(item, raw) => Block::Bullet(item, ended(&raw)),
        Block::Other(raw) => {
            let blank_lines = raw.split_inclusive('\n').take_while(|line| line.trim().is_empty());
            let lead: usize = blank_lines.map(str::len).sum();
            Block::Other(ended(&raw[lead..]))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WEEK: &str = "2026-W14";

    fn week() -> Period {
        WEEK.parse().unwrap()
    }

    fn item(text: &str) -> Item {
        Item::parse(text)
    }

    fn draft(outcomes: &[&str], decisions: &[&str]) -> Vec<(Section, Vec<Item>)> {
        let items = |texts: &[&str]| texts.iter().map(|it| item(it)).collect();
        vec![(Section::KeyOutcomes, items(outcomes)), (Section::Decisions, items(decisions))]
    }

    /// Folds once, lets `edit` change the text, folds again, and returns the second body.
    fn fold_edit_fold(
        first: Vec<(Section, Vec<Item>)>,
        edit: impl Fn(&str) -> String,
        second: Vec<(Section, Vec<Item>)>,
    ) -> (String, Merged) {
        let header =
            || SummaryHeader { engine: "extractive/1".to_owned(), ..SummaryHeader::default() };
        let none = |_: &Item| false;
        let text = merge(week(), None, header(), first, &none).summary.print();
        let edited = Summary::parse(week(), &edit(&text)).unwrap();
        let merged = merge(week(), Some(&edited), header(), second, &none);
        // What is written must be read back as the same file.
        let printed = merged.summary.print();
        assert_eq!(Summary::parse(week(), &printed).unwrap().print(), printed);
        (merged.summary.body(), merged)
    }

    #[test]
    fn an_untouched_file_takes_the_new_fold() {
        let first = draft(&["Old [2026-04-02:1]"], &[]);
        let (body, merged) =
            fold_edit_fold(first, str::to_owned, draft(&["New [2026-04-02:1]"], &[]));
        assert_eq!(body, "\n# Week 2026-W14\n\n### Key Outcomes\n- New [2026-04-02:1]\n");
        assert!(merged.kept_out.is_empty());
    }

    #[test]
    fn a_changed_bullet_keeps_its_words_and_holds_off_what_rests_on_the_same_lines() {
        let first = draft(&["Shipped v2 [2026-04-02:1]", "Other [2026-04-02:5]"], &[]);
        let second = draft(
            &["Shipped v2 today [2026-04-02:1]", "Other [2026-04-02:5]"],
            &["Why [2026-04-02:1-2]"],
        );
        let (body, merged) =
            fold_edit_fold(first, |it| it.replace("Shipped v2", "Shipped v3"), second);
        assert_eq!(
            body,
            "\n# Week 2026-W14\n\n### Key Outcomes\n- Other [2026-04-02:5]\n- Shipped v3 [2026-04-02:1]\n\n\
             ### Decisions\n- Why [2026-04-02:1-2]\n"
        );
        assert_eq!(merged.kept_out, [item("Shipped v2 today [2026-04-02:1]")]);
    }

    #[test]
    fn a_deleted_bullet_stays_deleted_fold_after_fold() {
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
    fn text_and_sections_of_a_person_stay_where_they_stood() {
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
        assert!(printed.contains("tags") && printed.contains("memoird:"), "{printed}");
    }
}
