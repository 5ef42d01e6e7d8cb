//! Undo, redo and restore. Some are done at once, others after a preview in the dialog; conflicts are always shown in the
//! dialog.

use dioxus::prelude::*;
use serde::Deserialize;
use shared_types::wire::{
    ChangeResult, ConflictView, Operation, Operations, RestoreRequest, RevertOptions, Side,
};
use shared_types::{OpId, Subject};

use crate::api::{self, ApiFailure, ApiResult};
use crate::state::{AppState, ToastAction};
use crate::undo_plan::{RevertDialog, RevertKind, RevertPlan, RevertTarget};
use crate::words;

/// Undoes or redoes the person's latest operation, without a preview.
pub(crate) fn revert_latest(app_state: AppState, kind: RevertKind) {
    api::run(async move {
        app_state.caught_up().await;
        let answer: ApiResult<ChangeResult> =
            api::post(&format!("/{}", kind.route()), &RevertOptions::default()).await;
        finish(app_state, kind, KnownTarget::default(), answer).await;
    });
}

/// Undoes or redoes one operation, without a preview.
pub(crate) fn revert_operation(app_state: AppState, kind: RevertKind, op: OpId, label: Option<String>) {
    api::run(async move {
        let target = RevertTarget::Op(op);
        let answer = revert(kind, target, &RevertOptions::default()).await;
        finish(app_state, kind, KnownTarget { target: Some(target), label }, answer).await;
    });
}

async fn revert(kind: RevertKind, target: RevertTarget, body: &RevertOptions) -> ApiResult<ChangeResult> {
    let (place, id) = match target {
        RevertTarget::Op(op) => ("operations", op.to_string()),
        RevertTarget::Run(run) => ("runs", run.to_string()),
        RevertTarget::Step(run, seq) => ("runs", format!("{run}/steps/{seq}")),
    };
    api::post(&format!("/{place}/{id}/{}", kind.route()), body).await
}

/// The label of an operation; none if it cannot be fetched, and then the texts do without it.
async fn label_of(op: Option<OpId>) -> Option<String> {
    /// The part of an `OperationDetails` that names the operation.
    #[derive(Deserialize)]
    struct Named {
        operation: Operation,
    }
    let named: ApiResult<Named> = api::get(&format!("/operations/{}", op?)).await;
    named.ok().map(|named| plain_label(named.operation))
}

/// A command as it was typed, or the label of any other operation.
fn plain_label(row: Operation) -> String {
    row.title.unwrap_or(row.label)
}

/// The target of a request and its label, if the caller knows them.
#[derive(Default)]
struct KnownTarget {
    target: Option<RevertTarget>,
    label: Option<String>,
}

impl KnownTarget {
    fn op(&self) -> Option<OpId> {
        match self.target {
            Some(RevertTarget::Op(op)) => Some(op),
            Some(RevertTarget::Run(_) | RevertTarget::Step(..)) | None => None,
        }
    }
}

async fn finish(
    mut app_state: AppState,
    kind: RevertKind,
    known: KnownTarget,
    answer: ApiResult<ChangeResult>,
) {
    match answer {
        Ok(done) => {
            // A toast that offers the same is out of date now.
            if let Some(target) = done.target.or(known.op()) {
                let is_of = |offer: &ToastAction| matches!(offer, ToastAction::Undo(op) | ToastAction::Redo(op) | ToastAction::UndoAgain(op) if *op == target);
                app_state.toasts.write().retain(|toast| !is_of(&toast.offer));
            }
            let about = done.target.or(known.op());
            let label = match known.label {
                Some(label) => Some(label),
                None => label_of(about).await,
            };
            let text = label
                .map_or_else(|| words::undo::done(kind.verb()), |l| words::undo::verb_of(kind.past(), &l));
            let offer = match (kind, done.op) {
                (RevertKind::Undo, Some(op)) => ToastAction::Redo(op),
                (RevertKind::Redo, Some(op)) => ToastAction::UndoAgain(op),
                (RevertKind::Retry, _) | (RevertKind::Undo | RevertKind::Redo, None) => ToastAction::Nothing,
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
                    Some((target, label_of(op).await.unwrap_or_default()))
                }
                (None, _) => candidate(kind).await.map(|row| (RevertTarget::Op(row.op), plain_label(row))),
            };
            match target {
                Some((target, label)) => {
                    let plan = RevertPlan::Revert { kind, target, label };
                    app_state.revert_dialog.set(Some(RevertDialog { plan, preview: None, conflicts }));
                }
                None => app_state.report_failure(&failure),
            }
        }
    }
}

/// The operation that the server would choose: the newest of the person that can be undone or redone.
async fn candidate(kind: RevertKind) -> Option<Operation> {
    let rows: ApiResult<Operations> = api::get("/operations?source=user&limit=50").await;
    let fits = |row: &Operation| match kind {
        RevertKind::Undo => row.reversible && !row.undone,
        RevertKind::Redo => row.undone,
        RevertKind::Retry => false,
    };
    rows.ok()?.rows.into_iter().find(fits)
}

fn conflicts(failure: &ApiFailure) -> Vec<ConflictView> {
    failure.problem().map(|p| p.conflicts.clone()).unwrap_or_default()
}

/// A preview with these choices. Conflicts without a choice keep the present state.
pub(crate) async fn preview(plan: RevertPlan, sides: Vec<(Subject, Side)>) -> ApiResult<ChangeResult> {
    match plan {
        RevertPlan::Revert { kind, target, .. } => {
            revert(kind, target, &RevertOptions { preview: true, ..with_sides(sides) }).await
        }
        RevertPlan::Restore { seq, .. } => {
            api::post("/restore", &RestoreRequest { seq, preview: true }).await
        }
    }
}

fn with_sides(sides: Vec<(Subject, Side)>) -> RevertOptions {
    RevertOptions { preview: false, others: (!sides.is_empty()).then_some(Side::Keep), each: sides }
}

/// Opens the dialog and fetches its preview.
pub(crate) fn open_dialog(mut app_state: AppState, plan: RevertPlan) {
    app_state.revert_dialog.set(Some(RevertDialog {
        plan: plan.clone(),
        preview: None,
        conflicts: Vec::new(),
    }));
    api::run(async move {
        let answer = preview(plan.clone(), Vec::new()).await;
        if app_state.revert_dialog.peek().as_ref().is_none_or(|dialog| dialog.plan != plan) {
            return;
        }
        match answer {
            Ok(done) => app_state.revert_dialog.set(Some(RevertDialog {
                plan,
                preview: Some(done),
                conflicts: Vec::new(),
            })),
            Err(failure) => {
                let conflicts = conflicts(&failure);
                if conflicts.is_empty() {
                    app_state.revert_dialog.set(None);
                    app_state.report_failure(&failure);
                } else {
                    app_state.revert_dialog.set(Some(RevertDialog { plan, preview: None, conflicts }));
                }
            }
        }
    });
}

/// Carries out the plan of the dialog, with a choice for every conflict.
pub(crate) fn confirm(mut app_state: AppState, plan: RevertPlan, sides: Vec<(Subject, Side)>) {
    app_state.revert_dialog.set(None);
    api::run(async move {
        match plan {
            RevertPlan::Revert { kind, target, label } => {
                let answer = revert(kind, target, &with_sides(sides)).await;
                finish(app_state, kind, KnownTarget { target: Some(target), label: Some(label) }, answer)
                    .await;
            }
            RevertPlan::Restore { seq, label } => {
                let answer: ApiResult<ChangeResult> =
                    api::post("/restore", &RestoreRequest { seq, preview: false }).await;
                app_state.past.set(None);
                app_state.report_operation(&words::undo::returned_to(&label), &answer);
            }
        }
    });
}
