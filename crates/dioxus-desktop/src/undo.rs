//! Undo, redo and restore: what they would do is shown first where the person asked for that, and conflicts are
//! answered one by one.

use dioxus::prelude::*;
use serde::Deserialize;
use shared_types::wire::{
    ChangeResult, ConflictView, Operation, Operations, RestoreRequest, RevertOptions, Side,
};
use shared_types::{OpId, Subject};

use crate::api::{self, Answer, Failure};
use crate::state::{AppState, Offer};
use crate::undo_plan::{Ask, Plan, Target, Way};
use crate::words;

/// The person's latest operation, at once.
pub(crate) fn latest(app_state: AppState, way: Way) {
    api::run(async move {
        app_state.caught_up().await;
        let answer: Answer<ChangeResult> =
            api::post(&format!("/{}", way.route()), &RevertOptions::default()).await;
        finish(app_state, way, KnownTarget::default(), answer).await;
    });
}

/// One operation, at once.
pub(crate) fn one(app_state: AppState, way: Way, op: OpId, label: Option<String>) {
    api::run(async move {
        let target = Target::Op(op);
        let answer = revert(way, target, &RevertOptions::default()).await;
        finish(app_state, way, KnownTarget { target: Some(target), label }, answer).await;
    });
}

async fn revert(way: Way, target: Target, body: &RevertOptions) -> Answer<ChangeResult> {
    let (place, id) = match target {
        Target::Op(op) => ("operations", op.to_string()),
        Target::Run(run) => ("runs", run.to_string()),
        Target::Step(run, seq) => ("runs", format!("{run}/steps/{seq}")),
    };
    api::post(&format!("/{place}/{id}/{}", way.route()), body).await
}

async fn label_of(op: Option<OpId>) -> Option<Operation> {
    /// The part of an `OperationDetails` that names the operation.
    #[derive(Deserialize)]
    struct Named {
        operation: Operation,
    }
    let named: Answer<Named> = api::get(&format!("/operations/{}", op?)).await;
    named.ok().map(|named| named.operation)
}

/// The target of a request and its label, where the caller knows them.
#[derive(Default)]
struct KnownTarget {
    target: Option<Target>,
    label: Option<String>,
}

impl KnownTarget {
    fn op(&self) -> Option<OpId> {
        match self.target {
            Some(Target::Op(op)) => Some(op),
            Some(Target::Run(_) | Target::Step(..)) | None => None,
        }
    }
}

async fn finish(mut app_state: AppState, way: Way, known: KnownTarget, answer: Answer<ChangeResult>) {
    match answer {
        Ok(done) => {
            // An offer that was just taken by another way is no longer one.
            if let Some(target) = done.target.or(known.op()) {
                let is_of = |offer: &Offer| matches!(offer, Offer::Undo(op) | Offer::Redo(op) | Offer::UndoAgain(op) if *op == target);
                app_state.toasts.write().retain(|toast| !is_of(&toast.offer));
            }
            let about = done.target.or(known.op());
            let label = match known.label {
                Some(label) => Some(label),
                None => label_of(about).await.map(|o| o.label),
            };
            let text =
                label.map_or_else(|| words::undo::done(way.verb()), |l| words::undo::verb_of(way.past(), &l));
            let offer = match (way, done.op) {
                (Way::Undo, Some(op)) => Offer::Redo(op),
                (Way::Redo, Some(op)) => Offer::UndoAgain(op),
                (Way::Retry, _) | (Way::Undo | Way::Redo, None) => Offer::Nothing,
            };
            app_state.toast(text, false, offer);
        }
        Err(failure) => {
            let conflicts = conflicts(&failure);
            if conflicts.is_empty() {
                return app_state.report_failure(&failure);
            }
            let target = match (known.target, known.label) {
                (Some(target), Some(label)) => Some((target, label)),
                (Some(target), None) => {
                    let op = KnownTarget { target: Some(target), label: None }.op();
                    Some((target, label_of(op).await.map(|o| o.label).unwrap_or_default()))
                }
                (None, _) => candidate(way).await.map(|row| (Target::Op(row.op), row.label)),
            };
            match target {
                Some((target, label)) => {
                    let plan = Plan::Revert { way, target, label };
                    app_state.ask.set(Some(Ask { plan, preview: None, conflicts }));
                }
                None => app_state.report_failure(&failure),
            }
        }
    }
}

/// The operation that the server would have taken: the person's newest that can go this way.
async fn candidate(way: Way) -> Option<Operation> {
    let rows: Answer<Operations> = api::get("/operations?source=user&limit=50").await;
    let fits = |row: &Operation| match way {
        Way::Undo => row.reversible && !row.undone,
        Way::Redo => row.undone,
        Way::Retry => false,
    };
    rows.ok()?.rows.into_iter().find(fits)
}

fn conflicts(failure: &Failure) -> Vec<ConflictView> {
    failure.problem().map(|p| p.conflicts.clone()).unwrap_or_default()
}

/// A preview, as things are or with these sides chosen. Other conflicts keep the state of today.
pub(crate) async fn preview(plan: Plan, sides: Vec<(Subject, Side)>) -> Answer<ChangeResult> {
    match plan {
        Plan::Revert { way, target, .. } => {
            revert(way, target, &RevertOptions { preview: true, ..with_sides(sides) }).await
        }
        Plan::Restore { seq, .. } => api::post("/restore", &RestoreRequest { seq, preview: true }).await,
    }
}

fn with_sides(sides: Vec<(Subject, Side)>) -> RevertOptions {
    RevertOptions { preview: false, others: (!sides.is_empty()).then_some(Side::Keep), each: sides }
}

/// Asks first: fetches what it would do, and shows it.
pub(crate) fn ask(mut app_state: AppState, plan: Plan) {
    app_state.ask.set(Some(Ask { plan: plan.clone(), preview: None, conflicts: Vec::new() }));
    api::run(async move {
        let answer = preview(plan.clone(), Vec::new()).await;
        if app_state.ask.peek().as_ref().is_none_or(|ask| ask.plan != plan) {
            return;
        }
        match answer {
            Ok(done) => app_state.ask.set(Some(Ask { plan, preview: Some(done), conflicts: Vec::new() })),
            Err(failure) => {
                let conflicts = conflicts(&failure);
                if conflicts.is_empty() {
                    app_state.ask.set(None);
                    app_state.report_failure(&failure);
                } else {
                    app_state.ask.set(Some(Ask { plan, preview: None, conflicts }));
                }
            }
        }
    });
}

/// Does what was asked about, with a side for everything in conflict.
pub(crate) fn confirm(mut app_state: AppState, plan: Plan, sides: Vec<(Subject, Side)>) {
    app_state.ask.set(None);
    api::run(async move {
        match plan {
            Plan::Revert { way, target, label } => {
                let answer = revert(way, target, &with_sides(sides)).await;
                finish(app_state, way, KnownTarget { target: Some(target), label: Some(label) }, answer)
                    .await;
            }
            Plan::Restore { seq, label } => {
                let answer: Answer<ChangeResult> =
                    api::post("/restore", &RestoreRequest { seq, preview: false }).await;
                app_state.past.set(None);
                app_state.report_operation(&words::undo::returned_to(&label), &answer);
            }
        }
    });
}
