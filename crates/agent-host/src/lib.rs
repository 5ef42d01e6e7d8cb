//! Connects agents to a computer: implements their port, and provides models, the web, MCP tools and telemetry.

mod address;
pub mod agent_services;
pub mod computer_adapter;
pub mod mcp_cells;
pub mod mcp_tools;
pub mod prompts;
pub mod runs;
pub mod services;
pub mod telemetry;
pub mod web;
