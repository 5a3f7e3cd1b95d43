//! What `memoird uninstall` leaves, and how to remove it by hand.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};

use serde::Serialize;

use crate::{
    commands::ui::Ui,
    config::root::ROOT_FILE_NAME,
    operations::{
        format::{counted, shell_quoted},
        workspace::Invocation,
    },
    store::fs::{layout::PRIVATE_DIR, vault::Vault},
};

/// How many files of a folder are looked at.
const FILES_MAX: usize = 20_000;
/// Completions are not installed by memoird itself; these are the paths that `packaging/install.sh` and docs/src/install.md use.
const SHELL_FILES: [&str; 3] = [
    "bash-completion/completions/memoird",
    "zsh/site-functions/_memoird",
    "fish/vendor_completions.d/memoird.fish",
];

#[derive(Serialize)]
pub(super) struct Kept {
    folders: Vec<KeptFolder>,
    /// The user's configuration, unless it is removed, too.
    configuration: Option<PathBuf>,
    /// Completions and manual pages that a person installed.
    shell_files: Vec<PathBuf>,
    program: Option<PathBuf>,
    /// The command that removes the program.
    remove_program: Option<String>,
}

/// A memory folder.
#[derive(Serialize)]
struct KeptFolder {
    path: PathBuf,
    logs: usize,
    /// What memoird wrote there, relative to the folder; nothing else needs it.
    generated: Vec<String>,
}

impl Kept {
    /// Lists what stays; without the configuration, if that is removed.
    pub(super) fn find(call: &Invocation, removes_config: bool) -> Self {
        let around = &call.environment;
        let config = call
            .config
            .file
            .clone()
            .filter(|it| !removes_config || !it.starts_with(around.config_folder()));
        let data = around.home.join(".local/share");
        let shell_files = SHELL_FILES.iter().map(|it| data.join(it)).filter(|it| it.is_file());
        let shell_files = shell_files.chain(manual_pages(&data.join("man/man1")));
        let program = std::env::current_exe().ok();
        Self {
            folders: call
                .config
                .roots
                .iter()
                .filter_map(|it| KeptFolder::read(call, &it.path))
                .collect(),
            configuration: config,
            shell_files: shell_files.collect(),
            remove_program: program.as_deref().map(|it| removal_command(it, &around.home)),
            program,
        }
    }

    pub(super) fn print(&self, ui: &Ui) {
        let mut lines = Vec::new();
        for folder in &self.folders {
            let logs = counted(folder.logs, "log", "logs");
            let generated = counted(folder.generated.len(), "file", "files");
            let line = format!("{} ({logs}; {generated} by memoird)", folder.path.display());
            lines.push(("memory", line));
        }
        let config = self.configuration.iter();
        lines.extend(
            config.map(|it| ("configuration", format!("{} (--purge removes it)", it.display()))),
        );
        let is_page = |it: &&PathBuf| it.extension().is_some_and(|it| it == "1");
        let (pages, scripts): (Vec<_>, Vec<_>) = self.shell_files.iter().partition(is_page);
        lines.extend(
            scripts.iter().map(|it| ("shell", format!("{} (to remove it: rm)", it.display()))),
        );
        lines.extend(pages.first().and_then(|it| it.parent()).map(|folder| {
            let count = counted(pages.len(), "page", "pages");
            ("manual", format!("{}/memoird*.1 ({count}; to remove: rm)", folder.display()))
        }));
        let program = self.program.as_ref().zip(self.remove_program.as_ref());
        lines.extend(
            program.map(|(path, how)| {
                ("program", format!("{} (to remove it: {how})", path.display()))
            }),
        );
        ui.note("keeps");
        for (label, line) in lines {
            ui.note(format_args!("  {label:<15}{line}"));
        }
        if self.folders.iter().any(|it| !it.generated.is_empty()) {
            ui.note("what memoird wrote in memory folders: memoird uninstall --dry-run --json");
        }
    }
}

impl KeptFolder {
    fn read(call: &Invocation, path: &Path) -> Option<Self> {
        let settings = call.config.open(path, &call.environment).ok()?;
        let vault = Vault::for_root(&settings).ok()?;
        let layout = vault.layout();
        let logs = vault.scan(&HashMap::new()).map_or(0, |it| it.inventory.logs.len());
        let mut generated = Vec::new();
        let mut candidates = vault.files_below(layout.memory_dir(), FILES_MAX).0;
        candidates.extend(layout.hidden_path(&layout.wisdom()));
        for hidden in candidates {
            if layout.is_hidden_file(&hidden)
                && vault.exists(&hidden)
                && !generated.contains(&hidden)
            {
                generated.extend(visible_path(&hidden).filter(|it| vault.exists(it)));
                generated.push(hidden);
            }
        }
        generated.extend(Some(layout.decisions()).filter(|it| vault.exists(it)));
        generated.extend(Some(ROOT_FILE_NAME.to_owned()).filter(|it| vault.exists(it)));
        generated.extend(layout.private_dir().is_dir().then(|| format!("{PRIVATE_DIR}/")));
        Some(Self { path: path.to_owned(), logs, generated })
    }
}

/// Returns `memoird.1` and the pages of the commands in a folder, sorted.
fn manual_pages(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|it| it.file_name().into_string().ok());
    let ours = names.filter(|it| {
        it.strip_prefix("memoird").is_some_and(|rest| {
            rest.ends_with(".1") && (rest.starts_with('-') || rest.starts_with('.'))
        })
    });
    let mut pages: Vec<PathBuf> = ours.map(|it| folder.join(it)).collect();
    pages.sort();
    pages
}

/// Returns the path of the file that a hidden one belongs to.
fn visible_path(hidden: &str) -> Option<String> {
    let (dir, name) = hidden.rsplit_once('/').map_or((None, hidden), |it| (Some(it.0), it.1));
    let name = format!("{}.md", name.strip_prefix('.')?.strip_suffix(".json")?);
    Some(dir.map_or_else(|| name.clone(), |dir| format!("{dir}/{name}")))
}

/// Returns the command that removes the program, by the place where it is.
fn removal_command(program: &Path, home: &Path) -> String {
    if program.starts_with(home.join(".cargo/bin")) {
        "cargo uninstall memoird".to_owned()
    } else if program.starts_with("/usr/bin") {
        "your package manager".to_owned()
    } else {
        format!("rm {}", shell_quoted(&program.to_string_lossy()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_depends_on_where_the_program_is() {
        for (program, expected) in [
            ("/home/ada/.cargo/bin/memoird", "cargo uninstall memoird"),
            ("/usr/bin/memoird", "your package manager"),
            ("/home/ada/my bin/memoird", "rm '/home/ada/my bin/memoird'"),
        ] {
            assert_eq!(removal_command(Path::new(program), Path::new("/home/ada")), expected);
        }
    }

    #[test]
    fn a_hidden_file_belongs_to_the_visible_one_beside_it() {
        assert_eq!(
            visible_path("memory/weekly/.2026-W14.json").unwrap(),
            "memory/weekly/2026-W14.md"
        );
        assert_eq!(visible_path(".WISDOM.json").unwrap(), "WISDOM.md");
        assert_eq!(visible_path("memory/notes.json"), None);
    }
}
