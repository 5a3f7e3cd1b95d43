//! Embeddings of texts, under the same circuit breaker, budget, prices and ledger as all calls.
//!
//! Sources: the published types of `OpenAI`'s clients for `/embeddings`, and Ollama's interface
//! documentation for `/api/embed`.

use serde_json::{Map, Value, json};

use super::{
    CallError, FinishReason, Message, ModelReply, ModelRequest, Stage, TokenUsage,
    client::{ModelClient, endpoint::ProviderEndpoint},
    http::HttpResponse,
    ollama, openai,
};
use crate::{config::settings::Embeddings, memory::hash::ContentHash};

/// Paths of the embedding endpoints, relative to the server's address.
const OPENAI_PATH: &str = "/embeddings";
const OLLAMA_PATH: &str = "/api/embed";

/// The longest vector that is accepted.
const DIMENSIONS_MAX: usize = 8192;

/// The role of a text in a search; many models need to know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmbeddingInput {
    /// A search query.
    Query,
    /// A line that a search may return.
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

    /// Returns an id of the vector space. Only vectors of the same space may be compared.
    fn space_id(&self) -> ContentHash;
}

/// A client of a server that computes embeddings.
#[derive(Debug)]
pub struct EmbeddingClient {
    client: ModelClient,
    settings: Embeddings,
}

impl EmbeddingClient {
    /// Returns a client that sends its requests through `client`.
    pub(super) fn new(client: ModelClient, settings: Embeddings) -> Self {
        Self { client, settings }
    }

    /// Returns the client below.
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
        // The texts are the messages, so that the cost is estimated from their length.
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
            let endpoint = self.client.endpoint();
            let (path, base, body) = match endpoint {
                ProviderEndpoint::Ollama { base } => {
                    (OLLAMA_PATH, base, ollama_body(&texts, name, *dimensions))
                }
                ProviderEndpoint::Openai { base } => {
                    (OPENAI_PATH, base, openai_body(&texts, name, *dimensions))
                }
                ProviderEndpoint::Anthropic { .. } | ProviderEndpoint::Command(_) => {
                    let what = format!("{} has no embeddings", endpoint.provider());
                    return Err(CallError::Config(what));
                }
            };
            let (server, body) = (base.as_str(), body.to_string().into_bytes());
            let answer = http.post(server, path, &self.client.request_headers(), body, now)?;
            let (found, reply) = match endpoint {
                ProviderEndpoint::Ollama { .. } => ollama_vectors(server, &answer),
                _ => openai_vectors(server, &answer, texts.len()),
            }?;
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
    // The beginning of a very long line shows its topic.
    body.insert("truncate".to_owned(), json!(true));
    if let Some(dimensions) = dimensions {
        body.insert("dimensions".to_owned(), json!(dimensions));
    }
    Value::Object(body)
}

type EmbeddingResponse = (Vec<Vec<f32>>, ModelReply);

/// Reads an answer, which may list the vectors in any order.
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
        if let Some(slot) = vectors.get_mut(index) {
            *slot = parse_vector(&item["embedding"]);
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
    let message = body.as_ref().ok().and_then(|it| it["error"].as_str());
    if !answer.is_ok() || message.is_some() {
        return Err(ollama::error(server, answer, message));
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

/// Returns the numbers of a vector; empty if one of them is not a number.
fn parse_vector(value: &Value) -> Vec<f32> {
    #[expect(clippy::cast_possible_truncation, reason = "servers compute with fewer digits yet")]
    let number = |it: &Value| it.as_f64().map(|it| it as f32).filter(|it| it.is_finite());
    let numbers = value.as_array().map(|it| it.iter().map(number).collect::<Option<Vec<f32>>>());
    numbers.flatten().unwrap_or_default()
}

/// Refuses vectors whose number differs from that of the texts, or whose lengths differ.
fn validate_vectors(
    server: &str,
    vectors: Vec<Vec<f32>>,
    count: usize,
    dimensions: Option<u32>,
) -> Result<Vec<Vec<f32>>, CallError> {
    let garbage = |what| CallError::UnexpectedResponse { server: server.to_owned(), what };
    let length = vectors.first().map_or(0, Vec::len);
    if vectors.len() != count {
        return Err(garbage("a number of vectors other than that of the texts"));
    }
    if length == 0 || length > DIMENSIONS_MAX || vectors.iter().any(|it| it.len() != length) {
        return Err(garbage("vectors of unusable lengths"));
    }
    if dimensions.is_some_and(|it| usize::try_from(it).ok() != Some(length)) {
        return Err(garbage("vectors whose length is not search.embeddings.dimensions"));
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

    fn summary(response: Result<EmbeddingResponse, CallError>, count: usize) -> String {
        match response.and_then(|it| validate_vectors("s", it.0, count, None)) {
            Ok(vectors) => format!("{vectors:?}"),
            Err(error) => error.name().to_owned(),
        }
    }

    #[test]
    fn vectors_are_in_the_order_of_the_texts_or_refused() {
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
            assert_eq!(summary(openai_vectors("s", &answer, 2), 2), expected, "{answer:?}");
        }
        for (answer, expected) in [
            (answer(200, &json!({ "embeddings": [[1.0], [2.0]] })), "[[1.0], [2.0]]"),
            (answer(200, &json!({ "embeddings": [[1.0]] })), "garbage"),
            (answer(200, &json!({ "embeddings": [[1.0], [null]] })), "garbage"),
            (answer(200, &json!({ "error": "no such model" })), "unavailable"),
            (answer(404, &json!({ "error": "no such model" })), "request"),
        ] {
            assert_eq!(summary(ollama_vectors("s", &answer), 2), expected, "{answer:?}");
        }
    }
}
