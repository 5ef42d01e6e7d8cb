//! Signing in with a link, an invitation or a recovery code, and signing out.

use std::sync::Arc;

use axum::Extension;
use axum::http::StatusCode;
use axum::http::header::SET_COOKIE;
use axum::response::{IntoResponse, Response};
use shared_types::wire::{RecoveryLogin, SignInLink};

use crate::access::Principal;
use crate::body::Json;
use crate::identity::{ClientInfo, NewSession};
use crate::problem::ApiError;
use crate::server_state::ServerState;

/// The principal of the session cookie that the browser already had, if any.
pub(super) type PreviousPrincipal = Option<Extension<Principal>>;

/// Sets the cookie of a new session. The browser's previous session loses its cookie, so it is ended.
pub(super) fn start_session(
    state: &ServerState,
    session: &NewSession,
    previous: PreviousPrincipal,
    client: &ClientInfo,
) -> Response {
    state.metrics.signed_in.add();
    if let Some(Ok(old)) = previous.map(|Extension(principal)| principal.require_session())
        && let Err(error) = state.identity.sign_out(&old.user.id, &old.id, client)
    {
        tracing::info!(%error, "could not end the previous session");
    }
    (StatusCode::NO_CONTENT, [(SET_COOKIE, state.site.set_cookie(session))]).into_response()
}

pub(super) async fn link(
    Extension(state): Extension<Arc<ServerState>>,
    previous: PreviousPrincipal,
    client: ClientInfo,
    Json(link): Json<SignInLink>,
) -> Result<Response, ApiError> {
    let session = state.identity.redeem_link(&link.secret, &client)?;
    Ok(start_session(&state, &session, previous, &client))
}

pub(super) async fn accept(
    Extension(state): Extension<Arc<ServerState>>,
    previous: PreviousPrincipal,
    client: ClientInfo,
    Json(link): Json<SignInLink>,
) -> Result<Response, ApiError> {
    let session = state.identity.accept(&link.secret, &client)?;
    Ok(start_session(&state, &session, previous, &client))
}

pub(super) async fn recover(
    Extension(state): Extension<Arc<ServerState>>,
    previous: PreviousPrincipal,
    client: ClientInfo,
    Json(body): Json<RecoveryLogin>,
) -> Result<Response, ApiError> {
    let _permit = state.hashing.try_acquire().map_err(|_| ApiError::too_many(1))?;
    let (identity, info) = (state.identity.clone(), client.clone());
    let recover = move || identity.recover(&body.user, &body.code, &info);
    let session = tokio::task::spawn_blocking(recover).await.map_err(|_| ApiError::internal())??;
    Ok(start_session(&state, &session, previous, &client))
}

pub(super) async fn logout(
    Extension(state): Extension<Arc<ServerState>>,
    principal: Principal,
    client: ClientInfo,
) -> Result<Response, ApiError> {
    let session = principal.require_session()?;
    state.identity.sign_out(&session.user.id, &session.id, &client)?;
    Ok((StatusCode::NO_CONTENT, [(SET_COOKIE, state.site.clear_cookie())]).into_response())
}
