//! Runs through the whole computer but without agents: the actions of the person are recorded, and recorded work of
//! agents is shown.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test that is told something else has failed"
)]

mod questions;
mod telling;
mod test_computer;
