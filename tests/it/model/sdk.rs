//! What we send is what the official SDKs would send, by their own types. Runs where Python has them.

use std::{
    io::Write as _,
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use super::{Desk, LOG, Wire};
use crate::support::server::{Answer, Asked, Ends, Server, good};

/// Claims what no line says, so that it is asked once more.
fn hasty(asked: &Asked) -> Answer {
    let reply = good(asked);
    let is_first = asked.turns().len() == 1 && reply.contains("- ");
    let more = if is_first { "\n- Grew by 731 rows [2026-04-07:3]\n" } else { "" };
    asked.saying(&format!("{}{more}", reply.trim_end()), Ends::Well)
}

/// Returns the bodies of all stages, asked for in the first and in the second turn.
fn requests(wire: Wire) -> Vec<Asked> {
    let mut desk = Desk::new(wire, Server::answering(hasty));
    desk.set("/compaction/extract", json!(true));
    desk.root.write("memory/2026-03-10.md", LOG);
    desk.run(&["compact"]);
    desk.run(&["model", "test"]).ok();
    desk.server.requests()
}

#[expect(clippy::print_stderr, reason = "a person is told what was compared")]
#[test]
fn requests_and_replies_have_the_types_of_the_sdks() {
    let python = std::env::var("MEMOIRD_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sdk/check.py");
    let mut lines = String::new();
    for wire in Wire::BOTH {
        let requests = requests(wire);
        let is_there = |key: &str| requests.iter().any(|it| it.system().contains(key));
        assert!(is_there("{\"memories\":") && is_there("{\"operations\":"), "{wire:?}");
        assert!(requests.iter().any(|it| it.turns().len() == 3), "{wire:?}");
        for asked in &requests {
            let Answer::Http { body, .. } = hasty(asked) else { unreachable!() };
            let mut reply: Value = serde_json::from_slice(&body).unwrap();
            if wire == Wire::Openai {
                reply["created"] = json!(1_775_000_000);
            }
            for (kind, body) in [("request", &asked.body), ("reply", &reply)] {
                let line = json!({ "provider": wire.provider(), "kind": kind, "body": body });
                lines += &line.to_string();
                lines.push('\n');
            }
        }
    }
    for wire in Wire::BOTH {
        let envelopes = super::batch::envelopes(wire);
        assert!(envelopes.iter().any(|it| it.0 == "batch line"), "{wire:?}");
        for (kind, body) in envelopes {
            let line = json!({ "provider": wire.provider(), "kind": kind, "body": body });
            lines += &line.to_string();
            lines.push('\n');
        }
    }
    let mut command = Command::new(&python);
    command.arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let Ok(mut child) = command.spawn() else {
        eprintln!("skipped: there is no {python}");
        return;
    };
    // Without the packages it ends before it reads.
    drop(child.stdin.take().unwrap().write_all(lines.as_bytes()));
    let ended = child.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&ended.stdout).into_owned();
    match ended.status.code() {
        Some(77) => eprintln!("{}", String::from_utf8_lossy(&ended.stderr)),
        code => assert_eq!(code, Some(0), "{told}{}", String::from_utf8_lossy(&ended.stderr)),
    }
    eprint!("{told}");
}
