//! Models: the catalog, the model of each role, tests, and the local model.

use std::sync::Arc;

use axum::Json;
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;
use shared_types::payload::run::Budget;
use shared_types::wire::{LocalModelLine, ModelList, ModelTestResult, RoleLine, RunCost};

use super::CurrentComputer;
use super::problem::{PathParam, RouteError};
use crate::open_computer::{OpenComputer, blocking};
use agent_host::agent_services::model_lines;
use computer::error::{ComputerError, ErrorCode};
use computer::ids;
use computer::{DAILY_BUDGET_SETTING, DEFAULT_BUDGET, RUN_BUDGET_SETTING, role_model_setting};

/// A model, by its name in the catalog.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ModelName {
    name: String,
}

pub(super) async fn list(open_computer: CurrentComputer) -> Result<Json<ModelList>, RouteError> {
    let open_computer = open_computer.0;
    Ok(Json(blocking(move || listed(&open_computer)).await?))
}

fn listed(open_computer: &OpenComputer) -> Result<ModelList, ComputerError> {
    let (gateway, computer) = (open_computer.gateway(), open_computer.computer());
    let catalog = gateway.catalog();
    let now = ids::now();
    let roles: Vec<String> = catalog.roles.keys().cloned().collect();
    let names = roles.clone();
    let (wanted, budget, daily, spent) = computer.writer().inspect(move |view| {
        let text = |role: &String| view.setting(&role_model_setting(role))?.as_str().map(str::to_owned);
        let wanted: Vec<Option<String>> = names.iter().map(text).collect();
        let budget = |key: &str| serde_json::from_value::<Budget>(view.setting(key)?).ok();
        (wanted, budget(RUN_BUDGET_SETTING), budget(DAILY_BUDGET_SETTING), view.spent_on_day(now).spent)
    })?;
    let roles = roles.iter().zip(wanted).map(|(role, wanted)| RoleLine {
        role: role.clone(),
        effective: gateway.choose(wanted.as_deref(), role).ok().map(|chosen| chosen.alias),
        model: wanted.unwrap_or_else(|| catalog.roles.get(role).cloned().unwrap_or_default()),
    });
    Ok(ModelList {
        models: model_lines(gateway),
        roles: roles.collect(),
        local: open_computer.local_model().map(|local| local.line()),
        budget: budget.unwrap_or(DEFAULT_BUDGET),
        daily: daily.unwrap_or_default(),
        today: RunCost {
            turns: spent.steps,
            tokens: spent.tokens,
            micros: spent.micros,
            unpriced: spent.unpriced,
        },
    })
}

/// Asks a model for a short reply.
pub(super) async fn test(
    open_computer: CurrentComputer,
    PathParam(model): PathParam<ModelName>,
) -> Result<Json<ModelTestResult>, RouteError> {
    let started = std::time::Instant::now();
    let tried = open_computer.gateway().test(&model.name).await;
    let millis = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    Ok(Json(match tried {
        Ok(turn) => {
            ModelTestResult { model: turn.model, ok: true, text: turn.reply.text, millis, micros: turn.cost }
        }
        Err(error) => {
            ModelTestResult { model: error.model, ok: false, text: error.message, millis, micros: None }
        }
    }))
}

/// Starts the download of the weights, which the person has agreed to.
pub(super) async fn fetch(open_computer: CurrentComputer) -> Result<Json<LocalModelLine>, RouteError> {
    let local = open_computer.local_model().ok_or_else(none)?;
    local.fetch();
    Ok(Json(local.line()))
}

/// Records that the person declined the download.
pub(super) async fn decline(open_computer: CurrentComputer) -> Result<Json<LocalModelLine>, RouteError> {
    let local = Arc::clone(open_computer.local_model().ok_or_else(none)?);
    let declined = move || local.decline().map(|()| local.line());
    Ok(Json(blocking(declined).await?))
}

/// Stops the download of the weights, or the model itself.
pub(super) async fn stop(open_computer: CurrentComputer) -> Result<StatusCode, RouteError> {
    open_computer.local_model().ok_or_else(none)?.stop();
    Ok(StatusCode::NO_CONTENT)
}

fn none() -> ComputerError {
    ComputerError::new(ErrorCode::NotFound, "this build has no local model")
}
