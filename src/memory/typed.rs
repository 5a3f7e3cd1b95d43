//! Typed memories: files about a topic, or of one statement, with frontmatter.
//!
//! A file is typed when the `type` in its frontmatter is one of four and equals the prefix of its
//! name. It is managed while its body has the hash that we recorded. In a file about a topic (see
//! [`super::statement`]) each statement has an owner: those that we listed are ours, whatever a
//! person did to the others. A file without a record is a person's: it is read and indexed, and
//! never written.
//!
//! # Invariants
//!
//! - File names are built here, from a closed list of types and an ASCII slug: no byte that an
//!   engine proposed reaches a path. With the type in front, no slug can become a name that a tool
//!   or an operating system reserves (`WISDOM.md`, `AGENTS.md`, `con.md`).
//! - What [`TypedMemory::print`] writes, [`TypedMemory::parse`] reads back to the same values.
//! - A frontmatter key whose value is not one that we write stays among the other keys.
//!
//! Called by `store` (reading and writing), `compaction` (extraction), and `recall`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    ops::Range,
    path::{Path, PathBuf},
};

use chrono::NaiveDate;
use serde_yaml::{Mapping, Value};
use unicode_normalization::UnicodeNormalization as _;

use super::{
    address::{Address, Citation},
    frontmatter::{self, FrontmatterError, OtherKeys, YAML_BYTES_MAX, write::FrontmatterWriter},
    hash::ContentHash,
    item::Item,
    joined,
    statement::{self, MemoryStatement, StatementKind},
    typed_record::{MemoryRecord, parse_source},
};

/// The longest slug in a file name, in bytes.
const SLUG_BYTES_MAX: usize = 48;

/// The name of the memory about people whom the logs name too seldom for one of their own.
pub const PEOPLE_TOPIC: &str = "People";

/// The type of a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MemoryType {
    /// A person's role, preferences, expertise, way of working.
    User,
    /// Guidance on how to work, with why.
    Feedback,
    /// Decisions, goals, timelines, context.
    Project,
    /// Where to find something outside.
    Reference,
}

/// A typed memory as read from its file.
#[derive(Clone, Debug, PartialEq)]
pub struct TypedMemory {
    /// `feedback_testing-approach.md`.
    pub file_name: PathBuf,
    /// The type.
    pub kind: MemoryType,
    /// The title.
    pub name: String,
    /// The line for the index.
    pub description: String,
    /// Day of the oldest source.
    pub created: Option<NaiveDate>,
    /// Day of the newest source.
    pub updated: Option<NaiveDate>,
    /// The cited lines, each with the first 4 hex digits of its hash.
    pub sources: Vec<(Address, String)>,
    /// The file that this one replaces.
    pub supersedes: Option<String>,
    /// The hash of the body as we wrote it; `None` in a person's file.
    pub recorded_body: Option<String>,
    /// The hash of the description as we wrote it, in a memory about a topic.
    pub recorded_description: Option<String>,
    /// The hash of each statement as we wrote it, in a memory about a topic.
    pub items: Vec<String>,
    /// Those of them that a model wrote.
    pub by_model: Vec<String>,
    /// Other frontmatter keys, which are preserved.
    pub other_keys: OtherKeys,
    /// The text after the frontmatter.
    pub body: String,
}

/// What a bullet or paragraph of a body says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BodyStatement {
    /// Its words on one line, without its citation.
    pub text: String,
    /// The newest day that it cites itself.
    pub newest: Option<NaiveDate>,
}

/// A file that is not a typed memory, or cannot be parsed as one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TypedMemoryError {
    /// Its frontmatter breaks a rule.
    #[error(transparent)]
    Frontmatter(#[from] FrontmatterError),
    /// It is a file of another kind, to be left alone.
    #[error("no frontmatter with `type: user`, `feedback`, `project`, or `reference`")]
    NotTyped,
    /// Its type and its name disagree.
    #[error("the frontmatter says `type: {kind}`, but the name does not begin with `{kind}_`")]
    TypeMismatch {
        /// The type in the frontmatter.
        kind: MemoryType,
    },
    /// A required key is missing.
    #[error("the frontmatter has no `{key}`; add a line `{key}: …`")]
    MissingKey {
        /// The key.
        key: &'static str,
    },
}

impl MemoryType {
    /// All types, in the order of the index.
    pub const ALL: [Self; 4] = [Self::User, Self::Feedback, Self::Project, Self::Reference];

    /// Returns the name used in frontmatter and before `_` in the file name.
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Feedback => "feedback",
            Self::Project => "project",
            Self::Reference => "reference",
        }
    }

    /// Returns the name of the memory for what is about nothing in particular.
    pub fn general_topic(self) -> &'static str {
        match self {
            Self::User => "Owner",
            Self::Feedback => "How to work",
            Self::Project => "Decisions",
            Self::Reference => "Places",
        }
    }

    /// Returns whether a memory of this name is about nothing in particular, or about several people.
    pub fn is_general_topic(self, name: &str) -> bool {
        name == self.general_topic() || (self == Self::User && name == PEOPLE_TOPIC)
    }

    /// Returns the type with that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }

    /// Returns the type that a file name claims: the part before its first `_`.
    pub fn of_file_name(name: &Path) -> Option<Self> {
        let (prefix, _) = name.to_str()?.strip_suffix(".md")?.split_once('_')?;
        Self::from_name(prefix)
    }
}

impl fmt::Display for MemoryType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl TypedMemory {
    /// Parses a file of the memory folder.
    ///
    /// Many tools read frontmatter line by line, so people write what no YAML reader accepts
    /// (`description: [wip] a: b`). Such a file is parsed line by line here too: its one-line keys
    /// count, and it is a person's.
    ///
    /// # Errors
    ///
    /// Returns why the file is not a typed memory; [`TypedMemoryError::NotTyped`] is not a fault of
    /// the file.
    pub fn parse(file_name: &Path, text: &str) -> Result<Self, TypedMemoryError> {
        let (text, record) = joined::split(text);
        let record = record.and_then(MemoryRecord::parse);
        let split = frontmatter::split(text);
        let yaml = split.yaml.ok_or(TypedMemoryError::NotTyped)?;
        let (mut keys, is_yaml) = match frontmatter::parse(yaml, YAML_BYTES_MAX) {
            Ok(keys) => (keys, true),
            Err(error @ FrontmatterError::TooLong { .. }) => return Err(error.into()),
            Err(error) => (parse_keys_by_line(yaml).ok_or(error)?, false),
        };
        let kind = keys.get("type").and_then(Value::as_str).and_then(MemoryType::from_name);
        let kind = kind.ok_or(TypedMemoryError::NotTyped)?;
        if MemoryType::of_file_name(file_name) != Some(kind) {
            return Err(TypedMemoryError::TypeMismatch { kind });
        }
        keys.shift_remove("type");
        let mut needed = |key: &'static str| {
            let text = keys.get(key).and_then(as_text).filter(|it| !it.trim().is_empty());
            keys.shift_remove(key);
            text.ok_or(TypedMemoryError::MissingKey { key })
        };
        let (name, description) = (needed("name")?, needed("description")?);
        let body = split.body(text).to_owned();
        // Beside a record, keys of these names are a person's.
        if let Some(record) = record.filter(|_| is_yaml && !keys.contains_key("memoird")) {
            let mut memory = Self {
                file_name: file_name.to_owned(),
                kind,
                name,
                description,
                created: None,
                updated: None,
                sources: Vec::new(),
                supersedes: None,
                recorded_body: None,
                recorded_description: None,
                items: Vec::new(),
                by_model: Vec::new(),
                other_keys: OtherKeys::new(keys, yaml),
                body,
            };
            record.fill(&mut memory);
            return Ok(memory);
        }
        Ok(Self {
            file_name: file_name.to_owned(),
            kind,
            name,
            description,
            created: take_key(&mut keys, "created", as_day),
            updated: take_key(&mut keys, "updated", as_day),
            sources: take_key(&mut keys, "sources", as_sources).unwrap_or_default(),
            supersedes: take_key(&mut keys, "supersedes", |it| it.as_str().map(str::to_owned)),
            recorded_body: take_key(&mut keys, "memoird", as_recorded_body),
            recorded_description: None,
            items: Vec::new(),
            by_model: Vec::new(),
            other_keys: OtherKeys::new(keys, yaml),
            body,
        })
    }

    /// Returns the whole file: what is visible, and the record.
    pub fn print(&self) -> String {
        let mut writer = FrontmatterWriter::new();
        writer.text("name", &self.name);
        writer.text("description", &self.description);
        writer.text("type", self.kind.name());
        if self.recorded_body.is_none() {
            self.write_own_sources(&mut writer);
        }
        writer.other_keys(&self.other_keys);
        let visible = writer.finish() + &self.body;
        self.with_record(&visible)
    }

    /// Returns a visible text with the record of this memory; a person's file has none.
    pub fn with_record(&self, visible: &str) -> String {
        let record = MemoryRecord::of(self, visible).map(|it| it.print());
        joined::join(visible, record.as_deref())
    }

    /// Writes the sources of a person's file, which has them in its frontmatter.
    fn write_own_sources(&self, writer: &mut FrontmatterWriter) {
        if let Some(day) = self.created {
            writer.bare("created", day);
        }
        if let Some(day) = self.updated {
            writer.bare("updated", day);
        }
        if !self.sources.is_empty() {
            let sources: Vec<String> =
                self.sources.iter().map(|(address, hash)| format!("{address}#{hash}")).collect();
            writer.flow_list("sources", sources.iter().map(String::as_str));
        }
        if let Some(file) = &self.supersedes {
            writer.text("supersedes", file);
        }
    }

    /// Returns whether the body is as we wrote it. Line endings do not count, since tools that move
    /// files between machines change them.
    pub fn is_managed(&self) -> bool {
        let Some(recorded) = &self.recorded_body else { return false };
        *recorded == ContentHash::of(&self.body).hex16()
            || *recorded == ContentHash::of(self.body.replace("\r\n", "\n")).hex16()
    }

    /// Records the current body as generated.
    pub fn record_body_hash(&mut self) {
        self.recorded_body = Some(ContentHash::of(&self.body).hex16());
    }

    /// Returns whether a person wrote the description of a memory about a topic.
    pub fn has_own_description(&self) -> bool {
        let now = || description_hash(&self.description);
        self.recorded_description.as_ref().is_some_and(|it| *it != now())
    }

    /// Splits the statements into ours, which are as we wrote them, and those that a person wrote or changed.
    pub fn statements_by_owner(&self) -> (Vec<MemoryStatement>, Vec<MemoryStatement>) {
        let mut left = self.items.clone();
        self.statements().into_iter().partition(|it| {
            let at = left.iter().position(|hash| *hash == it.item.hash());
            at.map(|it| left.swap_remove(it)).is_some()
        })
    }

    /// Returns the memory with the words of `shown`, in which some were replaced by marks: what was ours stays ours.
    #[must_use]
    pub fn reworded(&self, mut shown: Self) -> Self {
        let now = shown.statements();
        let hash_now = |before: &String| {
            let then = self.statements().iter().position(|it| it.item.hash() == *before)?;
            Some(now.get(then)?.item.hash())
        };
        let now_of = |hashes: &[String]| {
            hashes.iter().map(|it| hash_now(it).unwrap_or_else(|| it.clone())).collect()
        };
        (shown.items, shown.by_model) = (now_of(&self.items), now_of(&self.by_model));
        (shown.created, shown.updated) = (self.created, self.updated);
        shown.sources.clone_from(&self.sources);
        shown.supersedes.clone_from(&self.supersedes);
        shown.recorded_body.clone_from(&self.recorded_body);
        if !self.has_own_description() && self.recorded_description.is_some() {
            shown.recorded_description = Some(description_hash(&shown.description));
        } else {
            shown.recorded_description.clone_from(&self.recorded_description);
        }
        if self.is_managed() {
            shown.record_body_hash();
        }
        shown
    }

    /// Returns whether it is about a topic, rather than one statement; also when a person deleted all statements.
    pub fn is_about_topic(&self) -> bool {
        !self.items.is_empty() || !self.statements().is_empty()
    }

    /// Returns the statements of a memory about a topic; none if it is about one statement.
    pub fn statements(&self) -> Vec<MemoryStatement> {
        statement::statements_of(&self.body)
    }

    /// Returns its statements; of a memory of one statement that one, as it would be in a memory about a topic.
    pub fn known_statements(&self) -> Vec<MemoryStatement> {
        let statements = self.statements();
        if !statements.is_empty() {
            return statements;
        }
        let texts: Vec<String> =
            statements_of_body(&self.body).into_iter().map(|it| it.text).collect();
        let citation = Citation::from_addresses(self.sources.iter().map(|(at, _)| at));
        let item = Item { text: texts.join(" "), citation };
        let one = MemoryStatement { kind: StatementKind::of_memory(self.kind), line: 1, item };
        if one.item.text.is_empty() { Vec::new() } else { vec![one] }
    }

    /// Replaces the sources, and in the statements the citations of lines that moved. Lines are matched by their
    /// hashes within a log.
    pub fn set_sources(&mut self, sources: Vec<(Address, String)>) {
        let was_managed = self.is_managed();
        let old = std::mem::replace(&mut self.sources, sources);
        let mut moved = BTreeMap::new();
        let mut taken = BTreeSet::new();
        for (at, hash) in &old {
            let is_same = |it: &&(Address, String)| it.1 == *hash && !taken.contains(&it.0);
            let mut here = self.sources.iter().filter(|it| it.0.stem == at.stem).filter(is_same);
            let elsewhere = || self.sources.iter().find(is_same);
            if let Some((now, _)) = here.next().or_else(elsewhere) {
                taken.insert(now.clone());
                moved.insert(at.clone(), now.clone());
            }
        }
        let is_unmoved = moved.iter().all(|(from, to)| from == to);
        if is_unmoved || !self.is_about_topic() {
            return;
        }
        let mut lines: Vec<String> = self.body.split('\n').map(str::to_owned).collect();
        for MemoryStatement { line, item, .. } in self.statements() {
            let Some(citation) = &item.citation else { continue };
            let now = citation.addresses().map(|it| moved.get(&it).cloned().unwrap_or(it));
            let citation = Citation::from_addresses(&now.collect::<Vec<_>>());
            if let Some(text) = lines.get_mut(line as usize - 1) {
                *text = format!("- {}", Item { citation, ..item });
            }
        }
        self.body = lines.join("\n");
        if was_managed {
            self.record_body_hash();
        }
    }
}

/// Returns the hash by which the record knows a description.
pub fn description_hash(description: &str) -> String {
    ContentHash::of(description).hex8()
}

/// Returns the lines that a typed memory cites, from its record or its frontmatter, without reading all of it.
pub fn sources_in(text: &str) -> Option<Citation> {
    let (visible, record) = joined::split(text);
    let of_frontmatter = || {
        let yaml = frontmatter::split(visible).yaml?;
        let sources = yaml.lines().find_map(|it| it.strip_prefix("sources:"))?;
        let places = sources.split(['"', ',', '[', ']', ' ', '#']);
        Some(places.filter_map(|it| it.parse().ok()).collect())
    };
    let recorded = record.and_then(MemoryRecord::parse).map(|it| it.addresses());
    let addresses: Vec<Address> = recorded.or_else(of_frontmatter)?;
    Citation::from_addresses(&addresses)
}

/// Builds the body of a generated memory: the statement, then why and how to apply it.
///
/// Each part becomes one paragraph without control characters, so that none can pass for another.
pub fn format_body(statement: &str, why: Option<&str>, how_to_apply: Option<&str>) -> String {
    let mut body = format!("\n{}\n", one_line(statement));
    for (label, words) in [("Why", why), ("How to apply", how_to_apply)] {
        if let Some(words) = words.map(one_line).filter(|it| !it.is_empty()) {
            body.extend(["\n**", label, ":** ", &words, "\n"]);
        }
    }
    body
}

/// Returns the statements of a body: its bullets and paragraphs on one line each, a reason behind what it is the
/// reason of, without headings, citations, and how to apply them.
pub fn statements_of_body(body: &str) -> Vec<BodyStatement> {
    let mut statements: Vec<BodyStatement> = Vec::new();
    // Whether the line before belongs to the last statement, and whether it is part of what is left out.
    let (mut continues, mut skips) = (false, false);
    for line in body.lines().map(str::trim) {
        let bullet = ["- ", "* "].into_iter().find_map(|it| line.strip_prefix(it));
        let Item { text: words, citation } = Item::parse(bullet.unwrap_or(line));
        let newest = citation.map(|it| it.newest_date());
        let bare = words.replace("**", "");
        skips =
            bare.starts_with("How to apply:") || (skips && !line.is_empty() && bullet.is_none());
        if skips || line.is_empty() || line.starts_with('#') {
            continues = false;
            continue;
        }
        let why = bare.strip_prefix("Why:").map(str::trim);
        match statements.last_mut() {
            Some(last) if why.is_some() => {
                let said = last.text.trim_end_matches('.');
                last.text = format!("{said} — {}", why.unwrap_or_default());
            }
            Some(last) if continues && bullet.is_none() => {
                last.text.extend([" ", &words]);
                last.newest = last.newest.max(newest);
            }
            _ => statements.push(BodyStatement { text: words, newest }),
        }
        continues = true;
    }
    let one_line = |it: BodyStatement| BodyStatement { text: one_line(&it.text), ..it };
    statements.into_iter().map(one_line).filter(|it| !it.text.is_empty()).collect()
}

/// Returns the text on one line, without control characters and repeated blanks.
pub fn one_line(text: &str) -> String {
    let plain = text.replace(char::is_control, " ");
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the file name of a memory about `topic`: `<type>_<topic>.md`.
pub fn file_name(kind: MemoryType, topic: &str) -> String {
    format!("{kind}_{}.md", slug(topic))
}

/// Returns [`file_name`], with `-2`, `-3`, … before the extension while `is_taken` says that the
/// name is in use. Generated names are lower case; `is_taken` must ignore case.
pub fn free_file_name(
    kind: MemoryType,
    topic: &str,
    mut is_taken: impl FnMut(&str) -> bool,
) -> String {
    let slug = slug(topic);
    let mut name = format!("{kind}_{slug}.md");
    let mut number = 2_u64;
    while is_taken(&name) {
        let suffix = format!("-{number}");
        name = format!("{kind}_{}{suffix}.md", shorten_slug(&slug, SLUG_BYTES_MAX - suffix.len()));
        number += 1;
    }
    name
}

/// Returns the topic of a proposed file name: without folders, extension, and type prefix.
pub fn proposed_topic(file_name: &str) -> &str {
    let name = file_name.rsplit(['/', '\\']).next().unwrap_or(file_name);
    let name = name.strip_suffix(".md").unwrap_or(name);
    match name.split_once('_') {
        Some((prefix, topic)) if MemoryType::from_name(prefix).is_some() => topic,
        _ => name,
    }
}

/// Returns a value as a file name built from it contains it; `None` for a value too short to be
/// distinctive.
pub fn searchable_slug(value: &str) -> Option<String> {
    let spelled = slug(value);
    let least = if spelled.bytes().any(|it| it.is_ascii_digit()) { 6 } else { 8 };
    (spelled.len() >= least).then_some(spelled)
}

/// Returns where a name contains a [`searchable_slug`]: as a word, or its beginning where the name
/// was cut.
pub fn find_slug(name: &str, spelled: &str) -> Option<Range<usize>> {
    /// A match of this many bytes is no coincidence.
    const HEAD_MIN: usize = 12;
    /// Neither is half of the value with a digit in it.
    const HALF_MIN: usize = 6;
    let plain = name.to_ascii_lowercase().replace('_', "-");
    let is_end = |at: Option<u8>| at.is_none_or(|it| !it.is_ascii_alphanumeric());
    let begins_word = |at: usize| is_end(at.checked_sub(1).map(|at| plain.as_bytes()[at]));
    let whole = plain.match_indices(spelled).map(|(at, _)| at..at + spelled.len()).find(|it| {
        let is_word = begins_word(it.start) && is_end(plain.as_bytes().get(it.end).copied());
        it.len() >= HEAD_MIN || is_word
    });
    let is_head = |stem: &str, length: usize| {
        let half = length >= HALF_MIN && 2 * length >= spelled.len();
        let digit = || spelled.as_bytes()[..length].iter().any(u8::is_ascii_digit);
        stem.ends_with(&spelled[..length])
            && (length >= HEAD_MIN || half && digit() && begins_word(stem.len() - length))
    };
    let stem = plain.strip_suffix(".md").unwrap_or(&plain);
    // The second file of a name ends in a number.
    let first = stem.trim_end_matches(|c: char| c.is_ascii_digit()).strip_suffix('-');
    let head = |stem: &str| {
        let length = (HALF_MIN..spelled.len()).rev().find(|it| is_head(stem, *it))?;
        Some(stem.len() - length..stem.len())
    };
    whole.or_else(|| head(stem)).or_else(|| head(first?))
}

/// Turns words into `[a-z0-9]+(-[a-z0-9]+)*` of at most 48 bytes.
///
/// Other scripts are spelled in Latin letters. Where letters had to be dropped, a short hash of the topic keeps similar
/// topics apart.
fn slug(topic: &str) -> String {
    let mut words = String::new();
    let mut lost = false;
    for c in topic.nfkc() {
        match c {
            _ if c.is_ascii_alphanumeric() => words.push(c.to_ascii_lowercase()),
            _ if unicode_normalization::char::is_combining_mark(c) => {}
            // An apostrophe joins its neighbours: `don't` is one word.
            '\'' | '\u{2019}' => {}
            _ if c.is_alphanumeric() => match deunicode::deunicode_char(c) {
                Some(spelled) => push_spelled(&mut words, spelled),
                None => lost = true,
            },
            _ => {
                if !words.is_empty() && !words.ends_with('-') {
                    words.push('-');
                }
            }
        }
    }
    let words = words.trim_end_matches('-');
    // Two spellings of the same accents must give one file.
    let hash = ContentHash::of(topic.nfkc().collect::<String>());
    if words.is_empty() {
        hash.hex8()
    } else if lost {
        format!("{}-{}", shorten_slug(words, SLUG_BYTES_MAX - 5), hash.hex4())
    } else {
        shorten_slug(words, SLUG_BYTES_MAX).to_owned()
    }
}

/// Adds a letter as it is spelled; a word of its own ends with a space.
fn push_spelled(words: &mut String, spelled: &str) {
    for c in spelled.chars() {
        match c {
            _ if c.is_ascii_alphanumeric() => words.push(c.to_ascii_lowercase()),
            ' ' if !words.is_empty() && !words.ends_with('-') => words.push('-'),
            _ => {}
        }
    }
}

/// Cuts a slug to `bytes_max`, between words if that leaves at least half.
fn shorten_slug(slug: &str, bytes_max: usize) -> &str {
    let Some(head) = slug.get(..bytes_max).filter(|_| slug.len() > bytes_max) else { return slug };
    let at_word = slug[bytes_max..].starts_with('-');
    let cut = head.rfind('-').filter(|&it| !at_word && it >= bytes_max / 2);
    head[..cut.unwrap_or(bytes_max)].trim_end_matches('-')
}

/// Parses `key: words` line by line; `None` without any such line.
fn parse_keys_by_line(yaml: &str) -> Option<Mapping> {
    let mut keys = Mapping::new();
    for (key, words) in yaml.lines().filter_map(|line| line.split_once(':')) {
        let is_key = key.starts_with(|c: char| c.is_ascii_alphabetic())
            && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
        if is_key && words.starts_with([' ', '\t']) && !keys.contains_key(key) {
            let words = words.trim();
            let inner = ['"', '\''].into_iter().find_map(|quote| {
                words.strip_prefix(quote)?.strip_suffix(quote).filter(|it| !it.contains(quote))
            });
            keys.insert(key.into(), inner.unwrap_or(words).into());
        }
    }
    // Without valid YAML, our record of the body cannot be trusted either.
    keys.shift_remove("memoird");
    (!keys.is_empty()).then_some(keys)
}

/// Removes a key and returns its value, if it is one that we write.
fn take_key<T>(keys: &mut Mapping, key: &str, read: impl FnOnce(&Value) -> Option<T>) -> Option<T> {
    let value = keys.get(key).and_then(read)?;
    keys.shift_remove(key);
    Some(value)
}

/// Returns a title that a person may have spelled as a number or a flag.
fn as_text(value: &Value) -> Option<String> {
    match value {
        Value::String(it) => Some(it.clone()),
        Value::Number(it) => Some(it.to_string()),
        Value::Bool(it) => Some(it.to_string()),
        _ => None,
    }
}

fn as_day(value: &Value) -> Option<NaiveDate> {
    let text = value.as_str()?;
    text.parse().ok().filter(|day: &NaiveDate| day.to_string() == text)
}

fn as_sources(value: &Value) -> Option<Vec<(Address, String)>> {
    value.as_sequence()?.iter().map(|it| parse_source(it.as_str()?)).collect()
}

/// Parses `{ body: hash }` and nothing else, so that a key of a later version is not lost.
fn as_recorded_body(value: &Value) -> Option<String> {
    let pairs = value.as_mapping().filter(|it| it.len() == 1)?;
    pairs.get("body")?.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_body_is_cut_into_statements() {
        let ours = format_body("Test it.", Some("Mocks hid a bug."), Some("Use a real database."));
        let texts = |body: &str| -> Vec<String> {
            statements_of_body(body).into_iter().map(|it| it.text).collect()
        };
        assert_eq!(texts(&ours), ["Test it — Mocks hid a bug."]);
        let notes = "# Head\n\n- One [2026-04-02:4]\n- Two\n  and more\n\nText\nin two lines.\n\n**How to apply:** x\ny\n\nLast.\n";
        assert_eq!(texts(notes), ["One", "Two and more", "Text in two lines.", "Last."]);
        let days: Vec<_> = statements_of_body(notes).into_iter().map(|it| it.newest).collect();
        assert_eq!(days, ["2026-04-02".parse().ok(), None, None, None]);
    }

    fn ours() -> TypedMemory {
        let mut memory = TypedMemory {
            file_name: "feedback_testing-approach.md".into(),
            kind: MemoryType::Feedback,
            name: "Testing approach".to_owned(),
            description: "no: use real databases".to_owned(),
            created: Some("2026-04-02".parse().unwrap()),
            updated: Some("2026-04-03".parse().unwrap()),
            sources: vec![("2026-04-02:12".parse().unwrap(), "3fa9".to_owned())],
            supersedes: None,
            recorded_body: None,
            recorded_description: None,
            items: Vec::new(),
            by_model: Vec::new(),
            other_keys: OtherKeys::default(),
            body: format_body("Test against a real database.", Some("Mocks hid a bug."), None),
        };
        memory.record_body_hash();
        memory
    }

    #[test]
    fn a_memory_prints_in_the_documented_layout_and_parses_back() {
        let memory = ours();
        let visible = "\
---
name: \"Testing approach\"
description: \"no: use real databases\"
type: feedback
---

Test against a real database.

**Why:** Mocks hid a bug.
";
        let record = format!(
            "{{\n  \"body\": \"{}\",\n  \"created\": \"2026-04-02\",\n  \"sources\": [\n    \"2026-04-02:12#3fa9\"\n  ],\n  \
             \"text\": \"{}\",\n  \"updated\": \"2026-04-03\"\n}}\n",
            ContentHash::of(visible).hex16(),
            memory.recorded_body.as_ref().unwrap(),
        );
        assert_eq!(memory.print(), joined::join(visible, Some(&record)));
        let read = TypedMemory::parse(&memory.file_name, &memory.print()).unwrap();
        assert_eq!(read, memory);
        assert!(read.is_managed());
    }

    #[test]
    fn an_edited_body_is_a_persons_and_other_line_endings_are_not() {
        let memory = ours();
        let is_ours =
            |text: &str| TypedMemory::parse(&memory.file_name, text).unwrap().is_managed();
        assert!(is_ours(&memory.print().replace('\n', "\r\n")));
        assert!(!is_ours(&memory.print().replace("Mocks", "Fakes")));
        assert!(!is_ours(joined::visible(&memory.print())), "without its record");
    }

    #[test]
    fn a_file_of_an_older_form_is_read_as_it_is_and_printed_in_the_new_one() {
        let memory = ours();
        let hash = frontmatter::write::scalar(memory.recorded_body.as_ref().unwrap());
        let old = format!(
            "---\nname: \"Testing approach\"\ndescription: \"no: use real databases\"\ntype: feedback\n\
             created: 2026-04-02\nupdated: 2026-04-03\nsources: [2026-04-02:12#3fa9]\n\
             memoird: {{ body: {hash} }}\n---\n{}",
            memory.body
        );
        let read = TypedMemory::parse(&memory.file_name, &old).unwrap();
        assert!(read.is_managed());
        assert_eq!(read, memory);
        assert_eq!(read.print(), memory.print());
    }

    #[test]
    fn citations_of_statements_follow_lines_that_move() {
        let mut memory = ours();
        memory.body =
            "\n## State\n\n- Two valves [2026-04-01:3]\n- Boiler [2026-04-01:4-5]\n".to_owned();
        memory.items = memory.statements().iter().map(|it| it.item.hash()).collect();
        memory.record_body_hash();
        let sources = |lines: [u32; 3]| {
            let hashes = ["3fa9", "07be", "a1b2"];
            let at = |line: u32| format!("2026-04-01:{line}").parse().unwrap();
            lines.into_iter().zip(hashes).map(|(line, hash)| (at(line), hash.to_owned())).collect()
        };
        memory.sources = sources([3, 4, 5]);
        memory.set_sources(sources([7, 5, 6]));
        let expected = "\n## State\n\n- Two valves [2026-04-01:7]\n- Boiler [2026-04-01:5-6]\n";
        assert_eq!(memory.body, expected);
        assert!(memory.is_managed());
        assert_eq!(memory.statements_by_owner().1, []);
    }

    #[track_caller]
    fn check(name: &str, text: &str, expected: Result<(&str, &str), &str>) {
        let read = TypedMemory::parse(Path::new(name), text);
        let seen = read.as_ref().map(|it| (it.name.as_str(), it.description.as_str()));
        let error = read.as_ref().map_err(ToString::to_string).map(|_| ());
        match expected {
            Ok(expected) => assert_eq!(seen, Ok(expected), "{text:?}"),
            Err(part) => assert!(error.unwrap_err().contains(part), "{read:?}"),
        }
    }

    #[test]
    fn handwritten_frontmatter_is_parsed() {
        let front = |lines: &str| format!("---\n{lines}\n---\nbody\n");
        check("user_a.md", &front("name: A\ndescription: b\ntype: user"), Ok(("A", "b")));
        check("user_a.md", &front("name: 1.5\ndescription: no\ntype: user"), Ok(("1.5", "no")));
        check(
            "user_a b.md",
            &front("type: user\nname: A\ndescription: [x] y: z"),
            Ok(("A", "[x] y: z")),
        );
        check("user_a.md", &front("type: user\nname: 'A'\ndescription: *x*"), Ok(("A", "*x*")));
        check(
            "user_a.md",
            &front("type: user\nname: A\ndescription: b\ncreated: once\nsources: web"),
            Ok(("A", "b")),
        );
        check(
            "feedback_a.md",
            &front("name: A\ndescription: b\ntype: user"),
            Err("does not begin with `user_`"),
        );
        check(
            "user_a.md",
            &front("name: A\ndescription: b\ntype: decision"),
            Err("no frontmatter with"),
        );
        check("user_a.md", &front("description: b\ntype: user"), Err("no `name`"));
        check(
            "user_a.md",
            &front("name: A\ndescription: ' '\ntype: user"),
            Err("no `description`"),
        );
        check("user_a.md", "no frontmatter", Err("no frontmatter with"));
        check("user_a.md", &front(&"a".repeat(YAML_BYTES_MAX)), Err("more than the 16384"));
    }

    #[test]
    fn foreign_values_stay_among_the_other_keys() {
        let text = "---\nname: A\ndescription: b\ntype: user\ncreated: once\nmemoird: { body: x, next: 1 }\ntags: [a]\n---\n";
        let memory = TypedMemory::parse(Path::new("user_a.md"), text).unwrap();
        let keys: Vec<_> = memory.other_keys.values().keys().filter_map(Value::as_str).collect();
        assert_eq!(keys, ["created", "memoird", "tags"]);
        assert_eq!(TypedMemory::parse(Path::new("user_a.md"), &memory.print()), Ok(memory));
    }

    #[test]
    fn paragraphs_of_a_body_cannot_pass_for_each_other() {
        let text = format_body(" a\n\n**Why:** b\u{1b}[2J", Some(" "), Some("c"));
        assert_eq!(text, "\na **Why:** b [2J\n\n**How to apply:** c\n");
    }

    #[track_caller]
    fn check_slug(topic: &str, expected: &str) {
        assert_eq!(file_name(MemoryType::User, topic), format!("user_{expected}.md"));
    }

    #[test]
    fn names_are_ascii_slugs() {
        check_slug("Testing approach", "testing-approach");
        check_slug("../../.ssh/authorized_keys", "ssh-authorized-keys");
        check_slug("Café Größe — don't", "cafe-grosse-dont");
        check_slug("Cafe\u{301}", "cafe");
        check_slug("ﬁne ½", "fine-1-2");
        check_slug("-rf.md\0\n\u{1b}[2J", "rf-md-2j");
        check_slug("CLAUDE.md", "claude-md");
        check_slug(&"word ".repeat(20), "word-word-word-word-word-word-word-word-word");
        check_slug(&"x".repeat(300), &"x".repeat(48));
        check_slug("日本", "ri-ben");
        check_slug("Москва", "moskva");
        check_slug("한국", "hangug");
        check_slug("", &ContentHash::of("").hex8());
        // The second letter is Cyrillic.
        check_slug("p\u{430}ssword", "password");
        assert_eq!(proposed_topic("a/../feedback_x_y.md"), "x_y");
        assert_eq!(proposed_topic("C:\\AGENTS.md"), "AGENTS");
        let taken = ["user_a.md", "user_a-2.md"];
        assert_eq!(free_file_name(MemoryType::User, "A", |it| taken.contains(&it)), "user_a-3.md");
    }

    proptest! {
        #[test]
        fn any_topic_makes_a_safe_name(topic in any::<String>(), kind in 0usize..4) {
            let kind = MemoryType::ALL[kind];
            let mut tries = 0;
            for name in [file_name(kind, &topic), free_file_name(kind, &topic, |_| { tries += 1; tries < 12 })] {
                let slug = name.strip_prefix(&format!("{kind}_")).and_then(|it| it.strip_suffix(".md")).unwrap();
                prop_assert!(slug.len() <= SLUG_BYTES_MAX);
                prop_assert!(slug.split('-').all(|it| !it.is_empty() && it.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())), "{}", slug);
            }
        }

        #[test]
        fn no_two_topics_share_a_name(topics in proptest::collection::vec(any_words(), 1..12), kind in 0usize..4) {
            let kind = MemoryType::ALL[kind];
            let mut taken = std::collections::HashSet::new();
            for topic in &topics {
                let name = free_file_name(kind, topic, |it| taken.contains(&it.to_lowercase()));
                prop_assert!(taken.insert(name.clone()), "{name} twice");
                // A topic in another Unicode normalization is the same file.
                let decomposed: String = topic.nfd().collect();
                prop_assert_eq!(file_name(kind, topic), file_name(kind, &decomposed));
            }
        }

        #[test]
        fn any_memory_round_trips(
            name in any_words(),
            description in any_words(),
            supersedes in proptest::option::of(any_words()),
            body in "(?s)(---\n|type: user\n|\r\n|\u{feff}|.{0,4}){0,12}",
        ) {
            prop_assume!(!name.trim().is_empty() && !description.trim().is_empty());
            let mut memory = TypedMemory { name, description, supersedes, body, ..ours() };
            memory.record_body_hash();
            let read = TypedMemory::parse(&memory.file_name, &memory.print()).unwrap();
            prop_assert!(read.is_managed());
            prop_assert_eq!(read, memory);
        }
    }

    /// Any text, including what a YAML reader misreads.
    fn any_words() -> impl Strategy<Value = String> {
        prop_oneof![
            any::<String>(),
            "[\\x00-\\x7f\u{80}-\u{a0}\u{2028}\u{2029}\u{feff}\u{fffe}\u{202e}\u{e0041}'\"]{0,8}",
            proptest::sample::select(WORDS.as_slice()).prop_map(str::to_owned),
        ]
    }

    const WORDS: [&str; 28] = [
        "x\ntype: instruction",
        "---\ntrust: human\n---",
        "\"",
        ": ",
        "#",
        "a #b",
        "&a",
        "*a",
        "!!binary aGk=",
        "no",
        "Yes",
        "1.10",
        "~",
        "null",
        ".inf",
        "0x1f",
        "1e3",
        "2026-04-02",
        "<<",
        "=",
        "- a",
        "? a",
        "[a",
        "{a",
        "|",
        ">-",
        "%YAML 1.1",
        "...",
    ];

    /// Names that somebody may propose, from paths out of the folder to reserved names.
    #[test]
    fn proposed_names_stay_in_the_folder_and_free_of_reserved_ones() {
        let long = "\u{1f980}".repeat(75);
        let proposed = [
            "../../.ssh/authorized_keys",
            "/etc/passwd",
            "..\\..\\x.md",
            "a/b/c.md",
            "%2e%2e%2fx",
            ".",
            "..",
            "",
            "CON.md",
            "nul",
            "com1",
            &long,
            "a\0b",
            "a\nb",
            "\u{1b}[2J",
            "a\tb",
            "-rf.md",
            ".hidden",
            "trailing ",
            "trailing.",
            "WISDOM.md",
            "MEMORY.md",
            "config.toml",
            "AGENTS.md",
            "CLAUDE.md",
            "memoird.yaml",
            "p\u{430}ssword.md",
            "weekly",
            "archive",
        ];
        for kind in MemoryType::ALL {
            let mut made = std::collections::BTreeSet::new();
            for topic in proposed {
                for topic in [topic, proposed_topic(topic)] {
                    let name = free_file_name(kind, topic, |it| made.contains(it));
                    let slug = name.strip_prefix(&format!("{kind}_")).unwrap();
                    let slug = slug.strip_suffix(".md").unwrap();
                    let plain =
                        |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '-';
                    assert!(
                        slug.len() <= SLUG_BYTES_MAX && slug.chars().all(plain),
                        "{topic:?}: {name}"
                    );
                    assert!(made.insert(name), "{topic:?} takes a name that is taken");
                }
            }
        }
        let clash = |a: &str, b: &str| {
            let first = file_name(MemoryType::User, a);
            free_file_name(MemoryType::User, b, |it| it == first)
        };
        assert_eq!(clash("Foo.md", "foo.md"), "user_foo-md-2.md");
        assert_eq!(clash("caf\u{e9}", "cafe\u{301}"), "user_cafe-2.md");
    }
}
