//! Selects the root that a command uses, and refuses roots that overlap.
//!
//! The selection is pure; [`super::root`] reads its inputs from the disk. Git is not run: the two files that
//! lead from a linked working tree to its repository are read directly.

use std::{
    fs,
    path::{Component, Path, PathBuf},
};

use super::{ConfigError, layers::RootEntryKeys, root::RootKind};

/// A configured root.
#[derive(Clone, Debug)]
pub struct ConfiguredRoot {
    /// The folder: absolute, without links as far as it exists.
    pub path: PathBuf,
    /// The working tree whose sessions belong here: its main repository's folder.
    pub project: Option<PathBuf>,
    /// Its entry.
    pub(super) entry: RootEntryKeys,
}

/// The inputs of the selection; all paths are absolute and without links.
#[derive(Clone, Copy, Debug)]
pub(super) struct SelectionInputs<'a> {
    /// `--root`, else `MEMOIRD_ROOT`.
    pub(super) explicit: Option<&'a Path>,
    /// The working folder.
    pub(super) cwd: &'a Path,
    /// The main folder of the git repository that it is in.
    pub(super) git_root: Option<&'a Path>,
    /// The user's home folder, which is no project, even if it is a repository of settings.
    pub(super) home: &'a Path,
    /// The nearest folder around it that holds a `memoird.yaml`.
    pub(super) marker_root: Option<&'a Path>,
}

/// Selects the root that is named, else the one around the working folder, else the one of its project, else
/// the only one, or the only one without a project. A root of one project serves no other repository.
pub(super) fn select_root(
    asked: &SelectionInputs<'_>,
    known: &[ConfiguredRoot],
) -> Result<PathBuf, ConfigError> {
    let around = known.iter().find(|it| asked.cwd.starts_with(&it.path));
    if let Some(path) = asked.explicit.or(around.map(|it| it.path.as_path())).or(asked.marker_root)
    {
        let mut paths: Vec<&Path> = known.iter().map(|it| it.path.as_path()).collect();
        if !paths.contains(&path) {
            paths.push(path);
            check_overlap(&paths).map_err(|error| match error {
                ConfigError::Overlap { outer, inner, .. } => {
                    ConfigError::Overlap { is_outer_named: outer == path, outer, inner }
                }
                error => error,
            })?;
        }
        return Ok(path.to_path_buf());
    }
    let is_here = |project: &PathBuf| {
        asked.git_root == Some(project.as_path()) || asked.cwd.starts_with(project)
    };
    let mapped: Vec<_> =
        known.iter().filter(|it| it.project.as_ref().is_some_and(is_here)).collect();
    // Of nested projects the innermost counts.
    let innermost =
        mapped.iter().max_by_key(|it| it.project.as_ref().map(|it| it.as_os_str().len()));
    let same = |it: &&&ConfiguredRoot| innermost.is_some_and(|best| best.project == it.project);
    let mapped: Vec<_> = mapped.iter().filter(same).collect();
    let repository = asked.git_root.filter(|it| *it != asked.home);
    let general = general_roots(known);
    match (mapped.as_slice(), general.as_slice(), known) {
        ([one], ..) => Ok(one.path.clone()),
        ([], [general], _) => Ok(general.path.clone()),
        ([], [], [only]) if repository.is_none() => Ok(only.path.clone()),
        _ => Err(ConfigError::NoRootSelected {
            cwd: asked.cwd.to_path_buf(),
            roots: known.iter().map(|it| it.path.clone()).collect(),
            // Otherwise several roots could be meant.
            repository: repository
                .filter(|_| mapped.is_empty() && general.is_empty())
                .map(Path::to_path_buf),
        }),
    }
}

/// Returns the roots that could take what belongs to no project. Only if there is one does it take that. A person's
/// root is one of them only if no agent's root is.
pub(super) fn general_roots(known: &[ConfiguredRoot]) -> Vec<&ConfiguredRoot> {
    let without_project = || known.iter().filter(|it| it.project.is_none());
    let of_agents: Vec<_> =
        without_project().filter(|it| it.entry.kind != RootKind::User).collect();
    if of_agents.is_empty() { without_project().collect() } else { of_agents }
}

/// Refuses roots that are the same folder or inside each other, because their logs would be summarized twice.
pub(super) fn check_overlap(paths: &[&Path]) -> Result<(), ConfigError> {
    // Sorted, a folder is directly followed by those inside it.
    let mut paths = paths.to_vec();
    paths.sort_unstable();
    let overlap = paths.windows(2).find(|it| it[1].starts_with(it[0]));
    overlap.map_or(Ok(()), |it| {
        let [outer, inner] = [it[0], it[1]].map(Path::to_path_buf);
        Err(ConfigError::Overlap { outer, inner, is_outer_named: false })
    })
}

/// Resolves the links of an absolute path, as far as it exists; the rest stays as written.
pub(super) fn canonicalize_existing(path: &Path) -> PathBuf {
    for ancestor in path.ancestors() {
        if let Ok(existing) = ancestor.canonicalize() {
            let rest = path.strip_prefix(ancestor).unwrap_or(Path::new(""));
            let mut whole = existing;
            for step in rest.components() {
                match step {
                    // The folder does not exist, so it cannot be a link.
                    Component::ParentDir => drop(whole.pop()),
                    step => whole.push(step),
                }
            }
            return whole;
        }
    }
    path.to_path_buf()
}

/// Returns the main folder of the git repository that contains `folder`: for a linked working tree, the folder
/// of its main repository.
pub(super) fn git_root(folder: &Path) -> Option<PathBuf> {
    let (tree, mark) = folder.ancestors().find_map(|it| {
        let mark = it.join(".git");
        mark.exists().then_some((it, mark))
    })?;
    if mark.is_dir() {
        return Some(canonicalize_existing(tree));
    }
    // Opening a pipe would block forever.
    let linked = if mark.is_file() { main_worktree(tree, &mark) } else { None };
    Some(linked.unwrap_or_else(|| canonicalize_existing(tree)))
}

/// Follows the `.git` file of a linked working tree; `None` for a submodule, which is its own.
fn main_worktree(tree: &Path, mark: &Path) -> Option<PathBuf> {
    let text = fs::read_to_string(mark).ok()?;
    let git_dir = tree.join(text.strip_prefix("gitdir:")?.trim());
    let common = fs::read_to_string(git_dir.join("commondir")).ok()?;
    let common = git_dir.join(common.trim()).canonicalize().ok()?;
    // A bare repository has no working tree.
    let inside = common.file_name().is_some_and(|it| it == ".git");
    if inside { common.parent().map(Path::to_path_buf) } else { Some(common) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::config::{Config, environment::Environment};

    /// Roots of a configuration whose home is `home`.
    fn known(home: &Path, text: &str) -> Result<Config, ConfigError> {
        let around = Environment { home: home.to_path_buf(), ..Environment::default() };
        Config::from_text(Some((&home.join("config.yaml"), text)), &[], &around)
    }

    #[track_caller]
    fn check(
        text: &str,
        (named, cwd, git_root, marked): (Option<&str>, &str, Option<&str>, Option<&str>),
        expected: Result<&str, &str>,
    ) {
        let roots = known(Path::new("/home/ada"), text).unwrap().roots;
        let asked = SelectionInputs {
            explicit: named.map(Path::new),
            cwd: Path::new(cwd),
            git_root: git_root.map(Path::new),
            home: Path::new("/home/ada"),
            marker_root: marked.map(Path::new),
        };
        match (select_root(&asked, &roots), expected) {
            (Ok(seen), Ok(expected)) => assert_eq!(seen, Path::new(expected)),
            (Err(seen), Err(expected)) => {
                assert!(seen.to_string().contains(expected), "{seen}");
            }
            (seen, _) => panic!("{seen:?}, expected {expected:?}"),
        }
    }

    #[test]
    fn the_root_that_is_meant() {
        let one = "roots: [{path: /no/a, project: /no/src/a}]";
        let two = "roots: [{path: /no/a, project: /no/src/a}, {path: /no/b, project: /no/src/a/b}]";
        let same = "roots: [{path: /no/a, project: /no/src}, {path: /no/b, project: /no/src}]";
        check(one, (None, "/tmp", None, None), Ok("/no/a")); // the only one
        check(one, (Some("/no/z"), "/no/a", None, None), Ok("/no/z")); // need not be configured
        check(two, (Some("/no/b"), "/no/a", None, None), Ok("/no/b"));
        check(two, (None, "/no/b/memory/weekly", None, None), Ok("/no/b"));
        check(two, (None, "/no/bb", None, None), Err("which memory folder? /no/bb is in none"));
        check(two, (None, "/tmp/tree", Some("/no/src/a"), None), Ok("/no/a")); // by its repository
        check(two, (None, "/no/src/a/lib", None, None), Ok("/no/a"));
        check(two, (None, "/no/src/a/b/lib", None, None), Ok("/no/b")); // the innermost
        check(two, (None, "/tmp/x/y", None, Some("/tmp/x")), Ok("/tmp/x")); // has a memoird.yaml
        check(two, (None, "/tmp", None, None), Err("/no/a\n  /no/b"));
        check(same, (None, "/no/src", None, None), Err("which memory folder?"));
        check("roots: []", (None, "/tmp", None, None), Err("no memory folder is configured"));
        check(one, (Some("/no/a/memory"), "/tmp", None, None), Err("/no/a/memory is inside /no/a"));
        check(one, (Some("/no"), "/tmp", None, None), Err("/no/a is inside /no"));
        let outer = SelectionInputs {
            explicit: Some(Path::new("/no")),
            cwd: Path::new("/tmp"),
            git_root: None,
            home: Path::new("/home/ada"),
            marker_root: None,
        };
        let error = select_root(&outer, &known(Path::new("/home/ada"), one).unwrap().roots);
        let hint = error.unwrap_err().hint();
        assert_eq!(hint.as_deref(), Some("use the folder in it: `--root /no/a`"));
    }

    #[test]
    fn a_root_of_one_project_serves_no_other_repository() {
        let one = "roots: [{path: /no/a, project: /no/src/a}]";
        let two = "roots: [{path: /no/a, project: /no/src/a}, {path: /no/b, project: /no/src/b}]";
        let rest = "roots: [{path: /no/a, project: /no/src/a}, {path: /no/z}]";
        let rival = "roots: [{path: /no/a, project: /no/src/a}, {path: /no/y}, {path: /no/z}]";
        let user = "roots: [{path: /no/u, kind: user}, {path: /no/z}]";
        let other = (None, "/no/src/c/lib", Some("/no/src/c"), None);
        let none = Err("the git repository /no/src/c has no memory folder");
        check(one, (None, "/no/src/a/lib", Some("/no/src/a"), None), Ok("/no/a"));
        check(one, other, none);
        check(two, other, none);
        check(one, (Some("/no/a"), "/no/src/c", Some("/no/src/c"), None), Ok("/no/a"));
        check(one, (None, "/home/ada/x", Some("/home/ada"), None), Ok("/no/a"));
        check(rest, other, Ok("/no/z"));
        check(rival, other, Err("which memory folder? /no/src/c/lib is in none"));
        check(user, (None, "/tmp", None, None), Ok("/no/z"));
        check("roots: [{path: /no/u, kind: user}]", (None, "/tmp", None, None), Ok("/no/u"));
    }

    #[test]
    fn folders_that_overlap_are_refused_also_through_links() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path();
        fs::create_dir_all(home.join("a/inner")).unwrap();
        fs::create_dir_all(home.join("ab")).unwrap();
        symlink(home.join("a"), home.join("link")).unwrap();
        for (paths, expected) in [
            ("[{path: ~/a}, {path: ~/ab}]", None),
            ("[{path: ~/a}, {path: ~/a/}]", Some("named twice")),
            ("[{path: ~/a}, {path: a}]", Some("named twice")),
            ("[{path: ~/link}, {path: ~/a}]", Some("named twice")),
            ("[{path: ~/link/inner}, {path: ~/a}]", Some("is inside")),
            ("[{path: ~/a}, {path: ~/ab}, {path: ~/link/new}]", Some("is inside")),
            ("[{path: ~/a/../a}, {path: ~/a}]", Some("named twice")),
            ("[{path: ~/new/../a}, {path: ~/a}]", Some("named twice")),
        ] {
            let seen = known(home, &format!("roots: {paths}")).err().map(|it| it.to_string());
            match (&seen, expected) {
                (None, None) => {}
                (Some(seen), Some(expected)) if seen.contains(expected) => {}
                _ => panic!("{paths}: {seen:?}, expected {expected:?}"),
            }
        }
    }

    #[test]
    fn a_linked_working_tree_leads_to_its_repository() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path().canonicalize().unwrap();
        let write = |path: &str, text: &str| {
            let path = place.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            #[expect(clippy::disallowed_methods, reason = "a file of a test")]
            fs::write(path, text).unwrap();
        };
        write("main/.git/HEAD", "");
        write("main/src/x", "");
        write("main/.git/worktrees/tree/commondir", "../..\n");
        write("tree/.git", &format!("gitdir: {}/main/.git/worktrees/tree\n", place.display()));
        write("tree/lib/x", "");
        write("main/sub/.git", "gitdir: ../.git/modules/sub\n");
        write("main/.git/modules/sub/HEAD", "");
        write("bare.git/worktrees/t/commondir", "../..");
        write("t/.git", "gitdir: ../bare.git/worktrees/t");
        write("plain/x", "");
        for (folder, expected) in [
            ("main/src", Some("main")),
            ("main", Some("main")),
            ("tree/lib", Some("main")),
            ("main/sub", Some("main/sub")),
            ("t", Some("bare.git")),
            ("plain", None),
        ] {
            let seen = git_root(&place.join(folder)).filter(|it| it.starts_with(&place));
            assert_eq!(seen, expected.map(|it| place.join(it)), "{folder}");
        }
        let text = format!("roots: [{{path: ~/r, project: {}/tree}}]", place.display());
        let project = known(&place, &text).unwrap().roots[0].project.clone();
        assert_eq!(project, Some(place.join("main")));
    }
}
