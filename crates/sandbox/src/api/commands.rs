//! Commands in cells: start, list, stop, and accept or discard dry runs.

use axum::Json;
use axum::http::StatusCode;
use hypervisor::access::Accepted;
use kernel::CallState;
use shared_types::wire::{
    CallStatus, CommandResult, OpenCommand, OperationDetails, StartCommand, StartedCommand,
};
use shared_types::{Actor, OpId};

use super::CurrentComputer;
use super::change::ChangeContext;
use super::operations::detail;
use super::problem::{Body, PathParam, RouteError};
use crate::open_computer::blocking;
use computer::Caller;
use computer::error::{ComputerError, ErrorCode};
use computer::ids;
use computer::protocol::{Answer, Request};

/// Answers when the call is recorded; the command runs on.
pub(super) async fn start(
    open_computer: CurrentComputer,
    Body(start): Body<StartCommand>,
) -> Result<Accepted<StartedCommand>, RouteError> {
    let open_computer = open_computer.0;
    let command = start.command.unwrap_or_else(ids::new_command);
    // A resend under the same id names the same operation.
    let op = start.op.unwrap_or_else(|| OpId::from_bytes(*command.as_bytes()));
    let caller = Caller::person(command, op, Actor::DESKTOP);
    blocking(move || open_computer.commands().start(open_computer.computer(), caller, start.run)).await?;
    Ok(Accepted(StartedCommand { op }))
}

pub(super) async fn list(open_computer: CurrentComputer) -> Result<Json<Vec<OpenCommand>>, RouteError> {
    let open_computer = open_computer.0;
    let open = blocking(move || {
        Ok(open_computer.computer().writer().inspect(|view| {
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

pub(super) async fn show(
    open_computer: CurrentComputer,
    PathParam(op): PathParam<OpId>,
) -> Result<Json<OperationDetails>, RouteError> {
    let open_computer = open_computer.0;
    open_computer.wait_until_projected().await;
    let found = blocking(move || detail(&open_computer, op)).await?;
    if found.call.is_none() {
        return Err(
            ComputerError::new(ErrorCode::NotFound, format!("the operation {op} is not a command")).into()
        );
    }
    Ok(Json(found))
}

pub(super) async fn accept(
    change: ChangeContext,
    PathParam(op): PathParam<OpId>,
) -> Result<Json<CommandResult>, RouteError> {
    settle(change, Request::Accept { call: op.to_string() }).await
}

pub(super) async fn discard(
    change: ChangeContext,
    PathParam(op): PathParam<OpId>,
) -> Result<Json<CommandResult>, RouteError> {
    settle(change, Request::Discard { call: op.to_string() }).await
}

async fn settle(change: ChangeContext, request: Request) -> Result<Json<CommandResult>, RouteError> {
    let answered = match change.send(request).await? {
        Answer::CommandResult(ran) => Ok(*ran),
        Answer::Failure(failure) => Err(failure),
        Answer::Progress { .. }
        | Answer::Output { .. }
        | Answer::RunUpdate(_)
        | Answer::AgentRuns(_)
        | Answer::Done(_)
        | Answer::Status(_)
        | Answer::Parts(_) => {
            Err(ComputerError::new(ErrorCode::Failed, "unexpected answer to a request about a command"))
        }
    };
    Ok(Json(answered?))
}

pub(super) async fn stop(
    open_computer: CurrentComputer,
    PathParam(op): PathParam<OpId>,
) -> Result<StatusCode, RouteError> {
    let open_computer = open_computer.0;
    blocking(move || open_computer.commands().stop(open_computer.computer(), op)).await?;
    Ok(StatusCode::NO_CONTENT)
}
