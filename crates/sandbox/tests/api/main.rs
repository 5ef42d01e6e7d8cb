//! The server of a computer: every route, everyone who calls it, and whatever they send.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that fails panics")]

mod bad_input;
mod commands;
mod document;
mod files;
mod going_back;
mod house;
mod idling;
mod mischief;
mod models;
mod resends;
mod restart;
mod routes;
mod runs;
mod socket;
mod supervision;
mod terminals;
