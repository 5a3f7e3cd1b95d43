//! The Messages API of Anthropic: requests and answers as pure functions.
//!
//! Source: the published types of Anthropic's own clients for API version 2026-10-21. That version
//! answers 400 to `temperature`, `top_p` and `top_k` even at their defaults, so none is ever sent.

use serde_json::{Map, Value, json};

use super::{
    FinishReason, ModelReply, ModelRequest, TokenUsage,
    failure::{CallError, ProviderMessage, error_code},
    http::HttpResponse,
    tools,
};

/// The version of the API that was tested.
pub const API_VERSION: &str = "2026-10-21";

/// The path of the endpoint, relative to the server's address.
pub const PATH: &str = "/v1/messages";

/// How long instructions stay cached; a run over a backlog takes longer than the default five minutes.
const CACHE_TTL: &str = "1h";

/// Returns the body of a request.
pub fn body(request: &ModelRequest, model: &str) -> Value {
    let messages: Vec<Value> = request.messages.iter().map(tools::anthropic_turn).collect();
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(model));
    body.insert("max_tokens".to_owned(), json!(request.max_output_tokens));
    body.insert(
        "system".to_owned(),
        json!([{
            "type": "text",
            "text": request.system,
            "cache_control": { "type": "ephemeral", "ttl": CACHE_TTL },
        }]),
    );
    body.insert("messages".to_owned(), json!(messages));
    if !request.tools.is_empty() {
        body.insert("tools".to_owned(), tools::anthropic_tools(&request.tools));
    }
    if let Some(schema) = &request.schema {
        let format = json!({ "type": "json_schema", "schema": schema.schema });
        body.insert("output_config".to_owned(), json!({ "format": format }));
    }
    Value::Object(body)
}

/// Reads an answer.
pub(crate) fn reply(server: &str, answer: &HttpResponse) -> Result<ModelReply, CallError> {
    if !answer.is_ok() {
        return Err(error(server, answer));
    }
    let garbage = |what| CallError::UnexpectedResponse { server: server.to_owned(), what };
    let body = answer.json().map_err(garbage)?;
    // A gateway may wrap an error into a 200.
    if body["type"] == "error" {
        return Err(error(server, answer));
    }
    let Some(content) = body["content"].as_array() else {
        return Err(garbage("JSON that is not a message"));
    };
    // Thoughts may precede the text.
    let mut texts = content.iter().filter(|it| it["type"] == "text");
    let text = texts.next().and_then(|it| it["text"].as_str()).unwrap_or_default();
    let calls = tools::anthropic_calls(content);
    let finish_reason = match body["stop_reason"].as_str() {
        Some("tool_use") if !calls.is_empty() => FinishReason::Stop,
        Some("end_turn" | "stop_sequence") => FinishReason::Stop,
        Some("max_tokens") => FinishReason::Length,
        Some("refusal") => FinishReason::Refusal,
        Some("model_context_window_exceeded") => return Err(CallError::TooLong { limit: None }),
        _ => FinishReason::Other,
    };
    let reply = ModelReply {
        text: text.to_owned(),
        verbatim: (!calls.is_empty()).then(|| json!(content)),
        calls,
        finish_reason,
        usage: usage(&body["usage"]),
        cost_usd: None,
        id: answer.headers.request_id.clone(),
        model: body["model"].as_str().map(ToOwned::to_owned),
    };
    Ok(reply)
}

/// Reads the token usage. This API counts cached input separately; we count it as input, too.
fn usage(usage: &Value) -> Option<TokenUsage> {
    let count = |name: &str| usage[name].as_u64().unwrap_or(0);
    let (cache_read_tokens, cache_write_tokens) =
        (count("cache_read_input_tokens"), count("cache_creation_input_tokens"));
    Some(TokenUsage {
        input_tokens: usage["input_tokens"].as_u64()? + cache_read_tokens + cache_write_tokens,
        output_tokens: usage["output_tokens"].as_u64()?,
        cache_read_tokens,
        cache_write_tokens,
    })
}

/// Reads an error.
pub(super) fn error(server: &str, answer: &HttpResponse) -> CallError {
    let server = server.to_owned();
    let body = answer.json().unwrap_or_default();
    let kind = body["error"]["type"].as_str();
    let detail = body["error"]["details"]["error_code"].as_str();
    let code = error_code(detail).or_else(|| error_code(kind));
    let provider_message = ProviderMessage::new(body["error"]["message"].as_str());
    // With status 200, only the type of the error shows what it is.
    let status = match (answer.status, kind) {
        (200..300, Some("authentication_error")) => 401,
        (200..300, Some("billing_error")) => 402,
        (200..300, Some("rate_limit_error")) => 429,
        (200..300, Some("overloaded_error")) => 529,
        (200..300, Some("invalid_request_error")) => 400,
        (200..300, _) => 500,
        (status, _) => status,
    };
    let is_spent = code.as_deref().is_some_and(|it| it.ends_with("spend_limit_reached"));
    match status {
        401..=403 => CallError::Account { server, status, code, provider_message },
        _ if is_spent => CallError::Account { server, status, code, provider_message },
        413 => CallError::TooLong { limit: None },
        408 | 409 | 429 | 500.. => {
            let retry_after = answer.headers.retry_after;
            CallError::Unavailable { server, status, code, retry_after, provider_message }
        }
        _ if is_too_long(provider_message.text()) => {
            CallError::TooLong { limit: super::parse_context_limit(provider_message.text()) }
        }
        _ => CallError::Request { server, status, code, provider_message },
    }
}

/// Returns whether the message of an error with status 400 is about a prompt that is too long. The
/// API has no error type for it.
fn is_too_long(message: &str) -> bool {
    let message = message.to_lowercase();
    message.contains("prompt is too long") || message.contains("context window")
}
