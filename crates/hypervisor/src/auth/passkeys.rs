//! Passkeys: adding one needs a session of the account it is added to, always; signing in with one needs nothing.

use std::sync::Arc;

use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::Response;
use axum::{Extension, Json as Answer};
use serde::Deserialize;
use shared_types::wire::{Begun, Finish, NewPasskey, Passkey};
use webauthn_rs::prelude::{PublicKeyCredential, RegisterPublicKeyCredential};

use super::entering::{Before, enter};
use crate::access::Principal;
use crate::body::Json;
use crate::front::Front;
use crate::identity::Caller;
use crate::problem::Refusal;

/// A body of `POST /auth/passkeys/login/start`: nothing yet.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}

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
    Json(body): Json<NewPasskey>,
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
