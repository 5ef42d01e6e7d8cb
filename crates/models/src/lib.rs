//! Clients for language models: one interface to all providers, with prices, retries and fallbacks.
//!
//! [`chat`] defines requests and replies independently of the provider; replies are stored in this form. [`Catalog`]
//! lists providers and models, and [`Gateway`] sends requests to them. API keys come from an implementation of
//! [`ApiKeys`] and leave this crate only in request headers. This crate knows nothing about events, agents or files.

mod api_key;
mod catalog;
pub mod chat;
mod clock;
mod error;
mod estimate;
mod gateway;
mod json_repair;
mod local;
mod mask;
mod prices;
mod problem;
mod provider;
mod reply_parser;
mod schema;
mod text_calls;

pub use api_key::{ApiKey, ApiKeys};
pub use catalog::{AuthScheme, Catalog, CatalogError, Model, ModelFeature, Provider, ProviderKind, ROLES};
pub use clock::{Clock, RealClock};
pub use error::{ErrorClass, ModelError};
pub use estimate::BYTES_PER_TOKEN;
pub use gateway::{ChosenModel, CompletedTurn, Gateway, MeterReading, UsageMeter, WorstCase};
pub use local::{LocalModel, LocalModelEndpoint, LocalModelStatus};
pub use prices::Prices;
pub use problem::ModelProblem;
pub use provider::prepare_tls;
