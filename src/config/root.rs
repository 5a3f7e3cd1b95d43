//! One root: its `memoird.yaml`, and its resolved settings.
//!
//! `commands` and the daemon call [`Config::select_root`] and [`Config::open`]; `init` writes
//! [`RootFile::print`].
//!
//! # Invariants
//!
//! - [`RootSettings::path`] is absolute and without links, so that a folder has only one path.
//! - A `memoird.yaml` must be a regular file, and is read under the limits of [`super::yaml`].

use std::{
    fs,
    io::Read as _,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    Config, ConfigError, ConfigSource, SecretRulesFile,
    environment::Environment,
    guards,
    layers::{self, Layer, ROOT_FILE_SCHEMA, RootFileKeys},
    root_selection,
    schema_check::ConfigProblem,
    settings::Settings,
    trusted_file, yaml,
    zone::ZoneName,
};

/// The name of the file that travels with a root.
pub const ROOT_FILE_NAME: &str = "memoird.yaml";

/// The form of the files that this version writes and the newest that it reads. 1 has the records in the visible
/// files, 2 in hidden files beside them; both are read.
pub const FOLDER_FORMAT: u64 = 2;

/// The default folder of the logs.
const MEMORY_DIR_DEFAULT: &str = "memory";

/// Keys that a file which travels with a root must not set: they run programs, or name addresses that receive
/// text and keys.
const USER_CONFIG_ONLY: [&[&str]; 9] = [
    &["on_problem"],
    &["metrics_file"],
    &["projects_dir"],
    &["model", "provider"],
    &["model", "base_url"],
    &["model", "key_file"],
    &["model", "command"],
    &["model", "record"],
    &["search", "embeddings"],
];

/// `memoird.yaml`: the settings that travel with a root.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RootFile {
    /// The agent's name.
    pub agent_name: Option<String>,
    /// The time zone of the days in the names of logs.
    pub zone: Option<ZoneName>,
    /// The folder of the logs, relative to the root.
    pub memory_dir: Option<String>,
    /// The host that writes; others only read.
    pub writer: Option<String>,
    /// Notes that an agent or a person keeps by themselves, relative to the root.
    pub curated: Vec<String>,
    /// The one of them that holds `WISDOM.md` in a block.
    pub wisdom_block: Option<String>,
    /// Sections that it overrides, checked.
    pub(super) sections: Layer,
}

/// The settings of one root, all layers merged.
#[derive(Clone, Debug, PartialEq)]
pub struct RootSettings {
    /// The folder: absolute, without links.
    pub path: PathBuf,
    /// The agent's name.
    pub agent_name: String,
    /// The time zone of the days in the names of logs.
    pub zone: Zone,
    /// The folder of the logs, relative to the root; empty for a flat folder.
    pub memory_dir: PathBuf,
    /// Whose memory it is.
    pub kind: RootKind,
    /// The working tree whose sessions belong here: absolute, its main repository's folder.
    pub project: Option<PathBuf>,
    /// The host that writes; `None` for any.
    pub writer: Option<String>,
    /// Notes that an agent or a person keeps by themselves, relative to the root: read, never changed but for the
    /// block of `wisdom_block`.
    pub curated: Vec<String>,
    /// The one of them that holds `WISDOM.md` in a block, if the user wants that.
    pub wisdom_block: Option<String>,
    /// Whether the daemon serves the root; otherwise it was only named for this command.
    pub configured: bool,
    /// The user's own rules for secrets.
    pub secret_rules: Option<SecretRulesFile>,
    /// Keys of `memoird.yaml` without effect, because they would lower a guard of the user's own configuration.
    pub ignored_keys: Vec<String>,
    /// The sections. `budget` is the root's share; [`Config::settings`] holds the whole.
    pub settings: Settings,
}

/// Whose memory a root is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RootKind {
    /// One agent.
    #[default]
    Agent,
    /// The person: only user and feedback memories, added to the context of all other roots.
    User,
}

/// A time zone and its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zone {
    /// The zone.
    pub name: ZoneName,
    /// Its source.
    pub source: ZoneSource,
}

/// The source of a root's time zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneSource {
    /// `--set` or a variable.
    Call,
    /// The root's entry in `config.yaml`.
    Config,
    /// `memoird.yaml`.
    RootFile,
    /// The system.
    System,
    /// None: the system reports no known zone, so it is UTC.
    Nobody,
}

impl RootFile {
    /// Parses the text of a `memoird.yaml`; errors name `file`.
    ///
    /// Returns all mistakes in it, each with its path.
    pub(crate) fn parse(text: &str, file: &Path) -> Result<Self, ConfigError> {
        let origin = ConfigSource::File(file.to_path_buf());
        refuse_newer_format(text, file)?;
        let keys: RootFileKeys = layers::parse_keys(text, &ROOT_FILE_SCHEMA, &origin)?;
        let problems: Vec<ConfigProblem> = USER_CONFIG_ONLY
            .iter()
            .filter(|path| contains_path(&keys.sections, path))
            .map(|path| {
                let what = "is read in config.yaml only, since this file travels with the folder";
                ConfigProblem::new(&path.join("."), what.to_owned())
            })
            .collect();
        if !problems.is_empty() {
            return Err(ConfigError::Invalid { origin, problems });
        }
        Ok(Self {
            agent_name: keys.agent_name,
            zone: keys.zone,
            memory_dir: keys.memory_dir,
            writer: keys.writer,
            curated: keys.curated,
            wisdom_block: keys.wisdom_block,
            sections: keys.sections,
        })
    }

    /// Returns the text of the file, as `init` writes it.
    pub fn print(&self) -> String {
        let mut text = String::from(
            "# Settings of this memory folder; they travel with it.\n\
             # Sections of config.yaml may follow here; they apply to this folder only.\n",
        );
        text.push_str(&format_line());
        text.push('\n');
        let zone = self.zone.map(|it| it.to_string());
        for (key, value, comment) in [
            ("agent_name", &self.agent_name, ""),
            ("zone", &zone, "  # the time zone of the days in the names of logs"),
            ("memory_dir", &self.memory_dir, "  # where the logs are; \".\" for this folder"),
            ("writer", &self.writer, "  # the host that writes; others only read"),
        ] {
            if let Some(value) = value {
                text.push_str(&yaml_line(key, value));
                text.push_str(comment);
                text.push('\n');
            }
        }
        if !self.curated.is_empty() {
            text.push_str(&curated_line(&self.curated));
            text.push_str("  # notes of the agent: read, never changed or repeated\n");
        }
        if let Some(path) = &self.wisdom_block {
            text.push_str(&wisdom_block_line(path));
            text.push('\n');
        }
        for (key, value) in &self.sections {
            // JSON is valid YAML.
            text.push_str(key);
            text.push_str(": ");
            text.push_str(&value.to_string());
            text.push('\n');
        }
        text
    }
}

impl RootSettings {
    /// Returns whether this host writes to the root, or only reads it.
    pub fn is_writer(&self, host: &str) -> bool {
        self.writer.as_deref().is_none_or(|it| it == host)
    }
}

impl Config {
    /// Reads the settings of the root at `path`.
    ///
    /// Returns [`ConfigError::RootNotFound`] if the folder does not exist, and the mistakes in its
    /// `memoird.yaml` or in all layers together.
    pub(crate) fn open(
        &self,
        path: &Path,
        around: &Environment,
    ) -> Result<RootSettings, ConfigError> {
        let missing =
            |cause| ConfigError::RootNotFound { path: path.to_path_buf(), asked: false, cause };
        let canonical = path.canonicalize().map_err(missing)?;
        if !canonical.is_dir() {
            return Err(missing(std::io::ErrorKind::NotADirectory.into()));
        }
        let file = canonical.join(ROOT_FILE_NAME);
        let root_file = match read_root_file(&file)? {
            Some(text) => RootFile::parse(&text, &file)?,
            None => RootFile::default(),
        };
        self.resolve(canonical, &root_file, around)
    }

    /// Merges the layers of one root. Reads nothing.
    ///
    /// Returns the problems of keys that are valid alone but not together.
    pub(crate) fn resolve(
        &self,
        path: PathBuf,
        root_file: &RootFile,
        around: &Environment,
    ) -> Result<RootSettings, ConfigError> {
        let configured = self.roots.iter().find(|it| it.path == path);
        let entry = configured.map(|it| &it.entry);
        let nothing = Layer::new();
        let sections = entry.map_or(&nothing, |it| &it.sections);
        let origin = ConfigSource::Merged(path.clone());
        let mut of_folder = root_file.sections.clone();
        let ignored_keys = guards::tighten(&mut of_folder, &self.general).map_err(|source| {
            let problems = vec![ConfigProblem::new("", source.to_string())];
            ConfigError::Invalid { origin: origin.clone(), problems }
        })?;
        let layers = [&self.general, &of_folder, sections, &self.overrides.sections];
        let settings = layers::resolve_settings(&layers, &origin)?;

        let zones = [
            (self.overrides.zone, ZoneSource::Call),
            (entry.and_then(|it| it.zone), ZoneSource::Config),
            (root_file.zone, ZoneSource::RootFile),
            (around.system_zone, ZoneSource::System),
        ];
        let zone = zones.into_iter().find_map(|(name, source)| Some(Zone { name: name?, source }));
        let utc = Zone { name: ZoneName(chrono_tz::Tz::UTC), source: ZoneSource::Nobody };

        let strongest = |call: &Option<String>, entry: Option<&String>, file: &Option<String>| {
            call.as_ref().or(entry).or(file.as_ref()).cloned()
        };
        let agent_name = strongest(
            &self.overrides.agent_name,
            entry.and_then(|it| it.agent_name.as_ref()),
            &root_file.agent_name,
        );
        let memory_dir = strongest(
            &self.overrides.memory_dir,
            entry.and_then(|it| it.memory_dir.as_ref()),
            &root_file.memory_dir,
        );
        Ok(RootSettings {
            agent_name: agent_name.unwrap_or_else(|| folder_name(&path)),
            zone: zone.unwrap_or(utc),
            memory_dir: Path::new(memory_dir.as_deref().unwrap_or(MEMORY_DIR_DEFAULT))
                .components()
                .filter(|it| !matches!(it, std::path::Component::CurDir))
                .collect(),
            kind: entry.map_or_else(RootKind::default, |it| it.kind),
            project: configured.and_then(|it| it.project.clone()),
            writer: root_file.writer.clone(),
            curated: curated_with_block(root_file),
            wisdom_block: root_file.wisdom_block.clone(),
            configured: configured.is_some(),
            secret_rules: self.secret_rules.clone(),
            ignored_keys,
            settings,
            path,
        })
    }

    /// Returns the root that a command uses, as an absolute path without links.
    ///
    /// `explicit` is the argument of `--root`. Reads only folder names and the files that identify a git
    /// repository.
    ///
    /// Returns [`ConfigError::NoRootSelected`] if no root can be chosen (one of a project is never chosen in another
    /// repository), [`ConfigError::RootNotFound`] if the
    /// named folder does not exist, and [`ConfigError::Overlap`] if it is inside or around a configured root.
    pub(crate) fn select_root(
        &self,
        explicit: Option<&Path>,
        around: &Environment,
    ) -> Result<PathBuf, ConfigError> {
        let named = explicit.or_else(|| around.variable("MEMOIRD_ROOT").map(Path::new));
        let named = match named {
            Some(path) => {
                let path = around.absolute(path, &around.cwd);
                let canonical = path.canonicalize().and_then(|it| {
                    if it.is_dir() { Ok(it) } else { Err(std::io::ErrorKind::NotADirectory.into()) }
                });
                Some(canonical.map_err(|cause| ConfigError::RootNotFound {
                    path,
                    asked: true,
                    cause,
                })?)
            }
            None => None,
        };
        let cwd = root_selection::canonicalize_existing(&around.cwd);
        let git_root = root_selection::git_root(&cwd);
        let marked = cwd.ancestors().find(|it| it.join(ROOT_FILE_NAME).is_file());
        let asked = root_selection::SelectionInputs {
            explicit: named.as_deref(),
            cwd: &cwd,
            git_root: git_root.as_deref(),
            home: &root_selection::canonicalize_existing(&around.home),
            marker_root: marked,
        };
        root_selection::select_root(&asked, &self.roots)
    }

    /// Returns the root for events in a folder, such as the end of a session, when nobody can be asked. A root
    /// of one project is used for no other, even if it is the only one. If projects get roots of their own, the
    /// only root without a project takes what belongs to no project.
    pub fn root_for_folder(&self, folder: &Path, around: &Environment) -> Option<PathBuf> {
        let there = Environment { cwd: folder.to_owned(), ..around.clone() };
        let path = match self.select_root(None, &there) {
            Ok(path) => path,
            Err(ConfigError::NoRootSelected { .. }) => self.general_root(around)?,
            Err(_) => return None,
        };
        let folder = root_selection::canonicalize_existing(folder);
        let known = self.roots.iter().find(|it| it.path == path);
        let project = known.and_then(|it| it.project.as_ref());
        let is_named = around.variable("MEMOIRD_ROOT").is_some() || folder.starts_with(&path);
        let is_here = project.is_none_or(|it| {
            folder.starts_with(it) || root_selection::git_root(&folder).as_ref() == Some(it)
        });
        // If projects get roots of their own, a root without a project is not used for any of them.
        let is_general = project.is_none() && self.projects_dir(around).is_some();
        let other_project = root_selection::git_root(&folder).filter(|_| is_general);
        let is_here = is_here && other_project.is_none_or(|it| path.starts_with(it));
        (is_named || is_here).then_some(path)
    }

    /// Returns the root for what belongs to no project, if projects get roots of their own and there is only one.
    fn general_root(&self, around: &Environment) -> Option<PathBuf> {
        self.projects_dir(around)?;
        match root_selection::general_roots(&self.roots).as_slice() {
            [only] => Some(only.path.clone()),
            _ => None,
        }
    }

    /// Returns the roots that could serve what belongs to no project. If there are several, none of them does.
    pub(crate) fn general_roots(&self) -> Vec<&Path> {
        let roots = root_selection::general_roots(&self.roots);
        roots.into_iter().map(|it| it.path.as_path()).collect()
    }

    /// Returns the project that a folder belongs to: the main folder of its git repository.
    pub fn project_of(folder: &Path) -> Option<PathBuf> {
        root_selection::git_root(&root_selection::canonicalize_existing(folder))
    }

    /// Returns the folder in which projects get memory folders of their own, if configured.
    pub fn projects_dir(&self, around: &Environment) -> Option<PathBuf> {
        let dir = self.settings.projects_dir.as_ref()?;
        Some(root_selection::canonicalize_existing(&around.absolute(Path::new(dir), &around.home)))
    }

    /// Returns the path of a folder that will become a root: absolute, without links. It need not exist.
    ///
    /// Returns [`ConfigError::Overlap`] if it is inside a root, configured or marked by its `memoird.yaml`, or
    /// around a configured one.
    pub(crate) fn resolve_root_path(
        &self,
        dir: &Path,
        around: &Environment,
    ) -> Result<PathBuf, ConfigError> {
        let path = root_selection::canonicalize_existing(&around.absolute(dir, &around.cwd));
        let marked = path.ancestors().skip(1).find(|it| it.join(ROOT_FILE_NAME).is_file());
        let known = self.roots.iter().map(|it| it.path.as_path()).filter(|it| *it != path);
        for other in known.chain(marked) {
            root_selection::check_overlap(&[other, &path])?;
        }
        Ok(path)
    }
}

fn contains_path(layer: &Layer, path: &[&str]) -> bool {
    match path {
        [] => true,
        [key, rest @ ..] => match layer.get(*key) {
            Some(Value::Object(below)) => contains_path(below, rest),
            Some(_) => rest.is_empty(),
            None => false,
        },
    }
}

/// Returns a line with a key and a text in double quotes, which every YAML parser reads as text.
pub(super) fn yaml_line(key: &str, value: &str) -> String {
    format!("{key}: {}", Value::from(value))
}

/// Returns the line with the form of the files.
pub(super) fn format_line() -> String {
    format!(
        "format: {FOLDER_FORMAT}  # the form of the files; an older memoird refuses a newer one"
    )
}

/// Refuses a folder whose files have a form that this version does not know. This comes before all other keys, which
/// may be new as well.
fn refuse_newer_format(text: &str, file: &Path) -> Result<(), ConfigError> {
    let format = yaml::read_mapping(text).ok().and_then(|it| it.get("format")?.as_u64());
    match format {
        Some(found) if found > FOLDER_FORMAT => {
            let folder = file.parent().unwrap_or(file).to_path_buf();
            Err(ConfigError::NewerFormat { folder, found })
        }
        _ => Ok(()),
    }
}

/// Returns the line that names curated files.
pub(super) fn curated_line(paths: &[String]) -> String {
    let names: Vec<String> = paths.iter().map(|it| Value::from(&it[..]).to_string()).collect();
    format!("curated: [{}]", names.join(", "))
}

/// Returns the line that names the file with the block of `WISDOM.md`.
pub(super) fn wisdom_block_line(path: &str) -> String {
    format!(
        "{}  # holds WISDOM.md in a block between two comments",
        yaml_line("wisdom_block", path)
    )
}

/// Returns the curated files; the one with the block is one of them.
fn curated_with_block(root_file: &RootFile) -> Vec<String> {
    let mut paths = root_file.curated.clone();
    paths.extend(root_file.wisdom_block.clone().filter(|it| !root_file.curated.contains(it)));
    paths
}

fn folder_name(path: &Path) -> String {
    path.file_name().map_or_else(|| "memory".to_owned(), |it| it.to_string_lossy().into_owned())
}

/// Reads a `memoird.yaml`; without one, it sets nothing.
pub(super) fn read_keys(file: &Path) -> Result<RootFile, ConfigError> {
    let text = read_root_file(file)?;
    Ok(text.map(|it| RootFile::parse(&it, file)).transpose()?.unwrap_or_default())
}

/// Reads a `memoird.yaml`; `None` if there is none.
fn read_root_file(file: &Path) -> Result<Option<String>, ConfigError> {
    let unreadable = |source| ConfigError::Unreadable { file: file.to_path_buf(), source };
    match fs::metadata(file) {
        Err(it) if it.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(it) => return Err(unreadable(it)),
        // Opening a pipe would block forever.
        Ok(it) if !it.is_file() => {
            return Err(unreadable(std::io::Error::other("not a regular file")));
        }
        Ok(_) => {}
    }
    let opened = fs::File::open(file).map_err(unreadable)?;
    // It may belong to whoever owns the folder, since it can only tighten what the user allows.
    let owner = file.parent().and_then(|it| fs::metadata(it).ok()).map(|it| it.uid());
    trusted_file::refuse_if_open(file, &opened.metadata().map_err(unreadable)?, owner)?;
    read_text(opened, file).map(Some)
}

/// Reads a text, up to the size limit.
pub(super) fn read_text(opened: fs::File, file: &Path) -> Result<String, ConfigError> {
    let mut bytes = Vec::new();
    let most = yaml::BYTES_MAX as u64 + 1;
    opened
        .take(most)
        .read_to_end(&mut bytes)
        .map_err(|source| ConfigError::Unreadable { file: file.to_path_buf(), source })?;
    let origin = || ConfigSource::File(file.to_path_buf());
    if bytes.len() as u64 == most {
        return Err(ConfigError::Yaml { origin: origin(), source: yaml::YamlError::TooLong });
    }
    String::from_utf8(bytes)
        .map_err(|_| ConfigError::Yaml { origin: origin(), source: yaml::YamlError::NotUtf8 })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::config::settings::{Choice, EngineKind};

    fn around() -> Environment {
        Environment {
            home: "/home/ada".into(),
            config_home: "/home/ada/.config".into(),
            cwd: "/home/ada".into(),
            host: "tower".into(),
            system_zone: Some("Asia/Tokyo".parse().unwrap()),
            ..Environment::default()
        }
    }

    fn config(text: &str, set: &[&str], around: &Environment) -> Config {
        let set: Vec<String> = set.iter().map(|it| (*it).to_owned()).collect();
        let file = Path::new("/home/ada/.config/memoird/config.yaml");
        Config::from_text(Some((file, text)), &set, around).unwrap()
    }

    fn resolve(config: &Config, path: &str, root_file: &str, around: &Environment) -> RootSettings {
        let root_file = RootFile::parse(root_file, Path::new("memoird.yaml")).unwrap();
        config.resolve(path.into(), &root_file, around).unwrap()
    }

    #[test]
    fn each_layer_wins_over_those_below() {
        let mut around = around();
        around.variables.insert("MEMOIRD_WISDOM_MAX_ENTRIES".to_owned(), "14".to_owned());
        let text = "
compaction: {grace: 1h, quiet: 11s, weekly: {ratio: 0.11}}
wisdom: {max_entries: 11, categories: [a, b]}
budget: {day: {usd: 5}}
roots:
  - path: ~/lexicon
    compaction: {quiet: 13s}
    wisdom: {max_entries: 13}
    budget: {day: {usd: 0.5}}
";
        let root_file = "compaction: {grace: 12m, quiet: 12s}\nwisdom: {categories: [c]}\n";
        let config = config(text, &["schedule.on_change=false", "budget.month.usd=3"], &around);
        let root = resolve(&config, "/home/ada/lexicon", root_file, &around);
        let Settings { compaction, wisdom, schedule, budget, .. } = &root.settings;
        assert_eq!(compaction.weekly.max_chars, 24_000); // built in
        assert!((compaction.weekly.ratio - 0.11).abs() < 1e-9); // general
        assert_eq!(compaction.grace.to_string(), "12m"); // memoird.yaml
        assert_eq!(wisdom.categories, ["c"]); // a list is replaced, not added to
        assert_eq!(compaction.quiet.to_string(), "13s"); // the root's entry
        assert_eq!(wisdom.max_entries, 14); // a variable
        assert_eq!(schedule.on_change, Choice::Off); // --set
        assert_eq!((budget.day.usd, budget.day.calls), (Some(0.5), Some(200)));
        // The settings over all roots ignore those of single roots.
        assert_eq!(config.settings.budget.day.usd, Some(5.0));
        assert_eq!(config.settings.budget.month.usd, Some(3.0));
        assert_eq!(config.settings.wisdom.max_entries, 14);
    }

    #[track_caller]
    fn check_identity(
        entry: &str,
        root_file: &str,
        set: &[&str],
        expected: (&str, &str, ZoneSource, &str),
    ) {
        let around = around();
        let config = config(&format!("roots:\n  - path: ~/lexicon\n{entry}"), set, &around);
        let root = resolve(&config, "/home/ada/lexicon", root_file, &around);
        let zone = root.zone.name.to_string();
        let seen = (
            root.agent_name.as_str(),
            zone.as_str(),
            root.zone.source,
            root.memory_dir.to_str().unwrap(),
        );
        assert_eq!(seen, expected);
    }

    #[test]
    fn name_zone_and_folder_come_from_the_strongest_layer() {
        let file = "agent_name: Lex\nzone: Europe/Vienna\nmemory_dir: ./notes/\n";
        let entry = "    agent_name: Lexicon\n    zone: Europe/Berlin\n    memory_dir: \".\"\n";
        let set = ["zone=UTC", "agent_name=2026"];
        check_identity("", "", &[], ("lexicon", "Asia/Tokyo", ZoneSource::System, "memory"));
        check_identity("", file, &[], ("Lex", "Europe/Vienna", ZoneSource::RootFile, "notes"));
        check_identity(entry, file, &[], ("Lexicon", "Europe/Berlin", ZoneSource::Config, ""));
        check_identity(entry, file, &set, ("2026", "UTC", ZoneSource::Call, ""));
    }

    #[test]
    fn an_unconfigured_root_uses_the_general_sections() {
        let around = Environment { system_zone: None, ..around() };
        let config =
            config("engine: model\nroots: [{path: ~/lexicon, engine: extractive}]", &[], &around);
        let root = resolve(&config, "/tmp/other", "writer: attic\n", &around);
        assert_eq!(root.settings.engine, EngineKind::Model);
        assert_eq!(root.zone.source, ZoneSource::Nobody);
        assert!(!root.configured && !root.is_writer("tower") && root.is_writer("attic"));
        assert!(resolve(&config, "/home/ada/lexicon", "", &around).is_writer("tower"));
    }

    #[track_caller]
    fn check_refused(root_file: &str, expected: &str) {
        let error =
            RootFile::parse(root_file, Path::new("/x/memoird.yaml")).unwrap_err().to_string();
        assert!(error.starts_with("/x/memoird.yaml: ") && error.contains(expected), "{error}");
    }

    #[test]
    fn root_files_may_not_name_programs_or_addresses() {
        check_refused("on_problem: [rm, -rf, /]", "on_problem: is read in config.yaml only");
        check_refused("model: {command: [sh]}", "model.command: is read in config.yaml only");
        check_refused("model: {base_url: 'https://evil.example'}", "model.base_url: is read in");
        check_refused("model: {provider: command}", "model.provider: is read in");
        check_refused("model: {key_file: /etc/shadow}", "model.key_file: is read in");
        check_refused(
            "search: {embeddings: {base_url: 'https://a.example'}}",
            "search.embeddings: is read in",
        );
        check_refused("roots: []", "roots: unknown key");
        check_refused("zone: Berlin", "did you mean Europe/Berlin?");
        check_refused("agent_name: \"a\\nb\"", "more than one line");
        check_refused("agent_name: \"a\\u2028b\"", "more than one line");
        check_refused("memory_dir: .memoird/x", "private");
        for path in ["../MEMORY.md", "/etc/notes.md", "~/notes.md", "a/../../b.md", "", "notes"] {
            let expected = if path.is_empty() { "empty" } else { "within the root" };
            check_refused(&format!("curated: [USER.md, '{path}']"), "curated[1]: ");
            check_refused(&format!("curated: ['{path}']"), expected);
        }
        check_refused("curated: [memory/.decisions.md]", "within the root");
        check_refused("curated: MEMORY.md", "expected a list");
        RootFile::parse("model: {name: small}\nengine: extractive", Path::new("x")).unwrap();
    }

    #[test]
    fn conflicting_keys_are_reported_with_the_root() {
        let around = around();
        let config = config("compaction: {weekly: {max_ratio: 0.2, ratio: 0.1}}", &[], &around);
        let root_file =
            RootFile::parse("compaction: {weekly: {ratio: 0.3}}", Path::new("x")).unwrap();
        let error = config.resolve("/a".into(), &root_file, &around).unwrap_err().to_string();
        assert_eq!(
            error,
            "all settings of /a together: compaction.weekly: ratio (0.3) is above max_ratio (0.2)"
        );
    }

    #[test]
    fn prints_as_init_writes_it() {
        let file = RootFile {
            agent_name: Some("Lexicon \"the\" first".to_owned()),
            zone: Some("Europe/Berlin".parse().unwrap()),
            memory_dir: Some(".".to_owned()),
            writer: Some("tower".to_owned()),
            curated: vec!["MEMORY.md".to_owned(), "memory/notes.md".to_owned()],
            ..RootFile::default()
        };
        insta::assert_snapshot!(file.print(), @r#"
        # Settings of this memory folder; they travel with it.
        # Sections of config.yaml may follow here; they apply to this folder only.
        format: 2  # the form of the files; an older memoird refuses a newer one
        agent_name: "Lexicon \"the\" first"
        zone: "Europe/Berlin"  # the time zone of the days in the names of logs
        memory_dir: "."  # where the logs are; "." for this folder
        writer: "tower"  # the host that writes; others only read
        curated: ["MEMORY.md", "memory/notes.md"]  # notes of the agent: read, never changed or repeated
        "#);
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(name in "\\PC{1,40}", writer in "[a-z0-9.-]{1,20}", entries in 1..99_u32) {
            prop_assume!(!name.trim().is_empty() && !name.contains(['\u{2028}', '\u{2029}']));
            let sections = format!("wisdom: {{max_entries: {entries}}}");
            let mut file = RootFile::parse(&sections, Path::new("x")).unwrap();
            file.agent_name = Some(name);
            file.writer = Some(writer);
            let text = file.print();
            let read = RootFile::parse(&text, Path::new("x")).unwrap();
            prop_assert_eq!(&read, &file);
        }
    }
}
