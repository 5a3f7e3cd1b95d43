//! Whether a line says that what an earlier decision or plan names was given up or exchanged. Pure.
//!
//! `Switched from Brevo to Postmark` ends a plan for Brevo, but not one for Postmark, so only the words are read that
//! name what is gone: between `from` and `to`, after `instead of`, beside `removed`. Of a line with `instead` alone
//! and of a correction all words are read, and more of them must be the same. One shared word must be a name: written
//! like one and rare in the logs. Words of the topic are in many lines.

use std::collections::BTreeSet;

use super::supersession::content_stems;
use crate::text::{
    lexicon::{CUES, SEARCH},
    scripts,
    stems::english_stem,
    words,
};

/// As many words around `removed` may name what was.
const SPAN_WORDS_MAX: usize = 5;

/// A correction begins with its word.
const CORRECTION_WORDS_MAX: usize = 2;

/// A negation is at most this many words before what it denies.
const NEGATION_WORDS: usize = 4;

/// They deny what follows them in scripts without spaces.
const SPACELESS_NEGATIONS: [char; 4] = ['不', '没', '沒', '未'];

/// How many content words a line must share with one that does not say what exactly is gone.
const SHARED_MIN: usize = 2;

/// What a line says is gone.
pub(super) struct Replacement {
    /// The stems of the words that name it.
    gone: BTreeSet<String>,
    /// The stems of the words that name what was removed: only all of them are it.
    removed: Vec<BTreeSet<String>>,
    /// Whether these are all words of the line.
    is_whole_line: bool,
    /// Whether it corrects an earlier line, mostly on the same day.
    pub(super) is_correction: bool,
    /// The words that say that something was taken away.
    removals: BTreeSet<String>,
    content: BTreeSet<String>,
}

/// A word of a line.
struct LineWord {
    folded: String,
    /// Whether a mark after it ends a clause.
    ends_clause: bool,
}

impl Replacement {
    /// Reads what a line says is gone; `None` if it says no such thing.
    pub(super) fn of(line: &str) -> Option<Self> {
        let all = line_words(line);
        let is =
            |at: usize, list: &[&str]| all.get(at).is_some_and(|it| list.contains(&&it.folded[..]));
        let (mut gone, mut removed, mut removals) = (BTreeSet::new(), Vec::new(), BTreeSet::new());
        let (mut is_whole_line, mut is_correction) = (false, false);
        for at in 0..all.len() {
            let is_denied = (at.saturating_sub(NEGATION_WORDS)..at).any(|it| {
                let is_negation =
                    is(it, &SEARCH.negations) || all[it].folded.contains(SPACELESS_NEGATIONS);
                is_negation && !all[it].ends_clause
            });
            if is_denied {
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
        if !is_whole_line && gone.is_empty() && removed.is_empty() {
            return None;
        }
        let content = content_stems(all.iter().map(|it| &it.folded[..]));
        let gone = gone.iter().map(|it| english_stem(it).into_owned()).collect();
        Some(Self { gone, removed, is_whole_line, is_correction, removals, content })
    }

    /// Returns whether this ends what an older line says. `is_name` says whether a stem is a name in one of the two
    /// lines.
    pub(super) fn ends(&self, older: &str, mut is_name: impl FnMut(&str) -> bool) -> bool {
        let all = line_words(older);
        let folded = || all.iter().map(|it| &it.folded[..]);
        if !self.is_correction
            && !folded().any(|it| SEARCH.plan_words.contains(&it))
            && !opens_plan(older)
        {
            return false;
        }
        // `Abandoned carts` are a name.
        if folded().any(|it| self.removals.contains(it)) {
            return false;
        }
        let content = content_stems(folded());
        let shared: Vec<&String> = content.intersection(&self.content).collect();
        let is_removed = |span: &BTreeSet<String>, is_name: &mut dyn FnMut(&str) -> bool| {
            span.is_subset(&content) && span.iter().any(|it| is_name(it))
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

/// Returns the stems that are written like names in a text: with a capital letter inside a sentence, with a digit or
/// a mark inside, or in a script without spaces.
pub(super) fn name_stems(text: &str) -> BTreeSet<String> {
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
    let label = text.split([':', '：']).next().unwrap_or_default();
    let label = label.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    CUES.decision_titles.contains(&&label[..])
}

fn line_words(text: &str) -> Vec<LineWord> {
    let mut all: Vec<LineWord> = Vec::new();
    for token in text.split_whitespace() {
        let before = all.len();
        words::for_each_folded(token, |it| {
            all.push(LineWord { folded: it.to_owned(), ends_clause: false });
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
        let found =
            Replacement::of(newer).is_some_and(|it| it.ends(older, |it| names.contains(it)));
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
        ] {
            check(plan, newer, true);
        }
        for newer in [
            "Switched from Postmark to Brevo",
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
        check("Plan: mails for abandoned Brevo carts", "Abandoned Brevo carts are checked", false);
        // A report is no plan.
        check("Brevo had an outage of two hours", "Switched from Brevo to Postmark", false);
        check("决定使用 Brevo 发送通讯", "通讯改用 Postmark，放弃 Brevo", true);
        check("决定使用 Brevo 发送通讯", "决定不放弃 Brevo", false);
    }
}
