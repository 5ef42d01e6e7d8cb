//! MCP servers as agents of a computer meet them: real programs in real cells, a real server over HTTP, and all of them
//! at their worst.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that is told something else has failed")]

mod programs;
mod remote;
mod test_servers;
