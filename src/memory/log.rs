//! A daily log: numbered lines, and the origin of its text.
//!
//! A line ends at `\n`. A `\r` before the `\n` and a byte-order mark at the start belong to no
//! line. Numbers start at 1 and count the frontmatter, as every editor shows them.

use std::sync::Arc;

use chrono::{NaiveDate, NaiveTime};

use super::{
    address::Stem,
    frontmatter::{self, FrontmatterError},
    hash::ContentHash,
    joined,
    markdown::{self, LineKind},
    own_words,
};

/// The start of the title above lines that were imported from a file of another program: it says where they are from,
/// not what they are about.
pub(crate) const IMPORTED_TITLE: &str = "Imported from ";

/// Who wrote a text. Ordered by trust, least first, so that `min` is the origin of a mixture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TextOrigin {
    /// Quoted, pasted, or fetched: a web page, a mail, a tool's output.
    External,
    /// An agent's own words.
    Agent,
    /// A person's own words.
    Human,
}

impl TextOrigin {
    /// Returns the name that frontmatter and JSON use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::External => "external",
            Self::Agent => "agent",
            Self::Human => "human",
        }
    }

    /// Returns the origin with that name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::External, Self::Agent, Self::Human].into_iter().find(|it| it.name() == name)
    }
}

/// A daily log or a session record, decoded. Its text is raw: only `privacy` may pass it on.
#[derive(Clone, Debug)]
pub struct DailyLog {
    /// The file's name without `.md`.
    pub stem: Stem,
    /// The hash of the file's bytes.
    pub hash: ContentHash,
    /// The `origin:` of the frontmatter, which applies to the text outside quotes and code.
    pub origin: Option<TextOrigin>,
    /// Why that origin could not be read, so that the text counts as external.
    pub origin_error: Option<OriginError>,
    text: Arc<str>,
    /// Byte offset at which the body begins; 0 without frontmatter.
    body_at: usize,
}

/// Bytes that are not UTF-8.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not UTF-8 at byte {at}; save the file as UTF-8")]
pub struct NotUtf8 {
    /// Offset of the first bad byte.
    pub at: usize,
}

/// An `origin:` without a usable value. Whoever wrote it had a reason, so the text counts as
/// external.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OriginError {
    /// A value that is no origin.
    #[error(
        "its `origin:` is none of `human`, `agent`, and `external`; it counts as external until \
         one of them is written there"
    )]
    Unknown,
    /// Two keys, or two spellings of one.
    #[error(
        "`origin:` appears twice in its frontmatter; it counts as external until one is removed"
    )]
    Duplicate,
    /// Frontmatter that names an origin and is not read.
    #[error("it counts as external, because its `origin:` cannot be read: {0}")]
    Unreadable(#[source] FrontmatterError),
    /// The key appears in frontmatter that is never closed, or on whose end readers disagree.
    #[error(
        "it counts as external, because its `origin:` is in frontmatter that is not closed \
         by a line `---`"
    )]
    NotClosed,
    /// The key is in a block that is not at the start of the file.
    #[error(
        "it counts as external, because its `origin:` is below a heading; move it into frontmatter at the very \
         top of the file"
    )]
    Misplaced,
}

/// Other words that people and tools write for an external origin.
const EXTERNAL_NAMES: [&str; 19] = [
    "web",
    "website",
    "page",
    "internet",
    "url",
    "tool",
    "tools",
    "mail",
    "email",
    "e-mail",
    "chat",
    "feed",
    "rss",
    "api",
    "quote",
    "quoted",
    "imported",
    "third-party",
    "untrusted",
];

/// Returns the origin that a frontmatter names.
fn parse_origin(yaml: &str) -> Result<Option<TextOrigin>, OriginError> {
    let map = match frontmatter::parse(yaml, frontmatter::YAML_BYTES_MAX) {
        Ok(map) => map,
        Err(FrontmatterError::DuplicateKey { .. }) if mentions_origin(yaml) => {
            return Err(OriginError::Duplicate);
        }
        Err(error) if mentions_origin(yaml) => return Err(OriginError::Unreadable(error)),
        Err(_) => return Ok(None),
    };
    let is_origin = |key: &str| key.trim().to_lowercase() == "origin";
    let mut values = map.iter().filter(|(key, _)| key.as_str().is_some_and(is_origin));
    let Some((_, value)) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(OriginError::Duplicate);
    }
    origin_named(value.as_str().unwrap_or_default())
}

/// Returns whether a log may have frontmatter; without it there is no origin.
pub fn may_declare_origin(bytes: &[u8]) -> bool {
    let lead = ['\u{feff}', '\n', '\r', ' ', '\t'];
    std::str::from_utf8(bytes).is_ok_and(|it| {
        let text = it.trim_start_matches(lead);
        text.starts_with("---")
            || (text.starts_with(['+', '#', 'o', 'O'])
                && text.lines().take(HEAD_LINES_MAX).any(is_origin_key))
    })
}

/// An origin is declared within this many lines, if at all.
const HEAD_LINES_MAX: usize = 40;

/// Returns whether a line is the key `origin` with a value, as YAML or TOML write it.
fn is_origin_key(line: &str) -> bool {
    let key = line.split([':', '：', '=']).next().unwrap_or_default();
    key.len() < line.len() && key.trim_matches(['"', '\'', ' ']).eq_ignore_ascii_case("origin")
}

/// Returns the origin in the frontmatter of TOML, between two lines `+++`.
fn parse_toml_origin(text: &str) -> Result<Option<TextOrigin>, OriginError> {
    let mut lines = text.lines().skip(1);
    let head: Vec<&str> = lines.by_ref().take_while(|it| it.trim_end() != "+++").collect();
    let is_closed = text.lines().nth(1 + head.len()).is_some();
    let mut keys = head.iter().take_while(|it| is_closed || !it.trim().is_empty());
    let Some(line) = keys.find(|it| is_origin_key(it)) else { return Ok(None) };
    if !is_closed {
        return Err(OriginError::NotClosed);
    }
    if keys.any(|it| is_origin_key(it)) {
        return Err(OriginError::Duplicate);
    }
    let value = line.split_once(['=', ':']).map_or("", |it| it.1);
    // A comment may follow the value.
    let value = value.split('#').next().unwrap_or_default().trim().trim_matches(['"', '\'']);
    origin_named(value)
}

/// Returns the origin that a block of keys below the headings at the start of a log names: only external text is
/// taken at its word there.
fn parse_misplaced_origin(text: &str) -> Result<Option<TextOrigin>, OriginError> {
    let mut lines = text.lines().take(HEAD_LINES_MAX);
    let is_above = |it: &str| it.trim().is_empty() || it.starts_with('#');
    let first = lines.find(|it| !is_above(it)).unwrap_or_default();
    let is_fence = |it: &str| matches!(it.trim_end(), "---" | "+++" | "```yaml" | "```toml");
    let found = if is_fence(first) {
        lines.take_while(|it| !is_fence(it) && it.trim_end() != "```").find(|it| is_origin_key(it))
    } else {
        Some(first).filter(|it| is_origin_key(it))
    };
    let Some(line) = found else { return Ok(None) };
    let value = line.split_once([':', '：', '=']).map_or("", |it| it.1);
    match origin_named(value.trim().trim_matches(['"', '\''])) {
        Ok(Some(TextOrigin::External)) => Ok(Some(TextOrigin::External)),
        _ => Err(OriginError::Misplaced),
    }
}

/// Returns the origin of that name, in any spelling.
fn origin_named(name: &str) -> Result<Option<TextOrigin>, OriginError> {
    let name = name.trim().to_lowercase();
    if EXTERNAL_NAMES.contains(&&name[..]) {
        return Ok(Some(TextOrigin::External));
    }
    TextOrigin::from_name(&name).map(Some).ok_or(OriginError::Unknown)
}

/// Looks for an origin at the start of a text without readable frontmatter.
fn check_unclosed_origin(text: &str) -> Result<Option<TextOrigin>, OriginError> {
    let mut lines = text.trim_start_matches('\u{feff}').lines();
    if lines.next().is_none_or(|it| it.trim_end() != "---") {
        return Ok(None);
    }
    let mut head = lines.take_while(|it| !it.trim().is_empty() && it.trim_end() != "---");
    if head.any(is_origin_key) { Err(OriginError::NotClosed) } else { Ok(None) }
}

/// Returns whether what is between two lines `---` at the start of a log are keys, or nothing. A log may as well begin
/// with a line across the page.
fn has_keys(yaml: &str) -> bool {
    let is_key = |line: &str| {
        let name = line.split(':').next().filter(|it| it.len() < line.len());
        let behind = |name: &str| {
            line[name.len() + 1..].starts_with([' ', '\t']) || line.len() == name.len() + 1
        };
        let is_name = |it: &str| {
            let bare = it.trim_matches(['"', '\'']);
            !bare.is_empty() && bare.chars().all(|c| c.is_alphanumeric() || "_-. ".contains(c))
        };
        name.is_some_and(|it| is_name(it) && behind(it))
    };
    let mut lines = yaml.lines().filter(|it| !it.trim().is_empty() && !it.starts_with("# "));
    let first = lines.next();
    let is_below = |it: &str| it.starts_with([' ', '\t', '-', ']', '}']);
    first.is_none_or(is_key) && lines.all(|it| is_key(it) || is_below(it))
}

/// Returns whether the word occurs in a text, in any spelling.
fn mentions_origin(yaml: &str) -> bool {
    yaml.to_lowercase().split(|c: char| !c.is_alphanumeric()).any(|it| it == "origin")
}

impl DailyLog {
    /// Decodes the bytes of a log.
    ///
    /// Frontmatter that cannot be read stays part of the file, but its lines reach no engine; the
    /// body is read.
    ///
    /// # Errors
    ///
    /// Returns [`NotUtf8`] for bytes that are not UTF-8.
    pub fn parse(stem: Stem, bytes: &[u8]) -> Result<Self, NotUtf8> {
        let text = std::str::from_utf8(bytes).map_err(|e| NotUtf8 { at: e.valid_up_to() })?;
        // A weekly or monthly file that is cited itself; a log has no record.
        let text = if stem.is_summary() { joined::visible(text) } else { text };
        // Blank lines above the frontmatter are a slip, not a reason to read it as text.
        let lead = text.len() - text.trim_start_matches(['\u{feff}', '\n', '\r', ' ', '\t']).len();
        let split = frontmatter::split(&text[lead..]);
        let yaml = split.yaml.filter(|it| has_keys(it) || mentions_origin(it));
        let body_at = if yaml.is_some() { lead + split.body_at } else { 0 };
        let declared = match yaml {
            Some(yaml) => parse_origin(yaml),
            None if text[lead..].starts_with("+++") => parse_toml_origin(&text[lead..]),
            None if text[lead..].starts_with(['#', 'o', 'O']) => {
                parse_misplaced_origin(&text[lead..])
            }
            None => check_unclosed_origin(&text[lead..]),
        };
        let (origin, origin_error) = match declared {
            Ok(origin) => (origin, None),
            Err(error) => (Some(TextOrigin::External), Some(error)),
        };
        let hash = ContentHash::of(bytes);
        Ok(Self { stem, hash, origin, origin_error, text: text.into(), body_at })
    }

    /// Returns the whole text of the file.
    pub fn raw(&self) -> &Arc<str> {
        &self.text
    }

    /// Returns each line of the body: number, text without line end, and kind.
    pub fn lines(&self) -> Vec<(u32, &str, LineKind)> {
        let front_lines = self.text[..self.body_at].matches('\n').count();
        let body: Vec<(u32, &str)> = self
            .text
            .strip_prefix('\u{feff}')
            .unwrap_or(&self.text)
            .split('\n')
            .enumerate()
            .skip(front_lines)
            .filter_map(|(i, line)| {
                Some((u32::try_from(i + 1).ok()?, line.strip_suffix('\r').unwrap_or(line)))
            })
            .collect();
        let kinds = markdown::classify_lines(body.iter().map(|&(_, line)| line));
        body.into_iter().zip(kinds).map(|((number, line), kind)| (number, line, kind)).collect()
    }

    /// Returns the number of characters of the body. The compression ratio of a summary is measured
    /// against it.
    pub fn body_chars(&self) -> usize {
        self.text[self.body_at..].trim_start_matches('\u{feff}').trim().chars().count()
    }
}

/// Returns the first line of a new log of `date` and the blank line after it.
pub fn new_log_header(date: NaiveDate) -> String {
    format!("# {date}\n\n")
}

/// Formats an entry for a log: one bullet with the time, its further lines indented below.
///
/// The box of a single task comes before the time: `- [x] 14:02 Called Brandt`.
///
/// A text that begins with a quote, code, a tag, or a table begins below the time: behind it, the mark would not
/// be recognized, and the words would count as the writer's own.
///
/// Returns `None` for a text without words.
pub fn format_entry(time: NaiveTime, text: &str) -> Option<String> {
    let text = own_words::trim_message(text);
    if text.is_empty() {
        return None;
    }
    let item = text.strip_prefix("- ").unwrap_or(text);
    let task = ["[ ] ", "[x] ", "[X] "].into_iter().find_map(|mark| {
        item.strip_prefix(mark).filter(|it| it.lines().count() == 1).map(|it| (mark, it.trim()))
    });
    if let Some((mark, words)) = task {
        return (!words.is_empty()).then(|| format!("- {mark}{} {words}\n", time.format("%H:%M")));
    }
    let kinds = markdown::classify_lines(text.lines());
    let below = match kinds.first() {
        Some(LineKind::Quote { .. } | LineKind::Fence | LineKind::Comment | LineKind::TableRow) => {
            "\n"
        }
        _ if text.starts_with(['<', '＞']) => "\n",
        Some(LineKind::Code) => "\n\n",
        _ => "",
    };
    let mut entry = format!("- {}{below}", time.format("%H:%M"));
    for (i, line) in text.lines().enumerate() {
        let line = line.trim_end();
        if i > 0 && kinds[i] == LineKind::Code && begins_block(kinds[i - 1]) {
            // Below the words of an item, the indent alone would not mark it as code.
            entry.push('\n');
        }
        // Blank lines get no indent: trailing spaces mean nothing.
        entry.push_str(if i == 0 && below.is_empty() {
            " "
        } else if i == 0 {
            "  "
        } else if line.is_empty() {
            "\n"
        } else {
            "\n  "
        });
        entry.push_str(line);
    }
    entry.push('\n');
    Some(entry)
}

/// Returns whether code below a line of this kind is the first line of a block.
fn begins_block(above: LineKind) -> bool {
    !matches!(above, LineKind::Blank | LineKind::Fence | LineKind::Code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<&str>) {
        let time = NaiveTime::from_hms_opt(9, 5, 59).unwrap();
        assert_eq!(format_entry(time, text).as_deref(), expected);
    }

    #[test]
    fn an_entry_is_one_bullet() {
        check("Chose SQLite", Some("- 09:05 Chose SQLite\n"));
        check(" two\r\nlines \n", Some("- 09:05 two\n  lines\n"));
        check("- a\n\n  - b", Some("- 09:05 - a\n\n    - b\n"));
        check("- [x] Call Brandt", Some("- [x] 09:05 Call Brandt\n"));
        check("[ ] Call Brandt ", Some("- [ ] 09:05 Call Brandt\n"));
        check("[ ] a\n[x] b", Some("- 09:05 [ ] a\n  [x] b\n"));
        check("日本 é", Some("- 09:05 日本 é\n"));
        check("> a\n\nb", Some("- 09:05\n  > a\n\n  b\n"));
        check("\n    a\nb", Some("- 09:05\n\n      a\n  b\n"));
        check("```\na\n```", Some("- 09:05\n  ```\n  a\n  ```\n"));
        check("<q>\n\na\n</q>", Some("- 09:05\n  <q>\n\n  a\n  </q>\n"));
        check("| a | b |", Some("- 09:05\n  | a | b |\n"));
        check(" \n\t", None);
    }

    #[test]
    fn quotes_and_code_of_an_entry_stay_what_they_are() {
        let time = NaiveTime::from_hms_opt(9, 5, 0).unwrap();
        for text in [
            "> a",
            "- > a",
            "a\n> b",
            "    a",
            "\ta\n\tb",
            "a:\n\ta",
            "a\n\n    b",
            "a\n    b\nc",
            "~~~\na\n~~~\nb",
            "1. ```\n   a\n   ```",
        ] {
            let kinds = |text: &str| {
                let lines = text.lines().zip(markdown::classify_lines(text.lines()));
                let is_own = |it: LineKind| {
                    !matches!(it, LineKind::Quote { .. } | LineKind::Fence | LineKind::Code)
                };
                let own = lines.filter(|it| is_own(it.1)).map(|it| it.0.trim().to_owned());
                own.filter(|it| !it.is_empty()).collect::<Vec<_>>()
            };
            let entry = format_entry(time, text).unwrap();
            let mut own = kinds(&entry);
            let first = own.remove(0);
            let first = first.strip_prefix("- 09:05").unwrap().trim();
            own.splice(0..0, (!first.is_empty()).then(|| first.to_owned()));
            assert_eq!(own, kinds(text), "{entry}");
        }
    }

    /// `lines` holds the numbers and texts of the body.
    #[track_caller]
    fn check_lines(text: &str, lines: &[(u32, &str)], origin: Option<TextOrigin>) {
        let log = DailyLog::parse("2026-04-02".parse().unwrap(), text.as_bytes()).unwrap();
        let found: Vec<(u32, &str)> = log.lines().iter().map(|&(n, line, _)| (n, line)).collect();
        assert_eq!((&found[..], log.origin), (lines, origin), "{text:?}");
    }

    #[test]
    fn lines_are_numbered_as_editors_show_them() {
        check_lines("a\nb", &[(1, "a"), (2, "b")], None);
        check_lines("\u{feff}a\r\n\r\nb\r\n", &[(1, "a"), (2, ""), (3, "b"), (4, "")], None);
        check_lines("---\norigin: human\n---\na", &[(4, "a")], Some(TextOrigin::Human));
        check_lines("\n\n---\norigin: agent\n---\na", &[(6, "a")], Some(TextOrigin::Agent));
        check_lines(
            "---\n## A\n- b\n---\nc",
            &[(1, "---"), (2, "## A"), (3, "- b"), (4, "---"), (5, "c")],
            None,
        );
        check_lines("---\ntitle: a\ntags:\n- b\n---\nc", &[(6, "c")], None);
        check_lines("---\nnot closed\na", &[(1, "---"), (2, "not closed"), (3, "a")], None);
        check_lines("", &[(1, "")], None);
    }

    #[track_caller]
    fn check_origin(front: &str, expected: Option<TextOrigin>, has_error: bool) {
        let text = format!("---\n{front}\n---\na\n");
        let log = DailyLog::parse("2026-04-02".parse().unwrap(), text.as_bytes()).unwrap();
        assert_eq!((log.origin, log.origin_error.is_some()), (expected, has_error), "{front}");
        for lead in ["", "\n \n", "\u{feff}", "\u{feff}\r\n"] {
            assert!(may_declare_origin(format!("{lead}{text}").as_bytes()), "{front}");
        }
    }

    #[test]
    fn an_unreadable_origin_counts_as_external_and_is_reported() {
        let external = Some(TextOrigin::External);
        check_origin("title: a", None, false);
        check_origin("original: [", None, false);
        check_origin("origin: Human", Some(TextOrigin::Human), false);
        check_origin("ORIGIN: \" agent \"", Some(TextOrigin::Agent), false);
        for front in ["origin: web", "origin: tool", "origin: External", "Origin: external"] {
            check_origin(front, external, false);
        }
        for front in [
            "origin: [external]",
            "origin: externl",
            "origin:",
            "origin: { by: human }",
            "origin: external\norigin: external",
            "origin: human\nOrigin: agent",
            "origin: external\nbroken: [",
            "origin: human\nbroken: *b",
            "\"Origin\": human\n\tb: c",
        ] {
            check_origin(front, external, true);
        }
        for text in ["---\norigin: web\n\na", "---\nOrigin : human\nb"] {
            let log = DailyLog::parse("2026-04-02".parse().unwrap(), text.as_bytes()).unwrap();
            assert_eq!((log.origin, log.origin_error), (external, Some(OriginError::NotClosed)));
        }
    }

    #[test]
    fn an_origin_in_toml_or_below_a_heading_is_honoured_or_reported() {
        #[track_caller]
        fn check(text: &str, origin: Option<TextOrigin>, error: Option<&OriginError>) {
            let log = DailyLog::parse("2026-04-02".parse().unwrap(), text.as_bytes()).unwrap();
            assert_eq!((log.origin, log.origin_error.as_ref()), (origin, error), "{text}");
            assert!(origin.is_none() || may_declare_origin(text.as_bytes()), "{text}");
        }
        let external = Some(TextOrigin::External);
        check("+++\norigin = \"external\"\n+++\n- a\n", external, None);
        check(
            "\n+++\ntitle = 'x'\norigin = 'human' # mine\n+++\n- a\n",
            Some(TextOrigin::Human),
            None,
        );
        check("+++\ntitle = \"x\"\n+++\n- a\n", None, None);
        check("+++\norigin = \"exernal\"\n+++\n- a\n", external, Some(&OriginError::Unknown));
        check("+++\norigin = \"external\"\n\n- a\n", external, Some(&OriginError::NotClosed));
        let twice = "+++\norigin = \"human\"\norigin = \"agent\"\n+++\n";
        check(twice, external, Some(&OriginError::Duplicate));
        check("# 2026-04-02\n\n---\norigin: external\n---\n\n- a\n", external, None);
        check("# 2026-04-02\n\n---\norigin: human\n---\n", external, Some(&OriginError::Misplaced));
        check("# A\n## B\norigin: mail\n\n- a\n", external, None);
        check("origin: web\n- a\n", external, None);
        check("# 2026-04-02\n\n```yaml\norigin: external\n```\n- a\n", external, None);
        check("# 2026-04-02\n\n- a\n\norigin: external\n", None, None);
        check("# 2026-04-02\n\n---\ntitle: x\n---\n- origin: a port\n", None, None);
    }

    #[test]
    fn bytes_that_are_not_utf8_are_an_error() {
        let bad = DailyLog::parse("2026-04-02".parse().unwrap(), b"caf\xe9").unwrap_err();
        assert_eq!(bad, NotUtf8 { at: 3 });
    }

    #[test]
    fn length_counts_characters_of_the_body() {
        let log = DailyLog::parse(
            "2026-04-02".parse().unwrap(),
            "---\na: 1\n---\n\nnaïve ü\n".as_bytes(),
        );
        assert_eq!(log.unwrap().body_chars(), 7);
    }
}
