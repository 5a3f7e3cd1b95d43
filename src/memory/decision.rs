//! What people decided, as `.decisions.jsonl` keeps it.
//!
//! The file outlives the database, travels with the root, and holds no text: a line that a person
//! deleted is known by a keyed hash, which says nothing to whoever has the file without the key in
//! its first line, and to whoever has both no more than whether a text that they already know was
//! decided on.
//!
//! ```text
//! {"key":"<64 hex digits>"}
//! {"at":"2026-05-04T07:00:00Z","what":"deleted","in":"memory/weekly/2026-W14.md","hashes":["9c1f2ab04d7e6f58"]}
//! ```
//!
//! # Invariants
//!
//! - Lines are only ever appended. What a later version writes and this one does not know is
//!   passed over, never an error.
//! - A line that a crash cut short costs that decision and no other.
//!
//! Called by `store` (reading and appending) and `compaction` (asking).

use std::{
    collections::{HashMap, HashSet},
    fmt,
};

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Serialize};

use super::hash::hex;

/// The secret of a root: what makes its hashes useless elsewhere.
#[derive(Clone, PartialEq, Eq)]
pub struct DecisionKey([u8; 32]);

/// The hash of one line's text under a root's key: 16 hex digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KeyedHash(String);

/// What was decided.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum What {
    /// A bullet, memory, or entry was taken out: what rests on these lines alone stays out.
    Deleted,
    /// It was written back.
    Restored,
    /// What was held for review may be served.
    Accepted,
    /// What was held or proposed may not.
    Refused,
    /// A run was taken back; until an input changes it is not made again.
    Undone,
    /// The lines were forgotten: they are never read again.
    Forgotten,
    /// A word of a later version, kept.
    Unknown(String),
}

/// One line of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// When.
    pub at: DateTime<Utc>,
    /// What.
    pub what: What,
    /// The file that it was said of, relative to the root.
    pub path: String,
    /// The lines that it binds.
    pub hashes: Vec<KeyedHash>,
}

/// A `.decisions.jsonl` as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecisionLog {
    /// The key in its first line.
    pub key: DecisionKey,
    /// What was decided, oldest first.
    pub decisions: Vec<Decision>,
    /// Numbers of lines that could not be read, from 1.
    pub unread: Vec<usize>,
    /// Whether the file ends inside a line: whoever appends must end that line first.
    pub torn: bool,
}

/// A file without a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the first line of .decisions.jsonl is not a key like {{\"key\":\"<64 hex digits>\"}}; \
     restore the file, since without its key no earlier decision can be told"
)]
pub struct NoKey;

/// What stands after all decisions, by file.
#[derive(Clone, Debug, Default)]
pub struct Decisions {
    standing: HashMap<What, HashMap<String, HashSet<KeyedHash>>>,
}

impl DecisionKey {
    /// Makes a key of 32 random bytes.
    pub fn new(random: [u8; 32]) -> Self {
        Self(random)
    }

    /// Returns the bytes, for marks that must be told apart within one root only.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns the first line of the file, with its line end.
    pub fn line(&self) -> String {
        format!("{{\"key\":\"{}\"}}\n", hex(&self.0))
    }

    /// Hashes a line's text; blanks around it do not count.
    pub fn hash(&self, text: &str) -> KeyedHash {
        KeyedHash(hex(&blake3::keyed_hash(&self.0, text.trim().as_bytes()).as_bytes()[..8]))
    }

    fn read(line: &[u8]) -> Option<Self> {
        #[derive(Deserialize)]
        struct KeyLine {
            key: String,
        }
        let digits = serde_json::from_slice::<KeyLine>(line).ok()?.key;
        let hash = blake3::Hash::from_hex(digits).ok()?;
        Some(Self(*hash.as_bytes()))
    }
}

impl fmt::Debug for DecisionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DecisionKey(…)")
    }
}

impl fmt::Display for KeyedHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl What {
    /// Returns the word that the file uses.
    pub fn name(&self) -> &str {
        match self {
            Self::Deleted => "deleted",
            Self::Restored => "restored",
            Self::Accepted => "accepted",
            Self::Refused => "refused",
            Self::Undone => "undone",
            Self::Forgotten => "forgotten",
            Self::Unknown(name) => name,
        }
    }

    /// Returns what the word means.
    pub fn from_name(name: &str) -> Self {
        let known = [
            Self::Deleted,
            Self::Restored,
            Self::Accepted,
            Self::Refused,
            Self::Undone,
            Self::Forgotten,
        ];
        let found = known.into_iter().find(|it| it.name() == name);
        found.unwrap_or_else(|| Self::Unknown(name.to_owned()))
    }
}

/// A [`Decision`] as it is spelled.
#[derive(Serialize, Deserialize)]
struct DecisionLine {
    at: DateTime<Utc>,
    what: String,
    #[serde(rename = "in")]
    path: String,
    hashes: Vec<KeyedHash>,
}

impl Decision {
    /// Returns the line to append, with its line end. The time is given in whole seconds, UTC.
    pub fn line(&self) -> String {
        let at = self.at.to_rfc3339_opts(SecondsFormat::Secs, true);
        let hashes: Vec<&str> = self.hashes.iter().map(|it| it.0.as_str()).collect();
        let line = serde_json::json!({
            "at": at, "what": self.what.name(), "in": self.path, "hashes": hashes,
        });
        format!("{line}\n")
    }

    fn read(line: &[u8]) -> Option<Self> {
        let line: DecisionLine = serde_json::from_slice(line).ok()?;
        let DecisionLine { at, what, path, hashes } = line;
        let digit = |b: u8| matches!(b, b'0'..=b'9' | b'a'..=b'f');
        let plain = hashes.iter().all(|it| it.0.len() == 16 && it.0.bytes().all(digit));
        plain.then(|| Self { at, what: What::from_name(&what), path, hashes })
    }
}

impl DecisionLog {
    /// Reads the file, as bytes: a crash may have cut a line inside a character.
    ///
    /// # Errors
    ///
    /// Returns [`NoKey`] where the first line holds none.
    pub fn parse(bytes: &[u8]) -> Result<Self, NoKey> {
        let mut lines = bytes.split(|&b| b == b'\n');
        let key = lines.next().and_then(DecisionKey::read).ok_or(NoKey)?;
        let (mut decisions, mut unread) = (Vec::new(), Vec::new());
        for (i, line) in lines.enumerate().filter(|(_, line)| !line.trim_ascii().is_empty()) {
            // Two copies that a sync tool joined hold the key twice.
            if DecisionKey::read(line).as_ref() == Some(&key) {
                continue;
            }
            match Decision::read(line) {
                Some(decision) => decisions.push(decision),
                None => unread.push(i + 2),
            }
        }
        Ok(Self { key, decisions, unread, torn: !bytes.ends_with(b"\n") })
    }
}

impl Decisions {
    /// Tells what stands after `decisions`, oldest first.
    pub fn new<'a>(decisions: impl IntoIterator<Item = &'a Decision>) -> Self {
        let mut all = Self::default();
        for decision in decisions {
            all.apply(decision);
        }
        all
    }

    /// Takes one more decision into account.
    pub fn apply(&mut self, decision: &Decision) {
        // Writing a bullet back lifts its deletion, and accepting lifts a refusal, and the reverse.
        let lifts = match decision.what {
            What::Restored => Some(What::Deleted),
            What::Deleted => Some(What::Restored),
            What::Accepted => Some(What::Refused),
            What::Refused => Some(What::Accepted),
            What::Undone | What::Forgotten | What::Unknown(_) => None,
        };
        let lifted = lifts.and_then(|it| self.standing.get_mut(&it)?.get_mut(&decision.path));
        if let Some(lifted) = lifted {
            for hash in &decision.hashes {
                lifted.remove(hash);
            }
        }
        let files = self.standing.entry(decision.what.clone()).or_default();
        let hashes = files.entry(decision.path.clone()).or_default();
        hashes.extend(decision.hashes.iter().cloned());
    }

    /// Returns whether an item of one of `paths` that rests on these lines, and no others, is to be
    /// kept out, because a person deleted what rested on them there.
    ///
    /// An item of a month is asked for with the month's file and the files of its weeks.
    pub fn is_deleted<'a>(
        &self,
        paths: impl IntoIterator<Item = &'a str>,
        line_hashes: &[KeyedHash],
    ) -> bool {
        self.covers(&What::Deleted, paths, line_hashes)
    }

    /// Returns whether `what` was decided in one of `paths`, and not lifted since, of each of these
    /// lines; never of no line at all.
    pub fn covers<'a>(
        &self,
        what: &What,
        paths: impl IntoIterator<Item = &'a str>,
        line_hashes: &[KeyedHash],
    ) -> bool {
        let Some(files) = self.standing.get(what) else { return false };
        let sets: Vec<_> = paths.into_iter().filter_map(|path| files.get(path)).collect();
        !line_hashes.is_empty()
            && line_hashes.iter().all(|hash| sets.iter().any(|set| set.contains(hash)))
    }

    /// Returns whether a line was forgotten, in whatever file.
    pub fn is_forgotten(&self, line_hash: &KeyedHash) -> bool {
        let files = self.standing.get(&What::Forgotten);
        files.is_some_and(|it| it.values().any(|set| set.contains(line_hash)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WEEK: &str = "memory/weekly/2026-W14.md";
    const MONTH: &str = "memory/monthly/2026-04.md";

    fn key() -> DecisionKey {
        DecisionKey::new([7; 32])
    }

    fn decision(what: What, path: &str, texts: &[&str]) -> Decision {
        Decision {
            at: "2026-05-04T07:00:00Z".parse().unwrap(),
            what,
            path: path.to_owned(),
            hashes: texts.iter().map(|it| key().hash(it)).collect(),
        }
    }

    #[test]
    fn the_file_has_the_agreed_layout() {
        let line = decision(What::Deleted, WEEK, &["a"]).line();
        let hash = key().hash(" a\r\n").to_string();
        assert_eq!(
            line,
            format!(
                "{{\"at\":\"2026-05-04T07:00:00Z\",\"what\":\"deleted\",\"in\":\"{WEEK}\",\"hashes\":[\"{hash}\"]}}\n"
            )
        );
        assert_eq!(hash.len(), 16);
        assert_ne!(DecisionKey::new([8; 32]).hash("a").to_string(), hash);
        assert_eq!(format!("{:?}", key()), "DecisionKey(…)");
        let log = DecisionLog::parse((key().line() + &line).as_bytes()).unwrap();
        assert_eq!(log.key, key());
        assert_eq!(log.decisions, [decision(What::Deleted, WEEK, &["a"])]);
        assert!(log.unread.is_empty() && !log.torn);
    }

    #[track_caller]
    fn check_lines(lines: &str, decisions: usize, unread: &[usize], torn: bool) {
        let log = DecisionLog::parse((key().line() + lines).as_bytes()).unwrap();
        assert_eq!((log.decisions.len(), &log.unread[..], log.torn), (decisions, unread, torn));
    }

    #[test]
    fn what_cannot_be_read_costs_only_itself() {
        let line = decision(What::Refused, WEEK, &["a"]).line();
        check_lines("", 0, &[], false);
        check_lines(&line.repeat(2), 2, &[], false);
        check_lines(&format!("{line}{}", &line[..40]), 1, &[3], true);
        check_lines(line.trim_end(), 1, &[], true);
        check_lines(&format!("garbage\n\n{line}"), 1, &[2], false);
        check_lines(&format!("{}{line}", key().line()), 1, &[], false);
        check_lines(
            &line.replace("\"in\"", "\"more\":[1],\"in\"").replace("refused", "pondered"),
            1,
            &[],
            false,
        );
        check_lines(&line.replace("\"hashes\":[\"", "\"hashes\":[\"x"), 0, &[2], false);
        let later = line.replace("refused", "pondered");
        let log = DecisionLog::parse((key().line() + &later).as_bytes()).unwrap();
        assert_eq!(
            (log.decisions[0].what.clone(), log.decisions[0].line()),
            (What::Unknown("pondered".into()), later)
        );
        for bad in ["", "{}\n", "{\"key\":\"12\"}\n", &line] {
            assert_eq!(DecisionLog::parse(bad.as_bytes()), Err(NoKey));
        }
    }

    #[track_caller]
    fn check_deleted(decisions: &[Decision], paths: &[&str], texts: &[&str], expected: bool) {
        let hashes: Vec<KeyedHash> = texts.iter().map(|it| key().hash(it)).collect();
        let found = Decisions::new(decisions).is_deleted(paths.iter().copied(), &hashes);
        assert_eq!(found, expected);
    }

    #[test]
    fn an_item_stays_out_while_all_its_lines_are_deleted() {
        let mut all = vec![decision(What::Deleted, WEEK, &["a", "b"])];
        check_deleted(&all, &[WEEK], &["a"], true);
        check_deleted(&all, &[WEEK], &["b", "a"], true);
        check_deleted(&all, &[WEEK], &["a", "c"], false);
        check_deleted(&all, &[WEEK], &[], false);
        check_deleted(&all, &[MONTH], &["a"], false);
        check_deleted(&all, &[MONTH, WEEK], &["a"], true);
        all.push(decision(What::Restored, WEEK, &["a"]));
        check_deleted(&all, &[WEEK], &["a"], false);
        check_deleted(&all, &[WEEK], &["b"], true);
        all.push(decision(What::Deleted, WEEK, &["a"]));
        check_deleted(&all, &[WEEK], &["a"], true);
    }

    #[test]
    fn accepting_lifts_a_refusal_and_forgetting_holds_everywhere() {
        let all = Decisions::new(&[
            decision(What::Refused, WEEK, &["a"]),
            decision(What::Accepted, WEEK, &["a"]),
            decision(What::Forgotten, "memory/2026-04-02.md", &["z"]),
        ]);
        let a = [key().hash("a")];
        assert!(all.covers(&What::Accepted, [WEEK], &a) && !all.covers(&What::Refused, [WEEK], &a));
        assert!(all.is_forgotten(&key().hash("z")) && !all.is_forgotten(&a[0]));
    }

    proptest! {
        #[test]
        fn any_decision_round_trips(path in any::<String>(), texts in proptest::collection::vec(any::<String>(), 0..4), what in "[a-z]{0,8}", seconds in 0i64..4_000_000_000) {
            let decision = Decision {
                at: DateTime::from_timestamp(seconds, 0).unwrap(),
                what: What::from_name(&what),
                path,
                hashes: texts.iter().map(|it| key().hash(it)).collect(),
            };
            let log = DecisionLog::parse((key().line() + &decision.line()).as_bytes()).unwrap();
            prop_assert_eq!(log.decisions, [decision]);
        }
    }
}
