//! `memoird config`: shows the settings and where they come from, and opens the configuration in an editor.

use std::{
    env,
    path::Path,
    process::{Command, ExitCode},
};

use clap::Subcommand;
use serde::Serialize;
use serde_json::Value;

use super::{GlobalArgs, ui::Ui};
use crate::{
    config::{
        self, Config, ConfigError, ConfigSource, api_key, effective, environment::Environment,
    },
    operations::{
        error::{CommandError, CommandResult},
        workspace::Invocation,
    },
    privacy::PrivacyRules,
    store::fs::vault::settings_files::write_settings,
};

/// Show or edit the configuration
#[derive(Debug, clap::Args)]
pub(super) struct ConfigArgs {
    #[command(subcommand)]
    verb: ConfigCommand,
}

#[derive(Clone, Copy, Debug, Subcommand)]
enum ConfigCommand {
    /// Show each setting of the memory folder, or without one, of this user
    Show {
        /// Show where each value comes from
        #[arg(long)]
        origin: bool,
    },
    /// Print the path of the configuration
    Path,
    /// Open the configuration in an editor (VISUAL, EDITOR), and check it afterwards
    Edit,
}

/// What `config show --json` prints.
#[derive(Serialize)]
struct ConfigReport {
    /// The memory folder; null without one.
    root: Option<String>,
    settings: Vec<SettingReport>,
}

#[derive(Serialize)]
struct SettingReport {
    key: String,
    value: Value,
    origin: String,
}

pub(super) fn run(global: &GlobalArgs, args: &ConfigArgs, ui: &Ui) -> CommandResult {
    match args.verb {
        ConfigCommand::Show { origin } => ui.paged(|| show(global, origin, ui)),
        ConfigCommand::Path => show_path(global, ui),
        ConfigCommand::Edit => edit(global, ui),
    }
}

fn show(global: &GlobalArgs, origin: bool, ui: &Ui) -> CommandResult {
    let call = Invocation::load(global)?;
    let root = match call.config.select_root(global.root.as_deref(), &call.environment) {
        Ok(root) => Some(root),
        Err(ConfigError::NoRootSelected { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    let settings = effective::settings(&call.config, root.as_deref(), &call.environment)?;
    let settings = settings.into_iter().map(|it| SettingReport {
        key: it.key,
        value: masked(it.value),
        origin: origin_text(&it.origins),
    });
    let report = ConfigReport {
        root: root.map(|it| it.display().to_string()),
        settings: settings.collect(),
    };
    if ui.is_json() {
        ui.json(&report);
        return Ok(ExitCode::SUCCESS);
    }
    let rows = report.settings.iter().map(|it| {
        let mut row = vec![it.key.clone(), it.value.to_string()];
        row.extend(origin.then(|| it.origin.clone()));
        row
    });
    let head = if origin { &["key", "value", "origin"][..] } else { &["key", "value"] };
    ui.table(head, &rows.collect::<Vec<_>>());
    Ok(ExitCode::SUCCESS)
}

/// Returns the sources of a value in words.
fn origin_text(origins: &[ConfigSource]) -> String {
    if origins.is_empty() {
        return "default".to_owned();
    }
    origins.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ")
}

/// Masks secrets: an address or an argument may hold one.
fn masked(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(PrivacyRules::mask_message(&text)),
        Value::Array(all) => all.into_iter().map(masked).collect(),
        Value::Object(all) => all.into_iter().map(|(key, it)| (key, masked(it))).collect(),
        other => other,
    }
}

fn show_path(global: &GlobalArgs, ui: &Ui) -> CommandResult {
    let path = Config::config_path(global.config.as_deref(), &Environment::read()?);
    let exists = path.is_file();
    if ui.is_json() {
        ui.json(&serde_json::json!({ "path": path.display().to_string(), "exists": exists }));
        return Ok(ExitCode::SUCCESS);
    }
    ui.data(path.display());
    if !exists {
        ui.note("it does not exist yet; every key has its default");
    }
    Ok(ExitCode::SUCCESS)
}

/// Opens the configuration, even one with mistakes; creates it if there is none.
fn edit(global: &GlobalArgs, ui: &Ui) -> CommandResult {
    let around = Environment::read()?;
    let path = Config::config_path(global.config.as_deref(), &around);
    if !ui.is_interactive() {
        let what = "an editor needs a terminal";
        return Err(CommandError::usage(what).hint(format!("edit {} by hand", path.display())));
    }
    if !path.exists() {
        write_settings(&path, &config::commented_defaults())?;
    }
    loop {
        start_editor(&path)?;
        let Err(error) = Config::load(global.config.as_deref(), &global.set, &around) else {
            break;
        };
        ui.warn(format!("every verb refuses this configuration: {error}"));
        if ui.confirm("Edit it again?") != Some(true) {
            return Err(error.into());
        }
    }
    ui.success(format!("{} is valid", path.display()));
    Ok(ExitCode::SUCCESS)
}

/// Runs the editor of the user and waits for it.
fn start_editor(path: &Path) -> CommandResult<()> {
    let variable = |name| env::var(name).ok().filter(|it| !it.trim().is_empty());
    let editor =
        variable("VISUAL").or_else(|| variable("EDITOR")).unwrap_or_else(|| "vi".to_owned());
    let mut command = Command::new("sh");
    api_key::remove_key_variables(&mut command);
    // The variable may hold arguments, too.
    let status = command.arg("-c").arg(format!("{editor} \"$1\"")).arg("sh").arg(path).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(CommandError::usage(format!("the editor `{editor}` failed: {status}"))
            .hint("set VISUAL or EDITOR to another editor")),
        Err(error) => Err(CommandError::usage(format!("cannot start `{editor}`: {error}"))),
    }
}
