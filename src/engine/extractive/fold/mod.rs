//! Makes the draft of a week or a month.
//!
//! A month is chosen from what its weeks kept: the pieces of the log lines that the weeks' bullets
//! hold, and the words of bullets that a person or another program wrote.

mod explained;
mod length;
mod standing;
mod weeks;
mod whole;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use chrono::NaiveDate;

use crate::{
    engine::{Draft, EngineError, FoldInput, LeftOut},
    memory::{
        address::{Address, Citation, Stem},
        item::{Item, Section},
        period::Grain,
    },
};

use length::{Length, fitting};
use standing::keeps;
use weeks::{Own, kept_by_weeks, written_by_people};

pub(super) use explained::explain;
pub(super) use standing::standing;

use super::{
    gloss,
    material::{self, Material, PieceAt},
    page::{self, Page, Statement},
    render,
    sections::{self, Class},
    select::{self, Ranking},
    sentence,
};

/// What a reader looks for months later is worth more than its words tell: a decision with its reason.
const WITH_REASON: f64 = 1.5;

/// What was done is what most look for first.
const OUTCOME: f64 = 1.08;

/// A unit of a month that was open is worth so much where the month went on after it.
const STALE_OPEN: f64 = 0.6;

/// So many of the last days of a month may carry their open items forward.
const CARRIED_DAYS: i64 = 10;

/// Drafts a week or a month.
///
/// # Errors
///
/// Returns [`EngineError::NothingToSay`] where the sources hold no text, or the budget no statement.
pub(super) fn fold(input: &FoldInput<'_>) -> Result<Draft, EngineError> {
    let draft = if input.budget.whole { whole::whole(input) } else { Fold::new(input).draft() };
    if draft.sections.is_empty() {
        return Err(EngineError::NothingToSay { period: input.period });
    }
    Ok(draft)
}

struct Fold<'a> {
    input: &'a FoldInput<'a>,
    material: Material,
    /// What each unit tells.
    classes: Vec<Class>,
    /// For a month, the section of the weekly bullet that a piece stands in.
    weekly: BTreeMap<PieceAt, Section>,
    keeps: Vec<(Section, Item)>,
    /// For a month, the bullets that a person wrote or changed.
    own: Vec<(Section, Item)>,
}

impl<'a> Fold<'a> {
    fn new(input: &'a FoldInput<'a>) -> Self {
        let read = |log| page::read_in(log, |page| input.counts.language(page));
        let mut pages: Vec<Page> = input.logs.iter().map(read).collect();
        let month = input.period.grain() == Grain::Month;
        let own = if month { written_by_people(input) } else { Own::default() };
        let weekly =
            if month { kept_by_weeks(&mut pages, input.weeks, &own) } else { BTreeMap::new() };
        let keeps = keeps(&pages, input);
        let wanted = |at: PieceAt| !month || weekly.contains_key(&at);
        let mut material = material::gather(pages, input.counts, wanted);
        let classes = material.units.iter().map(|unit| class_at(&material, &weekly, unit.at));
        let classes: Vec<Class> = classes.collect();
        gloss::add(&mut material, &classes);
        Self { input, material, classes, weekly, keeps, own: own.items }
    }

    fn is_month(&self) -> bool {
        self.input.period.grain() == Grain::Month
    }

    fn draft(self) -> Draft {
        let ranking = self.rank();
        let section_of = self.section_rule(&ranking.order, &ranking.worth);
        let order = self.choose(&ranking, &section_of);
        let mut sections = self.print(&ranking, &order, &section_of);
        if sections.is_empty() && self.keeps.is_empty() {
            sections.extend(self.cut_to_fit(ranking.order.first().copied()));
        }
        for (section, item) in &self.keeps {
            insert(&mut sections, *section, item.clone());
        }
        let left_out = self.left_out(&sections, &ranking.repeats);
        Draft { sections, left_out, ..Draft::default() }
    }

    /// How long the body is to get.
    fn target(&self) -> usize {
        self.input.budget.target_chars.min(self.input.budget.limit_chars)
    }

    /// Ranks more units than there is room for: merged bullets and headings cost less or more than the
    /// ranking thinks.
    fn rank(&self) -> Ranking {
        let factors = self.factors();
        let own_chars: usize =
            self.own.iter().map(|(_, item)| render::bullet_chars(&item.text)).sum();
        let room = self.target().saturating_sub(own_chars);
        let day_share = if self.is_month() { 0.0 } else { select::DAY_SHARE };
        select::rank(&self.material, |unit| factors[unit], day_share, room + room / 3 + 200)
    }

    /// Joins units into bullets in sections, with what people wrote among them.
    fn print(
        &self,
        ranking: &Ranking,
        order: &[usize],
        section_of: &impl Fn(usize) -> Section,
    ) -> Vec<(Section, Vec<Item>)> {
        let opened = order.iter().filter_map(|unit| ranking.brought.get(unit)).flatten();
        let opened: HashSet<usize> = opened.copied().collect();
        let mut sections = render::sections(&self.material, order, section_of, &opened);
        for (section, item) in &self.own {
            insert(&mut sections, *section, item.clone());
        }
        sections
    }

    /// Returns the units that fill the target, in the order of their ranking.
    fn choose(&self, ranking: &Ranking, section_of: &impl Fn(usize) -> Section) -> Vec<usize> {
        let target = self.target();
        let mut file = Length::new(self, ranking, section_of);
        let last = fitting(&ranking.filled, target, |units| file.of(&ranking.order[..units]));
        let mut order = ranking.order[..last].to_vec();
        self.fill(&mut order, &ranking.order[last..], target, &mut file);
        while !order.is_empty() && file.of(&order) > target {
            order.pop();
        }
        self.keep_a_decision(&mut order, &ranking.order, |order| file.of(order) <= target);
        if order.is_empty() && self.own.is_empty() {
            // Better one statement over the target than an empty file.
            let short = |unit: &&usize| {
                self.material.units[**unit].needs.is_none()
                    && file.of(&[**unit]) <= self.input.budget.limit_chars
            };
            order.extend(ranking.order.iter().find(short));
        }
        order
    }

    /// Puts the best decision first where none was chosen: no file is without one that has any beneath it
    /// that was told as such.
    fn keep_a_decision(
        &self,
        order: &mut Vec<usize>,
        ranked: &[usize],
        mut fits: impl FnMut(&[usize]) -> bool,
    ) {
        let decides = |unit: usize| self.classes[unit] == Class::Decision;
        if order.is_empty() || order.iter().any(|&it| decides(it)) {
            return;
        }
        let alone = |unit: usize| self.material.units[unit].needs.is_none();
        let told =
            |unit: usize| decides(unit) && self.is_told_as_decision(self.material.units[unit].at);
        let Some(&best) = ranked.iter().find(|&&it| told(it) && alone(it)) else { return };
        let mut with = vec![best];
        with.extend(order.iter());
        while with.len() > 2 && !fits(&with) {
            with.pop();
        }
        if fits(&with) {
            *order = with;
        }
    }

    /// Returns as much of the best statement as fits, where none fits as it stands.
    fn cut_to_fit(&self, best: Option<usize>) -> Option<(Section, Vec<Item>)> {
        let section = if self.is_month() { Section::Themes } else { Section::Context };
        let head = render::body_chars(self.input.period, &[(section, Vec::new())]);
        let room = self.input.budget.limit_chars.saturating_sub(head + render::bullet_chars(""));
        let mut all = self.material.pages.iter().enumerate().flat_map(|(page, p)| {
            (0..p.statements.len()).map(move |statement| PieceAt { page, statement, piece: 0 })
        });
        let wanted = |at: &PieceAt| {
            let (_, statement) = self.statement(*at);
            (!self.is_month() || self.weekly.contains_key(at))
                && statement.text.contains(char::is_alphanumeric)
        };
        let best = best.map(|unit| self.material.units[unit].at);
        let at = best.or_else(|| all.find(wanted))?;
        let (page, statement) = self.statement(at);
        let from = statement.pieces.get(at.piece).map_or(0, |piece| piece.start);
        let text = sentence::cut(&statement.text[from..], room);
        let mut lines: Vec<u32> = statement.lines_of(from, from + text.len()).collect();
        lines.extend(statement.header);
        let addresses: Vec<Address> = lines.into_iter().map(|line| page.address(line)).collect();
        let citation = statement.cites.clone().or_else(|| Citation::from_addresses(&addresses));
        let text = render::balanced(text);
        (!text.is_empty()).then(|| (section, vec![Item { text, citation }]))
    }

    /// Adds later units that still fit into what is left.
    fn fill(
        &self,
        order: &mut Vec<usize>,
        rest: &[usize],
        target: usize,
        file: &mut Length<'_, impl Fn(usize) -> Section>,
    ) {
        /// Each try joins a day anew; a long file has no gap worth so much work.
        const TRIES_MAX: usize = 24;
        const TARGET_MAX: usize = 200_000;
        if target > TARGET_MAX {
            return;
        }
        let mut left = target.saturating_sub(file.of(order));
        let mut tries = 0;
        let mut taken: HashSet<usize> = order.iter().copied().collect();
        for &unit in rest {
            if left < 20 || tries == TRIES_MAX {
                break;
            }
            let found = &self.material.units[unit];
            if found.chars > left || found.needs.is_some_and(|needed| !taken.contains(&needed)) {
                continue;
            }
            tries += 1;
            order.push(unit);
            let now = file.of(order);
            if now <= target {
                left = target - now;
                taken.insert(unit);
            } else {
                order.pop();
            }
        }
    }

    fn statement(&self, at: PieceAt) -> (&Page, &Statement) {
        let page = &self.material.pages[at.page];
        (page, &page.statements[at.statement])
    }

    /// Returns what each unit is worth for being of its class.
    ///
    /// A decision is what a reader looks for months later; what was open in the first weeks of a
    /// month has mostly been settled since.
    fn factors(&self) -> Vec<f64> {
        let month = self.is_month();
        let carried = self.carried_from();
        let factor = |(at, class): (PieceAt, Class)| match class {
            Class::Decision => self.decision(at),
            Class::Open if month && self.material.pages[at.page].stem.date() < carried => {
                STALE_OPEN
            }
            Class::Outcome => OUTCOME,
            Class::Open | Class::Context => 1.0,
        };
        let places = self.material.units.iter().map(|unit| unit.at);
        places.zip(self.classes.iter().copied()).map(factor).collect()
    }

    /// Whether a heading, a label, or its first words say of a unit that it is a decision.
    fn is_told_as_decision(&self, at: PieceAt) -> bool {
        let (page, statement) = self.statement(at);
        let piece = statement.pieces[at.piece];
        class_of_heads(page, statement) == Some(Class::Decision)
            || sections::opens_with_decision(&statement.text[piece.start..piece.end])
    }

    /// Returns what a unit is worth for being a decision.
    fn decision(&self, at: PieceAt) -> f64 {
        let (_, statement) = self.statement(at);
        let piece = statement.pieces[at.piece];
        let words = &statement.text[piece.start..piece.end];
        if sections::gives_reason(words) && self.is_told_as_decision(at) {
            WITH_REASON
        } else {
            1.0
        }
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
        let mut table = HashMap::new();
        if !self.is_month() {
            let mut done: BTreeSet<usize> = BTreeSet::new();
            for &unit in order {
                let found = &self.material.units[unit];
                let section = section_of_class(self.classes[unit]);
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
        let classes: Vec<(usize, Class)> = order.iter().map(|&u| (u, self.classes[u])).collect();
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
                if !self.is_month() && !has_unit {
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

/// Returns the rule that a table gives, and `other` for what is not in it.
fn rule(table: HashMap<usize, Section>, other: Section) -> impl Fn(usize) -> Section {
    move |unit| table.get(&unit).copied().unwrap_or(other)
}

/// Tells what a piece is about, by the week that holds it, by structure, and then by its words.
fn class_at(material: &Material, weekly: &BTreeMap<PieceAt, Section>, at: PieceAt) -> Class {
    if let Some(section) = weekly.get(&at) {
        return class_of_section(*section);
    }
    let page = &material.pages[at.page];
    let statement = &page.statements[at.statement];
    let piece = statement.pieces[at.piece];
    class_of(page, statement, &statement.text[piece.start..piece.end])
}

/// Tells what `words` of a statement are about, by its task box, its heads, and themselves.
pub(super) fn class_of(page: &Page, statement: &Statement, words: &str) -> Class {
    if let Some(done) = statement.task {
        return if done { Class::Outcome } else { Class::Open };
    }
    match class_of_heads(page, statement) {
        // A heading such as `Notes` tells less than the words below it.
        Some(Class::Context) | None => sections::class_of_words(words, statement.label > 0),
        Some(class) => class,
    }
}

/// Tells what the label and the heads of a statement say about it.
fn class_of_heads(page: &Page, statement: &Statement) -> Option<Class> {
    let label = statement.text[..statement.label].trim_end_matches([':', ' ']);
    let head =
        |head: Option<usize>| head.and_then(|head| sections::class_of_head(&page.heads[head].text));
    sections::class_of_head(label).or_else(|| head(statement.lead).or(head(statement.heading)))
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

#[cfg(test)]
mod tests;
