//! One open computer, synchronous: it takes a request, records it, projects it, and runs commands in cells.
//!
//! Everything here blocks its caller and starts no runtime. It knows neither agents nor the web server: the files that
//! an agent may read are given as a [`ReadPolicy`], and listeners follow the output of commands through an
//! [`output_feed`].

pub mod cells;
pub mod client;
mod computer;
pub mod config;
pub mod error;
pub mod ids;
pub mod output_feed;
pub mod paths;
pub mod protocol;
mod read_policy;
pub mod running_commands;

pub mod socket;

pub use computer::*;
pub use read_policy::ReadPolicy;
