//! What comes with a request: bodies that are JSON, parameters, and what is said about those that are not right.

use axum::body::Bytes;
use axum::extract::rejection::JsonRejection;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use schemars::{JsonSchema, SchemaGenerator};
use serde::de::DeserializeOwned;
use zeroize::Zeroize;

use crate::access::{About, Taken, Takes};
use crate::problem::Refusal;

/// A JSON body, or a problem that says what is wrong with it.
#[derive(Debug)]
pub struct Json<T>(pub T);

impl<T: JsonSchema> Takes for Json<T> {
    fn describe(about: &mut About) {
        about.body = Taken::Json(SchemaGenerator::subschema_for::<T>);
    }
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Json<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, state: &S) -> Result<Self, Refusal> {
        match axum::Json::from_request(request, state).await {
            Ok(axum::Json(value)) => Ok(Self(value)),
            Err(rejection) => Err(refusal(&rejection)),
        }
    }
}

fn refusal(rejection: &JsonRejection) -> Refusal {
    let status = rejection.status();
    let code = match status {
        StatusCode::PAYLOAD_TOO_LARGE => "too_large",
        StatusCode::UNSUPPORTED_MEDIA_TYPE => "not_json",
        StatusCode::BAD_REQUEST => "bad_request",
        _ => "invalid",
    };
    Refusal::new(status, code, rejection.body_text())
}

/// A JSON body with a secret in it. What is wrong with it is said without a word of it, here and in every log, and
/// its bytes are wiped when they have been read.
#[derive(Debug)]
pub struct Confidential<T>(pub T);

impl<T: JsonSchema> Takes for Confidential<T> {
    fn describe(about: &mut About) {
        about.body = Taken::Json(SchemaGenerator::subschema_for::<T>);
    }
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Confidential<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, state: &S) -> Result<Self, Refusal> {
        let kind =
            request.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        if !kind.eq_ignore_ascii_case("application/json") {
            let detail = "The body must be sent with content-type: application/json.";
            return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "not_json", detail));
        }
        let bytes = match Bytes::from_request(request, state).await {
            Ok(bytes) => bytes,
            Err(rejection) if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE => {
                return Err(Refusal::too_large(
                    "The body is over the limit of this route. Nothing was changed.",
                ));
            }
            Err(_) => {
                let detail = "The body did not arrive as a whole. Nothing was changed.";
                return Err(Refusal::new(StatusCode::BAD_REQUEST, "bad_request", detail));
            }
        };
        let read = serde_json::from_slice(&bytes);
        // Where the connection still holds a part of them, they go with it.
        if let Ok(mut bytes) = bytes.try_into_mut() {
            bytes.as_mut().zeroize();
        }
        // Serde's own words quote what it read.
        read.map(Self).map_err(|error| {
            if error.is_data() {
                return Refusal::invalid(
                    "The body is JSON, but not what this route takes. Nothing was changed.",
                );
            }
            let detail = "The body is not JSON. Nothing was changed.";
            Refusal::new(StatusCode::BAD_REQUEST, "bad_request", detail)
        })
    }
}

/// Parameters after the `?`, or a problem that says what is wrong with them.
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
        match axum::extract::Query::from_request_parts(parts, state).await {
            Ok(axum::extract::Query(value)) => Ok(Self(value)),
            Err(rejection) => {
                Err(Refusal::new(StatusCode::BAD_REQUEST, "bad_request", rejection.body_text()))
            }
        }
    }
}
