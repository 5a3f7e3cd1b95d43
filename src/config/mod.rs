//! Configuration: files, environment variables, and arguments, resolved per root.
//!
//! | file | content |
//! |---|---|
//! | [`settings`] | the sections, their types and defaults: the only description of the keys |
//! | `layers` | which keys each source may contain, and how the sources are merged |
//! | [`root`] | `memoird.yaml`, and the resolved settings of one root |
//! | `guards`, `trusted_file` | what a folder must not loosen, and files that others may change |
//! | [`root_selection`] | which root a command uses; roots that overlap |
//! | [`api_key`], [`base_url`] | the key of a language model, and the address that receives it |
//! | [`stray_key`] | keys in the wrong place |
//! | [`edit`] | changes single lines of files that people wrote |
//! | [`schedule`], [`duration`], [`zone`] | crontab lines, durations, time zones |
//! | [`environment`] | what is read from the process: variables, folders, host, zone |
//! | [`schema_check`], [`yaml`], `suggestion` | text to checked values, with a path and a hint for each mistake |
//!
//! `commands` calls [`Config::load`] once, then [`Config::select_root`] and [`Config::open`]; the daemon opens
//! [`Config::roots`] one by one, so that a missing folder does not stop the others.
//!
//! # Invariants
//!
//! - Nothing is guessed: an unknown key, a wrong type, or a wrong name is an error with its location.
//! - A file that travels with a root can neither name a program to run nor an address that receives text.
//! - No setting, no error, and no `Debug` output contains a key.
//! - Two roots never share a folder, not even through links.

pub mod api_key;
pub mod base_url;
pub mod duration;
pub mod edit;
pub(crate) mod effective;
pub mod environment;
mod guards;
mod layers;
pub mod root;
pub mod root_selection;
pub mod schedule;
pub mod schema_check;
pub mod settings;
pub mod stray_key;
mod suggestion;
pub(crate) mod trusted_file;
pub mod yaml;
pub mod zone;

use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use self::environment::Environment;
use self::root_selection::ConfiguredRoot;
use self::schema_check::ConfigProblem;
use layers::{CONFIG_SCHEMA, ConfigKeys, Layer, OverrideKeys};
use settings::Settings;
use yaml::YamlError;

/// The commented configuration that `init` writes; it equals the built-in defaults.
pub const DEFAULT_CONFIG: &str = include_str!("../../config/memoird.yaml");

/// The name of the file in [`Environment::config_folder`].
pub const CONFIG_FILE_NAME: &str = "config.yaml";

/// The name of the file beside it with a person's own rules for secrets.
pub const SECRETS_FILE_NAME: &str = "secrets.yaml";

/// The merged configuration of files, variables, and arguments.
#[derive(Clone, Debug)]
pub struct Config {
    /// The file that was read; `None` if there is none.
    pub file: Option<PathBuf>,
    /// The roots, in the order of the file. Invariant: none is inside another.
    pub roots: Vec<ConfiguredRoot>,
    /// The settings over all roots; its `budget` is the total that roots share.
    pub settings: Settings,
    /// The user's own rules for secrets, which `privacy` parses.
    pub secret_rules: Option<SecretRulesFile>,
    general: Layer,
    overrides: OverrideKeys,
}

/// The user's own rules for secrets, unparsed. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretRulesFile {
    /// The file.
    pub path: PathBuf,
    /// Its text.
    pub text: Arc<str>,
}

/// An invalid or incomplete configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file that was named does not exist.
    #[error("no configuration at {}", file.display())]
    Missing {
        /// The file.
        file: PathBuf,
    },
    /// A file that cannot be read.
    #[error("cannot read {}: {source}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Text that is not YAML, or exceeds the limits.
    #[error("{origin}: {source}")]
    Yaml {
        /// The source of the text.
        origin: ConfigSource,
        /// What is wrong.
        source: YamlError,
    },
    /// Wrong keys or values.
    #[error("{origin}: {}", format_problems(problems))]
    Invalid {
        /// Their source.
        origin: ConfigSource,
        /// All of them.
        problems: Vec<ConfigProblem>,
    },
    /// A newer memoird wrote the files of a folder.
    #[error(
        "`{}` has format {found}, this memoird knows formats up to {}; nothing was read or written",
        folder.display(),
        root::FOLDER_FORMAT
    )]
    NewerFormat {
        /// The folder.
        folder: PathBuf,
        /// Its format.
        found: u64,
    },
    /// An argument of `--set` that is not `KEY=VALUE`.
    #[error(
        "--set: `{}` is not KEY=VALUE (like compaction.weekly.ratio=0.1)",
        stray_key::quotable_key_name(argument)
    )]
    InvalidSetArgument {
        /// The argument.
        argument: String,
    },
    /// It is not clear which root to use.
    #[error("{}", no_root_message(cwd, roots, repository.as_deref()))]
    NoRootSelected {
        /// The working folder.
        cwd: PathBuf,
        /// The configured roots.
        roots: Vec<PathBuf>,
        /// The git repository around it, if the only reason is that all roots belong to other projects.
        repository: Option<PathBuf>,
    },
    /// A root that is not a folder.
    #[error("{}", root_not_found_message(path, cause))]
    RootNotFound {
        /// The path.
        path: PathBuf,
        /// Whether `--root` or `MEMOIRD_ROOT` named it, not the configuration.
        asked: bool,
        /// The system's error.
        cause: io::Error,
    },
    /// Two roots that are the same folder, or one inside the other.
    #[error("{}", overlap_message(outer, inner))]
    Overlap {
        /// The outer folder.
        outer: PathBuf,
        /// The inner folder.
        inner: PathBuf,
        /// Whether `--root` or `MEMOIRD_ROOT` named the outer one, not the configuration.
        is_outer_named: bool,
    },
    /// The user's home folder is unknown.
    #[error("no home folder (HOME is not set)")]
    NoHome,
    /// The working folder no longer exists.
    #[error("cannot find the working folder: {source}")]
    NoWorkingDir {
        /// The system's error.
        source: io::Error,
    },
    /// A file that any user may change, or the folder of one.
    #[error("any user may change `{}` (mode {mode:o}), so it is not read", file.display())]
    WorldWritable {
        /// The file.
        file: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// A file of another user.
    #[error("`{}` belongs to another user (id {owner}), so it is not read", file.display())]
    OtherOwner {
        /// The file.
        file: PathBuf,
        /// The user.
        owner: u32,
    },
    /// A variable that is not UTF-8.
    #[error("the variable {name} is not UTF-8 text")]
    VariableNotUtf8 {
        /// Its name.
        name: String,
    },
}

/// The source of values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigSource {
    /// A file.
    File(PathBuf),
    /// `MEMOIRD_…` variables.
    Environment,
    /// Arguments of `--set`.
    Set,
    /// The settings of the system.
    System,
    /// Variables and `--set` together.
    Overrides,
    /// All sources together, for the root at this path.
    Merged(PathBuf),
    /// All sources together, over all roots.
    General,
}

impl Config {
    /// Reads the configuration: the file that `explicit` (`--config`) or `MEMOIRD_CONFIG` names, else the
    /// user's own, if there is one; then variables and the arguments of `--set`.
    ///
    /// Returns [`ConfigError::Missing`] if a file that was named does not exist, and the mistakes in what was
    /// read.
    pub(crate) fn load(
        explicit: Option<&Path>,
        set: &[String],
        around: &Environment,
    ) -> Result<Self, ConfigError> {
        let file = Self::config_path(explicit, around);
        let is_named = explicit_file(explicit, around).is_some();
        let mut config = match read_file(&file)? {
            Some(text) => Self::from_text(Some((&file, &text)), set, around),
            None if is_named => Err(ConfigError::Missing { file: file.clone() }),
            None => Self::from_text(None, set, around),
        }?;
        let path = file.with_file_name(SECRETS_FILE_NAME);
        let text = read_file(&path)?;
        config.secret_rules = text.map(|it| SecretRulesFile { path, text: it.into() });
        Ok(config)
    }

    /// Returns the file to which calls of the model are appended, if one is named.
    pub(crate) fn recording_file(&self, around: &Environment) -> Option<PathBuf> {
        let file = self.settings.model.record.as_deref()?;
        Some(around.absolute(Path::new(file), &self.folder(around)))
    }

    /// Returns the folder of the file, or the usual one.
    pub(crate) fn folder(&self, around: &Environment) -> PathBuf {
        match self.file.as_deref().and_then(Path::parent) {
            Some(it) => around.absolute(it, &around.cwd),
            None => around.config_folder(),
        }
    }

    /// Returns the path of the file that [`Self::load`] reads, if it exists.
    pub fn config_path(explicit: Option<&Path>, around: &Environment) -> PathBuf {
        match explicit_file(explicit, around) {
            Some(path) => around.absolute(path, &around.cwd),
            None => around.config_folder().join(CONFIG_FILE_NAME),
        }
    }

    /// Reads the configuration from the text of a file. Uses the disk only to resolve links in the roots'
    /// paths.
    ///
    /// Returns all mistakes of the first layer that has any.
    pub(crate) fn from_text(
        file: Option<(&Path, &str)>,
        set: &[String],
        around: &Environment,
    ) -> Result<Self, ConfigError> {
        let keys = match file {
            Some((path, text)) => {
                layers::parse_keys(text, &CONFIG_SCHEMA, &ConfigSource::File(path.to_path_buf()))?
            }
            None => ConfigKeys::default(),
        };
        let overrides = layers::parse_overrides(&around.variables, set)?;
        let settings = layers::resolve_settings(
            &[&keys.general, &overrides.sections],
            &ConfigSource::General,
        )?;
        let folder = file.and_then(|(path, _)| path.parent()).unwrap_or(Path::new("/"));
        let base = around.absolute(folder, &around.cwd);
        let roots: Vec<ConfiguredRoot> = keys
            .roots
            .into_iter()
            .map(|keys| {
                let resolve = |it: &str| {
                    root_selection::canonicalize_existing(&around.absolute(Path::new(it), &base))
                };
                let project = keys.project.as_deref().map(resolve);
                ConfiguredRoot {
                    path: resolve(&keys.path),
                    project: project.map(|it| root_selection::git_root(&it).unwrap_or(it)),
                    entry: keys,
                }
            })
            .collect();
        let paths: Vec<&Path> = roots.iter().map(|it| it.path.as_path()).collect();
        root_selection::check_overlap(&paths)?;
        Ok(Self {
            file: file.map(|(path, _)| path.to_path_buf()),
            roots,
            settings,
            secret_rules: None,
            general: keys.general,
            overrides,
        })
    }
}

/// Returns the configuration that `init` writes: every default, commented out, so that it stays a default when a later
/// version changes it.
pub(crate) fn commented_defaults() -> String {
    let head = "# memoird configuration. Every key has a default, which is shown behind a # without a space:\n\
                # to change it, remove that # from the key and from the section that it is in.\n";
    let lines = DEFAULT_CONFIG.lines().skip(1).map(|line| match line {
        it if it.is_empty() || it.starts_with('#') || it.starts_with("roots:") => format!("{it}\n"),
        it => format!("#{it}\n"),
    });
    head.to_owned() + &lines.collect::<String>()
}

/// Returns the file that the argument or the variable names.
fn explicit_file<'a>(explicit: Option<&'a Path>, around: &'a Environment) -> Option<&'a Path> {
    explicit.or_else(|| around.variable("MEMOIRD_CONFIG").map(Path::new))
}

/// Reads a file of the configuration; `None` if it does not exist.
fn read_file(file: &Path) -> Result<Option<String>, ConfigError> {
    match fs::File::open(file) {
        Ok(opened) => {
            let metadata = opened.metadata();
            let metadata = metadata
                .map_err(|source| ConfigError::Unreadable { file: file.to_owned(), source })?;
            trusted_file::refuse_if_open(file, &metadata, None)?;
            trusted_file::refuse_if_replaceable(file)?;
            root::read_text(opened, file).map(Some)
        }
        Err(it) if it.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(ConfigError::Unreadable { file: file.to_owned(), source }),
    }
}

impl ConfigError {
    /// Returns whether the command line is wrong (exit code 2), not the configuration (78).
    pub fn is_usage(&self) -> bool {
        match self {
            Self::InvalidSetArgument { .. } | Self::NoRootSelected { .. } => true,
            Self::RootNotFound { asked, .. } => *asked,
            Self::Yaml { origin, .. } | Self::Invalid { origin, .. } => {
                *origin == ConfigSource::Set
            }
            _ => false,
        }
    }

    /// Returns the next step: a command to run, or a file to correct.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Missing { .. } => {
                Some("leave out --config (and MEMOIRD_CONFIG) to run with the defaults".to_owned())
            }
            Self::Yaml { origin: ConfigSource::File(file), .. }
            | Self::Invalid { origin: ConfigSource::File(file), .. } => {
                Some(format!("once {} is right: memoird status", file.display()))
            }
            Self::NewerFormat { .. } => Some(format!(
                "install the version that wrote it, or a newer one; this is version {}",
                env!("CARGO_PKG_VERSION")
            )),
            Self::NoRootSelected { roots, repository: Some(_), .. } if !roots.is_empty() => {
                Some("`memoird init` sets one up for it; --root DIR uses another one".to_owned())
            }
            Self::NoRootSelected { roots, .. } => Some(match roots.first() {
                Some(root) => format!("name one: `--root {}`", root.display()),
                None => "create one: `memoird init DIR`".to_owned(),
            }),
            Self::RootNotFound { path, cause, .. } if is_not_a_folder(cause) => {
                let around = || path.ancestors().skip(1);
                let root = around().find(|it| it.join(root::ROOT_FILE_NAME).is_file());
                root.or(path.parent())
                    .map(|it| format!("name its folder: `--root {}`", it.display()))
            }
            Self::RootNotFound { path, .. } => {
                Some(format!("create it: `memoird init {}`", path.display()))
            }
            Self::WorldWritable { file, .. } => Some(format!("chmod o-w '{}'", file.display())),
            Self::OtherOwner { file, .. } => Some(format!(
                "chown {} '{}', if you trust what it says",
                rustix::process::geteuid().as_raw(),
                file.display()
            )),
            Self::Overlap { inner, is_outer_named: true, .. } => {
                Some(format!("use the folder in it: `--root {}`", inner.display()))
            }
            Self::Overlap { outer, inner, .. } if outer != inner => {
                Some(format!("use the outer folder: `--root {}`", outer.display()))
            }
            Self::Overlap { .. } => Some("name the folder once under `roots`".to_owned()),
            _ => None,
        }
    }
}

impl fmt::Display for ConfigSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Environment => f.write_str("environment"),
            Self::Set => f.write_str("--set"),
            Self::System => f.write_str("system"),
            Self::Overrides => f.write_str("environment and --set"),
            Self::Merged(path) => write!(f, "all settings of {} together", path.display()),
            Self::General => f.write_str("all settings together"),
        }
    }
}

/// Lists mistakes: a single one on the same line, several on lines of their own.
fn format_problems(problems: &[ConfigProblem]) -> String {
    match problems {
        [one] => one.to_string(),
        all => {
            let lines: Vec<String> = all.iter().map(ConfigProblem::to_string).collect();
            format!("{} mistakes\n  {}", all.len(), lines.join("\n  "))
        }
    }
}

fn is_not_a_folder(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotADirectory
}

fn root_not_found_message(path: &Path, cause: &io::Error) -> String {
    let path = path.display();
    match cause {
        it if is_not_a_folder(it) => format!("{path} is a file, not a memory folder"),
        it if it.kind() == io::ErrorKind::NotFound => format!("there is no folder {path}"),
        it => format!("no memory folder at {path}: {it}"),
    }
}

fn no_root_message(cwd: &Path, roots: &[PathBuf], repository: Option<&Path>) -> String {
    let cwd = cwd.display();
    if roots.is_empty() {
        return format!("no memory folder is configured, and {cwd} is not in one");
    }
    let lines: Vec<String> = roots.iter().map(|it| it.display().to_string()).collect();
    if let Some(repository) = repository {
        return format!(
            "the git repository {} has no memory folder; those of other projects are not used for it:\n  {}",
            repository.display(),
            lines.join("\n  ")
        );
    }
    format!("which memory folder? {cwd} is in none of them:\n  {}", lines.join("\n  "))
}

fn overlap_message(outer: &Path, inner: &Path) -> String {
    if outer == inner {
        format!("the memory folder {} is named twice", outer.display())
    } else {
        format!("memory folder {} is inside {}", inner.display(), outer.display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around(home: &Path) -> Environment {
        Environment {
            home: home.to_path_buf(),
            config_home: home.join(".config"),
            cwd: home.to_path_buf(),
            ..Environment::default()
        }
    }

    fn write(path: &Path, text: &[u8]) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        #[expect(clippy::disallowed_methods, reason = "a file of a test")]
        fs::write(path, text).unwrap();
    }

    #[track_caller]
    fn check(home: &Path, file: Option<&str>, env: Option<&str>, expected: Result<usize, &str>) {
        let mut around = around(home);
        if let Some(env) = env {
            around.variables.insert("MEMOIRD_CONFIG".to_owned(), env.to_owned());
        }
        match (Config::load(file.map(Path::new), &[], &around), expected) {
            (Ok(seen), Ok(roots)) => assert_eq!(seen.roots.len(), roots),
            (Err(seen), Err(expected)) => {
                assert!(seen.to_string().contains(expected), "{seen}");
                assert!(!seen.is_usage());
            }
            (seen, _) => panic!("{seen:?}, expected {expected:?}"),
        }
    }

    #[test]
    fn the_right_file_is_read() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path();
        check(home, None, None, Ok(0)); // none is needed
        check(home, Some("none.yaml"), None, Err("no configuration at "));
        check(home, None, Some("~/none.yaml"), Err("no configuration at "));
        write(&home.join(".config/memoird/config.yaml"), b"roots: [{path: ~/a}]");
        write(&home.join("two.yaml"), b"roots: [{path: a}, {path: b}]");
        write(&home.join("latin.yaml"), b"roots: [{path: \xe9}]");
        write(&home.join("long.yaml"), "#".repeat(yaml::BYTES_MAX + 1).as_bytes());
        write(&home.join("bad.yaml"), b"engin: model\nwisdom: {max_entries: 0}\n");
        check(home, None, None, Ok(1));
        check(home, None, Some(""), Ok(1));
        check(home, None, Some("two.yaml"), Ok(2));
        check(home, Some("two.yaml"), Some("none.yaml"), Ok(2));
        check(home, Some("latin.yaml"), None, Err("latin.yaml: not UTF-8"));
        check(home, Some("long.yaml"), None, Err("long.yaml: longer than"));
        check(
            home,
            Some("bad.yaml"),
            None,
            Err(
                "2 mistakes\n  engin: unknown key, did you mean engine?\n  wisdom.max_entries: 0 is out",
            ),
        );
        check(home, Some("."), None, Err("cannot read "));
    }

    #[test]
    fn a_call_finds_and_opens_its_root() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        write(&home.join("a/memoird.yaml"), b"agent_name: Ada\n");
        write(&home.join("a/memory/2026-04-02.md"), b"");
        write(&home.join("stray/memoird.yaml"), b"agent_name: Stray\n");
        let mut around = around(&home);
        let config = Config::from_text(
            Some((&home.join("config.yaml"), "roots: [{path: a}, {path: gone}]")),
            &[],
            &around,
        )
        .unwrap();
        let mut opened = |explicit: Option<&str>, env: &str, cwd: &str| {
            around.cwd = home.join(cwd);
            around.variables.insert("MEMOIRD_ROOT".to_owned(), env.to_owned());
            let path = config.select_root(explicit.map(Path::new), &around)?;
            config.open(&path, &around).map(|it| it.agent_name)
        };
        assert_eq!(opened(None, "", "a/memory").unwrap(), "Ada");
        assert_eq!(opened(None, "", "stray").unwrap(), "Stray");
        assert_eq!(opened(None, "~/a", "stray").unwrap(), "Ada");
        assert_eq!(opened(Some("../stray"), "~/a", "a").unwrap(), "Stray");
        let error = opened(None, "", "").unwrap_err();
        assert!(error.is_usage());
        assert!(error.hint().unwrap().starts_with("name one: `--root /"));
        let error = opened(Some("gone"), "", "").unwrap_err();
        assert!(matches!(error, ConfigError::RootNotFound { asked: true, .. }), "{error}");
        assert_eq!(
            error.hint().unwrap(),
            format!("create it: `memoird init {}/gone`", home.display())
        );
        let error = opened(Some("a/memory/2026-04-02.md"), "", "").unwrap_err();
        assert!(error.to_string().contains("is a file, not a memory folder"), "{error}");
    }
}
