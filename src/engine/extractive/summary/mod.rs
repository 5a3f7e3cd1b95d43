//! Drafts a week or a month.
//!
//! A week is made of pieces of log lines, a [month](month) of bullets of its weeks.

mod conversation;
mod explain;
mod length;
mod month;
mod pinned;
mod verbatim;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

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
    worth,
};

/// The bonus of a decision with its reason, which readers look for months later.
const REASONED_DECISION_FACTOR: f64 = 1.5;

/// The bonus of an outcome, which most readers look for first.
const OUTCOME_FACTOR: f64 = 1.08;

/// Drafts a week or a month. Fails with [`EngineError::EmptySources`] if the sources contain no text or no
/// statement fits the budget.
pub(super) fn summarize(input: &SummaryInput<'_>) -> Result<EngineDraft, EngineError> {
    let draft = if input.budget.verbatim {
        verbatim::copy_verbatim(input)
    } else if input.period.grain() == Grain::Month {
        month::draft_month(input)
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
    keep_items: Vec<(SummarySection, Item)>,
}

impl<'a> SummaryBuilder<'a> {
    fn new(input: &'a SummaryInput<'a>) -> Self {
        let read = |log| parsed_log::parse_with_language(log, |page| input.counts.language(page));
        let pages: Vec<ParsedLog> = input.logs.iter().map(read).collect();
        let keep_items = keep_items(&pages, input);
        let conversations = Conversations::of(&pages);
        let is_candidate = |pages: &[ParsedLog], at| conversations.allows(pages, at);
        let mut material = candidates::collect_candidates(pages, input.counts, is_candidate);
        let class_of = |unit: &CandidateUnit| {
            let (page, statement) = unit.at.statement_in(&material.pages);
            let class = || {
                let words = statement.piece_text(unit.at.piece);
                match sections::class_of(page, statement, words) {
                    StatementClass::Decision if sections::follows_decision(page, statement) => {
                        sections::class_of_words(words, false)
                    }
                    class => class,
                }
            };
            conversations.kind_of(unit.at).map_or_else(class, SpokenKind::class)
        };
        let mut classes: Vec<StatementClass> = material.units.iter().map(class_of).collect();
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
        // A task that was done within the period is no open one.
        let ticked = annotations::ticked_tasks(&material.pages);
        for (unit, class) in material.units.iter().zip(&mut classes) {
            if ticked.contains_key(&(unit.at.page, unit.at.statement)) {
                *class = StatementClass::Outcome;
            }
        }
        Self { input, material, classes, keep_items }
    }

    fn draft(self) -> EngineDraft {
        let ranking = self.rank();
        let section_of = self.section_rule(&ranking.order);
        let order = self.choose_units(&ranking, &section_of);
        let mut sections = self.render(&ranking, &order, &section_of);
        if sections.is_empty() && self.keep_items.is_empty() {
            let best = ranking.order.first().map(|it| self.material.units[*it].at);
            let section = SummarySection::Context;
            sections.extend(cut_to_fit(self.input, &self.material, section, best, |_| true));
        }
        for (section, item) in &self.keep_items {
            insert_item(&mut sections, *section, item.clone());
        }
        let omitted = omissions(&self.material, &sections, &ranking.repeats, false);
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
        let room = self.target();
        let chars = room + room / 3 + 200;
        select::rank_units(&self.material, |unit| factors[unit], select::DAY_SHARE, chars)
    }

    /// Joins units into bullets in sections.
    fn render(
        &self,
        ranking: &UnitRanking,
        order: &[usize],
        section_of: &impl Fn(usize) -> SummarySection,
    ) -> Vec<(SummarySection, Vec<Item>)> {
        let opened = order.iter().filter_map(|unit| ranking.opened_heads.get(unit)).flatten();
        let opened: HashSet<usize> = opened.copied().collect();
        render::render_sections(&self.material, order, section_of, &opened)
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
        self.ensure_decisions(&mut order, ranking, |order| file.body_chars(order) <= target);
        if order.is_empty() {
            // One statement over the target is better than an empty file.
            let fits_limit = |unit: &&usize| {
                self.material.units[**unit].requires.is_none()
                    && file.body_chars(&[**unit]) <= self.input.budget.limit_chars
            };
            order.extend(ranking.order.iter().find(fits_limit));
        }
        order
    }

    /// Puts the decisions first that say so (`Decided: …`) and that were not chosen, best first, as long as all
    /// decisions take at most a third of the room. A reader misses them more than the last details.
    fn ensure_decisions(
        &self,
        order: &mut Vec<usize>,
        ranking: &UnitRanking,
        mut fits: impl FnMut(&[usize]) -> bool,
    ) {
        /// Each addition renders days again.
        const ADDED_MAX: usize = 6;
        const SHARE_MAX: usize = 3;
        let decides = |unit: usize| self.classes[unit] == StatementClass::Decision;
        // What is only below the title of a decision may be about anything.
        let says_so = |at: PiecePosition| {
            let statement = self.statement(at).1;
            sections::opens_with_decision(statement.piece_text(at.piece))
                || at.piece == 0 && sections::opens_with_decision(&statement.text)
        };
        let is_eligible = |unit: usize| {
            let found = &self.material.units[unit];
            decides(unit) && says_so(found.at) && found.requires.is_none()
        };
        let chars = |unit: usize| self.material.units[unit].chars;
        let seen: HashSet<usize> = ranking.order.iter().chain(&ranking.repeats).copied().collect();
        let rest = (0..self.material.units.len()).filter(|it| !seen.contains(it));
        let candidates = ranking.order.iter().copied().chain(rest);
        let mut added = 0;
        for unit in candidates.filter(|it| is_eligible(*it)) {
            if order.is_empty() || added == ADDED_MAX {
                return;
            }
            let taken: usize = order.iter().filter(|it| decides(**it)).map(|it| chars(*it)).sum();
            let has_room = taken == 0 || (taken + chars(unit)) * SHARE_MAX <= self.target();
            let statement = |unit: usize| {
                let at = self.material.units[unit].at;
                (at.page, at.statement)
            };
            let is_said = |it: &usize| {
                statement(*it) == statement(unit)
                    || decides(*it) && select::are_repeats(&self.material, *it, unit)
            };
            if !has_room || order.iter().any(is_said) {
                continue;
            }
            let mut with = vec![unit];
            with.extend(order.iter());
            while !fits(&with) {
                let is_required = |it: usize| {
                    with.iter().any(|other| self.material.units[*other].requires == Some(it))
                };
                // The new one stays, and one other.
                let last = with.iter().rposition(|it| !decides(*it) && !is_required(*it));
                let Some(last) = last.filter(|_| with.len() > 2) else { break };
                with.remove(last);
            }
            if fits(&with) {
                *order = with;
                added += 1;
            }
        }
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

    /// Returns the factor of each unit for its class. Readers look for decisions months later.
    fn factors(&self) -> Vec<f64> {
        let factor = |(at, class): (PiecePosition, StatementClass)| match class {
            StatementClass::Decision => self.decision_factor(at),
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

    /// Returns the function that gives each unit its section.
    fn section_rule(&self, order: &[usize]) -> impl Fn(usize) -> SummarySection {
        let mut table = HashMap::new();
        let mut done: BTreeSet<usize> = BTreeSet::new();
        // Decisions may be added that are not ranked.
        let is_decision = |it: &usize| self.classes[*it] == StatementClass::Decision;
        let decisions = (0..self.classes.len()).filter(is_decision);
        for unit in order.iter().copied().chain(decisions) {
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
            if *section == SummarySection::Context && heading.is_some_and(|h| done.contains(&h)) {
                *section = SummarySection::KeyOutcomes;
            }
        }
        section_lookup(table, SummarySection::Context)
    }
}

/// Returns as much of the best statement as fits, for the case that no whole one does.
fn cut_to_fit(
    input: &SummaryInput<'_>,
    material: &CandidateSet,
    section: SummarySection,
    best: Option<PiecePosition>,
    is_allowed: impl Fn(PiecePosition) -> bool,
) -> Option<(SummarySection, Vec<Item>)> {
    let head = render::body_chars(input.period, &[(section, Vec::new())]);
    let room = input.budget.limit_chars.saturating_sub(head + render::bullet_chars(""));
    let mut all = material.pages.iter().enumerate().flat_map(|(page, p)| {
        let statements = 0..p.statements.len();
        statements.map(move |statement| PiecePosition { page, statement, piece: 0 })
    });
    let has_words = |at: &PiecePosition| {
        let (_, statement) = at.statement_in(&material.pages);
        is_allowed(*at) && statement.text.contains(char::is_alphanumeric)
    };
    let at = best.or_else(|| all.find(has_words))?;
    let (page, statement) = at.statement_in(&material.pages);
    let from = statement.pieces.get(at.piece).map_or(0, |piece| piece.start);
    let text = pieces::truncate_at_clause(&statement.text[from..], room);
    let mut lines: Vec<u32> = statement.lines_of(from, from + text.len()).collect();
    lines.extend(statement.header);
    let addresses: Vec<Address> = lines.into_iter().map(|line| page.address(line)).collect();
    let citation = statement.cites.clone().or_else(|| Citation::from_addresses(&addresses));
    let text = render::without_unbalanced_marks(text);
    (!text.is_empty()).then(|| (section, vec![Item { text, citation }]))
}

/// Returns why lines were left out, where the reason is not the budget.
fn omissions(
    material: &CandidateSet,
    sections: &[(SummarySection, Vec<Item>)],
    repeats: &[usize],
    is_month: bool,
) -> Vec<(Address, OmissionReason)> {
    let mut reached: BTreeSet<(&Stem, u32)> = BTreeSet::new();
    for citation in sections.iter().flat_map(|(_, items)| items).filter_map(|i| i.citation.as_ref())
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
    let pieces_with_content: BTreeSet<PiecePosition> =
        material.units.iter().map(|u| u.at).chain(material.repeats.iter().copied()).collect();
    for (p, page) in material.pages.iter().enumerate() {
        for head in page.heads.iter().filter(|h| h.statement.is_none()) {
            add(page, head.line, OmissionReason::Structure);
        }
        for (s, statement) in page.statements.iter().enumerate() {
            let has_content = (0..statement.pieces.len()).any(|piece| {
                pieces_with_content.contains(&PiecePosition { page: p, statement: s, piece })
            });
            if !is_month && !has_content {
                for &(_, line) in &statement.lines {
                    add(page, line, OmissionReason::Structure);
                }
            }
        }
    }
    let near = repeats.iter().map(|&unit| material.units[unit].at);
    for at in near.chain(material.repeats.iter().copied()) {
        let (page, statement) = at.statement_in(&material.pages);
        let piece = statement.pieces[at.piece];
        for line in statement.lines_of(piece.start, piece.end) {
            add(page, line, OmissionReason::Repeat);
        }
    }
    reasons.into_iter().collect()
}

fn section_lookup(
    table: HashMap<usize, SummarySection>,
    other: SummarySection,
) -> impl Fn(usize) -> SummarySection {
    move |unit| table.get(&unit).copied().unwrap_or(other)
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
