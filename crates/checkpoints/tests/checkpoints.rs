//! Checkpoints with the real git: what a commit contains and omits, and that the environment does not affect it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

#[path = "checkpoints/committing.rs"]
mod committing;
#[path = "checkpoints/environment.rs"]
mod environment;
#[path = "checkpoints/fixture.rs"]
mod fixture;
#[path = "checkpoints/keeping.rs"]
mod keeping;
