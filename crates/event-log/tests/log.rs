//! The log's backends against the contract, against any interleaving, and against a failing disk.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

#[path = "log/backends.rs"]
mod backends;
#[path = "log/calls.rs"]
mod calls;
#[path = "log/damage.rs"]
mod damage;
#[path = "log/disk.rs"]
mod disk;
#[path = "log/durability.rs"]
mod durability;
#[path = "log/interleaving.rs"]
mod interleaving;
#[path = "log/migration.rs"]
mod migration;
#[path = "log/runs.rs"]
mod runs;
