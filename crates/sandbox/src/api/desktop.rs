//! Windows and settings: the state that the desktop holds, and the gestures that change it.

use axum::Json;
use event_log::EventLog;
use event_log::replay::view_at;
use kernel::View;
use schemars::JsonSchema;
use serde::Deserialize;
use shared_types::Seq;
use shared_types::payload::file::FileNode;
use shared_types::wire::{ChangeResult, DesktopState, Gesture, Storage};
use std::path::Path;

use super::CurrentComputer;
use super::change::ChangeContext;
use super::problem::{Body, Params, RouteError};
use crate::open_computer::{OpenComputer, blocking};
use computer::error::{ComputerError, ErrorCode};
use computer::protocol::{Envelope, Request};

/// An event to read the state at.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AtSeqQuery {
    at: Option<Seq>,
}

pub(super) async fn state(
    open_computer: CurrentComputer,
    Params(query): Params<AtSeqQuery>,
) -> Result<Json<DesktopState>, RouteError> {
    let open_computer = open_computer.0;
    Ok(Json(blocking(move || state_at(&open_computer, query.at)).await?))
}

/// The state of the desktop, now or at an earlier event.
pub(super) fn state_at(open_computer: &OpenComputer, at: Option<Seq>) -> Result<DesktopState, ComputerError> {
    let computer = open_computer.computer();
    match at {
        None => Ok(computer.writer().inspect(desktop_state)?),
        Some(seq) if seq > computer.log().head().seq => {
            Err(ComputerError::new(ErrorCode::NotFound, format!("the log has no event {seq} yet")))
        }
        Some(seq) => Ok(desktop_state(&mut view_at(&**computer.log(), seq)?)),
    }
}

fn desktop_state(view: &mut View) -> DesktopState {
    let setting = |key: &str| Some((Box::from(key), view.setting(key)?));
    let mut settings: Vec<(Box<str>, _)> = view.settings.iter().filter_map(|(key, _)| setting(key)).collect();
    settings.sort_by(|(a, _), (b, _)| a.cmp(b));
    let mut windows: Vec<_> = view.windows.iter().map(|(id, window)| (*id, window.clone())).collect();
    windows.sort_by_key(|(id, _)| *id);
    DesktopState {
        seq: view.seq(),
        windows,
        settings,
        checkpoint: view.computer.checkpoint.clone(),
        unsaved: view.computer.unsaved,
        root: view.root(),
    }
}

pub(super) async fn gesture(
    open_computer: CurrentComputer,
    Body(gesture): Body<Gesture>,
) -> Result<Json<ChangeResult>, RouteError> {
    let Gesture { command, op, action } = gesture;
    let change = ChangeContext::with_command(&open_computer, command);
    let envelope = Envelope { op, ..change.envelope(Request::Gesture(action)) };
    Ok(Json(change.send_envelope(envelope).await?.into_done()?))
}

pub(super) async fn storage(open_computer: CurrentComputer) -> Result<Json<Storage>, RouteError> {
    let open_computer = open_computer.0;
    open_computer.wait_until_projected().await;
    Ok(Json(blocking(move || measure(&open_computer)).await?))
}

fn measure(open_computer: &OpenComputer) -> Result<Storage, ComputerError> {
    let computer = open_computer.computer();
    let (files, workspace) = computer.writer().inspect(|view| {
        let files = view.files.iter().filter(|(_, node)| **node != FileNode::Folder).count() as u64;
        (files, view.files.iter().filter_map(|(_, node)| node.content()).map(|c| c.size).sum())
    })?;
    let (_, operations) = open_computer.views().page(&projector::query::OperationFilter::default(), 0, 1)?;
    let state = &computer.paths.state;
    let with_journal = |name: &str| size_of(&state.join(name)) + size_of(&state.join(format!("{name}-wal")));
    Ok(Storage {
        events: computer.log().head().seq.0,
        operations,
        files,
        workspace,
        log: with_journal("state.sqlite"),
        views: with_journal("views.sqlite"),
        blobs: size_of(&state.join("blobs")),
        checkpoints: size_of(&state.join("checkpoints.git")),
    })
}

/// Bytes of a file, or of all files below a folder.
fn size_of(path: &Path) -> u64 {
    let Ok(meta) = std::fs::symlink_metadata(path) else { return 0 };
    if !meta.is_dir() {
        return meta.len();
    }
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    entries.map(|entry| size_of(&entry.path())).sum()
}
