//! Terminals: a shell in a cell, for everyone; and a plain shell with the owner's power over the machine, where that
//! is offered at all.

use axum::http::StatusCode;
use axum::{Extension, Json};
use shared_types::TerminalId;
use shared_types::wire::{NewTerminal, Terminal, TerminalKind};

use super::problem::{Body, Named, RouteError};
use super::{Of, Shell};
use crate::open_computer::{Size, blocking};

pub(super) async fn list(desk: Of) -> Json<Vec<Terminal>> {
    Json(desk.terminals().list())
}

pub(super) async fn start(
    desk: Of,
    Extension(shell): Extension<Shell>,
    Body(new): Body<NewTerminal>,
) -> Result<Json<Terminal>, RouteError> {
    if new.kind == TerminalKind::Shell && !shell.is_offered() {
        return Err(RouteError::new(StatusCode::FORBIDDEN, "no_shell", Shell::WHY));
    }
    let (desk, size) = (desk.0, Size { columns: new.columns, rows: new.rows });
    Ok(Json(blocking(move || desk.terminals().start(new.kind, size)).await?))
}

pub(super) async fn end(desk: Of, Named(id): Named<TerminalId>) -> Result<StatusCode, RouteError> {
    let desk = desk.0;
    blocking(move || desk.terminals().end(id)).await?;
    Ok(StatusCode::NO_CONTENT)
}
