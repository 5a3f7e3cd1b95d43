//! The engine that a root is configured for.

use std::{sync::Arc, time::Duration};

use super::{
    Engine,
    extractive::Extractive,
    model::{ModelEngine, id_of},
};
use crate::{
    config::{
        Config,
        root::RootSettings,
        settings::{EngineKind, Settings},
        surroundings::Surroundings,
    },
    memory::decision::Decisions,
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
    let vault = Vault::of(root)
        .map_err(|e| OpenError::Own { path: "secrets.yaml".to_owned(), reason: e.to_string() })?;
    let nonce = nonce(&vault);
    let door = open::door(config, root, around, vault, patience)?;
    Ok(Box::new(by_model(Box::new(door), root, around, nonce)?))
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
    vault: &Vault,
) -> Result<ModelEngine, OpenError> {
    by_model(Box::new(Arc::clone(recorder)), root, around, nonce(vault))
}

fn by_model(
    ask: Box<dyn Ask>,
    root: &RootSettings,
    around: &Surroundings,
    nonce: [u8; 32],
) -> Result<ModelEngine, OpenError> {
    let Settings { model, compaction, wisdom, .. } = &root.settings;
    Ok(ModelEngine {
        ask,
        prompts: open::prompts(around)?,
        id: id_of(&model.name),
        context_tokens: model.context_tokens,
        max_output_tokens: model.max_output_tokens,
        nonce,
        compaction: compaction.clone(),
        wisdom: wisdom.clone(),
    })
}

/// Returns what no log can know.
fn nonce(vault: &Vault) -> [u8; 32] {
    let decisions = vault.read_text(&vault.layout().decisions()).ok().flatten();
    decisions.and_then(|it| Decisions::parse(&it).nonce()).unwrap_or_else(random)
}

/// Returns the name of a root's engine, as files record it.
pub fn id(settings: &Settings) -> String {
    match settings.engine {
        EngineKind::Extractive => Extractive.id().to_owned(),
        EngineKind::Model => id_of(&settings.model.name),
    }
}

/// For a root that has no key yet: it holds for this process.
fn random() -> [u8; 32] {
    let mut bytes = [0; 32];
    // Without random bytes it is guessed at worst, and the check still stands behind it.
    let _ = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    bytes
}
