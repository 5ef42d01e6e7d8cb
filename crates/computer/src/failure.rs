//! What the person is told when something does not work: a stable code, a sentence that says what to do, an exit
//! code. The same value travels over the socket.

use event_log::writer::SubmitError;
use event_log::{AppendError, ContentError, OpenError, ReadError};
use kernel::{Conflict, Rejection};
use projector::ProjectError;
use projector::workspace::DiskError;
use serde::{Deserialize, Serialize};

/// Stable codes; `choir --help` lists the exit codes they map to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Code {
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

impl Code {
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
pub struct Failure {
    pub code: Code,
    pub message: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<Conflict>,
}

impl Failure {
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), conflicts: Vec::new() }
    }

    fn of(code: Code, error: &(dyn std::error::Error + 'static)) -> Self {
        Self::new(code, chain(error))
    }

    /// A failure of the storage underneath: what the disk said decides the code.
    fn of_storage(error: &(dyn std::error::Error + 'static)) -> Self {
        let code = std::iter::successors(Some(error), |error| error.source()).find_map(disk_code);
        let mut failure = Self::of(code.unwrap_or(Code::Failed), error);
        let plain = match code {
            Some(Code::ReadOnly) => "the disk is read-only",
            Some(Code::StorageFull) => "the disk is full",
            Some(_) | None => return failure,
        };
        if !failure.message.contains(plain) {
            failure.message = format!("{plain}: {}", failure.message);
        }
        failure
    }
}

/// What the disk said, if this is its own voice.
fn disk_code(error: &(dyn std::error::Error + 'static)) -> Option<Code> {
    use rusqlite::{Error, ErrorCode};
    use std::io::ErrorKind;
    match error.downcast_ref::<DiskError>() {
        Some(DiskError::Full { .. }) => return Some(Code::StorageFull),
        Some(DiskError::ReadOnly { .. }) => return Some(Code::ReadOnly),
        Some(_) | None => {}
    }
    let (full, read_only) = if let Some(io) = error.downcast_ref::<std::io::Error>() {
        let full = [ErrorKind::StorageFull, ErrorKind::QuotaExceeded].contains(&io.kind());
        (full, io.kind() == ErrorKind::ReadOnlyFilesystem)
    } else {
        let shared = error.downcast_ref::<std::sync::Arc<Error>>().map(|shared| &**shared);
        let sqlite = shared.or_else(|| error.downcast_ref::<Error>())?.sqlite_error()?;
        // Where not even the index of the write-ahead log finds room, SQLite speaks of input and output.
        let no_room = sqlite.extended_code == rusqlite::ffi::SQLITE_IOERR_SHMSIZE;
        (no_room || sqlite.code == ErrorCode::DiskFull, sqlite.code == ErrorCode::ReadOnly)
    };
    if full { Some(Code::StorageFull) } else { read_only.then_some(Code::ReadOnly) }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

/// An error with all its causes, each said once.
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

impl From<Rejection> for Failure {
    fn from(rejection: Rejection) -> Self {
        let code = match &rejection {
            Rejection::NotFound { .. }
            | Rejection::NoOperation { .. }
            | Rejection::NoWindow { .. }
            | Rejection::NoSetting { .. }
            | Rejection::NoSuchCall { .. }
            | Rejection::NotYet { .. } => Code::NotFound,
            Rejection::Conflicts { .. } | Rejection::Stale { .. } | Rejection::Taken { .. } => Code::Conflict,
            Rejection::BadPath { .. } | Rejection::LinkLeaves { .. } => Code::BadPath,
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
            | Rejection::Missing { .. } => Code::Refused,
            Rejection::NoRun { .. } => Code::NoRun,
            Rejection::RunTaken { .. } => Code::RunTaken,
            Rejection::RunIsOver { .. } => Code::RunIsOver,
            Rejection::RunIsPaused { .. } => Code::RunIsPaused,
            Rejection::RunIsBusy { .. } => Code::RunIsBusy,
            Rejection::NoTask { .. } => Code::NoTask,
            Rejection::TaskTaken { .. } => Code::TaskTaken,
            Rejection::TaskIsOver { .. } => Code::TaskIsOver,
            Rejection::TaskIsBusy { .. } | Rejection::NotHeard { .. } => Code::TaskIsBusy,
            Rejection::NoAsk { .. } => Code::NoQuestion,
            Rejection::NoGrant { .. } => Code::NoGrant,
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

impl From<SubmitError> for Failure {
    fn from(error: SubmitError) -> Self {
        match error {
            SubmitError::Rejected(rejection) => rejection.into(),
            SubmitError::Append(e) => e.into(),
            SubmitError::Read(e) => e.into(),
            SubmitError::Content(e) => e.into(),
            SubmitError::NoContent(_) => Self::of(Code::Refused, &error),
            SubmitError::Stopped(_) => Self::of(Code::Failed, &error),
        }
    }
}

impl From<AppendError> for Failure {
    fn from(error: AppendError) -> Self {
        Self::of_storage(&error)
    }
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        if matches!(error, ReadError::Storage { .. }) {
            return Self::of_storage(&error);
        }
        Self::of(Code::Damaged, &error)
    }
}

impl From<ContentError> for Failure {
    fn from(error: ContentError) -> Self {
        let code = match &error {
            ContentError::Missing(_) | ContentError::Purged(_) => Code::NotFound,
            ContentError::Damaged(_) => Code::Damaged,
            ContentError::Storage(_) => return Self::of_storage(&error),
        };
        Self::of(code, &error)
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        let code = match &error {
            OpenError::Missing(_) => Code::NoComputer,
            OpenError::Exists(_) | OpenError::TooNew { .. } | OpenError::User(_) => Code::Refused,
            OpenError::Locked { .. } => Code::Busy,
            OpenError::Damaged(_) => Code::Damaged,
            OpenError::Storage(_) | OpenError::Read(ReadError::Storage { .. }) => {
                return Self::of_storage(&error);
            }
            OpenError::Read(_) => Code::Damaged,
        };
        Self::of(code, &error)
    }
}

impl From<ProjectError> for Failure {
    fn from(error: ProjectError) -> Self {
        match error {
            ProjectError::Submit(e) => e.into(),
            ProjectError::Log(e) => e.into(),
            ProjectError::Content(e) => e.into(),
            ProjectError::Views(_)
            | ProjectError::Disk(_)
            | ProjectError::Workspace(_)
            | ProjectError::Scan(_) => Self::of_storage(&error),
        }
    }
}

impl From<projector::ViewsError> for Failure {
    fn from(error: projector::ViewsError) -> Self {
        Self::of_storage(&error)
    }
}

impl From<isolation::StartError> for Failure {
    fn from(error: isolation::StartError) -> Self {
        use isolation::StartError;
        match error {
            StartError::Unprotected(_) => Self::of(Code::Refused, &error),
            StartError::Policy(_) => Self::of(Code::BadRequest, &error),
            StartError::Setup { .. } | StartError::Died => Self::of(Code::Refused, &error),
            StartError::Launcher(_) => Self::of_storage(&error),
        }
    }
}

impl From<isolation::ExecError> for Failure {
    fn from(error: isolation::ExecError) -> Self {
        match error {
            isolation::ExecError::NotStarted { .. } => Self::of(Code::BadRequest, &error),
            isolation::ExecError::Gone => Self::of(Code::Failed, &error),
        }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::of_storage(&error)
    }
}

/// Whatever reached `main`, as a failure.
pub fn of_anyhow(error: &anyhow::Error) -> Failure {
    if let Some(failure) = error.downcast_ref::<Failure>() {
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
    Failure::new(code.unwrap_or(Code::Failed), text)
}

/// A file that the person named and that is not there, or a log that does not hold together.
fn plain_code(cause: &(dyn std::error::Error + 'static)) -> Option<Code> {
    if let Some(io) = cause.downcast_ref::<std::io::Error>() {
        return (io.kind() == std::io::ErrorKind::NotFound).then_some(Code::NotFound);
    }
    let broken = cause.downcast_ref::<ReadError>().is_some_and(|e| !matches!(e, ReadError::Storage { .. }));
    broken.then_some(Code::Damaged)
}
