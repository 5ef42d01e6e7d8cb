//! Further users: the owner invites them, and nobody else can.

use std::sync::Arc;

use axum::extract::Path;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, HeaderName};
use axum::{Extension, Json as Answer};
use shared_types::wire::{Invitation, Invite, Invited};

use crate::access::Principal;
use crate::body::Json;
use crate::front::Front;
use crate::identity::Caller;
use crate::problem::Refusal;

pub(super) async fn list(
    Extension(front): Extension<Arc<Front>>,
) -> Result<Answer<Vec<Invitation>>, Refusal> {
    Ok(Answer(front.identity.invitations()?))
}

pub(super) async fn invite(
    Extension(front): Extension<Arc<Front>>,
    principal: Principal,
    caller: Caller,
    Json(body): Json<Invite>,
) -> Result<([(HeaderName, &'static str); 1], Answer<Invited>), Refusal> {
    let made = front.identity.invite(&principal.user, &body.name, &caller)?;
    let link = front.site.invitation_link(&made.secret);
    Ok(([(CACHE_CONTROL, "no-store")], Answer(Invited { link, invitation: made.invitation })))
}

pub(super) async fn withdraw(
    Extension(front): Extension<Arc<Front>>,
    principal: Principal,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, Refusal> {
    front.identity.withdraw_invitation(&principal.user, &id, &caller)?;
    Ok(StatusCode::NO_CONTENT)
}
