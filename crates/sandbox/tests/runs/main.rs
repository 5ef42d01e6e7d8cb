//! Runs through the whole computer but without anybody who works on them: what the person does is recorded, and what
//! agents did is told.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test that is told something else has failed"
)]

mod house;
mod questions;
mod telling;
