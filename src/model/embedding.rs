//! Vectors of texts, through the door: breaker, caps, prices, and ledger are those of all calls.
//!
//! Sources: the published types of `OpenAI`'s clients for `/embeddings`, and Ollama's interface
//! documentation for `/api/embed`.

use serde_json::{Map, Value, json};

use super::{
    CallError, FinishReason, Message, ModelReply, ModelRequest, Stage, TokenUsage,
    client::{ModelClient, ProviderEndpoint},
    http::HttpResponse,
    ollama, openai,
};
use crate::{config::settings::Embeddings, memory::hash::ContentHash};

/// Where vectors are asked for, below the server's address.
const OPENAI_PATH: &str = "/embeddings";
const OLLAMA_PATH: &str = "/api/embed";

/// The longest vector that is taken.
const DIMENSIONS_MAX: usize = 8192;

/// What a text is to a search; many models want to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmbeddingInput {
    /// What is looked for.
    Query,
    /// What may be found.
    Line,
}

/// Turns texts into vectors.
pub trait EmbeddingModel: Send + Sync {
    /// Returns a vector for each text, all of one length.
    ///
    /// # Errors
    ///
    /// Returns why there are none.
    fn embed(&self, texts: &[&str], side: EmbeddingInput) -> Result<Vec<Vec<f32>>, CallError>;

    /// Returns what tells vectors that may be compared from others.
    fn space_id(&self) -> ContentHash;
}

/// A server that makes vectors.
#[derive(Debug)]
pub struct EmbeddingClient {
    client: ModelClient,
    settings: Embeddings,
}

impl EmbeddingClient {
    /// Asks through a door.
    pub(super) fn new(door: ModelClient, settings: Embeddings) -> Self {
        Self { client: door, settings }
    }

    /// Returns the way itself.
    pub fn client(&self) -> &ModelClient {
        &self.client
    }
}

impl EmbeddingModel for EmbeddingClient {
    fn embed(&self, texts: &[&str], side: EmbeddingInput) -> Result<Vec<Vec<f32>>, CallError> {
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        let Embeddings { name, dimensions, query_prefix, line_prefix, .. } = &self.settings;
        let prefix = if side == EmbeddingInput::Query { query_prefix } else { line_prefix };
        let texts: Vec<String> = texts.iter().map(|it| format!("{prefix}{it}")).collect();
        // What it may cost is told by its words.
        let request = ModelRequest {
            stage: Stage::Embed,
            period: String::new(),
            name: None,
            system: String::new(),
            messages: texts.iter().map(Message::user).collect(),
            schema: None,
            tools: Vec::new(),
            max_output_tokens: 0,
            temperature: 0.0,
        };
        let mut vectors = Vec::new();
        self.client.call_embeddings(&request, &mut |http, now| {
            let wire = self.client.endpoint();
            let (path, base, body) = match wire {
                ProviderEndpoint::Ollama { base } => {
                    (OLLAMA_PATH, base, ollama_body(&texts, name, *dimensions))
                }
                ProviderEndpoint::Openai { base } => {
                    (OPENAI_PATH, base, openai_body(&texts, name, *dimensions))
                }
                ProviderEndpoint::Anthropic { .. } | ProviderEndpoint::Command(_) => {
                    let what = format!("{} makes no vectors", wire.provider());
                    return Err(CallError::Config(what));
                }
            };
            let (server, body) = (base.as_str(), body.to_string().into_bytes());
            let answer = http.post(server, path, &self.client.request_headers(), body, now)?;
            let made = match wire {
                ProviderEndpoint::Ollama { .. } => ollama_vectors(server, &answer),
                _ => openai_vectors(server, &answer, texts.len()),
            }?;
            let (found, reply) = made;
            vectors = validate_vectors(server, found, texts.len(), *dimensions)?;
            Ok(reply)
        })?;
        Ok(vectors)
    }

    fn space_id(&self) -> ContentHash {
        let Embeddings { name, dimensions, line_prefix, .. } = &self.settings;
        ContentHash::of(format!("{name}\n{dimensions:?}\n{line_prefix}"))
    }
}

fn openai_body(texts: &[String], model: &str, dimensions: Option<u32>) -> Value {
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(model));
    body.insert("input".to_owned(), json!(texts));
    body.insert("encoding_format".to_owned(), json!("float"));
    if let Some(dimensions) = dimensions {
        body.insert("dimensions".to_owned(), json!(dimensions));
    }
    Value::Object(body)
}

fn ollama_body(texts: &[String], model: &str, dimensions: Option<u32>) -> Value {
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(model));
    body.insert("input".to_owned(), json!(texts));
    // The beginning of a very long line says what it is about.
    body.insert("truncate".to_owned(), json!(true));
    if let Some(dimensions) = dimensions {
        body.insert("dimensions".to_owned(), json!(dimensions));
    }
    Value::Object(body)
}

type EmbeddingResponse = (Vec<Vec<f32>>, ModelReply);

/// Reads an answer, whose vectors may come in any order.
fn openai_vectors(
    server: &str,
    answer: &HttpResponse,
    count: usize,
) -> Result<EmbeddingResponse, CallError> {
    if !answer.is_ok() {
        return Err(openai::error(server, answer, answer.status));
    }
    let garbage = |what| CallError::UnexpectedResponse { server: server.to_owned(), what };
    let body = answer.json().map_err(garbage)?;
    if !body["error"].is_null() {
        let code = body["error"]["code"].as_u64().and_then(|it| u16::try_from(it).ok());
        return Err(openai::error(server, answer, code.filter(|it| *it >= 400).unwrap_or(500)));
    }
    let data = body["data"].as_array().ok_or_else(|| garbage("JSON without vectors"))?;
    let mut vectors = vec![Vec::new(); count];
    for (at, item) in data.iter().enumerate() {
        let index = item["index"].as_u64().and_then(|it| usize::try_from(it).ok()).unwrap_or(at);
        if let Some(place) = vectors.get_mut(index) {
            *place = parse_vector(&item["embedding"]);
        }
    }
    let usage = body["usage"]["prompt_tokens"].as_u64();
    let mut reply = empty_reply(usage, &body);
    reply.id.clone_from(&answer.headers.request_id);
    reply.cost_usd = body["usage"]["cost"].as_f64();
    Ok((vectors, reply))
}

fn ollama_vectors(server: &str, answer: &HttpResponse) -> Result<EmbeddingResponse, CallError> {
    let garbage = |what| CallError::UnexpectedResponse { server: server.to_owned(), what };
    let body = answer.json();
    let said = body.as_ref().ok().and_then(|it| it["error"].as_str());
    if !answer.is_ok() || said.is_some() {
        return Err(ollama::error(server, answer, said));
    }
    let body = body.map_err(garbage)?;
    let all = body["embeddings"].as_array().ok_or_else(|| garbage("JSON without vectors"))?;
    let vectors = all.iter().map(parse_vector).collect();
    Ok((vectors, empty_reply(body["prompt_eval_count"].as_u64(), &body)))
}

fn empty_reply(input_tokens: Option<u64>, body: &Value) -> ModelReply {
    ModelReply {
        text: String::new(),
        verbatim: None,
        calls: Vec::new(),
        finish_reason: FinishReason::Stop,
        usage: input_tokens
            .map(|input_tokens| TokenUsage { input_tokens, ..TokenUsage::default() }),
        cost_usd: None,
        id: None,
        model: body["model"].as_str().map(ToOwned::to_owned),
    }
}

/// Returns the numbers of a vector; none where one of them is no number.
fn parse_vector(value: &Value) -> Vec<f32> {
    #[expect(clippy::cast_possible_truncation, reason = "servers compute with fewer digits yet")]
    let number = |it: &Value| it.as_f64().map(|it| it as f32).filter(|it| it.is_finite());
    let numbers = value.as_array().map(|it| it.iter().map(number).collect::<Option<Vec<f32>>>());
    numbers.flatten().unwrap_or_default()
}

/// Refuses vectors that are not as many as the texts, or not of one length.
fn validate_vectors(
    server: &str,
    vectors: Vec<Vec<f32>>,
    count: usize,
    dimensions: Option<u32>,
) -> Result<Vec<Vec<f32>>, CallError> {
    let garbage = |what| CallError::UnexpectedResponse { server: server.to_owned(), what };
    let length = vectors.first().map_or(0, Vec::len);
    if vectors.len() != count {
        return Err(garbage("other than one vector for each text"));
    }
    if length == 0 || length > DIMENSIONS_MAX || vectors.iter().any(|it| it.len() != length) {
        return Err(garbage("vectors of no use"));
    }
    if dimensions.is_some_and(|it| usize::try_from(it).ok() != Some(length)) {
        return Err(garbage("vectors of another length than search.embeddings.dimensions"));
    }
    Ok(vectors)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::http::ResponseHeaders;

    fn answer(status: u16, body: &Value) -> HttpResponse {
        HttpResponse {
            status,
            headers: ResponseHeaders::default(),
            body: body.to_string().into_bytes(),
        }
    }

    fn told(made: Result<EmbeddingResponse, CallError>, count: usize) -> String {
        match made.and_then(|it| validate_vectors("s", it.0, count, None)) {
            Ok(vectors) => format!("{vectors:?}"),
            Err(error) => error.name().to_owned(),
        }
    }

    #[test]
    fn vectors_are_taken_in_the_order_of_the_texts_or_not_at_all() {
        let one = |index: usize, of: [f64; 2]| json!({ "index": index, "embedding": of });
        let data = |all: Vec<Value>| answer(200, &json!({ "data": all }));
        for (answer, expected) in [
            (data(vec![one(1, [3.0, 4.0]), one(0, [1.0, 2.0])]), "[[1.0, 2.0], [3.0, 4.0]]"),
            (data(vec![one(0, [1.0, 2.0])]), "garbage"),
            (data(vec![one(0, [1.0, 2.0]), json!({ "index": 1, "embedding": [1.0] })]), "garbage"),
            (data(vec![one(0, [1.0, 2.0]), json!({ "index": 1, "embedding": "AAAA" })]), "garbage"),
            (answer(200, &json!({ "choices": [] })), "garbage"),
            (answer(404, &json!({ "error": { "message": "no such model" } })), "request"),
            (answer(429, &json!({ "error": { "code": "rate_limit_exceeded" } })), "unavailable"),
        ] {
            assert_eq!(told(openai_vectors("s", &answer, 2), 2), expected, "{answer:?}");
        }
        for (answer, expected) in [
            (answer(200, &json!({ "embeddings": [[1.0], [2.0]] })), "[[1.0], [2.0]]"),
            (answer(200, &json!({ "embeddings": [[1.0]] })), "garbage"),
            (answer(200, &json!({ "embeddings": [[1.0], [null]] })), "garbage"),
            (answer(200, &json!({ "error": "no such model" })), "unavailable"),
            (answer(404, &json!({ "error": "no such model" })), "request"),
        ] {
            assert_eq!(told(ollama_vectors("s", &answer), 2), expected, "{answer:?}");
        }
    }
}
