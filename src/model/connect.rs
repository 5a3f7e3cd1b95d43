//! Clients of models, from the configuration.

use std::{fs, io, path::Path, time::Duration};

use super::{
    ModelInfo, Stage, anthropic,
    client::{LedgerFile, ModelClient, ModelClientConfig, endpoint::ProviderEndpoint},
    command::ModelProgram,
    embedding::{EmbeddingClient, EmbeddingInput},
    http::Deadlines,
    pricing::Pricing,
    prompt::Prompts,
    recording::Recording,
};
use crate::{
    config::{
        Config,
        api_key::{KeyError, KeySource},
        base_url::{BaseUrl, check_base_url},
        environment::Environment,
        root::RootSettings,
        settings::{
            Budget, Cap, Embeddings, EmbeddingsProvider, Model, Provider, Settings, Timeouts,
        },
    },
    memory::document::SummaryHeader,
    store::{
        db::ledger::{BudgetLimits, CallBudgets, Ledger, UsageGroupBy, UsageTotals},
        fs::vault::Vault,
    },
};

/// The longest prompt or price table of the user, in bytes.
const FILE_BYTES_MAX: u64 = 256 * 1024;

/// How long a search waits for the vector of its query.
const QUERY_CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
const QUERY_TOTAL_TIMEOUT: Duration = Duration::from_secs(6);

/// Why a configured model cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ModelConfigError {
    /// The key cannot be used.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// There is no key for a server that requires one.
    #[error(
        "no key for {0}: set model.key_file to a file that contains it, or set MEMOIRD_API_KEY"
    )]
    NoKey(String),
    /// The address cannot be used.
    #[error("model.base_url: {0}")]
    Address(#[from] crate::config::base_url::BaseUrlError),
    /// No program is configured.
    #[error("model.command names no program")]
    NoProgram,
    /// No embedding model is configured.
    #[error("search.embeddings.name names no model")]
    NoEmbeddings,
    /// A file of the user cannot be read.
    #[error("`{path}`: {reason}")]
    UserFile {
        /// The file.
        path: String,
        /// Why.
        reason: String,
    },
}

/// Returns the client of a root's model. Nothing is sent.
///
/// `retry_wait_max` is how long to wait in total between retries.
///
/// Returns what is wrong with the key, the address, or the price table.
pub(crate) fn client(
    config: &Config,
    root: &RootSettings,
    environment: &Environment,
    vault: Vault,
    retry_wait_max: Duration,
) -> Result<ModelClient, ModelConfigError> {
    let model = &root.settings.model;
    let endpoint = endpoint(model)?;
    let source = config.key_source(model, environment);
    let key = source.as_ref().map(KeySource::read).transpose()?;
    if key.is_none() && matches!(endpoint, ProviderEndpoint::Anthropic { .. }) {
        return Err(ModelConfigError::NoKey(endpoint.server().to_owned()));
    }
    // Identifies the account by the source of its key, which changes when a refused account is fixed.
    let account = source.map_or_else(|| "no key".to_owned(), |it| it.to_string());
    let ledger = LedgerFile { path: environment.ledger_path(), was_used: was_used(&vault) };
    Ok(ModelClient::new(ModelClientConfig {
        model: model.name.clone(),
        key,
        account,
        context_tokens: model.context_tokens,
        deadlines: deadlines(&model.timeouts),
        pricing: pricing(environment)?,
        budgets: budgets(&config.settings.budget, &root.settings.budget),
        zone: root.zone.name.0,
        root: root.path.clone(),
        vault: Some(vault),
        retry_wait_max,
        ledger,
        batch: model.batch,
        recording: config.recording_file(environment).map(|path| Recording { path }),
        endpoint,
    }))
}

/// Returns the client of a root's embedding model; `None` if none is configured.
pub(crate) fn embedding_client(
    config: &Config,
    root: &RootSettings,
    environment: &Environment,
    side: EmbeddingInput,
) -> Result<Option<EmbeddingClient>, ModelConfigError> {
    let Settings { search, model, budget, .. } = &root.settings;
    let Some(settings) = &search.embeddings else { return Ok(None) };
    let Embeddings { provider, name, base_url, key_file, .. } = settings;
    if name.is_empty() {
        return Err(ModelConfigError::NoEmbeddings);
    }
    let provider = match provider {
        EmbeddingsProvider::Openai => Provider::Openai,
        EmbeddingsProvider::Ollama => Provider::Ollama,
    };
    let embedding_model = Model {
        provider,
        name: name.clone(),
        base_url: base_url.clone(),
        key_file: key_file.clone(),
        ..model.clone()
    };
    let endpoint = endpoint(&embedding_model)?;
    // A key is sent only to the server that it was configured for.
    let is_same_server = model.endpoint() == embedding_model.endpoint();
    let embedding_model =
        Model { key_file: key_file.clone().or_else(|| model.key_file.clone()), ..embedding_model };
    let may_use_key = key_file.is_some() || is_same_server;
    let source = if may_use_key { config.key_source(&embedding_model, environment) } else { None };
    let key = source.as_ref().map(KeySource::read).transpose()?;
    let account = source.map_or_else(|| "no key".to_owned(), |it| it.to_string());
    let mut budgets = budgets(&config.settings.budget, budget);
    // Calls are many and small, so only money and tokens are limited.
    for limits in
        [&mut budgets.day, &mut budgets.month, &mut budgets.root_day, &mut budgets.root_month]
    {
        limits.calls = None;
    }
    let mut deadlines = deadlines(&model.timeouts);
    match side {
        // The other half stays for summaries.
        EmbeddingInput::Line => budgets = halved(budgets),
        // A person waits, and the search works without embeddings.
        EmbeddingInput::Query => {
            for (deadline, most) in [
                (&mut deadlines.connect, QUERY_CONNECT_TIMEOUT),
                (&mut deadlines.first_byte, QUERY_TOTAL_TIMEOUT),
                (&mut deadlines.total, QUERY_TOTAL_TIMEOUT),
            ] {
                *deadline = (*deadline).min(most);
            }
        }
    }
    let client = ModelClient::new(ModelClientConfig {
        model: name.clone(),
        key,
        account,
        context_tokens: embedding_model.context_tokens,
        deadlines,
        pricing: pricing(environment)?,
        budgets,
        zone: root.zone.name.0,
        root: root.path.clone(),
        vault: None,
        retry_wait_max: Duration::ZERO,
        ledger: LedgerFile { path: environment.ledger_path(), was_used: false },
        batch: false,
        recording: None,
        endpoint,
    });
    Ok(Some(EmbeddingClient::new(client, settings.clone())))
}

/// Returns budgets with half of the money and the tokens.
fn halved(budgets: CallBudgets) -> CallBudgets {
    let of = |it: BudgetLimits| BudgetLimits {
        usd: it.usd.map(|it| it / 2.0),
        tokens: it.tokens.map(|it| it / 2),
        calls: it.calls,
    };
    let CallBudgets { day, month, root_day, root_month } = budgets;
    CallBudgets {
        day: of(day),
        month: of(month),
        root_day: of(root_day),
        root_month: of(root_month),
    }
}

/// Returns what the ledger has learned about a model; nothing if it cannot be read.
pub fn model_info(environment: &Environment, model: &Model) -> ModelInfo {
    let ledger = Ledger::open_existing(&environment.ledger_path()).ok().flatten();
    let (Some(ledger), Ok(endpoint)) = (ledger, endpoint(model)) else {
        return ModelInfo::default();
    };
    let row = ledger.server(endpoint.server(), &model.name).ok();
    ModelInfo {
        context_tokens: row.and_then(|it| u32::try_from(it.context_tokens?).ok()),
        token_ratio: ledger.token_ratio(endpoint.server(), &model.name).ok().flatten(),
        repair_share: repair_share(&ledger),
    }
}

/// Returns the input tokens of second tries per input token of first ones, over all calls.
fn repair_share(ledger: &Ledger) -> Option<f64> {
    let stages = ledger.usage_totals(UsageGroupBy::Stage, None, None).ok()?;
    let tokens = |of: &[Stage]| -> u64 {
        let is_one = |it: &&UsageTotals| of.iter().any(|stage| stage.name() == it.key);
        stages.iter().filter(is_one).map(|it| it.input_tokens).sum()
    };
    let first = tokens(&[Stage::Weekly, Stage::Monthly, Stage::Extract, Stage::Wisdom]);
    let again = tokens(&[Stage::Repair]);
    #[expect(clippy::cast_precision_loss, reason = "a share of tokens")]
    let share = again as f64 / first as f64;
    (first > 0 && again > 0).then_some(share)
}

/// Reads the prompts; those in `prompts/` beside the configuration take precedence.
pub(crate) fn prompts(environment: &Environment) -> Result<Prompts, ModelConfigError> {
    let folder = environment.config_folder().join("prompts");
    let own = |name: &str| read_user_file(&folder.join(format!("{name}.md"))).ok().flatten();
    Prompts::read(own).map_err(|e| ModelConfigError::UserFile {
        path: folder.display().to_string(),
        reason: e.to_string(),
    })
}

/// Reads the prices; those in `pricing.yaml` beside the configuration take precedence.
pub(crate) fn pricing(environment: &Environment) -> Result<Pricing, ModelConfigError> {
    let path = environment.config_folder().join("pricing.yaml");
    let bad =
        |reason: String| ModelConfigError::UserFile { path: path.display().to_string(), reason };
    let own = read_user_file(&path).map_err(|e| bad(e.to_string()))?;
    Pricing::read(own.as_deref()).map_err(|e| bad(e.to_string()))
}

fn endpoint(model: &Model) -> Result<ProviderEndpoint, ModelConfigError> {
    let base = || -> Result<BaseUrl, ModelConfigError> {
        Ok(check_base_url(model.endpoint().unwrap_or_default())?)
    };
    Ok(match model.provider {
        Provider::Anthropic => ProviderEndpoint::Anthropic {
            base: base()?,
            api_version: model.api_version.clone().unwrap_or_else(|| anthropic::API_VERSION.into()),
        },
        Provider::Openai => ProviderEndpoint::Openai { base: base()? },
        Provider::Ollama => {
            // Ollama's own API is beside the one that it shares with others.
            let text = base()?.as_str().trim_end_matches("/v1").to_owned();
            ProviderEndpoint::Ollama { base: check_base_url(&text)? }
        }
        Provider::Command => {
            let argv = model.command.as_deref().unwrap_or_default();
            ProviderEndpoint::Command(ModelProgram::new(argv).ok_or(ModelConfigError::NoProgram)?)
        }
        Provider::ClaudeCli => ProviderEndpoint::Command(ModelProgram::claude()),
    })
}

fn deadlines(timeouts: &Timeouts) -> Deadlines {
    let Timeouts { connect, first_byte, idle, total } = timeouts;
    Deadlines {
        connect: connect.as_duration(),
        first_byte: first_byte.as_duration(),
        idle: idle.as_duration(),
        total: total.as_duration(),
    }
}

fn budgets(all: &Budget, root: &Budget) -> CallBudgets {
    let limits = |it: &Cap| BudgetLimits { usd: it.usd, tokens: it.tokens, calls: it.calls };
    CallBudgets {
        day: limits(&all.day),
        month: limits(&all.month),
        root_day: limits(&root.day),
        root_month: limits(&root.month),
    }
}

/// Returns whether a model drafted a file of the root, so that there must have been a ledger.
fn was_used(vault: &Vault) -> bool {
    const FILES_MAX: usize = 20;
    let folder = vault.layout().summary_dir(crate::memory::period::Grain::Week);
    let (files, _) = vault.files_below(&folder, usize::MAX);
    files.iter().rev().take(FILES_MAX).any(|path| {
        let name = path.rsplit('/').next().and_then(|it| it.strip_suffix(".md"));
        let period = name.and_then(|it| it.parse().ok());
        let text = vault.read_text(path).ok().flatten();
        let header = period.zip(text).and_then(|(week, it)| SummaryHeader::read(week, &it).ok()?);
        header.is_some_and(|it| it.engine.starts_with("model/"))
    })
}

fn read_user_file(path: &Path) -> io::Result<Option<String>> {
    match fs::metadata(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
        Ok(meta) if !meta.is_file() || meta.len() > FILE_BYTES_MAX => {
            Err(io::Error::other("not a file, or larger than 256 KB"))
        }
        Ok(_) => fs::read_to_string(path).map(Some),
    }
}
