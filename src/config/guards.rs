//! The user's guards: settings that a file which travels with a folder may tighten, but never lower.
//!
//! Whoever gives away a folder writes its `memoird.yaml`. A later layer, such as the root's entry in
//! `config.yaml`, is the user's own and decides freely.

use serde_json::Value;

use super::{
    layers::{self, Layer},
    settings::{LogOrigin, Personal, Review, Settings},
};

/// The keys that decide what agents may write and whose words are trusted.
const GUARDS: [&[&str]; 7] = [
    &["mcp", "write"],
    &["wisdom", "review"],
    &["privacy", "origin"],
    &["privacy", "personal"],
    &["privacy", "human_logs"],
    &["privacy", "external_logs"],
    &["privacy", "external_headings"],
];

/// Replaces the values of a folder's file that would lower a guard of `general`, the user's own settings; returns
/// the keys that have no effect.
pub(super) fn tighten(
    layer: &mut Layer,
    general: &Layer,
) -> Result<Vec<String>, serde_json::Error> {
    let own = layers::merge_settings(&[general])?;
    let asked = layers::merge_settings(&[general, layer])?;
    let allowed = allowed_settings(&own, &asked);
    let [asked, allowed] = [serde_json::to_value(&asked)?, serde_json::to_value(&allowed)?];
    let mut ignored = Vec::new();
    for path in GUARDS {
        let [asked, allowed] = [&asked, &allowed].map(|it| value_at(it, path));
        if asked != allowed {
            layers::merge_layer(layer, &layers::nest(path, allowed));
            // Names of the user's own lists are added without a word.
            let adds = matches!(path, [_, "external_logs" | "external_headings"]);
            ignored.extend((!adds).then(|| path.join(".")));
        }
    }
    Ok(ignored)
}

/// Returns whether a key is a guard.
pub(super) fn is_guard(key: &[&str]) -> bool {
    GUARDS.contains(&key)
}

/// Returns the stricter value of each guard.
fn allowed_settings(own: &Settings, asked: &Settings) -> Settings {
    let mut allowed = asked.clone();
    allowed.mcp.write &= own.mcp.write;
    if own.wisdom.review == Review::Manual {
        allowed.wisdom.review = Review::Manual;
    }
    let privacy = &mut allowed.privacy;
    let trust = |it: LogOrigin| match it {
        LogOrigin::External => 0,
        LogOrigin::Agent => 1,
        LogOrigin::Human => 2,
    };
    if trust(own.privacy.origin) < trust(privacy.origin) {
        privacy.origin = own.privacy.origin;
    }
    if own.privacy.personal == Personal::Remove {
        privacy.personal = Personal::Remove;
    }
    privacy.human_logs.retain(|it| own.privacy.human_logs.contains(it));
    add_missing(&mut privacy.external_logs, &own.privacy.external_logs);
    add_missing(&mut privacy.external_headings, &own.privacy.external_headings);
    allowed
}

fn add_missing(list: &mut Vec<String>, own: &[String]) {
    for name in own {
        if !list.contains(name) {
            list.push(name.clone());
        }
    }
}

fn value_at(value: &Value, path: &[&str]) -> Value {
    path.iter().fold(value, |value, key| &value[*key]).clone()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(own: Value, file: Value, expected: Value, ignored: &[&str]) {
        let layer = |it: Value| match it {
            Value::Object(map) => map,
            _ => Layer::new(),
        };
        let (own, mut file) = (layer(own), layer(file));
        let seen = tighten(&mut file, &own).unwrap();
        assert_eq!(
            (Value::Object(file), seen),
            (expected, ignored.iter().map(|it| (*it).to_owned()).collect())
        );
    }

    #[test]
    fn a_folder_only_tightens_guards() {
        for (file, ignored) in [
            (json!({"mcp": {"write": true}}), "mcp.write"),
            (json!({"privacy": {"origin": "human"}}), "privacy.origin"),
            (json!({"privacy": {"human_logs": ["*"]}}), "privacy.human_logs"),
        ] {
            let mut layer = file.as_object().unwrap().clone();
            assert_eq!(tighten(&mut layer, &Layer::new()).unwrap(), [ignored]);
            let settings = layers::merge_settings(&[&layer]).unwrap();
            assert_eq!(settings, Settings::default());
        }
        let strict = json!({
            "wisdom": {"review": "manual"},
            "privacy": {"origin": "external", "personal": "remove", "external_logs": ["*-mail"]},
        });
        check(
            strict,
            json!({
                "wisdom": {"review": "auto", "max_entries": 5},
                "privacy": {"origin": "agent", "personal": "flag", "external_logs": ["*-web"]},
            }),
            json!({
                "wisdom": {"review": "manual", "max_entries": 5},
                "privacy": {
                    "origin": "external", "personal": "remove", "external_logs": ["*-web", "*-mail"],
                },
            }),
            &["wisdom.review", "privacy.origin", "privacy.personal"],
        );
        let tighter = json!({
            "mcp": {"write": false},
            "wisdom": {"review": "manual"},
            "privacy": {"origin": "external", "external_logs": ["*"], "human_logs": []},
        });
        let loose = json!({
            "mcp": {"write": true},
            "privacy": {"origin": "human", "human_logs": ["*-notes"]},
        });
        check(loose, tighter.clone(), tighter, &[]);
    }
}
