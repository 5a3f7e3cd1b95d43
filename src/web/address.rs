//! The pages and their URLs.
//!
//! A URL of the server is `/r/ROOT/…`, with the number of the memory folder. In an export, each page is one file, and
//! a link to a page that only the server has is plain text.
//!
//! # Invariant
//!
//! [`PageAddress::path`] and [`PageAddress::parse`] are inverse. What `parse` accepts as a file is only a relative
//! path without `.` and `..`; the page then asks the folder's layout whether it is a memory file.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::memory::{address::Stem, hash::ContentHash, period::Period};

/// One page.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PageAddress {
    /// `WISDOM.md`, what changed, what to review.
    Today,
    /// All years, or the weeks of one.
    Timeline(Option<i32>),
    /// A day, week, or month: its summary beside its logs.
    Period(Period),
    /// A part of a log, from 0.
    Log(Stem, u32),
    /// What came of a line of a log or session record.
    Line(Stem, u32),
    /// A typed memory, the index, or a summary, as a file relative to the root.
    File(String),
    /// Where the item at a line of a file comes from.
    Item(String, u32),
    /// The versions of a file.
    Versions(String),
    /// The typed memories.
    Topics,
    Search,
    Review,
    /// A form to correct the item at a line of a file.
    Correct(String, u32),
    Runs,
    Run(i64),
    /// What undoing a run would do.
    Undo(i64),
    Cost,
    Sessions,
    /// A session record.
    Session(Stem),
}

/// How many lines of a log are on one page.
pub(super) const LINES_PER_PART: u32 = 250;

/// What a URL leaves as it is, besides letters and digits.
const ENCODED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b'/').remove(b',');

impl PageAddress {
    /// Returns the path of the page below its folder's, percent-encoded, without a slash at its start.
    pub(super) fn path(&self) -> String {
        let file = |it: &str| utf8_percent_encode(it, ENCODED).to_string();
        match self {
            Self::Today => String::new(),
            Self::Timeline(None) => "timeline".to_owned(),
            Self::Timeline(Some(year)) => format!("timeline/{year}"),
            Self::Period(period) => format!("period/{period}"),
            Self::Log(stem, 0) => format!("log/{}", file(stem.as_str())),
            Self::Log(stem, part) => format!("log/{}/{part}", file(stem.as_str())),
            Self::Line(stem, line) => format!("line/{}/{line}", file(stem.as_str())),
            Self::File(path) => format!("file/{}", file(path)),
            Self::Item(path, line) => format!("item/{line}/{}", file(path)),
            Self::Versions(path) => format!("versions/{}", file(path)),
            Self::Topics => "topics".to_owned(),
            Self::Search => "search".to_owned(),
            Self::Review => "review".to_owned(),
            Self::Correct(path, line) => format!("correct/{line}/{}", file(path)),
            Self::Runs => "runs".to_owned(),
            Self::Run(run) => format!("runs/{run}"),
            Self::Undo(run) => format!("undo/{run}"),
            Self::Cost => "cost".to_owned(),
            Self::Sessions => "sessions".to_owned(),
            Self::Session(stem) => format!("session/{}", file(stem.as_str())),
        }
    }

    /// Reads the path of a page as a browser sends it.
    pub(super) fn parse(path: &str) -> Option<Self> {
        let (name, rest) = path.split_once('/').unwrap_or((path, ""));
        let rest = percent_decode_str(rest).decode_utf8().ok()?;
        let rest = &*rest;
        let stem = || rest.parse::<Stem>().ok();
        let file = |it: &str| is_plain_path(it).then(|| it.to_owned());
        let numbered = || {
            let (line, path) = rest.split_once('/')?;
            Some((file(path)?, line_number(line)?))
        };
        let page = match name {
            "" if rest.is_empty() => Self::Today,
            "timeline" if rest.is_empty() => Self::Timeline(None),
            "timeline" => {
                Self::Timeline(Some(rest.parse().ok().filter(|it| (1..10_000).contains(it))?))
            }
            "period" => Self::Period(rest.parse().ok()?),
            "log" => match rest.split_once('/') {
                Some((stem, part)) => Self::Log(stem.parse().ok()?, line_number(part)?),
                None => Self::Log(stem()?, 0),
            },
            "line" => {
                let (stem, line) = rest.split_once('/')?;
                Self::Line(stem.parse().ok()?, line_number(line)?)
            }
            "file" => Self::File(file(rest)?),
            "item" => numbered().map(|(path, line)| Self::Item(path, line))?,
            "versions" => Self::Versions(file(rest)?),
            "correct" => numbered().map(|(path, line)| Self::Correct(path, line))?,
            "runs" if rest.is_empty() => Self::Runs,
            "runs" => Self::Run(rest.parse().ok()?),
            "undo" => Self::Undo(rest.parse().ok()?),
            "session" => Self::Session(stem()?),
            _ if !rest.is_empty() => return None,
            "topics" => Self::Topics,
            "search" => Self::Search,
            "review" => Self::Review,
            "cost" => Self::Cost,
            "sessions" => Self::Sessions,
            _ => return None,
        };
        Some(page)
    }

    /// Returns the name of the page's file in an export, and the position in it; `None` if only the server has it.
    pub(super) fn file_name(&self) -> Option<(String, Option<String>)> {
        // A comma always has a letter after it, so that no two pages have one name.
        let file = |it: &str| it.replace(',', ",c").replace('/', ",s");
        let name = match self {
            Self::Today => "index".to_owned(),
            Self::Timeline(None) => "timeline".to_owned(),
            Self::Timeline(Some(year)) => format!("timeline-{year}"),
            Self::Period(period) => format!("period-{period}"),
            Self::Log(stem, 0) => format!("log-{}", file(stem.as_str())),
            Self::Log(stem, part) => format!("log-{},part{part}", file(stem.as_str())),
            Self::Line(stem, line) => {
                let (page, _) = Self::of_log_line(stem, *line).file_name()?;
                return Some((page, Some(format!("L{line}"))));
            }
            Self::File(path) => format!("file-{}", file(path)),
            Self::Item(path, line) => format!("item-{line}-{}", file(path)),
            Self::Topics => "topics".to_owned(),
            Self::Runs => "runs".to_owned(),
            Self::Run(run) => format!("run-{run}"),
            Self::Cost => "cost".to_owned(),
            Self::Sessions => "sessions".to_owned(),
            Self::Session(stem) => format!("session-{}", file(stem.as_str())),
            // An export holds what the files say now: words that were removed from them are not in it.
            Self::Versions(_) | Self::Search | Self::Review | Self::Correct(..) | Self::Undo(_) => {
                return None;
            }
        };
        Some((format!("{}.html", shortened(name)), None))
    }

    /// Returns the page that shows a line among its neighbours.
    pub(super) fn of_log_line(stem: &Stem, line: u32) -> Self {
        if stem.is_session() {
            return Self::Session(stem.clone());
        }
        Self::Log(stem.clone(), line.saturating_sub(1) / LINES_PER_PART)
    }
}

/// Returns a name that every file system takes: a long one ends in its hash.
fn shortened(name: String) -> String {
    const BYTES_MAX: usize = 120;
    const KEPT_MAX: usize = 80;
    if name.len() <= BYTES_MAX {
        return name;
    }
    let hash = ContentHash::of(&name).hex16();
    let kept = (0..=KEPT_MAX).rev().find_map(|it| name.get(..it)).unwrap_or_default();
    format!("{kept},h{hash}")
}

/// Percent-encodes the name of a file for a link.
pub(super) fn encoded(name: &str) -> String {
    utf8_percent_encode(name, ENCODED).to_string()
}

fn line_number(text: &str) -> Option<u32> {
    let is_plain = !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    text.parse().ok().filter(|it| is_plain && *it > 0)
}

fn is_plain_path(path: &str) -> bool {
    !path.is_empty()
        && !path.contains(['\\', '\0'])
        && path.split('/').all(|it| !matches!(it, "" | "." | ".."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_read_back() {
        let stem: Stem = "2026-04-02".parse().unwrap();
        let week = "2026-W14".parse().unwrap();
        let file = || "memory/user_ä b.md".to_owned();
        let all = [
            PageAddress::Today,
            PageAddress::Timeline(None),
            PageAddress::Timeline(Some(2026)),
            PageAddress::Period(week),
            PageAddress::Log(stem.clone(), 0),
            PageAddress::Log(stem.clone(), 2),
            PageAddress::Line(stem, 12),
            PageAddress::File(file()),
            PageAddress::Item(file(), 7),
            PageAddress::Versions(file()),
            PageAddress::Topics,
            PageAddress::Search,
            PageAddress::Review,
            PageAddress::Correct(file(), 7),
            PageAddress::Runs,
            PageAddress::Run(7),
            PageAddress::Undo(7),
            PageAddress::Cost,
            PageAddress::Sessions,
        ];
        for address in all {
            assert_eq!(PageAddress::parse(&address.path()), Some(address));
        }
    }

    #[test]
    fn no_two_pages_have_one_file() {
        let name = |it: PageAddress| it.file_name().unwrap().0;
        let stem = |it: &str| it.parse::<Stem>().unwrap();
        let file = |it: &str| name(PageAddress::File(it.to_owned()));
        let part = name(PageAddress::Log(stem("2026-04-02"), 1));
        assert_eq!(part, "log-2026-04-02,part1.html");
        assert_ne!(part, name(PageAddress::Log(stem("2026-04-02--1"), 0)));
        assert_ne!(file("memory/a/b.md"), file("memory/a--b.md"));
        assert_ne!(file("memory/a,/b.md"), file("memory/a/,b.md"));
        let long = "ä".repeat(120);
        assert!(file(&format!("{long}a.md")).len() < 120);
        assert_ne!(file(&format!("{long}a.md")), file(&format!("{long}b.md")));
    }

    #[test]
    fn paths_that_leave_the_folder_are_no_pages() {
        for path in [
            "file/../secret",
            "file/%2e%2e/secret",
            "file/memory/..%2f..%2fx.md",
            "file//etc/passwd",
            "file/%2Fetc%2Fpasswd",
            "file/a%00b",
            "file/a%5Cb",
            "item/1/../x",
            "item/0/WISDOM.md",
            "item/x/WISDOM.md",
            "line/../1",
            "log/2026-04-02/0",
            "timeline/0",
            "topics/x",
            "nothing",
        ] {
            assert_eq!(PageAddress::parse(path), None, "{path}");
        }
    }
}
