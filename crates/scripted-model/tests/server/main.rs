//! Tests of the server over raw sockets: the bytes of every protocol, faults, strictness and statelessness.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

mod anthropic;
mod bedrock;
mod client;
mod faults;
mod load;
mod openai;
mod program;
mod scripts;
mod statelessness;
mod stream_reader;
mod strictness;
