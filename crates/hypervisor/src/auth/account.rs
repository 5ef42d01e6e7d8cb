//! What a person sees and changes of their own account: sessions, recovery codes, tokens, the audit trail.

use std::sync::Arc;

use axum::extract::Path;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, HeaderName};
use axum::{Extension, Json as Answer};
use shared_types::wire::{ApiToken, AuditLine, NewToken, RecoveryCodes, Session};

use crate::access::Principal;
use crate::body::Json;
use crate::front::Front;
use crate::identity::Caller;
use crate::problem::Refusal;

/// For answers that hold a secret.
const NOT_KEPT: [(HeaderName, &str); 1] = [(CACHE_CONTROL, "no-store")];

pub(super) async fn sessions(
    Extension(front): Extension<Arc<Front>>,
    principal: Principal,
) -> Result<Answer<Vec<Session>>, Refusal> {
    let holder = principal.holder()?;
    Ok(Answer(front.identity.sessions(&holder.user.id, Some(&holder.session))?))
}

pub(super) async fn revoke_session(
    Extension(front): Extension<Arc<Front>>,
    principal: Principal,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, Refusal> {
    front.identity.revoke_session(&principal.user, &id, &caller)?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn make_recovery_codes(
    Extension(front): Extension<Arc<Front>>,
    principal: Principal,
    caller: Caller,
) -> Result<([(HeaderName, &'static str); 1], Answer<RecoveryCodes>), Refusal> {
    let _place = front.hashing.try_acquire().map_err(|_| Refusal::too_many(1))?;
    let identity = front.identity.clone();
    let making = move || identity.make_recovery_codes(&principal.user, &caller);
    let codes = tokio::task::spawn_blocking(making).await.map_err(|_| Refusal::internal())??;
    Ok((NOT_KEPT, Answer(RecoveryCodes { codes })))
}

pub(super) async fn tokens(
    Extension(front): Extension<Arc<Front>>,
    principal: Principal,
) -> Result<Answer<Vec<ApiToken>>, Refusal> {
    Ok(Answer(front.identity.tokens(&principal.user)?))
}

pub(super) async fn make_token(
    Extension(front): Extension<Arc<Front>>,
    principal: Principal,
    caller: Caller,
    Json(wish): Json<NewToken>,
) -> Result<([(HeaderName, &'static str); 1], Answer<ApiToken>), Refusal> {
    Ok((NOT_KEPT, Answer(front.identity.make_token(&principal.user, &wish, &caller)?)))
}

pub(super) async fn revoke_token(
    Extension(front): Extension<Arc<Front>>,
    principal: Principal,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, Refusal> {
    front.identity.revoke_token(&principal.user, &id, &caller)?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn audit(
    Extension(front): Extension<Arc<Front>>,
    principal: Principal,
) -> Result<Answer<Vec<AuditLine>>, Refusal> {
    Ok(Answer(front.identity.audit(&principal.as_user())?))
}
