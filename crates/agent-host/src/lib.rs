//! Joins agents to a computer: the implementation of their port, models, the web, tools of MCP servers, telemetry.

mod address;
pub mod ground;
pub mod minds;
pub mod prompts;
pub mod runs;
pub mod server_cells;
pub mod services;
pub mod telemetry;
pub mod toolbox;
pub mod web;
