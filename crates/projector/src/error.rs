//! Why a projection or a capture stopped. Nothing is lost: the position stays, and the next attempt continues there.

use event_log::writer::SubmitError;
use event_log::{ContentError, ReadError};
use thiserror::Error;

use crate::scan::ScanError;
use crate::views::ViewsError;
use crate::workspace::{DiskError, OpenError};

/// Why a projection or a capture stopped.
#[derive(Debug, Error)]
pub enum ProjectError {
    #[error(transparent)]
    Views(#[from] ViewsError),
    #[error(transparent)]
    Disk(#[from] DiskError),
    #[error(transparent)]
    Workspace(#[from] OpenError),
    #[error(transparent)]
    Scan(#[from] ScanError),
    #[error(transparent)]
    Log(#[from] ReadError),
    #[error(transparent)]
    Content(#[from] ContentError),
    #[error("an outside edit could not be recorded")]
    Submit(#[from] SubmitError),
}
