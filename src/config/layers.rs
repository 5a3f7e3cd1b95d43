//! The layers of the configuration, and the keys that each may contain.
//!
//! From weak to strong: built-in defaults, the general sections of `config.yaml`, `memoird.yaml` in the root,
//! the root's entry in `config.yaml`, `MEMOIRD_…` variables, `--set`. A layer is a map of keys that was checked
//! where it was read, so that each mistake is reported with its file; then the layers are merged key by key. A
//! list is replaced as a whole; null is a value. Pure.

use std::{collections::BTreeMap, sync::LazyLock};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{
    ConfigError, ConfigSource,
    root::RootKind,
    schema_check::{ConfigProblem, KeySchema},
    settings::Settings,
    suggestion::closest_match,
    yaml,
    zone::ZoneName,
};

/// A layer: some keys with their values.
pub(super) type Layer = Map<String, Value>;

/// The keys of `config.yaml`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[schemars(title = "memoird configuration", extend("additionalProperties" = false))]
pub(super) struct ConfigKeys {
    /// The memory folders that are served.
    #[serde(default)]
    pub(super) roots: Vec<RootEntryKeys>,
    #[serde(flatten)]
    #[schemars(with = "Settings")]
    pub(super) general: Layer,
}

/// The keys of one entry under `roots`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[schemars(rename = "Root", extend("additionalProperties" = false))]
pub(super) struct RootEntryKeys {
    /// The folder. `~/` is the home folder; other relative paths start at the configuration's folder.
    #[schemars(extend("format" = "name"))]
    pub(super) path: String,
    /// Default: `memoird.yaml`, else the folder's name.
    #[schemars(extend("format" = "name"))]
    pub(super) agent_name: Option<String>,
    /// Default: `memoird.yaml`, else the system's zone.
    pub(super) zone: Option<ZoneName>,
    /// The folder of the logs, relative to the root; "." for a flat folder.
    #[schemars(extend("format" = "folder"))]
    pub(super) memory_dir: Option<String>,
    /// Whose memory it is.
    #[serde(default)]
    pub(super) kind: RootKind,
    /// A working tree whose sessions belong here; relative paths as for `path`.
    #[schemars(extend("format" = "path"))]
    pub(super) project: Option<String>,
    #[serde(flatten)]
    #[schemars(with = "Settings")]
    pub(super) sections: Layer,
}

/// The keys of `memoird.yaml` in a root.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub(super) struct RootFileKeys {
    /// The form of the files, as [`super::root::FOLDER_FORMAT`].
    #[serde(rename = "format")]
    pub(super) _format: Option<u64>,
    /// The agent's name.
    #[schemars(extend("format" = "name"))]
    pub(super) agent_name: Option<String>,
    /// The time zone of the days in the names of logs.
    pub(super) zone: Option<ZoneName>,
    /// The folder of the logs, relative to the root; "." for a flat folder.
    #[schemars(extend("format" = "folder"))]
    pub(super) memory_dir: Option<String>,
    /// The host that writes; others only read.
    #[schemars(extend("format" = "name"))]
    pub(super) writer: Option<String>,
    /// Notes that an agent or a person keeps by themselves, such as `MEMORY.md`, relative to the root.
    #[serde(default)]
    #[schemars(extend("items" = { "type": "string", "format": "note" }))]
    pub(super) curated: Vec<String>,
    /// The curated file that holds `WISDOM.md` in a block, for an agent that reads no other file of ours.
    #[schemars(extend("format" = "note"))]
    pub(super) wisdom_block: Option<String>,
    #[serde(flatten)]
    #[schemars(with = "Settings")]
    pub(super) sections: Layer,
}

/// The keys that `--set` and the environment may contain.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub(super) struct OverrideKeys {
    #[schemars(extend("format" = "name"))]
    pub(super) agent_name: Option<String>,
    pub(super) zone: Option<ZoneName>,
    #[schemars(extend("format" = "folder"))]
    pub(super) memory_dir: Option<String>,
    #[serde(flatten)]
    #[schemars(with = "Settings")]
    pub(super) sections: Layer,
}

pub(super) static CONFIG_SCHEMA: LazyLock<KeySchema> = LazyLock::new(KeySchema::of::<ConfigKeys>);
pub(super) static ROOT_FILE_SCHEMA: LazyLock<KeySchema> =
    LazyLock::new(KeySchema::of::<RootFileKeys>);
static OVERRIDE_SCHEMA: LazyLock<KeySchema> = LazyLock::new(KeySchema::of::<OverrideKeys>);

/// The prefix of every variable for a configuration key.
const VARIABLE_PREFIX: &str = "MEMOIRD_";

/// Merges `above` into `below`; `above` wins.
pub(super) fn merge_layer(below: &mut Layer, above: &Layer) {
    for (key, value) in above {
        match (below.get_mut(key), value) {
            (Some(Value::Object(below)), Value::Object(above)) => merge_layer(below, above),
            _ => drop(below.insert(key.clone(), value.clone())),
        }
    }
}

/// Parses and checks the keys of one source.
pub(super) fn parse_keys<K: serde::de::DeserializeOwned>(
    text: &str,
    schema: &KeySchema,
    origin: &ConfigSource,
) -> Result<K, ConfigError> {
    let mut map = yaml::read_mapping(text)
        .map_err(|source| ConfigError::Yaml { origin: origin.clone(), source })?;
    let problems = schema.check(&mut map);
    if !problems.is_empty() {
        return Err(ConfigError::Invalid { origin: origin.clone(), problems });
    }
    deserialize_keys(Value::Object(map), origin)
}

/// Deserializes checked values.
pub(super) fn deserialize_keys<K: serde::de::DeserializeOwned>(
    value: Value,
    origin: &ConfigSource,
) -> Result<K, ConfigError> {
    serde_json::from_value(value).map_err(|source| ConfigError::Invalid {
        origin: origin.clone(),
        problems: vec![ConfigProblem::new("", source.to_string())],
    })
}

/// Merges layers, from weak to strong, over the defaults.
pub(super) fn resolve_settings(
    layers: &[&Layer],
    origin: &ConfigSource,
) -> Result<Settings, ConfigError> {
    let settings = merge_settings(layers).map_err(|source| ConfigError::Invalid {
        origin: origin.clone(),
        problems: vec![ConfigProblem::new("", source.to_string())],
    })?;
    let problems = settings.conflicts();
    if problems.is_empty() {
        Ok(settings)
    } else {
        Err(ConfigError::Invalid { origin: origin.clone(), problems })
    }
}

/// Merges layers, from weak to strong, over the defaults; keys that conflict with each other are not looked for.
pub(super) fn merge_settings(layers: &[&Layer]) -> Result<Settings, serde_json::Error> {
    let mut merged = defaults();
    for layer in layers {
        merge_layer(&mut merged, layer);
    }
    serde_json::from_value(Value::Object(merged))
}

/// Returns the weakest layer, which has every key.
fn defaults() -> Layer {
    match serde_json::to_value(Settings::default()) {
        Ok(Value::Object(map)) => Some(map),
        _ => None,
    }
    .expect("a struct of plain values becomes an object")
}

/// Parses the layer above all files: variables, and above them the arguments of `--set`.
pub(super) fn parse_overrides(
    env: &BTreeMap<String, String>,
    set: &[String],
) -> Result<OverrideKeys, ConfigError> {
    let mut above = parse_variables(env)?;
    merge_layer(&mut above, &parse_set_arguments(set)?);
    deserialize_keys(Value::Object(above), &ConfigSource::Overrides)
}

/// Parses `KEY=VALUE` arguments; a later one wins.
fn parse_set_arguments(arguments: &[String]) -> Result<Layer, ConfigError> {
    let origin = ConfigSource::Set;
    let mut layer = Layer::new();
    let mut problems = Vec::new();
    for argument in arguments {
        let Some((key, text)) = argument.split_once('=') else {
            return Err(ConfigError::InvalidSetArgument { argument: argument.clone() });
        };
        let path: Vec<String> = key.trim().split('.').map(str::to_owned).collect();
        if path.iter().any(String::is_empty) {
            return Err(ConfigError::InvalidSetArgument { argument: argument.clone() });
        }
        if path[0] == "roots" {
            let what = "is set in the file only (--root DIR names a root for this call)".to_owned();
            problems.push(ConfigProblem::new("roots", what));
            continue;
        }
        let value = parse_override_value(&path, text, &origin)?;
        let mut one = nest(&path, value);
        problems.extend(OVERRIDE_SCHEMA.check(&mut one));
        merge_layer(&mut layer, &one);
    }
    if problems.is_empty() { Ok(layer) } else { Err(ConfigError::Invalid { origin, problems }) }
}

/// Parses the variables of configuration keys: `MEMOIRD_COMPACTION_WEEKLY_RATIO` for
/// `compaction.weekly.ratio`. One that starts with the name of a section and names no key is refused.
fn parse_variables(env: &BTreeMap<String, String>) -> Result<Layer, ConfigError> {
    let origin = ConfigSource::Environment;
    let known: BTreeMap<String, Vec<String>> =
        OVERRIDE_SCHEMA.value_paths().into_iter().map(|it| (variable_name(&it), it)).collect();
    let sections: Vec<String> =
        known.values().filter(|it| it.len() > 1).map(|it| variable_name(&it[..1]) + "_").collect();
    let mut layer = Layer::new();
    let mut problems = Vec::new();
    // As usual, an empty variable counts as not set.
    for (name, text) in env.iter().filter(|(_, text)| !text.is_empty()) {
        if let Some(path) = known.get(name) {
            let mut one = nest(path, parse_override_value(path, text, &origin)?);
            problems.extend(
                OVERRIDE_SCHEMA
                    .check(&mut one)
                    .into_iter()
                    .map(|it| ConfigProblem { path: name.clone(), message: it.message }),
            );
            merge_layer(&mut layer, &one);
        } else if sections.iter().any(|it| name.starts_with(it)) {
            let suggestion = closest_match(name, known.keys().map(String::as_str));
            let what = match suggestion {
                Some(it) => format!("unknown variable, did you mean {it}?"),
                None => "unknown variable".to_owned(),
            };
            problems.push(ConfigProblem::new(name, what));
        }
    }
    if problems.is_empty() { Ok(layer) } else { Err(ConfigError::Invalid { origin, problems }) }
}

/// Returns the name of the variable for a key.
fn variable_name(path: &[String]) -> String {
    format!("{VARIABLE_PREFIX}{}", path.join("_").to_uppercase())
}

/// Parses a value as YAML. For a key that only accepts text, any value is taken as text, so that `0 3 * * *`
/// and a name like `2026` need no quotes within quotes.
fn parse_override_value(
    path: &[String],
    text: &str,
    origin: &ConfigSource,
) -> Result<Value, ConfigError> {
    let value = yaml::read_value(text);
    if OVERRIDE_SCHEMA.is_text_only(path) {
        return Ok(match value {
            Ok(it @ (Value::String(_) | Value::Null)) => it,
            _ => Value::String(text.to_owned()),
        });
    }
    value.map_err(|source| ConfigError::Yaml { origin: origin.clone(), source })
}

pub(super) fn nest(path: &[impl AsRef<str>], value: Value) -> Layer {
    let mut nested = value;
    for key in path.iter().rev() {
        nested = Value::Object(Layer::from_iter([(key.as_ref().to_owned(), nested)]));
    }
    match nested {
        Value::Object(map) => map,
        _ => Layer::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, env, fs, path::Path};

    use serde_json::json;

    use super::*;
    use crate::config::DEFAULT_CONFIG;

    const SCHEMA_PATH: &str = "schema/config.schema.json";

    #[track_caller]
    fn check_config(text: &str, expected: &[&str]) {
        let origin = ConfigSource::File("config.yaml".into());
        let problems = match parse_keys::<ConfigKeys>(text, &CONFIG_SCHEMA, &origin) {
            Ok(_) => Vec::new(),
            Err(ConfigError::Invalid { problems, .. }) => problems,
            Err(other) => panic!("{other}"),
        };
        let seen: Vec<String> = problems.iter().map(ConfigProblem::to_string).collect();
        assert_eq!(seen, expected, "{text}");
    }

    #[track_caller]
    fn check_call(env: &[(&str, &str)], set: &[&str], expected: &Result<Value, &str>) {
        let env = env.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        let set: Vec<String> = set.iter().map(|it| (*it).to_owned()).collect();
        let seen = parse_overrides(&env, &set).map(|it| Value::Object(it.sections));
        match (seen, expected) {
            (Ok(seen), Ok(expected)) => assert_eq!(&seen, expected),
            (Err(seen), Err(expected)) => {
                let seen = seen.to_string();
                assert!(seen.contains(expected), "{seen}");
            }
            (seen, _) => panic!("{seen:?}, expected {expected:?}"),
        }
    }

    #[test]
    fn mistakes_are_reported_with_path_and_hint() {
        check_config("", &[]);
        check_config(
            "compaction: {wekly: {}}",
            &["compaction.wekly: unknown key, did you mean weekly?"],
        );
        check_config("Engine: model", &["Engine: unknown key, did you mean engine?"]);
        check_config(
            "max_entries: 5",
            &["max_entries: unknown key here, did you mean wisdom.max_entries?"],
        );
        check_config(
            "search: {banana: 1}",
            &["search.banana: unknown key (known here: embeddings)"],
        );
        check_config("engine: modle", &["engine: found `modle`, did you mean model?"]);
        check_config(
            "engine: gpt\nmodel: {provider: 7}",
            &[
                "engine: found `gpt`, expected one of extractive, model",
                "model.provider: found the number 7, expected one of anthropic, openai, command, ollama, claude-cli",
            ],
        );
        check_config(
            "compaction: {weekly: {ratio: much, max_chars: -1, max_ratio: 30}}",
            &[
                "compaction.weekly.ratio: found `much`, expected a number",
                "compaction.weekly.max_chars: -1 is out of range (expected a number of at least 0)",
                "compaction.weekly.max_ratio: 30 is out of range (expected a number from 0.01 to 1)",
            ],
        );
        check_config(
            "wisdom: {max_entries: 2.5, categories: craft}",
            &[
                "wisdom.max_entries: found the number 2.5, expected a whole number",
                "wisdom.categories: found `craft`, expected a list",
            ],
        );
        check_config(
            "wisdom: {categories: [a, 2]}",
            &["wisdom.categories[1]: found the number 2, expected text; write it in quotes"],
        );
        check_config(
            "compaction: {grace: 2}",
            &[
                "compaction.grace: found the number 2, expected a length of time like 6h; write it in quotes",
            ],
        );
        check_config(
            "compaction: {grace: 2 hours, extract: 'yes', open_week: maybe}",
            &[
                "compaction.grace: `2 hours` is not a length of time (expected a number and a unit, like 90s, 15m, 6h, 2d)",
                "compaction.extract: found `yes`, expected true or false",
                "compaction.open_week: found `maybe`, expected one of auto, true, false",
            ],
        );
        check_config(
            "schedule: {weekly: 0 25 * * *}",
            &["schedule.weekly: `0 25 * * *`: hour `25`: expected 0-23"],
        );
        check_config(
            "roots:\n  - path: /a\n    zone: Europe/Viena\n  - {zone: UTC, kind: agnet}\n  - path: 7\n    memory_dir: ../x",
            &[
                "roots[0].zone: `Europe/Viena` is not a time zone, did you mean Europe/Vienna?",
                "roots[1].kind: found `agnet`, did you mean agent?",
                "roots[1].path: missing",
                "roots[2].path: found the number 7, expected text; write it in quotes",
                "roots[2].memory_dir: `../x` is not a folder within the root (expected one like memory, or \".\")",
            ],
        );
        check_config(
            "roots: [{path: /a, compaction: {wekly: 1}}]",
            &["roots[0].compaction.wekly: unknown key, did you mean weekly?"],
        );
        check_config("roots: /a", &["roots: found `/a`, expected a list"]);
        check_config("on_problem: []", &["on_problem: an empty list (expected at least 1)"]);
        check_config(
            "on_problem: mail me",
            &["on_problem: found `mail me`, expected a list or null"],
        );
        check_config(
            "model: {base_url: localhost}",
            &["model.base_url: not an address (expected one like http://127.0.0.1:11434/v1)"],
        );
        check_config(
            "history: {keep: ever}",
            &[
                "history.keep: `ever` is not a length of time (expected a number and a unit, like 90s, 15m, 6h, 2d), or forever",
            ],
        );
        check_config(
            "budget: {day: {usd: -1}}",
            &["budget.day.usd: -1 is out of range (expected a number of at least 0)"],
        );
    }

    #[test]
    fn empty_sections_are_accepted() {
        check_config("roots:\ncompaction:\n  # grace: 1h\nwisdom: {categories: }\n", &[]);
        check_config("budget: {day: {usd: null}}\non_problem: null\nmodel: {base_url: ~}", &[]);
        check_config(
            "compaction: {grace: }",
            &["compaction.grace: found nothing, expected a length of time like 6h"],
        );
        check_config("compaction: {open_week: true}\nschedule: {on_change: auto}", &[]);
        check_config("budget: {day: {usd: 2}}", &[]);
        check_config("history: {keep: forever}", &[]);
        check_config("history: {keep: 90d}", &[]);
    }

    #[test]
    fn variables_and_arguments() {
        check_call(
            &[
                ("MEMOIRD_COMPACTION_WEEKLY_RATIO", "0.2"),
                ("MEMOIRD_NOW", "x"),
                ("MEMOIRD_ENGINE", ""),
            ],
            &["compaction.weekly.ratio=0.1", "compaction.grace=1h"],
            &Ok(json!({"compaction": {"weekly": {"ratio": 0.1}, "grace": "1h"}})),
        );
        check_call(
            &[("MEMOIRD_SCHEDULE_WEEKLY", "* * * * *"), ("MEMOIRD_MODEL_NAME", "4")],
            &["on_problem=[mail, me]", "wisdom={max_entries: 3}", "wisdom.max_chars=9"],
            &Ok(json!({
                "schedule": {"weekly": "* * * * *"},
                "model": {"name": "4"},
                "on_problem": ["mail", "me"],
                "wisdom": {"max_entries": 3, "max_chars": 9},
            })),
        );
        check_call(
            &[],
            &["schedule.on_change=false"],
            &Ok(json!({"schedule": {"on_change": false}})),
        );
        check_call(&[], &["budget.day.usd=null"], &Ok(json!({"budget": {"day": {"usd": null}}})));
        check_call(&[], &["model.base_url=null"], &Ok(json!({"model": {"base_url": null}})));
        check_call(&[], &["compaction.weekly.ratio"], &Err("is not KEY=VALUE"));
        check_call(&[], &["=1"], &Err("is not KEY=VALUE"));
        check_call(&[], &["compaction..ratio=1"], &Err("is not KEY=VALUE"));
        check_call(
            &[],
            &["compaction.weekly.rato=1"],
            &Err("--set: compaction.weekly.rato: unknown key, did you mean ratio?"),
        );
        check_call(&[], &["roots=[]"], &Err("--root DIR"));
        check_call(
            &[],
            &["engine.x=1"],
            &Err("engine: found a section, expected one of extractive, model"),
        );
        check_call(&[], &["wisdom.max_entries=[1"], &Err("--set: "));
        check_call(
            &[("MEMOIRD_COMPACTION_WEKLY_RATIO", "0.2")],
            &[],
            &Err(
                "environment: MEMOIRD_COMPACTION_WEKLY_RATIO: unknown variable, did you mean MEMOIRD_COMPACTION_WEEKLY_RATIO?",
            ),
        );
        check_call(
            &[("MEMOIRD_COMPACTION_GRACE", "soon")],
            &[],
            &Err("environment: MEMOIRD_COMPACTION_GRACE: `soon` is not a length of time"),
        );
    }

    #[test]
    fn every_key_has_a_variable_of_its_own() {
        let leaves = OVERRIDE_SCHEMA.value_paths();
        let names: BTreeSet<String> = leaves.iter().map(|it| variable_name(it)).collect();
        assert_eq!(names.len(), leaves.len());
        assert!(names.contains("MEMOIRD_COMPACTION_WEEKLY_MAX_CHARS"));
        // Names with another meaning.
        for taken in ["NOW", "CONFIG", "ROOT", "API_KEY", "BLESS"] {
            assert!(!names.contains(&format!("MEMOIRD_{taken}")));
        }
    }

    #[test]
    fn the_commented_configuration_lists_every_default() {
        let origin = ConfigSource::File("config/memoird.yaml".into());
        let keys: ConfigKeys = parse_keys(DEFAULT_CONFIG, &CONFIG_SCHEMA, &origin).unwrap();
        assert!(keys.roots.is_empty());
        // It has every key, with its default.
        let mut written = keys.general.clone();
        written.sort_keys();
        let mut built_in = defaults();
        built_in.sort_keys();
        assert_eq!(Value::Object(written), Value::Object(built_in));
        assert_eq!(resolve_settings(&[&keys.general], &origin).unwrap(), Settings::default());
    }

    #[test]
    fn the_written_configuration_sets_nothing() {
        let written = crate::config::commented_defaults();
        let origin = ConfigSource::File("config.yaml".into());
        let keys: ConfigKeys = parse_keys(&written, &CONFIG_SCHEMA, &origin).unwrap();
        assert!(keys.roots.is_empty() && keys.general.is_empty(), "{keys:?}");
        // Without the signs, the keys are the defaults.
        let is_prose = |it: &&str| it.starts_with("# ") || *it == "#" || it.starts_with("#  - ");
        let lines = written.lines().filter(|it| !is_prose(it) && !it.starts_with("#    "));
        let lines: Vec<&str> = lines.map(|it| it.strip_prefix('#').unwrap_or(it)).collect();
        assert!(lines.contains(&"engine: extractive"), "{lines:?}");
    }

    #[test]
    fn the_example_root_in_the_commented_configuration_is_valid() {
        let text = DEFAULT_CONFIG.replace("roots: []", "roots:").replace("\n#  ", "\n  ");
        let origin = ConfigSource::File("config/memoird.yaml".into());
        let keys: ConfigKeys = parse_keys(&text, &CONFIG_SCHEMA, &origin).unwrap();
        assert_eq!(keys.roots.len(), 1);
        assert_eq!(keys.roots[0].agent_name.as_deref(), Some("Lexicon"));
    }

    #[test]
    fn config_schema_is_in_step() {
        let schema = schemars::schema_for!(ConfigKeys);
        let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
        let validator = jsonschema::validator_for(schema.as_value()).unwrap();
        let valid =
            |text: &str| validator.is_valid(&Value::Object(yaml::read_mapping(text).unwrap()));
        assert!(valid(DEFAULT_CONFIG));
        assert!(valid("roots: [{path: ~/a, zone: UTC, wisdom: {max_entries: 3}}]"));
        assert!(!valid("engin: model") && !valid("roots: [{path: a, pth: b}]"));
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(SCHEMA_PATH);
        if env::var_os("MEMOIRD_BLESS").is_some() {
            #[expect(clippy::disallowed_methods, reason = "no vault, and rewritten on demand")]
            fs::write(&path, &text).unwrap();
        }
        let stored = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            stored == text,
            "{SCHEMA_PATH} does not match the types; \
             run `MEMOIRD_BLESS=1 cargo test config_schema` and look at what changed"
        );
    }
}
