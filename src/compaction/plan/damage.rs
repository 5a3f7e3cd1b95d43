//! Damage to generated files: bytes that no person writes, and files that lost so much that a person
//! has to say whether they meant it.

use std::fmt;

use crate::{
    memory::{document::Summary, period::Period, wisdom::WisdomFile},
    store::fs::layout::{self, Layout},
};

/// The kind of damage of a generated file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// It is empty.
    Empty,
    /// It contains NUL bytes, as after a disk lost a write.
    NulBytes,
    /// It is not UTF-8.
    NotUtf8,
    /// It is a prefix of the recorded text, cut within a line.
    Truncated,
    /// It is the recorded text without its end, cut after a line, by a disk or by a person.
    Shortened,
    /// Our metadata is gone.
    MarksLost,
    /// It cannot be parsed as the kind of file that its name says.
    Malformed,
    /// A version control system could not merge it. Also logs are recorded with this damage.
    MergeConflict,
}

impl Damage {
    /// Returns what is wrong, as the end of a sentence.
    pub fn description(self) -> &'static str {
        match self {
            Self::Empty => "is empty",
            Self::NulBytes => "contains NUL bytes",
            Self::NotUtf8 => "is not UTF-8",
            Self::Truncated => "is cut off in the middle of a line",
            Self::Shortened => "lacks its end, as if cut off after a line",
            Self::MarksLost => "has lost the metadata that says what memoird wrote in it",
            Self::Malformed => "cannot be parsed",
            Self::MergeConflict => "has the markers of a merge conflict",
        }
    }

    /// Returns whether a person may have intended it and must be asked.
    pub fn may_be_intended(self) -> bool {
        matches!(self, Self::Shortened | Self::MarksLost)
    }

    /// Returns what can be done, each with its effect.
    pub fn hints(self) -> &'static [&'static str] {
        match self {
            Self::Shortened => &[
                "`memoird doctor --repair` restores it",
                "`memoird compact --accept-missing` treats what is missing as deleted",
            ],
            Self::MarksLost => &[
                "`memoird doctor --repair` restores it and keeps the present text",
                "`memoird compact --accept-missing` accepts it as it is",
            ],
            Self::MergeConflict => &["keep the lines that are meant, and remove the markers"],
            _ => &["`memoird doctor --repair`"],
        }
    }
}

impl fmt::Display for Damage {
    /// Prints what is wrong and what to do, as the end of a sentence.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.description(), self.hints().join(", "))
    }
}

/// The number of items missing at the end of a file from which a person must confirm their
/// deletion.
const LOST_ITEMS_MIN: usize = 3;

/// Compares a readable file with its recorded text: has it lost so much that a person is unlikely
/// to have intended it?
pub(crate) fn suspected_damage(
    layout: &Layout,
    path: &str,
    now: &str,
    before: &str,
) -> Option<Damage> {
    let shown = layout::visible_text(path, now);
    let rest =
        layout::visible_text(path, before).strip_prefix(shown).filter(|it| !it.trim().is_empty());
    let cut = rest.is_some_and(|it| shown.ends_with('\n') || it.starts_with(['\n', '\r']));
    if path == layout.wisdom() {
        let [was, is] = [before, now].map(WisdomFile::parse);
        let ours = |it: &WisdomFile| it.entries().filter(|it| it.meta.is_some()).count();
        let unmarked = !was.distilled().is_empty() && is.distilled().is_empty();
        return match (ours(&was), ours(&is)) {
            // In an older form the last line is our comment; a person deletes entries, not that line.
            (was, is) if cut && is < was && (unmarked || was - is >= LOST_ITEMS_MIN) => {
                Some(Damage::Shortened)
            }
            (was, 0) if (unmarked && was > 0) || was >= LOST_ITEMS_MIN => Some(Damage::MarksLost),
            _ => None,
        };
    }
    let name = path.rsplit('/').next()?.strip_suffix(".md")?;
    let period = name.parse::<Period>().ok().filter(|it| layout.summary(*it) == path)?;
    let [was, is] = [before, now].map(|it| Summary::parse(period, it));
    let (was, is) = (was.ok()?, is.ok()?);
    was.header.as_ref()?;
    if is.header.is_none() {
        return Some(Damage::MarksLost);
    }
    let lost = was.bullets().count().saturating_sub(is.bullets().count());
    (cut && lost >= LOST_ITEMS_MIN).then_some(Damage::Shortened)
}

/// Returns the damage if no person writes such bytes into a visible file.
pub(crate) fn byte_damage(bytes: &[u8]) -> Option<Damage> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        Some(Damage::Empty)
    } else if bytes.contains(&0) {
        Some(Damage::NulBytes)
    } else if std::str::from_utf8(bytes).is_err() {
        Some(Damage::NotUtf8)
    } else {
        None
    }
}

/// Returns whether `now` is a prefix of `before`, cut within a line or within the frontmatter. A
/// missing newline at the end is no cut: some editors write none.
pub(crate) fn is_truncated(now: &[u8], before: &[u8]) -> bool {
    let Some(rest) = before.strip_prefix(now) else { return false };
    let within_line = !now.ends_with(b"\n") && !rest.is_empty() && rest[0] != b'\n';
    let within_head = now.starts_with(b"---\n") && !now[3..].windows(4).any(|it| it == b"\n---");
    !rest.is_empty() && (within_line || within_head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_bytes_are_recognized() {
        assert_eq!(byte_damage(b""), Some(Damage::Empty));
        assert_eq!(byte_damage(b" \n\n"), Some(Damage::Empty));
        assert_eq!(byte_damage(b"# Week\0\0\0"), Some(Damage::NulBytes));
        assert_eq!(byte_damage(b"caf\xe9"), Some(Damage::NotUtf8));
        assert_eq!(byte_damage("# Woche – gut\n".as_bytes()), None);
    }

    #[test]
    fn a_file_cut_after_a_line_is_not_truncated() {
        let before = b"- one [2026-04-02:1]\n- two [2026-04-02:2]\n";
        assert!(is_truncated(b"- one [2026-04-02:1]\n- tw", before));
        assert!(!is_truncated(b"- one [2026-04-02:1]\n", before));
        assert!(!is_truncated(b"- one, in other words", before));
        assert!(!is_truncated(before, before));
        let before = b"---\nperiod: x\nitems: y\n---\n- one\n- two\n";
        assert!(is_truncated(b"---\nperiod: x\n", before));
        assert!(!is_truncated(b"---\nperiod: x\nitems: y\n---\n- one", before));
    }
}
