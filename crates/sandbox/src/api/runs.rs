//! Runs of agents: started, looked at, steered and taken back; what they ask, and what they may do.

use axum::Json;
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;
use shared_types::wire::{
    ChangeResult, ControlRun, GrantList, Questions, RevertOptions, RunDetails, RunLine, RunList, StartRun,
    Step, StepDetail,
};
use shared_types::{CommandId, GrantId, RunId, Seq};

use super::Of;
use super::change::Change;
use super::operations::choices;
use super::problem::{Body, Named, Params, RouteError};
use crate::open_computer::{OpenComputer, blocking};
use computer::error::{ComputerError, ErrorCode};
use computer::ids;
use computer::protocol::{Answer, Request, RunRequest, RunResponse};

/// Where a page begins.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Page {
    /// Only what is older than this event.
    before: Option<Seq>,
}

/// A step of a run.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct StepOf {
    run: RunId,
    seq: Seq,
}

/// Asks the computer about runs, as a person at the desktop.
async fn tell(
    desk: &OpenComputer,
    command: CommandId,
    request: RunRequest,
) -> Result<RunResponse, RouteError> {
    let answer = Change::under(desk, command).answer(Request::AgentRuns(request)).await;
    Ok(answer.and_then(Answer::into_runs)?)
}

macro_rules! told {
    ($answer:expr, $kind:ident) => {
        match $answer {
            RunResponse::$kind(told) => Ok(Json(told)),
            _ => Err(ComputerError::new(ErrorCode::Failed, "a run was answered with something else").into()),
        }
    };
}

/// Answers when the objective is recorded; agents work behind it.
pub(super) async fn start(desk: Of, Body(start): Body<StartRun>) -> Result<Json<RunLine>, RouteError> {
    told!(tell(&desk, start.command, RunRequest::Start(start)).await?, Line)
}

pub(super) async fn list(desk: Of, Params(page): Params<Page>) -> Result<Json<RunList>, RouteError> {
    told!(tell(&desk, ids::new_command(), RunRequest::List { before: page.before }).await?, List)
}

pub(super) async fn show(desk: Of, Named(run): Named<RunId>) -> Result<Json<RunDetails>, RouteError> {
    let answer = tell(&desk, ids::new_command(), RunRequest::Show { run: run.to_string() }).await?;
    let details: Result<Json<Box<RunDetails>>, RouteError> = told!(answer, Details);
    Ok(Json(*details?.0))
}

pub(super) async fn steps(
    desk: Of,
    Named(run): Named<RunId>,
    Params(page): Params<Page>,
) -> Result<Json<Vec<Step>>, RouteError> {
    let request = RunRequest::Steps { run: run.to_string(), before: page.before };
    told!(tell(&desk, ids::new_command(), request).await?, Steps)
}

pub(super) async fn parts(desk: Of, Named(step): Named<StepOf>) -> Result<Json<StepDetail>, RouteError> {
    let request = RunRequest::StepDetail { run: step.run.to_string(), seq: step.seq };
    let parts: Result<Json<Box<StepDetail>>, RouteError> =
        told!(tell(&desk, ids::new_command(), request).await?, Parts);
    let (mut parts, desk) = (*parts?.0, desk.0);
    let whole = blocking(move || {
        agent_host::prompts::add_prompt(&**desk.computer().log(), step.run, &mut parts)?;
        Ok(parts)
    });
    Ok(Json(whole.await?))
}

pub(super) async fn control(
    desk: Of,
    Named(run): Named<RunId>,
    Body(ControlRun { command, control }): Body<ControlRun>,
) -> Result<Json<RunLine>, RouteError> {
    told!(tell(&desk, command, RunRequest::Control { run: run.to_string(), control }).await?, Line)
}

pub(super) async fn undo(
    change: Change,
    Named(run): Named<RunId>,
    Body(revert): Body<RevertOptions>,
) -> Result<Json<ChangeResult>, RouteError> {
    let (run, choices, preview) = (run.to_string(), choices(&revert), revert.preview);
    Ok(Json(change.make(Request::AgentRuns(RunRequest::Undo { run, choices, preview })).await?))
}

pub(super) async fn redo(
    change: Change,
    Named(run): Named<RunId>,
    Body(revert): Body<RevertOptions>,
) -> Result<Json<ChangeResult>, RouteError> {
    let (run, choices, preview) = (run.to_string(), choices(&revert), revert.preview);
    Ok(Json(change.make(Request::AgentRuns(RunRequest::Redo { run, choices, preview })).await?))
}

pub(super) async fn retry(
    change: Change,
    Named(StepOf { run, seq }): Named<StepOf>,
    Body(revert): Body<RevertOptions>,
) -> Result<Json<ChangeResult>, RouteError> {
    let (run, choices, preview) = (run.to_string(), choices(&revert), revert.preview);
    Ok(Json(change.make(Request::AgentRuns(RunRequest::Retry { run, step: seq, choices, preview })).await?))
}

pub(super) async fn questions(desk: Of) -> Result<Json<Questions>, RouteError> {
    told!(tell(&desk, ids::new_command(), RunRequest::Questions).await?, Questions)
}

pub(super) async fn grants(desk: Of) -> Result<Json<GrantList>, RouteError> {
    told!(tell(&desk, ids::new_command(), RunRequest::Grants).await?, Grants)
}

pub(super) async fn revoke(change: Change, Named(grant): Named<GrantId>) -> Result<StatusCode, RouteError> {
    change.make(Request::AgentRuns(RunRequest::Revoke { grant: grant.to_string() })).await?;
    Ok(StatusCode::NO_CONTENT)
}
