//! Signing in by link, invitation or recovery code, and signing out: what ends in a cookie, or without one.

use std::sync::Arc;

use axum::Extension;
use axum::http::StatusCode;
use axum::http::header::SET_COOKIE;
use axum::response::{IntoResponse, Response};
use shared_types::wire::{Link, Recover};

use crate::access::Principal;
use crate::body::Json;
use crate::front::Front;
use crate::identity::{Caller, NewSession};
use crate::problem::Refusal;

/// Who was signed in here before, if anyone.
pub(super) type Before = Option<Extension<Principal>>;

/// Hands a new session to its browser, in the cookie. The one that the cookie held until now has no holder any more.
pub(super) fn enter(front: &Front, session: &NewSession, before: Before, caller: &Caller) -> Response {
    front.metrics.signed_in.add();
    if let Some(Ok(holder)) = before.map(|Extension(before)| before.holder())
        && let Err(error) = front.identity.sign_out(&holder.user.id, &holder.session, caller)
    {
        tracing::info!(%error, "the session before was not ended");
    }
    (StatusCode::NO_CONTENT, [(SET_COOKIE, front.site.set_cookie(session))]).into_response()
}

pub(super) async fn link(
    Extension(front): Extension<Arc<Front>>,
    before: Before,
    caller: Caller,
    Json(link): Json<Link>,
) -> Result<Response, Refusal> {
    let session = front.identity.redeem_link(&link.secret, &caller)?;
    Ok(enter(&front, &session, before, &caller))
}

pub(super) async fn accept(
    Extension(front): Extension<Arc<Front>>,
    before: Before,
    caller: Caller,
    Json(link): Json<Link>,
) -> Result<Response, Refusal> {
    let session = front.identity.accept(&link.secret, &caller)?;
    Ok(enter(&front, &session, before, &caller))
}

pub(super) async fn recover(
    Extension(front): Extension<Arc<Front>>,
    before: Before,
    caller: Caller,
    Json(body): Json<Recover>,
) -> Result<Response, Refusal> {
    let _place = front.hashing.try_acquire().map_err(|_| Refusal::too_many(1))?;
    let (identity, asking) = (front.identity.clone(), caller.clone());
    let recovering = move || identity.recover(&body.user, &body.code, &asking);
    let session = tokio::task::spawn_blocking(recovering).await.map_err(|_| Refusal::internal())??;
    Ok(enter(&front, &session, before, &caller))
}

pub(super) async fn logout(
    Extension(front): Extension<Arc<Front>>,
    principal: Principal,
    caller: Caller,
) -> Result<Response, Refusal> {
    let holder = principal.holder()?;
    front.identity.sign_out(&holder.user.id, &holder.session, &caller)?;
    Ok((StatusCode::NO_CONTENT, [(SET_COOKIE, front.site.clear_cookie())]).into_response())
}
