//! A log as it may be seen, line by line.

use std::{borrow::Cow, sync::Arc};

use chrono::NaiveDate;

use super::{
    policy::{PrivacyRules, SecretPart},
    quarantine::Concern,
};
use crate::memory::{
    address::{self, Address, Stem},
    decision::Verdict,
    document::Summary,
    hash::ContentHash,
    item::Item,
    log::{DailyLog, TextOrigin},
    markdown::LineKind,
};

/// A daily log as it may be seen. Lines of its frontmatter are not in it.
#[derive(Clone, Debug)]
pub struct SanitizedLog {
    stem: Stem,
    hash: ContentHash,
    input_hash: ContentHash,
    chars: usize,
    lines: Vec<SanitizedLine>,
    raw: Arc<str>,
    /// Whether a line of it is to be forgotten, so that the history must not keep it.
    has_forgotten: bool,
}

/// A source line as it may be seen.
#[derive(Clone, Debug)]
pub struct SanitizedLine {
    number: u32,
    text: Box<str>,
    kind: LineKind,
    origin: TextOrigin,
    hash: ContentHash,
    quarantine: Option<Box<QuarantineStatus>>,
    is_accepted: bool,
    is_unchanged: bool,
}

/// Why a line is held for review.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuarantineStatus {
    /// What speaks against showing it.
    pub concerns: Vec<Concern>,
    /// Whether a person refused it, so that nobody is asked again.
    pub is_refused: bool,
}

/// Makes the served view of a log.
///
/// A line that may not be seen (it is forgotten, or held for review) keeps its number and its hash,
/// so that others are still found where they stand, and nothing else. A line that a person accepted
/// counts as theirs.
pub fn sanitize(log: &DailyLog, rules: &PrivacyRules) -> SanitizedLog {
    let raw_lines = log.lines();
    let findings = rules.policy().findings_of(log, &raw_lines);
    let mut chars = log.body_chars();
    let mut holds_forgotten = false;
    let mut lines = Vec::with_capacity(raw_lines.len());
    for ((number, text, kind), origin) in raw_lines.into_iter().zip(&findings.origins) {
        let hash = ContentHash::of(text);
        let mut line = SanitizedLine {
            number,
            text: "".into(),
            kind,
            origin: *origin,
            hash,
            quarantine: None,
            is_accepted: false,
            is_unchanged: false,
        };
        let found = findings.line(number);
        let concerns = found.map_or(&[][..], |it| &it.concerns);
        let is_forgotten = !text.trim().is_empty() && rules.is_forgotten(&log.stem, text);
        if is_forgotten {
            holds_forgotten = true;
        } else if !concerns.is_empty() || *origin == TextOrigin::External {
            match rules.review_verdict(&log.stem, text) {
                Some(Verdict::Accepted) => {
                    line.origin = TextOrigin::Human;
                    line.is_accepted = true;
                }
                _ if concerns.is_empty() => {}
                verdict => {
                    let concerns = concerns.to_vec();
                    let is_refused = verdict.is_some();
                    line.quarantine = Some(Box::new(QuarantineStatus { concerns, is_refused }));
                }
            }
        }
        if is_forgotten || line.is_quarantined() {
            chars = chars.saturating_sub(text.chars().count() + 1);
            line.kind = LineKind::Blank;
        } else {
            let secrets = found.map_or(&[][..], |it| &it.secrets);
            line.text = mask_line(text, secrets, log.raw(), rules).into();
            line.is_unchanged = secrets.is_empty() && !line.is_accepted;
            if line.text.trim().is_empty() && !text.trim().is_empty() {
                line.kind = LineKind::Blank;
            }
        }
        lines.push(line);
    }
    let input = rules.input_hash(&log.stem, log.hash);
    let (stem, raw) = (log.stem.clone(), Arc::clone(log.raw()));
    SanitizedLog {
        stem,
        hash: log.hash,
        input_hash: input,
        chars,
        lines,
        raw,
        has_forgotten: holds_forgotten,
    }
}

/// Makes the served view of the lines of a weekly or monthly file that are sources themselves; the
/// others are as if they were blank. `None` for a file that is no text.
pub fn sanitize_own_lines(
    summary: &Summary,
    text: &str,
    rules: &PrivacyRules,
) -> Option<SanitizedLog> {
    let own = summary.user_lines();
    let stem = Stem::of_summary(summary.period).filter(|_| !own.is_empty())?;
    let log = DailyLog::parse(stem, text.as_bytes()).ok()?;
    let is_own = |line: &SanitizedLine| own.iter().any(|it| it.contains(&line.number));
    Some(sanitize(&log, rules).without(|it| !is_own(it)))
}

/// Returns the words of a line of which it is known that it is seen as it stands
/// in these bytes by these rules, without another look through the log; `None` for one that says nothing,
/// or that is to be forgotten meanwhile.
pub fn unchanged_line(log: &DailyLog, number: u32, rules: &PrivacyRules) -> Option<String> {
    let lines = log.lines();
    let first = lines.first()?.0;
    let (_, text, kind) = *lines.get(usize::try_from(number.checked_sub(first)?).ok()?)?;
    let words =
        address::strip_session_citation(text.get(kind.text_at(text)..).unwrap_or(text).trim_end());
    let is_seen =
        kind.is_content() && !words.trim().is_empty() && !rules.is_forgotten(&log.stem, text);
    is_seen.then(|| words.to_owned())
}

/// Returns a line with marks in the place of secrets. Of a secret of several lines the first has the
/// mark, the others nothing.
fn mask_line<'a>(
    line: &'a str,
    secrets: &[SecretPart],
    log: &str,
    rules: &PrivacyRules,
) -> Cow<'a, str> {
    if secrets.is_empty() {
        return line.into();
    }
    let mut text = String::with_capacity(line.len());
    let mut at = 0;
    for part in secrets {
        text.push_str(&line[at..part.range.start]);
        if let Some(secret) = &part.secret {
            text.push_str(&rules.secret_mark(&secret.kind, &log[secret.range.clone()]));
        }
        at = part.range.end;
    }
    text.push_str(&line[at..]);
    text.into()
}

impl SanitizedLog {
    /// Returns the name of the file, without `.md`.
    pub fn stem(&self) -> &Stem {
        &self.stem
    }

    /// Returns the day that the log belongs to.
    pub fn date(&self) -> NaiveDate {
        self.stem.date()
    }

    /// Returns the hash of the log as an input of what is made of it: that of the raw file, and of what
    /// people accepted of it.
    pub fn input_hash(&self) -> ContentHash {
        self.input_hash
    }

    /// Returns the hash of the raw file.
    pub fn hash(&self) -> ContentHash {
        self.hash
    }

    /// Returns the raw file, for the history alone, which keeps a log as it was when it was folded;
    /// `None` where a line of it is to be forgotten.
    pub fn raw(&self) -> Option<&Arc<str>> {
        (!self.has_forgotten).then_some(&self.raw)
    }

    /// Returns the characters of the body: what the ratio of a fold is counted against.
    pub fn chars(&self) -> usize {
        self.chars
    }

    /// Returns the lines of the body, blank ones too, ascending by number.
    pub fn lines(&self) -> &[SanitizedLine] {
        &self.lines
    }

    /// Returns the line with that number.
    pub fn line(&self, number: u32) -> Option<&SanitizedLine> {
        let first = self.lines.first()?.number;
        self.lines.get(usize::try_from(number.checked_sub(first)?).ok()?)
    }

    /// Returns whether a line of it that an item cites is held for review.
    pub fn cites_quarantined(&self, item: &Item) -> bool {
        let cited = item.citation.as_ref().and_then(|it| it.lines_of(&self.stem));
        cited.is_some_and(|it| {
            self.lines.iter().any(|line| line.is_quarantined() && it.contains(line.number))
        })
    }

    /// Returns the log with nothing but the lines that are held; `None` where there are none.
    pub fn only_quarantined(&self) -> Option<Self> {
        let has_held = self.lines.iter().any(SanitizedLine::is_quarantined);
        has_held.then(|| self.without(|it| !it.is_quarantined()))
    }

    /// Returns the log with the lines that `is_barred` names as if they were blank.
    pub fn without(&self, is_barred: impl Fn(&SanitizedLine) -> bool) -> Self {
        let mut log = self.clone();
        for line in log.lines.iter_mut().filter(|it| is_barred(it)) {
            line.text = "".into();
            line.kind = LineKind::Blank;
            line.quarantine = None;
            line.is_unchanged = false;
        }
        log
    }

    /// Returns the address of a line of this log.
    pub fn address(&self, line: &SanitizedLine) -> Address {
        Address { stem: self.stem.clone(), line: line.number }
    }
}

impl SanitizedLine {
    /// Returns the number of the line in its file, from 1.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Returns the line as it may be seen, without line end, with its markup.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the words: the line without list marker, heading marks, quote marks, and indent, and without
    /// the address of the record of a session that it rests on.
    pub fn words(&self) -> &str {
        // Offsets were taken on the raw line; a mark that replaces a secret never stands before them.
        let words = self.text.get(self.kind.text_at(&self.text)..).unwrap_or(&self.text);
        address::strip_session_citation(words.trim_end())
    }

    /// Returns what the line is in the structure of its log.
    pub fn kind(&self) -> LineKind {
        self.kind
    }

    /// Returns whether the line says something: a marker without words does not.
    pub fn is_content(&self) -> bool {
        self.kind.is_content() && !self.words().trim().is_empty()
    }

    /// Returns who wrote the line.
    pub fn origin(&self) -> TextOrigin {
        self.origin
    }

    /// Returns why the line is held for review; `None` for one that is not.
    pub fn quarantine(&self) -> Option<&QuarantineStatus> {
        self.quarantine.as_deref()
    }

    /// Returns whether a person said that the line may be seen, whatever it looks like.
    pub fn is_accepted(&self) -> bool {
        self.is_accepted
    }

    /// Returns whether the line is seen as it stands in its file: whoever remembers that, with the bytes
    /// of the file and the rules that it was served by, may take it by [`unchanged_line`].
    pub fn is_unchanged(&self) -> bool {
        self.is_unchanged
    }

    /// Returns whether the line is kept out until a person accepts it.
    pub fn is_quarantined(&self) -> bool {
        self.quarantine.is_some()
    }

    /// Returns the hash of the raw line: how it is found again after it moved.
    pub fn hash(&self) -> ContentHash {
        self.hash
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::decision::{Decision, DecisionKind, Decisions};
    use TextOrigin::{External, Human};

    #[test]
    fn quotes_and_code_are_external_and_frontmatter_is_not_served() {
        let text =
            "---\norigin: human\n---\n\nI decided.\n> You must obey\n```\nrm -rf\n```\n- end";
        let log = DailyLog::parse("2026-04-02".parse().unwrap(), text.as_bytes()).unwrap();
        let served = sanitize(&log, &PrivacyRules::default());
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
        decisions.apply(&Decision {
            at,
            what: DecisionKind::Forgotten,
            path: String::new(),
            hashes,
        });
        let log = DailyLog::parse("2026-04-02".parse().unwrap(), b"- a\n  - secret\n- b").unwrap();
        let served = sanitize(&log, &PrivacyRules::new(Arc::default(), &decisions));
        let line = served.line(2).unwrap();
        assert_eq!((line.text(), line.kind(), line.words()), ("", LineKind::Blank, ""));
        assert_eq!(line.hash(), ContentHash::of("  - secret"));
        assert_eq!((served.line(3).unwrap().words(), served.chars()), ("b", 7));
        assert!(served.raw().is_none(), "the history must not keep it");
        assert_eq!(served.hash(), log.hash);
        let all = sanitize(&log, &PrivacyRules::default());
        assert!(all.raw().is_some() && all.line(2).unwrap().words() == "secret");
    }
}
