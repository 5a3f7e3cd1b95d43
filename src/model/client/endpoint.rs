//! Where requests of a model go: a server or a program.

use crate::{config::base_url::BaseUrl, model::command::ModelProgram};

/// Where requests go.
#[derive(Debug)]
pub enum ProviderEndpoint {
    /// Anthropic's Messages API.
    Anthropic {
        /// The server.
        base: BaseUrl,
        /// The version of the API.
        api_version: String,
    },
    /// Chat completions.
    Openai {
        /// The server, with `/v1` or its equivalent.
        base: BaseUrl,
    },
    /// Ollama's own chat API.
    Ollama {
        /// The server, without `/v1`.
        base: BaseUrl,
    },
    /// A program.
    Command(ModelProgram),
}

impl ProviderEndpoint {
    /// Returns the address of the server, or the name of the program.
    pub fn server(&self) -> &str {
        match self {
            Self::Anthropic { base, .. } | Self::Openai { base } | Self::Ollama { base } => {
                base.as_str()
            }
            Self::Command(program) => program.name(),
        }
    }

    /// Returns the name of the provider; OpenTelemetry's where it defines one.
    pub fn provider(&self) -> &'static str {
        match self {
            Self::Anthropic { .. } => "anthropic",
            Self::Openai { .. } => "openai",
            Self::Ollama { .. } => "ollama",
            Self::Command(_) => "command",
        }
    }

    /// Returns whether requests stay on this machine, so that a call is free.
    pub fn is_local(&self) -> bool {
        match self {
            Self::Anthropic { base, .. } | Self::Openai { base } | Self::Ollama { base } => {
                base.is_loopback()
            }
            Self::Command(_) => true,
        }
    }

    /// Returns whether the provider has a batch API.
    pub fn has_batches(&self) -> bool {
        matches!(self, Self::Anthropic { .. } | Self::Openai { .. })
    }
}
