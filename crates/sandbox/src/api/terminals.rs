//! Terminals: a shell in a cell, for everyone; and, where it is allowed, a plain shell with the owner's access to the
//! machine.

use axum::http::StatusCode;
use axum::{Extension, Json};
use shared_types::TerminalId;
use shared_types::wire::{NewTerminal, Terminal, TerminalKind};

use super::problem::{Body, PathParam, RouteError};
use super::{CurrentComputer, ShellPermission};
use crate::open_computer::{Size, blocking};

pub(super) async fn list(open_computer: CurrentComputer) -> Json<Vec<Terminal>> {
    Json(open_computer.terminals().list())
}

pub(super) async fn start(
    open_computer: CurrentComputer,
    Extension(shell): Extension<ShellPermission>,
    Body(new): Body<NewTerminal>,
) -> Result<Json<Terminal>, RouteError> {
    if new.kind == TerminalKind::Shell && !shell.is_allowed() {
        return Err(RouteError::new(StatusCode::FORBIDDEN, "no_shell", ShellPermission::REFUSAL));
    }
    let (open_computer, size) = (open_computer.0, Size { columns: new.columns, rows: new.rows });
    Ok(Json(blocking(move || open_computer.terminals().start(new.kind, size)).await?))
}

pub(super) async fn end(
    open_computer: CurrentComputer,
    PathParam(id): PathParam<TerminalId>,
) -> Result<StatusCode, RouteError> {
    let open_computer = open_computer.0;
    blocking(move || open_computer.terminals().end(id)).await?;
    Ok(StatusCode::NO_CONTENT)
}
