//! The settings as they apply, each with the source that sets it. Pure.

use std::path::Path;

use serde_json::Value;

use super::{
    Config, ConfigError, ConfigSource,
    environment::Environment,
    guards,
    layers::{self, Layer},
    root::ROOT_FILE_NAME,
    settings::Settings,
};

/// One setting.
#[derive(Debug, PartialEq)]
pub(crate) struct EffectiveSetting {
    /// Its path, such as `compaction.weekly.ratio`.
    pub(crate) key: String,
    pub(crate) value: Value,
    /// What sets it; `None` for a default.
    pub(crate) origin: Option<ConfigSource>,
}

/// Returns all settings of a root, or without one those over all roots.
pub(crate) fn settings(
    config: &Config,
    root: Option<&Path>,
    around: &Environment,
) -> Result<Vec<EffectiveSetting>, ConfigError> {
    let opened = root.map(|it| config.open(it, around)).transpose()?;
    let values = opened.as_ref().map_or(&config.settings, |it| &it.settings);
    let file = config.file.clone().unwrap_or_default();
    let variables = layers::parse_overrides(&around.variables, &[])?.sections;
    let mut sources = vec![(config.general.clone(), ConfigSource::File(file.clone()))];
    if let Some(opened) = &opened {
        let file_of_root = opened.path.join(ROOT_FILE_NAME);
        let mut root_file = super::root::read_sections(&file_of_root)?;
        // A guard that it may not loosen does not come from it.
        let mut allowed = root_file.clone();
        drop(guards::tighten(&mut allowed, &config.general));
        retain_equal(&mut root_file, &allowed);
        sources.push((root_file, ConfigSource::File(file_of_root)));
        let entry = config.roots.iter().find(|it| it.path == opened.path);
        sources.extend(entry.map(|it| (it.entry.sections.clone(), ConfigSource::File(file))));
    }
    // Variables are part of the overrides, so what they hold as well comes from them.
    sources.push((config.overrides.sections.clone(), ConfigSource::Set));
    let mut found = Vec::new();
    collect(values, &mut |key, value| {
        let value_in = |layer: &Layer| value_at(layer, key).cloned();
        let of_layer = sources.iter().rev().find(|(layer, _)| value_in(layer).is_some());
        let origin = of_layer.map(|(layer, source)| match source {
            ConfigSource::Set if value_in(&variables) == value_in(layer) => {
                ConfigSource::Environment
            }
            source => source.clone(),
        });
        found.push(EffectiveSetting { key: key.join("."), value: value.clone(), origin });
    });
    Ok(found)
}

/// Calls `visit` with each value that is no section.
fn collect(settings: &Settings, visit: &mut dyn FnMut(&[&str], &Value)) {
    fn walk<'a>(value: &'a Value, path: &mut Vec<&'a str>, visit: &mut dyn FnMut(&[&str], &Value)) {
        match value {
            Value::Object(section) => {
                for (key, value) in section {
                    path.push(key);
                    walk(value, path, visit);
                    path.pop();
                }
            }
            value => visit(path, value),
        }
    }
    let whole = serde_json::to_value(settings).unwrap_or_default();
    walk(&whole, &mut Vec::new(), visit);
}

/// Removes the values that another layer has differently.
fn retain_equal(layer: &mut Layer, other: &Layer) {
    layer.retain(|key, value| match (value, other.get(key)) {
        (Value::Object(value), Some(Value::Object(other))) => {
            retain_equal(value, other);
            true
        }
        (value, other) => other == Some(value),
    });
}

fn value_at<'a>(layer: &'a Layer, path: &[&str]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(layer.get(*first)?, |value, key| value.get(key))
}
