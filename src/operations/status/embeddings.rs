//! The embedding server, and how many lines have vectors.

use serde::Serialize;

use crate::{
    model::{
        connect,
        embedding::{EmbeddingInput, EmbeddingModel as _},
    },
    operations::{
        error::CommandResult,
        workspace::{Invocation, MemoryRoot},
    },
    store::db::{ledger::Ledger, vectors::VectorDb},
};

#[derive(Serialize)]
pub(crate) struct EmbeddingsStatus {
    model: String,
    server: Option<String>,
    /// How many lines have vectors.
    lines: u64,
    /// How many logs lacked some vectors at the last check; null before the first check.
    left: Option<u64>,
    /// `ready`, or why no vectors are computed.
    state: String,
}

/// Returns the state of the embedding server; `None` if none is configured. Writes and sends nothing.
pub(crate) fn embeddings_status(
    call: &Invocation,
    root: &MemoryRoot,
) -> CommandResult<Option<EmbeddingsStatus>> {
    let Some(settings) = &root.settings.settings.search.embeddings else { return Ok(None) };
    let model = settings.name.clone();
    let client = connect::embedding_client(
        &call.config,
        &root.settings,
        &call.environment,
        EmbeddingInput::Line,
    );
    let embedder = match client {
        Ok(Some(embedder)) => embedder,
        Ok(None) => return Ok(None),
        Err(error) => {
            let state = error.to_string();
            return Ok(Some(EmbeddingsStatus { model, server: None, lines: 0, left: None, state }));
        }
    };
    let ledger = Ledger::open_existing(&call.environment.ledger_path())?;
    let paused =
        ledger.map(|it| embedder.client().circuit_error(&it, call.now)).transpose()?.flatten();
    let database = VectorDb::open_existing(&root.vault.layout().vectors(), embedder.space_id());
    let counts = database.and_then(|it| {
        let Some(it) = it else { return Ok((0, None)) };
        Ok((it.count()?, it.pending_files()?))
    });
    let (lines, left) = counts.as_ref().map_or((0, None), |it| *it);
    let state = match (paused, counts) {
        (Some(paused), _) => paused.to_string(),
        (None, Err(error)) => error.to_string(),
        (None, Ok(_)) => "ready".to_owned(),
    };
    let server = Some(embedder.client().endpoint().server().to_owned());
    Ok(Some(EmbeddingsStatus { model, server, lines, left, state }))
}

impl EmbeddingsStatus {
    /// Describes the state in a few words.
    pub(crate) fn describe(&self) -> String {
        let Self { model, lines, left, state, .. } = self;
        let left = match left {
            None => ", not started yet".to_owned(),
            Some(0) => String::new(),
            Some(left) => format!(", {left} logs remaining"),
        };
        format!("{model}, {state}; {lines} lines{left}")
    }
}
