//! AI agents that work on an objective, as state machines over the log.
//!
//! All knowledge of an agent comes from events ([`history`]), and the next steps are computed from those events alone
//! (`plan`). So a run that was killed resumes where it stopped: the same events lead to the same steps. The model decides
//! how to work; the code here only enforces limits: rules, budgets, schemas, timeouts ([`rules`], [`budget`]). This crate
//! reaches the computer through [`port::ComputerPort`], and knows neither its storage nor its cells.

mod ask_ids;
pub mod budget;
pub mod environment;
mod fit;
pub mod history;
mod job;
pub mod local_model_lock;
mod loop_detection;
pub mod open_runs;
mod plan;
pub mod port;
pub mod roles;
pub mod rules;
mod runner;
mod shorten;
pub mod spans;
mod tool_definitions;
pub mod tool_kind;
pub mod toolbox;
pub mod tools;
pub mod transcript;
pub mod web;

pub use environment::AgentEnvironment;
pub use open_runs::OpenRuns;
pub use port::{AgentSubmission, ComputerPort, FoundFile, PortError, RunContext};
pub use rules::Rules;
