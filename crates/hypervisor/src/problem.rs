//! HTTP errors as `application/problem+json`, with stable codes. `docs/errors.md` lists them.

use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use shared_types::wire::Problem;

use crate::identity::IdentityError;

pub(crate) const MEDIA_TYPE: &str = "application/problem+json";

/// An HTTP error response.
#[derive(Debug, Clone)]
pub struct ApiError {
    pub problem: Box<Problem>,
    /// The `Retry-After` header, in seconds.
    retry_after: Option<u64>,
}

impl ApiError {
    pub fn new(status: StatusCode, code: &str, detail: impl Into<String>) -> Self {
        let problem = Problem {
            kind: format!("https://choir.invalid/errors#{code}"),
            title: status.canonical_reason().unwrap_or("Error").to_owned(),
            status: status.as_u16(),
            code: code.to_owned(),
            detail: detail.into(),
            conflicts: Vec::new(),
            current: None,
        };
        Self { problem: Box::new(problem), retry_after: None }
    }

    pub fn signed_out() -> Self {
        let detail = "You are not signed in, or the session has expired. Sign in and try again.";
        Self::new(StatusCode::UNAUTHORIZED, "signed_out", detail)
    }

    pub fn forbidden(detail: &str) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", detail)
    }

    pub fn wrong_scope(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "wrong_scope", detail)
    }

    pub fn wrong_origin() -> Self {
        let detail = "The request comes from a page of another site. Nothing was changed.";
        Self::new(StatusCode::FORBIDDEN, "wrong_origin", detail)
    }

    pub fn not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", "There is nothing at this address.")
    }

    pub fn method_not_allowed() -> Self {
        let detail = "This address does not support this method.";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", detail)
    }

    pub fn invalid(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", detail)
    }

    pub fn too_many(seconds: u64) -> Self {
        let detail = format!("Too many requests in a short time. Try again in {seconds} s.");
        let error = Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many", detail);
        Self { retry_after: Some(seconds), ..error }
    }

    pub fn too_large(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", detail)
    }

    pub fn internal() -> Self {
        let detail = "The server failed to do this. Its log says why; nothing was changed.";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", detail)
    }

    pub fn code(&self) -> &str {
        &self.problem.code
    }
}

impl From<IdentityError> for ApiError {
    fn from(error: IdentityError) -> Self {
        match &error {
            IdentityError::SignInRefused => {
                Self::new(StatusCode::UNAUTHORIZED, "refused", format!("Not signed in: {error}."))
            }
            IdentityError::Missing(_) => {
                Self::new(StatusCode::NOT_FOUND, "not_found", format!("Nothing was changed: {error}."))
            }
            IdentityError::Invalid(_) => Self::invalid(format!("Nothing was changed: {error}.")),
            IdentityError::LimitReached { .. } => {
                Self::new(StatusCode::CONFLICT, "full", format!("Nothing was changed: {error}."))
            }
            IdentityError::PasskeyExists => {
                Self::new(StatusCode::CONFLICT, "known_passkey", format!("Nothing was changed: {error}."))
            }
            IdentityError::Randomness(_) | IdentityError::Store(_) | IdentityError::Corrupt(_) => {
                tracing::error!(error = &error as &dyn std::error::Error, "identity store");
                Self::internal()
            }
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, axum::Json(self.problem)).into_response();
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}
