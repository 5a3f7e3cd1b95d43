//! Ollama's own chat API.
//!
//! Over the API that Ollama shares with `OpenAI`, it silently cuts a prompt to its context length. In
//! this one the request sets the context length, and the answer says how much of the prompt was read.
//!
//! Source: Ollama's published client types and its API documentation.

use serde_json::{Map, Value, json};

use super::{
    FinishReason, ModelReply, ModelRequest, TokenUsage,
    failure::{CallError, ProviderMessage, error_code},
    http::HttpResponse,
    tools,
};

/// The path of the endpoint, relative to the server's address.
pub const PATH: &str = "/api/chat";

/// Returns the body of a request.
pub fn body(request: &ModelRequest, model: &str, context_tokens: u32) -> Value {
    let mut messages = vec![json!({ "role": "system", "content": request.system })];
    let turns = request.messages.iter();
    messages.extend(turns.flat_map(tools::ollama_turns));
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(model));
    body.insert("messages".to_owned(), json!(messages));
    body.insert("stream".to_owned(), json!(false));
    if !request.tools.is_empty() {
        body.insert("tools".to_owned(), tools::openai_tools(&request.tools));
    }
    if let Some(schema) = &request.schema {
        body.insert("format".to_owned(), schema.schema.clone());
    }
    body.insert(
        "options".to_owned(),
        json!({
            "num_ctx": context_tokens,
            "num_predict": request.max_output_tokens,
            "temperature": request.temperature,
        }),
    );
    // Thoughts would use up the tokens of the reply.
    body.insert("think".to_owned(), json!(false));
    Value::Object(body)
}

/// Reads an answer.
pub(crate) fn reply(server: &str, answer: &HttpResponse) -> Result<ModelReply, CallError> {
    let garbage = |what| CallError::UnexpectedResponse { server: server.to_owned(), what };
    let body = answer.json();
    let message = body.as_ref().ok().and_then(|it| it["error"].as_str());
    if !answer.is_ok() || message.is_some() {
        return Err(error(server, answer, message));
    }
    let body = body.map_err(garbage)?;
    let Some(text) = body["message"]["content"].as_str() else {
        return Err(garbage("JSON that is not a chat reply"));
    };
    if body["done"] == false {
        return Err(CallError::ConnectionLost { server: server.to_owned() });
    }
    let calls = tools::openai_calls(&body["message"]);
    let finish_reason = match body["done_reason"].as_str() {
        Some("length") => FinishReason::Length,
        Some("stop") | None => FinishReason::Stop,
        Some(_) => FinishReason::Other,
    };
    // Ollama omits the count if the prompt was still in its memory.
    let usage = body["prompt_eval_count"].as_u64().map(|input_tokens| TokenUsage {
        input_tokens,
        output_tokens: body["eval_count"].as_u64().unwrap_or(0),
        ..TokenUsage::default()
    });
    let reply = ModelReply {
        text: text.to_owned(),
        verbatim: (!calls.is_empty()).then(|| body["message"]["tool_calls"].clone()),
        calls,
        finish_reason,
        usage,
        cost_usd: None,
        id: None,
        model: body["model"].as_str().map(ToOwned::to_owned),
    };
    Ok(reply)
}

/// Reads an error.
pub(super) fn error(server: &str, answer: &HttpResponse, message: Option<&str>) -> CallError {
    let (server, status) = (server.to_owned(), answer.status);
    let provider_message = ProviderMessage::new(message);
    let code = error_code(None);
    match status {
        401..=403 => CallError::Account { server, status, code, provider_message },
        // A missing model, or an unknown field.
        400 | 404 | 405 | 422 => CallError::Request { server, status, code, provider_message },
        _ => {
            let retry_after = answer.headers.retry_after;
            CallError::Unavailable { server, status, code, retry_after, provider_message }
        }
    }
}
