//! Which root is meant, and which folders cannot be roots side by side.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{Error, layers::EntryKeys};

/// A root that is configured.
#[derive(Clone, Debug)]
pub struct KnownRoot {
    /// The folder: absolute, without links as far as it exists.
    pub path: PathBuf,
    /// The working tree whose sessions belong here: its main repository's folder.
    pub project: Option<PathBuf>,
    /// What its entry says.
    pub(super) keys: EntryKeys,
}

/// What says which root is meant; all paths absolute and without links.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'a> {
    /// `--root`, else `MEMOIRD_ROOT`.
    pub(super) named: Option<&'a Path>,
    /// The working folder.
    pub(super) cwd: &'a Path,
    /// The main folder of the git repository that it is in.
    pub(super) git_root: Option<&'a Path>,
    /// The nearest folder around it that holds a `memoird.yaml`.
    pub(super) marked: Option<&'a Path>,
}

/// Returns the root that is meant: the one that is named, else the one around the working folder,
/// else the one that its project is mapped to, else the only one there is.
pub(super) fn choose_root(asked: &Asked<'_>, known: &[KnownRoot]) -> Result<PathBuf, Error> {
    let around = known.iter().find(|it| asked.cwd.starts_with(&it.path));
    if let Some(path) = asked.named.or(around.map(|it| it.path.as_path())).or(asked.marked) {
        let mut paths: Vec<&Path> = known.iter().map(|it| it.path.as_path()).collect();
        if !paths.contains(&path) {
            paths.push(path);
            refuse_overlap(&paths)?;
        }
        return Ok(path.to_path_buf());
    }
    let is_here = |project: &PathBuf| {
        asked.git_root == Some(project.as_path()) || asked.cwd.starts_with(project)
    };
    let mapped: Vec<_> =
        known.iter().filter(|it| it.project.as_ref().is_some_and(is_here)).collect();
    // Of projects within each other the innermost is meant.
    let innermost =
        mapped.iter().max_by_key(|it| it.project.as_ref().map(|it| it.as_os_str().len()));
    let same = |it: &&&KnownRoot| innermost.is_some_and(|best| best.project == it.project);
    let mapped: Vec<_> = mapped.iter().filter(same).collect();
    match (mapped.as_slice(), known) {
        ([one], _) => Ok(one.path.clone()),
        ([], [only]) => Ok(only.path.clone()),
        _ => Err(Error::WhichRoot {
            cwd: asked.cwd.to_path_buf(),
            roots: known.iter().map(|it| it.path.clone()).collect(),
        }),
    }
}

/// Refuses roots that are the same folder or lie within each other: a log would be folded twice.
pub(super) fn refuse_overlap(paths: &[&Path]) -> Result<(), Error> {
    for (at, one) in paths.iter().enumerate() {
        for other in &paths[at + 1..] {
            let (outer, inner) = if other.starts_with(one) { (one, other) } else { (other, one) };
            if inner.starts_with(outer) {
                return Err(Error::Overlap {
                    outer: outer.to_path_buf(),
                    inner: inner.to_path_buf(),
                });
            }
        }
    }
    Ok(())
}

/// Returns an absolute path without links, as far as it exists; what does not is kept as written.
pub(super) fn canonical(path: &Path) -> PathBuf {
    for ancestor in path.ancestors() {
        if let Ok(existing) = ancestor.canonicalize() {
            let rest = path.strip_prefix(ancestor).unwrap_or(Path::new(""));
            return existing.join(rest);
        }
    }
    path.to_path_buf()
}

/// Returns the main folder of the git repository that holds `folder`: for a linked working tree the
/// folder of the repository that it was made from.
pub(super) fn git_root(folder: &Path) -> Option<PathBuf> {
    let (tree, mark) = folder.ancestors().find_map(|it| {
        let mark = it.join(".git");
        mark.exists().then_some((it, mark))
    })?;
    if mark.is_dir() {
        return Some(canonical(tree));
    }
    Some(main_folder(tree, &mark).unwrap_or_else(|| canonical(tree)))
}

/// Follows the `.git` file of a linked working tree; `None` for a submodule, which is its own.
fn main_folder(tree: &Path, mark: &Path) -> Option<PathBuf> {
    let text = fs::read_to_string(mark).ok()?;
    let git_dir = tree.join(text.strip_prefix("gitdir:")?.trim());
    let common = fs::read_to_string(git_dir.join("commondir")).ok()?;
    let common = git_dir.join(common.trim()).canonicalize().ok()?;
    // A bare repository has no folder around it.
    let inside = common.file_name().is_some_and(|it| it == ".git");
    if inside { common.parent().map(Path::to_path_buf) } else { Some(common) }
}
