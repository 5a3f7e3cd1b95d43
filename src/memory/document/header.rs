//! Reading the frontmatter and the record of a summary: a fast reader for the spelling that memoird writes, and a
//! general one for all others.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_yaml::Value;

use super::{SummaryBlock, SummaryError, SummaryHeader, blocks::split_blocks};
use crate::memory::{
    frontmatter::{self, FrontmatterSplit, GENERATED_YAML_BYTES_MAX, OtherKeys},
    item::Tier,
    period::Period,
};

/// The keys of the frontmatter that memoird writes.
const OUR_KEYS: [&str; 4] = ["type", "period", "pointers", "memoird"];

/// The frontmatter and the record of a weekly or monthly file.
pub(super) struct SummaryFrontmatter {
    pub(super) header: Option<SummaryHeader>,
    pub(super) other_keys: OtherKeys,
    /// The hashes of our bullets with their citations, if they are recorded.
    pub(super) cited: Option<Vec<String>>,
}

impl SummaryFrontmatter {
    /// Reads the frontmatter, and the record of a file whose frontmatter does not hold it. If neither our
    /// frontmatter nor a bullet of ours is left, the file is somebody else's, put in the place of the one to which
    /// the record belongs.
    pub(super) fn read(
        split: &FrontmatterSplit<'_>,
        body: &str,
        record: Option<&str>,
        period: Option<Period>,
    ) -> Result<Self, SummaryError> {
        let record = record.and_then(|it| serde_json::from_str::<SummaryRecord>(it).ok());
        let Some(mut record) = record else { return Self::read_whole(split, period) };
        let cited = record.cited.take();
        let yaml = split.yaml.unwrap_or_default();
        if let Some((found, pointers)) =
            parse_canonical_head(&mut yaml.split_terminator('\n').peekable(), true)
        {
            check_period(period, found)?;
            let header = Some(record.header(pointers));
            return Ok(Self { header, other_keys: OtherKeys::default(), cited });
        }
        let mut keys = frontmatter::parse(yaml, GENERATED_YAML_BYTES_MAX)?;
        let is_ours =
            |it: &SummaryBlock| it.item().is_some_and(|it| record.items.contains(&it.hash()));
        let is_replaced = || !split_blocks(body).iter().any(is_ours);
        if keys.contains_key("memoird") || !keys.contains_key("period") && is_replaced() {
            return Self::read_whole(split, period);
        }
        let pointers = strings(keys.get("pointers"), "pointers")?;
        check_period_key(period, keys.get("period"))?;
        for ours in OUR_KEYS {
            keys.shift_remove(ours);
        }
        let other_keys = OtherKeys::new(keys, yaml);
        Ok(Self { header: Some(record.header(pointers)), other_keys, cited })
    }

    fn read_whole(
        split: &FrontmatterSplit<'_>,
        period: Option<Period>,
    ) -> Result<Self, SummaryError> {
        let read = |header, other_keys| Self { header, other_keys, cited: None };
        let Some(yaml) = split.yaml else { return Ok(read(None, OtherKeys::default())) };
        if let Some((found, header)) = parse_canonical(yaml) {
            check_period(period, found)?;
            return Ok(read(Some(header), OtherKeys::default()));
        }
        let mut keys = frontmatter::parse(yaml, GENERATED_YAML_BYTES_MAX)?;
        let Some(memoird) = keys.get("memoird") else {
            // If the file becomes ours, we write these keys ourselves.
            for ours in OUR_KEYS {
                keys.shift_remove(ours);
            }
            return Ok(read(None, OtherKeys::new(keys, yaml)));
        };
        let memoird = memoird.as_mapping().ok_or(SummaryError::InvalidKey { key: "memoird" })?;
        let mut header = SummaryHeader {
            pointers: strings(keys.get("pointers"), "pointers")?,
            engine: string(memoird.get("engine"), "memoird.engine")?,
            items: strings(memoird.get("items"), "memoird.items")?,
            external: strings(memoird.get("external"), "memoird.external")?,
            extracted: strings(memoird.get("extracted"), "memoird.extracted")?,
            missing_sources: strings(memoird.get("gone"), "memoird.gone")?,
            ..SummaryHeader::default()
        };
        let flag = |name: &str, key| match memoird.get(name) {
            None => Ok(false),
            Some(it) => it.as_bool().ok_or(SummaryError::InvalidKey { key }),
        };
        header.partial = flag("partial", "memoird.partial")?;
        header.fallback = flag("fallback", "memoird.fallback")?;
        let key = "memoird.sources";
        if let Some(sources) = memoird.get("sources") {
            for (stem, hash) in sources.as_mapping().ok_or(SummaryError::InvalidKey { key })? {
                header.sources.insert(string(Some(stem), key)?, string(Some(hash), key)?);
            }
        }
        check_period_key(period, keys.get("period"))?;
        for ours in OUR_KEYS {
            keys.shift_remove(ours);
        }
        Ok(read(Some(header), OtherKeys::new(keys, yaml)))
    }
}

/// What memoird records about a weekly or monthly file in the hidden file beside it; the keys are sorted.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(super) struct SummaryRecord {
    /// First 16 hex digits of the hash of the visible file.
    body: String,
    /// The hash of each of our bullets with its citation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cited: Option<Vec<String>>,
    #[serde(default)]
    engine: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    external: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    extracted: Vec<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    fallback: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    gone: Vec<String>,
    #[serde(default)]
    items: Vec<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    partial: bool,
    #[serde(default)]
    sources: BTreeMap<String, String>,
}

impl SummaryRecord {
    pub(super) fn of(header: &SummaryHeader, body: String, cited: Vec<String>) -> Self {
        let SummaryHeader {
            pointers: _,
            engine,
            sources,
            items,
            external,
            extracted,
            missing_sources: gone,
            partial,
            fallback,
        } = header.clone();
        let cited = Some(cited);
        Self { body, cited, engine, external, extracted, fallback, gone, items, partial, sources }
    }

    pub(super) fn print(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    fn header(self, pointers: Vec<String>) -> SummaryHeader {
        SummaryHeader {
            pointers,
            engine: self.engine,
            sources: self.sources,
            items: self.items,
            external: self.external,
            extracted: self.extracted,
            missing_sources: self.gone,
            partial: self.partial,
            fallback: self.fallback,
        }
    }
}

fn check_period_key(expected: Option<Period>, found: Option<&Value>) -> Result<(), SummaryError> {
    let Some(found) = found else { return Ok(()) };
    let found = found.as_str().and_then(|it| it.parse().ok());
    check_period(expected, found.ok_or(SummaryError::InvalidKey { key: "period" })?)
}

fn check_period(expected: Option<Period>, found: Period) -> Result<(), SummaryError> {
    match expected {
        Some(expected) if expected != found => {
            Err(SummaryError::PeriodMismatch { expected, found })
        }
        _ => Ok(()),
    }
}

fn string(value: Option<&Value>, key: &'static str) -> Result<String, SummaryError> {
    match value {
        None => Ok(String::new()),
        Some(Value::String(it)) => Ok(it.clone()),
        Some(_) => Err(SummaryError::InvalidKey { key }),
    }
}

fn strings(value: Option<&Value>, key: &'static str) -> Result<Vec<String>, SummaryError> {
    match value {
        None => Ok(Vec::new()),
        Some(Value::Sequence(values)) => values.iter().map(|it| string(Some(it), key)).collect(),
        Some(_) => Err(SummaryError::InvalidKey { key }),
    }
}

/// Parses the keys for readers as we write them; with `is_all` only if there are no others.
fn parse_canonical_head(
    lines: &mut std::iter::Peekable<std::str::SplitTerminator<'_, char>>,
    is_all: bool,
) -> Option<(Period, Vec<String>)> {
    let tier = lines.next()?.strip_prefix("type: ")?;
    let period: Period = lines.next()?.strip_prefix("period: ")?.parse().ok()?;
    if Tier::of_period(period).name() != tier {
        return None;
    }
    let mut pointers = Vec::new();
    if lines.next_if_eq(&"pointers:").is_some() {
        while let Some(line) = lines.next_if(|it| it.starts_with("  - ")) {
            pointers.push(parse_canonical_scalar(&line[4..])?);
        }
    }
    (!is_all || lines.peek().is_none()).then_some((period, pointers))
}

/// Parses frontmatter of an older form that is spelled exactly as we wrote it, and nothing else.
///
/// A root of ten years has hundreds of such files with hundreds of hashes each, all read in every
/// run; the general reader takes several times as long.
pub(super) fn parse_canonical(yaml: &str) -> Option<(Period, SummaryHeader)> {
    let mut header = SummaryHeader::default();
    let mut lines = yaml.split_terminator('\n').peekable();
    let (period, pointers) = parse_canonical_head(&mut lines, false)?;
    header.pointers = pointers;
    (lines.next()? == "memoird:").then_some(())?;
    header.engine = parse_canonical_scalar(lines.next()?.strip_prefix("  engine: ")?)?;
    let sources = lines.next()?.strip_prefix("  sources: { ")?.strip_suffix(" }")?;
    for pair in sources.split(", ").filter(|it| !it.is_empty()) {
        let (stem, hash) = pair.split_once(": ")?;
        if header
            .sources
            .insert(parse_canonical_scalar(stem)?, parse_canonical_scalar(hash)?)
            .is_some()
        {
            return None;
        }
    }
    let mut list = |key: &str| {
        let line = lines.next_if(|it| it.starts_with(key))?;
        let values = line[key.len()..].strip_suffix(']')?;
        values
            .split(", ")
            .filter(|it| !it.is_empty())
            .map(parse_canonical_scalar)
            .collect::<Option<Vec<_>>>()
    };
    header.items = list("  items: [")?;
    header.external = list("  external: [").unwrap_or_default();
    header.extracted = list("  extracted: [").unwrap_or_default();
    header.missing_sources = list("  gone: [").unwrap_or_default();
    header.partial = lines.next_if_eq(&"  partial: true").is_some();
    header.fallback = lines.next_if_eq(&"  fallback: true").is_some();
    lines.next().is_none().then_some((period, header))
}

/// Parses a bare word or a quoted string without escapes, if all its characters are unambiguous.
pub(super) fn parse_canonical_scalar(text: &str) -> Option<String> {
    let quoted = text.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
    let words = quoted.unwrap_or(text);
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'/');
    let day = || words.len() == 10 && words.parse::<chrono::NaiveDate>().is_ok();
    let own = match quoted {
        Some(_) => !words.is_empty() && words.bytes().all(plain),
        None => frontmatter::write::is_safe_bare(words) || day(),
    };
    own.then(|| words.to_owned())
}
