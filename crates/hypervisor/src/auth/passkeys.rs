//! Passkey routes. Registering a passkey needs a session of the same account; signing in with one needs nothing.

use std::sync::Arc;

use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::Response;
use axum::{Extension, Json as Answer};
use serde::Deserialize;
use shared_types::wire::{CeremonyStart, FinishCeremony, NewPasskey, Passkey};
use webauthn_rs::prelude::{PublicKeyCredential, RegisterPublicKeyCredential};

use super::sign_in::{PreviousPrincipal, start_session};
use crate::access::Principal;
use crate::body::Json;
use crate::identity::ClientInfo;
use crate::problem::ApiError;
use crate::server_state::ServerState;

/// The body of `POST /auth/passkeys/login/start`, an empty object.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StartLogin {}

pub(super) async fn list(
    Extension(state): Extension<Arc<ServerState>>,
    principal: Principal,
) -> Result<Answer<Vec<Passkey>>, ApiError> {
    Ok(Answer(state.identity.passkeys(&principal.user)?))
}

pub(super) async fn remove(
    Extension(state): Extension<Arc<ServerState>>,
    principal: Principal,
    client: ClientInfo,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    state.identity.remove_passkey(&principal.user, &id, &client)?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn register_start(
    Extension(state): Extension<Arc<ServerState>>,
    principal: Principal,
    Json(body): Json<NewPasskey>,
) -> Result<Answer<CeremonyStart>, ApiError> {
    let session = principal.require_session()?;
    Ok(Answer(state.passkeys.start_registration(&state.identity, &session, &body.name)?))
}

pub(super) async fn register_finish(
    Extension(state): Extension<Arc<ServerState>>,
    principal: Principal,
    client: ClientInfo,
    Json(body): Json<FinishCeremony<RegisterPublicKeyCredential>>,
) -> Result<Answer<Passkey>, ApiError> {
    let session = principal.require_session()?;
    let FinishCeremony { ceremony, credential } = body;
    let added =
        state.passkeys.finish_registration(&state.identity, &session, &ceremony, &credential, &client)?;
    Ok(Answer(added))
}

pub(super) async fn login_start(
    Extension(state): Extension<Arc<ServerState>>,
    Json(StartLogin {}): Json<StartLogin>,
) -> Result<Answer<CeremonyStart>, ApiError> {
    Ok(Answer(state.passkeys.start_login(&state.identity)?))
}

pub(super) async fn login_finish(
    Extension(state): Extension<Arc<ServerState>>,
    previous: PreviousPrincipal,
    client: ClientInfo,
    Json(body): Json<FinishCeremony<PublicKeyCredential>>,
) -> Result<Response, ApiError> {
    let session = state.passkeys.finish_login(&state.identity, &body.ceremony, &body.credential, &client)?;
    Ok(start_session(&state, &session, previous, &client))
}
