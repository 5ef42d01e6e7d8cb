//! Compares the projections with what the log says.

use std::collections::BTreeMap;

use event_log::{EventLog, decode_event};
use kernel::View;
use rusqlite::types::Value;
use shared_types::FilePath;
use shared_types::payload::file::FileNode;

use crate::error::ProjectError;
use crate::identify::read_node;
use crate::rows;
use crate::views::{READ_MODELS, Views, ViewsError};
use crate::workspace::Workspace;

/// The first row that differs between two read models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowDifference {
    pub table: &'static str,
    pub expected: Option<String>,
    pub found: Option<String>,
}

/// The first path that differs between the log and the disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileDifference {
    pub path: FilePath,
    pub expected: Option<FileNode>,
    pub found: Option<FileNode>,
}

/// Computes read models from the whole log.
pub fn computed_rows(log: &dyn EventLog) -> Result<Views, ProjectError> {
    let views = Views::temporary()?;
    let mut failure: Option<ProjectError> = None;
    views.transaction(|| {
        log.scan(shared_types::Seq(1), &mut |stored| {
            let applied = decode_event(log, stored)
                .map_err(ProjectError::from)
                .and_then(|event| rows::apply(&views, log, &event));
            match applied {
                Ok(()) => std::ops::ControlFlow::Continue(()),
                Err(e) => {
                    failure = Some(e);
                    std::ops::ControlFlow::Break(())
                }
            }
        })?;
        failure.take().map_or(Ok(()), Err)
    })?;
    Ok(views)
}

/// The first difference between two read models, table by table.
pub fn first_row_difference(found: &Views, expected: &Views) -> Result<Option<RowDifference>, ViewsError> {
    for (table, columns) in READ_MODELS {
        let sql = format!("SELECT {columns} FROM {table} ORDER BY {columns}");
        let (mut found_rows, mut expected_rows) = (found.prepare(&sql)?, expected.prepare(&sql)?);
        let mut ours = found.map(found_rows.query([]))?;
        let mut theirs = expected.map(expected_rows.query([]))?;
        loop {
            let (a, b) = (render(found.map(ours.next())?), render(expected.map(theirs.next())?));
            if a != b {
                return Ok(Some(RowDifference { table, expected: b, found: a }));
            }
            if a.is_none() {
                break;
            }
        }
    }
    Ok(None)
}

fn render(row: Option<&rusqlite::Row<'_>>) -> Option<String> {
    let row = row?;
    let mut text = String::new();
    let mut at = 0;
    while let Ok(value) = row.get::<_, Value>(at) {
        let shown = match value {
            Value::Null => "null".into(),
            Value::Integer(n) => n.to_string(),
            Value::Real(n) => n.to_string(),
            Value::Text(t) => format!("{t:?}"),
            Value::Blob(b) => b.iter().map(|byte| format!("{byte:02x}")).collect(),
        };
        text = if at == 0 { shown } else { format!("{text}, {shown}") };
        at += 1;
    }
    Some(text)
}

/// The first path whose bytes on disk differ from the log. Reads every file; paths in `excused` may differ.
pub fn first_file_difference(
    workspace: &Workspace,
    view: &View,
    excused: &dyn Fn(&FilePath) -> bool,
    progress: &dyn Fn(u64, u64),
) -> Result<Option<FileDifference>, ProjectError> {
    let expected: BTreeMap<&FilePath, &FileNode> = view.files.iter().collect();
    let total = expected.len() as u64;
    for (index, (path, node)) in expected.into_iter().enumerate() {
        progress(index as u64, total);
        let found = read_node(workspace, path, None)?.map(|entry| entry.node);
        if found.as_ref() != Some(node) && !excused(path) {
            return Ok(Some(FileDifference { path: path.clone(), expected: Some(node.clone()), found }));
        }
    }
    Ok(None)
}
