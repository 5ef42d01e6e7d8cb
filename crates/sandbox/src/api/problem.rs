//! Errors as `application/problem+json`, with stable codes; `docs/errors.md` explains them.

use axum::extract::FromRequestParts;
use std::error::Error;

use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use event_log::EventLog;
use http_body_util::LengthLimitError;
use hypervisor::access::{DescribedExtractor, RouteDescription};
pub(super) use hypervisor::body::Json as Body;
use hypervisor::problem::ApiError;
use kernel::Conflict;
use kernel::ConflictSide;
use schemars::{JsonSchema, SchemaGenerator};
use serde::de::DeserializeOwned;
use shared_types::ContentHash;
use shared_types::payload::file::FileNode;
use shared_types::wire::ConflictView;

use crate::open_computer::OpenComputer;
use computer::error::{ComputerError, ErrorCode};

/// The largest side of a conflict that is shown as text.
const SIDE_LIMIT: u64 = 64 * 1024;

/// The error response of a route.
#[derive(Debug, Clone)]
pub struct RouteError(pub ApiError);

impl RouteError {
    pub(super) fn new(status: StatusCode, code: &str, detail: impl Into<String>) -> Self {
        Self(ApiError::new(status, code, detail))
    }

    pub(super) fn too_large(detail: &str) -> Self {
        Self(ApiError::too_large(detail))
    }

    #[cfg(test)]
    fn code(&self) -> &str {
        self.0.code()
    }
}

impl From<ApiError> for RouteError {
    fn from(refusal: ApiError) -> Self {
        Self(refusal)
    }
}

impl IntoResponse for RouteError {
    fn into_response(self) -> Response {
        self.0.into_response()
    }
}

/// A write whose base is not the current content.
pub(super) fn stale(detail: String, current: Option<ContentHash>) -> RouteError {
    let mut refusal = RouteError::new(StatusCode::CONFLICT, "stale", detail);
    refusal.0.problem.current = current;
    refusal
}

/// An error with the text of both sides of its conflicts.
pub(super) fn with_conflicts(open_computer: &OpenComputer, failure: ComputerError) -> RouteError {
    let conflicts =
        failure.conflicts.iter().map(|conflict| conflict_view(&**open_computer.computer().log(), conflict));
    let conflicts = conflicts.collect();
    let mut refusal = RouteError::from(failure);
    refusal.0.problem.conflicts = conflicts;
    refusal
}

/// A request body that could not be read completely.
pub(super) fn broken_body(error: axum::Error) -> RouteError {
    let mut causes = std::iter::successors(Some(&error as &dyn Error), |error| (**error).source());
    if causes.any(|error| error.is::<LengthLimitError>()) {
        RouteError::too_large("The body is over the limit of this route. Nothing was changed.")
    } else {
        RouteError::new(StatusCode::BAD_REQUEST, "bad_request", format!("The body did not arrive: {error}"))
    }
}

fn conflict_view(log: &dyn EventLog, conflict: &Conflict) -> ConflictView {
    let text = |state: &ConflictSide| match state {
        ConflictSide::Absent => None,
        ConflictSide::File(FileNode::File { hash, size, .. }) if *size <= SIDE_LIMIT => {
            event_log::read_content(log, hash).ok().and_then(|bytes| String::from_utf8(bytes).ok())
        }
        ConflictSide::File(FileNode::File { size, .. }) => Some(format!("{size} bytes")),
        ConflictSide::File(FileNode::Symlink { target }) => Some(format!("a link to {target}")),
        ConflictSide::File(FileNode::Folder) => Some("a folder".into()),
        ConflictSide::Several(count) => Some(format!("{count} files")),
        ConflictSide::Setting(value) => Some(value.to_string()),
        ConflictSide::Window(window) => Some(window.title.to_string()),
        ConflictSide::Note(note) => Some(note.title.to_string()),
    };
    ConflictView {
        subject: conflict.subject.clone(),
        reason: conflict.reason.clone(),
        today: text(&conflict.today),
        undone: text(&conflict.undone),
    }
}

impl From<ComputerError> for RouteError {
    fn from(failure: ComputerError) -> Self {
        let (status, code) = match failure.code {
            ErrorCode::Failed => (StatusCode::INTERNAL_SERVER_ERROR, "failed"),
            ErrorCode::BadPath => (StatusCode::BAD_REQUEST, "bad_path"),
            ErrorCode::BadRequest => (StatusCode::BAD_REQUEST, "bad_request"),
            ErrorCode::NoComputer => (StatusCode::NOT_FOUND, "no_computer"),
            ErrorCode::NotFound => (StatusCode::NOT_FOUND, "not_found"),
            ErrorCode::Conflict => (StatusCode::CONFLICT, "conflict"),
            ErrorCode::Refused => (StatusCode::UNPROCESSABLE_ENTITY, "refused"),
            ErrorCode::Damaged => (StatusCode::INTERNAL_SERVER_ERROR, "damaged"),
            ErrorCode::Busy => (StatusCode::SERVICE_UNAVAILABLE, "busy"),
            ErrorCode::StorageFull => (StatusCode::INSUFFICIENT_STORAGE, "storage_full"),
            ErrorCode::ReadOnly => (StatusCode::SERVICE_UNAVAILABLE, "read_only"),
            ErrorCode::NoRun => (StatusCode::NOT_FOUND, "no_run"),
            ErrorCode::RunTaken => (StatusCode::CONFLICT, "run_taken"),
            ErrorCode::RunIsOver => (StatusCode::CONFLICT, "run_is_over"),
            ErrorCode::RunIsPaused => (StatusCode::CONFLICT, "run_is_paused"),
            ErrorCode::RunIsBusy => (StatusCode::CONFLICT, "run_is_busy"),
            ErrorCode::NoTask => (StatusCode::NOT_FOUND, "no_task"),
            ErrorCode::TaskTaken => (StatusCode::CONFLICT, "task_taken"),
            ErrorCode::TaskIsOver => (StatusCode::CONFLICT, "task_is_over"),
            ErrorCode::TaskIsBusy => (StatusCode::CONFLICT, "task_is_busy"),
            ErrorCode::NoQuestion => (StatusCode::NOT_FOUND, "no_question"),
            ErrorCode::NoGrant => (StatusCode::NOT_FOUND, "no_grant"),
        };
        Self::new(status, code, failure.message)
    }
}

/// Query parameters. Invalid ones are answered in our error format.
#[derive(Debug)]
pub struct Params<T>(pub T);

impl<T: JsonSchema> DescribedExtractor for Params<T> {
    fn describe(description: &mut RouteDescription) {
        description.query = Some(SchemaGenerator::subschema_for::<T>);
    }
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Params<T> {
    type Rejection = RouteError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, RouteError> {
        let read = axum::extract::Query::<T>::from_request_parts(parts, state).await;
        read.map(|query| Self(query.0)).map_err(|e: QueryRejection| {
            RouteError::new(StatusCode::BAD_REQUEST, "bad_request", e.body_text())
        })
    }
}

/// A path parameter, with the same errors.
#[derive(Debug)]
pub struct PathParam<T>(pub T);

impl<T: JsonSchema> DescribedExtractor for PathParam<T> {
    fn describe(description: &mut RouteDescription) {
        description.path = Some(SchemaGenerator::subschema_for::<T>);
    }
}

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for PathParam<T> {
    type Rejection = RouteError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, RouteError> {
        let read = axum::extract::Path::<T>::from_request_parts(parts, state).await;
        read.map(|path| Self(path.0)).map_err(|e: PathRejection| {
            RouteError::new(StatusCode::BAD_REQUEST, "bad_request", e.body_text())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_body_over_its_limit_is_told_from_one_that_broke_off() {
        let long = axum::body::Body::new(http_body_util::Limited::new(axum::body::Body::from("too long"), 3));
        let error = axum::body::to_bytes(long, usize::MAX).await.unwrap_err();
        assert_eq!(broken_body(error).code(), "too_large");
        assert_eq!(broken_body(axum::Error::new(std::io::Error::other("gone"))).code(), "bad_request");
    }
}
