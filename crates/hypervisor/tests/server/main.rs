//! The server through its routes: a real store in a temporary folder, and a clock that the test controls.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

mod authenticator;
mod bad_input;
mod connections;
mod every_route;
mod keys;
mod origins;
mod pages;
mod passkeys;
mod sign_in;
mod test_server;
