//! `WISDOM.md`: entries that last, edited and never rewritten.

use chrono::NaiveDate;

use super::address::Citation;

/// One entry as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WisdomEntry {
    /// The heading, without `**`.
    pub title: String,
    /// One to three sentences.
    pub text: String,
    /// The `## Category` that it stands under.
    pub category: Option<String>,
    /// What our comment says; `None` for a person's entry.
    pub mark: Option<WisdomMark>,
    /// Bytes as they stand in the file, up to the next entry or heading.
    pub raw: String,
}

/// The comment that ends an entry of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WisdomMark {
    /// Name of the entry, kept for its life.
    pub id: String,
    /// Hash of title and text as we wrote them; an entry that differs is the person's.
    pub hash: String,
    /// The day lines that it rests on.
    pub sources: Citation,
    /// Day of the oldest source.
    pub first_seen: NaiveDate,
    /// Day of the newest line that said it again.
    pub last_reinforced: NaiveDate,
}
