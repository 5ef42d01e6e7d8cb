//! Extractors for JSON bodies and query parameters whose errors are `application/problem+json`.

use axum::body::Bytes;
use axum::extract::rejection::JsonRejection;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use schemars::{JsonSchema, SchemaGenerator};
use serde::de::DeserializeOwned;
use zeroize::Zeroize;

use crate::access::{BodyKind, DescribedExtractor, RouteDescription};
use crate::problem::ApiError;

/// A JSON body.
#[derive(Debug)]
pub struct Json<T>(pub T);

impl<T: JsonSchema> DescribedExtractor for Json<T> {
    fn describe(description: &mut RouteDescription) {
        description.body = BodyKind::Json(SchemaGenerator::subschema_for::<T>);
    }
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Json<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        match axum::Json::from_request(request, state).await {
            Ok(axum::Json(value)) => Ok(Self(value)),
            Err(rejection) => Err(json_error(&rejection)),
        }
    }
}

fn json_error(rejection: &JsonRejection) -> ApiError {
    let status = rejection.status();
    let code = match status {
        StatusCode::PAYLOAD_TOO_LARGE => "too_large",
        StatusCode::UNSUPPORTED_MEDIA_TYPE => "not_json",
        StatusCode::BAD_REQUEST => "bad_request",
        _ => "invalid",
    };
    ApiError::new(status, code, rejection.body_text())
}

/// A JSON body that contains a secret. Errors never quote it, here or in a log, and its bytes are wiped after parsing.
#[derive(Debug)]
pub struct Confidential<T>(pub T);

impl<T: JsonSchema> DescribedExtractor for Confidential<T> {
    fn describe(description: &mut RouteDescription) {
        description.body = BodyKind::Json(SchemaGenerator::subschema_for::<T>);
    }
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Confidential<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let kind =
            request.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        if !kind.eq_ignore_ascii_case("application/json") {
            let detail = "The body must be sent with content-type: application/json.";
            return Err(ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "not_json", detail));
        }
        let bytes = match Bytes::from_request(request, state).await {
            Ok(bytes) => bytes,
            Err(rejection) if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE => {
                return Err(ApiError::too_large(
                    "The body exceeds the size limit of this route. Nothing was changed.",
                ));
            }
            Err(_) => {
                let detail = "The body did not arrive completely. Nothing was changed.";
                return Err(ApiError::new(StatusCode::BAD_REQUEST, "bad_request", detail));
            }
        };
        let parsed = serde_json::from_slice(&bytes);
        // If the connection still shares the buffer, the bytes are freed with the connection instead.
        if let Ok(mut bytes) = bytes.try_into_mut() {
            bytes.as_mut().zeroize();
        }
        // Serde's messages quote the input, so they are not used.
        parsed.map(Self).map_err(|error| {
            if error.is_data() {
                return ApiError::invalid(
                    "The body is JSON, but does not match what this route expects. Nothing was changed.",
                );
            }
            let detail = "The body is not JSON. Nothing was changed.";
            ApiError::new(StatusCode::BAD_REQUEST, "bad_request", detail)
        })
    }
}

/// Query parameters.
#[derive(Debug)]
pub struct Params<T>(pub T);

impl<T: JsonSchema> DescribedExtractor for Params<T> {
    fn describe(description: &mut RouteDescription) {
        description.query = Some(SchemaGenerator::subschema_for::<T>);
    }
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Params<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        match axum::extract::Query::from_request_parts(parts, state).await {
            Ok(axum::extract::Query(value)) => Ok(Self(value)),
            Err(rejection) => {
                Err(ApiError::new(StatusCode::BAD_REQUEST, "bad_request", rejection.body_text()))
            }
        }
    }
}
