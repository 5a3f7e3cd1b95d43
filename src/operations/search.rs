//! Finds the log lines that answer a question.

use super::{
    error::CommandResult,
    workspace::{Invocation, MemoryRoot},
};
use crate::{
    model::{
        connect,
        embedding::{EmbeddingInput, EmbeddingModel},
    },
    recall::search::{self, Query, SearchCache, SearchOptions, SearchResults},
};

/// Searches a root, also by meaning if an embedding server is configured. `cache` keeps state between
/// searches of one process.
pub(crate) fn find(
    call: &Invocation,
    root: &MemoryRoot,
    query: &Query,
    options: SearchOptions,
    cache: Option<&SearchCache>,
) -> CommandResult<SearchResults> {
    let embedder = connect::embedding_client(
        &call.config,
        &root.settings,
        &call.environment,
        EmbeddingInput::Query,
    );
    let (embedder, why) = match embedder {
        Ok(embedder) => (embedder, None),
        Err(error) => (None, Some(error.to_string())),
    };
    let embedder = embedder.as_ref().map(|it| it as &dyn EmbeddingModel);
    let found = match cache {
        Some(cache) => cache.find(&root.vault, query, options, embedder),
        None => search::find(&root.vault, query, options, embedder),
    }?;
    Ok(SearchResults { words_only: found.words_only.or(why), ..found })
}
