//! Edits single lines of files that people wrote; comments and everything else stay.
//!
//! `init` registers a root in `config.yaml` and makes this host the writer in a `memoird.yaml`. Pure: the caller
//! reads and writes.

use std::path::Path;

use super::{
    ConfigError, ConfigSource,
    layers::{self, CONFIG_SCHEMA, ConfigKeys},
    root::{RootFile, curated_line, format_line, wisdom_block_line, yaml_line},
};

/// Returns the text of a `config.yaml` with one more root, first in the list, and with the root's project, if
/// it belongs to one.
///
/// Returns `None` if the list has a form that cannot be edited (in brackets, for example), or if the path is
/// not UTF-8: then a person must add it.
pub(crate) fn add_root(
    text: &str,
    file: &Path,
    root: &Path,
    project: Option<&Path>,
) -> Result<Option<String>, ConfigError> {
    let origin = ConfigSource::File(file.to_path_buf());
    let before: ConfigKeys = layers::parse_keys(text, &CONFIG_SCHEMA, &origin)?;
    let Some(path) = root.to_str() else { return Ok(None) };
    let mut entry = vec![yaml_line("path", path)];
    match project.map(Path::to_str) {
        Some(Some(project)) => entry.push(yaml_line("project", project)),
        Some(None) => return Ok(None),
        None => {}
    }
    let new = insert_root_entry(text, &entry);
    let after: Result<ConfigKeys, ConfigError> = layers::parse_keys(&new, &CONFIG_SCHEMA, &origin);
    // The edit is right if the result has one more root and nothing else has changed.
    let is_right = after.is_ok_and(|after| {
        after.roots.len() == before.roots.len() + 1
            && after.roots[0].path == path
            && after.roots[0].project.as_deref() == project.and_then(Path::to_str)
            && after.roots[1..] == before.roots
            && after.general == before.general
    });
    Ok(is_right.then_some(new))
}

/// Returns the text of a `config.yaml` with `projects_dir` set; `None` if the text has a form that cannot be
/// edited, or if the path is not UTF-8.
pub(crate) fn set_projects_dir(
    text: &str,
    file: &Path,
    dir: &Path,
) -> Result<Option<String>, ConfigError> {
    let origin = ConfigSource::File(file.to_path_buf());
    let before: ConfigKeys = layers::parse_keys(text, &CONFIG_SCHEMA, &origin)?;
    let Some(dir) = dir.to_str() else { return Ok(None) };
    let new = yaml_line("projects_dir", dir);
    let mut lines: Vec<&str> = text.lines().collect();
    match lines.iter().position(|it| it.starts_with("projects_dir:")) {
        Some(at) => lines[at] = &new,
        None => lines.push(&new),
    }
    let new = lines.join("\n") + "\n";
    let after: Result<ConfigKeys, ConfigError> = layers::parse_keys(&new, &CONFIG_SCHEMA, &origin);
    let value = |keys: &ConfigKeys| keys.general.get("projects_dir").cloned();
    let is_right = after.is_ok_and(|after| {
        let rest = |keys: &ConfigKeys| {
            let mut general = keys.general.clone();
            general.remove("projects_dir");
            general
        };
        after.roots == before.roots
            && value(&after) == Some(dir.into())
            && rest(&after) == rest(&before)
    });
    Ok(is_right.then_some(new))
}

/// Returns the text of a `memoird.yaml` with `writer` set to `host`.
pub(crate) fn set_writer(text: &str, file: &Path, host: &str) -> Result<String, ConfigError> {
    set_root_key(text, file, "writer", host)
}

fn set_root_key(text: &str, file: &Path, key: &str, value: &str) -> Result<String, ConfigError> {
    RootFile::parse(text, file)?;
    let new = yaml_line(key, value);
    let mut lines: Vec<&str> = text.lines().collect();
    match lines.iter().position(|it| it.starts_with(&format!("{key}:"))) {
        Some(at) => lines[at] = &new,
        None => lines.push(&new),
    }
    let new = lines.join("\n") + "\n";
    RootFile::parse(&new, file)?;
    Ok(new)
}

/// Returns the text of a `memoird.yaml` with another folder of the logs, relative to the root.
pub(crate) fn set_memory_dir(text: &str, file: &Path, dir: &str) -> Result<String, ConfigError> {
    set_root_key(text, file, "memory_dir", dir)
}

/// Returns the text of a `memoird.yaml` that names no curated files with these.
pub(crate) fn add_curated(
    text: &str,
    file: &Path,
    paths: &[String],
) -> Result<String, ConfigError> {
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    let new = format!("{text}{end}{}\n", curated_line(paths));
    RootFile::parse(&new, file)?;
    Ok(new)
}

/// Returns the text of a `memoird.yaml` that names the file with the block of `WISDOM.md`, or none.
pub(crate) fn set_wisdom_block(
    text: &str,
    file: &Path,
    path: Option<&str>,
) -> Result<String, ConfigError> {
    RootFile::parse(text, file)?;
    let is_it = |line: &str| line.starts_with("wisdom_block:");
    let line = path.map(|it| wisdom_block_line(it) + "\n");
    let mut new: String = text.split_inclusive('\n').filter(|it| !is_it(it)).collect();
    if let Some(line) = line {
        let end = if new.is_empty() || new.ends_with('\n') { "" } else { "\n" };
        new = format!("{new}{end}{line}");
    }
    RootFile::parse(&new, file)?;
    Ok(new)
}

/// Returns the text of a `memoird.yaml` that says the form of the files.
pub(crate) fn set_format(text: &str, file: &Path) -> Result<String, ConfigError> {
    RootFile::parse(text, file)?;
    let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let new = format_line();
    let mut lines: Vec<&str> = text.lines().collect();
    match lines.iter().position(|it| it.starts_with("format:")) {
        Some(at) => lines[at] = &new,
        None => lines.push(&new),
    }
    let new = lines.join(end) + end;
    RootFile::parse(&new, file)?;
    Ok(new)
}

fn insert_root_entry(text: &str, entry: &[String]) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let Some(at) = lines.iter().position(|it| it.starts_with("roots:")) else {
        lines.push("roots:".to_owned());
        lines.push(format!("  - {}", entry.join("\n    ")));
        return lines.join("\n") + "\n";
    };
    let value = lines[at]["roots:".len()..].trim_start();
    if let Some(rest) = value.strip_prefix("[]") {
        lines[at] = format!("roots:{rest}");
    }
    // All entries of a list need the same indentation.
    let first = lines[at + 1..].iter().find(|it| {
        let it = it.trim_start();
        !it.is_empty() && !it.starts_with('#')
    });
    let indent = match first {
        Some(it) if it.trim_start().starts_with('-') => &it[..it.len() - it.trim_start().len()],
        _ => "  ",
    };
    let entry = format!("{indent}- {}", entry.join(&format!("\n{indent}  ")));
    lines.insert(at + 1, entry);
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::DEFAULT_CONFIG;

    #[track_caller]
    fn check(text: &str, expected: Option<&str>) {
        let seen =
            add_root(text, Path::new("config.yaml"), Path::new("/home/ada/x y"), None).unwrap();
        assert_eq!(seen.as_deref(), expected);
    }

    #[test]
    fn adding_a_root_changes_nothing_else() {
        check("", Some("roots:\n  - path: \"/home/ada/x y\"\n"));
        check(
            "engine: extractive # free\n",
            Some("engine: extractive # free\nroots:\n  - path: \"/home/ada/x y\"\n"),
        );
        check("roots: []\n", Some("roots:\n  - path: \"/home/ada/x y\"\n"));
        check(
            "# mine\nroots: [] # none\n# - path: old\nwisdom: {}\n",
            Some("# mine\nroots: # none\n  - path: \"/home/ada/x y\"\n# - path: old\nwisdom: {}\n"),
        );
        check(
            "roots:\n\n    - path: a\n      zone: UTC\n",
            Some("roots:\n    - path: \"/home/ada/x y\"\n\n    - path: a\n      zone: UTC\n"),
        );
        check(
            "roots:\n- path: a\nengine: model\n",
            Some("roots:\n- path: \"/home/ada/x y\"\n- path: a\nengine: model\n"),
        );
        check("roots: [{path: a}]\n", None);
        check("{roots: []}\n", None);
        let text =
            add_root(DEFAULT_CONFIG, Path::new("c"), Path::new("/a"), None).unwrap().unwrap();
        assert_eq!(text.lines().count(), DEFAULT_CONFIG.lines().count() + 1);
        add_root("root: []", Path::new("c"), Path::new("/a"), None).unwrap_err();
    }

    #[test]
    fn a_root_of_a_project_names_it() {
        let add = |text| add_root(text, Path::new("c"), Path::new("/m/a"), Some(Path::new("/w/a")));
        let entry = "  - path: \"/m/a\"\n    project: \"/w/a\"\n";
        assert_eq!(add("").unwrap().unwrap(), format!("roots:\n{entry}"));
        assert_eq!(
            add("roots:\n  - path: b\n").unwrap().unwrap(),
            format!("roots:\n{entry}  - path: b\n")
        );
    }

    #[test]
    fn projects_dir_is_set_once() {
        let set = |text| set_projects_dir(text, Path::new("c"), Path::new("/m")).unwrap();
        assert_eq!(set("engine: model\n").unwrap(), "engine: model\nprojects_dir: \"/m\"\n");
        assert_eq!(set("projects_dir: null # none\n").unwrap(), "projects_dir: \"/m\"\n");
        assert_eq!(set("{engine: model}\n"), None);
        let text = set(DEFAULT_CONFIG).unwrap();
        assert_eq!(text.lines().count(), DEFAULT_CONFIG.lines().count());
    }

    #[test]
    fn taking_over_changes_one_line() {
        let set = |text| set_writer(text, Path::new("memoird.yaml"), "tower").unwrap();
        assert_eq!(
            set("# mine\nzone: UTC\nwriter: attic # old\nwisdom:\n  max_entries: 3\n"),
            "# mine\nzone: UTC\nwriter: \"tower\"\nwisdom:\n  max_entries: 3\n"
        );
        assert_eq!(set("zone: UTC"), "zone: UTC\nwriter: \"tower\"\n");
        assert_eq!(set(""), "writer: \"tower\"\n");
        set_writer("{zone: UTC}", Path::new("memoird.yaml"), "tower").unwrap_err();
    }
}
