//! Drafts a week or a month.
//!
//! The candidates of a month are the pieces of log lines that its weeks' bullets contain, and the bullets
//! that a person or another program wrote.

mod conversation;
mod explain;
mod length;
mod month_sources;
mod pinned;
mod verbatim;
pub(super) mod worth;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use chrono::NaiveDate;

use crate::{
    engine::{EngineDraft, EngineError, OmissionReason, SummaryInput},
    memory::{
        address::{Address, Citation, Stem},
        item::{Item, SummarySection},
        period::Grain,
    },
    text::pieces,
};

use self::conversation::{Conversations, SpokenKind};
use self::month_sources::{UserBullets, pieces_in_weeks, user_bullets};
use self::pinned::keep_items;
use length::{LengthEstimator, units_that_fit};

pub(super) use self::explain::explain;
pub(super) use self::pinned::pinned_items;

use super::{
    annotations,
    candidates::{self, CandidateSet, CandidateUnit, PiecePosition},
    parsed_log::{self, LogStatement, ParsedLog},
    render,
    sections::{self, StatementClass},
    select::{self, UnitRanking},
};

/// The bonus of a decision with its reason, which readers look for months later.
const REASONED_DECISION_FACTOR: f64 = 1.5;

/// The bonus of an outcome, which most readers look for first.
const OUTCOME_FACTOR: f64 = 1.08;

/// The factor of an open item from the earlier part of a month; most are settled by its end.
const EARLY_OPEN_FACTOR: f64 = 0.6;

/// The last days of a month whose open items are carried forward.
const CARRIED_DAYS: i64 = 10;

/// Drafts a week or a month. Fails with [`EngineError::EmptySources`] if the sources contain no text or no
/// statement fits the budget.
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
    classes: Vec<StatementClass>,
    /// For a month, the section of the weekly bullet that contains a piece.
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
        let bullets = if month { user_bullets(input) } else { UserBullets::default() };
        let week_sections = if month {
            pieces_in_weeks(&mut pages, input.weeks, &bullets)
        } else {
            BTreeMap::new()
        };
        let keep_items = keep_items(&pages, input);
        let conversations = Conversations::of(&pages);
        let is_candidate = |pages: &[ParsedLog], at: PiecePosition| {
            if month { week_sections.contains_key(&at) } else { conversations.allows(pages, at) }
        };
        let mut material = candidates::collect_candidates(pages, input.counts, is_candidate);
        let units = material.units.iter();
        let mut classes: Vec<StatementClass> = units
            .map(|unit| {
                let spoken = conversations.kind_of(unit.at).filter(|_| !month);
                let class = || class_at(&material, &week_sections, unit.at);
                spoken.map_or_else(class, SpokenKind::class)
            })
            .collect();
        // A statement that refers to the one before it goes into the same section.
        for (index, unit) in material.units.iter().enumerate() {
            let (_, statement) = unit.at.statement_in(&material.pages);
            if let Some(required) = unit.requires.filter(|_| statement.label == 0) {
                classes[index] = classes[required];
            }
        }
        annotations::annotate(&mut material, &classes, |at| {
            conversations.kind_of(at) == Some(SpokenKind::Request)
        });
        Self { input, material, classes, week_sections, keep_items, user_items: bullets.items }
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
        let omitted = self.omissions(&sections, &ranking.repeats);
        EngineDraft { sections, omitted, ..EngineDraft::default() }
    }

    /// Returns the target length of the body in characters.
    fn target(&self) -> usize {
        self.input.budget.target_chars.min(self.input.budget.limit_chars)
    }

    /// Ranks more units than there is room for, since merged bullets and headings change the estimated
    /// length.
    fn rank(&self) -> UnitRanking {
        let factors = self.factors();
        let user_chars: usize =
            self.user_items.iter().map(|(_, item)| render::bullet_chars(&item.text)).sum();
        let room = self.target().saturating_sub(user_chars);
        let day_share = if self.is_month() { 0.0 } else { select::DAY_SHARE };
        select::rank_units(&self.material, |unit| factors[unit], day_share, room + room / 3 + 200)
    }

    /// Joins units into bullets in sections and inserts the bullets that people wrote.
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
            // One statement over the target is better than an empty file.
            let fits_limit = |unit: &&usize| {
                self.material.units[**unit].requires.is_none()
                    && file.body_chars(&[**unit]) <= self.input.budget.limit_chars
            };
            order.extend(ranking.order.iter().find(fits_limit));
        }
        order
    }

    /// Puts the best decision first if none was chosen and a source line is marked as one.
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
        let is_eligible = |unit: usize| {
            let found = &self.material.units[unit];
            decides(unit) && self.is_marked_decision(found.at) && found.requires.is_none()
        };
        let Some(&best) = ranked.iter().find(|&&it| is_eligible(it)) else { return };
        let mut with = vec![best];
        with.extend(order.iter());
        while with.len() > 2 && !fits(&with) {
            with.pop();
        }
        if fits(&with) {
            *order = with;
        }
    }

    /// Returns as much of the best statement as fits, for the case that no whole statement does.
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
        let has_words = |at: &PiecePosition| {
            let (_, statement) = self.statement(*at);
            (!self.is_month() || self.week_sections.contains_key(at))
                && statement.text.contains(char::is_alphanumeric)
        };
        let best = best.map(|unit| self.material.units[unit].at);
        let at = best.or_else(|| all.find(has_words))?;
        let (page, statement) = self.statement(at);
        let from = statement.pieces.get(at.piece).map_or(0, |piece| piece.start);
        let text = pieces::truncate_at_clause(&statement.text[from..], room);
        let mut lines: Vec<u32> = statement.lines_of(from, from + text.len()).collect();
        lines.extend(statement.header);
        let addresses: Vec<Address> = lines.into_iter().map(|line| page.address(line)).collect();
        let citation = statement.cites.clone().or_else(|| Citation::from_addresses(&addresses));
        let text = render::without_unbalanced_marks(text);
        (!text.is_empty()).then(|| (section, vec![Item { text, citation }]))
    }

    /// Adds lower-ranked units that still fit into the remaining room.
    fn fill_remaining(
        &self,
        order: &mut Vec<usize>,
        rest: &[usize],
        target: usize,
        file: &mut LengthEstimator<'_, impl Fn(usize) -> SummarySection>,
    ) {
        /// Each try renders a day again; in a long file the gap is not worth that.
        const TRIES_MAX: usize = 24;
        const TARGET_MAX: usize = 200_000;
        if target > TARGET_MAX {
            return;
        }
        let mut left = target.saturating_sub(file.body_chars(order));
        let mut tries = 0;
        let mut chosen: HashSet<usize> = order.iter().copied().collect();
        for &unit in rest {
            if left < 20 || tries == TRIES_MAX {
                break;
            }
            let found = &self.material.units[unit];
            let lacks_required = found.requires.is_some_and(|required| !chosen.contains(&required));
            if found.chars > left || lacks_required {
                continue;
            }
            tries += 1;
            order.push(unit);
            let chars = file.body_chars(order);
            if chars <= target {
                left = target - chars;
                chosen.insert(unit);
            } else {
                order.pop();
            }
        }
    }

    fn statement(&self, at: PiecePosition) -> (&ParsedLog, &LogStatement) {
        at.statement_in(&self.material.pages)
    }

    /// Returns the factor of each unit for its class.
    ///
    /// Readers look for decisions months later; most items that were open in the first weeks of a month
    /// are settled by its end.
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
        let worth = |unit: &CandidateUnit, class| {
            let (page, statement) = self.statement(unit.at);
            let words = statement.piece_text(unit.at.piece);
            worth::worth_factor(statement, words, unit.is_routine, class, page.stem.date())
        };
        let classified = self.material.units.iter().zip(self.classes.iter().copied());
        classified.map(|(unit, class)| factor((unit.at, class)) * worth(unit, class)).collect()
    }

    /// Returns whether a heading, a label, or its first words mark a piece as a decision.
    fn is_marked_decision(&self, at: PiecePosition) -> bool {
        let (page, statement) = self.statement(at);
        sections::class_of_heads(page, statement) == Some(StatementClass::Decision)
            || sections::opens_with_decision(statement.piece_text(at.piece))
    }

    fn decision_factor(&self, at: PiecePosition) -> f64 {
        let words = self.statement(at).1.piece_text(at.piece);
        if sections::gives_reason(words) && self.is_marked_decision(at) {
            REASONED_DECISION_FACTOR
        } else {
            1.0
        }
    }

    fn first_carried_day(&self) -> NaiveDate {
        let last = self.material.pages.iter().map(|p| p.stem.date()).max();
        let last = last.unwrap_or_else(|| self.input.period.last());
        last - chrono::TimeDelta::days(CARRIED_DAYS - 1)
    }

    /// Returns the function that gives each unit its section; `worth` holds the values of units.
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
            // Context under the heading of an outcome goes to the same section.
            for (unit, section) in &mut table {
                let found = &self.material.units[*unit];
                let is_own = !self.statement(found.at).1.is_pasted;
                let heading = found.heading.filter(|_| is_own);
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
                    && !statement.is_pasted
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

    /// Returns why lines were left out, where the reason is not the budget.
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
        let mut add = |page: &ParsedLog, line: u32, reason: OmissionReason| {
            if !reached.contains(&(&page.stem, line)) {
                reasons.insert(page.address(line), reason);
            }
        };
        let pieces_with_content: BTreeSet<PiecePosition> = self
            .material
            .units
            .iter()
            .map(|u| u.at)
            .chain(self.material.repeats.iter().copied())
            .collect();
        for (p, page) in self.material.pages.iter().enumerate() {
            for head in page.heads.iter().filter(|h| h.statement.is_none()) {
                add(page, head.line, OmissionReason::Structure);
            }
            for (s, statement) in page.statements.iter().enumerate() {
                let has_content = (0..statement.pieces.len()).any(|piece| {
                    pieces_with_content.contains(&PiecePosition { page: p, statement: s, piece })
                });
                if !self.is_month() && !has_content {
                    for &(_, line) in &statement.lines {
                        add(page, line, OmissionReason::Structure);
                    }
                }
            }
        }
        let near = repeats.iter().map(|&unit| self.material.units[unit].at);
        for at in near.chain(self.material.repeats.iter().copied()) {
            let (page, statement) = self.statement(at);
            let piece = statement.pieces[at.piece];
            for line in statement.lines_of(piece.start, piece.end) {
                add(page, line, OmissionReason::Repeat);
            }
        }
        reasons.into_iter().collect()
    }
}

fn section_lookup(
    table: HashMap<usize, SummarySection>,
    other: SummarySection,
) -> impl Fn(usize) -> SummarySection {
    move |unit| table.get(&unit).copied().unwrap_or(other)
}

/// Returns the class of a piece: from the weekly section that contains it, else from structure, else from
/// its words.
fn class_at(
    material: &CandidateSet,
    weekly: &BTreeMap<PiecePosition, SummarySection>,
    at: PiecePosition,
) -> StatementClass {
    if let Some(section) = weekly.get(&at) {
        return class_of_section(*section);
    }
    let (page, statement) = at.statement_in(&material.pages);
    sections::class_of(page, statement, statement.piece_text(at.piece))
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

/// Inserts an item into its section, in the order of days.
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
mod shape_tests;
#[cfg(test)]
mod tests;
