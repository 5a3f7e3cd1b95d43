//! Whether a line says that what an earlier decision or plan names was given up, exchanged, or moved to another day.
//! Pure.
//!
//! `Switched from Brevo to Postmark` ends a plan for Brevo, but not one for Postmark, so only the words are read that
//! name what is gone: between `from` and `to`, after `instead of`, beside `removed`. Of a line with `instead` alone
//! and of a correction all words are read, and more of them must be the same. One shared word must be a name: written
//! like one and rare in the logs. Words of the topic are in many lines.
//!
//! `The launch moved from 1 to 8 December` ends what plans a launch for another day: all words before `moved`, or
//! after it if nothing is before, must be in the older line, which must name a day that was to come.
//!
//! What takes a decision or rule back by its day or its subject is in [`revocation`].
//!
//! `The admin page moved from port 8090 to 8095` ends every line that has 8090 for the admin page, plan or not. What only
//! states another value, `The admin page is on port 8095`, is in [`stated_value`].

mod revocation;
mod stated_value;

use std::{
    collections::{BTreeSet, HashSet},
    sync::LazyLock,
};

use chrono::NaiveDate;

use self::{revocation::Revocation, stated_value::StatedValue};
use super::word_list::WordList;
use crate::{
    engine::keep_mark::has_keep_mark,
    memory::atom::{self, AtomKind},
    text::{
        calendar,
        hash::{HashedSet, hash_bytes},
        lexicon::{ANNOTATIONS, CUES, SEARCH, WISDOM},
        scripts,
        stems::english_stem,
        words,
    },
};

/// As many words around `removed` may name what was.
const SPAN_WORDS_MAX: usize = 5;

/// As many words are between `no` and `after all`.
const DROPPED_WORDS_MAX: usize = 3;

/// A correction begins with its word.
const CORRECTION_WORDS_MAX: usize = 2;

/// A negation is at most this many words before what it denies.
const NEGATION_WORDS: usize = 4;

/// They deny what follows them in scripts without spaces.
const SPACELESS_NEGATIONS: [char; 4] = ['不', '没', '沒', '未'];

/// How many content words a line must share with one that does not say what exactly is gone.
const SHARED_MIN: usize = 2;

/// The most content words of what was moved or changed: a sentence about more is no name.
const MOVED_STEMS_MAX: usize = 4;

/// The shortest value that is told apart from others, in bytes: `8090`, `4.2`.
const VALUE_BYTES_MIN: usize = 3;

/// Words that open or end something, folded as those of a line are.
pub(crate) static END_WORDS: LazyLock<EndWords> = LazyLock::new(|| {
    let fold = |words: &[&str]| {
        let mut folded = HashSet::new();
        // Of phrases no word says it alone.
        for word in words.iter().filter(|it| !it.contains(' ')) {
            words::for_each_folded(word, |it| {
                folded.insert(it.to_owned());
            });
        }
        folded
    };
    let mut not_done = fold(&ANNOTATIONS.not_done);
    // What is left of `isn't`, which is folded to two words.
    not_done.insert("t".to_owned());
    let mut open = fold(&ANNOTATIONS.open);
    open.extend(fold(&SEARCH.failure_words));
    let retired = CUES.tables.get("retired").map_or_else(HashSet::new, |it| fold(it));
    let unreal = fold(&WISDOM.unreal_words);
    EndWords { done: fold(&ANNOTATIONS.done), not_done, open, retired, unreal }
});

/// Words that open or end something, in lower case without accents.
pub(crate) struct EndWords {
    pub(crate) done: HashSet<String>,
    pub(crate) not_done: HashSet<String>,
    /// That something is open or fails.
    pub(crate) open: HashSet<String>,
    pub(crate) retired: HashSet<String>,
    /// Words about something that did not happen, or may not have.
    unreal: HashSet<String>,
}

/// What a line says is gone.
pub(crate) struct Replacement {
    /// The stems of the words that name it.
    gone: BTreeSet<String>,
    /// The stems of the words that name what was removed: only all of them are it.
    removed: Vec<BTreeSet<String>>,
    /// Whether these are all words of the line.
    is_whole_line: bool,
    /// Whether it corrects an earlier line, mostly on the same day.
    pub(crate) is_correction: bool,
    /// The words that say that something was taken away.
    removals: BTreeSet<String>,
    content: BTreeSet<String>,
    moved: Option<MovedPlan>,
    changed: Option<ChangedValue>,
    revoked: Option<Revocation>,
    stated: Option<StatedValue>,
}

/// A value that was exchanged for another one. A value is a word with a digit.
struct ChangedValue {
    /// The stems of the words that name what has the value.
    subject: BTreeSet<String>,
    old: BTreeSet<String>,
    new: BTreeSet<String>,
}

/// Something that was moved to another day.
struct MovedPlan {
    /// The stems of the words that name it.
    subject: BTreeSet<String>,
    day: NaiveDate,
}

/// A line that a newer one may end.
pub(crate) struct OlderLine<'l> {
    text: &'l str,
    /// The day on which it was written.
    date: NaiveDate,
    /// Whether it is known to be a decision or a plan, whatever its words.
    pub(crate) is_plan: bool,
    /// Whether it is known to be a rule.
    pub(crate) is_rule: bool,
    /// Whether it says how something is. What was learned about a former value stays learned, a rule stays a rule,
    /// and what a person marked stays.
    pub(crate) may_change: bool,
}

impl<'l> OlderLine<'l> {
    pub(crate) fn of(text: &'l str, date: NaiveDate) -> Self {
        let may_change = !has_keep_mark(text) && !has_label(text, &CUES.lesson_titles);
        Self { text, date, is_plan: opens_plan(text), is_rule: false, may_change }
    }
}

/// Returns whether a line with these words may be a replacement; most are none.
pub(crate) fn may_replace(line: &str, words: &WordList) -> bool {
    static SAY_SO: LazyLock<HashedSet> = LazyLock::new(|| {
        let lists = [
            &SEARCH.instead_words,
            &SEARCH.switch_words,
            &SEARCH.removal_words,
            &SEARCH.correction_words,
            &SEARCH.move_words,
            &SEARCH.value_change_words,
            &SEARCH.revoked_words,
            &SEARCH.take_words,
        ];
        let own = ["after", "doch"];
        lists
            .into_iter()
            .flat_map(|it| it.iter())
            .chain(&own)
            .map(|it| hash_bytes(it.as_bytes()))
            .collect()
    });
    let is_value = |it: &str| {
        it.starts_with(|c: char| c.is_ascii_digit()) || calendar::weekday_names().contains(&it)
    };
    // Words with accents, and of scripts without spaces, are listed in another form.
    !line.is_ascii()
        || words.len() <= stated_value::WORDS_MAX && words.iter().any(is_value)
        || words.iter_hashed().any(|it| SAY_SO.contains(&it.1))
}

/// A word of a line.
struct LineWord {
    folded: String,
    /// Where the text up to the next space ends in the line, in bytes.
    end: usize,
    /// Whether a mark after it ends a clause.
    ends_clause: bool,
}

impl Replacement {
    /// Reads what a line of a day says is gone; `None` if it says no such thing.
    pub(crate) fn of(line: &str, date: NaiveDate) -> Option<Self> {
        let all = line_words(line);
        let moved = MovedPlan::of(line, &all, date);
        let is =
            |at: usize, list: &[&str]| all.get(at).is_some_and(|it| list.contains(&&it.folded[..]));
        let (mut gone, mut removed, mut removals) = (BTreeSet::new(), Vec::new(), BTreeSet::new());
        let (mut is_whole_line, mut is_correction) = (false, false);
        for at in 0..all.len() {
            if is(at, &["no", "kein", "keine", "keinen"]) {
                gone.extend(dropped_after_all(&all, at));
            }
            if is_denied(&all, at) {
                continue;
            }
            if is(at, &SEARCH.correction_words) && at < CORRECTION_WORDS_MAX {
                is_correction = true;
            } else if is(at, &SEARCH.instead_words) && is(at + 1, &["of"]) {
                gone.extend(span_after(&all, at + 2));
            } else if is(at, &SEARCH.instead_words) {
                is_whole_line = true;
            } else if is(at, &["from", "von"]) {
                let switches = |it: usize| is(it, &SEARCH.switch_words);
                if (at.saturating_sub(SPAN_WORDS_MAX)..at).any(switches) {
                    gone.extend(span_after(&all, at + 1));
                }
            } else if is(at, &SEARCH.removal_words) && !is(at + 1, &["from", "von"]) {
                let after = span_after(&all, at + 1);
                let says = after.iter().any(|it| !SEARCH.stop_words.contains(&&it[..]));
                let span = if says { after } else { span_before(&all, at) };
                removed.push(content_stems(span.iter().map(|it| &it[..])));
                removals.insert(all[at].folded.clone());
            }
        }
        is_whole_line |= is_correction;
        // `Moved from 1 to 8 December` exchanges days.
        let changed = if moved.is_none() { ChangedValue::of(line, &all) } else { None };
        let revoked = Revocation::of(&all, date);
        let stated = StatedValue::of(line, date);
        let says_nothing =
            gone.is_empty() && removed.is_empty() && revoked.is_none() && stated.is_none();
        if !is_whole_line && says_nothing && moved.is_none() && changed.is_none() {
            return None;
        }
        let content = content_stems(all.iter().map(|it| &it.folded[..]));
        let gone = gone.iter().map(|it| english_stem(it).into_owned()).collect();
        Some(Self {
            gone,
            removed,
            is_whole_line,
            is_correction,
            removals,
            content,
            moved,
            changed,
            revoked,
            stated,
        })
    }

    /// Leaves out the exchange of a value: what is only planned changes none.
    pub(crate) fn without_change(self) -> Self {
        Self { changed: None, stated: None, ..self }
    }

    /// Returns the stems of which a line that this ends has at least one.
    pub(crate) fn stems(&self) -> impl Iterator<Item = &str> {
        let is_whole = self.is_whole_line || self.revoked.is_some();
        let whole = is_whole.then_some(&self.content);
        let moved = self.moved.iter().flat_map(|it| &it.subject);
        let changed = self.changed.iter().flat_map(|it| &it.subject);
        let stated = self.stated.iter().flat_map(StatedValue::subject);
        self.gone
            .iter()
            .chain(self.removed.iter().flatten())
            .chain(whole.into_iter().flatten())
            .chain(moved)
            .chain(changed)
            .chain(stated)
            .map(|it| &it[..])
    }

    /// Returns whether this ends what an older line says. `is_name` says whether a stem is a name in one of the two
    /// lines.
    pub(crate) fn ends(
        &self,
        older: &OlderLine<'_>,
        mut is_name: impl FnMut(&str) -> bool,
    ) -> bool {
        let all = line_words(older.text);
        let folded = || all.iter().map(|it| &it.folded[..]);
        if self.moved.as_ref().is_some_and(|it| it.ends(older, &all))
            || self.changed.as_ref().is_some_and(|it| it.ends(older, &all))
            || self.stated.as_ref().is_some_and(|it| it.ends(older))
        {
            return true;
        }
        let content = content_stems(folded());
        let is_revoked =
            self.revoked.as_ref().is_some_and(|it| it.ends(older.date, &content, &self.content));
        if older.is_rule {
            return is_revoked;
        }
        if !self.is_correction
            && !folded().any(|it| SEARCH.plan_words.contains(&it))
            && !older.is_plan
        {
            return false;
        }
        // `Abandoned carts` are a name.
        if folded().any(|it| self.removals.contains(it)) {
            return false;
        }
        if is_revoked {
            return true;
        }
        let shared: Vec<&String> = content.intersection(&self.content).collect();
        // `The move of the shop is cancelled` names a plan without a name.
        let is_cancelled = self.removals.iter().any(|it| SEARCH.cancel_words.contains(&&it[..]));
        let is_removed = |span: &BTreeSet<String>, is_name: &mut dyn FnMut(&str) -> bool| {
            span.is_subset(&content)
                && (span.iter().any(|it| is_name(it)) || (is_cancelled && span.len() >= SHARED_MIN))
        };
        if shared.iter().any(|it| self.gone.contains(*it) && is_name(it))
            || self.removed.iter().any(|it| is_removed(it, &mut is_name))
        {
            return true;
        }
        // A correction repeats what it corrects.
        let enough =
            if self.is_correction { (content.len() / 2).max(SHARED_MIN) } else { SHARED_MIN };
        self.is_whole_line && shared.len() >= enough && shared.iter().any(|it| is_name(it))
    }
}

/// Returns the words between a negation and `after all`: `no Brevo after all, we use Postmark`.
fn dropped_after_all(all: &[LineWord], at: usize) -> BTreeSet<String> {
    let word = |at: usize| all.get(at).map_or("", |it| &it.folded[..]);
    let says_so = |it: &usize| {
        (word(*it) == "after" && word(it + 1) == "all")
            || (*it == at + 2 && at > 0 && word(at - 1) == "doch")
    };
    let end = (at + 2..=at + 1 + DROPPED_WORDS_MAX).filter(|it| *it <= all.len()).find(says_so);
    let is_whole = |end: &usize| all[at..*end - 1].iter().all(|it| !it.ends_clause);
    let words = end.filter(is_whole).map(|end| &all[at + 1..end]);
    words.unwrap_or_default().iter().map(|it| it.folded.clone()).collect()
}

impl MovedPlan {
    /// Reads what a line of a day says was moved to another one.
    fn of(line: &str, all: &[LineWord], date: NaiveDate) -> Option<Self> {
        let is = |at: usize, list: &[&str]| list.contains(&&all[at].folded[..]);
        let at = (0..all.len()).find(|it| is(*it, &SEARCH.move_words))?;
        let is_left_open = |it: &LineWord| END_WORDS.unreal.contains(&it.folded);
        if is_denied(all, at) || all.iter().any(is_left_open) {
            return None;
        }
        // `Moved from 1 to 8 December`; what is named later is a reason.
        let to = (at + 1..all.len()).find(|it| is(*it, &SEARCH.to_words))?;
        let behind = &line[all[to].end..];
        let date_atom =
            atom::find_atoms(behind).into_iter().find(|it| it.kind == AtomKind::Date)?;
        // `Pushed the branch to main on 8 December` moves nothing to a day.
        let says_no_more = |it: &str| {
            SEARCH.stop_words.contains(&it)
                || WISDOM.articles.contains(&it)
                || calendar::weekday_names().contains(&it)
        };
        let is_next = words::lowercase_runs(&behind[..date_atom.start]).all(|it| says_no_more(&it))
            && !behind[..date_atom.start].contains(['.', ';']);
        let day = calendar::day_of(&date_atom.norm(behind), date).filter(|_| is_next)?;
        let clause = (0..at).rev().find(|it| all[*it].ends_clause).map_or(0, |it| it + 1);
        let before = stems_of(&all[clause..at]);
        let is_end = |it: &usize| is(*it, &SEARCH.span_ends) || all[it - 1].ends_clause;
        let end = (at + 1..=to).find(is_end).unwrap_or(to);
        let subject = if before.is_empty() { stems_of(&all[at + 1..end]) } else { before };
        (1..=MOVED_STEMS_MAX).contains(&subject.len()).then_some(Self { subject, day })
    }

    /// Returns whether an older line plans the same for another day, which was to come.
    fn ends(&self, older: &OlderLine<'_>, all: &[LineWord]) -> bool {
        let atoms = atom::find_atoms(older.text);
        let dates = atoms.iter().filter(|it| it.kind == AtomKind::Date);
        let days: Vec<NaiveDate> =
            dates.filter_map(|it| calendar::day_of(&it.norm(older.text), older.date)).collect();
        if days.contains(&self.day) || !days.iter().any(|it| *it >= older.date) {
            return false;
        }
        let stem = |it: &LineWord| english_stem(&it.folded).into_owned();
        // One word may be a part of the name of something else: `launch post`.
        let is_own_name = |(at, word): (usize, &LineWord)| {
            self.subject.contains(&stem(word))
                && (word.ends_clause
                    || all.get(at + 1).is_none_or(|it| {
                        it.folded.starts_with(|c: char| c.is_ascii_digit())
                            || [
                                &SEARCH.stop_words,
                                &SEARCH.plan_words,
                                &SEARCH.move_words,
                                &SEARCH.time_words,
                            ]
                            .iter()
                            .any(|list| list.contains(&&it.folded[..]))
                    }))
        };
        match self.subject.len() {
            1 => all.iter().enumerate().any(is_own_name),
            _ => self.subject.is_subset(&all.iter().map(stem).collect()),
        }
    }
}

impl ChangedValue {
    /// Reads `the admin page was moved from port 8090 to 8095`. A short number is the value of too much.
    fn of(line: &str, all: &[LineWord]) -> Option<Self> {
        let is = |at: usize, list: &[&str]| list.contains(&&all[at].folded[..]);
        let at = (0..all.len()).find(|it| is(*it, &SEARCH.value_change_words))?;
        let is_left_open = |it: &LineWord| {
            END_WORDS.unreal.contains(&it.folded)
                || [&SEARCH.plan_words, &SEARCH.future_words]
                    .iter()
                    .any(|list| list.contains(&&it.folded[..]))
        };
        if is_denied(all, at) || line.contains('?') || all.iter().any(is_left_open) {
            return None;
        }
        let in_reach = |from: usize| from + 1..all.len().min(from + 1 + SPAN_WORDS_MAX);
        let from = in_reach(at).find(|it| is(*it, &["from", "von", "de", "da", "van"]))?;
        let to = in_reach(from).find(|it| is(*it, &SEARCH.to_words))?;
        if (at..to).any(|it| all[it].ends_clause) {
            return None;
        }
        let values = |words: &[LineWord]| -> BTreeSet<String> {
            let long =
                words.iter().filter(|it| has_digit(it) && it.folded.len() >= VALUE_BYTES_MIN);
            long.map(|it| it.folded.clone()).collect()
        };
        let old = values(&all[from + 1..to]);
        // What follows the new value is a remark: `to 8095 (8090 clashes)`.
        let new = in_reach(to).find(|it| has_digit(&all[*it]));
        let new = new.map_or_else(BTreeSet::new, |it| values(&all[it..=it]));
        let named = |words: &[LineWord]| -> BTreeSet<String> {
            let is_name = |it: &String| !it.starts_with(|c: char| c.is_ascii_digit());
            stems_of(words).into_iter().filter(is_name).collect()
        };
        // `Ada moved the admin page` names it after the verb.
        let clause = (0..at).rev().find(|it| all[*it].ends_clause).map_or(0, |it| it + 1);
        let after = named(&all[at + 1..from]);
        let subject = if after.is_empty() { named(&all[clause..at]) } else { after };
        let is_named = (1..=MOVED_STEMS_MAX).contains(&subject.len());
        (is_named && !old.is_empty() && !new.is_empty() && old.is_disjoint(&new)).then_some(Self {
            subject,
            old,
            new,
        })
    }

    /// Returns whether an older line has the former value for the same thing.
    fn ends(&self, older: &OlderLine<'_>, all: &[LineWord]) -> bool {
        let has = |value: &String| all.iter().any(|it| it.folded == *value);
        let stem = |it: &LineWord| english_stem(&it.folded).into_owned();
        older.may_change
            && self.old.iter().all(has)
            && !self.new.iter().any(has)
            && self.subject.is_subset(&all.iter().map(stem).collect())
    }
}

fn has_digit(word: &LineWord) -> bool {
    word.folded.contains(|c: char| c.is_ascii_digit())
}

/// Returns whether a word is denied.
fn is_denied(all: &[LineWord], at: usize) -> bool {
    (at.saturating_sub(NEGATION_WORDS)..at).any(|it| {
        let word = &all[it];
        let is_negation = SEARCH.negations.contains(&&word.folded[..])
            || word.folded.contains(SPACELESS_NEGATIONS);
        is_negation && !word.ends_clause
    })
}

fn stems_of(words: &[LineWord]) -> BTreeSet<String> {
    content_stems(words.iter().map(|it| &it.folded[..]))
}

/// Returns the stems of those words that say what a line is about.
pub(crate) fn content_stems<'w>(words: impl Iterator<Item = &'w str>) -> BTreeSet<String> {
    let says_nothing = |it: &str| {
        SEARCH.stop_words.contains(&it)
            || END_WORDS.open.contains(it)
            || END_WORDS.done.contains(it)
    };
    words.filter(|it| !says_nothing(it)).map(|it| english_stem(it).into_owned()).collect()
}

/// Returns the stems that are written like names in a text: with a capital letter inside a sentence, with a digit or
/// a mark inside, or in a script without spaces.
pub(crate) fn name_stems(text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut opens = true;
    for token in text.split_whitespace() {
        let bare = token.trim_matches(|c: char| !c.is_alphanumeric());
        let inner = bare.chars().skip(1);
        let is_capital = bare.starts_with(char::is_uppercase) && !opens;
        let is_name = is_capital
            || inner
                .clone()
                .any(|it| it.is_uppercase() || it.is_ascii_digit() || "-_.".contains(it))
            || bare.contains(scripts::is_spaceless);
        opens = token.ends_with(['.', '!', '?', ':']) || (opens && bare.is_empty());
        if is_name {
            words::for_each_folded(bare, |it| {
                names.insert(english_stem(it).into_owned());
            });
        }
    }
    names
}

/// Returns whether the label before the first colon is that of a decision.
fn opens_plan(text: &str) -> bool {
    has_label(text, &CUES.decision_titles)
}

fn has_label(text: &str, titles: &[&str]) -> bool {
    let label = text.split([':', '：']).next().unwrap_or_default();
    let label = label.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    titles.contains(&&label[..])
}

fn line_words(text: &str) -> Vec<LineWord> {
    let mut all: Vec<LineWord> = Vec::new();
    for token in text.split_whitespace() {
        let before = all.len();
        // It is a part of the text.
        let end = token.as_ptr().addr() + token.len() - text.as_ptr().addr();
        words::for_each_folded(token, |it| {
            all.push(LineWord { folded: it.to_owned(), end, ends_clause: false });
        });
        let ends = token.ends_with([',', '.', ':', ';', ')', '!', '?']) || all.len() == before;
        if let Some(last) = all.last_mut() {
            last.ends_clause |= ends;
        }
    }
    all
}

fn span_after(all: &[LineWord], from: usize) -> Vec<String> {
    let mut span = Vec::new();
    if from == 0 || all.get(from - 1).is_none_or(|it| it.ends_clause) {
        return span;
    }
    for word in all[from..].iter().take(SPAN_WORDS_MAX) {
        if SEARCH.span_ends.contains(&&word.folded[..]) {
            break;
        }
        span.push(word.folded.clone());
        if word.ends_clause {
            break;
        }
    }
    span
}

fn span_before(all: &[LineWord], to: usize) -> Vec<String> {
    let words = all[..to].iter().rev().take(SPAN_WORDS_MAX);
    words.take_while(|it| !it.ends_clause).map(|it| it.folded.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(older: &str, newer: &str, ends: bool) {
        let names: BTreeSet<String> = &name_stems(older) | &name_stems(newer);
        let date = |it: &str| it.parse::<NaiveDate>().unwrap();
        let older_line = OlderLine::of(older, date("2026-11-02"));
        let found = Replacement::of(newer, date("2026-11-20"))
            .is_some_and(|it| it.ends(&older_line, |it| names.contains(it)));
        assert_eq!(found, ends, "{older} / {newer}");
    }

    #[test]
    fn a_plan_ends_with_what_it_names() {
        let plan = "Decided to send the newsletter with Brevo";
        for newer in [
            "Switched from Brevo to Postmark",
            "Instead of Brevo we send with Postmark",
            "Replaced Brevo with Postmark",
            "Brevo was removed because it lost mails",
            "Uninstalled Brevo",
            "Migrated the newsletter from Brevo to Postmark",
            "Newsletter: left Brevo, forked Listmonk instead",
            "Correction: the newsletter goes out with Postmark, not with Brevo",
            "KORREKTUR: the newsletter is sent with Postmark, Brevo is too slow",
            "No Brevo after all, we use Postmark",
            "Newsletter: doch kein Brevo, wir nehmen Postmark",
        ] {
            check(plan, newer, true);
        }
        for newer in [
            "Switched from Postmark to Brevo",
            "No Postmark after all, we use Brevo",
            "No answer. After all, Brevo is slow",
            "Instead of Postmark we send with Brevo",
            "Replaced Postmark with Brevo",
            "Removed the old lists from Brevo",
            "Brevo was not removed",
            "Brevo has not been fully removed",
            "Deleted the Brevo test campaign",
            "Reverted the Brevo commit",
            "Switched from Hetzner to Netcup",
            "The newsletter was sent",
            "Deleted the newsletter of March",
        ] {
            check(plan, newer, false);
        }
        for newer in [
            "Looked at Brevo again: it loses mails. The decision of the 2nd is off",
            "Brevo: die Entscheidung vom 2. ist hinfällig",
            "Decision revoked: send the newsletter with Brevo",
        ] {
            check(plan, newer, true);
        }
        check(
            "Decided: the shop moves to the new host",
            "The move of the shop is cancelled, the new host is too slow",
            true,
        );
        check(
            "Decided: the shop moves to the new host",
            "The order of the shop is cancelled",
            false,
        );
        for newer in [
            "Looked at Brevo again: it loses mails. The decision of the 3rd is off",
            "Looked at Postmark again. The decision of the 2nd is off",
            "Looked at Brevo again. The decision of the 2nd is not off",
            "Brevo: the decision of the 2nd went out to all. Postmark is off",
            "Decision revoked: paint the fence",
        ] {
            check(plan, newer, false);
        }
        check("Plan: mails for abandoned Brevo carts", "Abandoned Brevo carts are checked", false);
        // A report is no plan.
        check("Brevo had an outage of two hours", "Switched from Brevo to Postmark", false);
        check("决定使用 Brevo 发送通讯", "通讯改用 Postmark，放弃 Brevo", true);
        check("决定使用 Brevo 发送通讯", "决定不放弃 Brevo", false);
    }

    #[test]
    fn a_rule_ends_when_it_is_taken_back() {
        let rule = "Rule from Ada: invoices above 500 euros need her signature first";
        let ends = |newer: &str| {
            let date = |it: &str| it.parse::<NaiveDate>().unwrap();
            let mut older = OlderLine::of(rule, date("2026-11-02"));
            older.is_rule = true;
            Replacement::of(newer, date("2026-11-20")).is_some_and(|it| it.ends(&older, |_| false))
        };
        for newer in [
            "Ada took back the rule about invoices: up to 2,000 euros I may pay alone",
            "The rule about invoices is withdrawn",
            "Revoked the rule on invoices",
            "Die Regel zu invoices ist aufgehoben",
            "The rule about invoices changed: 2,000 euros are fine",
            "The rule about the invoices is outdated.",
            "The rule about invoices no longer applies",
            "Die Regel zu invoices gilt nicht mehr",
            "We changed the rule about invoices: up to 2,000 euros I may pay alone",
        ] {
            assert!(ends(newer), "{newer}");
        }
        for newer in [
            "The rule about Fridays is withdrawn",
            "The rule about invoices is not withdrawn",
            "Went back to the rule about invoices",
            "Ada has not withdrawn the rule about invoices",
            "Ada never dropped the rule about invoices",
            "If the rule about invoices is dropped, we lose track",
            "Somebody asked whether the rule about invoices was withdrawn",
            "The rule about invoices dropped our costs by half",
            "The rule about invoices changed our costs",
            "The rule about invoices no longer applies to Bo",
            "The vote about the rule on invoices is over",
            "Nothing about the rule on invoices changed",
            "Changed a typo in the rule about invoices",
            "The rule about invoices has not changed: 500 euros",
            "If the rule about invoices changed, we would know",
            "Took the book back. The rule about invoices is on page 3",
            "Invoices were cancelled",
        ] {
            assert!(!ends(newer), "{newer}");
        }
    }

    #[test]
    fn a_value_ends_when_it_is_exchanged_for_another() {
        let port = "The shop admin runs on port 8090, login with the shared account";
        for newer in [
            "Shop admin moved from port 8090 to port 8095",
            "Moved the shop admin from port 8090 to 8095 (8090 clashes with Grafana)",
            "Ada moved the shop admin from port 8090 to 8095",
            "Admin changed from 8090 to 8095",
        ] {
            check(port, newer, true);
        }
        for newer in [
            "Shop admin may be moved from port 8090 to port 8095",
            "Shop admin will be moved from port 8090 to port 8095",
            "Was the shop admin moved from port 8090 to port 8095?",
            "Shop admin was not moved from port 8090 to port 8095",
            "Grafana moved from port 8090 to port 8095",
            "Shop admin moved from port 8091 to port 8095",
            "Shop admin moved from the old host to port 8095",
            "Moved the shop admin, login is open from 8090 to 8095",
        ] {
            check(port, newer, false);
        }
        let by_ada = "Ada moved the tide page from port 8090 to 8095";
        check("Ada wrote the note on port 8090", by_ada, false);
        check(
            "Lesson: the shop admin on port 8090 clashes with Grafana",
            "Shop admin moved from port 8090 to 8095",
            false,
        );
        check(
            "The shop admin runs on port 8090 #keep",
            "Shop admin moved from port 8090 to 8095",
            false,
        );
        // A short number is the value of too much.
        check("Postgres has 14 tables", "Postgres upgraded from 14 to 16", false);
    }

    #[test]
    fn a_stated_value_ends_with_the_next_one() {
        let fair = "The fair is on 12 December";
        check(fair, "The fair is on 19 December", true);
        check(fair, "The fair is now on Saturday, 19 December", true);
        check("Fair: 12 December", "The fair is on 19 December because the hall is let", true);
        for newer in [
            "The fair is on 12 December",
            "The fair is also on 19 December",
            "The fair may be on 19 December",
            "Is the fair on 19 December?",
            "The book fair is on 19 December",
            "The fair is in the hall on 19 December",
            "The fair is on 19 and 20 December",
            "The fair ends on 19 December",
            "Met Odo at the fair on 19 December",
            "The fair is over, the next one is on 19 December",
        ] {
            check(fair, newer, false);
        }
        let tuesdays = "Newsletter moved to Tuesdays";
        check(tuesdays, "Newsletter back to Thursdays", true);
        check("The newsletter goes out on Thursdays", tuesdays, true);
        check(tuesdays, "The newsletter is on Thursday", false);
        check(tuesdays, "Invoices back to Thursdays", false);
        let port = "Gateway port: 8000";
        check(port, "gateway moved to port 9000", true);
        check(port, "The gateway runs on port 9000", true);
        for newer in [
            "The gateway runs on version 9000",
            "The gateway also runs on port 9000",
            "The old gateway runs on port 9000",
            "The gateway took 9000 requests",
            "Opened port 9000 of the gateway",
        ] {
            check(port, newer, false);
        }
    }

    #[test]
    fn a_plan_ends_when_it_is_moved_to_another_day() {
        let plan = "Launch is on 1 December";
        for newer in [
            "Launch moved from 1 to 8 December",
            "The launch was moved to 2026-12-08 because legal needs a week",
            "Moved the launch to December 8",
            "Launch moves to Tuesday, 8 December",
            "Launch postponed to 8 December",
            "Launch verschoben auf den 8. Dezember",
        ] {
            check(plan, newer, true);
        }
        for newer in [
            "Launch may be moved to 8 December",
            "The launch was not moved to 8 December",
            "The press call moved to 8 December",
            "Launch moved to the new server, done on 8 December",
            "Launch pushed to main on 8 December",
            "Launch confirmed for 1 December",
            "Launch moved to 1 December",
        ] {
            check(plan, newer, false);
        }
        let moved = "Launch moved from 1 to 8 December";
        check("Launch post is due on 1 December", moved, false);
        check("Launched the beta on 30 October", moved, false);
        check("Decided: launch on 1 December with Ines", moved, true);
        check("Pier survey: 3 December at the north end", "Pier survey moved to 10 December", true);
        check("Launch moved from 1 to 8 December", "Launch moved to 15 December", true);
    }
}
