//! A user's own account: sessions, recovery codes, tokens, the audit trail.

use std::sync::Arc;

use axum::extract::Path;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, HeaderName};
use axum::{Extension, Json as Answer};
use shared_types::wire::{ApiToken, AuditLine, NewToken, RecoveryCodes, Session};

use crate::access::Principal;
use crate::body::Json;
use crate::identity::ClientInfo;
use crate::problem::ApiError;
use crate::server_state::ServerState;

/// For responses that contain a secret.
const NO_STORE: [(HeaderName, &str); 1] = [(CACHE_CONTROL, "no-store")];

pub(super) async fn sessions(
    Extension(state): Extension<Arc<ServerState>>,
    principal: Principal,
) -> Result<Answer<Vec<Session>>, ApiError> {
    let session = principal.require_session()?;
    Ok(Answer(state.identity.sessions(&session.user.id, Some(&session.id))?))
}

pub(super) async fn revoke_session(
    Extension(state): Extension<Arc<ServerState>>,
    principal: Principal,
    client: ClientInfo,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    state.identity.revoke_session(&principal.user, &id, &client)?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn make_recovery_codes(
    Extension(state): Extension<Arc<ServerState>>,
    principal: Principal,
    client: ClientInfo,
) -> Result<([(HeaderName, &'static str); 1], Answer<RecoveryCodes>), ApiError> {
    let _permit = state.hashing.try_acquire().map_err(|_| ApiError::too_many(1))?;
    let identity = state.identity.clone();
    let make_codes = move || identity.make_recovery_codes(&principal.user, &client);
    let codes = tokio::task::spawn_blocking(make_codes).await.map_err(|_| ApiError::internal())??;
    Ok((NO_STORE, Answer(RecoveryCodes { codes })))
}

pub(super) async fn tokens(
    Extension(state): Extension<Arc<ServerState>>,
    principal: Principal,
) -> Result<Answer<Vec<ApiToken>>, ApiError> {
    Ok(Answer(state.identity.tokens(&principal.user)?))
}

pub(super) async fn make_token(
    Extension(state): Extension<Arc<ServerState>>,
    principal: Principal,
    client: ClientInfo,
    Json(new_token): Json<NewToken>,
) -> Result<([(HeaderName, &'static str); 1], Answer<ApiToken>), ApiError> {
    Ok((NO_STORE, Answer(state.identity.make_token(&principal.user, &new_token, &client)?)))
}

pub(super) async fn revoke_token(
    Extension(state): Extension<Arc<ServerState>>,
    principal: Principal,
    client: ClientInfo,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    state.identity.revoke_token(&principal.user, &id, &client)?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn audit(
    Extension(state): Extension<Arc<ServerState>>,
    principal: Principal,
) -> Result<Answer<Vec<AuditLine>>, ApiError> {
    Ok(Answer(state.identity.audit(&principal.as_user())?))
}
