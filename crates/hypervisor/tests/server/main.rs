//! The server as callers meet it: real routes, a real store in a folder of its own, a clock that the test moves.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

mod authenticator;
mod bad_input;
mod connections;
mod entering;
mod every_route;
mod house;
mod keys;
mod pages;
mod passkeys;
mod places;
