//! Tests of the wire formats, as tables: the body of a request, and the meaning of each answer.

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    CallError, FinishReason, Message, ModelReply, ModelRequest, OutputSchema, Stage, TokenUsage,
    anthropic,
    http::{HttpResponse, ResponseHeaders},
    ollama,
    openai::{self, OpenaiDialect, SchemaMode},
};

fn request() -> ModelRequest {
    ModelRequest {
        stage: Stage::Extract,
        name: None,
        period: "2026-04-07".to_owned(),
        system: "Rules.".to_owned(),
        messages: vec![Message::user("a"), Message::assistant("b"), Message::user("c")],
        schema: Some(OutputSchema {
            name: "memories".to_owned(),
            schema: json!({ "type": "object" }),
        }),
        tools: Vec::new(),
        max_output_tokens: 2048,
        temperature: 0.5,
    }
}

fn answer(status: u16, body: &Value) -> HttpResponse {
    let headers = ResponseHeaders {
        request_id: Some("req-1".to_owned()),
        retry_after: Some(Duration::from_secs(7)),
    };
    HttpResponse { status, headers, body: body.to_string().into_bytes() }
}

#[test]
fn request_body_for_anthropic() {
    let expected = json!({
        "model": "m",
        "max_tokens": 2048,
        "system": [{
            "type": "text", "text": "Rules.", "cache_control": { "type": "ephemeral", "ttl": "1h" },
        }],
        "messages": [
            { "role": "user", "content": [{ "type": "text", "text": "a" }] },
            { "role": "assistant", "content": [{ "type": "text", "text": "b" }] },
            { "role": "user", "content": [{ "type": "text", "text": "c" }] },
        ],
        "output_config": { "format": { "type": "json_schema", "schema": { "type": "object" } } },
    });
    assert_eq!(anthropic::body(&request(), "m"), expected);
    let plain = anthropic::body(&ModelRequest { schema: None, ..request() }, "m");
    assert!(plain["output_config"].is_null());
    // This version of the API answers 400 to each of them.
    for body in [&expected, &plain] {
        assert!(["temperature", "top_p", "top_k"].iter().all(|it| body.get(it).is_none()));
    }
}

#[test]
fn request_body_for_openai_in_each_schema_mode() {
    let body = |schema_mode, is_thinking| {
        openai::body(
            &request(),
            "m",
            OpenaiDialect { schema_mode, is_reasoning_model: is_thinking },
        )
    };
    let schema = json!({
        "type": "json_schema",
        "json_schema": { "name": "memories", "strict": true, "schema": { "type": "object" } },
    });
    for (schema_mode, format, in_prompt) in [
        (SchemaMode::JsonSchema, schema, false),
        (SchemaMode::JsonObject, json!({ "type": "json_object" }), true),
        (SchemaMode::Prompt, Value::Null, true),
    ] {
        let body = body(schema_mode, false);
        assert_eq!(body["response_format"], format);
        assert_eq!(body["messages"].as_array().unwrap().len(), 4);
        let system = body["messages"][0]["content"].as_str().unwrap();
        assert!(system.starts_with("Rules."));
        assert_eq!(system.contains("{\"type\":\"object\"}"), in_prompt);
        assert_eq!((&body["max_tokens"], &body["temperature"]), (&json!(2048), &json!(0.5)));
        assert_eq!(body["stream"], false);
    }
    let thinking = body(SchemaMode::JsonSchema, true);
    assert_eq!(thinking["max_completion_tokens"], 2048);
    assert!(thinking.get("max_tokens").is_none() && thinking.get("temperature").is_none());
}

#[test]
fn request_body_for_ollama() {
    let body = ollama::body(&request(), "m", 32_768);
    assert_eq!(body["format"], json!({ "type": "object" }));
    let options = json!({ "num_ctx": 32_768, "num_predict": 2048, "temperature": 0.5 });
    assert_eq!(body["options"], options);
    assert_eq!((&body["stream"], &body["think"]), (&json!(false), &json!(false)));
}

/// Returns the result of an answer: `stop hello`, or the name of the error.
fn summary(read: Result<ModelReply, CallError>) -> String {
    match read {
        Ok(reply) => format!("{} {}", reply.finish_reason.name(), reply.text),
        Err(error) => error.name().to_owned(),
    }
}

#[test]
fn answers_of_anthropic() {
    let message = |content: Value, reason: &str| {
        answer(200, &json!({ "type": "message", "content": content, "stop_reason": reason }))
    };
    let text = json!([{ "type": "text", "text": "hello" }]);
    let thought =
        json!([{ "type": "thinking", "thinking": "hm" }, { "type": "text", "text": "hello" }]);
    let error = |status, kind: &str, words: &str| {
        answer(status, &json!({ "type": "error", "error": { "type": kind, "message": words } }))
    };
    let spent = json!({ "type": "error", "error": {
        "type": "invalid_request_error", "message": "", "details": { "error_code": "org_spend_limit_reached" },
    } });
    for (answer, expected) in [
        (message(text.clone(), "end_turn"), "stop hello"),
        (message(text.clone(), "stop_sequence"), "stop hello"),
        (message(thought, "end_turn"), "stop hello"),
        (message(json!([]), "end_turn"), "stop "),
        (message(text.clone(), "max_tokens"), "length hello"),
        (message(text.clone(), "refusal"), "refusal hello"),
        (message(text.clone(), "pause_turn"), "other hello"),
        (message(text, "model_context_window_exceeded"), "too_long"),
        (message(json!("hello"), "end_turn"), "garbage"),
        (error(400, "invalid_request_error", "max_tokens: wrong"), "request"),
        (error(400, "invalid_request_error", "prompt is too long: 9 > 8"), "too_long"),
        (error(401, "authentication_error", ""), "account"),
        (error(402, "billing_error", ""), "account"),
        (error(403, "permission_error", ""), "account"),
        (error(404, "not_found_error", ""), "request"),
        (error(413, "request_too_large", ""), "too_long"),
        (error(429, "rate_limit_error", ""), "unavailable"),
        (error(500, "api_error", ""), "unavailable"),
        (error(504, "timeout_error", ""), "unavailable"),
        (error(529, "overloaded_error", ""), "unavailable"),
        (answer(400, &spent), "account"),
        // A gateway may send an error with status 200.
        (error(200, "overloaded_error", ""), "unavailable"),
        (error(200, "authentication_error", ""), "account"),
        (error(200, "invalid_request_error", ""), "request"),
        (error(200, "new_error", ""), "unavailable"),
        (answer(502, &json!("<html>")), "unavailable"),
    ] {
        assert_eq!(summary(anthropic::reply("s", &answer)), expected, "{answer:?}");
    }
}

#[test]
fn answers_of_openai() {
    let choice = |message: Value, reason: Value| {
        answer(200, &json!({ "choices": [{ "message": message, "finish_reason": reason }] }))
    };
    let text = json!({ "content": "hello" });
    let error = |status, body: Value| answer(status, &json!({ "error": body }));
    let coded = |status, code: &str| error(status, json!({ "code": code, "message": "" }));
    for (answer, expected) in [
        (choice(text.clone(), json!("stop")), "stop hello"),
        (choice(text.clone(), Value::Null), "stop hello"),
        (choice(text.clone(), json!("length")), "length hello"),
        (choice(text.clone(), json!("content_filter")), "refusal hello"),
        (choice(json!({ "content": null, "refusal": "No." }), json!("stop")), "refusal "),
        (choice(json!({ "content": null }), json!("stop")), "stop "),
        (choice(text, json!("tool_calls")), "other hello"),
        (answer(200, &json!({ "choices": [] })), "garbage"),
        (coded(400, "invalid_value"), "request"),
        (coded(400, "context_length_exceeded"), "too_long"),
        (coded(400, "exceed_context_size_error"), "too_long"),
        (coded(401, "invalid_api_key"), "account"),
        (coded(429, "insufficient_quota"), "account"),
        (coded(429, "rate_limit_exceeded"), "unavailable"),
        (coded(500, "server_error"), "unavailable"),
        (error(404, json!("model not found")), "request"),
        (error(400, json!("This model's maximum context length is 8192 tokens")), "too_long"),
        (
            error(500, json!({ "message": "the request exceeds the available context size" })),
            "too_long",
        ),
        // OpenRouter sends errors with status 200.
        (error(200, json!({ "code": 402, "message": "No credit" })), "account"),
        (error(200, json!({ "code": 502, "message": "Provider" })), "unavailable"),
        (error(200, json!({ "code": 400, "message": "Bad" })), "request"),
    ] {
        assert_eq!(summary(openai::reply("s", &answer)), expected, "{answer:?}");
    }
}

#[test]
fn answers_of_ollama() {
    let chat = |reason: &str| {
        answer(
            200,
            &json!({ "message": { "content": "hello" }, "done": true, "done_reason": reason }),
        )
    };
    for (answer, expected) in [
        (chat("stop"), "stop hello"),
        (chat("length"), "length hello"),
        (chat("load"), "other hello"),
        (answer(200, &json!({ "message": { "content": "he" }, "done": false })), "truncated"),
        (answer(200, &json!({ "done": true })), "garbage"),
        (answer(404, &json!({ "error": "model 'm' not found" })), "request"),
        (answer(500, &json!({ "error": "runner stopped" })), "unavailable"),
        (answer(200, &json!({ "error": "runner stopped" })), "unavailable"),
    ] {
        assert_eq!(summary(ollama::reply("s", &answer)), expected, "{answer:?}");
    }
}

#[test]
fn token_usage_means_the_same_for_all_providers() {
    let expected = TokenUsage {
        input_tokens: 100,
        output_tokens: 20,
        cache_read_tokens: 60,
        cache_write_tokens: 10,
    };
    let anthropic = anthropic::reply(
        "s",
        &answer(
            200,
            &json!({
                "content": [], "stop_reason": "end_turn", "usage": {
                    "input_tokens": 30, "output_tokens": 20, "cache_read_input_tokens": 60,
                    "cache_creation_input_tokens": 10,
                },
            }),
        ),
    );
    let openai = openai::reply(
        "s",
        &answer(
            200,
            &json!({
                "choices": [{ "message": { "content": "" } }], "usage": {
                    "prompt_tokens": 100, "completion_tokens": 20, "cost": 0.25,
                    "prompt_tokens_details": { "cached_tokens": 60, "cache_write_tokens": 10 },
                },
            }),
        ),
    );
    let (anthropic, openai) = (anthropic.unwrap(), openai.unwrap());
    assert_eq!((anthropic.usage, openai.usage), (Some(expected), Some(expected)));
    assert_eq!(openai.cost_usd, Some(0.25));
    assert_eq!(anthropic.id.as_deref(), Some("req-1"));
    let none = json!({ "content": [], "usage": { "input_tokens": null, "output_tokens": 1 } });
    assert_eq!(anthropic::reply("s", &answer(200, &none)).unwrap().usage, None);
}

#[test]
fn no_error_shows_the_providers_own_message() {
    let words = "you said: my salary is 90,000";
    let body = json!({ "error": { "type": "x", "code": words, "message": words } });
    for status in [400, 401, 429, 500] {
        for error in [
            anthropic::reply("s", &answer(status, &body)).unwrap_err(),
            openai::reply("s", &answer(status, &body)).unwrap_err(),
            ollama::reply("s", &answer(status, &json!({ "error": words }))).unwrap_err(),
        ] {
            assert!(!format!("{error} {error:?} {}", error.name()).contains("salary"), "{error:?}");
            assert_eq!(error.provider_message(), Some(words), "{error:?}");
        }
    }
}

#[test]
fn an_incomplete_reply_is_refused() {
    let reply = |text: &str, finish_reason| ModelReply {
        text: text.to_owned(),
        calls: Vec::new(),
        verbatim: None,
        finish_reason,
        usage: None,
        cost_usd: None,
        id: None,
        model: None,
    };
    for (text, reason, expected) in [
        ("hello", FinishReason::Stop, "stop hello"),
        ("hello", FinishReason::Other, "other hello"),
        (" \n", FinishReason::Stop, "empty"),
        ("he", FinishReason::Length, "length"),
        ("No.", FinishReason::Refusal, "refusal"),
    ] {
        assert_eq!(summary(super::check_complete(reply(text, reason), 9)), expected);
    }
}
