//! The systemd user unit: its text for this program and these memory folders.
//!
//! The shipped unit is a template: its lines with paths are replaced. The service sees only the listed
//! paths of the home folder, so every path that the daemon needs must be listed.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::{
    config::{Config, environment::Environment, settings::Provider},
    operations::error::CommandResult,
    store::fs::vault::settings_files::write_settings,
};

const UNIT_TEMPLATE: &str = include_str!("../../../systemd/memoird.service");
/// The drop-in that disables everything that needs namespaces.
const PLAIN_DROP_IN: &str = include_str!("../../../systemd/memoird-plain.conf");

/// The keys of the lines with paths, which are replaced.
const PATH_KEYS: [&str; 3] = ["ExecStart=", "BindReadOnlyPaths=", "BindPaths="];

/// The notification socket of the manager, in a folder that the unit hides.
const NOTIFY_SOCKET: &str = "BindReadOnlyPaths=%t/systemd/notify";

/// The unit for this program and configuration.
#[derive(Debug)]
pub(in crate::commands) struct SystemdUnit {
    pub(in crate::commands) path: PathBuf,
    text: String,
    /// How it compares to the installed unit.
    pub(in crate::commands) state: UnitState,
    /// Why it has to run without namespaces.
    pub(in crate::commands) plain_reason: Option<String>,
    /// Folders that must exist when it starts.
    folders: Vec<PathBuf>,
}

/// How a unit compares to the installed one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::commands) enum UnitState {
    /// No unit is installed.
    New,
    /// The installed unit is the same.
    Same,
    /// The installed unit differs only in its paths.
    OtherPaths,
    /// The installed unit differs otherwise: a user edited it, or it is from another version.
    Differs,
}

impl SystemdUnit {
    /// Prepares the unit that runs `program` for the configured folders and `more`. `named` says whether
    /// the user named the configuration file.
    pub(in crate::commands) fn new(
        around: &Environment,
        config: &Config,
        program: &Path,
        named: bool,
        more: Option<&Path>,
    ) -> Self {
        let path = around.config_home.join("systemd/user/memoird.service");
        let state_folder =
            around.ledger_path().parent().map_or_else(|| around.ledger_path(), Path::to_path_buf);
        let mut readable = vec![program.to_path_buf(), around.config_folder()];
        // The configuration is often a link into another folder.
        let file = config.file.as_deref();
        let files = file.into_iter().flat_map(|it| [Some(it.to_owned()), it.canonicalize().ok()]);
        // The configuration folder itself is already listed.
        let elsewhere = |it: &PathBuf| !it.starts_with(around.config_folder());
        readable.extend(files.flatten().filter(elsewhere));
        readable.extend(
            config
                .settings
                .model
                .key_file
                .as_ref()
                .map(|it| around.absolute(Path::new(it), &around.cwd)),
        );
        let mut writable: Vec<PathBuf> = config.roots.iter().map(|it| it.path.clone()).collect();
        writable.extend(more.map(Path::to_path_buf));
        writable.extend(config.projects_dir(around));
        let metrics = config.settings.metrics_file.as_ref();
        let metrics = metrics.map(|it| around.absolute(Path::new(it), &around.home));
        writable.extend(metrics.and_then(|it| Some(it.parent()?.to_path_buf())));
        let paths = UnitPaths {
            program,
            config: file.filter(|_| named),
            readable: &distinct(readable),
            state: &state_folder,
            writable: &distinct(writable),
        };
        let text = unit_text(&paths);
        let state = match fs::read_to_string(&path) {
            Ok(installed) if installed == text => UnitState::Same,
            Ok(installed) if lines_without_paths(&installed).eq(lines_without_paths(&text)) => {
                UnitState::OtherPaths
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => UnitState::New,
            _ => UnitState::Differs,
        };
        let plain_reason = user_program_reason(config)
            .or_else(|| namespaces_disabled_reason(Path::new("/proc/sys")));
        Self { path, text, state, plain_reason, folders: vec![state_folder] }
    }

    /// Returns the text of the unit.
    pub(in crate::commands) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the path of the drop-in that makes it run without namespaces.
    pub(in crate::commands) fn drop_in(&self) -> PathBuf {
        self.path.with_extension("service.d").join("plain.conf")
    }

    /// Writes the unit, and adds or removes the drop-in as needed.
    pub(in crate::commands) fn write(&self) -> CommandResult<()> {
        use std::os::unix::fs::DirBuilderExt as _;
        for folder in &self.folders {
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(folder)
                .map_err(|e| super::file_error("create", folder, &e))?;
        }
        write_settings(&self.path, &self.text)?;
        let drop_in = self.drop_in();
        match &self.plain_reason {
            Some(_) => write_settings(&drop_in, PLAIN_DROP_IN)?,
            // A drop-in that the user wrote is kept.
            None if fs::read_to_string(&drop_in).is_ok_and(|it| is_plain_drop_in(&it)) => {
                fs::remove_file(&drop_in).map_err(|e| super::file_error("remove", &drop_in, &e))?;
            }
            None => {}
        }
        Ok(())
    }

    /// Returns the installed files: the unit, and the drop-in unless the user wrote it.
    pub(in crate::commands) fn files(&self) -> Vec<PathBuf> {
        let drop_in = self.drop_in();
        let ours = fs::read_to_string(&drop_in).is_ok_and(|it| is_plain_drop_in(&it));
        let unit = Some(self.path.clone()).filter(|it| it.exists());
        unit.into_iter().chain(ours.then_some(drop_in)).collect()
    }
}

struct UnitPaths<'a> {
    program: &'a Path,
    config: Option<&'a Path>,
    readable: &'a [PathBuf],
    state: &'a Path,
    writable: &'a [PathBuf],
}

fn unit_text(paths: &UnitPaths<'_>) -> String {
    let UnitPaths { program, config, readable, state, writable } = paths;
    let mut start = format!("ExecStart={} run", systemd_quoted(program));
    if let Some(config) = config {
        start = format!("{start} --config {}", systemd_quoted(config));
    }
    let lines = |key: &str, paths: &[PathBuf]| -> Vec<String> {
        paths.iter().map(|it| format!("{key}=-{}", systemd_quoted(it))).collect()
    };
    let mut binds = vec![format!("BindPaths={}", systemd_quoted(state))];
    binds.extend(lines("BindPaths", writable));
    let mut reads = vec![NOTIFY_SOCKET.to_owned()];
    reads.extend(lines("BindReadOnlyPaths", readable));
    let mut replacements = [Some(vec![start]), Some(reads), Some(binds)];
    let mut text = String::new();
    for line in UNIT_TEMPLATE.lines() {
        match PATH_KEYS.iter().position(|key| line.starts_with(key)) {
            // All lines of a key replace its first line.
            Some(at) => {
                for line in replacements[at].take().into_iter().flatten() {
                    text += &(line + "\n");
                }
            }
            None => text += &(line.to_owned() + "\n"),
        }
    }
    text
}

/// Returns whether the drop-in was written by memoird. Comments are not compared, because they differ
/// between versions.
fn is_plain_drop_in(text: &str) -> bool {
    options(text).eq(options(PLAIN_DROP_IN))
}

/// Returns the lines that are neither empty nor comments.
fn options(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|it| !it.is_empty() && !it.starts_with('#'))
}

fn lines_without_paths(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|it| !PATH_KEYS.iter().any(|key| it.starts_with(key)))
}

/// Returns why the daemon needs the home folder: it starts a program of the user.
fn user_program_reason(config: &Config) -> Option<String> {
    let settings = &config.settings;
    let is_program = matches!(settings.model.provider, Provider::Command | Provider::ClaudeCli);
    if settings.model.command.is_some() || is_program {
        return Some("the model is a program of yours, which needs your home".to_owned());
    }
    let starts_program = settings.on_problem.is_some();
    starts_program.then(|| "on_problem starts a program of yours, which needs your home".to_owned())
}

/// Returns why an unprivileged process cannot create user namespaces here.
fn namespaces_disabled_reason(sysctl: &Path) -> Option<String> {
    let has_value = |name: &str, value: &str| {
        fs::read_to_string(sysctl.join(name)).is_ok_and(|it| it.trim() == value)
    };
    let off = [
        ("user/max_user_namespaces", "0"),
        ("kernel/unprivileged_userns_clone", "0"),
        ("kernel/apparmor_restrict_unprivileged_userns", "1"),
    ];
    let found = off.into_iter().find(|(name, value)| has_value(name, value));
    found.map(|(name, value)| {
        format!("unprivileged user namespaces are disabled ({} = {value})", name.replace('/', "."))
    })
}

fn distinct(paths: Vec<PathBuf>) -> Vec<PathBuf> {
    let mut seen = Vec::new();
    for path in paths {
        if !seen.contains(&path) {
            seen.push(path);
        }
    }
    seen
}

/// Quotes a path as one word of a systemd unit.
fn systemd_quoted(path: &Path) -> String {
    let path = path.to_string_lossy();
    let escaped =
        path.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%").replace('$', "$$");
    let plain = |c: char| c.is_alphanumeric() || "/._-%$+,:@".contains(c);
    if escaped.chars().all(plain) { escaped } else { format!("\"{escaped}\"") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str, key: &str) -> Vec<String> {
        text.lines().filter_map(|it| it.strip_prefix(key)).map(str::to_owned).collect()
    }

    #[track_caller]
    fn check(program: &str, config: Option<&str>, expected: &str) {
        let text = unit_text(&UnitPaths {
            program: Path::new(program),
            config: config.map(Path::new),
            readable: &["/r".into()],
            state: Path::new("/s"),
            writable: &["/home/a b/m".into(), "/m".into()],
        });
        assert_eq!(lines(&text, "ExecStart="), [expected]);
        assert_eq!(lines(&text, "BindReadOnlyPaths="), ["%t/systemd/notify", "-/r"]);
        assert!(UNIT_TEMPLATE.contains(NOTIFY_SOCKET));
        assert_eq!(lines(&text, "BindPaths="), ["/s", "-\"/home/a b/m\"", "-/m"]);
        assert!(lines_without_paths(&text).eq(lines_without_paths(UNIT_TEMPLATE)));
    }

    #[test]
    fn the_unit_starts_this_program_and_binds_these_folders() {
        check("/usr/bin/memoird", None, "/usr/bin/memoird run");
        check(
            "/home/a b/50%/$x/memoird",
            Some("/c d.yaml"),
            "\"/home/a b/50%%/$$x/memoird\" run --config \"/c d.yaml\"",
        );
    }

    #[test]
    fn the_drop_in_disables_every_option_that_needs_a_namespace() {
        let keys = |text: &str| -> Vec<String> {
            options(text).filter_map(|it| Some(it.split_once('=')?.0.to_owned())).collect()
        };
        let needs = |it: &String| {
            it.starts_with("Private")
                || it.starts_with("Protect")
                || it.starts_with("Bind")
                || it == "CapabilityBoundingSet"
        };
        let plain = keys(PLAIN_DROP_IN);
        for option in keys(UNIT_TEMPLATE).into_iter().filter(needs) {
            assert!(plain.contains(&option), "{option}");
        }
    }

    #[test]
    fn a_drop_in_with_other_comments_is_recognized_and_one_with_other_options_is_not() {
        let options = options(PLAIN_DROP_IN).collect::<Vec<_>>().join("\n");
        assert!(is_plain_drop_in(&format!("# of an earlier version\n\n{options}\n")));
        assert!(!is_plain_drop_in(&format!("{PLAIN_DROP_IN}Nice=5\n")));
        assert!(!is_plain_drop_in(""));
    }

    #[test]
    fn disabled_user_namespaces_are_detected_by_sysctl() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(namespaces_disabled_reason(dir.path()), None);
        let path = dir.path().join("user/max_user_namespaces");
        fs::create_dir(path.parent().unwrap()).unwrap();
        let write = |text: &str| {
            use std::io::Write as _;
            fs::File::create(&path).unwrap().write_all(text.as_bytes()).unwrap();
        };
        write("15000\n");
        assert_eq!(namespaces_disabled_reason(dir.path()), None);
        write("0\n");
        assert!(
            namespaces_disabled_reason(dir.path())
                .unwrap()
                .contains("user.max_user_namespaces = 0")
        );
    }
}
