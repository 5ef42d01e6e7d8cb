//! Who may call what. Every route states it, and [`assemble`] is the only way from routes to a router, so there is
//! no route without such a statement, and none without a description.

mod about;
mod guard;
mod origin;

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{DefaultBodyLimit, FromRequestParts, Request};
use axum::handler::Handler;
use axum::http::header::CONTENT_LENGTH;
use axum::http::request::Parts;
use axum::http::{Extensions, Method};
use axum::middleware::{from_fn_with_state, map_request};
use axum::routing::{MethodFilter, MethodRouter, on};
use axum::{Extension, RequestExt, Router};
use shared_types::UserId;
use shared_types::wire::Scope;
use thiserror::Error;

pub use about::{About, Accepted, Described, Given, Gives, Shape, Taken, Takes};

use crate::front::Front;
use crate::identity::{Holder, Identity, User};
use crate::problem::Refusal;
use crate::server::door;

/// Bodies are at most so long, unless a route sets another limit itself, as `Route::with_file` does.
pub const BODY: usize = 1 << 20;

/// A connection that lives on finds out that its session has run out within this time; that it was taken back, at
/// once.
const LOOK_AGAIN: Duration = Duration::from_secs(600);

/// Who may call a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Anyone,
    /// Somebody who is signed in, by a session or by a token with this scope; only what is theirs is reached.
    Signed(Scope),
    /// The person who owns the machine, by a session.
    Owner,
}

/// A route with its statement.
#[derive(Debug, Clone)]
pub struct Route {
    pub method: Method,
    pub path: &'static str,
    pub access: Access,
    pub about: About,
    pub handler: MethodRouter,
}

/// Bodies that are bytes of files may be large; everything else is bounded by the server.
const FILE_LIMIT: usize = 4 << 30;

impl Route {
    pub fn new<H, T>(
        method: Method,
        path: &'static str,
        access: Access,
        summary: &'static str,
        handler: H,
    ) -> Self
    where
        H: Handler<T, ()> + Described<T>,
        T: 'static,
    {
        // Every method of the table has a filter.
        let filter = MethodFilter::try_from(method.clone()).unwrap_or(MethodFilter::GET);
        // Innermost, so that the limit of the route holds also for a handler that reads the body as it comes.
        let handler = on(filter, handler).layer(map_request(limited));
        Self { method, path, access, about: About::of::<H, T>(summary), handler }
    }

    pub fn get<H, T>(path: &'static str, access: Access, summary: &'static str, handler: H) -> Self
    where
        H: Handler<T, ()> + Described<T>,
        T: 'static,
    {
        Self::new(Method::GET, path, access, summary, handler)
    }

    pub fn post<H, T>(path: &'static str, access: Access, summary: &'static str, handler: H) -> Self
    where
        H: Handler<T, ()> + Described<T>,
        T: 'static,
    {
        Self::new(Method::POST, path, access, summary, handler)
    }

    pub fn put<H, T>(path: &'static str, access: Access, summary: &'static str, handler: H) -> Self
    where
        H: Handler<T, ()> + Described<T>,
        T: 'static,
    {
        Self::new(Method::PUT, path, access, summary, handler)
    }

    pub fn delete<H, T>(path: &'static str, access: Access, summary: &'static str, handler: H) -> Self
    where
        H: Handler<T, ()> + Described<T>,
        T: 'static,
    {
        Self::new(Method::DELETE, path, access, summary, handler)
    }

    /// States the answer, where its type does not.
    #[must_use]
    pub fn giving(mut self, answer: Given) -> Self {
        self.about.answer = answer;
        self
    }

    /// Takes bytes of files.
    pub fn with_file(self) -> Self {
        let handler: MethodRouter = self.handler.layer(map_request(announced));
        let handler = handler.layer(DefaultBodyLimit::max(FILE_LIMIT));
        Self { handler, ..self }
    }
}

/// Refuses bytes of files before they are sent, where the caller says how many there are.
async fn announced(request: Request) -> Result<Request, Refusal> {
    let length =
        request.headers().get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    if length.is_some_and(|length| length > FILE_LIMIT) {
        return Err(Refusal::too_large(format!("At most {} GiB can be sent at once.", FILE_LIMIT >> 30)));
    }
    Ok(request)
}

async fn limited(request: Request) -> Request {
    request.with_limited_body()
}

/// Who calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    pub user: UserId,
    pub name: String,
    pub owner: bool,
    pub how: How,
    /// What the user's passkeys know them by.
    handle: [u8; 16],
}

/// What the caller showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum How {
    Session { id: String },
    Token { id: String, scopes: Vec<Scope> },
}

impl Principal {
    fn new(user: User, how: How) -> Self {
        Self { user: user.id, name: user.name, owner: user.owner, how, handle: user.handle }
    }

    pub(crate) fn as_user(&self) -> User {
        User { id: self.user.clone(), name: self.name.clone(), owner: self.owner, handle: self.handle }
    }

    /// The session, if it is one. Routes of the account let nothing else in.
    pub(crate) fn holder(&self) -> Result<Holder, Refusal> {
        match &self.how {
            How::Session { id } => Ok(Holder { session: id.clone(), user: self.as_user() }),
            How::Token { .. } => Err(Refusal::wrong_scope("A token cannot do this. Sign in with a browser.")),
        }
    }

    /// Ends when what was shown is no longer good: taken back, or run out. For a connection that outlives its
    /// request. Staying connected is no use of a session, so an idle one ends all the same.
    pub async fn ended(&self, identity: &Identity) {
        let mut revocations = identity.revocations();
        while self.holds(identity) {
            tokio::select! {
                changed = revocations.changed() => if changed.is_err() { return },
                () = tokio::time::sleep(LOOK_AGAIN) => {}
            }
        }
    }

    fn holds(&self, identity: &Identity) -> bool {
        let holds = match &self.how {
            How::Session { id } => identity.session_holds(id),
            How::Token { id, .. } => identity.token_holds(id),
        };
        holds.unwrap_or(false)
    }

    /// Whether an access lets this caller in.
    fn check(&self, access: Access) -> Result<(), Refusal> {
        match (access, &self.how) {
            (Access::Anyone, _) | (Access::Signed(_), How::Session { .. }) => Ok(()),
            (Access::Owner, How::Session { .. }) if self.owner => Ok(()),
            (Access::Owner, How::Session { .. }) => {
                Err(Refusal::forbidden("Only the owner of this machine may do this."))
            }
            (Access::Signed(scope), How::Token { scopes, .. })
                if scope != Scope::Account && scopes.contains(&scope) =>
            {
                Ok(())
            }
            (Access::Signed(_) | Access::Owner, How::Token { .. }) => {
                Err(Refusal::wrong_scope("This token is not good for that. Make one with the right scope."))
            }
        }
    }
}

impl Takes for Principal {}

impl<S: Send + Sync> FromRequestParts<S> for Principal {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refusal> {
        parts.extensions.get().cloned().ok_or_else(Refusal::signed_out)
    }
}

/// Finds what belongs to the principal, and only that, for the request: their own computer. Asked for routes that
/// need a sign-in and are not about the account.
pub type Attach = Arc<dyn Fn(Principal) -> Attaching + Send + Sync>;

/// What is put into the request, once it is there.
pub type Attaching = Pin<Box<dyn Future<Output = Result<Extensions, Refusal>> + Send>>;

/// Why routes do not make a router.
#[derive(Debug, Error)]
pub enum AssembleError {
    #[error("{method} {path} is stated twice")]
    Twice { method: Method, path: &'static str },
}

/// Makes the router: each route behind its guard, all of them behind the [`door`].
pub fn assemble(routes: Vec<Route>, front: Arc<Front>, attach: Attach) -> Result<Router, AssembleError> {
    let mut stated = BTreeSet::new();
    let mut router = Router::new();
    for Route { method, path, access, handler, .. } in routes {
        if !stated.insert((path, method.to_string())) {
            return Err(AssembleError::Twice { method, path });
        }
        let post =
            guard::Post { method, path, access, front: Arc::clone(&front), attach: Arc::clone(&attach) };
        router = router.route(path, handler.layer(from_fn_with_state(Arc::new(post), guard::guard)));
    }
    Ok(router
        .fallback(|| async { Refusal::not_found() })
        .method_not_allowed_fallback(|| async { Refusal::method_not_allowed() })
        .layer(Extension(Arc::clone(&front)))
        .layer(DefaultBodyLimit::max(BODY))
        .layer(from_fn_with_state(front, door::door)))
}

#[cfg(test)]
mod tests;
