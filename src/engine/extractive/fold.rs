//! Makes the draft of a week or a month.
//!
//! A month is chosen from what its weeks kept: the pieces of the log lines that the weeks' bullets
//! hold, and the words of bullets that a person or another program wrote.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use chrono::NaiveDate;

use crate::{
    engine::{Draft, EngineError, FoldInput, LeftOut, WeekSource},
    memory::{
        address::{Address, Citation, Stem},
        item::{Item, Section},
        markdown::LineKind,
        period::{Grain, Period},
    },
};

use super::{
    material::{self, Material, PieceAt},
    page::{self, Page, Statement},
    render,
    sections::{self, Class},
    select,
};

/// A unit of a month that was open is worth so much where the month went on after it.
const STALE_OPEN: f64 = 0.6;

/// So many of the last days of a month may carry their open items forward.
const CARRIED_DAYS: i64 = 10;

/// Drafts a week or a month.
///
/// # Errors
///
/// Returns [`EngineError::NothingToSay`] where the sources hold no text, or the budget no statement.
pub fn fold(input: &FoldInput<'_>) -> Result<Draft, EngineError> {
    let draft = if input.budget.whole { whole(input) } else { Fold::new(input).draft() };
    if draft.sections.is_empty() {
        return Err(EngineError::NothingToSay { period: input.period });
    }
    Ok(draft)
}

struct Fold<'a> {
    input: &'a FoldInput<'a>,
    material: Material,
    /// For a month, the section of the weekly bullet that a piece stands in.
    weekly: BTreeMap<PieceAt, Section>,
    keeps: Vec<(Section, Item)>,
}

impl<'a> Fold<'a> {
    fn new(input: &'a FoldInput<'a>) -> Self {
        let mut pages: Vec<Page> = input.logs.iter().map(page::read).collect();
        let month = input.period.grain() == Grain::Month;
        let weekly = if month { kept_by_weeks(&mut pages, input.weeks) } else { BTreeMap::new() };
        let keeps = keeps(&pages, input);
        let wanted = |at: PieceAt| !month || weekly.contains_key(&at);
        let material = material::gather(pages, input.counts, wanted);
        Self { input, material, weekly, keeps }
    }

    fn draft(self) -> Draft {
        let target = self.input.budget.target_chars.min(self.input.budget.limit_chars);
        let classes: Vec<Option<Class>> = self.open_classes();
        let stale = |unit: usize| {
            if classes.get(unit) == Some(&Some(Class::Open)) { STALE_OPEN } else { 1.0 }
        };
        // Merged bullets and headings cost less or more than the ranking thinks; the surplus is cut.
        let ranking = select::rank(&self.material, stale, target + target / 3 + 200);
        // Told once, so that the length changes little and evenly while the ranking is cut.
        let section_of = self.section_rule(&ranking.order, &ranking.worth);
        let print = |order: &[usize]| render::sections(&self.material, order, &section_of);
        let length = |order: &[usize]| render::body_chars(self.input.period, &print(order));
        let fits = |order: &[usize]| length(order) <= target;
        let mut low = 0;
        let mut high = ranking.order.len();
        while low < high {
            let middle = (low + high).div_ceil(2);
            if fits(&ranking.order[..middle]) {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        let mut order = ranking.order[..low].to_vec();
        self.fill(&mut order, &ranking.order[low..], target, &length);
        while !order.is_empty() && !fits(&order) {
            order.pop();
        }
        let mut sections = print(&order);
        for (section, item) in &self.keeps {
            insert(&mut sections, *section, item.clone());
        }
        let left_out = self.left_out(&sections, &ranking.repeats);
        Draft { sections, left_out }
    }

    /// Adds later units that still fit into what is left.
    fn fill(
        &self,
        order: &mut Vec<usize>,
        rest: &[usize],
        target: usize,
        length: &impl Fn(&[usize]) -> usize,
    ) {
        /// Each try prints the whole file; a long file has no gap worth so much work.
        const TRIES_MAX: usize = 24;
        const TARGET_MAX: usize = 200_000;
        if target > TARGET_MAX {
            return;
        }
        let mut left = target.saturating_sub(length(order));
        let mut tries = 0;
        for &unit in rest {
            if left < 20 || tries == TRIES_MAX {
                break;
            }
            if self.material.units[unit].chars > left {
                continue;
            }
            tries += 1;
            order.push(unit);
            let now = length(order);
            if now <= target {
                left = target - now;
            } else {
                order.pop();
            }
        }
    }

    fn statement(&self, at: PieceAt) -> (&Page, &Statement) {
        let page = &self.material.pages[at.page];
        (page, &page.statements[at.statement])
    }

    /// Tells what the statement of a unit is about, by structure and then by its words.
    fn class(&self, at: PieceAt) -> Class {
        if let Some(section) = self.weekly.get(&at) {
            return class_of_section(*section);
        }
        let (page, statement) = self.statement(at);
        class_of(page, statement)
    }

    /// For a month: which units were open, so that those of its first weeks weigh less.
    fn open_classes(&self) -> Vec<Option<Class>> {
        if self.input.period.grain() != Grain::Month {
            return Vec::new();
        }
        let carried = self.carried_from();
        let open = |at: PieceAt| {
            self.class(at) == Class::Open && self.material.pages[at.page].stem.date() < carried
        };
        self.material.units.iter().map(|unit| open(unit.at).then_some(Class::Open)).collect()
    }

    /// The first day whose open items are still carried forward.
    fn carried_from(&self) -> NaiveDate {
        let last = self.material.pages.iter().map(|p| p.stem.date()).max();
        let last = last.unwrap_or_else(|| self.input.period.last());
        last - chrono::TimeDelta::days(CARRIED_DAYS - 1)
    }

    /// Returns the rule that gives each unit its section.
    fn section_rule(
        &self,
        order: &[usize],
        worth: &HashMap<usize, f64>,
    ) -> impl Fn(usize) -> Section {
        let month = self.input.period.grain() == Grain::Month;
        let mut table = HashMap::new();
        if !month {
            let mut done: BTreeSet<usize> = BTreeSet::new();
            for &unit in order {
                let found = &self.material.units[unit];
                let section = section_of_class(self.class(found.at));
                if section == Section::KeyOutcomes {
                    done.extend(found.heading);
                }
                table.insert(unit, section);
            }
            // What surrounds an outcome under one heading is told with it.
            for (unit, section) in &mut table {
                let heading = self.material.units[*unit].heading;
                if *section == Section::Context && heading.is_some_and(|h| done.contains(&h)) {
                    *section = Section::KeyOutcomes;
                }
            }
            return rule(table, Section::Context);
        }
        let classes: Vec<(usize, Class)> =
            order.iter().map(|&u| (u, self.class(self.material.units[u].at))).collect();
        let mut worths: Vec<f64> = classes
            .iter()
            .filter(|(_, class)| matches!(class, Class::Outcome | Class::Decision))
            .map(|(unit, _)| worth.get(unit).copied().unwrap_or(0.0))
            .collect();
        worths.sort_by(f64::total_cmp);
        let middle = worths.get(worths.len() / 2).copied().unwrap_or(0.0);
        let carried = self.carried_from();
        for (unit, class) in classes {
            let at = self.material.units[unit].at;
            let (page, statement) = self.statement(at);
            let weighty = worth.get(&unit).copied().unwrap_or(0.0) >= middle;
            let section = match class {
                Class::Open if page.stem.date() >= carried => Section::CarriedForward,
                Class::Outcome if weighty => Section::Milestones,
                Class::Decision => Section::Trajectory,
                _ if sections::tells_change(&statement.text) && class != Class::Open => {
                    Section::Trajectory
                }
                _ => Section::Themes,
            };
            table.insert(unit, section);
        }
        rule(table, Section::Themes)
    }

    /// Tells why lines were passed over, where it is not the budget.
    fn left_out(
        &self,
        sections: &[(Section, Vec<Item>)],
        repeats: &[usize],
    ) -> Vec<(Address, LeftOut)> {
        let mut reached: BTreeSet<(&Stem, u32)> = BTreeSet::new();
        for citation in
            sections.iter().flat_map(|(_, items)| items).filter_map(|i| i.citation.as_ref())
        {
            for (stem, lines) in citation.files() {
                reached.extend(lines.iter().map(|line| (stem, line)));
            }
        }
        let mut reasons: BTreeMap<Address, LeftOut> = BTreeMap::new();
        let mut tell = |page: &Page, line: u32, reason: LeftOut| {
            if !reached.contains(&(&page.stem, line)) {
                reasons.insert(page.address(line), reason);
            }
        };
        let said: BTreeSet<PieceAt> = self
            .material
            .units
            .iter()
            .map(|u| u.at)
            .chain(self.material.repeats.iter().copied())
            .collect();
        for (p, page) in self.material.pages.iter().enumerate() {
            for head in page.heads.iter().filter(|h| h.statement.is_none()) {
                tell(page, head.line, LeftOut::Structure);
            }
            for (s, statement) in page.statements.iter().enumerate() {
                let has_unit = (0..statement.pieces.len())
                    .any(|piece| said.contains(&PieceAt { page: p, statement: s, piece }));
                if self.weekly.is_empty() && !has_unit {
                    for &(_, line) in &statement.lines {
                        tell(page, line, LeftOut::Structure);
                    }
                }
            }
        }
        let near = repeats.iter().map(|&unit| self.material.units[unit].at);
        for at in near.chain(self.material.repeats.iter().copied()) {
            let (page, statement) = self.statement(at);
            let piece = statement.pieces[at.piece];
            for line in statement.lines_of(piece.start, piece.end) {
                tell(page, line, LeftOut::Repeat);
            }
        }
        reasons.into_iter().collect()
    }
}

fn rule(table: HashMap<usize, Section>, other: Section) -> impl Fn(usize) -> Section {
    move |unit| table.get(&unit).copied().unwrap_or(other)
}

/// Tells what a statement is about, by its task box, its heads, and its own words.
fn class_of(page: &Page, statement: &Statement) -> Class {
    if let Some(done) = statement.task {
        return if done { Class::Outcome } else { Class::Open };
    }
    if let Some(class) =
        sections::class_of_head(statement.text[..statement.label].trim_end_matches([':', ' ']))
    {
        return class;
    }
    let own = sections::class_of_words(&statement.text[statement.label..]);
    let lead = statement.lead.and_then(|head| sections::class_of_head(&page.heads[head].text));
    let heading =
        statement.heading.and_then(|head| sections::class_of_head(&page.heads[head].text));
    match lead.or(heading) {
        // A heading such as `Notes` tells less than the words below it.
        Some(Class::Context) | None => own,
        Some(class) => class,
    }
}

fn section_of_class(class: Class) -> Section {
    match class {
        Class::Outcome => Section::KeyOutcomes,
        Class::Decision => Section::Decisions,
        Class::Open => Section::BlockersAndOpenItems,
        Class::Context => Section::Context,
    }
}

fn class_of_section(section: Section) -> Class {
    match section {
        Section::KeyOutcomes | Section::Milestones => Class::Outcome,
        Section::Decisions | Section::Trajectory => Class::Decision,
        Section::BlockersAndOpenItems | Section::CarriedForward => Class::Open,
        Section::Context | Section::Themes => Class::Context,
    }
}

/// Finds the pieces that the weeks' bullets hold; bullets whose words stand in no cited line become
/// pages of their own.
fn kept_by_weeks(pages: &mut Vec<Page>, weeks: &[WeekSource]) -> BTreeMap<PieceAt, Section> {
    /// A bullet of which less is found in its lines was written by somebody.
    const FOUND_PERCENT: usize = 70;
    let mut at_line: HashMap<(&Stem, u32), Vec<(usize, usize)>> = HashMap::new();
    let mut head_at_line: HashMap<(&Stem, u32), usize> = HashMap::new();
    for (p, page) in pages.iter().enumerate() {
        for (s, statement) in page.statements.iter().enumerate() {
            for &(_, line) in &statement.lines {
                at_line.entry((&page.stem, line)).or_default().push((p, s));
            }
        }
        for head in &page.heads {
            head_at_line.insert((&page.stem, head.line), letters(&head.text).len());
        }
    }
    let mut kept = BTreeMap::new();
    let mut written = Vec::new();
    for week in weeks {
        let week_stem = week.period.to_string().parse::<Stem>();
        for (section, item) in &week.items {
            let section = section.unwrap_or(Section::Context);
            let bullet = letters(&item.text);
            let mut found = 0;
            let mut seen = BTreeSet::new();
            for (stem, lines) in item.citation.iter().flat_map(Citation::files) {
                for line in lines.iter() {
                    let statements = at_line.get(&(stem, line)).map_or(&[][..], Vec::as_slice);
                    if statements.is_empty() {
                        found += head_at_line.get(&(stem, line)).copied().unwrap_or(0);
                    }
                    for &(p, s) in statements.iter().filter(|key| seen.insert(**key)) {
                        let statement = &pages[p].statements[s];
                        found += letters(&statement.text[..statement.label]).len();
                        for (piece, cut) in statement.pieces.iter().enumerate() {
                            let words = &statement.text[cut.start..cut.end];
                            let words =
                                letters(&words[super::sentence::after_conjunction(words)..]);
                            if !words.is_empty() && bullet.contains(&words) {
                                found += words.len();
                                kept.entry(PieceAt { page: p, statement: s, piece })
                                    .or_insert(section);
                            }
                        }
                    }
                }
            }
            if found * 100 < bullet.len() * FOUND_PERCENT
                && let Ok(stem) = &week_stem
            {
                written.push((section, page::read_bullet(stem, item)));
            }
        }
    }
    for (section, page) in written {
        for (statement, s) in page.statements.iter().enumerate() {
            for piece in 0..s.pieces.len() {
                kept.insert(PieceAt { page: pages.len(), statement, piece }, section);
            }
        }
        pages.push(page);
    }
    kept
}

/// Returns the letters and digits alone, by which a piece is found again in its bullet.
fn letters(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).collect()
}

/// Returns the lines marked `#keep`, word for word.
///
/// A month keeps those that stand in a weekly bullet: what a person deleted there stays deleted.
fn keeps(pages: &[Page], input: &FoldInput<'_>) -> Vec<(Section, Item)> {
    let month = input.period.grain() == Grain::Month;
    let in_weeks = |address: &Address| {
        let week = Period::containing(Grain::Week, address.stem.date());
        let Some(source) = input.weeks.iter().find(|w| w.period == week) else { return true };
        let citations = source.items.iter().filter_map(|(_, item)| item.citation.as_ref());
        citations
            .filter_map(|c| c.lines_of(&address.stem))
            .any(|lines| lines.contains(address.line))
    };
    let mut kept = Vec::new();
    for (page, log) in pages.iter().zip(input.logs) {
        for statement in page.statements.iter().filter(|s| s.keep) {
            for &(_, number) in &statement.lines {
                let address = page.address(number);
                let Some(line) = log.line(number) else { continue };
                if month && !in_weeks(&address) {
                    continue;
                }
                let class = class_of(page, statement);
                let section = if month {
                    month_section(section_of_class(class))
                } else {
                    section_of_class(class)
                };
                let text = one_line(line.words());
                let citation = Some(Citation::one(address.stem, number));
                kept.push((section, Item { text, citation }));
            }
        }
    }
    kept
}

/// Replaces control characters, which have no place in a bullet.
fn one_line(words: &str) -> String {
    words.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn month_section(section: Section) -> Section {
    match section {
        Section::KeyOutcomes => Section::Milestones,
        Section::Decisions => Section::Trajectory,
        Section::BlockersAndOpenItems => Section::CarriedForward,
        Section::Context => Section::Themes,
        other => other,
    }
}

/// Puts an item into its section, in the order of days.
fn insert(sections: &mut Vec<(Section, Vec<Item>)>, section: Section, item: Item) {
    let at = sections.partition_point(|(s, _)| *s < section);
    if sections.get(at).is_none_or(|(s, _)| *s != section) {
        sections.insert(at, (section, Vec::new()));
    }
    let first = |item: &Item| {
        let citation = item.citation.as_ref()?;
        let (stem, lines) = citation.files().next()?;
        Some((stem.date(), stem.clone(), lines.ranges().first().map(|r| r.0)))
    };
    let items = &mut sections[at].1;
    let key = first(&item);
    let place = items.partition_point(|other| first(other) <= key);
    items.insert(place, item);
}

/// Carries everything over: each line of a week, or each bullet of a month's weeks.
fn whole(input: &FoldInput<'_>) -> Draft {
    let mut draft = Draft::default();
    if input.period.grain() == Grain::Month {
        for (section, item) in input.weeks.iter().flat_map(|week| &week.items) {
            let section = month_section(section.unwrap_or(Section::Context));
            push(&mut draft.sections, section, item.clone());
        }
        draft.sections.sort_by_key(|(section, _)| *section);
        return draft;
    }
    for log in input.logs {
        let page = page::read(log);
        let mut section_of_line = HashMap::new();
        for statement in &page.statements {
            let section = section_of_class(class_of(&page, statement));
            section_of_line.extend(statement.lines.iter().map(|&(_, line)| (line, section)));
        }
        // Headings wait for the first line below them, which says them and cites them.
        let mut waiting: Option<Item> = None;
        let mut last = Section::Context;
        for line in log.lines().iter().filter(|line| line.kind().is_content()) {
            let mut item = waiting.take().unwrap_or(Item { text: String::new(), citation: None });
            cite(&mut item, log.address(line));
            item.text.push_str(&one_line(line.words()));
            if matches!(line.kind(), LineKind::Heading { .. }) {
                if !line.words().is_empty() {
                    item.text.push_str(": ");
                }
                waiting = Some(item);
                continue;
            }
            last = section_of_line.get(&line.number()).copied().unwrap_or(last);
            push(&mut draft.sections, last, item);
        }
        // Headings with nothing below them.
        if let Some(mut item) = waiting {
            item.text.truncate(item.text.trim_end_matches([':', ' ']).len());
            push(&mut draft.sections, last, item);
        }
    }
    draft.sections.sort_by_key(|(section, _)| *section);
    draft
}

fn cite(item: &mut Item, address: Address) {
    let one = Citation::one(address.stem, address.line);
    match &mut item.citation {
        Some(citation) => citation.merge(&one),
        None => item.citation = Some(one),
    }
}

fn push(sections: &mut Vec<(Section, Vec<Item>)>, section: Section, item: Item) {
    match sections.iter_mut().find(|(s, _)| *s == section) {
        Some((_, items)) => items.push(item),
        None => sections.push((section, vec![item])),
    }
}
