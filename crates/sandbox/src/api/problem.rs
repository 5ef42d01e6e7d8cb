//! Failures as `application/problem+json`, with codes that stay; `docs/errors.md` explains them.

use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use event_log::EventLog;
use hypervisor::access::{About, Taken, Takes};
use kernel::conflict::State;
use kernel::{Conflict, Subject};
use schemars::{JsonSchema, SchemaGenerator};
use serde::de::DeserializeOwned;
use shared_types::ContentHash;
use shared_types::payload::file::FileNode;
use shared_types::wire::{Clash, Problem};

use crate::desk::Desk;
use crate::failure::{Code, Failure};

/// Text of a side of a conflict that is shown at most.
const SIDE_LIMIT: u64 = 64 * 1024;

/// Why a request was not done.
#[derive(Debug)]
pub struct Refusal(pub Box<Problem>);

impl Refusal {
    pub fn new(status: StatusCode, code: &str, detail: impl Into<String>) -> Self {
        Self(Box::new(Problem {
            kind: format!("https://choir.invalid/errors#{code}"),
            title: status.canonical_reason().unwrap_or("Failed").to_owned(),
            status: status.as_u16(),
            code: code.to_owned(),
            detail: detail.into(),
            conflicts: Vec::new(),
            current: None,
        }))
    }

    /// A write that was based on something else than what is there.
    pub(super) fn stale(detail: String, current: Option<ContentHash>) -> Self {
        let mut refusal = Self::new(StatusCode::CONFLICT, "stale", detail);
        refusal.0.current = current;
        refusal
    }

    /// A failure with the text of both sides of its conflicts.
    pub(super) fn with_sides(desk: &Desk, failure: Failure) -> Self {
        let clashes = failure.conflicts.iter().map(|conflict| clash(&**desk.computer().log(), conflict));
        let clashes = clashes.collect();
        let mut refusal = Self::from(failure);
        refusal.0.conflicts = clashes;
        refusal
    }
}

fn clash(log: &dyn EventLog, conflict: &Conflict) -> Clash {
    let path = match &conflict.subject {
        Subject::File(path) | Subject::Repository(path) => Some(path.clone()),
        Subject::Setting(_) | Subject::Window(_) | Subject::Note(_) => None,
    };
    let text = |state: &State| match state {
        State::Absent => None,
        State::File(FileNode::File { hash, size, .. }) if *size <= SIDE_LIMIT => {
            event_log::read_content(log, hash).ok().and_then(|bytes| String::from_utf8(bytes).ok())
        }
        State::File(FileNode::File { size, .. }) => Some(format!("{size} bytes")),
        State::File(FileNode::Symlink { target }) => Some(format!("a link to {target}")),
        State::File(FileNode::Folder) => Some("a folder".into()),
        State::Several(count) => Some(format!("{count} files")),
        State::Setting(value) => Some(value.to_string()),
        State::Window(window) => Some(window.title.to_string()),
        State::Note(note) => Some(note.title.to_string()),
    };
    Clash {
        subject: conflict.subject.to_string(),
        path,
        reason: conflict.reason.clone(),
        today: text(&conflict.today),
        undone: text(&conflict.undone),
    }
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        let (status, code) = match failure.code {
            Code::Failed => (StatusCode::INTERNAL_SERVER_ERROR, "failed"),
            Code::BadPath => (StatusCode::BAD_REQUEST, "bad_path"),
            Code::BadRequest => (StatusCode::BAD_REQUEST, "bad_request"),
            Code::NoComputer => (StatusCode::NOT_FOUND, "no_computer"),
            Code::NotFound => (StatusCode::NOT_FOUND, "not_found"),
            Code::Conflict => (StatusCode::CONFLICT, "conflict"),
            Code::Refused => (StatusCode::UNPROCESSABLE_ENTITY, "refused"),
            Code::Damaged => (StatusCode::INTERNAL_SERVER_ERROR, "damaged"),
            Code::Busy => (StatusCode::SERVICE_UNAVAILABLE, "busy"),
            Code::StorageFull => (StatusCode::INSUFFICIENT_STORAGE, "storage_full"),
            Code::ReadOnly => (StatusCode::SERVICE_UNAVAILABLE, "read_only"),
        };
        Self::new(status, code, failure.message)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_vec(&self.0).unwrap_or_default();
        let mut response = (status, body).into_response();
        let kind = HeaderValue::from_static("application/problem+json");
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        response
    }
}

/// A JSON body; what is wrong with it is said in our own form.
#[derive(Debug)]
pub struct Body<T>(pub T);

impl<T: JsonSchema> Takes for Body<T> {
    fn describe(about: &mut About) {
        about.body = Taken::Json(SchemaGenerator::subschema_for::<T>);
    }
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, state: &S) -> Result<Self, Refusal> {
        match axum::Json::from_request(request, state).await {
            Ok(axum::Json(value)) => Ok(Self(value)),
            Err(e) => {
                let code = match e.status() {
                    StatusCode::PAYLOAD_TOO_LARGE => "too_large",
                    StatusCode::UNSUPPORTED_MEDIA_TYPE => "not_json",
                    _ => "bad_request",
                };
                Err(Refusal::new(e.status(), code, e.body_text()))
            }
        }
    }
}

/// Query parameters, likewise.
#[derive(Debug)]
pub struct Params<T>(pub T);

impl<T: JsonSchema> Takes for Params<T> {
    fn describe(about: &mut About) {
        about.query = Some(SchemaGenerator::subschema_for::<T>);
    }
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Params<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let read = axum::extract::Query::<T>::from_request_parts(parts, state).await;
        read.map(|query| Self(query.0))
            .map_err(|e: QueryRejection| Refusal::new(StatusCode::BAD_REQUEST, "bad_request", e.body_text()))
    }
}

/// A part of the path, likewise.
#[derive(Debug)]
pub struct Named<T>(pub T);

impl<T: JsonSchema> Takes for Named<T> {
    fn describe(about: &mut About) {
        about.path = Some(SchemaGenerator::subschema_for::<T>);
    }
}

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Named<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let read = axum::extract::Path::<T>::from_request_parts(parts, state).await;
        read.map(|path| Self(path.0))
            .map_err(|e: PathRejection| Refusal::new(StatusCode::BAD_REQUEST, "bad_request", e.body_text()))
    }
}
