//! The guard in front of one route: who calls, from which page, and may they.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, COOKIE};
use axum::http::{HeaderMap, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use shared_types::wire::Scope;

use super::{Access, Attach, How, Principal, origin};
use crate::front::Front;
use crate::identity::{Identity, Secret};
use crate::problem::Refusal;
use crate::server::address::Address;
use crate::server::rates::{Key, Kind};

const AUTH: &str = "/api/v1/auth/";
/// Ten argon2 hashes for one request.
const COSTLY: &str = "/api/v1/auth/recovery";

/// What one guard knows.
pub(super) struct Post {
    pub(super) method: Method,
    pub(super) path: &'static str,
    pub(super) access: Access,
    pub(super) front: Arc<Front>,
    pub(super) attach: Attach,
}

pub(super) async fn guard(State(post): State<Arc<Post>>, mut request: Request, next: Next) -> Response {
    match admit(&post, &mut request).await {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    }
}

async fn admit(post: &Post, request: &mut Request) -> Result<(), Refusal> {
    let Some(principal) = check(post, request)? else { return Ok(()) };
    if !matches!(post.access, Access::Anyone | Access::Signed(Scope::Account)) {
        let attached = (post.attach)(principal.clone()).await?;
        request.extensions_mut().extend(attached);
    }
    request.extensions_mut().insert(principal);
    Ok(())
}

/// Who is let in: somebody, or a caller who need not be anybody.
fn check(post: &Post, request: &Request) -> Result<Option<Principal>, Refusal> {
    // A handler that also answers to another method would do so without a statement.
    let head = request.method() == Method::HEAD && post.method == Method::GET;
    if request.method() != post.method && !head {
        return Err(Refusal::method_not_allowed());
    }
    let Post { path, access, front, .. } = post;
    let now = front.identity.now();
    let address = request.extensions().get::<Address>().copied().unwrap_or_default();
    let signing_in = *access == Access::Anyone && path.starts_with(AUTH);
    if signing_in || *path == COSTLY {
        front.rates.take(now, Kind::SignIn, Key::Address(address))?;
    }
    let who = who(&front.identity, &front.site.cookie(), request.headers());
    let key = match &who {
        Ok(Some(principal)) => Key::User(principal.user.clone()),
        Ok(None) | Err(_) => Key::Address(address),
    };
    front.rates.take(now, Kind::Call, key)?;
    let principal = match who {
        Ok(principal) => principal,
        // A session that has ended must not keep anyone from signing in.
        Err(_) if *access == Access::Anyone => None,
        Err(refusal) => return Err(refusal),
    };
    origin::check(&front.site, request.method(), request.headers(), principal.as_ref())?;
    match (principal, *access) {
        (None, Access::Anyone) => Ok(None),
        (None, Access::Signed(_) | Access::Owner) => Err(Refusal::signed_out()),
        (Some(principal), access) => principal.check(access).map(|()| Some(principal)),
    }
}

/// Who calls. A token goes before a cookie; one that is not valid is an error, not nobody.
fn who(identity: &Identity, cookie: &str, headers: &HeaderMap) -> Result<Option<Principal>, Refusal> {
    if let Some(value) = headers.get(AUTHORIZATION) {
        let token = value.to_str().ok().and_then(|text| text.split_once(' '));
        let token = token.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        let (_, token) = token.ok_or_else(Refusal::signed_out)?;
        let bearer = identity.token(token.trim())?.ok_or_else(Refusal::signed_out)?;
        let how = How::Token { id: bearer.token, scopes: bearer.scopes };
        return Ok(Some(Principal::new(bearer.user, how)));
    }
    let Some(secret) = cookie_value(headers, cookie).as_deref().and_then(Secret::parse) else {
        return Ok(None);
    };
    let holder = identity.session(&secret)?.ok_or_else(Refusal::signed_out)?;
    Ok(Some(Principal::new(holder.user, How::Session { id: holder.session })))
}

fn cookie_value(headers: &HeaderMap, name: &str) -> Option<String> {
    let pairs = headers.get_all(COOKIE).into_iter().filter_map(|value| value.to_str().ok());
    let mut pairs = pairs.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(key, _)| *key == name).map(|(_, value)| value.to_owned())
}
