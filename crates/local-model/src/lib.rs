//! A model on this machine: a child process of the same program that answers like a provider.
//!
//! [`weights`] brings the file, with consent; a [`Runner`] starts the child on demand and watches it; the child speaks
//! OpenAI's chat completions on loopback, one answer at a time, with tool calls held to their schemas by a grammar.
//! [`speed`] says beforehand how long that takes here. This crate knows no agent, no event and no other provider; what
//! it runs can die at any time without harm to the program that started it.

mod answer;
mod child;
mod cores;
mod engine;
mod grammar;
mod prompt;
mod runner;
mod server;
pub mod speed;
mod tls;
pub mod weights;
mod wire;
mod worker;

pub use child::entry;
pub use cores::{Threads, physical as physical_cores};
pub use prompt::estimate_tokens;
pub use runner::{Ending, Lease, Options, Runner, StartError, Status};
pub use worker::Speed;
