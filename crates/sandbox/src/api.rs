//! The routes of one computer, under `/api/v1`.
//!
//! Every route states who may call it, here and nowhere else: a [`Route`] needs an [`Access`] and a summary; the rest
//! of its description ([`openapi`]) comes from the types of its handler. A handler gets the [`OpenComputer`] of the
//! user who is signed in, and can reach nothing else.

mod change;
mod checkpoints;
mod commands;
mod content;
mod desktop;
mod files;
mod mcp_servers;
mod models;
pub mod openapi;
mod operations;
mod parts;
pub mod problem;
mod runs;
mod services;
mod socket;
mod terminals;
mod transfer;

use std::sync::Arc;

use axum::http::Method;
use hypervisor::access::ResponseKind;
pub use hypervisor::access::{Access, Route};
use shared_types::wire::TokenScope;

use crate::open_computer::OpenComputer;

/// All routes of a computer.
pub fn routes() -> Vec<Route> {
    use Access::SignedIn;
    use TokenScope::{Read, Terminal, Write};
    vec![
        Route::get(
            "/api/v1/state",
            SignedIn(Read),
            "The desktop, now or at an earlier event",
            desktop::state,
        ),
        Route::post("/api/v1/gestures", SignedIn(Write), "Change windows and settings", desktop::gesture),
        Route::get("/api/v1/storage", SignedIn(Read), "Storage usage", desktop::storage),
        Route::get("/api/v1/parts", SignedIn(Read), "State of the supervised parts", parts::list),
        Route::get("/api/v1/socket", SignedIn(Read), "The WebSocket of a tab", socket::connect),
        Route::get("/api/v1/files", SignedIn(Read), "List a folder", files::list),
        Route::post("/api/v1/files/move", SignedIn(Write), "Move or rename a file or folder", files::rename),
        Route::post("/api/v1/files/copy", SignedIn(Write), "Copy a file or folder", files::copy),
        Route::post("/api/v1/files/delete", SignedIn(Write), "Delete a file or folder", files::delete),
        Route::post(
            "/api/v1/files/several",
            SignedIn(Write),
            "Delete, move or copy several files and folders as one operation",
            files::change_several,
        ),
        Route::post(
            "/api/v1/files/upload",
            SignedIn(Write),
            "Write several files as one operation: a line of JSON with a list of path and size, then their bytes",
            content::write_several,
        )
        .accepts_file(),
        Route::post("/api/v1/folders", SignedIn(Write), "Make a folder", files::make_folder),
        Route::get("/api/v1/search", SignedIn(Read), "Find files by name and text", files::search),
        Route::get("/api/v1/versions", SignedIn(Read), "Versions of a file", files::versions),
        Route::get("/api/v1/content", SignedIn(Read), "Bytes of a file", content::read)
            .responds_with(ResponseKind::File),
        Route::new(Method::PUT, "/api/v1/content", SignedIn(Write), "Write a file", content::write)
            .accepts_file(),
        Route::get("/api/v1/compare", SignedIn(Read), "Compare two events", checkpoints::compare),
        Route::get("/api/v1/checkpoints", SignedIn(Read), "List checkpoints", checkpoints::list),
        Route::post("/api/v1/checkpoints", SignedIn(Write), "Make a checkpoint", checkpoints::make),
        Route::get("/api/v1/operations", SignedIn(Read), "List operations", operations::list),
        Route::get("/api/v1/operations/{op}", SignedIn(Read), "Changes of an operation", operations::show),
        Route::post("/api/v1/operations/{op}/undo", SignedIn(Write), "Undo an operation", operations::undo),
        Route::post("/api/v1/operations/{op}/redo", SignedIn(Write), "Redo an operation", operations::redo),
        Route::post("/api/v1/undo", SignedIn(Write), "Undo the latest operation", operations::undo_latest),
        Route::post(
            "/api/v1/redo",
            SignedIn(Write),
            "Redo the latest undone operation",
            operations::redo_latest,
        ),
        Route::post(
            "/api/v1/restore",
            SignedIn(Write),
            "Restore the state of an earlier event",
            operations::restore,
        ),
        Route::get("/api/v1/export", SignedIn(Read), "Export the computer as a zip", transfer::export)
            .responds_with(ResponseKind::Bytes("application/zip")),
        Route::post("/api/v1/import", SignedIn(Write), "Import files of an export", transfer::import)
            .accepts_file(),
        Route::get("/api/v1/commands", SignedIn(Read), "Running commands and open dry runs", commands::list),
        Route::post("/api/v1/commands", SignedIn(Write), "Run a command in a cell", commands::start),
        Route::get("/api/v1/commands/{op}", SignedIn(Read), "Changes of a command", commands::show),
        Route::post("/api/v1/commands/{op}/accept", SignedIn(Write), "Accept a dry run", commands::accept),
        Route::post("/api/v1/commands/{op}/discard", SignedIn(Write), "Discard a dry run", commands::discard),
        Route::post("/api/v1/commands/{op}/stop", SignedIn(Write), "Stop a command", commands::stop),
        Route::get("/api/v1/runs", SignedIn(Read), "Runs of agents, newest first", runs::list),
        Route::post("/api/v1/runs", SignedIn(Write), "Start a run", runs::start),
        Route::get(
            "/api/v1/runs/{run}",
            SignedIn(Read),
            "One run, with its agents and newest steps",
            runs::show,
        ),
        Route::get("/api/v1/runs/{run}/steps", SignedIn(Read), "Steps of a run", runs::steps),
        Route::get(
            "/api/v1/runs/{run}/steps/{seq}",
            SignedIn(Read),
            "Input and output of a step",
            runs::step,
        ),
        Route::post(
            "/api/v1/runs/{run}/gestures",
            SignedIn(Write),
            "Steer, pause, resume or stop a run, or answer its questions",
            runs::control,
        ),
        Route::post(
            "/api/v1/runs/{run}/steps/{seq}/retry",
            SignedIn(Write),
            "Retry a run from a step",
            runs::retry,
        ),
        Route::post("/api/v1/runs/{run}/undo", SignedIn(Write), "Undo a run", runs::undo),
        Route::post("/api/v1/runs/{run}/redo", SignedIn(Write), "Redo a run", runs::redo),
        Route::get("/api/v1/questions", SignedIn(Read), "Open questions", runs::questions),
        Route::get(
            "/api/v1/grants",
            SignedIn(Read),
            "Grants: what agents may do without asking",
            runs::grants,
        ),
        Route::delete("/api/v1/grants/{grant}", SignedIn(Write), "Revoke a grant", runs::revoke),
        Route::get("/api/v1/models", SignedIn(Read), "Models, roles and budgets", models::list),
        Route::post("/api/v1/models/{name}/test", SignedIn(Write), "Test a model", models::test),
        Route::post("/api/v1/models/local/fetch", SignedIn(Write), "Download the local model", models::fetch),
        Route::post(
            "/api/v1/models/local/decline",
            SignedIn(Write),
            "Decline the local model",
            models::decline,
        ),
        Route::post(
            "/api/v1/models/local/stop",
            SignedIn(Write),
            "Stop the download or the local model",
            models::stop,
        ),
        Route::get("/api/v1/mcp", SignedIn(Read), "MCP servers and their tools", mcp_servers::list),
        Route::post("/api/v1/mcp/reach", SignedIn(Write), "Start all MCP servers", mcp_servers::start_all),
        Route::post(
            "/api/v1/mcp/{name}/restart",
            SignedIn(Write),
            "Restart an MCP server",
            mcp_servers::restart,
        ),
        Route::get("/api/v1/services", SignedIn(Read), "Web search and telemetry", services::list),
        Route::post(
            "/api/v1/services/search/test",
            SignedIn(Write),
            "Test the web search",
            services::try_search,
        ),
        // A terminal runs in a cell. A plain shell is for the owner only, with a session: see `ShellPermission`.
        Route::get("/api/v1/terminals", SignedIn(Terminal), "List terminals", terminals::list),
        Route::post("/api/v1/terminals", SignedIn(Terminal), "Start a terminal", terminals::start),
        Route::delete("/api/v1/terminals/{id}", SignedIn(Terminal), "Close a terminal", terminals::end),
    ]
}

/// Whether the caller may open a plain shell. Checked on every use, because the permission ends when a second account
/// is created.
#[derive(Clone)]
pub struct ShellPermission(pub Arc<dyn Fn() -> bool + Send + Sync>);

impl ShellPermission {
    const REFUSAL: &str = "a plain shell has full access to this machine: only the owner can open one, on the machine itself, and only while \
                           there is no other account; everyone can open a terminal in a cell";

    pub fn is_allowed(&self) -> bool {
        (self.0)()
    }
}

impl std::fmt::Debug for ShellPermission {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Shell").field(&self.is_allowed()).finish()
    }
}

type CurrentComputer = axum::Extension<OpenComputer>;
