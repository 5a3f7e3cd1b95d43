//! Checks requests and replies against the types of the official SDKs. Needs Python with these SDKs.

use std::{
    io::Write as _,
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use super::{LOG, Wire, Workspace};
use crate::support::server::{Answer, ModelRequest, Server, StopReason, valid_reply};

/// Returns a valid answer, with one unsupported bullet in a week to cause a second request, and no list at first.
fn answer_with_fault(request: &ModelRequest) -> Answer {
    let reply = valid_reply(request);
    if request.turns().len() == 1 && reply.starts_with("{\"operations\"") {
        return request.reply_with("There is nothing to change.", StopReason::Complete);
    }
    let is_summary = reply.starts_with("### ");
    let more = if is_summary { "\n- Grew by 731 rows [2026-04-07:3]\n" } else { "" };
    request.reply_with(&format!("{}{more}", reply.trim_end()), StopReason::Complete)
}

/// Returns requests of all stages, with second ones and second turns.
fn requests(wire: Wire) -> Vec<ModelRequest> {
    let mut workspace = Workspace::new(wire, Server::answering(answer_with_fault));
    workspace.set("/compaction/extract", json!(true));
    workspace.root.write("memory/2026-03-10.md", LOG);
    workspace.run(&["compact"]);
    workspace.run(&["model", "test"]).ok();
    workspace.server.requests()
}

#[expect(clippy::print_stderr, reason = "the person should see what was compared")]
#[test]
fn requests_and_replies_match_the_sdk_types() {
    let python = std::env::var("MEMOIRD_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sdk/check.py");
    let mut lines = String::new();
    for wire in Wire::BOTH {
        let requests = requests(wire);
        let has_request_with = |key: &str| requests.iter().any(|it| it.system().contains(key));
        assert!(
            has_request_with("{\"statements\":") && has_request_with("{\"operations\":"),
            "{wire:?}"
        );
        assert!(requests.iter().any(|it| it.turns().len() == 3), "{wire:?}");
        assert!(requests.iter().any(ModelRequest::is_repair), "{wire:?}");
        for request in &requests {
            let Answer::Http { body, .. } = answer_with_fault(request) else { unreachable!() };
            let mut reply: Value = serde_json::from_slice(&body).unwrap();
            if wire == Wire::Openai {
                reply["created"] = json!(1_775_000_000);
            }
            for (kind, body) in [("request", &request.body), ("reply", &reply)] {
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
        eprintln!("skipped: `{python}` was not found");
        return;
    };
    // Without the packages the script ends before it reads stdin.
    drop(child.stdin.take().unwrap().write_all(lines.as_bytes()));
    let ended = child.wait_with_output().unwrap();
    let stdout = String::from_utf8_lossy(&ended.stdout).into_owned();
    match ended.status.code() {
        Some(77) => eprintln!("{}", String::from_utf8_lossy(&ended.stderr)),
        code => assert_eq!(code, Some(0), "{stdout}{}", String::from_utf8_lossy(&ended.stderr)),
    }
    eprint!("{stdout}");
}
