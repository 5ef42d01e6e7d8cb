//! What a session records about the client of a request.

use axum::extract::FromRequestParts;
use axum::http::header::USER_AGENT;
use axum::http::request::Parts;

use super::DescribedExtractor;
use crate::client_address::ClientAddress;
use crate::identity::ClientInfo;
use crate::problem::ApiError;

const MAX_USER_AGENT_CHARS: usize = 200;

impl DescribedExtractor for ClientInfo {}

impl<S: Send + Sync> FromRequestParts<S> for ClientInfo {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let address = parts.extensions.get::<ClientAddress>().copied().unwrap_or_default();
        let browser = parts.headers.get(USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
        Ok(Self {
            address: address.to_string(),
            browser: browser.chars().take(MAX_USER_AGENT_CHARS).collect(),
        })
    }
}
