//! Settings, Services: MCP servers, web search, telemetry.

use super::super::plural;

// "What agents use beside models. … `choir doctor` shows where that file is, and what is wrong in it."
pub(crate) const ABOUT: &str = "What agents use beside models. It is set up in choir.toml of this machine and taken up when the server starts; ";
pub(crate) const DOCTOR_COMMAND: &str = "choir doctor";
pub(crate) const ABOUT_DOCTOR: &str = " shows where that file is, and what is wrong in it.";
pub(crate) const EXAMPLE: &str = "Example for choir.toml";

// MCP servers.
pub(crate) const MCP_SERVERS: &str = "MCP servers";
pub(crate) const NO_MCP_SERVERS: &str = "No MCP servers. Add one to choir.toml:";
pub(crate) const MCP_EXAMPLE: &str = "[mcp.notes]\ncommand = [\"npx\", \"-y\", \"some-server\"]\nnetwork = [\"registry.npmjs.org\"]\nread_only = [\"list_notes\"]";
pub(crate) const PROGRAM: &str = "Program";
pub(crate) const ADDRESS: &str = "Address";
pub(crate) const CONNECTED: &str = "connected";
pub(crate) const NOT_CONNECTED: &str = "not connected";
pub(crate) const CONNECT: &str = "Connect";
pub(crate) const CONNECT_AGAIN: &str = "Connect again";
pub(crate) const RUNNING: &str = "running";
pub(crate) const NOT_STARTED: &str = "not started";
pub(crate) const START: &str = "Start";
pub(crate) const RESTART: &str = "Restart";
pub(crate) const STARTING: &str = "starting…";
pub(crate) const STARTING_BUTTON: &str = "Starting…";

pub(crate) fn mcp_server(name: &str) -> String {
    format!("MCP server {name}")
}

/// Before the command or address of a server.
pub(crate) fn way(kind: &str) -> String {
    format!("{kind} · ")
}

pub(crate) fn for_roles(roles: &[String]) -> String {
    format!("For: {}", roles.join(", "))
}

pub(crate) fn verb_on(verb: &str, server: &str) -> String {
    format!("{verb} {server}")
}

// Tools.
pub(crate) const TOOLS_UNKNOWN: &str = "Its tools are known once it has answered.";
pub(crate) const ONLY_READS: &str = "only reads";
pub(crate) const ASKS_FIRST: &str = "final: asks first";

pub(crate) fn tools(all: u64, reading: u64) -> String {
    format!("{}: {reading} only read, {} final", plural(all, "tool"), all - reading)
}

// Web search.
pub(crate) const WEB_SEARCH: &str = "Web search";
pub(crate) const NO_SEARCH: &str = "No web search: agents search the workspace only. Add one to choir.toml:";
pub(crate) const SEARCH_EXAMPLE: &str =
    "[web.search]\nkind = \"searxng\"   # or \"brave\", \"tavily\"\nbase_url = \"http://127.0.0.1:8888\"";
pub(crate) const NEEDS_NO_KEY: &str = " · needs no key";
pub(crate) const SEARCHING: &str = "Searching…";

pub(crate) fn search_answered(millis: u64, results: u64) -> String {
    format!("Answered in {millis} ms with {}.", plural(results, "result"))
}

pub(crate) fn search_failed(reason: &str) -> String {
    format!("Did not answer: {reason}")
}

// Telemetry.
pub(crate) const TELEMETRY: &str = "Telemetry";
pub(crate) const OPEN_TELEMETRY: &str = "OpenTelemetry";
pub(crate) const NO_TELEMETRY: &str =
    "Spans of agents go nowhere. To send them to an OpenTelemetry collector, add to choir.toml:";
pub(crate) const TELEMETRY_EXAMPLE: &str = "[telemetry]\notlp = \"http://127.0.0.1:4318\"";
// "Spans go to ADDRESS, with what models and tools said."
pub(crate) const SPANS_GO_TO: &str = "Spans go to ";
pub(crate) const WITH_CONTENTS: &str = ", with what models and tools said.";
pub(crate) const WITHOUT_CONTENTS: &str = ", without what models and tools said.";
