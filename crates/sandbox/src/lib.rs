//! One user's computer: log, writer, projector and effects wired together, and the ways to reach it.

pub mod api;
pub mod archive;
pub mod cells;
pub mod checkpoints;
pub mod computer;
pub mod config;
pub mod desk;
pub mod failure;
pub mod hold;
pub mod host;
pub mod ids;
pub mod machine;
pub mod minds;
pub mod place;
pub mod protocol;
pub mod registry;
pub mod services;
pub mod session;
pub mod socket;
pub mod startup;
pub mod telemetry;
pub mod toolbox;
pub mod web;
pub mod welcome;
