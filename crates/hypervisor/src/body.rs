//! Bodies that are JSON, and what is said about those that are not.

use axum::extract::rejection::JsonRejection;
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use schemars::{JsonSchema, SchemaGenerator};
use serde::de::DeserializeOwned;

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
