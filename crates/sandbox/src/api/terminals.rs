//! Terminals: a plain shell with the owner's power over the machine, where it is offered at all.

use axum::http::StatusCode;
use axum::{Extension, Json};
use shared_types::TerminalId;
use shared_types::wire::{NewTerminal, Terminal};

use super::problem::{Body, Named, Refusal};
use super::{Of, Shell};
use crate::desk::blocking;

pub(super) async fn list(desk: Of) -> Json<Vec<Terminal>> {
    Json(desk.terminals().list())
}

pub(super) async fn start(
    desk: Of,
    Extension(shell): Extension<Shell>,
    Body(new): Body<NewTerminal>,
) -> Result<Json<Terminal>, Refusal> {
    if shell == Shell(false) {
        let detail = "a plain shell has the owner's power over this machine, so it is offered only while nobody \
                      else uses it; terminals in cells come later";
        return Err(Refusal::new(StatusCode::FORBIDDEN, "no_shell", detail));
    }
    let desk = desk.0;
    Ok(Json(blocking(move || desk.terminals().start(new.columns, new.rows)).await?))
}

pub(super) async fn end(desk: Of, Named(id): Named<TerminalId>) -> Result<StatusCode, Refusal> {
    desk.terminals().end(id)?;
    Ok(StatusCode::NO_CONTENT)
}
