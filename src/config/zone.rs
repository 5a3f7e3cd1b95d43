//! Names of time zones, checked against the built-in database.
//!
//! A wrong name is refused with a suggestion. Pure.

use std::{borrow::Cow, fmt, str::FromStr};

use chrono_tz::{TZ_VARIANTS, Tz};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use super::suggestion::closest_match;

/// A time zone by its name in the IANA database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ZoneName(pub Tz);

/// Why a text is not a time zone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is not a time zone{}", match nearest {
    Some(it) => format!(", did you mean {it}?"),
    None => " (expected a name like Europe/Berlin or UTC)".to_owned(),
})]
pub struct ParseZoneError {
    name: String,
    nearest: Option<&'static str>,
}

impl fmt::Display for ZoneName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name())
    }
}

impl FromStr for ZoneName {
    type Err = ParseZoneError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        name.parse()
            .map(Self)
            .map_err(|_| ParseZoneError { name: name.to_owned(), nearest: suggest(name) })
    }
}

/// Returns the zone that was probably meant.
fn suggest(name: &str) -> Option<&'static str> {
    let name = name.trim().to_lowercase().replace([' ', '-'], "_");
    if name.is_empty() {
        return None;
    }
    let all = || TZ_VARIANTS.iter().map(|it| it.name());
    // People write only the city, but the edit distance from `Berlin` to `Europe/Berlin` is large.
    let city = || all().find(|it| it.to_lowercase().rsplit('/').next() == Some(name.as_str()));
    all().find(|it| it.to_lowercase() == name).or_else(city).or_else(|| closest_match(&name, all()))
}

impl Serialize for ZoneName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ZoneName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<'de, str>::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl JsonSchema for ZoneName {
    fn schema_name() -> Cow<'static, str> {
        "ZoneName".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "format": "zone",
            "description": "A time zone by its IANA name, like Europe/Berlin."
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, expected: Result<&str, Option<&str>>) {
        let seen = name.parse::<ZoneName>();
        let seen = seen.as_ref().map(|it| it.0.name()).map_err(|it| it.nearest);
        assert_eq!(seen, expected);
    }

    #[test]
    fn a_wrong_name_gets_a_suggestion() {
        check("Europe/Vienna", Ok("Europe/Vienna"));
        check("UTC", Ok("UTC"));
        check("Europe/Viena", Err(Some("Europe/Vienna")));
        check("europe/vienna", Err(Some("Europe/Vienna")));
        check("Vienna", Err(Some("Europe/Vienna")));
        check("america/new york", Err(Some("America/New_York")));
        check("Mars/Olympus_Mons", Err(None));
        check("", Err(None));
        check("+02:00", Err(None));
    }
}
