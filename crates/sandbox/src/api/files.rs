//! Files: list, search, move, copy, delete, and list versions.

use std::ops::ControlFlow;

use axum::Json;
use event_log::{EventLog, decode_event};
use projector::Position;
use schemars::JsonSchema;
use serde::Deserialize;
use shared_types::payload::file::{FileChange, FileNode};
use shared_types::wire::{
    ChangeResult, ChangeSeveral, Entry, FileMatch, Listing, MatchedIn, MoveBody, PathBody, Version,
};
use shared_types::{FilePath, Payload, Seq, Timestamp};

use super::CurrentComputer;
use super::change::ChangeContext;
use super::problem::{Body, Params, RouteError};
use crate::open_computer::{OpenComputer, blocking};
use computer::error::{ComputerError, ErrorCode};
use computer::protocol::Request;

/// How many versions of a file are listed.
const MAX_VERSIONS: usize = 500;
const DEFAULT_HITS: u32 = 50;

/// A folder; absent for the workspace.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct FolderQuery {
    path: Option<FilePath>,
}

pub(super) async fn list(
    open_computer: CurrentComputer,
    Params(folder): Params<FolderQuery>,
) -> Result<Json<Listing>, RouteError> {
    let open_computer = open_computer.0;
    open_computer.wait_until_projected().await;
    Ok(Json(blocking(move || listing(&open_computer, folder.path)).await?))
}

fn listing(open_computer: &OpenComputer, path: Option<FilePath>) -> Result<Listing, ComputerError> {
    let views = open_computer.views();
    let children = views.children(path.as_ref())?;
    let seq = views.position(Position::Rows)?.map_or(Seq::ZERO, |head| head.seq);
    drop(views);
    if let Some(path) = &path
        && children.is_empty()
    {
        let folder = path.clone();
        let node = open_computer.computer().writer().inspect(move |view| view.files.get(&folder).cloned())?;
        match node {
            Some(FileNode::Folder) => {}
            Some(_) => {
                return Err(ComputerError::new(ErrorCode::BadRequest, format!("{path} is not a folder")));
            }
            None => {
                return Err(ComputerError::new(ErrorCode::NotFound, format!("there is no folder {path}")));
            }
        }
    }
    let mut entries = Vec::with_capacity(children.len());
    for child in children {
        let path = FilePath::parse(&child.path)
            .map_err(|e| ComputerError::new(ErrorCode::Damaged, e.to_string()))?;
        entries.push(Entry { path, node: child.node, ts: Timestamp::from_millis(child.ts), seq: child.seq });
    }
    entries.sort_by_key(|entry| entry.node != FileNode::Folder);
    Ok(Listing { path, entries, seq })
}

pub(super) async fn make_folder(
    change: ChangeContext,
    Body(at): Body<PathBody>,
) -> Result<Json<ChangeResult>, RouteError> {
    Ok(Json(change.apply(Request::MakeFolder { path: at.path }).await?))
}

pub(super) async fn rename(
    change: ChangeContext,
    Body(paths): Body<MoveBody>,
) -> Result<Json<ChangeResult>, RouteError> {
    Ok(Json(change.apply(Request::Move { moves: vec![paths] }).await?))
}

pub(super) async fn copy(
    change: ChangeContext,
    Body(paths): Body<MoveBody>,
) -> Result<Json<ChangeResult>, RouteError> {
    Ok(Json(change.apply(Request::Copy { copies: vec![paths] }).await?))
}

pub(super) async fn delete(
    change: ChangeContext,
    Body(at): Body<PathBody>,
) -> Result<Json<ChangeResult>, RouteError> {
    Ok(Json(change.apply(Request::Remove { paths: vec![at.path] }).await?))
}

/// Deletes, moves or copies several files and folders as one operation.
pub(super) async fn change_several(
    change: ChangeContext,
    Body(several): Body<ChangeSeveral>,
) -> Result<Json<ChangeResult>, RouteError> {
    let request = match several {
        ChangeSeveral::Delete(paths) => Request::Remove { paths },
        ChangeSeveral::Move(moves) => Request::Move { moves },
        ChangeSeveral::Copy(copies) => Request::Copy { copies },
    };
    Ok(Json(change.apply(request).await?))
}

/// The query of a search.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchQuery {
    q: String,
    /// 50 if absent, 500 at most.
    limit: Option<u32>,
}

pub(super) async fn search(
    open_computer: CurrentComputer,
    Params(query): Params<SearchQuery>,
) -> Result<Json<Vec<FileMatch>>, RouteError> {
    let open_computer = open_computer.0;
    open_computer.wait_until_projected().await;
    let limit = query.limit.unwrap_or(DEFAULT_HITS).min(500);
    let hits = blocking(move || {
        let views = open_computer.views();
        let named = views.named(&query.q, limit)?;
        let holding = views.search(&query.q, limit)?;
        let named = named.into_iter().map(|hit| (hit, MatchedIn::Name));
        Ok(named.chain(holding.into_iter().map(|hit| (hit, MatchedIn::Text))).collect::<Vec<_>>())
    });
    let mut found: Vec<FileMatch> = Vec::new();
    for (hit, matched) in hits.await? {
        let Ok(path) = FilePath::parse(&hit.path) else { continue };
        if !found.iter().any(|known| known.path == path) {
            found.push(FileMatch { path, size: hit.size, matched });
        }
    }
    found.truncate(limit as usize);
    Ok(Json(found))
}

pub(super) async fn versions(
    open_computer: CurrentComputer,
    Params(at): Params<PathBody>,
) -> Result<Json<Vec<Version>>, RouteError> {
    let open_computer = open_computer.0;
    open_computer.wait_until_projected().await;
    Ok(Json(blocking(move || versions_of(&open_computer, &at.path)).await?))
}

fn versions_of(open_computer: &OpenComputer, path: &FilePath) -> Result<Vec<Version>, ComputerError> {
    let mut seqs = open_computer.views().touches(path)?;
    seqs.reverse();
    seqs.truncate(MAX_VERSIONS);
    let log = &**open_computer.computer().log();
    let mut versions = Vec::with_capacity(seqs.len());
    for seq in seqs {
        let mut read = None;
        log.scan(seq, &mut |stored| {
            read = Some(decode_event(log, stored));
            ControlFlow::Break(())
        })?;
        let Some(event) = read.transpose()? else { continue };
        let Payload::File(file) = &event.payload else { continue };
        for change in file.changes().iter() {
            let node = match change {
                FileChange::Write(p) if p.path == *path => Some(p.node.clone()),
                FileChange::Move(p) if p.to == *path => Some(p.node.clone()),
                FileChange::Move(p) if p.from == *path => None,
                FileChange::Delete(p) if p.path == *path => None,
                FileChange::Write(_) | FileChange::Move(_) | FileChange::Delete(_) => continue,
            };
            versions.push(Version {
                seq: event.seq,
                op: event.op,
                ts: event.ts,
                source: event.source,
                actor: event.actor.as_str().to_owned(),
                label: projector::label(&event.payload),
                node,
            });
        }
    }
    Ok(versions)
}
