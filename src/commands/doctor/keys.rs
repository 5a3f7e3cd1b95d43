//! The check "keys": where the API key comes from, whether others can read it, and whether a key is
//! in a file or argument where it does not belong. Never shows the key itself.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{
    commands::process_hardening,
    compaction::integrity::check::CheckOutcome,
    config::{
        Config, SECRETS_FILE_NAME,
        api_key::{self, KeySource},
        environment::Environment,
        root::ROOT_FILE_NAME,
        stray_key::lines_with_keys,
    },
    operations::workspace::{Invocation, MemoryRoot},
};

/// Longer files are skipped; the configuration reader refuses them too.
const BYTES_MAX: u64 = 1024 * 1024;

pub(super) fn check_keys(root: &MemoryRoot, call: &Invocation) -> CheckOutcome {
    let around = &call.environment;
    let model = &root.settings.settings.model;
    let source = call.config.key_source(model, around);
    let detail = match &source {
        None => "none set, none needed".to_owned(),
        Some(source) => {
            if let Err(error) = source.read() {
                return CheckOutcome::Failed(vec![format!("{error}; {}", error.hint())]);
            }
            match source {
                KeySource::File(_) | KeySource::Credential(_) if around.api_key.is_some() => {
                    format!("{source}; {} is also set but not used", api_key::VARIABLE)
                }
                KeySource::File(_) => format!("{source}, not readable by others"),
                KeySource::Credential(_) | KeySource::Variable(_) => source.to_string(),
            }
        }
    };
    let mut files = configuration_files(call.config.file.as_deref());
    files.push(root.settings.path.join(ROOT_FILE_NAME));
    let mut warnings = misplaced_keys(&files);
    if process_hardening::can_dump_core() {
        warnings
            .push("a crash could write the process memory to disk; run `ulimit -c 0`".to_owned());
    }
    if warnings.is_empty() {
        return CheckOutcome::Passed(detail);
    }
    if source.is_some() {
        warnings.insert(0, detail);
    }
    CheckOutcome::Warning(warnings.join("\n"))
}

/// Looks for misplaced keys when the configuration does not load; `None` if there are none.
pub(super) fn check_keys_without_root(explicit: Option<&Path>) -> Option<CheckOutcome> {
    let around = Environment::read().ok()?;
    let file = Config::config_path(explicit, &around);
    let warnings = misplaced_keys(&configuration_files(Some(&file)));
    (!warnings.is_empty()).then(|| CheckOutcome::Warning(warnings.join("\n")))
}

fn configuration_files(file: Option<&Path>) -> Vec<PathBuf> {
    file.iter().flat_map(|it| [it.to_path_buf(), it.with_file_name(SECRETS_FILE_NAME)]).collect()
}

/// Describes everything that looks like a key in these files and on the command line.
fn misplaced_keys(files: &[PathBuf]) -> Vec<String> {
    let mut found = Vec::new();
    for file in files {
        let is_short = fs::metadata(file).is_ok_and(|it| it.is_file() && it.len() <= BYTES_MAX);
        let bytes = if is_short { fs::read(file).unwrap_or_default() } else { Vec::new() };
        for line in lines_with_keys(&String::from_utf8_lossy(&bytes)) {
            found.push(format!(
                "{}, line {line}: looks like a key; move it to its own file (chmod 600), set model.key_file to that path, and ask the provider for a new key if others could read this file",
                file.display()
            ));
        }
    }
    let arguments = std::env::args_os().map(|it| it.to_string_lossy().into_owned());
    if arguments.into_iter().any(|it| !lines_with_keys(&it).is_empty()) {
        found.push(
            "an argument of this call looks like a key; every user of this machine can read arguments, and the shell stores them in its history"
                .to_owned(),
        );
    }
    found
}
