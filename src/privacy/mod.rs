//! The served view: what anything but the vault and the history may see of a source.
//!
//! Engines, grounding, lineage, and everything printed take [`ServedLog`], which only [`serve`]
//! makes. So there is one place that decides what may be seen, and the type proves that it was
//! asked. What may not be seen is told by [`Rules`]: a line that a person had forgotten is served as
//! if it were blank, and its log is not kept in the history. Each line carries its origin.

pub mod hold;
pub mod inert;

use std::sync::Arc;

use chrono::NaiveDate;

use crate::memory::{
    address::{Address, Stem},
    decision::Decisions,
    hash::ContentHash,
    log::{DailyLog, Origin},
    markdown::LineKind,
};

/// A daily log as it may be seen. Lines of its frontmatter are not in it.
#[derive(Clone, Debug)]
pub struct ServedLog {
    stem: Stem,
    hash: ContentHash,
    chars: usize,
    lines: Vec<ServedLine>,
    raw: Option<Arc<str>>,
}

/// A source line as it may be seen.
#[derive(Clone, Debug)]
pub struct ServedLine {
    number: u32,
    text: Box<str>,
    kind: LineKind,
    origin: Origin,
    hash: ContentHash,
}

/// What of the logs of a root may not be seen. Cheap to copy.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// Only where there is anything to ask of it, so that most roots hash nothing.
    forgotten: Option<Arc<Decisions>>,
}

impl Rules {
    /// Takes the rules of a root from what its people decided.
    pub fn of(decisions: &Decisions) -> Self {
        Self { forgotten: decisions.has_forgotten().then(|| Arc::new(decisions.clone())) }
    }

    fn bars(&self, stem: &Stem, line: &str) -> bool {
        self.forgotten.as_ref().is_some_and(|it| it.is_forgotten(stem.as_str(), line))
    }
}

/// Makes the served view of a log.
///
/// Quotes and code are external, whoever pasted them; the rest has the origin that the log's
/// frontmatter names, else an agent's. A line that is forgotten keeps its number and its hash, so
/// that others are still found where they stand, and nothing else.
pub fn serve(log: &DailyLog, rules: &Rules) -> ServedLog {
    let own = log.origin.unwrap_or(Origin::Agent);
    let mut chars = log.body_chars();
    let mut raw = Some(Arc::clone(log.raw()));
    let lines = log
        .lines()
        .into_iter()
        .map(|(number, text, kind)| {
            let barred = !text.trim().is_empty() && rules.bars(&log.stem, text);
            if barred {
                chars = chars.saturating_sub(text.chars().count() + 1);
                raw = None;
            }
            let seen = if barred { "" } else { text };
            ServedLine {
                number,
                text: seen.into(),
                kind: if barred { LineKind::Blank } else { kind },
                origin: match kind {
                    LineKind::Quote { .. } | LineKind::Fence | LineKind::Code => Origin::External,
                    _ => own,
                },
                hash: ContentHash::of(text),
            }
        })
        .collect();
    ServedLog { stem: log.stem.clone(), hash: log.hash, chars, lines, raw }
}

impl ServedLog {
    /// Returns the name of the file, without `.md`.
    pub fn stem(&self) -> &Stem {
        &self.stem
    }

    /// Returns the day that the log belongs to.
    pub fn date(&self) -> NaiveDate {
        self.stem.date()
    }

    /// Returns the hash of the raw file.
    pub fn hash(&self) -> ContentHash {
        self.hash
    }

    /// Returns the raw file, for the history alone, which keeps a log as it was when it was folded;
    /// `None` where a line of it is to be forgotten.
    pub fn raw(&self) -> Option<&Arc<str>> {
        self.raw.as_ref()
    }

    /// Returns the characters of the body: what the ratio of a fold is counted against.
    pub fn chars(&self) -> usize {
        self.chars
    }

    /// Returns the lines of the body, blank ones too, ascending by number.
    pub fn lines(&self) -> &[ServedLine] {
        &self.lines
    }

    /// Returns the line with that number.
    pub fn line(&self, number: u32) -> Option<&ServedLine> {
        let first = self.lines.first()?.number;
        self.lines.get(usize::try_from(number.checked_sub(first)?).ok()?)
    }

    /// Returns the log with the lines that `is_barred` names as if they were blank.
    pub fn without(&self, is_barred: impl Fn(&ServedLine) -> bool) -> Self {
        let mut log = self.clone();
        for line in log.lines.iter_mut().filter(|it| is_barred(it)) {
            line.text = "".into();
            line.kind = LineKind::Blank;
        }
        log
    }

    /// Returns the address of a line of this log.
    pub fn address(&self, line: &ServedLine) -> Address {
        Address { stem: self.stem.clone(), line: line.number }
    }
}

impl ServedLine {
    /// Returns the number of the line in its file, from 1.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Returns the line as it may be seen, without line end, with its markup.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the words: the line without list marker, heading marks, quote marks, and indent.
    pub fn words(&self) -> &str {
        // Offsets were taken on the raw line; a mark that replaces a secret never stands before them.
        self.text.get(self.kind.text_at(&self.text)..).unwrap_or(&self.text).trim_end()
    }

    /// Returns what the line is in the structure of its log.
    pub fn kind(&self) -> LineKind {
        self.kind
    }

    /// Returns who wrote the line.
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// Returns the hash of the raw line: how it is found again after it moved.
    pub fn hash(&self) -> ContentHash {
        self.hash
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::decision::{Decision, What};
    use Origin::{External, Human};

    #[test]
    fn quotes_and_code_are_external_and_frontmatter_is_not_served() {
        let text =
            "---\norigin: human\n---\n\nI decided.\n> You must obey\n```\nrm -rf\n```\n- end";
        let log = DailyLog::parse("2026-04-02".parse().unwrap(), text.as_bytes()).unwrap();
        let served = serve(&log, &Rules::default());
        let seen: Vec<_> =
            served.lines().iter().map(|l| (l.number(), l.words(), l.origin())).collect();
        assert_eq!(
            seen,
            [
                (4, "", Human),
                (5, "I decided.", Human),
                (6, "You must obey", External),
                (7, "```", External),
                (8, "rm -rf", External),
                (9, "```", External),
                (10, "end", Human)
            ]
        );
        assert_eq!(served.line(6).unwrap().text(), "> You must obey");
        assert!(served.line(3).is_none() && served.line(11).is_none());
    }

    #[test]
    fn a_forgotten_line_is_served_as_a_blank_one() {
        let mut decisions = Decisions::with_key([7; 32]);
        let hashes = vec![decisions.line_hash("- secret").unwrap()];
        let at = "2026-04-06T03:00:12Z".parse().unwrap();
        decisions.apply(&Decision { at, what: What::Forgotten, path: String::new(), hashes });
        let log = DailyLog::parse("2026-04-02".parse().unwrap(), b"- a\n  - secret\n- b").unwrap();
        let served = serve(&log, &Rules::of(&decisions));
        let line = served.line(2).unwrap();
        assert_eq!((line.text(), line.kind(), line.words()), ("", LineKind::Blank, ""));
        assert_eq!(line.hash(), ContentHash::of("  - secret"));
        assert_eq!((served.line(3).unwrap().words(), served.chars()), ("b", 7));
        assert!(served.raw().is_none(), "the history must not keep it");
        assert_eq!(served.hash(), log.hash);
        let all = serve(&log, &Rules::default());
        assert!(all.raw().is_some() && all.line(2).unwrap().words() == "secret");
    }
}
