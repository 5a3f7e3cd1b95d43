//! Creates the engine that a root is configured for.

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

/// Returns the engine of a root. It sends nothing before the first draft.
///
/// `patience` is the total time to wait for a model that fails.
///
/// # Errors
///
/// Returns why the configured model cannot be used.
pub fn open_engine(
    config: &Config,
    root: &RootSettings,
    environment: &Environment,
    patience: Duration,
) -> Result<Box<dyn Engine>, ModelConfigError> {
    if root.settings.engine == EngineKind::Extractive {
        return Ok(Box::new(Extractive));
    }
    Ok(Box::new(open_model_engine(config, root, environment, patience)?))
}

/// Returns the model engine of a root, for callers that cannot use another one.
///
/// # Errors
///
/// Returns why the model cannot be used.
pub fn open_model_engine(
    config: &Config,
    root: &RootSettings,
    environment: &Environment,
    patience: Duration,
) -> Result<ModelEngine, ModelConfigError> {
    let vault = Vault::for_root(root).map_err(|e| ModelConfigError::UserFile {
        path: "secrets.yaml".to_owned(),
        reason: e.to_string(),
    })?;
    let client = connect::client(config, root, environment, vault, patience)?;
    build_model_engine(Box::new(client), root, environment)
}

/// Returns a model engine that only records its requests and reads no API key.
///
/// # Errors
///
/// Returns what is wrong with the user's prompt files.
pub fn recording_engine(
    recorder: &Arc<RequestRecorder>,
    root: &RootSettings,
    environment: &Environment,
) -> Result<ModelEngine, ModelConfigError> {
    build_model_engine(Box::new(Arc::clone(recorder)), root, environment)
}

/// Returns the engine of a root whose model calls are made under a budget that several machines share.
///
/// Fails as [`open_engine`] does.
#[cfg(feature = "fleet")]
pub(crate) fn open_shared_engine(
    config: &Config,
    root: &RootSettings,
    environment: &Environment,
    patience: Duration,
    shared: Arc<dyn crate::model::shared_spending::SharedSpending>,
) -> Result<Box<dyn Engine>, ModelConfigError> {
    if root.settings.engine == EngineKind::Extractive {
        return Ok(Box::new(Extractive));
    }
    let vault = Vault::for_root(root).map_err(|e| ModelConfigError::UserFile {
        path: "secrets.yaml".to_owned(),
        reason: e.to_string(),
    })?;
    let mut client = connect::client(config, root, environment, vault, patience)?;
    let nonce = shared.nonce();
    client.share_spending(shared);
    let engine = build_model_engine(Box::new(client), root, environment)?;
    Ok(Box::new(ModelEngine { nonce, ..engine }))
}

fn build_model_engine(
    client: Box<dyn LanguageModel>,
    root: &RootSettings,
    environment: &Environment,
) -> Result<ModelEngine, ModelConfigError> {
    let Settings { model, compaction, wisdom, .. } = &root.settings;
    Ok(ModelEngine {
        client,
        prompts: connect::prompts(environment)?,
        id: model_engine_id(&model.name),
        context_tokens: model.context_tokens,
        max_output_tokens: model.max_output_tokens,
        nonce: nonce(environment, &root.path),
        compaction: compaction.clone(),
        wisdom: wisdom.clone(),
        pending_weeks: PendingWeeks::default(),
    })
}

/// Returns the name of a root's engine as recorded in files.
pub fn engine_id(settings: &Settings) -> String {
    match settings.engine {
        EngineKind::Extractive => Extractive.id().to_owned(),
        EngineKind::Model => model_engine_id(&settings.model.name),
    }
}

/// Returns a secret that the author of a log line cannot know, and that is the same in every run.
///
/// It must not change between runs: after a crash, an answered request is recognized by its bytes,
/// which include the marker derived from this value.
fn nonce(environment: &Environment, root: &Path) -> [u8; 32] {
    // Random per installation. If the file is missing, host and path must do; the marker also depends on
    // all of the data, which no single author knows.
    let machine = fs::read("/etc/machine-id").unwrap_or_default();
    let mut hasher = blake3::Hasher::new_derive_key("memoird 2026 marker around data");
    for part in [&machine, environment.host.as_bytes(), root.as_os_str().as_encoded_bytes()] {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    *hasher.finalize().as_bytes()
}
