//! What is held for review: texts that no reader should take as they stand.
//!
//! Memory is read by agents that act, so a sentence that somebody planted in a log must not become
//! a standing order. [`concerns`] says what speaks against a line, [`concerns_of_block`] also sees
//! a sentence that is broken over lines. Both are functions of the text and of who wrote it:
//!
//! - What is **external** (quotes, code, what tools and pages say) is held as soon as it has the
//!   shape of an order.
//! - What an **agent or a person** wrote is held only for what no honest entry holds. "From now on
//!   use tabs" is what a memory is for.
//!
//! | module | what it tells |
//! |---|---|
//! | [`rules`] | orders, by lists of words in several languages (`config/quarantine.yaml`) |
//! | [`normalize`] | one spelling for all disguises of a text |
//! | [`characters`] | what cannot be seen: tags, bidi, zero width, controls |
//! | [`links`] | images and links that give something away when they are shown |
//! | [`imitation`] | what poses as our prompts, marks, or citations |
//! | [`encoded`] | any of these in base64, hex, rot13 and the like |
//!
//! None of this proves that a text is harmless. It keeps plain attempts out; that nothing external
//! reaches wisdom unaccepted is what carries the weight.

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

/// Why a text is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Concern {
    /// Sets aside what the reader was told before, or asks for the prompt.
    IgnoreInstructions,
    /// Speaks to the agent that reads it.
    Addressed,
    /// A rule for all that comes later.
    StandingRule,
    /// Waits for something that the user says, and then acts.
    DelayedTrigger,
    /// Says what the user wants or has allowed.
    Preference,
    /// Takes a question or a warning away from the user.
    Safeguard,
    /// A command to run.
    Command,
    /// An address to open or load.
    FetchUrl,
    /// Paying or moving money.
    Money,
    /// Passwords and keys.
    Credentials,
    /// Sending something to somebody.
    Sending,
    /// Deleting something.
    Deleting,
    /// Says of itself who vouches for it.
    FakeProvenance,
    /// Poses as our prompts, marks, or citations.
    Imitation,
    /// Characters that cannot be seen.
    HiddenText,
    /// Characters that turn the direction of text.
    Bidi,
    /// Control characters and terminal sequences.
    Control,
    /// An image that is loaded when it is shown.
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

    /// Returns the concern with that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }
}

impl fmt::Display for Concern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::IgnoreInstructions => "sets earlier instructions aside",
            Self::Addressed => "speaks to the agent that reads it",
            Self::StandingRule => "makes a rule for what comes later",
            Self::DelayedTrigger => "waits for a word of the user, then acts",
            Self::Preference => "says what the user wants or allows",
            Self::Safeguard => "takes a question or a warning from the user",
            Self::Command => "gives a command to run",
            Self::FetchUrl => "gives an address to open",
            Self::Money => "moves money",
            Self::Credentials => "asks for passwords or keys",
            Self::Sending => "has something sent",
            Self::Deleting => "has something deleted",
            Self::FakeProvenance => "says of itself that it is trusted",
            Self::Imitation => "poses as a prompt or as a mark of memoird",
            Self::HiddenText => "has characters that cannot be seen",
            Self::Bidi => "has characters that turn the direction of text",
            Self::Control => "has control characters",
            Self::RemoteImage => "has an image that is loaded when it is shown",
            Self::Markup => "has markup that runs or loads something",
            Self::TrackingLink => "has a link that carries data away",
            Self::Encoded => "hides one of these in an encoding",
        })
    }
}

/// Concerns as a set: what several checks of one text add up to.
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

    /// Returns whether nothing speaks against the text.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the concerns in order.
    pub fn iter(self) -> impl Iterator<Item = Concern> {
        Concern::ALL.into_iter().filter(move |it| self.contains(*it))
    }
}

/// Returns what speaks against a line, in order; nothing for most.
pub fn concerns(line: &str, origin: TextOrigin) -> Vec<Concern> {
    text_concerns(line, origin).iter().collect()
}

/// Returns what speaks against lines that follow one another: each line by itself, and sentences
/// that run over several of them. Ascending by index.
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

/// Adds codes that a line above asks to decode and run, or calls a command, perhaps in a fence.
fn flag_code_below(lines: &[(&str, TextOrigin)], found: &mut [ConcernSet]) {
    const BELOW_MAX: usize = 3;
    const CODE_MIN: usize = 4;
    for (i, (asks, origin)) in lines.iter().enumerate() {
        let below = || lines.iter().enumerate().skip(i + 1).take(BELOW_MAX);
        let can_be_code = |code: &str| code.len() >= CODE_MIN && !code.contains(' ');
        // Before the expressions are asked: most lines have nothing like it below them.
        if !below().any(|(_, (code, _))| can_be_code(without_quote_marks(code)))
            || !encoded::asks_to_run(asks) && !encoded::hints_at_command(asks)
        {
            continue;
        }
        let hides = |(_, (code, _)): &(usize, &(&str, TextOrigin))| {
            let code = without_quote_marks(code);
            can_be_code(code)
                && encoded::concerns(&format!("{asks} {code}"), *origin).contains(Concern::Encoded)
        };
        if let Some((at, _)) = below().find(hides) {
            for set in [i, at] {
                found[set].add(Concern::Encoded);
                found[set].add(Concern::Command);
            }
        }
    }
}

/// The most lines of one run. A sentence over more lines than this is found in parts.
const RUN_LINES_MAX: usize = 64;

/// Returns whether a line goes on with what those before it began.
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

/// Returns a line without the marks of a quote.
fn without_quote_marks(line: &str) -> &str {
    line.trim_start_matches(['>', ' ', '\t']).trim_end()
}

/// Adds what is found only when the lines of a run are read as one.
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
        // What stands in one line was told by the line itself.
        if last > first + 1 {
            for set in &mut found[first..last] {
                set.add(concern);
            }
        }
    }
    // A long code is broken into lines, too.
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

/// Everything but hidden characters and encodings: what is asked again of a decoded text.
fn visible_concerns(text: &str, origin: TextOrigin) -> ConcernSet {
    count_bytes(text.len());
    // People and agents who work on such things write them as code, which nobody renders.
    let shown = match origin {
        TextOrigin::External => Cow::Borrowed(text),
        _ => without_code(text),
    };
    let mut found = links::concerns(&shown, origin);
    found.add_all(imitation::concerns(&shown, origin));
    let mut folded = normalize::NormalizedText::default();
    folded.push(text);
    found.add_all(rules::concerns(&folded, origin));
    for disguised in normalize::deobfuscated(folded.text()) {
        found.add_all(rules::concerns(&disguised, origin));
    }
    found
}

/// Returns a text with a blank for each code span.
fn without_code(text: &str) -> Cow<'_, str> {
    static CODE: LazyLock<Reclaimable<Regex>> = LazyLock::new(|| {
        Reclaimable::new(|| Regex::new(r"``[^\n]+?``|`[^`\n]+`").expect("a constant pattern"))
    });
    if text.contains('`') { CODE.get().replace_all(text, " ") } else { Cow::Borrowed(text) }
}

#[cfg(test)]
pub(crate) mod poisons;
#[cfg(test)]
mod tests;
