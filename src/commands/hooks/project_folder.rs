//! Creates memory folders when they are first needed: one for each project in which a session ends, if
//! `init --projects` enabled that.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};

use crate::{
    config::{
        CONFIG_FILE_NAME, Config, commented_defaults, edit,
        environment::Environment,
        root::{ROOT_FILE_NAME, RootFile},
        schema_check::{NAME_CHARS_MAX, is_name_char},
    },
    operations::error::{CommandError, CommandResult},
    store::fs::{
        layout::Layout,
        lock::DaemonLock,
        spool::Spool,
        vault::{Vault, settings_files::write_settings},
    },
};

/// The most projects with the same name.
const COPIES_MAX: u32 = 100;
/// The longest name of a folder, in bytes; file systems allow a little more.
const NAME_BYTES_MAX: usize = 240;

/// Creates memory folders for the projects of these folders that have none, and adds them to the
/// configuration. Returns for which projects that failed, and why; the others are complete. Does nothing if it
/// is not enabled.
pub(crate) fn create_project_folders(
    config: &Config,
    around: &Environment,
    folders: &[PathBuf],
) -> CommandResult<Vec<(PathBuf, CommandError)>> {
    let mut failed = Vec::new();
    let Some(dir) = config.projects_dir(around) else { return Ok(failed) };
    let projects: BTreeSet<PathBuf> =
        folders.iter().filter_map(|it| Config::project_of(it)).collect();
    if projects.is_empty() {
        return Ok(failed);
    }
    // The queue's lock lets one worker at a time do this.
    let _lock = Spool::new(&around.state_home)
        .lock(true)
        .map_err(|e| CommandError::cannot_write(format!("cannot lock the notes of hooks: {e}")))?;
    let mut config = Config::load(config.file.as_deref(), &[], around)?;
    let mut made = 0;
    for project in projects {
        let is_known = config.roots.iter().any(|it| it.project.as_ref() == Some(&project));
        // Neither the home nor a memory folder is a project.
        if is_known || project == around.home || project.starts_with(&dir) {
            continue;
        }
        match create_project_folder(&config, around, &dir, &project) {
            Ok(()) => made += 1,
            // The sessions of other projects do not wait for this one.
            Err(error) => failed.push((project, error)),
        }
        config = Config::load(config.file.as_deref(), &[], around)?;
    }
    if made > 0 {
        reload_daemon(&config);
    }
    Ok(failed)
}

fn create_project_folder(
    config: &Config,
    around: &Environment,
    dir: &Path,
    project: &Path,
) -> CommandResult<()> {
    if project.to_str().is_none() {
        let what = format!("the name of `{}` is not UTF-8", project.display());
        return Err(CommandError::config(what).hint("rename the folder of the project"));
    }
    let root = folder_for_project(config, dir, project)?;
    let (file, text) = config_with_root(config, around, &root, project)?;
    create_folder(config, around, &root)?;
    Ok(write_settings(&file, &text)?)
}

/// Returns the name of a project as that of a folder: a repository may have a name that would be no name of an
/// agent.
fn folder_name(project: &Path) -> String {
    let name = project.file_name().unwrap_or_default().to_string_lossy();
    let name = name.trim().chars().map(|it| if is_name_char(it) { it } else { '-' });
    let mut bytes = 0;
    let fits = |it: &char| {
        bytes += it.len_utf8();
        bytes <= NAME_BYTES_MAX
    };
    // There must be room for a number.
    let name: String = name.take(NAME_CHARS_MAX - 4).take_while(fits).collect();
    let name = name.trim();
    if name.is_empty() { "project".to_owned() } else { name.to_owned() }
}

/// Returns the memory folder of a project: by its name, with a number if another project has that name.
/// A folder in the configuration belongs to its project, with or without logs.
fn folder_for_project(config: &Config, dir: &Path, project: &Path) -> CommandResult<PathBuf> {
    let name = folder_name(project);
    let names = (1..=COPIES_MAX).map(|copy| match copy {
        1 => name.clone(),
        copy => format!("{name}-{copy}"),
    });
    // A folder that was created but not added to the configuration has no log.
    let is_free = |it: &PathBuf| {
        let memory = it.join("memory");
        let is_entered = config.roots.iter().any(|root| root.path == *it);
        !it.exists()
            || !is_entered
                && it.join(ROOT_FILE_NAME).is_file()
                && fs::read_dir(memory).map_or(true, |mut it| it.next().is_none())
    };
    names.map(|it| dir.join(it)).find(is_free).ok_or_else(|| {
        let what = format!("no folder name is free in `{}` for `{name}`", dir.display());
        CommandError::cannot_write(what).hint("in the project: memoird init DIR")
    })
}

fn create_folder(config: &Config, around: &Environment, root: &Path) -> CommandResult<()> {
    let cannot = |path: &Path, error: &io::Error| {
        CommandError::cannot_write(format!("cannot create `{}`: {error}", path.display()))
    };
    let memory = root.join("memory");
    fs::create_dir_all(&memory).map_err(|e| cannot(&memory, &e))?;
    let file = root.join(ROOT_FILE_NAME);
    if !file.exists() {
        let bare = config.resolve(root.to_owned(), &RootFile::default(), around)?;
        let mut root_file = RootFile::default();
        root_file.agent_name = Some(bare.agent_name);
        root_file.zone = Some(bare.zone.name);
        root_file.memory_dir = Some("memory".to_owned());
        write_settings(&file, &root_file.print())?;
    }
    Ok(Vault::new(Layout::new(root.to_owned(), "memory")).create_private_dir()?)
}

/// Returns the path and text of the user's configuration, or the initial text if there is none.
///
/// Returns why the file cannot be read.
pub(crate) fn config_text(
    config: &Config,
    around: &Environment,
) -> CommandResult<(PathBuf, String)> {
    let Some(file) = &config.file else {
        let file = around.config_folder().join(CONFIG_FILE_NAME);
        return Ok((file, commented_defaults()));
    };
    let text = fs::read_to_string(file)
        .map_err(|e| CommandError::config(format!("cannot read `{}`: {e}", file.display())))?;
    Ok((file.clone(), text))
}

/// Returns the path of the user's configuration, and its text with the folder and its project added.
fn config_with_root(
    config: &Config,
    around: &Environment,
    root: &Path,
    project: &Path,
) -> CommandResult<(PathBuf, String)> {
    let (file, text) = config_text(config, around)?;
    let Some(text) = edit::add_root(&text, &file, root, Some(project))? else {
        let what = format!("`roots` in {} cannot be edited by program", file.display());
        return Err(CommandError::config(what).hint(format!(
            "add by hand: - {{path: {}, project: {}}}",
            root.display(),
            project.display()
        )));
    };
    Ok((file, text))
}

/// Returns the process id of a daemon that serves the configured roots.
pub(crate) fn daemon_pid(config: &Config) -> Option<u32> {
    let locks = config.roots.iter().map(|it| Layout::new(it.path.clone(), "").daemon_lock());
    locks.into_iter().find_map(|it| DaemonLock::holder(&it).ok().flatten())
}

fn reload_daemon(config: &Config) {
    let pid = daemon_pid(config).and_then(|it| rustix::process::Pid::from_raw(it.cast_signed()));
    if let Some(pid) = pid
        && let Err(error) = rustix::process::kill_process(pid, rustix::process::Signal::HUP)
    {
        tracing::debug!("cannot signal the daemon: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_name_of_a_repository_becomes_the_name_of_a_folder() {
        for (name, expected) in [
            ("tide", "tide"),
            ("a\u{7}b\nc", "a-b-c"),
            ("a\u{85}b\u{202e}c", "a-b-c"),
            ("  ", "project"),
            ("日本 é", "日本 é"),
        ] {
            assert_eq!(folder_name(&Path::new("/src").join(name)), expected);
        }
        for long in ["x".repeat(255), "日".repeat(85)] {
            let name = folder_name(&Path::new("/src").join(&long));
            assert!(name.chars().count() < NAME_CHARS_MAX && name.len() <= NAME_BYTES_MAX);
            assert!(long.starts_with(&name));
        }
    }
}
