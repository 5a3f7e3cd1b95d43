//! The engine that a root is configured for.

use std::{fs, path::Path, sync::Arc, time::Duration};

use super::{
    Engine,
    extractive::Extractive,
    model::{ModelEngine, model_engine_id, week_batch::PendingWeeks},
};
use crate::{
    config::{
        Config,
        environment::Environment,
        root::RootSettings,
        settings::{EngineKind, Settings},
    },
    model::{
        LanguageModel, RequestRecorder,
        connect::{self, ModelConfigError},
    },
    store::fs::vault::Vault,
};

/// Returns the engine of a root. Nothing is sent before it drafts.
///
/// `patience` is how long to wait in all for a model that fails.
///
/// # Errors
///
/// Returns why a model that is configured cannot be asked.
pub fn open_engine(
    config: &Config,
    root: &RootSettings,
    around: &Environment,
    patience: Duration,
) -> Result<Box<dyn Engine>, ModelConfigError> {
    if root.settings.engine == EngineKind::Extractive {
        return Ok(Box::new(Extractive));
    }
    Ok(Box::new(open_model_engine(config, root, around, patience)?))
}

/// Like [`open_engine`], for who needs a model and no other.
///
/// # Errors
///
/// Returns why the model cannot be asked.
pub fn open_model_engine(
    config: &Config,
    root: &RootSettings,
    around: &Environment,
    patience: Duration,
) -> Result<ModelEngine, ModelConfigError> {
    let vault = Vault::for_root(root).map_err(|e| ModelConfigError::UserFile {
        path: "secrets.yaml".to_owned(),
        reason: e.to_string(),
    })?;
    let door = connect::client(config, root, around, vault, patience)?;
    build_model_engine(Box::new(door), root, around)
}

/// Returns an engine that asks a model, with a door that only takes notes. No key is read.
///
/// # Errors
///
/// Returns what is wrong with a person's own prompts.
pub fn recording_engine(
    recorder: &Arc<RequestRecorder>,
    root: &RootSettings,
    around: &Environment,
) -> Result<ModelEngine, ModelConfigError> {
    build_model_engine(Box::new(Arc::clone(recorder)), root, around)
}

fn build_model_engine(
    ask: Box<dyn LanguageModel>,
    root: &RootSettings,
    around: &Environment,
) -> Result<ModelEngine, ModelConfigError> {
    let Settings { model, compaction, wisdom, .. } = &root.settings;
    Ok(ModelEngine {
        ask,
        prompts: connect::prompts(around)?,
        id: model_engine_id(&model.name),
        context_tokens: model.context_tokens,
        max_output_tokens: model.max_output_tokens,
        nonce: nonce(around, &root.path),
        compaction: compaction.clone(),
        wisdom: wisdom.clone(),
        pending_weeks: PendingWeeks::default(),
    })
}

/// Returns the name of a root's engine, as files record it.
pub fn engine_id(settings: &Settings) -> String {
    match settings.engine {
        EngineKind::Extractive => Extractive.id().to_owned(),
        EngineKind::Model => model_engine_id(&settings.model.name),
    }
}

/// Returns what nobody who writes text for a log from afar can know, and what is the same from run to
/// run: a request that was answered before a crash is known again by its bytes, its marker too.
fn nonce(around: &Environment, root: &Path) -> [u8; 32] {
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
