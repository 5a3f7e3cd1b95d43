//! Vectors for semantic search, for verbs that bring new lines: within a time, and without failing the verb.

use std::time::{Duration, Instant};

use super::ui::Ui;
use crate::{
    model::{connect, embedding::EmbeddingInput},
    operations::workspace::{Invocation, MemoryRoot},
    recall::search,
    store::{db::vectors::VectorDb, fs::inventory::Inventory},
};

/// How long a call of `compact` or `bundle pull` computes vectors for semantic search.
const EMBED_TIME_MAX: Duration = Duration::from_secs(60);

/// Computes vectors of new lines, if an embedding server is configured.
pub(super) fn embed_new_lines(
    call: &Invocation,
    root: &MemoryRoot,
    inventory: Option<&Inventory>,
    ui: &Ui,
) {
    let embedder = match connect::embedding_client(
        &call.config,
        &root.settings,
        &call.environment,
        EmbeddingInput::Line,
    ) {
        Ok(Some(embedder)) => embedder,
        Ok(None) => {
            // Without a server nothing uses the vectors of earlier runs.
            VectorDb::remove(&root.vault.layout().vectors());
            return;
        }
        Err(error) => {
            ui.warn(format!("cannot compute vectors: {error}"));
            return;
        }
    };
    let started = Instant::now();
    let mut may_continue = || started.elapsed() < EMBED_TIME_MAX;
    match search::embed_lines(&root.vault, inventory, &embedder, &mut may_continue) {
        Ok(progress) => {
            if progress.lines > 0 {
                ui.detail(format!("computed vectors of {} lines", progress.lines));
            }
            if let Some(why) = progress.failed {
                ui.warn(format!("{} logs wait for vectors: {why}", progress.logs_left));
            } else if progress.logs_left > 0 {
                ui.note(format!(
                    "{} logs have no vectors yet; the daemon or the next `memoird compact` continues",
                    progress.logs_left
                ));
            }
        }
        Err(error) => ui.warn(format!("cannot compute vectors: {error}")),
    }
}
