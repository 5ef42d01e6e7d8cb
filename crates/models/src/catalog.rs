//! Which models there are, what they can do and cost, and which of them does what.
//!
//! The built-in catalog is `catalog.toml`; `[models]` of `choir.toml` is laid over it, table by table. Everything in it
//! is checked when it is read, and everything that can be set is read by the gateway.

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

/// Those for whom a model can be chosen.
pub const ROLES: [&str; 4] = ["conductor", "writer", "researcher", "terminal"];

/// What can be wrong with `[models]`.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
#[error("models.{key}: {problem}")]
pub struct CatalogError {
    /// Where, as a path of keys.
    pub key: String,
    pub problem: String,
}

/// All that is known about models.
#[derive(Debug, Clone, PartialEq)]
pub struct Catalog {
    pub providers: BTreeMap<String, Provider>,
    pub models: BTreeMap<String, Model>,
    /// The model of each of [`ROLES`].
    pub roles: BTreeMap<String, String>,
    pub retry: Retry,
    pub patience: Patience,
}

/// A server of models.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provider {
    pub kind: Kind,
    /// What the protocol's own path is appended to. The local model says itself where it listens.
    #[serde(default)]
    pub base_url: Option<Url>,
    pub auth: Auth,
    /// Turns that it takes at the same time.
    pub at_once: u32,
    /// The region that signatures for AWS are made for.
    #[serde(default)]
    pub region: Option<String>,
    /// Instead of the patience that all are met with.
    #[serde(default)]
    pub silence_ms: Option<u64>,
    #[serde(default)]
    pub nothing_said_ms: Option<u64>,
}

/// How it is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Anthropic's messages.
    Anthropic,
    /// OpenAI's chat completions, and all who speak them.
    Openai,
    /// Claude on Amazon Bedrock.
    Bedrock,
    /// OpenAI's chat completions, from our own process.
    Local,
}

/// How a key is shown to a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Auth {
    /// In the header `x-api-key`.
    ApiKey,
    /// In the header `authorization`.
    Bearer,
    /// An API key of Bedrock in `authorization`, or a signature by an access key.
    Aws,
    /// Not at all.
    None,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    pub provider: String,
    /// What the provider calls it.
    pub id: String,
    /// Tokens that it reads and writes in one turn.
    pub context: u64,
    pub max_output: u32,
    /// Not known where it is not said.
    #[serde(default)]
    pub prices: Option<Prices>,
    #[serde(default)]
    pub supports: BTreeSet<Support>,
    /// Who takes its place when it cannot be asked, in this order.
    #[serde(default)]
    pub fallbacks: Vec<String>,
    /// Fields that are laid over the body of each request, as the provider documents them.
    #[serde(default)]
    pub extra: toml::Table,
}

/// What a model or its server can do beyond answering.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Support {
    /// It calls tools in the protocol's own form; from others, calls written as text are understood, too.
    Calls,
    /// It can be made to call a tool.
    ForcedCalls,
    /// It can be held to a JSON Schema; others are told it and asked for JSON.
    JsonSchema,
    /// It keeps the marked beginning of a prompt.
    Cache,
    /// The limit of its answer is called `max_completion_tokens`.
    MaxCompletionTokens,
}

/// How often, and how long apart, one model is asked the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retry {
    /// Tries altogether.
    pub attempts: u32,
    /// The longest first pause; it doubles with each.
    pub first_pause_ms: u64,
    /// No pause is longer. Who asks us to wait longer is not waited for.
    pub longest_pause_ms: u64,
}

/// How long is waited for a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Patience {
    pub connect_ms: u64,
    /// Between any two signs of life, and before the first.
    pub silence_ms: u64,
    /// Between any two pieces of an answer. Until then a provider may do no more than show that it is there.
    pub nothing_said_ms: u64,
}

impl Patience {
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
    /// Tokens that the process on this machine has to read, so that no model of it is promised more than it can:
    /// the most that any of them is said to. `None` if there is no such model.
    pub fn local_context(&self) -> Option<u64> {
        let is_local = |model: &&Model| {
            self.providers.get(&model.provider).is_some_and(|provider| provider.kind == Kind::Local)
        };
        self.models.values().filter(is_local).map(|model| model.context).max()
    }
}

impl Model {
    pub(crate) fn can(&self, support: Support) -> bool {
        self.supports.contains(&support)
    }
}
