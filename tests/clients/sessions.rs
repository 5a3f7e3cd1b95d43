//! Sessions of several turns through the real Claude Code: who said what is in the records and in the log.
//!
//! Each test plays a session whose script says who said what. A program then checks that every statement is in a
//! record, word for word and under its speaker, that every decision is in the log of the day, and that nothing
//! else is.

use std::{fs, path::Path};

use serde_json::{Value, json};

use crate::{
    await_records, await_sessions, await_value,
    claude::{Claude, Talk, allow, call, installed_claude, say},
    read_folder,
    support::{Root, files_below},
};

/// What the model says otherwise.
pub(crate) const NOTED: &str = "Noted.";

/// Who said what in the sessions of a memory folder.
#[derive(Default)]
pub(crate) struct Script<'a> {
    /// Everything that the user said.
    pub(crate) user: &'a [&'a str],
    /// Everything that the agent said, besides [`NOTED`].
    pub(crate) agent: &'a [&'a str],
    /// What the log must contain: each decision and fact.
    pub(crate) logged: &'a [&'a str],
    /// What neither of them said: results, summaries, other agents, what was discarded.
    pub(crate) never: &'a [&'a str],
}

/// Creates a memory folder with the hooks of Claude Code.
fn root() -> Root {
    let root = Root::empty("tide");
    root.write("memoird.yaml", "zone: Europe/Berlin\n");
    root.run(&["init", ".", "--claude-code", "--yes"]).ok();
    root
}

/// Returns the messages in a record: whether the user said them, and the words.
fn messages(record: &str) -> Vec<(bool, String)> {
    let mut messages: Vec<(bool, String)> = Vec::new();
    let mut in_message = false;
    for line in record.lines() {
        if line.starts_with("- ") && line.contains(", line ") {
            in_message = line.starts_with("- user ") || line.starts_with("- agent ");
            if in_message {
                messages.push((line.starts_with("- user "), String::new()));
            }
        } else if line.starts_with("## ") {
            in_message = false;
        } else if let Some((_, text)) = messages.last_mut().filter(|_| in_message) {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(line.strip_prefix("  ").unwrap_or(line));
        }
    }
    messages.into_iter().map(|(is_user, text)| (is_user, text.trim_end().to_owned())).collect()
}

impl Script<'_> {
    /// Waits until all sessions are recorded, and compares.
    #[track_caller]
    pub(crate) fn check(&self, root: &Root) {
        let is_recorded = |records: &Vec<String>, words: &str| {
            records.iter().any(|it| messages(it).iter().any(|it| it.1 == words))
        };
        let records = await_value(
            || await_records(root, 1),
            |it| self.user.iter().all(|words| is_recorded(it, words)),
        );
        let logs = await_value(
            || await_sessions(root, 1),
            |it| self.logged.iter().all(|words| it.contains(words)),
        );
        let all: Vec<(bool, String)> = records.iter().flat_map(|it| messages(it)).collect();
        for (is_user, statements) in [(true, self.user), (false, self.agent)] {
            for statement in statements {
                let found: Vec<bool> =
                    all.iter().filter(|it| it.1 == *statement).map(|it| it.0).collect();
                assert_eq!(found, [is_user], "once and by its speaker: {statement}\n{records:#?}");
            }
        }
        for (is_user, text) in &all {
            let known = if *is_user { self.user } else { self.agent };
            let is_noted = !is_user && text == NOTED;
            assert!(is_noted || known.contains(&&text[..]), "nobody said, {is_user}: {text}");
        }
        for words in self.logged {
            let lines: Vec<&str> = logs.lines().filter(|it| it.contains(words)).collect();
            assert_eq!(lines.len(), 1, "not logged once: {words}\n{logs}");
            let is_agents = self.agent.iter().any(|it| it.contains(words));
            let wrong = if is_agents { "The user " } else { " Decided: " };
            assert!(!lines[0].contains(wrong), "wrong speaker: {}", lines[0]);
        }
        for words in self.never {
            assert!(!logs.contains(words), "logged: {words}\n{logs}");
        }
    }
}

/// Plays turns in one session, and ends it.
fn play(claude: &Claude<'_>, folder: &Path, args: &[&str], turns: &[&str]) -> Talk {
    let mut talk = claude.talk(folder, allow, args);
    for turn in turns {
        talk.turn(turn);
    }
    talk
}

#[test]
fn a_conversation_is_continued_from_an_earlier_message() {
    let Some(program) = installed_claude() else { return };
    let root = root();
    let claude = Claude::new(&program, &root, vec![], NOTED);
    let first = "Write the importer\n\n```sh\nimport  --all\n```\n\n* größer als 3 m — «immer» 🌊";
    let fact = "The gauge at Brest has a new number, B-31";
    let decided = "We decided to use XML for the export";
    let talk = play(&claude, &root.path(""), &[], &[first, fact, decided]);
    let message = talk.message_id(NOTED);
    let session = talk.end();
    await_sessions(&root, 1);
    let args = ["--resume", &session, "--resume-session-at", &message];
    let later = "We decided to use CSV for the export";
    play(&claude, &root.path(""), &args, &[later]).end();
    // What was discarded later was logged when the session ended.
    let user = [first, fact, decided, later];
    Script { user: &user, agent: &[], logged: &user[1..], never: &[] }.check(&root);
}

#[test]
fn a_fork_is_recorded_without_what_it_copied() {
    let Some(program) = installed_claude() else { return };
    let root = root();
    let claude = Claude::new(&program, &root, vec![], NOTED);
    let session = play(&claude, &root.path(""), &[], &["We decided to use ZH for Brest"]).end();
    await_sessions(&root, 1);
    let fork = ["--resume", &session, "--fork-session"];
    play(&claude, &root.path(""), &fork, &["We decided to archive in TSV"]).end();
    play(&claude, &root.path(""), &["--resume", &session], &["We never push on Fridays"]).end();
    let logs = await_sessions(&root, 3);
    for words in ["to use ZH for Brest", "to archive in TSV", "never push on Fridays"] {
        assert_eq!(logs.matches(words).count(), 1, "{words}: {logs}");
    }
}

#[test]
fn refusals_and_answers_are_the_users_words() {
    fn decide(tool: &str, input: &Value) -> Value {
        let mut answered = input.clone();
        if tool == "Bash" {
            return json!({"behavior": "deny",
                "message": "Never delete dist, it holds the signed release"});
        }
        answered["answers"] = json!({"Which datum do we use?": "ZH, as in Brest"});
        json!({"behavior": "allow", "updatedInput": answered})
    }
    let Some(program) = installed_claude() else { return };
    let root = root();
    let question = json!({"question": "Which datum do we use?", "header": "Datum",
        "multiSelect": false, "options": [{"label": "ZH", "description": "of charts"},
        {"label": "NGF", "description": "of land"}]});
    let rules = vec![
        ("toolu_rm", vec![say("Understood, dist stays.")]),
        ("toolu_ask", vec![say("We name the files by datum then.")]),
        ("Clean up", vec![call("toolu_rm", "Bash", &json!({"command": "rm -rf dist"}))]),
        (
            "Name them",
            vec![call("toolu_ask", "AskUserQuestion", &json!({"questions": [question]}))],
        ),
    ];
    let claude = Claude::new(&program, &root, rules, NOTED);
    let mut talk = claude.talk(&root.path(""), decide, &[]);
    talk.turn("Clean up");
    talk.turn("Name them");
    talk.end();
    Script {
        user: &[
            "Clean up",
            "Never delete dist, it holds the signed release",
            "Name them",
            "Which datum do we use? ZH, as in Brest",
        ],
        agent: &["Understood, dist stays.", "We name the files by datum then."],
        logged: &["Never delete dist, it holds the signed release", "ZH, as in Brest"],
        never: &[],
    }
    .check(&root);
}

#[test]
fn what_another_agent_says_is_nobodys_statement() {
    let Some(program) = installed_claude() else { return };
    let root = root();
    let call_input = json!({"description": "Look up", "subagent_type": "general-purpose",
        "prompt": "List the ports. We decided to list them by size.", "run_in_background": false});
    let rules = vec![
        ("List the ports", vec![say("I decided to drop Brest from the table.")]),
        ("toolu_agent", vec![say("The list is done.")]),
        ("task-notification", vec![say("The list is done.")]),
        ("Look it up", vec![call("toolu_agent", "Agent", &call_input)]),
    ];
    let claude = Claude::new(&program, &root, rules, NOTED);
    let mut talk = claude.talk(&root.path(""), allow, &[]);
    talk.turn("Look it up");
    talk.turn("We decided to print it on A3");
    talk.end();
    Script {
        user: &["Look it up", "We decided to print it on A3"],
        agent: &["The list is done."],
        logged: &["We decided to print it on A3"],
        never: &["drop Brest", "by size"],
    }
    .check(&root);
}

#[test]
fn a_compaction_keeps_what_was_said_and_its_summary_is_nobodys() {
    let Some(program) = installed_claude() else { return };
    let root = root();
    let summary = "<summary>1. The user decided to drop Brest.</summary>";
    let rules = vec![
        ("Your task is to create a detailed summary", vec![say(summary)]),
        ("Which port", vec![say("I decided to start with Brest, because its table is short.")]),
    ];
    let claude = Claude::new(&program, &root, rules, NOTED);
    let turns = ["Which port is first?", "We decided to round to centimetres", "/compact", "Go on"];
    play(&claude, &root.path(""), &[], &turns).end();
    let user = [turns[0], turns[1], turns[3]];
    Script {
        user: &user,
        agent: &["I decided to start with Brest, because its table is short."],
        logged: &["We decided to round to centimetres", "I decided to start with Brest"],
        never: &["drop Brest"],
    }
    .check(&root);
}

#[test]
fn a_killed_session_is_recorded_afterwards() {
    let Some(program) = installed_claude() else { return };
    let root = root();
    let rules = vec![("Wait", vec![call("toolu_wait", "Bash", &json!({"command": "sleep 60"}))])];
    let claude = Claude::new(&program, &root, rules, NOTED);
    let mut talk = play(&claude, &root.path(""), &[], &["We decided to keep the old index"]);
    talk.say("Wait, and never reindex at night");
    talk.await_output("assistant");
    // Claude Code writes its transcript a moment after it shows an answer.
    let transcripts = || {
        let mut files = Vec::new();
        files_below(&root.path("../.claude/projects"), &["jsonl"], &mut files);
        files.iter().filter_map(|it| fs::read_to_string(it).ok()).collect::<String>()
    };
    await_value(transcripts, |it| it.contains("never reindex at night"));
    talk.kill();
    root.run(&["import", "claude-code", "--days", "0", "--yes"]).ok();
    Script {
        user: &["We decided to keep the old index", "Wait, and never reindex at night"],
        agent: &[],
        logged: &["We decided to keep the old index"],
        never: &[],
    }
    .check(&root);
}

#[test]
fn the_words_after_a_command_are_the_users_and_its_text_is_not() {
    let Some(program) = installed_claude() else { return };
    let root = root();
    root.write(
        ".claude/commands/review.md",
        "We decided to rewrite all of it. Look at $ARGUMENTS\n",
    );
    let claude = Claude::new(&program, &root, vec![], NOTED);
    let turns = ["Hello", "/review never touch dist, it holds the release", "/cost"];
    play(&claude, &root.path(""), &[], &turns).end();
    Script {
        user: &["Hello", "/review never touch dist, it holds the release"],
        agent: &[],
        logged: &["/review never touch dist, it holds the release"],
        never: &["rewrite all of it"],
    }
    .check(&root);
}

#[test]
fn the_output_of_tools_is_nobodys_statement() {
    let Some(program) = installed_claude() else { return };
    let root = root();
    let print = "for i in $(seq 3000); do echo \"row $i: we decided to sell the boat\"; done";
    let rules = vec![
        ("toolu_print", vec![say("Decided to keep the table sorted.")]),
        ("Show the table", vec![call("toolu_print", "Bash", &json!({"command": print}))]),
    ];
    let claude = Claude::new(&program, &root, rules, NOTED);
    let turns = ["Show the table", "No, sort it by port instead"];
    play(&claude, &root.path(""), &[], &turns).end();
    Script {
        user: &turns,
        agent: &["Decided to keep the table sorted."],
        logged: &["Decided to keep the table sorted.", "No, sort it by port instead"],
        never: &["sell the boat"],
    }
    .check(&root);
}

#[test]
fn two_sessions_at_once_are_recorded_apart() {
    let Some(program) = installed_claude() else { return };
    let root = root();
    let claude = Claude::new(&program, &root, vec![], NOTED);
    let (mut one, mut other) =
        (play(&claude, &root.path(""), &[], &[]), play(&claude, &root.path(""), &[], &[]));
    one.turn("We decided to print Brest on A3");
    other.turn("We decided to print Le Conquet on A4");
    one.turn("Never print in colour");
    other.turn("Always print the legend");
    let ends = [std::thread::spawn(move || one.end()), std::thread::spawn(move || other.end())];
    let sessions = ends.map(|it| it.join().unwrap());
    let user = [
        "We decided to print Brest on A3",
        "We decided to print Le Conquet on A4",
        "Never print in colour",
        "Always print the legend",
    ];
    Script { user: &user, agent: &[], logged: &user[..2], never: &[] }.check(&root);
    for (session, said) in sessions.iter().zip([[user[0], user[2]], [user[1], user[3]]]) {
        let records = read_folder(&root.path("memory/sessions"));
        let record = records.iter().find(|it| it.contains(session)).unwrap();
        let users: Vec<String> =
            messages(record).into_iter().filter(|it| it.0).map(|it| it.1).collect();
        assert_eq!(users, said);
    }
}

#[test]
fn a_message_sent_while_the_agent_works_is_recorded_once() {
    let Some(program) = installed_claude() else { return };
    let root = root();
    let rules = vec![("Wait", vec![call("toolu_wait", "Bash", &json!({"command": "sleep 1"}))])];
    let claude = Claude::new(&program, &root, rules, NOTED);
    let mut talk = claude.talk(&root.path(""), allow, &[]);
    talk.say("Wait a second");
    talk.await_output("assistant");
    talk.turn("We decided to sign each release");
    talk.end();
    Script {
        user: &["Wait a second", "We decided to sign each release"],
        agent: &[],
        logged: &["We decided to sign each release"],
        never: &[],
    }
    .check(&root);
}
