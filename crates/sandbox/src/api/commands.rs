//! Commands in cells: asked for, followed, stopped, and settled where they were only tried.

use axum::Json;
use axum::http::StatusCode;
use hypervisor::access::Accepted;
use kernel::CallState;
use shared_types::wire::{CallStatus, OpenCommand, OperationDetail, Ran, StartCommand, StartedCommand};
use shared_types::{Actor, OpId};

use super::Of;
use super::operations::detail;
use super::problem::{Body, Named, RouteError};
use crate::open_computer::blocking;
use computer::Caller;
use computer::error::{ComputerError, ErrorCode};
use computer::ids;
use computer::protocol::{Answer, Envelope, Request, VERSION};

/// Answers when the call is recorded; the command runs on.
pub(super) async fn start(
    desk: Of,
    Body(start): Body<StartCommand>,
) -> Result<Accepted<StartedCommand>, RouteError> {
    let desk = desk.0;
    let (command, op) = (start.command.unwrap_or_else(ids::command), start.op.unwrap_or_else(ids::op));
    let caller = Caller::at_desktop(command, op);
    blocking(move || desk.commands().start(desk.computer(), caller, start.run)).await?;
    Ok(Accepted(StartedCommand { op }))
}

pub(super) async fn list(desk: Of) -> Result<Json<Vec<OpenCommand>>, RouteError> {
    let desk = desk.0;
    let open = blocking(move || {
        Ok(desk.computer().writer().inspect(|view| {
            let one = |(op, call): (&OpId, &kernel::Call)| OpenCommand {
                op: *op,
                title: call.title.clone(),
                status: match call.state {
                    CallState::Running => CallStatus::Running,
                    CallState::Held => CallStatus::Held,
                },
                network: call.network,
            };
            view.calls.iter().map(one).collect()
        })?)
    });
    Ok(Json(open.await?))
}

pub(super) async fn show(desk: Of, Named(op): Named<OpId>) -> Result<Json<OperationDetail>, RouteError> {
    let desk = desk.0;
    let found = blocking(move || detail(&desk, op)).await?;
    if found.call.is_none() {
        return Err(
            ComputerError::new(ErrorCode::NotFound, format!("the operation {op} is no command")).into()
        );
    }
    Ok(Json(found))
}

pub(super) async fn accept(desk: Of, Named(op): Named<OpId>) -> Result<Json<Ran>, RouteError> {
    settle(desk, Request::Accept { call: op.to_string() }).await
}

pub(super) async fn discard(desk: Of, Named(op): Named<OpId>) -> Result<Json<Ran>, RouteError> {
    settle(desk, Request::Discard { call: op.to_string() }).await
}

async fn settle(desk: Of, request: Request) -> Result<Json<Ran>, RouteError> {
    let (command, op, actor) = (ids::command(), ids::op(), Actor::DESKTOP);
    let envelope = Envelope { version: VERSION, actor, command, op, request };
    let computer = std::sync::Arc::clone(desk.computer());
    let answered = blocking(move || match computer.handle(&envelope, &mut std::io::empty(), &|_, _, _| ()) {
        Answer::Ran(ran) => Ok(*ran),
        Answer::Failure(failure) => Err(failure),
        Answer::Progress { .. }
        | Answer::Output { .. }
        | Answer::Heard(_)
        | Answer::Runs(_)
        | Answer::Done(_)
        | Answer::Status(_)
        | Answer::Parts(_) => {
            Err(ComputerError::new(ErrorCode::Failed, "a command was answered with something else"))
        }
    });
    Ok(Json(answered.await?))
}

pub(super) async fn stop(desk: Of, Named(op): Named<OpId>) -> Result<StatusCode, RouteError> {
    let desk = desk.0;
    blocking(move || desk.commands().stop(desk.computer(), op)).await?;
    Ok(StatusCode::NO_CONTENT)
}
