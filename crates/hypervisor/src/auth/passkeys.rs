//! Passkeys: adding one needs a session of the account it is added to, always; signing in with one needs nothing.

use std::sync::Arc;

use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::Response;
use axum::{Extension, Json as Answer};
use serde::Deserialize;
use shared_types::wire::Passkey;
use webauthn_rs::prelude::{PublicKeyCredential, RegisterPublicKeyCredential};

use super::entering::{Before, enter};
use crate::access::Principal;
use crate::body::Json;
use crate::ceremonies::Begun;
use crate::front::Front;
use crate::identity::Caller;
use crate::problem::Refusal;

/// A body of `POST /auth/passkeys/register/start`.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Named {
    #[schemars(length(min = 1, max = 100))]
    name: String,
}

/// A body of `POST /auth/passkeys/login/start`: nothing yet.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}

/// The second half of a ceremony, with what the authenticator said.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Finish<T> {
    ceremony: String,
    /// As the browser's `navigator.credentials` gives it, in its JSON form.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    credential: T,
}

pub(super) async fn list(
    Extension(front): Extension<Arc<Front>>,
    principal: Principal,
) -> Result<Answer<Vec<Passkey>>, Refusal> {
    Ok(Answer(front.identity.passkeys(&principal.user)?))
}

pub(super) async fn remove(
    Extension(front): Extension<Arc<Front>>,
    principal: Principal,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, Refusal> {
    front.identity.remove_passkey(&principal.user, &id, &caller)?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn register_start(
    Extension(front): Extension<Arc<Front>>,
    principal: Principal,
    Json(body): Json<Named>,
) -> Result<Answer<Begun>, Refusal> {
    let holder = principal.holder()?;
    Ok(Answer(front.passkeys.start_registration(&front.identity, &holder, &body.name)?))
}

pub(super) async fn register_finish(
    Extension(front): Extension<Arc<Front>>,
    principal: Principal,
    caller: Caller,
    Json(body): Json<Finish<RegisterPublicKeyCredential>>,
) -> Result<Answer<Passkey>, Refusal> {
    let holder = principal.holder()?;
    let Finish { ceremony, credential } = body;
    let added =
        front.passkeys.finish_registration(&front.identity, &holder, &ceremony, &credential, &caller)?;
    Ok(Answer(added))
}

pub(super) async fn login_start(
    Extension(front): Extension<Arc<Front>>,
    Json(Nothing {}): Json<Nothing>,
) -> Result<Answer<Begun>, Refusal> {
    Ok(Answer(front.passkeys.start_login(&front.identity)?))
}

pub(super) async fn login_finish(
    Extension(front): Extension<Arc<Front>>,
    before: Before,
    caller: Caller,
    Json(body): Json<Finish<PublicKeyCredential>>,
) -> Result<Response, Refusal> {
    let session = front.passkeys.finish_login(&front.identity, &body.ceremony, &body.credential, &caller)?;
    Ok(enter(&front, &session, before, &caller))
}
