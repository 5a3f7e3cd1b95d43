//! Chat completions, the API of `OpenAI` and many servers: requests and answers as pure functions.
//!
//! Source: the published types of `OpenAI`'s clients, and what Ollama, llama.cpp, vLLM, LM Studio and
//! `OpenRouter` do differently. Not every server can enforce a schema, so a request can be written in
//! three ways ([`SchemaMode`]), and the client falls back to the next when a server refuses one.

use serde_json::{Map, Value, json};

use super::{
    FinishReason, ModelReply, ModelRequest, TokenUsage,
    failure::{CallError, ProviderMessage, error_code},
    http::HttpResponse,
    tools,
};

/// The path of the endpoint, relative to the server's address.
pub const PATH: &str = "/chat/completions";

/// How the schema of a reply is enforced, the strictest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SchemaMode {
    /// The server enforces the schema.
    #[default]
    JsonSchema,
    /// The server enforces JSON; the schema is in the prompt.
    JsonObject,
    /// The schema is only in the prompt.
    Prompt,
}

/// What differs from server to server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct OpenaiDialect {
    /// How it enforces a schema.
    pub schema_mode: SchemaMode,
    /// It requires `max_completion_tokens` and accepts no temperature, like models that think first.
    pub is_reasoning_model: bool,
}

impl SchemaMode {
    /// All modes, the strictest first.
    pub const ALL: [Self; 3] = [Self::JsonSchema, Self::JsonObject, Self::Prompt];

    /// Returns the name in the ledger.
    pub fn name(self) -> &'static str {
        match self {
            Self::JsonSchema => "json_schema",
            Self::JsonObject => "json_object",
            Self::Prompt => "prompt",
        }
    }

    /// Returns the next less strict one.
    pub fn less_strict(self) -> Option<Self> {
        match self {
            Self::JsonSchema => Some(Self::JsonObject),
            Self::JsonObject => Some(Self::Prompt),
            Self::Prompt => None,
        }
    }
}

impl OpenaiDialect {
    /// Returns the dialect in which to retry a refused request, if the error message is about something
    /// that differs between servers.
    pub fn after_refusal(self, refused: &CallError, request: &ModelRequest) -> Option<Self> {
        let CallError::Request { status: 400 | 422 | 500 | 501, .. } = refused else {
            return None;
        };
        let message = refused.provider_message().unwrap_or_default().to_lowercase();
        let mentions = |names: &[&str]| names.iter().any(|it| message.contains(it));
        if !self.is_reasoning_model && mentions(&["max_completion_tokens", "temperature"]) {
            return Some(Self { is_reasoning_model: true, ..self });
        }
        request.schema.as_ref()?;
        let about_format = ["response_format", "json_schema", "json_object", "schema", "grammar"];
        // Some servers refuse without a message.
        let schema_mode = self
            .schema_mode
            .less_strict()
            .filter(|_| message.is_empty() || mentions(&about_format))?;
        Some(Self { schema_mode, ..self })
    }
}

/// Returns the body of a request.
pub fn body(request: &ModelRequest, model: &str, dialect: OpenaiDialect) -> Value {
    let mut system = request.system.clone();
    if let Some(schema) =
        request.schema.as_ref().filter(|_| dialect.schema_mode != SchemaMode::JsonSchema)
    {
        system.push_str(
            "\n\nReply with one JSON value that this JSON Schema accepts, and with nothing else:\n",
        );
        system.push_str(&schema.schema.to_string());
    }
    let mut messages = vec![json!({ "role": "system", "content": system })];
    let turns = request.messages.iter();
    messages.extend(turns.flat_map(tools::openai_turns));
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(model));
    body.insert("messages".to_owned(), json!(messages));
    if dialect.is_reasoning_model {
        body.insert("max_completion_tokens".to_owned(), json!(request.max_output_tokens));
    } else {
        body.insert("max_tokens".to_owned(), json!(request.max_output_tokens));
        body.insert("temperature".to_owned(), json!(request.temperature));
    }
    body.insert("stream".to_owned(), json!(false));
    if !request.tools.is_empty() {
        body.insert("tools".to_owned(), tools::openai_tools(&request.tools));
    }
    let format = request.schema.as_ref().and_then(|it| match dialect.schema_mode {
        SchemaMode::JsonSchema => Some(json!({
            "type": "json_schema",
            "json_schema": { "name": it.name, "strict": true, "schema": it.schema },
        })),
        SchemaMode::JsonObject => Some(json!({ "type": "json_object" })),
        SchemaMode::Prompt => None,
    });
    if let Some(format) = format {
        body.insert("response_format".to_owned(), format);
    }
    Value::Object(body)
}

/// Reads an answer.
pub(crate) fn reply(server: &str, answer: &HttpResponse) -> Result<ModelReply, CallError> {
    if !answer.is_ok() {
        return Err(error(server, answer, answer.status));
    }
    let garbage = |what| CallError::UnexpectedResponse { server: server.to_owned(), what };
    let body = answer.json().map_err(garbage)?;
    // OpenRouter and others send errors with 200.
    if !body["error"].is_null() {
        let code = body["error"]["code"].as_u64().and_then(|it| u16::try_from(it).ok());
        return Err(error(server, answer, code.filter(|it| *it >= 400).unwrap_or(500)));
    }
    let Some(choice) = body["choices"].as_array().and_then(|it| it.first()) else {
        return Err(garbage("JSON that is not a completion"));
    };
    let message = &choice["message"];
    let refused = message["refusal"].as_str().is_some_and(|it| !it.is_empty());
    let calls = tools::openai_calls(message);
    let finish_reason = match choice["finish_reason"].as_str() {
        _ if refused => FinishReason::Refusal,
        Some("content_filter") => FinishReason::Refusal,
        Some("length") => FinishReason::Length,
        Some("tool_calls") if !calls.is_empty() => FinishReason::Stop,
        Some("stop") | None => FinishReason::Stop,
        Some(_) => FinishReason::Other,
    };
    let reply = ModelReply {
        text: message["content"].as_str().unwrap_or_default().to_owned(),
        verbatim: (!calls.is_empty()).then(|| message["tool_calls"].clone()),
        calls,
        finish_reason,
        usage: usage(&body["usage"]),
        cost_usd: body["usage"]["cost"].as_f64(),
        id: answer.headers.request_id.clone(),
        model: body["model"].as_str().map(ToOwned::to_owned),
    };
    Ok(reply)
}

fn usage(usage: &Value) -> Option<TokenUsage> {
    let details = &usage["prompt_tokens_details"];
    Some(TokenUsage {
        input_tokens: usage["prompt_tokens"].as_u64()?,
        output_tokens: usage["completion_tokens"].as_u64().unwrap_or(0),
        cache_read_tokens: details["cached_tokens"].as_u64().unwrap_or(0),
        cache_write_tokens: details["cache_write_tokens"].as_u64().unwrap_or(0),
    })
}

/// Reads an error, which is an object or a string.
pub(super) fn error(server: &str, answer: &HttpResponse, status: u16) -> CallError {
    let server = server.to_owned();
    let body = answer.json().unwrap_or_default();
    let error = &body["error"];
    let message = error["message"].as_str().or(error.as_str()).or(body["message"].as_str());
    let provider_message = ProviderMessage::new(message);
    let name = error["code"].as_str().or(error["type"].as_str()).or(body["type"].as_str());
    let code = error_code(name);
    let codes = [error["code"].as_str(), error["type"].as_str()];
    let is_one_of = |names: &[&str]| codes.iter().flatten().any(|it| names.contains(it));
    let too_long =
        ["context_length_exceeded", "exceed_context_size_error", "string_above_max_length"];
    let no_credit = ["insufficient_quota", "billing_hard_limit_reached", "billing_not_active"];
    let limit =
        error["n_ctx"].as_u64().or_else(|| super::parse_context_limit(provider_message.text()));
    match status {
        _ if is_one_of(&too_long) || is_length_error(provider_message.text()) => {
            CallError::TooLong { limit }
        }
        _ if is_one_of(&no_credit) => CallError::Account { server, status, code, provider_message },
        401..=403 => CallError::Account { server, status, code, provider_message },
        413 => CallError::TooLong { limit },
        408 | 409 | 425 | 429 | 500.. => {
            let retry_after = answer.headers.retry_after;
            CallError::Unavailable { server, status, code, retry_after, provider_message }
        }
        _ => CallError::Request { server, status, code, provider_message },
    }
}

/// Returns whether an error message is about a prompt that is too long: vLLM, llama.cpp and LM Studio
/// have no error code for it.
fn is_length_error(message: &str) -> bool {
    let message = message.to_lowercase();
    ["maximum context length", "context size", "context length", "context window", "n_ctx"]
        .iter()
        .any(|it| message.contains(it))
        && ["exceed", "maximum", "larger", "longer", "overflow", "greater"]
            .iter()
            .any(|it| message.contains(it))
}
