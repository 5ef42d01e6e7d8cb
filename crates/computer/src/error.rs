//! Errors as the person sees them: a stable code, a sentence that says what to do, and an exit code. The same value is
//! sent over the socket.

use event_log::writer::SubmitError;
use event_log::{AppendError, ContentError, OpenError, ReadError};
use kernel::{Conflict, Rejection};
use projector::ProjectError;
use projector::workspace::DiskError;
use serde::{Deserialize, Serialize};

/// Stable codes; `choir --help` lists the exit codes they map to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    Failed,
    BadPath,
    BadRequest,
    NoComputer,
    NotFound,
    Conflict,
    Refused,
    Damaged,
    Busy,
    StorageFull,
    ReadOnly,
    NoRun,
    RunTaken,
    RunIsOver,
    RunIsPaused,
    RunIsBusy,
    NoTask,
    TaskTaken,
    TaskIsOver,
    TaskIsBusy,
    NoQuestion,
    NoGrant,
}

impl ErrorCode {
    /// The exit code of the process.
    pub fn exit(self) -> u8 {
        match self {
            Self::Failed | Self::StorageFull => 1,
            Self::BadPath | Self::BadRequest => 2,
            Self::Conflict => 3,
            Self::NotFound
            | Self::NoComputer
            | Self::NoRun
            | Self::NoTask
            | Self::NoQuestion
            | Self::NoGrant => 4,
            Self::Refused
            | Self::ReadOnly
            | Self::RunTaken
            | Self::RunIsOver
            | Self::RunIsPaused
            | Self::RunIsBusy
            | Self::TaskTaken
            | Self::TaskIsOver
            | Self::TaskIsBusy => 5,
            Self::Damaged => 6,
            Self::Busy => 7,
        }
    }
}

/// A failure as the person sees it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ComputerError {
    pub code: ErrorCode,
    pub message: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<Conflict>,
}

impl ComputerError {
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), conflicts: Vec::new() }
    }

    fn from_error(code: ErrorCode, error: &(dyn std::error::Error + 'static)) -> Self {
        Self::new(code, chain(error))
    }

    /// An error of the storage. The disk's error decides the code.
    fn from_storage(error: &(dyn std::error::Error + 'static)) -> Self {
        let code = std::iter::successors(Some(error), |error| error.source()).find_map(disk_code);
        let mut failure = Self::from_error(code.unwrap_or(ErrorCode::Failed), error);
        let plain = match code {
            Some(ErrorCode::ReadOnly) => "the disk is read-only",
            Some(ErrorCode::StorageFull) => "the disk is full",
            Some(_) | None => return failure,
        };
        if !failure.message.contains(plain) {
            failure.message = format!("{plain}: {}", failure.message);
        }
        failure
    }
}

/// The error code, if the error comes from the disk.
fn disk_code(error: &(dyn std::error::Error + 'static)) -> Option<ErrorCode> {
    use rusqlite::Error;
    use std::io::ErrorKind;
    match error.downcast_ref::<DiskError>() {
        Some(DiskError::Full { .. }) => return Some(ErrorCode::StorageFull),
        Some(DiskError::ReadOnly { .. }) => return Some(ErrorCode::ReadOnly),
        Some(_) | None => {}
    }
    let (full, read_only) = if let Some(io) = error.downcast_ref::<std::io::Error>() {
        let full = [ErrorKind::StorageFull, ErrorKind::QuotaExceeded].contains(&io.kind());
        (full, io.kind() == ErrorKind::ReadOnlyFilesystem)
    } else {
        let shared = error.downcast_ref::<std::sync::Arc<Error>>().map(|shared| &**shared);
        let sqlite = shared.or_else(|| error.downcast_ref::<Error>())?.sqlite_error()?;
        // If there is no space even for the WAL index, SQLite reports an I/O error.
        let no_room = sqlite.extended_code == rusqlite::ffi::SQLITE_IOERR_SHMSIZE;
        (
            no_room || sqlite.code == rusqlite::ErrorCode::DiskFull,
            sqlite.code == rusqlite::ErrorCode::ReadOnly,
        )
    };
    if full { Some(ErrorCode::StorageFull) } else { read_only.then_some(ErrorCode::ReadOnly) }
}

impl std::fmt::Display for ComputerError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ComputerError {}

/// An error with all its causes, without repetitions.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

impl From<Rejection> for ComputerError {
    fn from(rejection: Rejection) -> Self {
        let code = match &rejection {
            Rejection::NotFound { .. }
            | Rejection::NoOperation { .. }
            | Rejection::NoWindow { .. }
            | Rejection::NoSetting { .. }
            | Rejection::NoSuchCall { .. }
            | Rejection::NotYet { .. } => ErrorCode::NotFound,
            Rejection::Conflicts { .. } | Rejection::Stale { .. } | Rejection::Taken { .. } => {
                ErrorCode::Conflict
            }
            Rejection::BadPath { .. } | Rejection::LinkLeaves { .. } => ErrorCode::BadPath,
            Rejection::NotAFolder { .. }
            | Rejection::IsAFolder { .. }
            | Rejection::Occupied { .. }
            | Rejection::IntoItself { .. }
            | Rejection::TooLarge { .. }
            | Rejection::Invalid { .. }
            | Rejection::AlreadySetUp
            | Rejection::NotOwed { .. }
            | Rejection::AlreadyUndone { .. }
            | Rejection::NotUndone { .. }
            | Rejection::NotReversible { .. }
            | Rejection::CallTaken { .. }
            | Rejection::CallIsOpen { .. }
            | Rejection::CallIsHeld { .. }
            | Rejection::Missing { .. } => ErrorCode::Refused,
            Rejection::NoRun { .. } => ErrorCode::NoRun,
            Rejection::RunTaken { .. } => ErrorCode::RunTaken,
            Rejection::RunIsOver { .. } => ErrorCode::RunIsOver,
            Rejection::RunIsPaused { .. } => ErrorCode::RunIsPaused,
            Rejection::RunIsBusy { .. } => ErrorCode::RunIsBusy,
            Rejection::NoTask { .. } => ErrorCode::NoTask,
            Rejection::TaskTaken { .. } => ErrorCode::TaskTaken,
            Rejection::TaskIsOver { .. } => ErrorCode::TaskIsOver,
            Rejection::TaskIsBusy { .. } | Rejection::NotHeard { .. } => ErrorCode::TaskIsBusy,
            Rejection::NoAsk { .. } => ErrorCode::NoQuestion,
            Rejection::NoGrant { .. } => ErrorCode::NoGrant,
        };
        let mut failure = Self::new(code, rejection.to_string());
        if let Rejection::Taken { paths } = &rejection {
            let shown: Vec<_> = paths.iter().take(5).map(ToString::to_string).collect();
            failure.message = format!("{}: {}", failure.message, shown.join(", "));
        }
        if let Rejection::Conflicts { conflicts } = rejection {
            failure.conflicts = conflicts;
        }
        failure
    }
}

impl From<SubmitError> for ComputerError {
    fn from(error: SubmitError) -> Self {
        match error {
            SubmitError::Rejected(rejection) => rejection.into(),
            SubmitError::Append(e) => e.into(),
            SubmitError::Read(e) => e.into(),
            SubmitError::Content(e) => e.into(),
            SubmitError::NoContent(_) => Self::from_error(ErrorCode::Refused, &error),
            SubmitError::Stopped(_) => Self::from_error(ErrorCode::Failed, &error),
        }
    }
}

impl From<AppendError> for ComputerError {
    fn from(error: AppendError) -> Self {
        Self::from_storage(&error)
    }
}

impl From<ReadError> for ComputerError {
    fn from(error: ReadError) -> Self {
        if matches!(error, ReadError::Storage { .. }) {
            return Self::from_storage(&error);
        }
        Self::from_error(ErrorCode::Damaged, &error)
    }
}

impl From<ContentError> for ComputerError {
    fn from(error: ContentError) -> Self {
        let code = match &error {
            ContentError::Missing(_) | ContentError::Purged(_) => ErrorCode::NotFound,
            ContentError::Damaged(_) => ErrorCode::Damaged,
            ContentError::Storage(_) => return Self::from_storage(&error),
        };
        Self::from_error(code, &error)
    }
}

impl From<OpenError> for ComputerError {
    fn from(error: OpenError) -> Self {
        let code = match &error {
            OpenError::Missing(_) => ErrorCode::NoComputer,
            OpenError::Exists(_) | OpenError::TooNew { .. } | OpenError::User(_) => ErrorCode::Refused,
            OpenError::Locked { .. } => ErrorCode::Busy,
            OpenError::Damaged(_) => ErrorCode::Damaged,
            OpenError::Storage(_) | OpenError::Read(ReadError::Storage { .. }) => {
                return Self::from_storage(&error);
            }
            OpenError::Read(_) => ErrorCode::Damaged,
        };
        Self::from_error(code, &error)
    }
}

impl From<ProjectError> for ComputerError {
    fn from(error: ProjectError) -> Self {
        match error {
            ProjectError::Submit(e) => e.into(),
            ProjectError::Log(e) => e.into(),
            ProjectError::Content(e) => e.into(),
            ProjectError::Views(_)
            | ProjectError::Disk(_)
            | ProjectError::Workspace(_)
            | ProjectError::Scan(_) => Self::from_storage(&error),
        }
    }
}

impl From<projector::ViewsError> for ComputerError {
    fn from(error: projector::ViewsError) -> Self {
        Self::from_storage(&error)
    }
}

impl From<isolation::StartError> for ComputerError {
    fn from(error: isolation::StartError) -> Self {
        use isolation::StartError;
        match error {
            StartError::Unprotected(_) => Self::from_error(ErrorCode::Refused, &error),
            StartError::Policy(_) => Self::from_error(ErrorCode::BadRequest, &error),
            StartError::Setup { .. } | StartError::Died => Self::from_error(ErrorCode::Refused, &error),
            StartError::Launcher(_) => Self::from_storage(&error),
        }
    }
}

impl From<isolation::ExecError> for ComputerError {
    fn from(error: isolation::ExecError) -> Self {
        match error {
            isolation::ExecError::NotStarted { .. } => Self::from_error(ErrorCode::BadRequest, &error),
            isolation::ExecError::Gone => Self::from_error(ErrorCode::Failed, &error),
        }
    }
}

impl From<std::io::Error> for ComputerError {
    fn from(error: std::io::Error) -> Self {
        Self::from_storage(&error)
    }
}

/// Any error that reached `main`.
pub fn from_anyhow(error: &anyhow::Error) -> ComputerError {
    if let Some(failure) = error.downcast_ref::<ComputerError>() {
        return failure.clone();
    }
    let mut text = error.to_string();
    for cause in error.chain().skip(1) {
        let more = cause.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
    }
    let code = error.chain().find_map(|cause| disk_code(cause).or_else(|| plain_code(cause)));
    ComputerError::new(code.unwrap_or(ErrorCode::Failed), text)
}

/// The code for a missing file, or for a damaged log.
fn plain_code(cause: &(dyn std::error::Error + 'static)) -> Option<ErrorCode> {
    if let Some(io) = cause.downcast_ref::<std::io::Error>() {
        return (io.kind() == std::io::ErrorKind::NotFound).then_some(ErrorCode::NotFound);
    }
    let broken = cause.downcast_ref::<ReadError>().is_some_and(|e| !matches!(e, ReadError::Storage { .. }));
    broken.then_some(ErrorCode::Damaged)
}
