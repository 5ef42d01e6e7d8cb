//! Checkpoints against the real git: what is in a commit, what is left out, and that nothing outside decides it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

#[path = "checkpoints/bench.rs"]
mod bench;
#[path = "checkpoints/committing.rs"]
mod committing;
#[path = "checkpoints/environment.rs"]
mod environment;
#[path = "checkpoints/keeping.rs"]
mod keeping;
