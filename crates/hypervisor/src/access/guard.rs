//! The guard in front of one route: rate limits, authentication, origin check and authorization.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, COOKIE};
use axum::http::{HeaderMap, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use shared_types::wire::TokenScope;

use super::{Access, Credential, ExtensionLoader, Principal, origin};
use crate::client_address::ClientAddress;
use crate::identity::{IdentityStore, RandomSecret};
use crate::problem::ApiError;
use crate::rate_limits::{RateSubject, RequestKind};
use crate::recent_answers::Sender;
use crate::server_state::ServerState;

const AUTH_PREFIX: &str = "/api/v1/auth/";
/// Limited like a sign-in, because one request computes ten argon2 hashes.
const MAKE_RECOVERY_CODES: &str = "/api/v1/auth/recovery";

/// The rule of one route, and what is needed to enforce it.
pub(super) struct RouteGuard {
    pub(super) method: Method,
    pub(super) path: &'static str,
    pub(super) access: Access,
    /// Whether the route's changes are recorded under the id of the request, so that the log answers a resend.
    pub(super) is_recorded_in_log: bool,
    pub(super) state: Arc<ServerState>,
    pub(super) load_extensions: ExtensionLoader,
}

pub(super) async fn guard(
    State(guard): State<Arc<RouteGuard>>,
    mut request: Request,
    next: Next,
) -> Response {
    match admit(&guard, &mut request).await {
        Ok(Some(sender)) if !guard.is_recorded_in_log => {
            guard.state.recent_answers.answer(sender, request, next).await
        }
        Ok(_) => next.run(request).await,
        Err(error) => error.into_response(),
    }
}

/// Returns the sender; `None` on a public route.
async fn admit(guard: &RouteGuard, request: &mut Request) -> Result<Option<Sender>, ApiError> {
    let Some(principal) = authorize(guard, request)? else { return Ok(None) };
    if !matches!(guard.access, Access::Anyone | Access::SignedIn(TokenScope::Account)) {
        let extensions = (guard.load_extensions)(principal.clone()).await?;
        request.extensions_mut().extend(extensions);
    }
    let (Credential::Session { id } | Credential::Token { id, .. }) = &principal.credential;
    let sender = Sender { user: principal.user.clone(), credential: id.clone() };
    request.extensions_mut().insert(principal);
    Ok((guard.access != Access::Anyone).then_some(sender))
}

/// Checks everything that can refuse a request. Returns the principal, or `None` for an anonymous caller of a public
/// route.
fn authorize(guard: &RouteGuard, request: &Request) -> Result<Option<Principal>, ApiError> {
    // A handler that also answers to another method would do so without an access rule.
    let head = request.method() == Method::HEAD && guard.method == Method::GET;
    if request.method() != guard.method && !head {
        return Err(ApiError::method_not_allowed());
    }
    let RouteGuard { path, access, state, .. } = guard;
    let now = state.identity.now();
    let address = request.extensions().get::<ClientAddress>().copied().unwrap_or_default();
    let is_sign_in = *access == Access::Anyone && path.starts_with(AUTH_PREFIX);
    if is_sign_in || *path == MAKE_RECOVERY_CODES {
        state.rate_limiter.take(now, RequestKind::SignIn, RateSubject::Address(address))?;
    }
    let authenticated = authenticate(&state.identity, &state.site.cookie(), request.headers());
    let subject = match &authenticated {
        Ok(Some(principal)) => RateSubject::User(principal.user.clone()),
        Ok(None) | Err(_) => RateSubject::Address(address),
    };
    state.rate_limiter.take(now, RequestKind::Any, subject)?;
    let principal = match authenticated {
        Ok(principal) => principal,
        // An expired session must not prevent its user from signing in again.
        Err(_) if *access == Access::Anyone => None,
        Err(error) => return Err(error),
    };
    origin::check(&state.site, request.method(), request.headers(), principal.as_ref())?;
    match (principal, *access) {
        (None, Access::Anyone) => Ok(None),
        (None, Access::SignedIn(_) | Access::Owner) => Err(ApiError::signed_out()),
        (Some(principal), access) => principal.authorize(access).map(|()| Some(principal)),
    }
}

/// Authenticates a request by its token or its session cookie; a token takes precedence. An invalid credential is an
/// error; without any credential the result is `None`.
fn authenticate(
    identity: &IdentityStore,
    cookie: &str,
    headers: &HeaderMap,
) -> Result<Option<Principal>, ApiError> {
    if let Some(value) = headers.get(AUTHORIZATION) {
        let token = value.to_str().ok().and_then(|text| text.split_once(' '));
        let token = token.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        let (_, token) = token.ok_or_else(ApiError::signed_out)?;
        let token = identity.token(token.trim())?.ok_or_else(ApiError::signed_out)?;
        let credential = Credential::Token { id: token.id, scopes: token.scopes };
        return Ok(Some(Principal::new(token.user, credential)));
    }
    let Some(secret) = cookie_value(headers, cookie).as_deref().and_then(RandomSecret::parse) else {
        return Ok(None);
    };
    let session = identity.session(&secret)?.ok_or_else(ApiError::signed_out)?;
    Ok(Some(Principal::new(session.user, Credential::Session { id: session.id })))
}

fn cookie_value(headers: &HeaderMap, name: &str) -> Option<String> {
    let pairs = headers.get_all(COOKIE).into_iter().filter_map(|value| value.to_str().ok());
    let mut pairs = pairs.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(key, _)| *key == name).map(|(_, value)| value.to_owned())
}
