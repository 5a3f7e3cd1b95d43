//! What the check "keys" asks: where the key of a model would come from, whether others can get at
//! it, and whether one stands where it should not. Never the key itself.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::commands::{
    process_hardening,
    workspace::{Invocation, MemoryRoot},
};
use crate::{
    compaction::integrity::check::CheckOutcome,
    config::{
        Config, SECRETS_FILE_NAME,
        api_key::{self, KeySource},
        environment::Environment,
        root::ROOT_FILE_NAME,
        stray_key::lines_with_keys,
    },
};

/// No more of a file is looked through; a longer one is not read as a configuration either.
const BYTES_MAX: u64 = 1024 * 1024;

/// Judges the key of a root.
pub(super) fn check_keys(root: &MemoryRoot, call: &Invocation) -> CheckOutcome {
    let around = &call.environment;
    let model = &root.settings.settings.model;
    let source = call.config.key_source(model, around);
    let said = match &source {
        None => "none is set, and none is needed".to_owned(),
        Some(source) => {
            if let Err(error) = source.read() {
                return CheckOutcome::Failed(vec![format!("{error}; {}", error.hint())]);
            }
            match source {
                KeySource::File(_) | KeySource::Credential(_) if around.api_key.is_some() => {
                    format!("{source}; {} is set too, and not used", api_key::VARIABLE)
                }
                KeySource::File(_) => format!("{source}, closed to others"),
                KeySource::Credential(_) | KeySource::Variable(_) => source.to_string(),
            }
        }
    };
    let mut files = configuration_files(call.config.file.as_deref());
    files.push(root.settings.path.join(ROOT_FILE_NAME));
    let mut warnings = misplaced_keys(&files);
    if process_hardening::can_dump_core() {
        warnings
            .push("a crash could write the memory of memoird to a disk; ulimit -c 0".to_owned());
    }
    if warnings.is_empty() {
        return CheckOutcome::Passed(said);
    }
    if source.is_some() {
        warnings.insert(0, said);
    }
    CheckOutcome::Warning(warnings.join("\n"))
}

/// Looks for keys where a configuration does not load; `None` when there is none.
pub(super) fn check_keys_without_root(explicit: Option<&Path>) -> Option<CheckOutcome> {
    let around = Environment::read().ok()?;
    let file = Config::config_path(explicit, &around);
    let warnings = misplaced_keys(&configuration_files(Some(&file)));
    (!warnings.is_empty()).then(|| CheckOutcome::Warning(warnings.join("\n")))
}

/// Returns the files of the person's configuration.
fn configuration_files(file: Option<&Path>) -> Vec<PathBuf> {
    file.iter().flat_map(|it| [it.to_path_buf(), it.with_file_name(SECRETS_FILE_NAME)]).collect()
}

/// Tells of what looks like a key in those files and on the command line.
fn misplaced_keys(files: &[PathBuf]) -> Vec<String> {
    let mut found = Vec::new();
    for file in files {
        let is_short = fs::metadata(file).is_ok_and(|it| it.is_file() && it.len() <= BYTES_MAX);
        let bytes = if is_short { fs::read(file).unwrap_or_default() } else { Vec::new() };
        for line in lines_with_keys(&String::from_utf8_lossy(&bytes)) {
            found.push(format!(
                "{}, line {line}: looks like a key; put it into a file of its own (chmod 600), name that as model.key_file, and ask the provider for a new one if others could read this",
                file.display()
            ));
        }
    }
    let arguments = std::env::args_os().map(|it| it.to_string_lossy().into_owned());
    if arguments.into_iter().any(|it| !lines_with_keys(&it).is_empty()) {
        found.push(
            "an argument of this call looks like a key; every user of this machine can read arguments, and the shell keeps them"
                .to_owned(),
        );
    }
    found
}
