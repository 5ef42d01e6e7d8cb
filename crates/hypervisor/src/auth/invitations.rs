//! Invitations: only the owner can invite further users.

use std::sync::Arc;

use axum::extract::Path;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, HeaderName};
use axum::{Extension, Json as Answer};
use shared_types::wire::{CreatedInvitation, Invitation, InvitationRequest};

use crate::access::Principal;
use crate::body::Json;
use crate::identity::ClientInfo;
use crate::problem::ApiError;
use crate::server_state::ServerState;

pub(super) async fn list(
    Extension(state): Extension<Arc<ServerState>>,
) -> Result<Answer<Vec<Invitation>>, ApiError> {
    Ok(Answer(state.identity.invitations()?))
}

pub(super) async fn invite(
    Extension(state): Extension<Arc<ServerState>>,
    principal: Principal,
    client: ClientInfo,
    Json(body): Json<InvitationRequest>,
) -> Result<([(HeaderName, &'static str); 1], Answer<CreatedInvitation>), ApiError> {
    let new = state.identity.invite(&principal.user, &body.name, &client)?;
    let link = state.site.invitation_link(&new.secret);
    Ok(([(CACHE_CONTROL, "no-store")], Answer(CreatedInvitation { link, invitation: new.invitation })))
}

pub(super) async fn withdraw(
    Extension(state): Extension<Arc<ServerState>>,
    principal: Principal,
    client: ClientInfo,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    state.identity.withdraw_invitation(&principal.user, &id, &client)?;
    Ok(StatusCode::NO_CONTENT)
}
