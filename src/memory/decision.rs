//! The decisions of people, recorded in `.decisions.jsonl`.
//!
//! The file is append-only and travels with the root, so decisions outlive the database. It
//! contains no text: lines are identified by keyed hashes (BLAKE3 in keyed mode), so that with the
//! file alone nobody can test guesses of what a deleted line said. A line holds the key; after a
//! merge of two machines there are two, and a hash may be made with either:
//!
//! ```text
//! {"key":"5f0c…"}
//! {"at":"2026-04-06T03:00:12Z","what":"deleted","in":"memory/weekly/2026-W14.md","hashes":["9c1f2ab04d7e6f58"]}
//! ```
//!
//! The lines are a set: what counts is their time, not their order, and a repeated one counts once.
//!
//! - **Deleted bullet:** blocks the lines that it cited, in that file. An item that cites only such
//!   lines is kept out. Writing the bullet back lifts this.
//! - **Undone work:** is identified by its fingerprint, which covers its inputs. It is not done
//!   again until an input changes or a person asks for it.
//! - **Forgotten line:** is blocked for good, in every log (`in` is empty) or, if a whole log was
//!   forgotten, in that one (`in` is its name), by its bytes and by what it says without time, label,
//!   and address. Nothing lifts this: whoever brings the same words
//!   back, by hand or with a sync tool, cannot bring them into a generated file.
//! - **Quarantined line:** is identified by its hash and the name of its log. The same words in
//!   another log are quarantined again.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Serialize};

use super::{
    bare_words,
    hash::{self, ContentHash},
};
use crate::text::sentences::sentence_ranges;

/// All decisions of a root.
#[derive(Clone, Debug, Default)]
pub struct Decisions {
    /// The keys, sorted, so that all machines use the same one first.
    keys: BTreeSet<[u8; 32]>,
    /// The time of the newest decision.
    newest: Option<DateTime<Utc>>,
    /// Per file, the lines blocked from it.
    deleted: BTreeMap<String, BTreeSet<String>>,
    /// Fingerprints of undone work: 16 hex digits.
    undone: BTreeSet<String>,
    /// Per log, the forgotten lines; under the empty name, those of all logs.
    forgotten: BTreeMap<String, BTreeSet<String>>,
    /// Per log, the quarantined lines that a person accepted.
    accepted: BTreeMap<String, BTreeSet<String>>,
    /// Per log, the quarantined lines that a person refused; nobody is asked about them again.
    refused: BTreeMap<String, BTreeSet<String>>,
    /// 1-based numbers of lines that could not be read.
    unreadable: Vec<usize>,
}

/// The kind of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DecisionKind {
    /// A person deleted the item that cited the lines.
    Deleted,
    /// A person wrote the item back, asked for undone work, or withdrew what they said of a
    /// quarantined line.
    Restored,
    /// A person accepted a quarantined line of the log `in`, or a proposed change of the file `in`.
    Accepted,
    /// A person refused it: it stays out, and nobody is asked again.
    Refused,
    /// A run was undone; `hashes` are the fingerprints of its work.
    Undone,
    /// The lines are to be forgotten.
    Forgotten,
    /// A kind that only a newer memoird knows.
    #[serde(other)]
    Unknown,
}

/// What a person said of a quarantined line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may be used.
    Accepted,
    /// It stays out.
    Refused,
}

/// One decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// The time, to the second, UTC.
    pub at: DateTime<Utc>,
    /// The kind.
    pub what: DecisionKind,
    /// The file, relative to the root. For forgotten or quarantined lines, the name of the log;
    /// empty where lines are forgotten in every log. A proposed change of a file is identified by
    /// the hash of what it would write.
    #[serde(rename = "in")]
    pub path: String,
    /// The lines, by [`Decisions::line_hash`].
    pub hashes: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct KeyLine {
    key: String,
}

impl Decisions {
    /// Parses the file.
    ///
    /// A line that cannot be read (a crash may have torn the last one) is skipped and listed by
    /// [`Self::unreadable`]; kinds of a newer version are ignored.
    pub fn parse(text: &str) -> Self {
        let mut decisions = Self::default();
        let mut made: Vec<Decision> = Vec::new();
        for (i, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            if let Some(key) = parse_key(line) {
                decisions.keys.insert(key);
            } else if let Ok(decision) = serde_json::from_str::<Decision>(line) {
                made.push(decision);
            } else {
                decisions.unreadable.push(i + 1);
            }
        }
        made.sort_by_key(|it| it.at);
        for decision in &made {
            decisions.apply(decision);
        }
        decisions
    }

    /// Creates the decisions of a new file. `random` must come from the system.
    pub fn with_key(random: [u8; 32]) -> Self {
        Self { keys: [random].into(), ..Self::default() }
    }

    /// Returns whether there is a key, so that lines can be identified.
    pub fn has_key(&self) -> bool {
        !self.keys.is_empty()
    }

    /// Prints the first line of a new file.
    pub fn header_line(&self) -> String {
        let key = self.keys.first().map(|key| hash::hex(key)).unwrap_or_default();
        format!("{{\"key\":\"{key}\"}}\n")
    }

    /// Returns the keyed hash of a line's text without surrounding white space: 16 hex digits.
    pub fn line_hash(&self, line: &str) -> Option<String> {
        self.line_hashes(line).next()
    }

    /// Returns [`Self::line_hash`] with each key, to record a decision or to look one up.
    pub fn line_hashes(&self, line: &str) -> impl Iterator<Item = String> {
        let hash =
            |key| hash::hex(&blake3::keyed_hash(key, line.trim().as_bytes()).as_bytes()[..8]);
        self.keys.iter().map(hash)
    }

    /// Returns whether any hash of a line is among these.
    fn is_among(&self, hashes: &BTreeSet<String>, line: &str) -> bool {
        self.line_hashes(line).any(|it| hashes.contains(&it))
    }

    /// Returns the time of the newest decision.
    pub fn newest(&self) -> Option<DateTime<Utc>> {
        self.newest
    }

    /// Returns the hashes by which a forgotten line is recognized: of the line itself, and of what it says, at
    /// any time and under any label and address.
    pub fn forgotten_hashes(&self, line: &str) -> Vec<String> {
        let words = bare_words::bare_words(line);
        let start = start_of(&words).map(|it| if is_cut(&words) { it + CUT } else { it + WHOLE });
        let words = Some(format!("{SAYS}{words}")).filter(|it| it.len() > SAYS.len());
        let core = Some(format!("{SAYS}{}", bare_words::core_words(line)));
        let core = core.filter(|it| it.len() > SAYS.len() && words.as_ref() != Some(it));
        let texts = [Some(line.to_owned()), words, start, core];
        let hashes = |it: String| self.line_hashes(&it).collect::<Vec<_>>();
        texts.into_iter().flatten().flat_map(hashes).collect()
    }

    /// Returns whether any line is forgotten.
    pub fn has_forgotten(&self) -> bool {
        !self.forgotten.is_empty()
    }

    /// Applies a decision.
    pub fn apply(&mut self, decision: &Decision) {
        self.newest = self.newest.max(Some(decision.at));
        match decision.what {
            DecisionKind::Deleted => {
                add_lines(&mut self.deleted, decision);
            }
            DecisionKind::Restored => {
                remove_lines(&mut self.deleted, decision);
                for hash in &decision.hashes {
                    self.undone.remove(hash);
                }
                for reviewed in [&mut self.accepted, &mut self.refused] {
                    remove_lines(reviewed, decision);
                }
            }
            DecisionKind::Accepted => {
                remove_lines(&mut self.refused, decision);
                add_lines(&mut self.accepted, decision);
            }
            DecisionKind::Refused => {
                remove_lines(&mut self.accepted, decision);
                add_lines(&mut self.refused, decision);
            }
            DecisionKind::Undone => self.undone.extend(decision.hashes.iter().cloned()),
            DecisionKind::Forgotten => {
                add_lines(&mut self.forgotten, decision);
            }
            DecisionKind::Unknown => {}
        }
    }

    /// Returns whether a line of the named log is forgotten.
    pub fn is_forgotten(&self, log: &str, line: &str) -> bool {
        let everywhere = self.forgotten.get("");
        let here = self.forgotten.get(log);
        if everywhere.is_none() && here.is_none() {
            return false;
        }
        let words = bare_words::bare_words(line);
        // A text that was cut off is compared by its start.
        let start = start_of(&words).map(|it| if is_cut(&words) { it + WHOLE } else { it + CUT });
        let texts = [Some(line.to_owned()), Some(format!("{SAYS}{words}")), start];
        // Decisions of earlier versions have the end mark of a sentence.
        let cores = cores_of(line)
            .into_iter()
            .flat_map(|it| [format!("{SAYS}{it}."), SAYS.to_owned() + &it]);
        let mut texts = texts.into_iter().flatten().chain(cores);
        texts
            .any(|text| [everywhere, here].into_iter().flatten().any(|it| self.is_among(it, &text)))
    }

    /// Returns what a person said of a quarantined line of the named log.
    pub fn review_verdict(&self, log: &str, line: &str) -> Option<Verdict> {
        let (accepted, refused) = (self.accepted.get(log), self.refused.get(log));
        if accepted.is_none() && refused.is_none() {
            return None;
        }
        let is_in = |it: Option<&BTreeSet<String>>| it.is_some_and(|it| self.is_among(it, line));
        if is_in(accepted) {
            return Some(Verdict::Accepted);
        }
        is_in(refused).then_some(Verdict::Refused)
    }

    /// Returns the hash of the named log as an input: of its bytes and of the accepted lines in it.
    ///
    /// So files derived from it are written again when another line is accepted, even without a
    /// database.
    pub fn input_hash(&self, log: &str, bytes: ContentHash) -> ContentHash {
        match self.accepted.get(log).filter(|it| !it.is_empty()) {
            None => bytes,
            Some(accepted) => ContentHash::of(format!("{bytes:?} {accepted:?}")),
        }
    }

    /// Like [`Self::input_hash`] for a weekly or monthly file, from the hash of its body.
    pub fn summary_input_hash(&self, name: &str, body_hash: &str) -> String {
        match self.accepted.get(name).filter(|it| !it.is_empty()) {
            None => body_hash.to_owned(),
            Some(accepted) => ContentHash::of(format!("{body_hash} {accepted:?}")).hex16(),
        }
    }

    /// Returns the placeholder of a secret, which is the same wherever the secret occurs.
    ///
    /// It ends in four hex digits of a keyed hash: enough to distinguish the secrets of a root, too
    /// few to test guesses. Without a key there are none.
    pub fn secret_placeholder(&self, kind: &str, secret: &str) -> String {
        match self.line_hash(secret) {
            Some(hash) => format!("[secret:{kind}#{}]", &hash[..4]),
            None => format!("[secret:{kind}]"),
        }
    }

    /// Returns a text without such placeholders, to build names from it.
    pub fn strip_secret_placeholders(text: &str) -> String {
        let mut left = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find("[secret:") {
            left.push_str(&rest[..at]);
            rest = rest[at..].split_once(']').map_or("", |(_, after)| after);
        }
        left + rest
    }

    /// Returns whether an item that cites `lines` is kept out of the file at `path`: a person
    /// deleted items there that cited every one of them.
    pub fn is_deleted<'a>(&self, path: &str, lines: impl IntoIterator<Item = &'a str>) -> bool {
        let Some(blocked) = self.deleted.get(path).filter(|it| !it.is_empty()) else {
            return false;
        };
        let mut lines = lines.into_iter().peekable();
        lines.peek().is_some() && lines.all(|it| self.is_among(blocked, it))
    }

    /// Returns the files from which lines are blocked.
    pub fn files_with_deleted(&self) -> impl Iterator<Item = &str> {
        self.deleted.iter().filter(|it| !it.1.is_empty()).map(|it| &it.0[..])
    }

    /// Returns whether the work was undone and waits for changed input.
    pub fn is_undone(&self, fingerprint: ContentHash) -> bool {
        self.undone.contains(&fingerprint.hex16())
    }

    /// Returns the numbers of lines that could not be read, from 1.
    pub fn unreadable(&self) -> &[usize] {
        &self.unreadable
    }
}

/// Marks what a line says, as opposed to the line itself.
const SAYS: &str = "\u{1}";
/// Marks the start of words that were cut off, and of whole ones.
const CUT: &str = " cut";
const WHOLE: &str = " whole";
/// How much of a text is compared with one that was cut off, in characters.
const START_CHARS: usize = 60;

/// Returns the core of what a line says, and of each of its sentences.
fn cores_of(line: &str) -> Vec<String> {
    /// A shorter sentence says the same in many lines.
    const CHARS_MIN: usize = 16;
    let mut cores = vec![bare_words::core_words(line)];
    let ranges = sentence_ranges(line);
    if ranges.len() > 1 {
        let sentences = ranges.iter().filter_map(|it| line.get(it.0..it.1));
        let sentences = sentences.map(bare_words::core_words);
        cores.extend(sentences.filter(|it| it.chars().count() >= CHARS_MIN));
    }
    cores.retain(|it| !it.is_empty());
    cores
}

fn is_cut(words: &str) -> bool {
    words.ends_with('…')
}

/// Returns the start of words that are long enough to be cut off.
fn start_of(words: &str) -> Option<String> {
    let (at, _) = words.char_indices().nth(START_CHARS)?;
    Some(words[..at].trim_end().to_owned())
}

fn add_lines(lines: &mut BTreeMap<String, BTreeSet<String>>, decision: &Decision) {
    let inside = lines.entry(decision.path.clone()).or_default();
    inside.extend(decision.hashes.iter().cloned());
}

fn remove_lines(lines: &mut BTreeMap<String, BTreeSet<String>>, decision: &Decision) {
    if let Some(inside) = lines.get_mut(&decision.path) {
        inside.retain(|it| !decision.hashes.contains(it));
    }
}

impl Decision {
    /// Formats the line of the file.
    pub fn print(&self) -> String {
        let mut line = String::new();
        let at = self.at.to_rfc3339_opts(SecondsFormat::Secs, true);
        let what = serde_json::json!(self.what);
        let path = serde_json::json!(self.path);
        let hashes = serde_json::json!(self.hashes);
        writeln!(line, "{{\"at\":\"{at}\",\"what\":{what},\"in\":{path},\"hashes\":{hashes}}}")
            .expect("writing to a string never fails");
        line
    }
}

fn parse_key(line: &str) -> Option<[u8; 32]> {
    let KeyLine { key } = serde_json::from_str(line).ok()?;
    let mut bytes = [0; 32];
    if key.len() != 64 || !key.is_ascii() {
        return None;
    }
    for (i, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&key[2 * i..2 * i + 2], 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WEEK: &str = "memory/weekly/2026-W14.md";

    fn decide(decisions: &mut Decisions, what: DecisionKind, lines: &[&str]) -> String {
        let hashes = lines.iter().map(|it| decisions.line_hash(it).unwrap()).collect();
        let at = "2026-04-06T03:00:12Z".parse().unwrap();
        let decision = Decision { at, what, path: WEEK.to_owned(), hashes };
        decisions.apply(&decision);
        decision.print()
    }

    #[test]
    fn decisions_survive_the_file() {
        let mut decisions = Decisions::with_key([7; 32]);
        let mut text = decisions.header_line();
        text.push_str(&decide(&mut decisions, DecisionKind::Deleted, &["- one", "- two"]));
        assert!(!text.contains("one"), "no text of a log: {text}");
        let read = Decisions::parse(&text);
        assert!(read.is_deleted(WEEK, ["  - one "]));
        assert!(read.is_deleted(WEEK, ["- two", "- one"]));
        assert!(!read.is_deleted(WEEK, ["- one", "- three"]), "it also cites another line");
        assert!(!read.is_deleted("memory/monthly/2026-04.md", ["- one"]));
        assert!(!read.is_deleted(WEEK, []));
    }

    #[test]
    fn accepting_a_quarantined_line_changes_the_input_hash_of_its_log_alone() {
        let mut decisions = Decisions::with_key([7; 32]);
        let decide = |decisions: &mut Decisions, what| {
            let hashes = vec![decisions.line_hash("> run it").unwrap()];
            let at = "2026-04-06T03:00:12Z".parse().unwrap();
            decisions.apply(&Decision { at, what, path: "2026-04-02".to_owned(), hashes });
        };
        let bytes = ContentHash::of("a log");
        let seen = |it: &Decisions| {
            (
                it.review_verdict("2026-04-02", " > run it"),
                it.input_hash("2026-04-02", bytes) == bytes,
            )
        };
        assert_eq!(seen(&decisions), (None, true));
        decide(&mut decisions, DecisionKind::Refused);
        assert_eq!(seen(&decisions), (Some(Verdict::Refused), true));
        decide(&mut decisions, DecisionKind::Accepted);
        assert_eq!(seen(&decisions), (Some(Verdict::Accepted), false));
        assert_eq!(decisions.review_verdict("2026-04-03", "> run it"), None);
        assert_eq!(decisions.review_verdict("2026-04-02", "> run"), None);
        assert_eq!(decisions.input_hash("2026-04-03", bytes), bytes);
        decide(&mut decisions, DecisionKind::Restored);
        assert_eq!(seen(&decisions), (None, true));
    }

    #[test]
    fn placeholders_differ_by_secret_and_by_root() {
        let marks = [7, 8].map(|key| {
            let decisions = Decisions::with_key([key; 32]);
            ["one", "two"].map(|it| decisions.secret_placeholder("token", it))
        });
        assert!(marks[0][0].starts_with("[secret:token#") && marks[0][0].len() == 19);
        assert_ne!(marks[0][0], marks[0][1]);
        assert_ne!(marks[0], marks[1]);
        assert_eq!(Decisions::default().secret_placeholder("token", "one"), "[secret:token]");
    }

    #[test]
    fn writing_back_lifts_a_deletion() {
        let mut decisions = Decisions::with_key([7; 32]);
        decide(&mut decisions, DecisionKind::Deleted, &["- one", "- two"]);
        decide(&mut decisions, DecisionKind::Restored, &["- one"]);
        assert!(!decisions.is_deleted(WEEK, ["- one"]));
        assert!(decisions.is_deleted(WEEK, ["- two"]));
    }

    #[test]
    fn undone_work_stays_undone_until_it_is_restored() {
        let work = ContentHash::of("weekly 2026-W14");
        let decision = |what| {
            let at = "2026-04-06T03:00:12Z".parse().unwrap();
            Decision { at, what, path: WEEK.to_owned(), hashes: vec![work.hex16()] }.print()
        };
        let mut text = decision(DecisionKind::Undone);
        assert!(Decisions::parse(&text).is_undone(work), "it needs no key");
        assert!(!Decisions::parse(&text).is_undone(ContentHash::of("another week")));
        text.push_str(&decision(DecisionKind::Restored));
        assert!(!Decisions::parse(&text).is_undone(work));
    }

    #[test]
    fn lines_are_forgotten_in_one_log_or_in_all() {
        let mut decisions = Decisions::with_key([7; 32]);
        assert!(decisions.forgotten.is_empty());
        for (log, line) in [("", "- one"), ("2026-04-02", "- two")] {
            let hashes = vec![decisions.line_hash(line).unwrap()];
            let at = "2026-04-06T03:00:12Z".parse().unwrap();
            decisions.apply(&Decision {
                at,
                what: DecisionKind::Forgotten,
                path: log.to_owned(),
                hashes,
            });
        }
        assert!(!decisions.forgotten.is_empty());
        assert!(decisions.is_forgotten("2026-04-03", " - one"));
        assert!(decisions.is_forgotten("2026-04-02", "- two"));
        assert!(!decisions.is_forgotten("2026-04-03", "- two"));
        assert!(!decisions.is_forgotten("2026-04-02", "- three"));
    }

    #[test]
    fn forgotten_words_stay_forgotten_at_another_time_and_cut_off() {
        let mut decisions = Decisions::with_key([7; 32]);
        let long = "Priya moved to Porto with her brother and both of the cats, and Noor has her new address";
        let cut: String = long.chars().take(70).chain(['…']).collect();
        for line in [
            "- 09:05 Henk is ill",
            "- 09:05",
            long,
            "- 08:00 Noor's number is in the blue book of the harbour office, at the very…",
        ] {
            let hashes = decisions.forgotten_hashes(line);
            let at = "2026-04-06T03:00:12Z".parse().unwrap();
            let what = DecisionKind::Forgotten;
            decisions.apply(&Decision { at, what, path: String::new(), hashes });
        }
        for line in [
            "- 10:11 henk is  ill [CMEM-20260402-101500:7]",
            "Henk is ill",
            "- 09:05",
            &cut,
            long,
            "Noor's number is in the blue book of the harbour office, at the very end",
            "- 17:23 **Henk is ill**",
            "- Note: Henk is ill!",
            &format!("- Watered the plants. {long}."),
        ] {
            assert!(decisions.is_forgotten("2026-04-03", line), "{line}");
        }
        for line in ["- 10:11", "- Henk is", "", &format!("{long} now"), &cut[..40]] {
            assert!(!decisions.is_forgotten("2026-04-03", line), "{line}");
        }
    }

    #[test]
    fn decisions_of_two_machines_are_a_set() {
        let [mut one, mut two] = [7, 8].map(|it| Decisions::with_key([it; 32]));
        let first = one.header_line() + &decide(&mut one, DecisionKind::Deleted, &["- one"]);
        let second = two.header_line() + &decide(&mut two, DecisionKind::Deleted, &["- two"]);
        let both = Decisions::parse(&format!("{first}{second}"));
        let mut lines: Vec<&str> =
            first.lines().chain(second.lines()).chain(first.lines()).collect();
        lines.reverse();
        let reversed = Decisions::parse(&lines.join("\n"));
        for read in [&both, &reversed] {
            assert!(read.is_deleted(WEEK, ["- one", "- two"]) && read.unreadable().is_empty());
            assert_eq!(read.line_hash("- one"), one.line_hash("- one"));
        }
        // Whoever writes it back lifts the deletion of either.
        let at = "2026-04-06T04:00:12Z".parse().unwrap();
        let hashes = both.line_hashes("- two").collect();
        let back = Decision { at, what: DecisionKind::Restored, path: WEEK.to_owned(), hashes };
        let read = Decisions::parse(&format!("{}{second}{first}", back.print()));
        assert!(!read.is_deleted(WEEK, ["- two"]) && read.is_deleted(WEEK, ["- one"]));
    }

    #[test]
    fn torn_and_newer_lines_are_skipped() {
        let mut decisions = Decisions::with_key([7; 32]);
        let mut text = decisions.header_line();
        text.push_str("{\"at\":\"2027-01-01T00:00:00Z\",\"what\":\"sealed\",\"in\":\"x\",\"hashes\":[],\"by\":1}\n");
        text.push_str(&decide(&mut decisions, DecisionKind::Deleted, &["- one"]));
        text.push_str("{\"at\":\"2026-04-06T03:0");
        let read = Decisions::parse(&text);
        assert!(read.is_deleted(WEEK, ["- one"]));
        assert_eq!(read.unreadable(), [4]);
    }
}
