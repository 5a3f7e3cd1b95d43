//! A call as a span, by the names of the OpenTelemetry conventions for generative AI.
//!
//! A span contains numbers and names, never text of a request or a reply, and no key.

use tracing::{Span, field::Empty};

use super::{
    ModelRequest,
    client::{endpoint::ProviderEndpoint, send::CallOutcome},
};

/// Starts the span of a call.
pub(super) fn chat_span(endpoint: &ProviderEndpoint, model: &str, request: &ModelRequest) -> Span {
    tracing::info_span!(
        "chat",
        gen_ai.operation.name = "chat",
        gen_ai.provider.name = endpoint.provider(),
        gen_ai.request.model = model,
        gen_ai.request.max_tokens = request.max_output_tokens,
        gen_ai.output.type = if request.schema.is_some() { "json" } else { "text" },
        gen_ai.response.id = Empty,
        gen_ai.response.model = Empty,
        gen_ai.response.finish_reasons = Empty,
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        gen_ai.usage.cache_read.input_tokens = Empty,
        gen_ai.usage.cache_creation.input_tokens = Empty,
        server.address = endpoint.server(),
        error.type = Empty,
        stage = request.stage.name(),
        period = request.period,
        requests = Empty,
        cost_usd = Empty,
    )
}

/// Starts the span of a call for embeddings.
pub(super) fn embeddings_span(
    endpoint: &ProviderEndpoint,
    model: &str,
    request: &ModelRequest,
) -> Span {
    tracing::info_span!(
        "embeddings",
        gen_ai.operation.name = "embeddings",
        gen_ai.provider.name = endpoint.provider(),
        gen_ai.request.model = model,
        gen_ai.response.id = Empty,
        gen_ai.response.model = Empty,
        gen_ai.usage.input_tokens = Empty,
        server.address = endpoint.server(),
        error.type = Empty,
        texts = request.messages.len(),
        requests = Empty,
        cost_usd = Empty,
    )
}

/// Starts the span of a call that was answered in a batch. Its row in the ledger shows its purpose.
pub(super) fn batched_chat_span(endpoint: &ProviderEndpoint, model: &str) -> Span {
    tracing::info_span!(
        "chat",
        gen_ai.operation.name = "chat",
        gen_ai.provider.name = endpoint.provider(),
        gen_ai.request.model = model,
        gen_ai.response.id = Empty,
        gen_ai.response.model = Empty,
        gen_ai.response.finish_reasons = Empty,
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        gen_ai.usage.cache_read.input_tokens = Empty,
        gen_ai.usage.cache_creation.input_tokens = Empty,
        server.address = endpoint.server(),
        error.type = Empty,
        batched = true,
        requests = Empty,
        cost_usd = Empty,
    )
}

/// Records how the call ended.
pub(super) fn record_outcome(span: &Span, sent: &CallOutcome, cost_usd: f64) {
    span.record("requests", sent.requests);
    span.record("cost_usd", cost_usd);
    let took_ms = u64::try_from(sent.duration.as_millis()).unwrap_or(u64::MAX);
    let reply = match &sent.reply {
        Ok(reply) => reply,
        Err(error) => {
            span.record("error.type", error.name());
            tracing::debug!(took_ms, "model call failed");
            return;
        }
    };
    span.record("gen_ai.response.finish_reasons", reply.finish_reason.name());
    if let Some(id) = &reply.id {
        span.record("gen_ai.response.id", id.as_str());
    }
    if let Some(model) = &reply.model {
        span.record("gen_ai.response.model", model.as_str());
    }
    if let Some(usage) = &reply.usage {
        span.record("gen_ai.usage.input_tokens", usage.input_tokens);
        span.record("gen_ai.usage.output_tokens", usage.output_tokens);
        span.record("gen_ai.usage.cache_read.input_tokens", usage.cache_read_tokens);
        span.record("gen_ai.usage.cache_creation.input_tokens", usage.cache_write_tokens);
    }
    tracing::debug!(took_ms, "model call");
}
