//! The choir: agents that work on an objective, as state machines over the log.
//!
//! Everything that an agent knows is read from events ([`history`]), and what happens next is computed from that alone
//! ([`plan`]). So a run that was killed goes on where it stopped: whoever reads the same events does the same thing. The
//! model leads; code here only guards: rules, budgets, schemas, time-outs ([`rules`], [`budget`]). This crate knows the
//! computer through [`ground::Ground`], and neither its storage nor its cells.

pub mod alone;
pub mod budget;
pub mod choir;
mod fit;
pub mod ground;
pub mod history;
mod job;
mod plan;
pub mod roles;
mod rounds;
pub mod rules;
mod runner;
pub mod spans;
pub mod toolbox;
pub mod tools;
pub mod transcript;
pub mod web;

pub use choir::{Choir, Kit};
pub use ground::{Deed, Found, Ground, GroundError, Standing};
pub use rules::Rules;
