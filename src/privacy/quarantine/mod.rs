//! Quarantine: which lines are hidden until a person has reviewed them.
//!
//! Agents act on what they read in memory, so a sentence that somebody planted in a log must not become
//! a lasting instruction. [`concerns`] returns the reasons against a line; [`concerns_of_block`] also
//! finds sentences over several lines. Both are functions of the text and its origin:
//!
//! - **External** text (quotes, code, output of tools, pages) is quarantined as soon as it has the form
//!   of an instruction.
//! - Text of an **agent or a person** is quarantined only for what no legitimate entry contains. "From
//!   now on use tabs" is what a memory is for.
//!
//! | module | what it finds |
//! |---|---|
//! | [`rules`] | instructions, by word lists in several languages (`config/quarantine.yaml`) |
//! | [`normalize`] | disguised text, by normalizing it |
//! | [`characters`] | invisible text: tags, bidi, zero width, controls |
//! | [`links`] | images and links that disclose something when they are shown |
//! | [`imitation`] | imitations of our prompts, marks, or citations |
//! | [`encoded`] | any of these in base64, hex, rot13 and the like |
//!
//! None of this proves that a text is harmless; it keeps plain attempts out. The main protection is
//! that no external text reaches wisdom unless a person accepted it.

pub mod characters;
pub mod encoded;
pub mod imitation;
pub mod links;
pub mod normalize;
pub mod rules;

use std::{borrow::Cow, fmt, sync::LazyLock};

use regex::Regex;
use serde::Deserialize;

use super::{reclaimable::Reclaimable, work_counter::count_bytes};
use crate::memory::log::TextOrigin;

/// The text that replaces a quarantined line in everything that is shown.
pub const PLACEHOLDER: &str = "[held for review]";

/// A reason to quarantine a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Concern {
    /// It overrides earlier instructions, or asks for the prompt.
    IgnoreInstructions,
    /// It addresses the agent that reads it.
    Addressed,
    /// It sets a rule for the future.
    StandingRule,
    /// It acts when the user says something.
    DelayedTrigger,
    /// It claims what the user wants or has allowed.
    Preference,
    /// It suppresses questions or warnings to the user.
    Safeguard,
    /// A command to run.
    Command,
    /// A URL to open or load.
    FetchUrl,
    /// Payments and transfers.
    Money,
    /// Passwords and keys.
    Credentials,
    /// Sending something to somebody.
    Sending,
    /// Deleting something.
    Deleting,
    /// It claims its own trustworthiness.
    FakeProvenance,
    /// It imitates our prompts, marks, or citations.
    Imitation,
    /// Invisible characters.
    HiddenText,
    /// Characters that change the direction of text.
    Bidi,
    /// Control characters and terminal sequences.
    Control,
    /// An image that is loaded when the text is shown.
    RemoteImage,
    /// HTML or a link that runs or loads something.
    Markup,
    /// A link that carries data away.
    TrackingLink,
    /// Any of these in an encoding.
    Encoded,
}

impl Concern {
    /// All concerns, in order.
    pub const ALL: [Self; 21] = [
        Self::IgnoreInstructions,
        Self::Addressed,
        Self::StandingRule,
        Self::DelayedTrigger,
        Self::Preference,
        Self::Safeguard,
        Self::Command,
        Self::FetchUrl,
        Self::Money,
        Self::Credentials,
        Self::Sending,
        Self::Deleting,
        Self::FakeProvenance,
        Self::Imitation,
        Self::HiddenText,
        Self::Bidi,
        Self::Control,
        Self::RemoteImage,
        Self::Markup,
        Self::TrackingLink,
        Self::Encoded,
    ];

    /// Returns the name that JSON uses.
    pub fn name(self) -> &'static str {
        match self {
            Self::IgnoreInstructions => "ignore-instructions",
            Self::Addressed => "addressed",
            Self::StandingRule => "standing-rule",
            Self::DelayedTrigger => "delayed-trigger",
            Self::Preference => "preference",
            Self::Safeguard => "safeguard",
            Self::Command => "command",
            Self::FetchUrl => "fetch-url",
            Self::Money => "money",
            Self::Credentials => "credentials",
            Self::Sending => "sending",
            Self::Deleting => "deleting",
            Self::FakeProvenance => "fake-provenance",
            Self::Imitation => "imitation",
            Self::HiddenText => "hidden-text",
            Self::Bidi => "bidi",
            Self::Control => "control",
            Self::RemoteImage => "remote-image",
            Self::Markup => "markup",
            Self::TrackingLink => "tracking-link",
            Self::Encoded => "encoded",
        }
    }
}

impl fmt::Display for Concern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::IgnoreInstructions => "overrides earlier instructions",
            Self::Addressed => "addresses the agent that reads it",
            Self::StandingRule => "sets a rule for the future",
            Self::DelayedTrigger => "acts when the user says something",
            Self::Preference => "claims what the user wants or allows",
            Self::Safeguard => "suppresses questions or warnings to the user",
            Self::Command => "asks to run a command",
            Self::FetchUrl => "asks to open a URL",
            Self::Money => "asks to move money",
            Self::Credentials => "asks for passwords or keys",
            Self::Sending => "asks to send something",
            Self::Deleting => "asks to delete something",
            Self::FakeProvenance => "claims to be trusted",
            Self::Imitation => "imitates a prompt or a mark of memoird",
            Self::HiddenText => "contains invisible characters",
            Self::Bidi => "contains characters that change the direction of text",
            Self::Control => "contains control characters",
            Self::RemoteImage => "contains an image that is loaded when it is shown",
            Self::Markup => "contains markup that runs or loads something",
            Self::TrackingLink => "contains a link that carries data away",
            Self::Encoded => "hides one of these in an encoding",
        })
    }
}

/// A set of concerns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConcernSet(u32);

impl ConcernSet {
    /// Adds a concern.
    pub fn add(&mut self, concern: Concern) {
        self.0 |= 1 << concern as u32;
    }

    /// Adds all of another set.
    pub fn add_all(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// Returns whether the concern is in the set.
    pub fn contains(self, concern: Concern) -> bool {
        self.0 & (1 << concern as u32) != 0
    }

    /// Returns whether there is no concern.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the concerns in order.
    pub fn iter(self) -> impl Iterator<Item = Concern> {
        Concern::ALL.into_iter().filter(move |it| self.contains(*it))
    }
}

/// Builds the rules. They are built on first use otherwise, which takes longer than most checks; a command
/// that somebody waits for can do so beside its other work.
pub(crate) fn prepare() {
    rules::prepare();
    imitation::prepare();
}

/// Returns the concerns about a line, in order; none for most.
pub fn concerns(line: &str, origin: TextOrigin) -> Vec<Concern> {
    text_concerns(line, origin).iter().collect()
}

/// Returns the concerns about consecutive lines, with the index of the line, ascending: each line by
/// itself, and sentences over several lines.
pub fn concerns_of_block(lines: &[(&str, TextOrigin)]) -> Vec<(usize, Concern)> {
    let mut found: Vec<ConcernSet> =
        lines.iter().map(|(line, origin)| text_concerns(line, *origin)).collect();
    let mut first = 0;
    while first < lines.len() {
        let mut end = first + 1;
        while end < lines.len() && continues_run(&lines[first..end], lines[end]) {
            end += 1;
        }
        if end > first + 1 {
            flag_wrapped_sentences(&lines[first..end], &mut found[first..end]);
        }
        first = end;
    }
    flag_code_below(lines, &mut found);
    found.iter().enumerate().flat_map(|(i, set)| set.iter().map(move |it| (i, it))).collect()
}

/// Flags encoded text that a line above asks to decode and run, or calls a command.
fn flag_code_below(lines: &[(&str, TextOrigin)], found: &mut [ConcernSet]) {
    const BELOW_MAX: usize = 3;
    const CODE_MIN: usize = 4;
    for (i, (asks, origin)) in lines.iter().enumerate() {
        let below = || lines.iter().enumerate().skip(i + 1).take(BELOW_MAX);
        let can_be_code = |code: &str| code.len() >= CODE_MIN && !code.contains(' ');
        // A cheap test before the expressions: most lines have no encoded text below them.
        if !below().any(|(_, (code, _))| can_be_code(without_quote_marks(code)))
            || !encoded::asks_to_run(asks) && !encoded::hints_at_command(asks)
        {
            continue;
        }
        let is_encoded = |(_, (code, _)): &(usize, &(&str, TextOrigin))| {
            let code = without_quote_marks(code);
            can_be_code(code)
                && encoded::concerns(&format!("{asks} {code}"), *origin).contains(Concern::Encoded)
        };
        if let Some((at, _)) = below().find(is_encoded) {
            for set in [i, at] {
                found[set].add(Concern::Encoded);
                found[set].add(Concern::Command);
            }
        }
    }
}

/// The most lines of one run. A sentence over more lines is found in parts.
const RUN_LINES_MAX: usize = 64;

/// Returns whether a line continues the run before it.
fn continues_run(run: &[(&str, TextOrigin)], (line, origin): (&str, TextOrigin)) -> bool {
    let Some(&(last, before)) = run.last() else { return false };
    let words = without_quote_marks(line);
    let starts_item =
        words.starts_with(['#', '|']) || ["- ", "* ", "+ "].iter().any(|it| words.starts_with(it));
    origin == before
        && run.len() < RUN_LINES_MAX
        && !without_quote_marks(last).is_empty()
        && !words.is_empty()
        && (!starts_item || last.trim_end().ends_with(':'))
}

/// Returns a line without quote marks.
fn without_quote_marks(line: &str) -> &str {
    line.trim_start_matches(['>', ' ', '\t']).trim_end()
}

/// Flags concerns that appear only when the lines of a run are joined.
fn flag_wrapped_sentences(run: &[(&str, TextOrigin)], found: &mut [ConcernSet]) {
    let origin = run[0].1;
    let mut joined = normalize::NormalizedText::default();
    let mut starts = Vec::with_capacity(run.len());
    for (line, _) in run {
        starts.push(joined.text().len());
        joined.push(without_quote_marks(line));
        joined.push(" ");
    }
    count_bytes(joined.text().len());
    for (concern, span) in rules::spans(&joined, origin) {
        let first = starts.partition_point(|&it| it <= span.start).saturating_sub(1);
        let last = starts.partition_point(|&it| it < span.end).max(first + 1);
        // A span within one line was found in the line itself.
        if last > first + 1 {
            for set in &mut found[first..last] {
                set.add(concern);
            }
        }
    }
    // Long encoded text may be wrapped, too.
    let is_code = |line: &str| line.len() >= 24 && !line.contains(' ');
    if run.iter().filter(|(line, _)| is_code(without_quote_marks(line))).count() > 1 {
        let code: String = run.iter().map(|(line, _)| without_quote_marks(line)).collect();
        if encoded::concerns(&code, origin).contains(Concern::Encoded) {
            for set in found.iter_mut() {
                set.add(Concern::Encoded);
            }
        }
    }
}

fn text_concerns(text: &str, origin: TextOrigin) -> ConcernSet {
    count_bytes(text.len());
    let mut found = characters::concerns(text);
    found.add_all(visible_concerns(text, origin));
    found.add_all(encoded::concerns(text, origin));
    found
}

/// Returns all concerns but hidden characters and encodings; decoded text is checked with it, too.
fn visible_concerns(text: &str, origin: TextOrigin) -> ConcernSet {
    count_bytes(text.len());
    // People and agents who work on such things write them as code, which is not rendered.
    let shown = match origin {
        TextOrigin::External => Cow::Borrowed(text),
        _ => without_code(text),
    };
    let mut found = links::concerns(&shown, origin);
    found.add_all(imitation::concerns(&shown, origin));
    let mut normalized = normalize::NormalizedText::default();
    normalized.push(text);
    found.add_all(rules::concerns(&normalized, origin));
    for disguised in normalize::deobfuscated(normalized.text()) {
        found.add_all(rules::concerns(&disguised, origin));
    }
    found
}

/// Returns a text with a space instead of each code span.
fn without_code(text: &str) -> Cow<'_, str> {
    static CODE: LazyLock<Reclaimable<Regex>> = LazyLock::new(|| {
        Reclaimable::new(|| Regex::new(r"``[^\n]+?``|`[^`\n]+`").expect("a constant pattern"))
    });
    if text.contains('`') { CODE.get().replace_all(text, " ") } else { Cow::Borrowed(text) }
}

fn reclaimable_regex(pattern: &'static str) -> Reclaimable<Regex> {
    Reclaimable::new(|| Regex::new(&with_ascii_boundaries(pattern)).expect("a constant pattern"))
}

/// Returns a pattern with ASCII word boundaries, which suffice and are much faster in other scripts.
fn with_ascii_boundaries(pattern: &str) -> String {
    pattern.replace(r"\b", r"(?-u:\b)")
}

#[cfg(test)]
pub(crate) mod poisons;
#[cfg(test)]
mod tests;
