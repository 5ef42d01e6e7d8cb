//! Joins agents to a computer: the implementation of their port, models, the web, tools of MCP servers, telemetry.

mod address;
pub mod agent_services;
pub mod computer_adapter;
pub mod mcp_tools;
pub mod prompts;
pub mod runs;
pub mod server_cells;
pub mod services;
pub mod telemetry;
pub mod web;
