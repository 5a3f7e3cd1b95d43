//! What goes wrong between us and a server: each has its end, and no file is touched.

use std::time::Duration;

use serde_json::json;

use super::{Desk, Wire};
use crate::support::server::{Answer, Asked, Ends, Server, fluent};

/// How a behaviour is to end.
struct End {
    code: i32,
    /// Requests that were made.
    requests: usize,
    /// What the receipt says.
    reason: &'static str,
    /// What `status` says of the engine then.
    status: &'static str,
}

/// Has a server do the same to every request.
#[track_caller]
fn check(wire: Wire, name: &str, answer: Answer, end: &End) {
    check_in(&Desk::new(wire, Server::scripted(vec![answer])), name, end);
}

#[track_caller]
fn check_in(desk: &Desk, name: &str, end: &End) {
    let before = desk.root.files();
    let compacted = desk.compact();
    let told = format!("{}, {name}: {}", desk.config["model"]["provider"], compacted.ran);
    assert_eq!(compacted.ran.code, end.code, "{told}");
    assert_eq!(desk.server.count(), end.requests, "{told}");
    assert_eq!(compacted.outcome(), "failed", "{told}");
    assert!(compacted.reason().contains(end.reason), "{told}");
    let status = desk.status();
    assert!(status.contains(end.status), "{told}{status}");
    assert_eq!(desk.root.files(), before, "{told}");
}

/// After three failures in a row it is paused.
const TIRED: &str = "failed 3 times in a row and is paused until 2026-04-13 07:05 UTC";

#[test]
fn a_server_in_trouble_is_asked_three_times_and_then_left_alone() {
    let end = |reason| End { code: 69, requests: 3, reason, status: TIRED };
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
            let end = end(if wire == Wire::Anthropic { kind } else { "answered " });
            check(wire, kind, answer, &end);
        }
        check(wire, "closed", Answer::Close, &end("lost before the answer was complete"));
        check(
            wire,
            "cut off",
            Answer::CutOff(b"{\"id\": ".to_vec()),
            &end("lost before the answer was complete"),
        );
        check(wire, "bad chunks", Answer::BadChunks, &end("lost before the answer was complete"));
    }
    let answer = Answer::json(500, &Wire::Ollama.error("", "model runner stopped"));
    check(Wire::Ollama, "500", answer, &end("answered 500"));
}

#[test]
fn a_slow_server_is_waited_for_so_long_and_no_longer() {
    let pause = Duration::from_millis;
    for wire in Wire::BOTH {
        for (key, deadline, answer, reason) in [
            ("first_byte", "200ms", Answer::Hang, "did not answer in time (the first byte, 0.2 s)"),
            ("idle", "200ms", Answer::Drip(pause(2000)), "(between two pieces, 0.2 s)"),
            ("total", "700ms", Answer::Drip(pause(50)), "(in total, 0.7 s)"),
        ] {
            let mut desk = Desk::new(wire, Server::scripted(vec![answer]));
            desk.set("/model/timeouts", json!({ key: deadline }));
            check_in(&desk, key, &End { code: 69, requests: 3, reason, status: TIRED });
        }
    }
}

#[test]
fn a_broken_server_is_not_asked_twice_for_the_same() {
    let end = |reason| End { code: 69, requests: 1, reason, status: "ready" };
    for wire in Wire::ALL {
        let page = "<!doctype html><title>Sign in</title>";
        let html = Answer::text(200, page).with("content-type", "text/html");
        check(wire, "html", html, &end("answered with a page of HTML"));
        check(wire, "empty", Answer::text(200, ""), &end("answered with an empty body"));
        check(wire, "garbage", Answer::text(200, "\u{1}\u{2}"), &end("text that is not JSON"));
        check(wire, "no message", Answer::json(200, &json!({ "a": 1 })), &end("JSON that is not"));
        let bytes = Answer::Http { status: 200, headers: Vec::new(), body: vec![0xff; 99] };
        check(wire, "bytes", bytes, &end("bytes that are not text"));
        let huge = Answer::text(200, &" ".repeat(9_000_000));
        check(wire, "9 MB", huge, &end("is larger than 8 MB"));
        check(wire, "bomb", Answer::Bomb, &end("is larger than 8 MB"));
    }
}

#[test]
fn a_redirect_is_not_followed_and_no_key_goes_there() {
    for wire in Wire::BOTH {
        for status in [301, 302, 307, 308] {
            let elsewhere = Server::fluent();
            let to = elsewhere.url() + "/v1/messages";
            let answer = Answer::text(status, "").with("location", &to);
            let reason = "redirects to 127.0.0.1";
            let end = End { code: 69, requests: 1, reason, status: "refused the key" };
            check(wire, "redirect", answer, &end);
            assert_eq!(elsewhere.count(), 0);
        }
    }
}

#[test]
fn a_refused_account_stops_all_until_a_person_tries() {
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
            let server = Server::answering(move |asked| {
                left -= 1;
                if left >= 0 { refused.clone() } else { fluent(asked) }
            });
            let desk = Desk::new(wire, server);
            let first = desk.compact();
            assert_eq!(first.ran.code, 69, "{}", first.ran);
            let reason = format!("refuses the key or the account ({status}, {kind})");
            assert!(first.reason().contains(&reason), "{}", first.ran);
            for _ in 0..4 {
                let again = desk.compact();
                assert_eq!(again.ran.code, 69, "{}", again.ran);
                assert!(again.reason().contains("`memoird model test` tries again"));
            }
            assert!(desk.status().contains("refused the key or the account before"));
            assert_eq!(desk.server.count(), 1, "{wire:?} {status}");
            desk.run(&["model", "test"]).ok();
            assert_eq!(desk.compact().outcome(), "written");
            assert_eq!(desk.server.count(), 3);
        }
    }
}

#[test]
fn another_place_for_the_key_is_another_account() {
    let refused = Answer::json(401, &Wire::Openai.error("invalid_api_key", "No."));
    let server = Server::answering(move |asked| match asked.header("authorization") {
        Some("Bearer sk-right") => fluent(asked),
        _ => refused.clone(),
    });
    let mut desk = Desk::new(Wire::Openai, server);
    assert_eq!(desk.compact().ran.code, 69);
    desk.root.write("../key", "sk-right\n");
    std::fs::set_permissions(
        desk.root.home("key"),
        std::os::unix::fs::PermissionsExt::from_mode(0o600),
    )
    .unwrap();
    desk.set("/model/key_file", json!("~/key"));
    assert_eq!(desk.compact().outcome(), "written");
}

#[test]
fn what_a_server_asks_for_is_kept_within_reason() {
    for wire in Wire::BOTH {
        for (wanted, requests, status) in [
            ("0", 3, TIRED),
            ("soon", 3, TIRED),
            // Half an hour, by a date, and then by the longest pause of all.
            ("Mon, 13 Apr 2026 07:30:00 GMT", 1, "paused until 2026-04-13 07:30 UTC"),
            ("Mon, 13 Apr 2026 06:30:00 GMT", 3, TIRED),
            ("99999", 1, "paused until 2026-04-13 13:00 UTC"),
        ] {
            let busy = wire.error("rate_limit_error", "Later.");
            let answer = Answer::json(429, &busy).with("retry-after", wanted);
            let end = End { code: 69, requests, reason: "answered 429", status };
            check(wire, wanted, answer, &end);
        }
    }
}

#[test]
fn a_short_trouble_is_waited_for() {
    for wire in Wire::BOTH {
        let mut asked_before = 0;
        let server = Server::answering(move |asked| {
            asked_before += 1;
            match asked_before {
                1 => Answer::json(529, &wire.error("overloaded_error", "Later.")),
                2 => Answer::Close,
                _ => fluent(asked),
            }
        });
        let desk = Desk::new(wire, server);
        let compacted = desk.compact();
        assert_eq!((compacted.ran.code, compacted.outcome()), (0, "written"), "{}", compacted.ran);
        assert_eq!(desk.server.count(), 3);
        assert!(desk.status().contains("ready"));
    }
}

#[test]
fn an_open_breaker_lets_one_request_through_after_its_pause() {
    for wire in Wire::BOTH {
        let busy = Answer::json(500, &wire.error("api_error", "Oh."));
        let mut desk = Desk::new(wire, Server::scripted(vec![busy]));
        desk.compact();
        assert_eq!(desk.server.count(), 3);
        for _ in 0..3 {
            let waiting = desk.compact();
            assert_eq!(waiting.ran.code, 69);
            assert!(waiting.reason().contains(TIRED), "{}", waiting.ran);
        }
        desk.root.set_now("2026-04-13T09:04:59+02:00");
        assert_eq!(desk.compact().ran.code, 69);
        assert_eq!(desk.server.count(), 3);
        desk.root.set_now("2026-04-13T09:05:00+02:00");
        assert_eq!(desk.compact().ran.code, 69);
        assert_eq!(desk.server.count(), 4);
        assert!(desk.status().contains("paused until 2026-04-13 07:20 UTC"), "{}", desk.status());
    }
}

/// What a server says to each request.
type Answering = Box<dyn FnMut(&Asked) -> Answer + Send>;

#[test]
fn a_model_that_always_fails_gets_at_most_thirty_requests_in_a_day() {
    let wire = Wire::Openai;
    let always = |answer: Answer| move |_: &Asked| answer.clone();
    let says = |text: &'static str, ends| move |asked: &Asked| asked.saying(text, ends);
    let bad = "### Decisions\n- Sold 731 licences [2026-03-02:3]";
    let failing: [(&str, Answering); 7] = [
        ("500", Box::new(always(Answer::json(500, &wire.error("server_error", "Oh."))))),
        ("404", Box::new(always(Answer::json(404, &wire.error("model_not_found", "None."))))),
        ("a page", Box::new(always(Answer::text(200, "<html>")))),
        ("no form", Box::new(says("Sorry.", Ends::Well))),
        ("refuses", Box::new(says("No.", Ends::Refusing))),
        ("is cut off", Box::new(says("### Decisions\n- Moved", Ends::AtLimit))),
        ("lies", Box::new(says(bad, Ends::Well))),
    ];
    for (name, answer) in failing {
        let server = Server::answering(answer);
        let mut desk = Desk::new(wire, server);
        desk.set("/compaction/extract", json!(true));
        for day in 1..=28 {
            desk.root.write(&format!("memory/2026-03-{day:02}.md"), super::LOG);
        }
        for hour in 0..24 {
            desk.root.set_now(&format!("2026-04-13T{hour:02}:10:00+02:00"));
            desk.run(&["compact"]);
        }
        assert!(desk.server.count() <= 30, "{name}: {}", desk.server.count());
    }
}

/// Returns the request's way to ask for a form.
fn form(asked: &Asked) -> String {
    asked.body["response_format"]["type"].as_str().unwrap_or("none").to_owned()
}

#[test]
fn a_server_that_knows_no_schema_is_asked_in_another_way_and_that_is_remembered() {
    for (refuses, expected) in [
        (&["json_schema"][..], &["json_schema", "json_object"][..]),
        (&["json_schema", "json_object"], &["json_schema", "json_object", "none"]),
    ] {
        let server = Server::answering(move |asked| {
            if refuses.contains(&&form(asked)[..]) {
                let words = "'response_format.type' is not supported";
                Answer::json(400, &json!({ "error": words }))
            } else {
                fluent(asked)
            }
        });
        let mut desk = Desk::new(Wire::Openai, server);
        desk.set("/compaction/extract", json!(true));
        let ran = desk.run(&["compact", "extract"]).ok();
        let forms: Vec<String> = desk.server.requests().iter().map(form).collect();
        assert_eq!(forms, expected, "{ran}");
        // The schema stands in the prompt then.
        let last = desk.server.requests().pop().unwrap();
        assert!(last.system().contains("that this JSON Schema accepts"));
        desk.root.write("memory/2026-04-08.md", "- The archive moved to Ghent\n");
        desk.run(&["compact", "extract"]).ok();
        assert_eq!(desk.server.count(), expected.len() + 1);
        assert_eq!(form(&desk.server.requests().pop().unwrap()), *expected.last().unwrap());
    }
}

#[test]
fn a_model_that_thinks_gets_the_fields_it_takes() {
    let server = Server::answering(|asked| {
        if asked.body["max_tokens"].is_null() && asked.body["temperature"].is_null() {
            fluent(asked)
        } else {
            let words = "Unsupported parameter: use 'max_completion_tokens' instead.";
            Answer::json(400, &Wire::Openai.error("unsupported_parameter", words))
        }
    });
    let desk = Desk::new(Wire::Openai, server);
    assert_eq!(desk.compact().outcome(), "written");
    assert_eq!(desk.server.count(), 2);
}

#[test]
fn a_refused_request_fails_the_job_and_is_not_repeated() {
    for wire in Wire::ALL {
        for status in [400, 404, 422] {
            let answer = Answer::json(status, &wire.error("not_found_error", "no such model"));
            let reason = "refuses the request (";
            check(wire, "refused", answer, &End { code: 1, requests: 1, reason, status: "ready" });
        }
        let gone = Answer::json(200, &json!({ "type": "error", "error": "no such model" }));
        if wire != Wire::Anthropic {
            let end = End { code: 69, requests: 3, reason: "answered ", status: TIRED };
            check(wire, "an error with 200", gone, &end);
        }
    }
}

#[test]
fn what_is_too_long_says_so() {
    // The request, and four that are shorter.
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
        check(wire, kind, answer, &End { code: 1, requests: 5, reason, status: "ready" });
    }
    let answer = Answer::json(413, &Wire::Anthropic.error("request_too_large", "Too large."));
    let reason = "too long for the model";
    check(Wire::Anthropic, "413", answer, &End { code: 1, requests: 5, reason, status: "ready" });
}

#[test]
fn what_is_too_long_is_cut_as_the_server_says() {
    let refuse = |wire: Wire| {
        let told = "prompt is too long: 9000 tokens > 2500 maximum context length";
        move |_: &Asked| Answer::json(400, &wire.error("context_length_exceeded", told))
    };
    let run_out = |asked: &Asked| {
        let text = "### Decisions\n- Row 1 of the led";
        let mut body = asked.message(text, Ends::WithoutRoom);
        body["usage"] = json!({
            "prompt_tokens": 2400, "completion_tokens": 100,
            "input_tokens": 2400, "output_tokens": 100,
        });
        Answer::json(200, &body)
    };
    for wire in [Wire::Anthropic, Wire::Openai] {
        check_is_cut(wire, refuse(wire));
        check_is_cut(wire, run_out);
    }
}

/// Has a server that takes short requests only do this to long ones.
#[track_caller]
fn check_is_cut(wire: Wire, too_long: impl Fn(&Asked) -> Answer + Send + 'static) {
    let rows: Vec<String> =
        (1..=120).map(|i| format!("- Row {i} of the ledger is {i}7 mm long")).collect();
    let words = rows.join("\n");
    let server = Server::answering(move |asked| {
        if asked.body.to_string().len() < 9_000 { fluent(asked) } else { too_long(asked) }
    });
    let mut desk = Desk::new(wire, server);
    desk.set("/model/max_output_tokens", json!(500));
    desk.root.write("memory/2026-04-07.md", &words);
    let compacted = desk.compact();
    assert_eq!(compacted.outcome(), "written", "{}", compacted.ran);
    let sent: Vec<usize> =
        desk.server.requests().iter().map(|it| it.body.to_string().len()).collect();
    assert!(sent.len() > 2 && sent[0] >= 9_000, "{sent:?}");
    assert!(sent[1..].iter().all(|it| *it < 9_000), "{sent:?}");
    let week = desk.week().unwrap();
    assert!(week.contains("Row 1 of") && week.contains("Row 120 of"), "{week}");
    // It is known from now on.
    desk.root.append("memory/2026-04-07.md", "\n- One row more\n");
    desk.compact().ran.ok();
    let again = &desk.server.requests()[sent.len()..];
    assert!(again.iter().all(|it| it.body.to_string().len() < 9_000));
}

#[test]
fn a_server_that_cuts_the_prompt_is_found_out() {
    for wire in [Wire::Openai, Wire::Ollama] {
        let server = Server::answering(move |asked| {
            let mut body = asked.message("### Decisions\n- x", Ends::Well);
            body["usage"] = json!({ "prompt_tokens": 40, "completion_tokens": 3 });
            body["prompt_eval_count"] = json!(40);
            Answer::json(200, &body)
        });
        let desk = Desk::new(wire, server);
        let compacted = desk.compact();
        assert!(compacted.reason().contains("it cut the request"), "{}", compacted.ran);
        assert_eq!((compacted.ran.code, desk.server.count()), (1, 1));
        assert_eq!(desk.week(), None);
    }
}

#[test]
fn a_key_is_there_and_no_file_is_asked_without_one() {
    let mut desk = Desk::new(Wire::Anthropic, Server::fluent());
    let mut command = desk.root.command(&["compact"]);
    let ran = desk.root.finish(command, &["compact"]);
    assert_eq!(ran.code, 78, "{ran}");
    assert!(ran.stderr.contains("no key for"), "{ran}");
    // A server on this machine needs none.
    desk.set("/model/provider", json!("openai"));
    desk.set("/model/base_url", json!(desk.server.url() + "/v1"));
    command = desk.root.command(&["compact"]);
    desk.root.finish(command, &["compact"]).ok();
    assert_eq!(desk.server.requests()[0].header("authorization"), None);
}

#[test]
fn nobody_listens() {
    for wire in Wire::ALL {
        let mut desk = Desk::new(wire, Server::fluent());
        let gone = Server::fluent().url();
        desk.set("/model/base_url", json!(gone));
        let compacted = desk.compact();
        assert_eq!(compacted.ran.code, 69, "{}", compacted.ran);
        assert!(compacted.reason().contains("no connection to"), "{}", compacted.ran);
        assert!(desk.status().contains(TIRED), "{}", desk.status());
    }
}
