//! Makes the draft of a week or a month.
//!
//! A month is chosen from what its weeks kept: the pieces of the log lines that the weeks' bullets
//! hold, and the words of bullets that a person or another program wrote.

mod explain;
mod length;
mod month_sources;
mod pinned;
mod verbatim;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use chrono::NaiveDate;

use crate::{
    engine::{EngineDraft, EngineError, OmissionReason, SummaryInput},
    memory::{
        address::{Address, Citation, Stem},
        item::{Item, SummarySection},
        period::Grain,
    },
};

use self::month_sources::{UserBullets, pieces_in_weeks, user_bullets};
use self::pinned::keep_items;
use length::{LengthEstimator, units_that_fit};

pub(super) use self::explain::explain;
pub(super) use self::pinned::pinned_items;

use super::{
    annotations,
    candidates::{self, CandidateSet, PiecePosition},
    parsed_log::{self, LogStatement, ParsedLog},
    render,
    sections::{self, StatementClass},
    select::{self, UnitRanking},
    sentence,
};

/// What a reader looks for months later is worth more than its words tell: a decision with its reason.
const REASONED_DECISION_FACTOR: f64 = 1.5;

/// What was done is what most look for first.
const OUTCOME_FACTOR: f64 = 1.08;

/// A unit of a month that was open is worth so much where the month went on after it.
const EARLY_OPEN_FACTOR: f64 = 0.6;

/// So many of the last days of a month may carry their open items forward.
const CARRIED_DAYS: i64 = 10;

/// Drafts a week or a month.
///
/// # Errors
///
/// Returns [`EngineError::NothingToSay`] where the sources hold no text, or the budget no statement.
pub(super) fn summarize(input: &SummaryInput<'_>) -> Result<EngineDraft, EngineError> {
    let draft = if input.budget.verbatim {
        verbatim::copy_verbatim(input)
    } else {
        SummaryBuilder::new(input).draft()
    };
    if draft.sections.is_empty() {
        return Err(EngineError::EmptySources { period: input.period });
    }
    Ok(draft)
}

struct SummaryBuilder<'a> {
    input: &'a SummaryInput<'a>,
    material: CandidateSet,
    /// What each unit tells.
    classes: Vec<StatementClass>,
    /// For a month, the section of the weekly bullet that a piece stands in.
    week_sections: BTreeMap<PiecePosition, SummarySection>,
    keep_items: Vec<(SummarySection, Item)>,
    /// For a month, the bullets that a person wrote or changed.
    user_items: Vec<(SummarySection, Item)>,
}

impl<'a> SummaryBuilder<'a> {
    fn new(input: &'a SummaryInput<'a>) -> Self {
        let read = |log| parsed_log::parse_with_language(log, |page| input.counts.language(page));
        let mut pages: Vec<ParsedLog> = input.logs.iter().map(read).collect();
        let month = input.period.grain() == Grain::Month;
        let own = if month { user_bullets(input) } else { UserBullets::default() };
        let weekly =
            if month { pieces_in_weeks(&mut pages, input.weeks, &own) } else { BTreeMap::new() };
        let keeps = keep_items(&pages, input);
        let wanted = |at: PiecePosition| !month || weekly.contains_key(&at);
        let mut material = candidates::collect_candidates(pages, input.counts, wanted);
        let classes = material.units.iter().map(|unit| class_at(&material, &weekly, unit.at));
        let classes: Vec<StatementClass> = classes.collect();
        annotations::annotate(&mut material, &classes);
        Self {
            input,
            material,
            classes,
            week_sections: weekly,
            keep_items: keeps,
            user_items: own.items,
        }
    }

    fn is_month(&self) -> bool {
        self.input.period.grain() == Grain::Month
    }

    fn draft(self) -> EngineDraft {
        let ranking = self.rank();
        let section_of = self.section_rule(&ranking.order, &ranking.values);
        let order = self.choose_units(&ranking, &section_of);
        let mut sections = self.render(&ranking, &order, &section_of);
        if sections.is_empty() && self.keep_items.is_empty() {
            sections.extend(self.cut_to_fit(ranking.order.first().copied()));
        }
        for (section, item) in &self.keep_items {
            insert_item(&mut sections, *section, item.clone());
        }
        let left_out = self.omissions(&sections, &ranking.repeats);
        EngineDraft { sections, omitted: left_out, ..EngineDraft::default() }
    }

    /// How long the body is to get.
    fn target(&self) -> usize {
        self.input.budget.target_chars.min(self.input.budget.limit_chars)
    }

    /// Ranks more units than there is room for: merged bullets and headings cost less or more than the
    /// ranking thinks.
    fn rank(&self) -> UnitRanking {
        let factors = self.factors();
        let own_chars: usize =
            self.user_items.iter().map(|(_, item)| render::bullet_chars(&item.text)).sum();
        let room = self.target().saturating_sub(own_chars);
        let day_share = if self.is_month() { 0.0 } else { select::DAY_SHARE };
        select::rank_units(&self.material, |unit| factors[unit], day_share, room + room / 3 + 200)
    }

    /// Joins units into bullets in sections, with what people wrote among them.
    fn render(
        &self,
        ranking: &UnitRanking,
        order: &[usize],
        section_of: &impl Fn(usize) -> SummarySection,
    ) -> Vec<(SummarySection, Vec<Item>)> {
        let opened = order.iter().filter_map(|unit| ranking.opened_heads.get(unit)).flatten();
        let opened: HashSet<usize> = opened.copied().collect();
        let mut sections = render::render_sections(&self.material, order, section_of, &opened);
        for (section, item) in &self.user_items {
            insert_item(&mut sections, *section, item.clone());
        }
        sections
    }

    /// Returns the units that fill the target, in the order of their ranking.
    fn choose_units(
        &self,
        ranking: &UnitRanking,
        section_of: &impl Fn(usize) -> SummarySection,
    ) -> Vec<usize> {
        let target = self.target();
        let mut file = LengthEstimator::new(self, ranking, section_of);
        let last = units_that_fit(&ranking.cumulative_chars, target, |units| {
            file.body_chars(&ranking.order[..units])
        });
        let mut order = ranking.order[..last].to_vec();
        self.fill_remaining(&mut order, &ranking.order[last..], target, &mut file);
        while !order.is_empty() && file.body_chars(&order) > target {
            order.pop();
        }
        self.ensure_decision(&mut order, &ranking.order, |order| file.body_chars(order) <= target);
        if order.is_empty() && self.user_items.is_empty() {
            // Better one statement over the target than an empty file.
            let short = |unit: &&usize| {
                self.material.units[**unit].requires.is_none()
                    && file.body_chars(&[**unit]) <= self.input.budget.limit_chars
            };
            order.extend(ranking.order.iter().find(short));
        }
        order
    }

    /// Puts the best decision first where none was chosen: no file is without one that has any beneath it
    /// that was told as such.
    fn ensure_decision(
        &self,
        order: &mut Vec<usize>,
        ranked: &[usize],
        mut fits: impl FnMut(&[usize]) -> bool,
    ) {
        let decides = |unit: usize| self.classes[unit] == StatementClass::Decision;
        if order.is_empty() || order.iter().any(|&it| decides(it)) {
            return;
        }
        let alone = |unit: usize| self.material.units[unit].requires.is_none();
        let told =
            |unit: usize| decides(unit) && self.is_marked_decision(self.material.units[unit].at);
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
    fn cut_to_fit(&self, best: Option<usize>) -> Option<(SummarySection, Vec<Item>)> {
        let section =
            if self.is_month() { SummarySection::Themes } else { SummarySection::Context };
        let head = render::body_chars(self.input.period, &[(section, Vec::new())]);
        let room = self.input.budget.limit_chars.saturating_sub(head + render::bullet_chars(""));
        let mut all = self.material.pages.iter().enumerate().flat_map(|(page, p)| {
            (0..p.statements.len()).map(move |statement| PiecePosition {
                page,
                statement,
                piece: 0,
            })
        });
        let wanted = |at: &PiecePosition| {
            let (_, statement) = self.statement(*at);
            (!self.is_month() || self.week_sections.contains_key(at))
                && statement.text.contains(char::is_alphanumeric)
        };
        let best = best.map(|unit| self.material.units[unit].at);
        let at = best.or_else(|| all.find(wanted))?;
        let (page, statement) = self.statement(at);
        let from = statement.pieces.get(at.piece).map_or(0, |piece| piece.start);
        let text = sentence::truncate_at_clause(&statement.text[from..], room);
        let mut lines: Vec<u32> = statement.lines_of(from, from + text.len()).collect();
        lines.extend(statement.header);
        let addresses: Vec<Address> = lines.into_iter().map(|line| page.address(line)).collect();
        let citation = statement.cites.clone().or_else(|| Citation::from_addresses(&addresses));
        let text = render::without_unbalanced_marks(text);
        (!text.is_empty()).then(|| (section, vec![Item { text, citation }]))
    }

    /// Adds later units that still fit into what is left.
    fn fill_remaining(
        &self,
        order: &mut Vec<usize>,
        rest: &[usize],
        target: usize,
        file: &mut LengthEstimator<'_, impl Fn(usize) -> SummarySection>,
    ) {
        /// Each try joins a day anew; a long file has no gap worth so much work.
        const TRIES_MAX: usize = 24;
        const TARGET_MAX: usize = 200_000;
        if target > TARGET_MAX {
            return;
        }
        let mut left = target.saturating_sub(file.body_chars(order));
        let mut tries = 0;
        let mut taken: HashSet<usize> = order.iter().copied().collect();
        for &unit in rest {
            if left < 20 || tries == TRIES_MAX {
                break;
            }
            let found = &self.material.units[unit];
            if found.chars > left || found.requires.is_some_and(|needed| !taken.contains(&needed)) {
                continue;
            }
            tries += 1;
            order.push(unit);
            let now = file.body_chars(order);
            if now <= target {
                left = target - now;
                taken.insert(unit);
            } else {
                order.pop();
            }
        }
    }

    fn statement(&self, at: PiecePosition) -> (&ParsedLog, &LogStatement) {
        let page = &self.material.pages[at.page];
        (page, &page.statements[at.statement])
    }

    /// Returns what each unit is worth for being of its class.
    ///
    /// A decision is what a reader looks for months later; what was open in the first weeks of a
    /// month has mostly been settled since.
    fn factors(&self) -> Vec<f64> {
        let month = self.is_month();
        let carried = self.first_carried_day();
        let factor = |(at, class): (PiecePosition, StatementClass)| match class {
            StatementClass::Decision => self.decision_factor(at),
            StatementClass::Open if month && self.material.pages[at.page].stem.date() < carried => {
                EARLY_OPEN_FACTOR
            }
            StatementClass::Outcome => OUTCOME_FACTOR,
            StatementClass::Open | StatementClass::Context => 1.0,
        };
        let places = self.material.units.iter().map(|unit| unit.at);
        places.zip(self.classes.iter().copied()).map(factor).collect()
    }

    /// Whether a heading, a label, or its first words say of a unit that it is a decision.
    fn is_marked_decision(&self, at: PiecePosition) -> bool {
        let (page, statement) = self.statement(at);
        let piece = statement.pieces[at.piece];
        class_of_heads(page, statement) == Some(StatementClass::Decision)
            || sections::opens_with_decision(&statement.text[piece.start..piece.end])
    }

    /// Returns what a unit is worth for being a decision.
    fn decision_factor(&self, at: PiecePosition) -> f64 {
        let (_, statement) = self.statement(at);
        let piece = statement.pieces[at.piece];
        let words = &statement.text[piece.start..piece.end];
        if sections::gives_reason(words) && self.is_marked_decision(at) {
            REASONED_DECISION_FACTOR
        } else {
            1.0
        }
    }

    /// The first day whose open items are still carried forward.
    fn first_carried_day(&self) -> NaiveDate {
        let last = self.material.pages.iter().map(|p| p.stem.date()).max();
        let last = last.unwrap_or_else(|| self.input.period.last());
        last - chrono::TimeDelta::days(CARRIED_DAYS - 1)
    }

    /// Returns the rule that gives each unit its section.
    fn section_rule(
        &self,
        order: &[usize],
        worth: &HashMap<usize, f64>,
    ) -> impl Fn(usize) -> SummarySection {
        let mut table = HashMap::new();
        if !self.is_month() {
            let mut done: BTreeSet<usize> = BTreeSet::new();
            for &unit in order {
                let found = &self.material.units[unit];
                let section = section_of_class(self.classes[unit]);
                if section == SummarySection::KeyOutcomes {
                    done.extend(found.heading);
                }
                table.insert(unit, section);
            }
            // What surrounds an outcome under one heading is told with it.
            for (unit, section) in &mut table {
                let heading = self.material.units[*unit].heading;
                if *section == SummarySection::Context && heading.is_some_and(|h| done.contains(&h))
                {
                    *section = SummarySection::KeyOutcomes;
                }
            }
            return section_lookup(table, SummarySection::Context);
        }
        let classes: Vec<(usize, StatementClass)> =
            order.iter().map(|&u| (u, self.classes[u])).collect();
        let mut worths: Vec<f64> = classes
            .iter()
            .filter(|(_, class)| {
                matches!(class, StatementClass::Outcome | StatementClass::Decision)
            })
            .map(|(unit, _)| worth.get(unit).copied().unwrap_or(0.0))
            .collect();
        worths.sort_by(f64::total_cmp);
        let middle = worths.get(worths.len() / 2).copied().unwrap_or(0.0);
        let carried = self.first_carried_day();
        for (unit, class) in classes {
            let at = self.material.units[unit].at;
            let (page, statement) = self.statement(at);
            let weighty = worth.get(&unit).copied().unwrap_or(0.0) >= middle;
            let section = match class {
                StatementClass::Open if page.stem.date() >= carried => {
                    SummarySection::CarriedForward
                }
                StatementClass::Outcome if weighty => SummarySection::Milestones,
                StatementClass::Decision => SummarySection::Trajectory,
                _ if sections::mentions_change(&statement.text)
                    && class != StatementClass::Open =>
                {
                    SummarySection::Trajectory
                }
                _ => SummarySection::Themes,
            };
            table.insert(unit, section);
        }
        section_lookup(table, SummarySection::Themes)
    }

    /// Tells why lines were passed over, where it is not the budget.
    fn omissions(
        &self,
        sections: &[(SummarySection, Vec<Item>)],
        repeats: &[usize],
    ) -> Vec<(Address, OmissionReason)> {
        let mut reached: BTreeSet<(&Stem, u32)> = BTreeSet::new();
        for citation in
            sections.iter().flat_map(|(_, items)| items).filter_map(|i| i.citation.as_ref())
        {
            for (stem, lines) in citation.files() {
                reached.extend(lines.iter().map(|line| (stem, line)));
            }
        }
        let mut reasons: BTreeMap<Address, OmissionReason> = BTreeMap::new();
        let mut tell = |page: &ParsedLog, line: u32, reason: OmissionReason| {
            if !reached.contains(&(&page.stem, line)) {
                reasons.insert(page.address(line), reason);
            }
        };
        let said: BTreeSet<PiecePosition> = self
            .material
            .units
            .iter()
            .map(|u| u.at)
            .chain(self.material.repeats.iter().copied())
            .collect();
        for (p, page) in self.material.pages.iter().enumerate() {
            for head in page.heads.iter().filter(|h| h.statement.is_none()) {
                tell(page, head.line, OmissionReason::Structure);
            }
            for (s, statement) in page.statements.iter().enumerate() {
                let has_unit = (0..statement.pieces.len())
                    .any(|piece| said.contains(&PiecePosition { page: p, statement: s, piece }));
                if !self.is_month() && !has_unit {
                    for &(_, line) in &statement.lines {
                        tell(page, line, OmissionReason::Structure);
                    }
                }
            }
        }
        let near = repeats.iter().map(|&unit| self.material.units[unit].at);
        for at in near.chain(self.material.repeats.iter().copied()) {
            let (page, statement) = self.statement(at);
            let piece = statement.pieces[at.piece];
            for line in statement.lines_of(piece.start, piece.end) {
                tell(page, line, OmissionReason::Repeat);
            }
        }
        reasons.into_iter().collect()
    }
}

/// Returns the rule that a table gives, and `other` for what is not in it.
fn section_lookup(
    table: HashMap<usize, SummarySection>,
    other: SummarySection,
) -> impl Fn(usize) -> SummarySection {
    move |unit| table.get(&unit).copied().unwrap_or(other)
}

/// Tells what a piece is about, by the week that holds it, by structure, and then by its words.
fn class_at(
    material: &CandidateSet,
    weekly: &BTreeMap<PiecePosition, SummarySection>,
    at: PiecePosition,
) -> StatementClass {
    if let Some(section) = weekly.get(&at) {
        return class_of_section(*section);
    }
    let page = &material.pages[at.page];
    let statement = &page.statements[at.statement];
    let piece = statement.pieces[at.piece];
    class_of(page, statement, &statement.text[piece.start..piece.end])
}

/// Tells what `words` of a statement are about, by its task box, its heads, and themselves.
pub(super) fn class_of(page: &ParsedLog, statement: &LogStatement, words: &str) -> StatementClass {
    if let Some(done) = statement.task {
        return if done { StatementClass::Outcome } else { StatementClass::Open };
    }
    match class_of_heads(page, statement) {
        // A heading such as `Notes` tells less than the words below it.
        Some(StatementClass::Context) | None => {
            sections::class_of_words(words, statement.label > 0)
        }
        Some(class) => class,
    }
}

/// Tells what the label and the heads of a statement say about it.
fn class_of_heads(page: &ParsedLog, statement: &LogStatement) -> Option<StatementClass> {
    let label = statement.text[..statement.label].trim_end_matches([':', ' ']);
    let head =
        |head: Option<usize>| head.and_then(|head| sections::class_of_head(&page.heads[head].text));
    sections::class_of_head(label).or_else(|| head(statement.lead).or(head(statement.heading)))
}

fn section_of_class(class: StatementClass) -> SummarySection {
    match class {
        StatementClass::Outcome => SummarySection::KeyOutcomes,
        StatementClass::Decision => SummarySection::Decisions,
        StatementClass::Open => SummarySection::BlockersAndOpenItems,
        StatementClass::Context => SummarySection::Context,
    }
}

fn class_of_section(section: SummarySection) -> StatementClass {
    match section {
        SummarySection::KeyOutcomes | SummarySection::Milestones => StatementClass::Outcome,
        SummarySection::Decisions | SummarySection::Trajectory => StatementClass::Decision,
        SummarySection::BlockersAndOpenItems | SummarySection::CarriedForward => {
            StatementClass::Open
        }
        SummarySection::Context | SummarySection::Themes => StatementClass::Context,
    }
}

fn month_section(section: SummarySection) -> SummarySection {
    match section {
        SummarySection::KeyOutcomes => SummarySection::Milestones,
        SummarySection::Decisions => SummarySection::Trajectory,
        SummarySection::BlockersAndOpenItems => SummarySection::CarriedForward,
        SummarySection::Context => SummarySection::Themes,
        other => other,
    }
}

/// Puts an item into its section, in the order of days.
fn insert_item(
    sections: &mut Vec<(SummarySection, Vec<Item>)>,
    section: SummarySection,
    item: Item,
) {
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
