//! The table of identity routes under `/api/v1/auth`, each with its access rule, and the vault routes of [`keys`].

mod account;
mod invitations;
mod passkeys;
mod sign_in;

use shared_types::wire::TokenScope;

use crate::access::{Access, ResponseKind, Route};
use crate::keys;

/// All identity and vault routes.
pub fn routes() -> Vec<Route> {
    const ACCOUNT: Access = Access::SignedIn(TokenScope::Account);
    use Access::{Anyone, Owner};
    let mut routes = passkey_routes();
    routes.extend(keys::routes());
    routes.extend([
        Route::post("/api/v1/auth/link", Anyone, "Signs in with a single-use link", sign_in::link)
            .responds_with(ResponseKind::Empty),
        Route::post("/api/v1/auth/recover", Anyone, "Signs in with a recovery code", sign_in::recover)
            .responds_with(ResponseKind::Empty),
        Route::post("/api/v1/auth/accept", Anyone, "Accepts an invitation", sign_in::accept)
            .responds_with(ResponseKind::Empty),
        Route::post("/api/v1/auth/logout", ACCOUNT, "Signs out", sign_in::logout)
            .responds_with(ResponseKind::Empty),
        Route::get("/api/v1/auth/sessions", ACCOUNT, "Lists sessions", account::sessions),
        Route::delete("/api/v1/auth/sessions/{id}", ACCOUNT, "Ends a session", account::revoke_session),
        Route::post(
            "/api/v1/auth/recovery",
            ACCOUNT,
            "Creates new recovery codes",
            account::make_recovery_codes,
        ),
        Route::get("/api/v1/auth/tokens", ACCOUNT, "Lists tokens", account::tokens),
        Route::post("/api/v1/auth/tokens", ACCOUNT, "Creates an API token", account::make_token),
        Route::delete("/api/v1/auth/tokens/{id}", ACCOUNT, "Revokes a token", account::revoke_token),
        Route::get("/api/v1/auth/audit", ACCOUNT, "Lists the audit trail", account::audit),
        Route::get("/api/v1/auth/invitations", Owner, "Lists invitations", invitations::list),
        Route::post("/api/v1/auth/invitations", Owner, "Invites a person", invitations::invite),
        Route::delete(
            "/api/v1/auth/invitations/{id}",
            Owner,
            "Withdraws an invitation",
            invitations::withdraw,
        ),
    ]);
    routes
}

fn passkey_routes() -> Vec<Route> {
    const ACCOUNT: Access = Access::SignedIn(TokenScope::Account);
    const LOGIN: [&str; 2] = ["/api/v1/auth/passkeys/login/start", "/api/v1/auth/passkeys/login/finish"];
    const REGISTER: [&str; 2] =
        ["/api/v1/auth/passkeys/register/start", "/api/v1/auth/passkeys/register/finish"];
    use Access::Anyone;
    vec![
        Route::get("/api/v1/auth/passkeys", ACCOUNT, "Lists passkeys", passkeys::list),
        Route::delete("/api/v1/auth/passkeys/{id}", ACCOUNT, "Removes a passkey", passkeys::remove),
        Route::post(REGISTER[0], ACCOUNT, "Starts to register a passkey", passkeys::register_start),
        Route::post(REGISTER[1], ACCOUNT, "Registers the passkey", passkeys::register_finish),
        Route::post(LOGIN[0], Anyone, "Starts to sign in with a passkey", passkeys::login_start),
        Route::post(LOGIN[1], Anyone, "Signs in with the passkey", passkeys::login_finish)
            .responds_with(ResponseKind::Empty),
    ]
}
