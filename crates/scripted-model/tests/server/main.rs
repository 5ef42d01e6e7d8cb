//! The server from outside, over raw sockets: the bytes of every protocol, faults, strictness, and that it forgets.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

mod anthropic;
mod bedrock;
mod client;
mod faults;
mod forgetting;
mod listening;
mod load;
mod openai;
mod program;
mod scripts;
mod strictness;
