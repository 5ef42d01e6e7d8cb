//! The routes of one computer, under `/api/v1`.
//!
//! Every route states who may call it, here and nowhere else: a [`Route`] cannot be made without its [`Access`] and
//! a summary; the rest of its description ([`openapi`]) is read off the types of its handler. A handler is given the [`OpenComputer`] of the user who is signed in, which is all that it can reach.

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
        Route::get("/api/v1/state", SignedIn(Read), "The desktop, now or as it was", desktop::state),
        Route::post("/api/v1/gestures", SignedIn(Write), "Changes windows and settings", desktop::gesture),
        Route::get("/api/v1/storage", SignedIn(Read), "What is kept where", desktop::storage),
        Route::get("/api/v1/parts", SignedIn(Read), "Supervised parts and how they are doing", parts::list),
        Route::get("/api/v1/socket", SignedIn(Read), "The WebSocket of a tab", socket::connect),
        Route::get("/api/v1/files", SignedIn(Read), "Lists a folder", files::list),
        Route::post("/api/v1/files/move", SignedIn(Write), "Moves or renames", files::rename),
        Route::post("/api/v1/files/copy", SignedIn(Write), "Copies", files::copy),
        Route::post("/api/v1/files/delete", SignedIn(Write), "Deletes", files::delete),
        Route::post("/api/v1/folders", SignedIn(Write), "Makes a folder", files::make_folder),
        Route::get("/api/v1/search", SignedIn(Read), "Finds files by name and text", files::search),
        Route::get("/api/v1/versions", SignedIn(Read), "What a file was", files::versions),
        Route::get("/api/v1/content", SignedIn(Read), "Bytes of a file", content::read)
            .responds_with(ResponseKind::File),
        Route::new(Method::PUT, "/api/v1/content", SignedIn(Write), "Writes a file", content::write)
            .accepts_file(),
        Route::get("/api/v1/compare", SignedIn(Read), "Compares two moments", checkpoints::compare),
        Route::get("/api/v1/checkpoints", SignedIn(Read), "Lists checkpoints", checkpoints::list),
        Route::post("/api/v1/checkpoints", SignedIn(Write), "Makes a checkpoint", checkpoints::make),
        Route::get("/api/v1/operations", SignedIn(Read), "Lists operations", operations::list),
        Route::get("/api/v1/operations/{op}", SignedIn(Read), "What an operation did", operations::show),
        Route::post("/api/v1/operations/{op}/undo", SignedIn(Write), "Undoes it", operations::undo),
        Route::post("/api/v1/operations/{op}/redo", SignedIn(Write), "Redoes it", operations::redo),
        Route::post("/api/v1/undo", SignedIn(Write), "Undoes the latest", operations::undo_latest),
        Route::post("/api/v1/redo", SignedIn(Write), "Redoes the latest", operations::redo_latest),
        Route::post("/api/v1/restore", SignedIn(Write), "Goes back to a moment", operations::restore),
        Route::get("/api/v1/export", SignedIn(Read), "Everything, as a zip", transfer::export)
            .responds_with(ResponseKind::Bytes("application/zip")),
        Route::post("/api/v1/import", SignedIn(Write), "Files of an export", transfer::import).accepts_file(),
        Route::get("/api/v1/commands", SignedIn(Read), "Commands that run or wait", commands::list),
        Route::post("/api/v1/commands", SignedIn(Write), "Runs a command in a cell", commands::start),
        Route::get("/api/v1/commands/{op}", SignedIn(Read), "What a command did", commands::show),
        Route::post("/api/v1/commands/{op}/accept", SignedIn(Write), "Keeps a dry run", commands::accept),
        Route::post(
            "/api/v1/commands/{op}/discard",
            SignedIn(Write),
            "Throws a dry run away",
            commands::discard,
        ),
        Route::post("/api/v1/commands/{op}/stop", SignedIn(Write), "Stops a command", commands::stop),
        Route::get("/api/v1/runs", SignedIn(Read), "Runs of agents, the newest first", runs::list),
        Route::post("/api/v1/runs", SignedIn(Write), "Starts a run", runs::start),
        Route::get(
            "/api/v1/runs/{run}",
            SignedIn(Read),
            "One run, with its agents and newest steps",
            runs::show,
        ),
        Route::get("/api/v1/runs/{run}/steps", SignedIn(Read), "Steps of a run", runs::steps),
        Route::get("/api/v1/runs/{run}/steps/{seq}", SignedIn(Read), "What went in and came out", runs::step),
        Route::post(
            "/api/v1/runs/{run}/gestures",
            SignedIn(Write),
            "Steers, pauses, stops, answers",
            runs::control,
        ),
        Route::post(
            "/api/v1/runs/{run}/steps/{seq}/retry",
            SignedIn(Write),
            "Goes on from before a step",
            runs::retry,
        ),
        Route::post("/api/v1/runs/{run}/undo", SignedIn(Write), "Takes all of it back", runs::undo),
        Route::post("/api/v1/runs/{run}/redo", SignedIn(Write), "Brings all of it back", runs::redo),
        Route::get("/api/v1/questions", SignedIn(Read), "What waits for the person", runs::questions),
        Route::get("/api/v1/grants", SignedIn(Read), "What agents may do without asking", runs::grants),
        Route::delete("/api/v1/grants/{grant}", SignedIn(Write), "Takes that back", runs::revoke),
        Route::get("/api/v1/models", SignedIn(Read), "Models, roles and budgets", models::list),
        Route::post("/api/v1/models/{name}/test", SignedIn(Write), "Asks a model for a word", models::test),
        Route::post(
            "/api/v1/models/local/fetch",
            SignedIn(Write),
            "Fetches the model of this machine",
            models::fetch,
        ),
        Route::post(
            "/api/v1/models/local/decline",
            SignedIn(Write),
            "Does not want the model of this machine",
            models::decline,
        ),
        Route::post(
            "/api/v1/models/local/stop",
            SignedIn(Write),
            "Stops fetching or running it",
            models::stop,
        ),
        Route::get("/api/v1/mcp", SignedIn(Read), "MCP servers and their tools", mcp_servers::list),
        Route::post(
            "/api/v1/mcp/reach",
            SignedIn(Write),
            "Starts MCP servers, to see them answer",
            mcp_servers::start_all,
        ),
        Route::post(
            "/api/v1/mcp/{name}/restart",
            SignedIn(Write),
            "Starts an MCP server anew",
            mcp_servers::restart,
        ),
        Route::get("/api/v1/services", SignedIn(Read), "Web search and telemetry", services::list),
        Route::post(
            "/api/v1/services/search/test",
            SignedIn(Write),
            "Searches the web for a word",
            services::try_search,
        ),
        // A terminal is in a cell. A plain shell is the owner's alone, by a session: see `Shell`.
        Route::get("/api/v1/terminals", SignedIn(Terminal), "Lists terminals", terminals::list),
        Route::post("/api/v1/terminals", SignedIn(Terminal), "Starts a terminal", terminals::start),
        Route::delete("/api/v1/terminals/{id}", SignedIn(Terminal), "Ends a terminal", terminals::end),
    ]
}

/// Whether the caller may use the owner's plain shell; put beside the desk by whoever knows. It is asked about each
/// time, because it ends for good when somebody else gets an account.
#[derive(Clone)]
pub struct ShellPermission(pub Arc<dyn Fn() -> bool + Send + Sync>);

impl ShellPermission {
    const REFUSAL: &str = "a plain shell has the owner's power over this machine, so it is offered to the owner only, at \
                       the machine itself, and only while nobody else has an account; a terminal in a cell is \
                       there for everyone";

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
