//! Failures between the program and a model server: each ends as expected, and no file changes.

use std::time::Duration;

use serde_json::json;

use super::{Wire, Workspace};
use crate::support::server::{Answer, ModelRequest, Server, StopReason, answer_well};

/// The expected outcome.
struct Expected {
    code: i32,
    /// The number of requests.
    requests: usize,
    /// A part of the reason in the receipt.
    reason: &'static str,
    /// A part of the engine line of `status`.
    status: &'static str,
}

/// Runs `compact` with a server that answers every request the same way.
#[track_caller]
fn check(wire: Wire, name: &str, answer: Answer, expected: &Expected) {
    check_in(&Workspace::new(wire, Server::scripted(vec![answer])), name, expected);
}

#[track_caller]
fn check_in(workspace: &Workspace, name: &str, expected: &Expected) {
    let before = workspace.root.files();
    let compacted = workspace.compact();
    let context = format!("{}, {name}: {}", workspace.config["model"]["provider"], compacted.ran);
    assert_eq!(compacted.ran.code, expected.code, "{context}");
    assert_eq!(workspace.server.count(), expected.requests, "{context}");
    assert_eq!(compacted.outcome(), "failed", "{context}");
    assert!(compacted.reason().contains(expected.reason), "{context}");
    let status = workspace.status();
    assert!(status.contains(expected.status), "{context}{status}");
    assert_eq!(workspace.root.files(), before, "{context}");
}

/// The status after three failures in a row.
const PAUSED: &str = "failed 3 times in a row and is paused until 2026-04-13 07:05 UTC";

#[test]
fn a_failing_server_gets_three_requests_and_is_then_paused() {
    let expected = |reason| Expected { code: 69, requests: 3, reason, status: PAUSED };
    for wire in Wire::BOTH {
        for (status, kind) in [
            (500, "api_error"),
            (503, "overloaded"),
            (529, "overloaded_error"),
            (408, "timeout"),
            (409, "conflict_error"),
            (429, "rate_limit_error"),
        ] {
            let answer = Answer::json(status, &wire.error(kind, "Later, please."));
            let expected = expected(if wire == Wire::Anthropic { kind } else { "answered " });
            check(wire, kind, answer, &expected);
        }
        check(wire, "closed", Answer::Close, &expected("lost before the answer was complete"));
        check(
            wire,
            "cut off",
            Answer::CutOff(b"{\"id\": ".to_vec()),
            &expected("lost before the answer was complete"),
        );
        check(
            wire,
            "bad chunks",
            Answer::BadChunks,
            &expected("lost before the answer was complete"),
        );
    }
    let answer = Answer::json(500, &Wire::Ollama.error("", "model runner stopped"));
    check(Wire::Ollama, "500", answer, &expected("answered 500"));
}

#[test]
fn each_timeout_ends_the_wait_for_a_slow_server() {
    let pause = Duration::from_millis;
    for wire in Wire::BOTH {
        for (key, deadline, answer, reason) in [
            ("first_byte", "200ms", Answer::Hang, "did not answer in time (the first byte, 0.2 s)"),
            ("idle", "200ms", Answer::Drip(pause(2000)), "(between two pieces, 0.2 s)"),
            ("total", "700ms", Answer::Drip(pause(50)), "(in total, 0.7 s)"),
        ] {
            let mut workspace = Workspace::new(wire, Server::scripted(vec![answer]));
            workspace.set("/model/timeouts", json!({ key: deadline }));
            check_in(&workspace, key, &Expected { code: 69, requests: 3, reason, status: PAUSED });
        }
    }
}

#[test]
fn an_invalid_answer_is_not_requested_again() {
    let expected = |reason| Expected { code: 69, requests: 1, reason, status: "ready" };
    for wire in Wire::ALL {
        let page = "<!doctype html><title>Sign in</title>";
        let html = Answer::text(200, page).with("content-type", "text/html");
        check(wire, "html", html, &expected("answered with a page of HTML"));
        check(wire, "empty", Answer::text(200, ""), &expected("answered with an empty body"));
        check(wire, "garbage", Answer::text(200, "\u{1}\u{2}"), &expected("text that is not JSON"));
        check(
            wire,
            "no message",
            Answer::json(200, &json!({ "a": 1 })),
            &expected("JSON that is not"),
        );
        let bytes = Answer::Http { status: 200, headers: Vec::new(), body: vec![0xff; 99] };
        check(wire, "bytes", bytes, &expected("bytes that are not text"));
        let huge = Answer::text(200, &" ".repeat(9_000_000));
        check(wire, "9 MB", huge, &expected("is larger than 8 MB"));
        check(wire, "bomb", Answer::Bomb, &expected("is larger than 8 MB"));
    }
}

#[test]
fn a_redirect_is_not_followed_and_gets_no_key() {
    for wire in Wire::BOTH {
        for status in [301, 302, 307, 308] {
            let elsewhere = Server::well_behaved();
            let to = elsewhere.url() + "/v1/messages";
            let answer = Answer::text(status, "").with("location", &to);
            let reason = "redirects to 127.0.0.1";
            let expected = Expected { code: 69, requests: 1, reason, status: "refused the key" };
            check(wire, "redirect", answer, &expected);
            assert_eq!(elsewhere.count(), 0);
        }
    }
}

#[test]
fn a_refused_account_stops_all_calls_until_model_test() {
    for wire in Wire::BOTH {
        for (status, kind) in [
            (401, "authentication_error"),
            (402, "billing_error"),
            (403, "permission_error"),
            (429, "insufficient_quota"),
        ] {
            if wire == Wire::Anthropic && status == 429 {
                continue;
            }
            let refused = Answer::json(status, &wire.error(kind, "No."));
            let mut left = 1;
            let server = Server::answering(move |request| {
                left -= 1;
                if left >= 0 { refused.clone() } else { answer_well(request) }
            });
            let workspace = Workspace::new(wire, server);
            let first = workspace.compact();
            assert_eq!(first.ran.code, 69, "{}", first.ran);
            let reason = format!("refuses the key or the account ({status}, {kind})");
            assert!(first.reason().contains(&reason), "{}", first.ran);
            for _ in 0..4 {
                let again = workspace.compact();
                assert_eq!(again.ran.code, 69, "{}", again.ran);
                assert!(again.reason().contains("`memoird model test` tries again"));
            }
            assert!(workspace.status().contains("refused the key or the account before"));
            assert_eq!(workspace.server.count(), 1, "{wire:?} {status}");
            workspace.run(&["model", "test"]).ok();
            assert_eq!(workspace.compact().outcome(), "written");
            assert_eq!(workspace.server.count(), 3);
        }
    }
}

#[test]
fn another_key_source_counts_as_another_account() {
    let refused = Answer::json(401, &Wire::Openai.error("invalid_api_key", "No."));
    let server = Server::answering(move |request| match request.header("authorization") {
        Some("Bearer sk-right") => answer_well(request),
        _ => refused.clone(),
    });
    let mut workspace = Workspace::new(Wire::Openai, server);
    assert_eq!(workspace.compact().ran.code, 69);
    workspace.root.write("../key", "sk-right\n");
    std::fs::set_permissions(
        workspace.root.home("key"),
        std::os::unix::fs::PermissionsExt::from_mode(0o600),
    )
    .unwrap();
    workspace.set("/model/key_file", json!("~/key"));
    assert_eq!(workspace.compact().outcome(), "written");
}

#[test]
fn retry_after_is_honored_within_limits() {
    for wire in Wire::BOTH {
        for (retry_after, requests, status) in [
            ("0", 3, PAUSED),
            ("soon", 3, PAUSED),
            // Half an hour, as a date, and a duration above the maximum pause.
            ("Mon, 13 Apr 2026 07:30:00 GMT", 1, "paused until 2026-04-13 07:30 UTC"),
            ("Mon, 13 Apr 2026 06:30:00 GMT", 3, PAUSED),
            ("99999", 1, "paused until 2026-04-13 13:00 UTC"),
        ] {
            let busy = wire.error("rate_limit_error", "Later.");
            let answer = Answer::json(429, &busy).with("retry-after", retry_after);
            let expected = Expected { code: 69, requests, reason: "answered 429", status };
            check(wire, retry_after, answer, &expected);
        }
    }
}

#[test]
fn a_short_outage_is_retried() {
    for wire in Wire::BOTH {
        let mut earlier_requests = 0;
        let server = Server::answering(move |request| {
            earlier_requests += 1;
            match earlier_requests {
                1 => Answer::json(529, &wire.error("overloaded_error", "Later.")),
                2 => Answer::Close,
                _ => answer_well(request),
            }
        });
        let workspace = Workspace::new(wire, server);
        let compacted = workspace.compact();
        assert_eq!((compacted.ran.code, compacted.outcome()), (0, "written"), "{}", compacted.ran);
        assert_eq!(workspace.server.count(), 3);
        assert!(workspace.status().contains("ready"));
    }
}

#[test]
fn an_open_circuit_lets_one_request_through_after_its_pause() {
    for wire in Wire::BOTH {
        let busy = Answer::json(500, &wire.error("api_error", "Oh."));
        let mut workspace = Workspace::new(wire, Server::scripted(vec![busy]));
        workspace.compact();
        assert_eq!(workspace.server.count(), 3);
        for _ in 0..3 {
            let waiting = workspace.compact();
            assert_eq!(waiting.ran.code, 69);
            assert!(waiting.reason().contains(PAUSED), "{}", waiting.ran);
        }
        workspace.root.set_now("2026-04-13T09:04:59+02:00");
        assert_eq!(workspace.compact().ran.code, 69);
        assert_eq!(workspace.server.count(), 3);
        workspace.root.set_now("2026-04-13T09:05:00+02:00");
        assert_eq!(workspace.compact().ran.code, 69);
        assert_eq!(workspace.server.count(), 4);
        assert!(
            workspace.status().contains("paused until 2026-04-13 07:20 UTC"),
            "{}",
            workspace.status()
        );
    }
}

/// A function that answers requests.
type AnswerFn = Box<dyn FnMut(&ModelRequest) -> Answer + Send>;

#[test]
fn a_model_that_always_fails_gets_at_most_thirty_requests_in_a_day() {
    let wire = Wire::Openai;
    let always = |answer: Answer| move |_: &ModelRequest| answer.clone();
    let says = |text: &'static str, stop_reason| {
        move |request: &ModelRequest| request.reply_with(text, stop_reason)
    };
    let bad = "### Decisions\n- Sold 731 licences [2026-03-02:3]";
    let failing: [(&str, AnswerFn); 7] = [
        ("500", Box::new(always(Answer::json(500, &wire.error("server_error", "Oh."))))),
        ("404", Box::new(always(Answer::json(404, &wire.error("model_not_found", "None."))))),
        ("a page", Box::new(always(Answer::text(200, "<html>")))),
        ("no form", Box::new(says("Sorry.", StopReason::Complete))),
        ("refuses", Box::new(says("No.", StopReason::Refusal))),
        ("is cut off", Box::new(says("### Decisions\n- Moved", StopReason::TokenLimit))),
        ("lies", Box::new(says(bad, StopReason::Complete))),
    ];
    for (name, answer) in failing {
        let server = Server::answering(answer);
        let mut workspace = Workspace::new(wire, server);
        workspace.set("/compaction/extract", json!(true));
        for day in 1..=28 {
            workspace.root.write(&format!("memory/2026-03-{day:02}.md"), super::LOG);
        }
        for hour in 0..24 {
            workspace.root.set_now(&format!("2026-04-13T{hour:02}:10:00+02:00"));
            workspace.run(&["compact"]);
        }
        assert!(workspace.server.count() <= 30, "{name}: {}", workspace.server.count());
    }
}

/// Returns the `response_format` of a request.
fn response_format(request: &ModelRequest) -> String {
    request.body["response_format"]["type"].as_str().unwrap_or("none").to_owned()
}

#[test]
fn a_server_without_schema_support_gets_another_format_from_then_on() {
    for (refuses, expected) in [
        (&["json_schema"][..], &["json_schema", "json_object"][..]),
        (&["json_schema", "json_object"], &["json_schema", "json_object", "none"]),
    ] {
        let server = Server::answering(move |request| {
            if refuses.contains(&&response_format(request)[..]) {
                let words = "'response_format.type' is not supported";
                Answer::json(400, &json!({ "error": words }))
            } else {
                answer_well(request)
            }
        });
        let mut workspace = Workspace::new(Wire::Openai, server);
        workspace.set("/compaction/extract", json!(true));
        let ran = workspace.run(&["compact", "extract"]).ok();
        let forms: Vec<String> = workspace.server.requests().iter().map(response_format).collect();
        assert_eq!(forms, expected, "{ran}");
        // The schema is then part of the prompt.
        let last = workspace.server.requests().pop().unwrap();
        assert!(last.system().contains("that this JSON Schema accepts"));
        workspace.root.write("memory/2026-04-08.md", "- The archive moved to Ghent\n");
        workspace.run(&["compact", "extract"]).ok();
        assert_eq!(workspace.server.count(), expected.len() + 1);
        assert_eq!(
            response_format(&workspace.server.requests().pop().unwrap()),
            *expected.last().unwrap()
        );
    }
}

#[test]
fn a_reasoning_model_gets_the_parameters_it_accepts() {
    let server = Server::answering(|request| {
        if request.body["max_tokens"].is_null() && request.body["temperature"].is_null() {
            answer_well(request)
        } else {
            let words = "Unsupported parameter: use 'max_completion_tokens' instead.";
            Answer::json(400, &Wire::Openai.error("unsupported_parameter", words))
        }
    });
    let workspace = Workspace::new(Wire::Openai, server);
    assert_eq!(workspace.compact().outcome(), "written");
    assert_eq!(workspace.server.count(), 2);
}

#[test]
fn a_refused_request_fails_the_job_and_is_not_repeated() {
    for wire in Wire::ALL {
        for status in [400, 404, 422] {
            let answer = Answer::json(status, &wire.error("not_found_error", "no such model"));
            let reason = "refuses the request (";
            check(
                wire,
                "refused",
                answer,
                &Expected { code: 1, requests: 1, reason, status: "ready" },
            );
        }
        let gone = Answer::json(200, &json!({ "type": "error", "error": "no such model" }));
        if wire != Wire::Anthropic {
            let expected = Expected { code: 69, requests: 3, reason: "answered ", status: PAUSED };
            check(wire, "an error with 200", gone, &expected);
        }
    }
}

#[test]
fn an_overlong_request_fails_with_that_reason() {
    // The first request and four shorter ones.
    for (wire, kind, words) in [
        (
            Wire::Anthropic,
            "invalid_request_error",
            "prompt is too long: 210000 tokens > 200000 maximum",
        ),
        (Wire::Openai, "context_length_exceeded", "maximum context length is 8192 tokens"),
        (
            Wire::Openai,
            "server_error",
            "the request exceeds the available context size (4096 tokens)",
        ),
    ] {
        let answer = Answer::json(400, &wire.error(kind, words));
        let reason = "too long for the model, which reads";
        check(wire, kind, answer, &Expected { code: 1, requests: 5, reason, status: "ready" });
    }
    let answer = Answer::json(413, &Wire::Anthropic.error("request_too_large", "Too large."));
    let reason = "too long for the model";
    check(
        Wire::Anthropic,
        "413",
        answer,
        &Expected { code: 1, requests: 5, reason, status: "ready" },
    );
}

#[test]
fn an_overlong_request_is_split_by_the_reported_limit() {
    let refuse = |wire: Wire| {
        let message = "prompt is too long: 9000 tokens > 2500 maximum context length";
        move |_: &ModelRequest| Answer::json(400, &wire.error("context_length_exceeded", message))
    };
    let run_out = |request: &ModelRequest| {
        let text = "### Decisions\n- Row 1 of the led";
        let mut body = request.message(text, StopReason::ContextFull);
        body["usage"] = json!({
            "prompt_tokens": 2400, "completion_tokens": 100,
            "input_tokens": 2400, "output_tokens": 100,
        });
        Answer::json(200, &body)
    };
    for wire in [Wire::Anthropic, Wire::Openai] {
        check_is_split(wire, refuse(wire));
        check_is_split(wire, run_out);
    }
}

/// Checks that requests are split after `too_long` answers one that is too long.
#[track_caller]
fn check_is_split(wire: Wire, too_long: impl Fn(&ModelRequest) -> Answer + Send + 'static) {
    let rows: Vec<String> =
        (1..=180).map(|i| format!("- Row {i} of the ledger is {i}7 mm long")).collect();
    let words = rows.join("\n");
    let server = Server::answering(move |request| {
        if request.body.to_string().len() < 9_000 {
            answer_well(request)
        } else {
            too_long(request)
        }
    });
    let mut workspace = Workspace::new(wire, server);
    workspace.set("/model/max_output_tokens", json!(500));
    workspace.root.write("memory/2026-04-07.md", &words);
    let compacted = workspace.compact();
    assert_eq!(compacted.outcome(), "written", "{}", compacted.ran);
    let sent: Vec<usize> =
        workspace.server.requests().iter().map(|it| it.body.to_string().len()).collect();
    assert!(sent.len() > 2 && sent[0] >= 9_000, "{sent:?}");
    assert!(sent[1..].iter().all(|it| *it < 9_000), "{sent:?}");
    let week = workspace.week().unwrap();
    // Each part has its say, and together they hold every row.
    let parts: Vec<_> = workspace.server.requests()[1..].iter().map(ModelRequest::lines).collect();
    for part in &parts {
        assert!(week.contains(part[0].1.trim_start_matches("- ")), "{week}");
    }
    let in_parts: Vec<&String> = parts.iter().flatten().map(|it| &it.1).collect();
    assert!(rows.iter().all(|it| in_parts.contains(&it)), "{in_parts:?}");
    // The limit is remembered.
    workspace.root.append("memory/2026-04-07.md", "\n- One row more\n");
    workspace.compact().ran.ok();
    let again = &workspace.server.requests()[sent.len()..];
    assert!(again.iter().all(|it| it.body.to_string().len() < 9_000));
}

#[test]
fn a_server_that_truncates_the_prompt_is_detected() {
    for wire in [Wire::Openai, Wire::Ollama] {
        let server = Server::answering(move |request| {
            let mut body = request.message("### Decisions\n- x", StopReason::Complete);
            body["usage"] = json!({ "prompt_tokens": 40, "completion_tokens": 3 });
            body["prompt_eval_count"] = json!(40);
            Answer::json(200, &body)
        });
        let workspace = Workspace::new(wire, server);
        let compacted = workspace.compact();
        assert!(compacted.reason().contains("it cut the request"), "{}", compacted.ran);
        assert_eq!((compacted.ran.code, workspace.server.count()), (1, 1));
        assert_eq!(workspace.week(), None);
    }
}

#[test]
fn a_hosted_model_needs_a_key_and_a_local_one_does_not() {
    let mut workspace = Workspace::new(Wire::Anthropic, Server::well_behaved());
    let mut command = workspace.root.command(&["compact"]);
    let ran = workspace.root.finish(command, &["compact"]);
    assert_eq!(ran.code, 78, "{ran}");
    assert!(ran.stderr.contains("no key for"), "{ran}");
    // A local server needs no key.
    workspace.set("/model/provider", json!("openai"));
    workspace.set("/model/base_url", json!(workspace.server.url() + "/v1"));
    command = workspace.root.command(&["compact"]);
    workspace.root.finish(command, &["compact"]).ok();
    assert_eq!(workspace.server.requests()[0].header("authorization"), None);
}

#[test]
fn an_unreachable_server_is_reported() {
    for wire in Wire::ALL {
        let mut workspace = Workspace::new(wire, Server::well_behaved());
        let gone = Server::well_behaved().url();
        workspace.set("/model/base_url", json!(gone));
        let compacted = workspace.compact();
        assert_eq!(compacted.ran.code, 69, "{}", compacted.ran);
        assert!(compacted.reason().contains("no connection to"), "{}", compacted.ran);
        assert!(workspace.status().contains(PAUSED), "{}", workspace.status());
    }
}
