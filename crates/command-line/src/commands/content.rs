//! `choir cat`: a file as it is in the log, now or at an event.

use std::io::{ErrorKind, Write, copy, stdout};

use anyhow::Result;
use event_log::replay::view_at;
use event_log::{ContentError, EventLog};
use shared_types::payload::file::FileNode;

use super::{Context, moment};
use crate::cli::Cat;
use computer::error::{ComputerError, ErrorCode};

pub(crate) fn run(context: &Context, args: &Cat) -> Result<()> {
    let path = context.paths()?.path(&args.path)?;
    let log = context.reading()?;
    let at = moment(&log, args.at)?;
    let view = view_at(&log, at).map_err(ComputerError::from)?;
    match view.files.get(&path) {
        Some(FileNode::File { hash, .. }) => {
            let mut bytes = log.content(hash).map_err(ComputerError::from)?;
            let mut out = stdout().lock();
            match copy(&mut bytes, &mut out).and_then(|_| out.flush()) {
                Ok(()) => Ok(()),
                // The reader closed the pipe.
                Err(e) if e.kind() == ErrorKind::BrokenPipe => Ok(()),
                Err(e) => Err(ComputerError::from(ContentError::from_read(e)).into()),
            }
        }
        Some(FileNode::Symlink { target }) => Ok(writeln!(stdout(), "{target}")?),
        Some(FileNode::Folder) => {
            Err(ComputerError::new(ErrorCode::Refused, format!("{path} is a folder")).into())
        }
        None if view.files.count_below(&path) > 0 => {
            Err(ComputerError::new(ErrorCode::Refused, format!("{path} is a folder")).into())
        }
        None => {
            Err(ComputerError::new(ErrorCode::NotFound, format!("there is nothing at {path} at event {at}"))
                .into())
        }
    }
}
