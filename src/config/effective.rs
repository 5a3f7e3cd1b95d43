//! The settings as they apply, each with the source that sets it. Pure.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{
    Config, ConfigError, ConfigSource,
    environment::Environment,
    guards,
    layers::{self, Layer, OverrideKeys, RootEntryKeys},
    root::{ROOT_FILE_NAME, RootFile, RootKind, RootSettings, ZoneSource, read_keys},
    settings::Settings,
};

/// One setting.
#[derive(Debug, PartialEq)]
pub(crate) struct EffectiveSetting {
    /// Its path, such as `compaction.weekly.ratio`.
    pub(crate) key: String,
    pub(crate) value: Value,
    /// What sets it; empty for a default. Several for a guard that combines the values of two files.
    pub(crate) origins: Vec<ConfigSource>,
}

/// Returns all settings of a root, or without one those over all roots.
pub(crate) fn settings(
    config: &Config,
    root: Option<&Path>,
    around: &Environment,
) -> Result<Vec<EffectiveSetting>, ConfigError> {
    let Some(root) = root else {
        let sources = Sources::of(config, None, around)?;
        return Ok(sources.sections(&config.settings));
    };
    let opened = config.open(root, around)?;
    let sources = Sources::of(config, Some(&opened), around)?;
    let mut all = sources.root_keys(&opened);
    all.extend(sources.sections(&opened.settings));
    Ok(all)
}

/// The layers of settings, each with its source.
struct Sources<'a> {
    config: &'a Config,
    variables: OverrideKeys,
    entry: Option<&'a RootEntryKeys>,
    root_file: RootFile,
    /// Of the root.
    path_of_root_file: PathBuf,
}

impl<'a> Sources<'a> {
    fn of(
        config: &'a Config,
        root: Option<&RootSettings>,
        around: &Environment,
    ) -> Result<Self, ConfigError> {
        let variables = layers::parse_overrides(&around.variables, &[])?;
        let path_of_root_file = root.map(|it| it.path.join(ROOT_FILE_NAME)).unwrap_or_default();
        let root_file =
            root.map(|_| read_keys(&path_of_root_file)).transpose()?.unwrap_or_default();
        let entry = config.roots.iter().find(|it| root.is_some_and(|root| it.path == root.path));
        let entry = entry.map(|it| &it.entry);
        Ok(Self { config, variables, entry, root_file, path_of_root_file })
    }

    fn user_file(&self) -> ConfigSource {
        ConfigSource::File(self.config.file.clone().unwrap_or_default())
    }

    fn root_file(&self) -> ConfigSource {
        ConfigSource::File(self.path_of_root_file.clone())
    }

    /// Returns the source of a value in the overrides, which include the variables.
    fn call<T: PartialEq>(of_call: &T, of_variables: &T) -> ConfigSource {
        if of_call == of_variables { ConfigSource::Environment } else { ConfigSource::Set }
    }

    /// Returns the keys of a root that are in no section.
    fn root_keys(&self, root: &RootSettings) -> Vec<EffectiveSetting> {
        let RootSettings { agent_name, zone, memory_dir, kind, project, writer, .. } = root;
        let RootSettings { curated, wisdom_block, .. } = root;
        let (call, variables, file) = (&self.config.overrides, &self.variables, &self.root_file);
        let entry = self.entry;
        let zone_source = match zone.source {
            ZoneSource::Call => Some(Self::call(&call.zone, &variables.zone)),
            ZoneSource::Config => Some(self.user_file()),
            ZoneSource::RootFile => Some(self.root_file()),
            ZoneSource::System => Some(ConfigSource::System),
            ZoneSource::Nobody => None,
        };
        let text = |of: fn(&OverrideKeys) -> &Option<String>, of_entry: bool, of_file: bool| {
            if of(call).is_some() {
                return Some(Self::call(of(call), of(variables)));
            }
            let of_entry = of_entry.then(|| self.user_file());
            of_entry.or_else(|| of_file.then(|| self.root_file()))
        };
        let in_file = |is_set: bool| is_set.then(|| self.root_file());
        let memory_dir = memory_dir.to_str().filter(|it| !it.is_empty()).unwrap_or(".");
        let rows = [
            (
                "agent_name",
                json!(agent_name),
                text(
                    |it| &it.agent_name,
                    entry.is_some_and(|it| it.agent_name.is_some()),
                    file.agent_name.is_some(),
                ),
            ),
            ("zone", json!(zone.name), zone_source),
            (
                "memory_dir",
                json!(memory_dir),
                text(
                    |it| &it.memory_dir,
                    entry.is_some_and(|it| it.memory_dir.is_some()),
                    file.memory_dir.is_some(),
                ),
            ),
            ("kind", json!(kind), (*kind != RootKind::default()).then(|| self.user_file())),
            ("project", json!(project), project.as_ref().map(|_| self.user_file())),
            ("writer", json!(writer), in_file(writer.is_some())),
            ("curated", json!(curated), in_file(!curated.is_empty())),
            ("wisdom_block", json!(wisdom_block), in_file(wisdom_block.is_some())),
        ];
        let setting = |(key, value, origin): (&str, Value, Option<ConfigSource>)| {
            EffectiveSetting { key: key.to_owned(), value, origins: Vec::from_iter(origin) }
        };
        rows.into_iter().map(setting).collect()
    }

    /// Returns the keys of all sections.
    fn sections(&self, values: &Settings) -> Vec<EffectiveSetting> {
        let mut found = Vec::new();
        collect(values, &mut |key, value| {
            let origins = self.origins(key, value);
            found.push(EffectiveSetting { key: key.join("."), value: value.clone(), origins });
        });
        found
    }

    fn origins(&self, key: &[&str], value: &Value) -> Vec<ConfigSource> {
        let of_call = value_at(&self.config.overrides.sections, key);
        if of_call.is_some() {
            return vec![Self::call(&of_call, &value_at(&self.variables.sections, key))];
        }
        if self.entry.is_some_and(|it| value_at(&it.sections, key).is_some()) {
            return vec![self.user_file()];
        }
        let of_user = value_at(&self.config.general, key);
        let of_folder = value_at(&self.root_file.sections, key);
        // The file of a folder sets a guard only as far as it does not loosen it.
        let is_from =
            |it: Option<&Value>| it.is_some_and(|it| !guards::is_guard(key) || it == value);
        if is_from(of_folder) {
            return vec![self.root_file()];
        }
        match (of_user, of_folder) {
            (Some(_), Some(_)) if !is_from(of_user) => vec![self.user_file(), self.root_file()],
            (Some(_), _) => vec![self.user_file()],
            (None, _) => Vec::new(),
        }
    }
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

fn value_at<'a>(layer: &'a Layer, path: &[&str]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(layer.get(*first)?, |value, key| value.get(key))
}
