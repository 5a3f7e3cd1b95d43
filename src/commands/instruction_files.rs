//! Finds and reads the instruction files of an agent: of the host, the user, the project, and the user's
//! own for the project, in order of increasing priority.

use std::{
    collections::HashSet,
    fs::{self, File},
    io::Read as _,
    path::{Path, PathBuf},
};

use super::ui::Ui;
use crate::{
    config::environment::Environment,
    operations::format::shell_quoted,
    privacy::PrivacyRules,
    recall::{
        context::{ContextBlock, ContextPart, ContextPartKind},
        instructions::{INCLUDE_DEPTH_MAX, Instructions},
    },
};

/// Instructions of the administrator for all users of the host.
const MANAGED_INSTRUCTIONS: &str = "/etc/claude-code/CLAUDE.md";
/// Larger files are skipped: nobody writes them for an agent.
const FILE_BYTES_MAX: u64 = 256 * 1024;
/// How many files are read at most.
const FILES_MAX: usize = 200;

#[derive(Clone, Copy, Debug)]
pub(super) struct InstructionOptions<'a> {
    /// Additional folders to read instruction files from.
    pub(super) add_dirs: &'a [PathBuf],
    /// The files being worked on; rules for other files are left out.
    pub(super) files: &'a [PathBuf],
    /// Whether files of a project may include files outside it.
    pub(super) include_outside: bool,
}

/// Who wrote an instruction file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum InstructionOwner {
    /// The administrator or the user: it may include any file.
    Trusted,
    /// The project.
    Project,
}

struct InstructionReader<'a> {
    around: &'a Environment,
    options: InstructionOptions<'a>,
    rules: &'a PrivacyRules,
    ui: &'a Ui,
    project: PathBuf,
    /// The files being worked on, relative to the project.
    files: Vec<String>,
    seen: HashSet<PathBuf>,
    parts: Vec<ContextPart>,
}

/// Reads all instruction files. Rules with `paths:` apply only if a file being worked on matches.
pub(super) fn read_instructions(
    around: &Environment,
    options: InstructionOptions<'_>,
    rules: &PrivacyRules,
    ui: &Ui,
) -> Vec<ContextPart> {
    let cwd = around.cwd.canonicalize().unwrap_or_else(|_| around.cwd.clone());
    let project = cwd.ancestors().find(|it| it.join(".git").exists()).unwrap_or(&cwd).to_owned();
    let files = options.files.iter().map(|it| {
        let full = around.absolute(it, &cwd);
        let full = full.canonicalize().unwrap_or(full);
        full.strip_prefix(&project).unwrap_or(&full).to_string_lossy().into_owned()
    });
    let files = files.collect();
    let mut reader = InstructionReader {
        around,
        options,
        rules,
        ui,
        project,
        files,
        seen: HashSet::new(),
        parts: Vec::new(),
    };
    reader.read_file(Path::new(MANAGED_INSTRUCTIONS), InstructionOwner::Trusted, 0);
    let own = around.claude_folder();
    reader.read_file(&own.join("CLAUDE.md"), InstructionOwner::Trusted, 0);
    reader.read_folder(&own.join("rules"), InstructionOwner::Trusted);
    let mut folders: Vec<PathBuf> = cwd.ancestors().map(Path::to_owned).collect();
    folders.reverse();
    folders.extend(options.add_dirs.iter().map(|it| around.absolute(it, &around.cwd)));
    for folder in &folders {
        reader.read_file(&folder.join("AGENTS.md"), InstructionOwner::Project, 0);
        reader.read_file(&folder.join("CLAUDE.md"), InstructionOwner::Project, 0);
        reader.read_file(&folder.join(".claude/CLAUDE.md"), InstructionOwner::Project, 0);
        reader.read_folder(&folder.join(".claude/rules"), InstructionOwner::Project);
    }
    for folder in &folders {
        reader.read_file(&folder.join("CLAUDE.local.md"), InstructionOwner::Project, 0);
    }
    reader.parts
}

impl InstructionReader<'_> {
    /// Reads the rules in a folder and its subfolders, sorted by name.
    fn read_folder(&mut self, folder: &Path, owner: InstructionOwner) {
        let mut files = Vec::new();
        let mut folders = vec![(folder.to_owned(), 0)];
        while let Some((folder, depth)) = folders.pop() {
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten().take(FILES_MAX) {
                let path = entry.path();
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() && depth < INCLUDE_DEPTH_MAX => {
                        folders.push((path, depth + 1));
                    }
                    Ok(_) if path.extension().is_some_and(|it| it == "md") => files.push(path),
                    _ => {}
                }
            }
        }
        files.sort();
        for file in files {
            self.read_file(&file, owner, 0);
        }
    }

    /// Reads a file and the files it includes, each once.
    fn read_file(&mut self, path: &Path, owner: InstructionOwner, depth: usize) {
        // A file counts once, even if links give it several names.
        let Ok(real) = path.canonicalize() else { return };
        if self.seen.contains(&real) || self.parts.len() >= FILES_MAX {
            return;
        }
        if owner == InstructionOwner::Project
            && !self.options.include_outside
            && self.is_outside(path, &real, depth)
        {
            self.ui.warn(format!(
                "`{}` is outside the project and was not read; --include-outside allows it",
                path.display()
            ));
            return;
        }
        let Some(text) = read_text(&real) else { return };
        self.seen.insert(real.clone());
        let instructions = Instructions::parse(&text);
        if !instructions.applies_to(&self.files) {
            return;
        }
        if instructions.lines.iter().any(|it| !it.trim().is_empty()) {
            let text = self.rules.mask_secrets(&instructions.lines.join("\n")).into_owned();
            self.parts.push(ContextPart {
                kind: ContextPartKind::Instructions,
                head: path.display().to_string(),
                blocks: ContextBlock::of_lines(text.lines().map(str::to_owned).collect()),
                left_out: 0,
                command: format!("cat {}", shell_quoted(&path.to_string_lossy())),
            });
        }
        for named in &instructions.includes {
            let base = real.parent().unwrap_or(Path::new("/"));
            let full = self.around.absolute(Path::new(named), base);
            if depth == INCLUDE_DEPTH_MAX {
                self.ui.warn(format!(
                    "`{}` includes `@{named}` more than {INCLUDE_DEPTH_MAX} files deep; it was not read",
                    path.display()
                ));
            } else if full.is_file() {
                self.read_file(&full, owner, depth + 1);
            } else if named.starts_with(['.', '~', '/']) {
                self.ui.warn(format!(
                    "`{}` includes `@{named}`, which does not exist",
                    path.display()
                ));
            }
        }
    }

    /// Returns whether an include or a link of the project leads outside it.
    fn is_outside(&self, path: &Path, real: &Path, depth: usize) -> bool {
        let is_within = |folder: &Path| folder.canonicalize().is_ok_and(|it| real.starts_with(it));
        let is_known = is_within(&self.project)
            || self
                .options
                .add_dirs
                .iter()
                .any(|it| is_within(&self.around.absolute(it, &self.around.cwd)));
        // Files in the folders above a project are read too, unless they are links.
        let is_above = depth == 0 && path.symlink_metadata().is_ok_and(|it| it.is_file());
        !(is_known || is_above)
    }
}

/// Reads a text file; `None` if it is too large or not text.
fn read_text(path: &Path) -> Option<String> {
    if !path.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).ok()?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return None;
    }
    String::from_utf8(bytes).ok()
}
