//! Claude Code in a terminal, driven by tmux: what has no form without one.

use std::{
    process::{Command, Output},
    time::{Duration, Instant},
};

use serde_json::json;

use crate::{
    WORKER_TIMEOUT, await_value,
    claude::{Claude, call, installed_claude, say},
    sessions::{NOTED, Script},
    support::{Root, skipped},
};

/// A terminal.
struct Terminal {
    socket: String,
}

impl Terminal {
    /// Starts a program in a terminal; `None`, with a message, without tmux.
    fn start(command: &Command) -> Option<Self> {
        if Command::new("tmux").arg("-V").output().is_err() {
            skipped("tmux was not found");
            return None;
        }
        let terminal = Self { socket: format!("memoird-test-{}", std::process::id()) };
        let mut args = ["new-session", "-d", "-x", "140", "-y", "50"].map(str::to_owned).to_vec();
        let folder = command.get_current_dir().unwrap().to_str().unwrap();
        args.extend(["-c", folder, "env", "-i", "TERM=xterm-256color"].map(str::to_owned));
        for (name, value) in command.get_envs() {
            let value = value.unwrap().to_str().unwrap();
            args.push(format!("{}={value}", name.to_str().unwrap()));
        }
        args.push(command.get_program().to_str().unwrap().to_owned());
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let started = terminal.tmux(&args);
        assert!(started.status.success(), "{}", String::from_utf8_lossy(&started.stderr));
        Some(terminal)
    }

    fn tmux(&self, args: &[&str]) -> Output {
        Command::new("tmux").args(["-L", &self.socket]).args(args).output().unwrap()
    }

    fn screen(&self) -> String {
        String::from_utf8_lossy(&self.tmux(&["capture-pane", "-p"]).stdout).into_owned()
    }

    /// Waits until the screen shows these words.
    #[track_caller]
    fn await_words(&self, words: &str) {
        await_value(|| self.screen(), |it| it.contains(words));
    }

    /// Presses a key, and waits until the screen shows these words.
    #[track_caller]
    fn press(&self, key: &str, words: &str) {
        self.tmux(&["send-keys", key]);
        self.await_words(words);
    }

    /// Types a line into a prompt, and waits until the screen shows it and then these words.
    #[track_caller]
    fn enter(&self, line: &str, words: &str) {
        let shown = line.trim_start_matches('!');
        let until = Instant::now() + WORKER_TIMEOUT;
        // A prompt that has just come does not take the keys yet.
        while !self.screen().contains(shown) && Instant::now() < until {
            self.tmux(&["send-keys", "C-u"]);
            self.tmux(&["send-keys", "-l", line]);
            let seen = Instant::now() + Duration::from_secs(2);
            while !self.screen().contains(shown) && Instant::now() < seen {
                std::thread::sleep(Duration::from_millis(50));
            }
        }
        self.press("Enter", words);
    }

    /// Presses Down until the chosen line of a menu contains these words.
    #[track_caller]
    fn choose(&self, words: &str) {
        let chosen = || {
            let screen = self.screen();
            let line = screen.lines().rfind(|it| it.contains('❯'));
            line.unwrap_or_default().to_owned()
        };
        for _ in 0..10 {
            let line = chosen();
            if line.contains(words) {
                return;
            }
            self.tmux(&["send-keys", "Down"]);
            await_value(chosen, |it| *it != line);
        }
        panic!("{words}: {}", self.screen());
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

#[test]
fn refusals_answers_and_a_rewind_in_a_terminal() {
    let Some(program) = installed_claude() else { return };
    let root = Root::empty("tide");
    root.write("memoird.yaml", "zone: Europe/Berlin\n");
    let folder = root.path("").to_str().unwrap().trim_end_matches('/').to_owned();
    // The first start asks nothing.
    let state = json!({"hasCompletedOnboarding": true, "theme": "dark",
        "customApiKeyResponses": {"approved": ["none"], "rejected": []},
        "projects": {folder: {"hasTrustDialogAccepted": true}}});
    root.write("../.claude.json", &format!("{state}\n"));
    root.write("../.claude/settings.json", "{\"permissions\": {\"defaultMode\": \"default\"}}\n");
    root.run(&["init", ".", "--claude-code", "--yes"]).ok();
    let question = json!({"question": "Which datum do we use?", "header": "Datum",
        "multiSelect": false, "options": [{"label": "ZH", "description": "of charts"},
        {"label": "NGF", "description": "of land"}]});
    let rules = vec![
        ("toolu_rm", vec![say("Understood, dist stays.")]),
        ("toolu_ask", vec![say("Then by datum.")]),
        ("Clean up", vec![call("toolu_rm", "Bash", &json!({"command": "rm -rf dist"}))]),
        (
            "Name them",
            vec![call("toolu_ask", "AskUserQuestion", &json!({"questions": [question]}))],
        ),
        ("XML", vec![say("The writer is ready.")]),
        ("CSV", vec![say("The columns are ready.")]),
    ];
    let claude = Claude::new(&program, &root, rules, NOTED);
    let Some(terminal) = Terminal::start(&claude.command(&root.path(""))) else { return };
    terminal.await_words("manual mode on");
    terminal.enter("Clean up", "Do you want to proceed?");
    terminal.choose(" No");
    terminal.press("Tab", "No, ");
    let refused = "Never delete dist, it holds the signed release";
    terminal.enter(refused, "Understood, dist stays.");
    terminal.enter("!echo \"tide $((40 + 2))\"", "tide 42");
    terminal.await_words(NOTED);
    terminal.enter("Name them", "Type something");
    terminal.choose("Type something");
    terminal.enter("ZH, as in Brest", "Then by datum.");
    terminal.enter("We decided to use XML for the export", "The writer is ready.");
    terminal.tmux(&["send-keys", "Escape"]);
    // Faster, both would be one key.
    std::thread::sleep(Duration::from_millis(300));
    terminal.press("Escape", "Restore the code and/or conversation");
    terminal.press("Up", "❯ We decided to use XML");
    terminal.press("Enter", "Restore conversation");
    terminal.press("Enter", "manual mode on");
    terminal.tmux(&["send-keys", "C-u"]);
    await_value(|| terminal.screen(), |it| !it.contains("XML"));
    terminal.enter("We decided to use CSV for the export", "The columns are ready.");
    terminal.tmux(&["send-keys", "-l", "/exit"]);
    terminal.press("Enter", "");
    Script {
        user: &[
            "Clean up",
            refused,
            "!echo \"tide $((40 + 2))\"",
            "Name them",
            "Which datum do we use? ZH, as in Brest",
            "We decided to use CSV for the export",
        ],
        agent: &["Understood, dist stays.", "Then by datum.", "The columns are ready."],
        logged: &[refused, "ZH, as in Brest", "We decided to use CSV for the export"],
        never: &["XML", "tide 42"],
    }
    .check(&root);
}
