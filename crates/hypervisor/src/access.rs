//! Access control. Every [`Route`] carries its [`Access`] rule and its description, and [`build_router`] is the only
//! way from routes to a router, so no route can exist without them.

mod body_limits;
mod client_info;
mod description;
mod guard;
mod origin;

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{DefaultBodyLimit, FromRequestParts};
use axum::handler::Handler;
use axum::http::request::Parts;
use axum::http::{Extensions, Method};
use axum::middleware::{from_fn_with_state, map_request};
use axum::routing::{MethodFilter, MethodRouter, on};
use axum::{Extension, Router};
use shared_types::UserId;
use shared_types::wire::TokenScope;
use thiserror::Error;

pub use body_limits::MAX_BODY_BYTES;
use body_limits::{MAX_FILE_BYTES, check_content_length, limit_body};
use guard::RouteGuard;

pub use description::{
    Accepted, BodyKind, DescribedExtractor, DescribedHandler, DescribedResponse, ResponseKind,
    RouteDescription, SchemaFn,
};

use crate::identity::{IdentityStore, User, VerifiedSession};
use crate::problem::ApiError;
use crate::server::middleware::handle;
use crate::server_state::ServerState;

/// How often a long-lived connection checks whether its credential has expired. A revocation ends it at once.
const EXPIRY_CHECK_INTERVAL: Duration = Duration::from_secs(600);

/// Who may call a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Anyone,
    /// A signed-in user, by a session or by a token with this scope. Handlers only reach that user's own data.
    SignedIn(TokenScope),
    /// The owner of the machine, by a session.
    Owner,
}

/// A route with its access rule and its description.
#[derive(Debug, Clone)]
pub struct Route {
    pub method: Method,
    pub path: &'static str,
    pub access: Access,
    pub description: RouteDescription,
    pub handler: MethodRouter,
}

impl Route {
    pub fn new<H, T>(
        method: Method,
        path: &'static str,
        access: Access,
        summary: &'static str,
        handler: H,
    ) -> Self
    where
        H: Handler<T, ()> + DescribedHandler<T>,
        T: 'static,
    {
        // Every method that routes use has a filter.
        let filter = MethodFilter::try_from(method.clone()).unwrap_or(MethodFilter::GET);
        // This is the innermost layer, so the route's limit also applies to handlers that stream the body.
        let handler = on(filter, handler).layer(map_request(limit_body));
        Self { method, path, access, description: RouteDescription::of_handler::<H, T>(summary), handler }
    }

    pub fn get<H, T>(path: &'static str, access: Access, summary: &'static str, handler: H) -> Self
    where
        H: Handler<T, ()> + DescribedHandler<T>,
        T: 'static,
    {
        Self::new(Method::GET, path, access, summary, handler)
    }

    pub fn post<H, T>(path: &'static str, access: Access, summary: &'static str, handler: H) -> Self
    where
        H: Handler<T, ()> + DescribedHandler<T>,
        T: 'static,
    {
        Self::new(Method::POST, path, access, summary, handler)
    }

    pub fn put<H, T>(path: &'static str, access: Access, summary: &'static str, handler: H) -> Self
    where
        H: Handler<T, ()> + DescribedHandler<T>,
        T: 'static,
    {
        Self::new(Method::PUT, path, access, summary, handler)
    }

    pub fn delete<H, T>(path: &'static str, access: Access, summary: &'static str, handler: H) -> Self
    where
        H: Handler<T, ()> + DescribedHandler<T>,
        T: 'static,
    {
        Self::new(Method::DELETE, path, access, summary, handler)
    }

    /// Describes the response of a handler whose return type does not.
    #[must_use]
    pub fn responds_with(mut self, response: ResponseKind) -> Self {
        self.description.response = response;
        self
    }

    /// Raises the body limit to the size of a file.
    #[must_use]
    pub fn accepts_file(self) -> Self {
        let handler: MethodRouter = self.handler.layer(map_request(check_content_length));
        let handler = handler.layer(DefaultBodyLimit::max(MAX_FILE_BYTES));
        Self { handler, ..self }
    }
}

/// The authenticated user of a request, and the credential that proved it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    pub user: UserId,
    pub name: String,
    pub owner: bool,
    pub credential: Credential,
    /// The WebAuthn user handle.
    handle: [u8; 16],
}

/// How a principal was authenticated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credential {
    Session { id: String },
    Token { id: String, scopes: Vec<TokenScope> },
}

impl Principal {
    fn new(user: User, credential: Credential) -> Self {
        Self { user: user.id, name: user.name, owner: user.owner, credential, handle: user.handle }
    }

    pub(crate) fn as_user(&self) -> User {
        User { id: self.user.clone(), name: self.name.clone(), owner: self.owner, handle: self.handle }
    }

    /// The session of the principal. A token is refused: account routes need a session.
    pub(crate) fn require_session(&self) -> Result<VerifiedSession, ApiError> {
        match &self.credential {
            Credential::Session { id } => Ok(VerifiedSession { id: id.clone(), user: self.as_user() }),
            Credential::Token { .. } => {
                Err(ApiError::wrong_scope("A token cannot do this. Sign in with a browser."))
            }
        }
    }

    /// Waits until the credential is revoked or expires, for connections that outlive their request. An open
    /// connection does not count as use of the session, so an idle session still expires.
    pub async fn wait_until_invalid(&self, identity: &IdentityStore) {
        let mut revocations = identity.revocations();
        while self.is_valid(identity) {
            tokio::select! {
                changed = revocations.changed() => if changed.is_err() { return },
                () = tokio::time::sleep(EXPIRY_CHECK_INTERVAL) => {}
            }
        }
    }

    fn is_valid(&self, identity: &IdentityStore) -> bool {
        let valid = match &self.credential {
            Credential::Session { id } => identity.is_session_valid(id),
            Credential::Token { id, .. } => identity.is_token_valid(id),
        };
        valid.unwrap_or(false)
    }

    /// Checks whether an access rule admits this principal.
    fn authorize(&self, access: Access) -> Result<(), ApiError> {
        match (access, &self.credential) {
            (Access::Anyone, _) | (Access::SignedIn(_), Credential::Session { .. }) => Ok(()),
            (Access::Owner, Credential::Session { .. }) if self.owner => Ok(()),
            (Access::Owner, Credential::Session { .. }) => {
                Err(ApiError::forbidden("Only the owner of this machine may do this."))
            }
            (Access::SignedIn(scope), Credential::Token { scopes, .. })
                if scope != TokenScope::Account && scopes.contains(&scope) =>
            {
                Ok(())
            }
            (Access::SignedIn(_) | Access::Owner, Credential::Token { .. }) => Err(ApiError::wrong_scope(
                "This token lacks the required scope. Create a token with the right scope.",
            )),
        }
    }
}

impl DescribedExtractor for Principal {}

impl<S: Send + Sync> FromRequestParts<S> for Principal {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        parts.extensions.get().cloned().ok_or_else(ApiError::signed_out)
    }
}

/// Loads the principal's own computer as request extensions. The guard calls it for every route that needs a sign-in,
/// except for account routes.
pub type ExtensionLoader = Arc<dyn Fn(Principal) -> ExtensionsFuture + Send + Sync>;

/// Resolves to the extensions that are added to the request.
pub type ExtensionsFuture = Pin<Box<dyn Future<Output = Result<Extensions, ApiError>> + Send>>;

/// Why a router could not be built.
#[derive(Debug, Error)]
pub enum BuildRouterError {
    #[error("the route {method} {path} is declared twice")]
    DuplicateRoute { method: Method, path: &'static str },
}

/// Builds the router: each route behind its guard, all of them behind the server's middleware.
pub fn build_router(
    routes: Vec<Route>,
    state: Arc<ServerState>,
    load_extensions: ExtensionLoader,
) -> Result<Router, BuildRouterError> {
    let mut declared = BTreeSet::new();
    let mut router = Router::new();
    for Route { method, path, access, handler, description } in routes {
        if !declared.insert((path, method.to_string())) {
            return Err(BuildRouterError::DuplicateRoute { method, path });
        }
        let guard = RouteGuard {
            method,
            path,
            access,
            is_recorded_in_log: description.is_recorded_in_log,
            state: Arc::clone(&state),
            load_extensions: Arc::clone(&load_extensions),
        };
        router = router.route(path, handler.layer(from_fn_with_state(Arc::new(guard), guard::guard)));
    }
    Ok(router
        .fallback(|| async { ApiError::not_found() })
        .method_not_allowed_fallback(|| async { ApiError::method_not_allowed() })
        .layer(Extension(Arc::clone(&state)))
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .layer(from_fn_with_state(state, handle)))
}

#[cfg(test)]
mod tests;
