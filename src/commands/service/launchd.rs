//! The service under launchd: the text of a launch agent, and calls of `launchctl`.
//!
//! The text is generated and tested on every system, and `service print --for launchd` shows it
//! anywhere. Only macOS has `launchctl`.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use super::file_error;
use crate::{
    config::{api_key, environment::Environment},
    operations::error::CommandResult,
    store::fs::vault::settings_files::write_settings,
};

const LABEL: &str = "memoird";

#[derive(Debug)]
pub(super) struct LaunchAgent {
    pub(super) path: PathBuf,
    pub(super) text: String,
}

impl LaunchAgent {
    /// Prepares the agent that starts `program`, with `--config` if `config` is given.
    pub(super) fn new(around: &Environment, program: &Path, config: Option<&Path>) -> Self {
        let library = around.home.join("Library");
        let path = library.join("LaunchAgents").join(format!("{LABEL}.plist"));
        Self { path, text: plist(program, config, &library.join("Logs/memoird.log")) }
    }

    /// Returns whether the installed file is the same; `None` if there is none.
    pub(super) fn matches_file(&self) -> Option<bool> {
        fs::read_to_string(&self.path).ok().map(|it| it == self.text)
    }

    /// Writes the file.
    pub(super) fn write(&self) -> CommandResult<()> {
        Ok(write_settings(&self.path, &self.text)?)
    }

    /// Removes the file.
    pub(super) fn remove(&self) -> CommandResult<()> {
        fs::remove_file(&self.path).map_err(|e| file_error("remove", &self.path, &e))
    }

    /// Makes launchd start the agent; returns why it failed.
    pub(super) fn start(&self) -> Result<(), String> {
        // A running agent still uses the old text.
        drop(stop());
        launchctl(&["bootstrap", &domain(), &self.path.to_string_lossy()]).map(drop)
    }

    pub(super) fn start_command(&self) -> String {
        format!("launchctl bootstrap {} \"{}\"", domain(), self.path.display())
    }
}

/// Makes launchd stop the agent; returns why it failed.
pub(super) fn stop() -> Result<(), String> {
    launchctl(&["bootout", &format!("{}/{LABEL}", domain())]).map(drop)
}

/// Returns the state that launchd reports, or why it reports none.
pub(super) fn agent_state() -> Result<String, String> {
    let output = launchctl(&["print", &format!("{}/{LABEL}", domain())])?;
    let line = output.lines().map(str::trim).find(|it| it.starts_with("state = "));
    Ok(line.map_or_else(|| "unknown".to_owned(), |it| it["state = ".len()..].to_owned()))
}

/// Returns the domain of the user's own agents.
fn domain() -> String {
    format!("gui/{}", rustix::process::getuid().as_raw())
}

fn launchctl(words: &[&str]) -> Result<String, String> {
    let output = api_key::remove_key_variables(&mut Command::new("launchctl"))
        .args(words)
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("launchctl: {e}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let message = String::from_utf8_lossy(&output.stderr);
    Err(format!(
        "launchctl {}: {}",
        words.join(" "),
        message.lines().next().unwrap_or("no reason given")
    ))
}

fn plist(program: &Path, config: Option<&Path>, log: &Path) -> String {
    let mut words = vec![program.to_string_lossy().into_owned(), "run".to_owned()];
    if let Some(config) = config {
        words.extend(["--config".to_owned(), config.to_string_lossy().into_owned()]);
    }
    let element = |it: &String| format!("        <string>{}</string>\n", xml_escaped(it));
    let arguments: Vec<_> = words.iter().map(element).collect();
    let arguments = arguments.concat();
    let log = xml_escaped(&log.to_string_lossy());
    format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<!-- A launch agent: it runs while you are logged in. To reload its configuration:
     launchctl kill HUP {domain}/{LABEL} -->
<plist version="1.0">
<dict>
    <key>Label</key>
    <string>{LABEL}</string>
    <key>ProgramArguments</key>
    <array>
{arguments}    </array>
    <key>RunAtLoad</key>
    <true/>
    <!-- Restarted after a failure, but not after it was asked to stop. -->
    <key>KeepAlive</key>
    <dict>
        <key>SuccessfulExit</key>
        <false/>
    </dict>
    <!-- The shortest time between restarts, in seconds: a bad configuration has to be fixed first. -->
    <key>ThrottleInterval</key>
    <integer>60</integer>
    <!-- A stop ends the current job at its next safe point. -->
    <key>ExitTimeOut</key>
    <integer>30</integer>
    <key>ProcessType</key>
    <string>Background</string>
    <key>EnvironmentVariables</key>
    <dict>
        <key>PATH</key>
        <string>/usr/local/bin:/usr/bin:/bin</string>
    </dict>
    <!-- No umask: generated files take the mode of their folder, and private files are always private. -->
    <key>StandardErrorPath</key>
    <string>{log}</string>
</dict>
</plist>
"#,
        domain = "gui/$(id -u)",
    )
}

fn xml_escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the strings of the array, or the single string, after a key.
    fn strings(text: &str, key: &str) -> Vec<String> {
        let after = text.split_once(&format!("<key>{key}</key>")).unwrap().1;
        let until =
            if after.trim_start().starts_with("<array>") { "</array>" } else { "</string>" };
        let (value, _) = after.split_once(until).unwrap();
        let parts = value.split("<string>").skip(1);
        parts.map(|it| it.split("</string>").next().unwrap().to_owned()).collect()
    }

    #[test]
    fn the_agent_starts_this_program_with_its_configuration() {
        let text = plist(Path::new("/usr/local/bin/memoird"), None, Path::new("/l"));
        assert_eq!(strings(&text, "ProgramArguments"), ["/usr/local/bin/memoird", "run"]);
        assert_eq!(strings(&text, "Label"), ["memoird"]);
        assert_eq!(strings(&text, "StandardErrorPath"), ["/l"]);
        let odd =
            plist(Path::new("/a & <b>/memoird"), Some(Path::new("/c d.yaml")), Path::new("/l"));
        assert_eq!(
            strings(&odd, "ProgramArguments"),
            ["/a &amp; &lt;b&gt;/memoird", "run", "--config", "/c d.yaml"]
        );
    }

    #[test]
    fn every_element_of_the_agent_is_closed() {
        let text = plist(Path::new("/a/memoird"), None, Path::new("/l"));
        for name in ["plist", "dict", "array", "key", "string", "integer"] {
            let count = |it: &str| text.matches(it).count();
            let opened = count(&format!("<{name}>")) + count(&format!("<{name} "));
            assert_eq!(opened, count(&format!("</{name}>")), "{name}");
        }
        assert!(text.starts_with("<?xml ") && text.ends_with("</plist>\n"));
        assert_eq!(text.matches("<!--").count(), text.matches("-->").count());
    }
}
