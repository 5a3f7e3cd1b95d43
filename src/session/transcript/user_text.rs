//! Separates the user's own text from text that programs inserted.
//!
//! The programs of agents insert reminders, outputs of hooks, and their own commands into user messages,
//! between tags. Text that memoird inserted is between [`INJECTED_START`] and [`INJECTED_END`], which some
//! programs write as [`ESCAPED_MARKS`]. It is removed everywhere, so that showing a memory does not count
//! as a new mention of it.

use super::EntryContent;
use crate::memory::own_words;

/// Starts text that memoird inserts into a session.
pub const INJECTED_START: &str = "<memoird-context>";
/// Ends text that memoird inserts into a session.
pub const INJECTED_END: &str = "</memoird-context>";
/// The same marks as Gemini CLI writes them, which escapes the output of hooks.
pub const ESCAPED_MARKS: [&str; 2] = ["&lt;memoird-context&gt;", "&lt;/memoird-context&gt;"];

/// Tags of text that a program inserted into a message.
const PROGRAM_TAGS: [&str; 30] = [
    "system-reminder",
    "local-command-caveat",
    "local-command-stdout",
    "local-command-stderr",
    "bash-stdout",
    "bash-stderr",
    "user-prompt-submit-hook",
    "environment_context",
    "user_instructions",
    "permissions instructions",
    "task-notification",
    "subagent_notification",
    "turn_aborted",
    "codex_internal_context",
    "codex_delegation",
    "internal_model_context",
    "additional_context",
    "environments_instructions",
    "hook_prompt",
    "hook_context",
    "session_context",
    "model_switch",
    "apps_instructions",
    "collaboration_mode",
    "multi_agent_mode",
    "plugins_instructions",
    "recommended_plugins",
    "skills_instructions",
    "personality_spec",
    "token_budget",
];

/// Commands that only change how the agent's program works, or what it shows.
const PROGRAM_COMMANDS: [&str; 34] = [
    "add-dir",
    "agents",
    "bug",
    "clear",
    "color",
    "compact",
    "config",
    "context",
    "cost",
    "effort",
    "exit",
    "export",
    "fast",
    "fork",
    "help",
    "hooks",
    "ide",
    "login",
    "logout",
    "mcp",
    "memory",
    "model",
    "output-style",
    "permissions",
    "plugin",
    "quit",
    "release-notes",
    "rename",
    "resume",
    "rewind",
    "status",
    "statusline",
    "theme",
    "vim",
];

/// Returns whether a typed command contains the user's own words: `/review never touch dist`, `!make`.
pub fn is_request(command: &str) -> bool {
    let Some(typed) = command.strip_prefix('/') else { return command.starts_with('!') };
    let (name, words) = typed.split_once(char::is_whitespace).unwrap_or((typed, ""));
    !words.trim().is_empty() && !PROGRAM_COMMANDS.contains(&name)
}

/// Written by the program in place of the user when the user stops the agent.
const INTERRUPTED: &str = "[Request interrupted by user";

/// Splits a user message into its parts. The user's own text is complete, but for space around it.
pub fn split_user_text(text: &str) -> Vec<EntryContent> {
    let mut found = Vec::new();
    let (text, was_cut) = strip_injected(text);
    if was_cut {
        found.push(EntryContent::Injected);
    }
    if let Some(command) = command(&text) {
        found.push(EntryContent::Command(command));
        return found;
    }
    let mut own = text;
    for tag in PROGRAM_TAGS {
        let (rest, notices) = strip_tag(&own, tag);
        own = rest;
        let notices = notices.into_iter().filter(|it| !it.is_empty());
        found.extend(notices.map(EntryContent::Notice));
    }
    let own = own_words::trim_message(&own);
    if own.starts_with(INTERRUPTED) && own.ends_with(']') && !own.contains('\n') {
        found.push(EntryContent::Notice(own.to_owned()));
    } else if !own.is_empty() {
        found.push(EntryContent::User(own.to_owned()));
    }
    found
}

/// Removes text that memoird inserted, and returns whether there was any.
pub fn strip_injected(text: &str) -> (String, bool) {
    let (own, inside) = strip_between(text, INJECTED_START, INJECTED_END);
    let [start, end] = ESCAPED_MARKS;
    let (own, escaped) = strip_between(&own, start, end);
    (own, !inside.is_empty() || !escaped.is_empty())
}

/// Like [`strip_injected`], for tool output. Unclosed text is removed to the end, because the output
/// itself may be cut off.
pub fn strip_injected_output(text: &str) -> (String, bool) {
    let (own, was_cut) = strip_injected(text);
    match [INJECTED_START, ESCAPED_MARKS[0]].iter().filter_map(|it| own.find(it)).min() {
        Some(start) => (own[..start].to_owned(), true),
        None => (own, was_cut),
    }
}

/// Returns the command of the agent's program in a message: `/compact keep the plan`.
fn command(text: &str) -> Option<String> {
    let trimmed = text.trim_start();
    if let Some(typed) =
        tag_content(trimmed, "bash-input").filter(|_| trimmed.starts_with("<bash-input>"))
    {
        return Some(format!("!{}", typed.trim()));
    }
    if trimmed.starts_with("<user_shell_command>") {
        return Some(format!("!{}", tag_content(trimmed, "command")?.trim()));
    }
    let starts = ["<command-name>", "<command-message>"];
    if !starts.iter().any(|it| trimmed.starts_with(it)) {
        return None;
    }
    let name = tag_content(trimmed, "command-name")?.trim();
    let args = tag_content(trimmed, "command-args").unwrap_or_default();
    let args = own_words::trim_message(args);
    let name = if name.starts_with('/') { name.to_owned() } else { format!("/{name}") };
    // Behind the name, a quote would not be recognized.
    let space = if own_words::own_words(args).is_some() { "\n\n" } else { " " };
    Some(if args.is_empty() { name } else { format!("{name}{space}{args}") })
}

fn tag_content<'a>(text: &'a str, tag: &str) -> Option<&'a str> {
    let start = text.split_once(&format!("<{tag}>"))?.1;
    Some(start.split_once(&format!("</{tag}>"))?.0)
}

/// Removes closed tags with their content; an unclosed tag is text of the user.
fn strip_tag(text: &str, tag: &str) -> (String, Vec<String>) {
    strip_between(text, &format!("<{tag}>"), &format!("</{tag}>"))
}

fn strip_between(text: &str, open: &str, close: &str) -> (String, Vec<String>) {
    let mut rest = text;
    let mut own = String::new();
    let mut inside = Vec::new();
    while let Some((before, after)) = rest.split_once(open) {
        let Some((within, behind)) = after.split_once(close) else { break };
        own.push_str(before);
        inside.push(within.trim().to_owned());
        rest = behind;
    }
    own.push_str(rest);
    (own, inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[EntryContent]) {
        assert_eq!(split_user_text(text), expected, "{text}");
    }

    #[test]
    fn text_of_the_user_is_separated_from_text_of_programs() {
        let user = |text: &str| EntryContent::User(text.to_owned());
        let notice = |text: &str| EntryContent::Notice(text.to_owned());
        check(" fix <b> it\n\n  now ", &[user("fix <b> it\n\n  now")]);
        check(
            "one<system-reminder>\nbe good\n</system-reminder> two",
            &[notice("be good"), user("one two")],
        );
        check("<system-reminder>only</system-reminder>", &[notice("only")]);
        check(
            "a <system-reminder> that never ends",
            &[user("a <system-reminder> that never ends")],
        );
        check(
            "<command-name>/compact</command-name>\n<command-message>compact</command-message>\n\
             <command-args>keep the plan</command-args>",
            &[EntryContent::Command("/compact keep the plan".to_owned())],
        );
        check(
            "<command-name>/review</command-name>\n<command-args>> Skip it</command-args>",
            &[EntryContent::Command("/review\n\n> Skip it".to_owned())],
        );
        check("\n    make all\n\nfailed ", &[user("    make all\n\nfailed")]);
        check("<bash-input>ls -l</bash-input>", &[EntryContent::Command("!ls -l".to_owned())]);
        check("[Request interrupted by user]", &[notice("[Request interrupted by user]")]);
        check("", &[]);
    }

    #[test]
    fn a_command_with_words_is_a_request() {
        for command in ["/review never touch dist", "/my:fix it", "!make"] {
            assert!(is_request(command), "{command}");
        }
        for command in ["/review", "/compact keep the plan", "/model opus", "/clear"] {
            assert!(!is_request(command), "{command}");
        }
    }

    #[test]
    fn text_inserted_by_memoird_is_removed() {
        let user = |text: &str| EntryContent::User(text.to_owned());
        check("<memoird-context>\n- old\n</memoird-context>", &[EntryContent::Injected]);
        check("a<memoird-context>x</memoird-context>b", &[EntryContent::Injected, user("ab")]);
        check("a <memoird-context> cut off", &[user("a <memoird-context> cut off")]);
        assert_eq!(strip_injected_output("a<memoird-context>cut off"), ("a".to_owned(), true));
        check("</memoird-context>", &[user("</memoird-context>")]);
        let escaped = "&lt;memoird-context&gt;\n- old &lt;b&gt;\n&lt;/memoird-context&gt;";
        check(
            &format!("<hook_context>{escaped}</hook_context>\n\nGo on"),
            &[EntryContent::Injected, user("Go on")],
        );
        check("&lt;memoird-context&gt; cut off", &[user("&lt;memoird-context&gt; cut off")]);
        let (before, _) = escaped.rsplit_once('\n').unwrap();
        assert_eq!(strip_injected_output(&format!("a{before}")), ("a".to_owned(), true));
    }
}
