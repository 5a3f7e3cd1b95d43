//! Finds the statements that newer ones make obsolete.

use std::{
    collections::{BTreeMap, BTreeSet},
    iter::repeat,
};

use chrono::NaiveDate;

use super::{
    super::similarity::has_conflicting_values,
    statements::DigestStatement,
    stopped::{StoppedThing, is_about},
};
use crate::{
    engine::extractive::{
        as_f64,
        statements::{
            named_thing::Deed,
            replacement::{OlderLine, name_stems},
            terms::StatementTerms,
            word_list::WordList,
        },
    },
    memory::{address::Address, statement::StatementKind},
    text::{
        hash::{HashedMap, HashedSet, hash_bytes},
        lexicon::{SENTENCES, WISDOM},
    },
};

/// A newer statement with this share of the content words of an older one continues it.
const SERIES_OVERLAP: f64 = 0.6;

const SERIES_STEMS_MIN: usize = 3;

/// What mends a thing has as many content words of the complaint about it, and this share of them.
const MENDED_STEMS_MIN: usize = 3;

const MENDED_SHARE_MIN: f64 = 0.4;

/// Of a word in many statements as many of the newest are read.
const READ_MAX: usize = 200;

/// In how many days of few, and in what part of many, a name occurs.
const NAME_DAYS_MIN: usize = 4;

const NAME_DAYS_DIVISOR: usize = 20;

/// Of a word of what was given up as many of the newest statements are read: a name is in few.
const PLANS_READ_MAX: usize = 50;

/// Marks the statements of which a later one says that what they plan was given up, exchanged, moved to another day,
/// made, done, or mended. What replaces another is worth as much. Those of a word in many statements are not all read.
pub(super) fn mark_ended(statements: &mut [DigestStatement]) {
    let mut ended = made(statements);
    ended.extend(done(statements));
    let replaced: Vec<_> = given_up(statements).into_iter().chain(mended(statements)).collect();
    for &(older, newer) in &replaced {
        // Who wanted to know the former value wants to know the new one.
        let inherits = |it: &DigestStatement| says_how_it_is(it.kind) && it.worth.is_finite();
        if inherits(&statements[newer]) && inherits(&statements[older]) {
            statements[newer].worth = statements[newer].worth.max(statements[older].worth);
        }
    }
    for (older, newer) in ended.into_iter().chain(replaced) {
        // Its number is another one once short statements are joined; its line stays.
        statements[older].ended_by = statements[newer].first_line();
    }
}

/// Returns the complaints about which a later statement says that the thing was mended, each with the first such one.
fn mended(statements: &[DigestStatement]) -> Vec<(usize, usize)> {
    let mut with_stem = HashedMap::<Vec<usize>>::default();
    for (at, cure) in statements.iter().enumerate().filter(|it| it.1.plan.mends) {
        for &stem in cure.terms.stems.hashes() {
            with_stem.entry(stem).or_default().push(at);
        }
    }
    let cure_of = |(at, complaint): (usize, &DigestStatement)| {
        let stems = complaint.terms.stems.hashes();
        let mut shared = BTreeMap::<usize, usize>::new();
        for stem in stems {
            let with = with_stem.get(stem).map_or(&[][..], |it| it);
            let later = &with[with.partition_point(|it| *it <= at)..];
            later.iter().take(READ_MAX).for_each(|it| *shared.entry(*it).or_default() += 1);
        }
        let is_enough = |count: usize| {
            count >= MENDED_STEMS_MIN && as_f64(count) >= as_f64(stems.len()) * MENDED_SHARE_MIN
        };
        shared.into_iter().find(|it| is_enough(it.1)).map(|it| (at, it.0))
    };
    let complaints = statements.iter().enumerate();
    complaints.filter(|(_, it)| it.plan.complains && !it.plan.mends).filter_map(cure_of).collect()
}

fn says_how_it_is(kind: StatementKind) -> bool {
    matches!(kind, StatementKind::State | StatementKind::Environment | StatementKind::Decision)
}

/// Returns the open items whose thing a later statement reports as made, each with that one.
fn made(statements: &[DigestStatement]) -> Vec<(usize, usize)> {
    let mut last = BTreeMap::new();
    for (at, statement) in statements.iter().enumerate() {
        last.extend(statement.plan.made.as_ref().map(|it| (it, at)));
    }
    let report_of = |(at, it): (usize, &DigestStatement)| {
        let made = *last.get(it.plan.to_make.as_ref()?)?;
        (made > at).then_some((at, made))
    };
    statements.iter().enumerate().filter_map(report_of).collect()
}

/// Returns the open items of which a later statement reports that just that was done, each with that one.
fn done(statements: &[DigestStatement]) -> Vec<(usize, usize)> {
    let mut reports: BTreeMap<&(usize, StatementTerms), Vec<(usize, &Deed)>> = BTreeMap::new();
    for (at, statement) in statements.iter().enumerate() {
        if let Some(report) = &statement.plan.done {
            reports.entry(&report.key).or_default().push((at, report));
        }
    }
    let report_of = |(at, it): (usize, &DigestStatement)| {
        let task = it.plan.to_do.as_ref()?;
        let reports = reports.get(&task.key)?;
        let later = &reports[reports.partition_point(|it| it.0 <= at)..];
        let done = later.iter().take(READ_MAX).find(|it| task.is_done_by(it.1))?;
        Some((at, done.0))
    };
    statements.iter().enumerate().filter_map(report_of).collect()
}

/// Returns the statements whose plan a later one gives up, exchanges, or moves, each with that one, which ascend.
fn given_up(statements: &[DigestStatement]) -> Vec<(usize, usize)> {
    let replacing = |it: &&DigestStatement| it.plan.replacement.is_some();
    let wanted: HashedSet = statements
        .iter()
        .filter(replacing)
        .flat_map(|it| it.plan.replacement.iter().flat_map(|it| it.stems()))
        .map(|it| hash_bytes(it.as_bytes()))
        .collect();
    let (mut given_up, mut seen) = (Vec::new(), BTreeSet::new());
    if wanted.is_empty() {
        return given_up;
    }
    let mut with_stem = HashedMap::<Vec<usize>>::default();
    for (at, statement) in statements.iter().enumerate() {
        for &stem in statement.terms.stems.hashes().iter().filter(|it| wanted.contains(*it)) {
            with_stem.entry(stem).or_default().push(at);
        }
    }
    let days: BTreeSet<NaiveDate> = statements.iter().map(|it| it.day).collect();
    let days_max = NAME_DAYS_MIN.max(days.len() / NAME_DAYS_DIVISOR);
    let with = |stem: &str| with_stem.get(&hash_bytes(stem.as_bytes())).map_or(&[][..], |it| it);
    let is_rare = |stem: &str| {
        let days: BTreeSet<NaiveDate> =
            with(stem).iter().take(READ_MAX).map(|it| statements[*it].day).collect();
        days.len() <= days_max && with(stem).len() <= READ_MAX
    };
    for (at, newer) in statements.iter().enumerate() {
        let Some(replacement) = &newer.plan.replacement else { continue };
        let earlier = |stem| {
            let all = with(stem);
            let before = &all[..all.partition_point(|it| *it < at)];
            before.iter().rev().take(PLANS_READ_MAX).copied()
        };
        let candidates: BTreeSet<usize> = replacement.stems().flat_map(earlier).collect();
        for older_at in candidates {
            let older = &statements[older_at];
            let is_later = older.day < newer.day || replacement.is_correction;
            if !is_later || seen.contains(&older_at) {
                continue;
            }
            let mut line = OlderLine::of(&older.text, older.day);
            line.is_plan |= older.kind == StatementKind::Decision;
            line.is_rule = older.kind == StatementKind::Rule;
            line.may_change &= says_how_it_is(older.kind);
            let names = &name_stems(&older.text) | &name_stems(&newer.text);
            if replacement.ends(&line, |it| names.contains(it) && is_rare(it)) {
                seen.insert(older_at);
                given_up.push((older_at, at));
            }
        }
    }
    given_up
}

/// Finds what makes a statement obsolete, without comparing each with each.
pub(in crate::engine::extractive) struct NewerStatements {
    /// The statements of each key, oldest first.
    of_key: HashedMap<Vec<usize>>,
    /// The statements with a stem, oldest first.
    with_stem: HashedMap<Vec<usize>>,
    /// The last statement that says that an entity was stopped.
    last_stop: BTreeMap<usize, usize>,
    /// The names of other things that were stopped, by their rarest stem.
    stopped_names: HashedMap<Vec<(usize, StatementTerms)>>,
    /// What runs again, with the statement that says so.
    resumed: Vec<(usize, StoppedThing)>,
}

impl NewerStatements {
    pub(in crate::engine::extractive) fn of(statements: &[DigestStatement]) -> Self {
        let mut of_key = HashedMap::<Vec<usize>>::default();
        let mut with_stem = HashedMap::<Vec<usize>>::default();
        for statement in statements {
            for key in &statement.keys {
                of_key.entry(*key).or_default().push(statement.order);
            }
            for &stem in statement.terms.stems.hashes() {
                with_stem.entry(stem).or_default().push(statement.order);
            }
        }
        let mut last_stop = BTreeMap::new();
        let mut stopped_names = HashedMap::<Vec<(usize, StatementTerms)>>::default();
        for (order, thing) in statements
            .iter()
            .flat_map(|it| it.changed.stopped.iter().map(|thing| (it.order, thing)))
        {
            match thing {
                StoppedThing::Entity(entity) => {
                    last_stop.insert(*entity, order);
                }
                StoppedThing::Named(name) => {
                    let uses = |it: &&u64| with_stem.get(*it).map_or(0, Vec::len);
                    let rarest = name.stems.hashes().iter().min_by_key(|it| (uses(it), **it));
                    if let Some(stem) = rarest {
                        stopped_names.entry(*stem).or_default().push((order, name.clone()));
                    }
                }
            }
        }
        let of_resumed =
            |it: &DigestStatement| it.changed.resumed.clone().into_iter().zip(repeat(it.order));
        let resumed =
            statements.iter().flat_map(of_resumed).map(|(thing, at)| (at, thing)).collect();
        Self { of_key, with_stem, last_stop, stopped_names, resumed }
    }

    /// Returns the statement since which all that an older one says was stopped runs again.
    fn resumption_of(&self, older: &DigestStatement) -> Option<usize> {
        let things = older.changed.stopped.iter().chain(&older.changed.paused);
        let runs = |thing: &StoppedThing| {
            let found = self.resumed.iter().find(|(at, it)| *at > older.order && it == thing);
            found.map(|it| it.0)
        };
        things.map(runs).collect::<Option<Vec<_>>>()?.into_iter().max()
    }

    /// Returns the statements before the newest one of a label, newest first; none for another one.
    pub(in crate::engine::extractive) fn before<'a>(
        &self,
        statements: &'a [DigestStatement],
        newest: &DigestStatement,
    ) -> impl Iterator<Item = &'a DigestStatement> {
        let of_key = match newest.keys[..] {
            [key] => self.of_key.get(&key).map_or(&[][..], |it| it),
            _ => &[],
        };
        let earlier = of_key.split_last().filter(|it| *it.0 == newest.order);
        earlier.map_or(&[][..], |it| it.1).iter().rev().map(|it| &statements[*it])
    }

    /// Returns the largest share of the words of a statement in a later one that says that something was done.
    pub(super) fn finished_share(
        &self,
        statements: &[DigestStatement],
        older: &DigestStatement,
    ) -> f64 {
        let stems = older.terms.stems.hashes();
        if stems.len() < SERIES_STEMS_MIN {
            return 0.0;
        }
        let mut shared = HashedMap::<usize>::default();
        for stem in stems {
            let with = self.with_stem.get(stem).map_or(&[][..], |it| it);
            let newer = with.iter().rev().take_while(|it| **it > older.order).take(READ_MAX);
            for at in newer.filter(|it| statements[**it].is_done) {
                *shared.entry(*at as u64).or_default() += 1;
            }
        }
        as_f64(shared.values().copied().max().unwrap_or(0)) / as_f64(stems.len())
    }

    /// Returns a newer statement that says that what one is about was stopped.
    fn stop_of(&self, older: &DigestStatement) -> Option<usize> {
        let entity = older.subject.and_then(|it| self.last_stop.get(&it.entity)).copied();
        let with = |stem| self.stopped_names.get(stem).map_or(&[][..], |it| it);
        let mut named = older.terms.stems.hashes().iter().flat_map(with);
        entity.filter(|it| *it > older.order).or_else(|| {
            named
                .find(|(order, name)| *order > older.order && is_about(name, &older.terms))
                .map(|it| it.0)
        })
    }

    /// Returns whether a newer statement replaces one.
    pub(in crate::engine::extractive) fn is_replaced(
        &self,
        statements: &[DigestStatement],
        older: &DigestStatement,
    ) -> bool {
        older.ended_by.is_some() || self.replacement_of(statements, older).is_some()
    }

    /// Returns the first line of the newer statement that replaces one.
    pub(super) fn replacing_line(
        &self,
        statements: &[DigestStatement],
        older: &DigestStatement,
    ) -> Option<Address> {
        let newer = || statements[self.replacement_of(statements, older)?].first_line();
        older.ended_by.clone().or_else(newer)
    }

    /// Returns the newer statement that replaces one: that of the same label, one that says that what it is about was
    /// stopped, or one that shares most words with it, and therefore one of its few rarest words. Of a word in many
    /// statements only the newest ones are read.
    fn replacement_of(
        &self,
        statements: &[DigestStatement],
        older: &DigestStatement,
    ) -> Option<usize> {
        let newest_of = |key: &u64| {
            self.of_key.get(key).and_then(|it| it.last().copied()).filter(|it| *it > older.order)
        };
        let of_labels = || older.keys.iter().map(newest_of).collect::<Option<Vec<_>>>();
        let by_word = of_labels()
            .and_then(|it| it.into_iter().max())
            .or_else(|| ends_with_subject(older).then(|| self.stop_of(older))?)
            .or_else(|| self.resumption_of(older));
        if by_word.is_some() {
            return by_word;
        }
        let with = |stem: &u64| self.with_stem.get(stem).map_or(&[][..], |it| it);
        let mut rarest: Vec<&u64> = older.terms.stems.hashes().iter().collect();
        rarest.sort_by_key(|it| (with(it).len(), **it));
        // Whoever shares three of five words shares one of any three of them.
        let enough = older.terms.stems.len() * 2 / 5 + 1;
        rarest.into_iter().take(enough).find_map(|stem| {
            let newer = with(stem).iter().rev().take_while(|it| **it > older.order);
            newer.take(READ_MAX).copied().find(|it| replaces(&statements[*it], older))
        })
    }
}

/// Returns whether a statement no longer holds when what it is about was stopped.
fn ends_with_subject(statement: &DigestStatement) -> bool {
    matches!(
        statement.kind,
        StatementKind::State | StatementKind::Open | StatementKind::Environment
    )
}

/// Returns whether a newer statement denies a fact that an older one states: `Mila is not allergic to cats`, where the
/// word behind the negation is one of the fact. What was decided is taken back by words that say so.
fn denies(newer: &DigestStatement, older: &DigestStatement) -> bool {
    const SHARED_MIN: f64 = 0.7;
    const STEMS_MIN: usize = 3;
    let is_fact = matches!(
        older.kind,
        StatementKind::Profile
            | StatementKind::Preference
            | StatementKind::State
            | StatementKind::Environment
    );
    is_fact
        && newer.holds_until.is_none()
        && older.plan.denied.is_empty()
        && older.day < newer.day
        && older.own_terms.stems.len() >= STEMS_MIN
        && newer.plan.denied.iter().any(|it| older.own_terms.stems.hashes().contains(it))
        && older.own_terms.containment(&newer.terms)
            >= if names_several(older) { 1.0 } else { SHARED_MIN }
}

/// Returns whether a decision repeats an older one about the same thing: `Decided once more: SQLite over Postgres`.
fn confirms(newer: &DigestStatement, older: &DigestStatement) -> bool {
    const STEMS_MIN: usize = 3;
    const NAMES_MIN: usize = 2;
    const SHARE_MIN: f64 = 0.5;
    /// Where it says so: at the beginning.
    const WORDS_MAX: usize = 6;
    let are_decisions = [newer, older].iter().all(|it| it.kind == StatementKind::Decision);
    let says_so = || {
        let words = WordList::of(&newer.text);
        (0..WORDS_MAX).any(|it| words.phrase_at(it, &WISDOM.confirmations).is_some())
    };
    let shared = || {
        let of_older = older.own_terms.stems.hashes();
        let of_newer = newer.own_terms.stems.hashes().iter();
        of_newer.filter(|it| of_older.contains(it)).collect::<Vec<_>>()
    };
    let named = |stems: &[&u64]| {
        stems.iter().filter(|it| newer.names.contains(it) || older.names.contains(it)).count()
    };
    are_decisions && older.day < newer.day && says_so() && {
        let shared = shared();
        shared.len() >= STEMS_MIN
            && (named(&shared) >= NAMES_MIN
                || named(&shared) > 0
                    && older.own_terms.stem_containment(&newer.own_terms) >= SHARE_MIN)
    }
}

/// Returns whether a statement joins things, of which a denial may be about one: `allergic to walnuts and to latex`.
fn names_several(statement: &DigestStatement) -> bool {
    let text = statement.own_text();
    text.contains([',', '、', '/'])
        || WordList::of(text).iter().any(|it| SENTENCES.list_conjunctions.contains(&it))
}

/// Returns whether a newer statement makes an older one obsolete.
fn replaces(newer: &DigestStatement, older: &DigestStatement) -> bool {
    if older.kind == StatementKind::Open && newer.is_done {
        return older.terms.stems.len() >= 2 && older.terms.containment(&newer.terms) >= 0.6;
    }
    // Of a series, such as the reports of a check, the last value is enough.
    let is_series = older.section().is_state()
        && older.terms.stems.len() >= SERIES_STEMS_MIN
        && older.terms.stem_containment(&newer.terms) >= SERIES_OVERLAP;
    is_series
        || denies(newer, older)
        || confirms(newer, older)
        || (has_conflicting_values(&older.terms, &newer.terms)
            && older.terms.similarity(&newer.terms) >= 0.6)
}
