//! The choir: agents that work on an objective, as state machines over the log.
//!
//! Everything that an agent knows is read from events ([`history`]), and what happens next is computed from that alone
//! ([`plan`]). So a run that was killed goes on where it stopped: whoever reads the same events does the same thing. The
//! model leads; code here only guards: rules, budgets, schemas, time-outs ([`rules`], [`budget`]). This crate knows the
//! computer through [`port::ComputerPort`], and neither its storage nor its cells.

pub mod budget;
pub mod environment;
mod fit;
pub mod history;
mod job;
pub mod local_model_lock;
pub mod open_runs;
mod plan;
pub mod port;
pub mod roles;
mod rounds;
pub mod rules;
mod runner;
pub mod spans;
pub mod toolbox;
pub mod tools;
pub mod transcript;
pub mod web;

pub use environment::AgentEnvironment;
pub use open_runs::OpenRuns;
pub use port::{AgentSubmission, ComputerPort, Found, PortError, RunContext};
pub use rules::Rules;
