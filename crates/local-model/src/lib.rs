//! A model on this machine: a child process of the same program that serves like a provider.
//!
//! [`weights`] downloads the weights with the user's consent. A [`LocalModelRunner`] starts the child on demand and
//! watches it. The child serves OpenAI's chat completions on loopback, one answer at a time; a grammar enforces the
//! schemas of tool calls. [`speed`] estimates how long answers take. This crate knows nothing about agents, events or
//! other providers. The child can crash at any time without harm to its parent.

mod answer;
mod answer_mode;
mod child;
mod cores;
mod engine;
mod grammar;
mod prompt;
mod runner;
mod server;
mod spaced_json;
pub mod speed;
mod tls;
pub mod weights;
mod wire;
mod worker;

pub use child::run_if_child;
pub use cores::{ThreadCount, physical_cores};
pub use prompt::estimate_tokens;
pub use runner::{LocalModelRunner, ModelLease, RunnerOptions, RunnerStatus, StartError, StopCause};
pub use worker::Speed;
