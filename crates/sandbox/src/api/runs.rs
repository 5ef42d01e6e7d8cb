//! Runs of agents: start, show, control and undo them, answer their questions, and revoke grants.

use axum::Json;
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;
use shared_types::wire::{
    ChangeResult, ControlRun, GrantList, Questions, RevertOptions, RunDetails, RunLine, RunList, StartRun,
    Step, StepDetail,
};
use shared_types::{CommandId, GrantId, RunId, Seq};

use super::CurrentComputer;
use super::change::ChangeContext;
use super::operations::choices;
use super::problem::{Body, Params, PathParam, RouteError};
use crate::open_computer::{OpenComputer, blocking};
use computer::error::{ComputerError, ErrorCode};
use computer::ids;
use computer::protocol::{Answer, Request, RunRequest, RunResponse};

/// Where a page of a list starts.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct BeforeQuery {
    /// Only entries that are older than this event.
    before: Option<Seq>,
}

/// A step of a run.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct StepPath {
    run: RunId,
    seq: Seq,
}

/// Sends a request about runs, as the person at the desktop.
async fn request_about_runs(
    open_computer: &OpenComputer,
    command: CommandId,
    request: RunRequest,
) -> Result<RunResponse, RouteError> {
    let answer = ChangeContext::with_command(open_computer, command).send(Request::AgentRuns(request)).await;
    Ok(answer.and_then(Answer::into_runs)?)
}

macro_rules! expect_answer {
    ($answer:expr, $kind:ident) => {
        match $answer {
            RunResponse::$kind(answer) => Ok(Json(answer)),
            _ => {
                Err(ComputerError::new(ErrorCode::Failed, "unexpected answer to a request about runs").into())
            }
        }
    };
}

/// Answers when the objective is recorded. The agents start afterwards.
pub(super) async fn start(
    open_computer: CurrentComputer,
    Body(start): Body<StartRun>,
) -> Result<Json<RunLine>, RouteError> {
    expect_answer!(request_about_runs(&open_computer, start.command, RunRequest::Start(start)).await?, Line)
}

pub(super) async fn list(
    open_computer: CurrentComputer,
    Params(page): Params<BeforeQuery>,
) -> Result<Json<RunList>, RouteError> {
    expect_answer!(
        request_about_runs(&open_computer, ids::new_command(), RunRequest::List { before: page.before })
            .await?,
        List
    )
}

pub(super) async fn show(
    open_computer: CurrentComputer,
    PathParam(run): PathParam<RunId>,
) -> Result<Json<RunDetails>, RouteError> {
    let answer =
        request_about_runs(&open_computer, ids::new_command(), RunRequest::Show { run: run.to_string() })
            .await?;
    let details: Result<Json<Box<RunDetails>>, RouteError> = expect_answer!(answer, Details);
    Ok(Json(*details?.0))
}

pub(super) async fn steps(
    open_computer: CurrentComputer,
    PathParam(run): PathParam<RunId>,
    Params(page): Params<BeforeQuery>,
) -> Result<Json<Vec<Step>>, RouteError> {
    let request = RunRequest::Steps { run: run.to_string(), before: page.before };
    expect_answer!(request_about_runs(&open_computer, ids::new_command(), request).await?, Steps)
}

pub(super) async fn step(
    open_computer: CurrentComputer,
    PathParam(step): PathParam<StepPath>,
) -> Result<Json<StepDetail>, RouteError> {
    let request = RunRequest::StepDetail { run: step.run.to_string(), seq: step.seq };
    let detail: Result<Json<Box<StepDetail>>, RouteError> =
        expect_answer!(request_about_runs(&open_computer, ids::new_command(), request).await?, StepDetail);
    let (mut detail, open_computer) = (*detail?.0, open_computer.0);
    let whole = blocking(move || {
        agent_host::prompts::add_prompt(&**open_computer.computer().log(), step.run, &mut detail)?;
        Ok(detail)
    });
    Ok(Json(whole.await?))
}

pub(super) async fn control(
    open_computer: CurrentComputer,
    PathParam(run): PathParam<RunId>,
    Body(ControlRun { command, control }): Body<ControlRun>,
) -> Result<Json<RunLine>, RouteError> {
    expect_answer!(
        request_about_runs(&open_computer, command, RunRequest::Control { run: run.to_string(), control })
            .await?,
        Line
    )
}

pub(super) async fn undo(
    change: ChangeContext,
    PathParam(run): PathParam<RunId>,
    Body(revert): Body<RevertOptions>,
) -> Result<Json<ChangeResult>, RouteError> {
    let (run, choices, preview) = (run.to_string(), choices(&revert), revert.preview);
    Ok(Json(change.apply(Request::AgentRuns(RunRequest::Undo { run, choices, preview })).await?))
}

pub(super) async fn redo(
    change: ChangeContext,
    PathParam(run): PathParam<RunId>,
    Body(revert): Body<RevertOptions>,
) -> Result<Json<ChangeResult>, RouteError> {
    let (run, choices, preview) = (run.to_string(), choices(&revert), revert.preview);
    Ok(Json(change.apply(Request::AgentRuns(RunRequest::Redo { run, choices, preview })).await?))
}

pub(super) async fn retry(
    change: ChangeContext,
    PathParam(StepPath { run, seq }): PathParam<StepPath>,
    Body(revert): Body<RevertOptions>,
) -> Result<Json<ChangeResult>, RouteError> {
    let (run, choices, preview) = (run.to_string(), choices(&revert), revert.preview);
    Ok(Json(change.apply(Request::AgentRuns(RunRequest::Retry { run, step: seq, choices, preview })).await?))
}

pub(super) async fn questions(open_computer: CurrentComputer) -> Result<Json<Questions>, RouteError> {
    expect_answer!(
        request_about_runs(&open_computer, ids::new_command(), RunRequest::Questions).await?,
        Questions
    )
}

pub(super) async fn grants(open_computer: CurrentComputer) -> Result<Json<GrantList>, RouteError> {
    expect_answer!(request_about_runs(&open_computer, ids::new_command(), RunRequest::Grants).await?, Grants)
}

pub(super) async fn revoke(
    change: ChangeContext,
    PathParam(grant): PathParam<GrantId>,
) -> Result<StatusCode, RouteError> {
    change.apply(Request::AgentRuns(RunRequest::Revoke { grant: grant.to_string() })).await?;
    Ok(StatusCode::NO_CONTENT)
}
