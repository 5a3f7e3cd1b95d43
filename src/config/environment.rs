//! The environment of the process: variables, folders, the host's name, the system's time zone.
//!
//! It is read once at start; everything else in [`super`] takes it as an argument, so that tests need no home
//! folder and no environment of their own.

use std::{
    collections::BTreeMap,
    env,
    path::{Path, PathBuf},
    sync::Arc,
};

use etcetera::base_strategy::{BaseStrategy as _, Xdg};

use super::{
    ConfigError,
    api_key::{self, Secret},
    zone::ZoneName,
};

/// The environment of the process.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    /// The variables whose names begin with `MEMOIRD_`, except for the key.
    pub variables: BTreeMap<String, String>,
    /// The value of [`api_key::VARIABLE`]; not checked until a key is needed.
    pub api_key: Option<Arc<Secret>>,
    /// The folder of this service's systemd credentials.
    pub credentials_dir: Option<PathBuf>,
    /// The user's home folder.
    pub home: PathBuf,
    /// The folder of configurations: `$XDG_CONFIG_HOME`, else `~/.config`.
    pub config_home: PathBuf,
    /// The folder of persistent state: `$XDG_STATE_HOME`, else `~/.local/state`.
    pub state_home: PathBuf,
    /// The folder of data: `$XDG_DATA_HOME`, else `~/.local/share`.
    pub data_home: PathBuf,
    /// The folder of Claude Code, if it is not `~/.claude`.
    pub claude_config_dir: Option<PathBuf>,
    /// The folder of Codex, if it is not `~/.codex`.
    pub codex_home: Option<PathBuf>,
    /// The folder that holds `.gemini`, if it is not the home folder.
    pub gemini_cli_home: Option<PathBuf>,
    /// The folder of `OpenClaw`, if it is not `~/.openclaw`.
    pub openclaw_state_dir: Option<PathBuf>,
    /// The configuration of `OpenClaw`, if it is not in its folder.
    pub openclaw_config_path: Option<PathBuf>,
    /// The folder of Copilot CLI, if it is not `~/.copilot`.
    pub copilot_home: Option<PathBuf>,
    /// The database of opencode, if it is not `opencode.db`: a path, or a name in opencode's folder.
    pub opencode_db: Option<PathBuf>,
    /// The working folder.
    pub cwd: PathBuf,
    /// The host's name, as in `writer` of `memoird.yaml`.
    pub host: String,
    /// The system's time zone, if it is known.
    pub system_zone: Option<ZoneName>,
}

impl Environment {
    /// Reads the environment of this process.
    ///
    /// Returns [`ConfigError::NoHome`] without a home folder, [`ConfigError::NoWorkingDir`] if the working folder
    /// no longer exists, and [`ConfigError::VariableNotUtf8`] for a `MEMOIRD_` variable that is not UTF-8.
    pub(crate) fn read() -> Result<Self, ConfigError> {
        let cwd = env::current_dir().map_err(|source| ConfigError::NoWorkingDir { source })?;
        Self::read_in(cwd)
    }

    /// Reads the environment with the given working folder, which may no longer exist.
    ///
    /// Like [`Self::read`], except for the working folder.
    pub(crate) fn read_in(cwd: PathBuf) -> Result<Self, ConfigError> {
        let xdg = Xdg::new().map_err(|_| ConfigError::NoHome)?;
        let mut variables = BTreeMap::new();
        let mut api_key = None;
        for (name, value) in env::vars_os() {
            let Some(name) = name.to_str().filter(|it| it.starts_with("MEMOIRD_")) else {
                continue;
            };
            if name == api_key::VARIABLE {
                // Text that is not UTF-8 is reported when the key is needed.
                let text = value.to_string_lossy().into_owned();
                api_key = (!text.is_empty()).then(|| Arc::new(Secret::new(text)));
                continue;
            }
            let value = value
                .into_string()
                .map_err(|_| ConfigError::VariableNotUtf8 { name: name.to_owned() })?;
            variables.insert(name.to_owned(), value);
        }
        Ok(Self {
            variables,
            api_key,
            credentials_dir: env::var_os(api_key::CREDENTIALS_VARIABLE)
                .filter(|it| !it.is_empty())
                .map(Into::into),
            home: xdg.home_dir().to_path_buf(),
            config_home: xdg.config_dir(),
            state_home: xdg.state_dir().unwrap_or_else(|| xdg.home_dir().join(".local/state")),
            data_home: xdg.data_dir(),
            claude_config_dir: absolute_dir_variable("CLAUDE_CONFIG_DIR"),
            codex_home: absolute_dir_variable("CODEX_HOME"),
            gemini_cli_home: absolute_dir_variable("GEMINI_CLI_HOME"),
            openclaw_state_dir: absolute_dir_variable("OPENCLAW_STATE_DIR"),
            openclaw_config_path: absolute_dir_variable("OPENCLAW_CONFIG_PATH"),
            copilot_home: absolute_dir_variable("COPILOT_HOME"),
            opencode_db: env::var_os("OPENCODE_DB").filter(|it| !it.is_empty()).map(Into::into),
            cwd,
            host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            system_zone: system_zone(env::var("TZ").ok().as_deref()),
        })
    }

    /// Returns memoird's configuration folder, which may also contain the user's own prompts and rules.
    pub fn config_folder(&self) -> PathBuf {
        self.config_home.join("memoird")
    }

    /// Returns the path of the ledger of model calls.
    pub fn ledger_path(&self) -> PathBuf {
        self.state_home.join("memoird").join("ledger.db")
    }

    /// Returns the folder of Claude Code's settings and transcripts.
    pub fn claude_folder(&self) -> PathBuf {
        self.claude_config_dir.clone().unwrap_or_else(|| self.home.join(".claude"))
    }

    /// Returns the file with Claude Code's state and MCP servers.
    pub fn claude_state_file(&self) -> PathBuf {
        self.claude_config_dir.as_ref().unwrap_or(&self.home).join(".claude.json")
    }

    /// Returns the folder of Codex's settings and transcripts.
    pub fn codex_folder(&self) -> PathBuf {
        self.codex_home.clone().unwrap_or_else(|| self.home.join(".codex"))
    }

    /// Returns the folder of Gemini CLI's settings and transcripts.
    pub fn gemini_folder(&self) -> PathBuf {
        self.gemini_cli_home.as_ref().unwrap_or(&self.home).join(".gemini")
    }

    /// Returns the folder of the settings, sessions, and plugins of `OpenClaw`.
    pub fn openclaw_folder(&self) -> PathBuf {
        self.openclaw_state_dir.clone().unwrap_or_else(|| self.home.join(".openclaw"))
    }

    /// Returns the path of the settings of `OpenClaw`.
    pub fn openclaw_settings(&self) -> PathBuf {
        let named = self.openclaw_config_path.clone();
        named.unwrap_or_else(|| self.openclaw_folder().join("openclaw.json"))
    }

    /// Returns the folder of Copilot CLI's settings and sessions.
    pub fn copilot_folder(&self) -> PathBuf {
        self.copilot_home.clone().unwrap_or_else(|| self.home.join(".copilot"))
    }

    /// Returns the folder of opencode's settings and plugins.
    pub fn opencode_folder(&self) -> PathBuf {
        self.config_home.join("opencode")
    }

    /// Returns the database with opencode's sessions.
    pub fn opencode_database(&self) -> PathBuf {
        let name = self.opencode_db.as_deref().unwrap_or(Path::new("opencode.db"));
        self.data_home.join("opencode").join(name)
    }

    /// Returns a variable, if it is set and not empty.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|it| !it.is_empty())
    }

    /// Returns an absolute path: `~/` is the home folder, other relative paths start at `base`.
    pub fn absolute(&self, path: &Path, base: &Path) -> PathBuf {
        match path.strip_prefix("~") {
            Ok(rest) => self.home.join(rest),
            Err(_) => base.join(path),
        }
    }
}

/// Returns the folder that a variable names. A relative path is ignored, because its meaning would depend on the
/// working folder.
fn absolute_dir_variable(name: &str) -> Option<PathBuf> {
    env::var_os(name).map(PathBuf::from).filter(|it| it.is_absolute())
}

/// Returns the system's time zone. As for every program, `TZ` wins over the system's setting, if it is a name.
fn system_zone(tz: Option<&str>) -> Option<ZoneName> {
    let named = tz.and_then(|it| it.trim_start_matches(':').parse().ok());
    named.or_else(|| iana_time_zone::get_timezone().ok()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_in_the_variable_wins() {
        for tz in ["Europe/Vienna", ":Europe/Vienna"] {
            assert_eq!(system_zone(Some(tz)), Some("Europe/Vienna".parse().unwrap()));
        }
        // A rule, not a name.
        assert_eq!(system_zone(Some("CET-1CEST,M3.5.0,M10.5.0/3")), system_zone(None));
    }

    #[test]
    fn paths_start_at_home_or_at_the_base() {
        let around = Environment { home: "/home/ada".into(), ..Environment::default() };
        for (path, expected) in [
            ("~", "/home/ada"),
            ("~/a", "/home/ada/a"),
            ("a/b", "/base/a/b"),
            ("/a", "/a"),
            ("~a", "/base/~a"),
        ] {
            assert_eq!(around.absolute(Path::new(path), Path::new("/base")), Path::new(expected));
        }
    }
}
