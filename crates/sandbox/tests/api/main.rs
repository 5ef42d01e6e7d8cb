//! The server of a computer: every route, every kind of caller, and any input.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that fails panics")]

mod bad_input;
mod commands;
mod document;
mod files;
mod fuzz;
mod going_back;
mod idling;
mod models;
mod resends;
mod restart;
mod routes;
mod runs;
mod socket;
mod supervision;
mod terminals;
mod test_machine;
