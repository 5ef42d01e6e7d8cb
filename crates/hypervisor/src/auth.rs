//! The routes of identity, under `/api/v1/auth`. Who may call each stands here, in one table.

mod account;
mod entering;
mod inviting;
mod passkeys;

use axum::http::Method;
use axum::routing::{delete, get, post};
use shared_types::wire::Scope;

use crate::access::{Access, Route};

/// Every route of identity.
pub fn routes() -> Vec<Route> {
    const ACCOUNT: Access = Access::Signed(Scope::Account);
    use Access::{Anyone, Owner};
    let route = |method, path, access, handler| Route { method, path, access, handler };
    vec![
        route(Method::POST, "/api/v1/auth/link", Anyone, post(entering::link)),
        route(Method::POST, "/api/v1/auth/recover", Anyone, post(entering::recover)),
        route(Method::POST, "/api/v1/auth/accept", Anyone, post(entering::accept)),
        route(Method::POST, "/api/v1/auth/passkeys/login/start", Anyone, post(passkeys::login_start)),
        route(Method::POST, "/api/v1/auth/passkeys/login/finish", Anyone, post(passkeys::login_finish)),
        route(Method::POST, "/api/v1/auth/logout", ACCOUNT, post(entering::logout)),
        route(Method::GET, "/api/v1/auth/sessions", ACCOUNT, get(account::sessions)),
        route(Method::DELETE, "/api/v1/auth/sessions/{id}", ACCOUNT, delete(account::revoke_session)),
        route(Method::GET, "/api/v1/auth/passkeys", ACCOUNT, get(passkeys::list)),
        route(Method::DELETE, "/api/v1/auth/passkeys/{id}", ACCOUNT, delete(passkeys::remove)),
        route(Method::POST, "/api/v1/auth/passkeys/register/start", ACCOUNT, post(passkeys::register_start)),
        route(
            Method::POST,
            "/api/v1/auth/passkeys/register/finish",
            ACCOUNT,
            post(passkeys::register_finish),
        ),
        route(Method::POST, "/api/v1/auth/recovery", ACCOUNT, post(account::make_recovery_codes)),
        route(Method::GET, "/api/v1/auth/tokens", ACCOUNT, get(account::tokens)),
        route(Method::POST, "/api/v1/auth/tokens", ACCOUNT, post(account::make_token)),
        route(Method::DELETE, "/api/v1/auth/tokens/{id}", ACCOUNT, delete(account::revoke_token)),
        route(Method::GET, "/api/v1/auth/audit", ACCOUNT, get(account::audit)),
        route(Method::GET, "/api/v1/auth/invitations", Owner, get(inviting::list)),
        route(Method::POST, "/api/v1/auth/invitations", Owner, post(inviting::invite)),
        route(Method::DELETE, "/api/v1/auth/invitations/{id}", Owner, delete(inviting::withdraw)),
    ]
}
