//! The files and folders that `memoird init` has to write.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::{InitArgs, folder::RootFileText};
use crate::{
    commands::{
        GlobalArgs,
        hooks::project_folder,
        service::{
            self,
            unit::{SystemdUnit, UnitState},
        },
        ui::Ui,
    },
    config::{edit, root::ROOT_FILE_NAME},
    operations::{
        error::{CommandError, CommandResult},
        workspace::Invocation,
    },
    store::fs::{
        layout::{INDEX_FILE, Layout, PRIVATE_DIR, USER_NOTES_FILE},
        vault::{Vault, settings_files::write_settings},
    },
};

/// One file or folder to write.
pub(super) struct InitStep {
    /// The path as shown: relative to the root, otherwise absolute.
    pub(super) name: String,
    action: InitAction,
}

enum InitAction {
    CreateFolder(PathBuf),
    CreatePrivateFolder,
    WriteFile(PathBuf, String),
    InstallUnit(SystemdUnit),
}

/// Collects the steps, and what is left for the user to do.
pub(super) struct StepPlanner<'a> {
    pub(super) call: &'a Invocation,
    pub(super) global: &'a GlobalArgs,
    pub(super) args: &'a InitArgs,
    pub(super) layout: &'a Layout,
    pub(super) ui: &'a Ui,
    pub(super) to_do: &'a mut Vec<String>,
}

impl StepPlanner<'_> {
    /// Returns what is missing. `root_file` is the text that `memoird.yaml` gets or has.
    pub(super) fn plan(&mut self, root_file: RootFileText) -> CommandResult<Vec<InitStep>> {
        let (layout, args) = (self.layout, self.args);
        let root = layout.root();
        let mut steps = Vec::new();
        let memory = layout.full(layout.memory_dir());
        if !memory.is_dir() {
            let dir = layout.memory_dir();
            let name = format!("{}/", if dir.is_empty() { "." } else { dir });
            steps.push(InitStep { name, action: InitAction::CreateFolder(memory) });
        }
        match root_file {
            RootFileText::New(text) => steps.push(InitStep {
                name: ROOT_FILE_NAME.to_owned(),
                action: InitAction::WriteFile(root.join(ROOT_FILE_NAME), text),
            }),
            RootFileText::Present(text) => {
                if args.name.is_some() || args.zone.is_some() {
                    self.to_do.push(format!(
                        "{ROOT_FILE_NAME} already exists and was not changed; edit it to change the \
                         name or the time zone"
                    ));
                }
                steps.extend(self.root_file_step(text)?);
            }
        }
        if !layout.private_dir().is_dir() {
            steps.push(InitStep {
                name: format!("{PRIVATE_DIR}/"),
                action: InitAction::CreatePrivateFolder,
            });
        }
        if !args.no_config && !self.call.config.roots.iter().any(|it| it.path == root) {
            steps.extend(self.config_step()?);
        }
        steps.extend(self.gitignore_step()?);
        if args.service {
            steps.extend(self.unit_step()?);
        }
        Ok(steps)
    }

    /// Makes this host the writer in an existing `memoird.yaml`, if `--take-over` asks for it, and names the agent's
    /// own notes there, if the user agrees.
    fn root_file_step(&mut self, mut text: String) -> CommandResult<Option<InitStep>> {
        let root = self.layout.root();
        let settings = self.call.config.open(root, &self.call.environment)?;
        let host = &self.call.environment.host;
        let file = root.join(ROOT_FILE_NAME);
        let before = fs::read_to_string(&file).map_err(|e| read_error(&file, &e))?;
        if self.args.take_over && settings.writer.as_ref() != Some(host) {
            if let Some(before) = &settings.writer {
                self.to_do.push(format!(
                    "the host {before} stops when it sees the new {ROOT_FILE_NAME}: let your sync tool \
                     finish before you write on both hosts"
                ));
            }
            text = edit::set_writer(&text, &file, host)?;
        }
        if !text.lines().any(|it| it.starts_with("curated:")) {
            let notes = agreed_notes(self.args, self.layout, self.ui, self.to_do);
            if !notes.is_empty() {
                text = edit::add_curated(&text, &file, &notes)?;
            }
        }
        let name = ROOT_FILE_NAME.to_owned();
        let step = InitStep { name, action: InitAction::WriteFile(file, text.clone()) };
        Ok((text != before).then_some(step))
    }

    /// Adds the root to the user's configuration.
    fn config_step(&mut self) -> CommandResult<Option<InitStep>> {
        let root = self.layout.root();
        let (file, text) = project_folder::config_text(&self.call.config, &self.call.environment)?;
        if let Some(text) = edit::add_root(&text, &file, root, self.args.project.as_deref())? {
            let name = file.display().to_string();
            return Ok(Some(InitStep { name, action: InitAction::WriteFile(file, text) }));
        }
        let project = self.args.project.as_ref();
        let entry = match project.map(|it| it.display()) {
            Some(project) => format!("{{path: {}, project: {project}}}", root.display()),
            None => format!("path: {}", root.display()),
        };
        let file = file.display();
        self.to_do.push(format!("add the folder to `roots` in {file} by hand: - {entry}"));
        Ok(None)
    }

    /// Adds the private folder to `.gitignore`, if the root is in a git repository and the user agrees.
    fn gitignore_step(&mut self) -> CommandResult<Option<InitStep>> {
        let root = self.layout.root();
        let Some(top) = root.ancestors().find(|it| it.join(".git").exists()) else {
            return Ok(None);
        };
        let inner: Vec<&Path> = root.ancestors().take_while(|it| it.starts_with(top)).collect();
        let ignored = |dir: &&Path| {
            let text = fs::read_to_string(dir.join(".gitignore")).unwrap_or_default();
            let own = root.strip_prefix(dir).unwrap_or(root).join(PRIVATE_DIR);
            text.lines()
                .map(|it| it.trim().trim_end_matches('/').trim_start_matches("**/"))
                .any(|it| it == PRIVATE_DIR || Path::new(it.trim_start_matches('/')) == own)
        };
        if inner.iter().any(ignored) {
            return Ok(None);
        }
        let line = format!("{PRIVATE_DIR}/");
        let agreed = self.args.yes
            || (!self.args.dry_run
                && self.ui.confirm(format_args!(
                    "Add `{line}` to .gitignore? It holds a database that does not belong in git"
                )) == Some(true));
        if !agreed {
            self.to_do.push(format!(
                "this is a git repository: add the line {line} to {}/.gitignore (or run `{}`)",
                root.display(),
                self.args.with_consent()
            ));
            return Ok(None);
        }
        let file = root.join(".gitignore");
        let mut text = match fs::read_to_string(&file) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => String::new(),
            read => read.map_err(|e| read_error(&file, &e))?,
        };
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&line);
        text.push('\n');
        let name = ".gitignore".to_owned();
        Ok(Some(InitStep { name, action: InitAction::WriteFile(file, text) }))
    }

    /// Installs the systemd unit, unless the user changed it.
    fn unit_step(&mut self) -> CommandResult<Option<InitStep>> {
        let unit = service::systemd_unit(self.call, self.global, Some(self.layout.root()))?;
        let name = unit.path.display().to_string();
        Ok(match unit.state {
            UnitState::New | UnitState::OtherPaths => {
                Some(InitStep { name, action: InitAction::InstallUnit(unit) })
            }
            UnitState::Same => None,
            UnitState::Differs => {
                self.to_do.push(format!(
                    "{name} differs from the current unit and was not changed; to overwrite it: \
                     memoird service install --force"
                ));
                None
            }
        })
    }
}

/// Returns the notes of the agent that exist, if the user agrees to name them in `memoird.yaml`.
pub(super) fn agreed_notes(
    args: &InitArgs,
    layout: &Layout,
    ui: &Ui,
    to_do: &mut Vec<String>,
) -> Vec<String> {
    let vault = Vault::new(layout.clone());
    let says = |path: &String| {
        let file = vault.read_curated(path).ok().flatten();
        file.is_some_and(|it| {
            it.text.lines().any(|it| !it.trim().is_empty() && !it.starts_with('#'))
        })
    };
    let names = [INDEX_FILE, USER_NOTES_FILE];
    let mut paths: Vec<String> = names.map(str::to_owned).to_vec();
    paths.extend(names.map(|it| layout.typed_memory(it)).into_iter().filter(|it| it.contains('/')));
    paths.retain(says);
    if paths.is_empty() {
        return paths;
    }
    let names = paths.join(", ");
    let agreed = args.yes
        || (!args.dry_run
            && ui.confirm(format_args!(
                "Are {names} the agent's own notes? Then memoird reads them and repeats nothing that they say{}",
                // The only change of such a file, and another question.
                if args.openclaw.is_some() {
                    "; it asks separately before it adds a block to MEMORY.md"
                } else {
                    ""
                }
            )) == Some(true));
    if agreed {
        return paths;
    }
    to_do.push(format!(
        "to let memoird read the agent's own notes and repeat nothing that they say, add the line \
         curated: [{names}] to {ROOT_FILE_NAME} (or run `{}`)",
        args.with_consent()
    ));
    Vec::new()
}

pub(super) fn unit_paths_changed(steps: &[InitStep]) -> bool {
    steps.iter().any(|it| {
        matches!(&it.action, InitAction::InstallUnit(unit) if unit.state == UnitState::OtherPaths)
    })
}

pub(super) fn apply_steps(steps: &[InitStep], vault: &Vault) -> CommandResult<()> {
    for step in steps {
        match &step.action {
            InitAction::CreateFolder(path) => create_folder(path)?,
            InitAction::CreatePrivateFolder => vault.create_private_dir()?,
            InitAction::WriteFile(path, text) => write_settings(path, text)?,
            InitAction::InstallUnit(unit) => unit.write()?,
        }
    }
    Ok(())
}

pub(super) fn create_folder(path: &Path) -> CommandResult<()> {
    fs::create_dir_all(path).map_err(|e| {
        let what = format!("cannot create `{}`: {e}", path.display());
        CommandError::cannot_write(what)
    })
}

pub(super) fn read_error(file: &Path, error: &io::Error) -> CommandError {
    let what = format!("cannot read `{}`: {error}", file.display());
    CommandError::data(what)
}
