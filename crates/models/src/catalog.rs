//! The model catalog: providers, models with their features and prices, and the default model of each role.
//!
//! The built-in catalog is `catalog.toml`; `[models]` in `choir.toml` overrides it table by table. The catalog is
//! validated when it is loaded, and the gateway uses every setting in it.

mod read;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use serde::{Deserialize, Serialize};
use thiserror::Error;
use url::Url;

use crate::Prices;

/// The agent roles that have a configurable model.
pub const ROLES: [&str; 4] = ["conductor", "writer", "researcher", "terminal"];

/// An invalid setting in `[models]`.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
#[error("models.{key}: {problem}")]
pub struct CatalogError {
    /// The setting, as a dotted path of keys.
    pub key: String,
    pub problem: String,
}

/// All configured providers and models.
#[derive(Debug, Clone, PartialEq)]
pub struct Catalog {
    pub providers: BTreeMap<String, Provider>,
    pub models: BTreeMap<String, Model>,
    /// The model of each of [`ROLES`].
    pub roles: BTreeMap<String, String>,
    pub retry: Retry,
    pub timeouts: Timeouts,
}

/// A model provider.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provider {
    pub kind: ProviderKind,
    /// The protocol's path is appended to this URL. `None` for the local model, which reports its own address.
    #[serde(default)]
    pub base_url: Option<Url>,
    pub auth: AuthScheme,
    /// Maximum number of concurrent requests.
    pub at_once: u32,
    /// The AWS region that requests are signed for.
    #[serde(default)]
    pub region: Option<String>,
    /// Overrides [`Timeouts::silence_ms`] for this provider.
    #[serde(default)]
    pub silence_ms: Option<u64>,
    /// Overrides [`Timeouts::nothing_said_ms`] for this provider.
    #[serde(default)]
    pub nothing_said_ms: Option<u64>,
}

/// The wire protocol of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProviderKind {
    /// Anthropic's Messages API.
    Anthropic,
    /// OpenAI's chat completions, also for compatible servers.
    Openai,
    /// Claude on Amazon Bedrock.
    Bedrock,
    /// OpenAI's chat completions, served by our own child process.
    Local,
}

/// How requests carry the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuthScheme {
    /// In the header `x-api-key`.
    ApiKey,
    /// In the header `authorization`.
    Bearer,
    /// A Bedrock API key in `authorization`, or an AWS signature with an access key.
    Aws,
    /// Requests carry no key.
    None,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    pub provider: String,
    /// The provider's id of the model.
    pub id: String,
    /// Context size in tokens: prompt and answer together.
    pub context: u64,
    pub max_output: u32,
    /// `None` if unknown.
    #[serde(default)]
    pub prices: Option<Prices>,
    #[serde(default)]
    pub supports: BTreeSet<ModelFeature>,
    /// Models to use instead when this one fails or has no key, in this order.
    #[serde(default)]
    pub fallbacks: Vec<String>,
    /// Provider-specific fields that are set in the body of every request.
    #[serde(default)]
    pub extra: toml::Table,
}

/// Optional features of a model or its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelFeature {
    /// Native tool calls. From models without this feature, calls written as text are accepted too.
    Calls,
    /// The request can force a tool call.
    ForcedCalls,
    /// The request can enforce a JSON Schema. For models without this feature, the schema is part of the prompt.
    JsonSchema,
    /// Prompt caching with cache marks in the request.
    Cache,
    /// The output limit is called `max_completion_tokens`.
    MaxCompletionTokens,
}

/// How often a request to one model is retried, and with what delays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retry {
    /// Total number of attempts.
    pub attempts: u32,
    /// Upper bound of the first delay; it doubles with every attempt.
    pub first_pause_ms: u64,
    /// No delay is longer. If a provider asks for a longer one, the request is not retried.
    pub longest_pause_ms: u64,
}

/// Timeouts of requests to providers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Timeouts {
    pub connect_ms: u64,
    /// Longest time without any bytes from the server, keep-alives included.
    pub silence_ms: u64,
    /// Longest time without a new piece of the answer, even if keep-alives arrive.
    pub nothing_said_ms: u64,
}

impl Timeouts {
    pub(crate) fn connect(self) -> Duration {
        Duration::from_millis(self.connect_ms)
    }

    pub(crate) fn silence(self, provider: &Provider) -> Duration {
        Duration::from_millis(provider.silence_ms.unwrap_or(self.silence_ms))
    }

    pub(crate) fn nothing_said(self, provider: &Provider) -> Duration {
        Duration::from_millis(provider.nothing_said_ms.unwrap_or(self.nothing_said_ms))
    }
}

impl Catalog {
    /// The context size that the local model process needs: the largest of all local models. `None` if the catalog has no
    /// local model.
    pub fn local_context(&self) -> Option<u64> {
        let is_local = |model: &&Model| {
            self.providers.get(&model.provider).is_some_and(|provider| provider.kind == ProviderKind::Local)
        };
        self.models.values().filter(is_local).map(|model| model.context).max()
    }
}

impl Model {
    pub(crate) fn supports(&self, feature: ModelFeature) -> bool {
        self.supports.contains(&feature)
    }
}
