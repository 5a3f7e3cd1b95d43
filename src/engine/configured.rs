//! The engine that a root is configured for.

use std::{fs, path::Path, sync::Arc, time::Duration};

use super::{
    Engine,
    extractive::Extractive,
    model::{ModelEngine, combined::Awaited, id_of},
};
use crate::{
    config::{
        Config,
        root::RootSettings,
        settings::{EngineKind, Settings},
        surroundings::Surroundings,
    },
    model::{
        Ask, Recorder,
        open::{self, OpenError},
    },
    store::vault::Vault,
};

/// Returns the engine of a root. Nothing is sent before it drafts.
///
/// `patience` is how long to wait in all for a model that fails.
///
/// # Errors
///
/// Returns why a model that is configured cannot be asked.
pub fn engine(
    config: &Config,
    root: &RootSettings,
    around: &Surroundings,
    patience: Duration,
) -> Result<Box<dyn Engine>, OpenError> {
    if root.settings.engine == EngineKind::Extractive {
        return Ok(Box::new(Extractive));
    }
    Ok(Box::new(asking(config, root, around, patience)?))
}

/// Like [`engine`], for who needs a model and no other.
///
/// # Errors
///
/// Returns why the model cannot be asked.
pub fn asking(
    config: &Config,
    root: &RootSettings,
    around: &Surroundings,
    patience: Duration,
) -> Result<ModelEngine, OpenError> {
    let vault = Vault::of(root)
        .map_err(|e| OpenError::Own { path: "secrets.yaml".to_owned(), reason: e.to_string() })?;
    let door = open::door(config, root, around, vault, patience)?;
    by_model(Box::new(door), root, around)
}

/// Returns an engine that asks a model, with a door that only takes notes. No key is read.
///
/// # Errors
///
/// Returns what is wrong with a person's own prompts.
pub fn noting(
    recorder: &Arc<Recorder>,
    root: &RootSettings,
    around: &Surroundings,
) -> Result<ModelEngine, OpenError> {
    by_model(Box::new(Arc::clone(recorder)), root, around)
}

fn by_model(
    ask: Box<dyn Ask>,
    root: &RootSettings,
    around: &Surroundings,
) -> Result<ModelEngine, OpenError> {
    let Settings { model, compaction, wisdom, .. } = &root.settings;
    Ok(ModelEngine {
        ask,
        prompts: open::prompts(around)?,
        id: id_of(&model.name),
        context_tokens: model.context_tokens,
        max_output_tokens: model.max_output_tokens,
        nonce: nonce(around, &root.path),
        compaction: compaction.clone(),
        wisdom: wisdom.clone(),
        awaited: Awaited::default(),
    })
}

/// Returns the name of a root's engine, as files record it.
pub fn id(settings: &Settings) -> String {
    match settings.engine {
        EngineKind::Extractive => Extractive.id().to_owned(),
        EngineKind::Model => id_of(&settings.model.name),
    }
}

/// Returns what nobody who writes text for a log from afar can know, and what is the same from run to
/// run: a request that was answered before a crash is known again by its bytes, its marker too.
fn nonce(around: &Surroundings, root: &Path) -> [u8; 32] {
    // Random bytes that each installation has. Without them host and paths have to do; the marker
    // depends on all of the data as well, which no single author of it knows.
    let machine = fs::read("/etc/machine-id").unwrap_or_default();
    let mut hasher = blake3::Hasher::new_derive_key("memoird 2026 marker around data");
    for part in [&machine, around.host.as_bytes(), root.as_os_str().as_encoded_bytes()] {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    *hasher.finalize().as_bytes()
}
