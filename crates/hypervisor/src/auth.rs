//! The routes of identity, under `/api/v1/auth`, with those of the vault. Who may call each stands here and in
//! [`keys`], in tables.

mod account;
mod entering;
mod inviting;
mod passkeys;

use shared_types::wire::Scope;

use crate::access::{Access, Given, Route};
use crate::keys;

/// Every route of identity, and of what is kept in the same store.
pub fn routes() -> Vec<Route> {
    const ACCOUNT: Access = Access::Signed(Scope::Account);
    use Access::{Anyone, Owner};
    let mut routes = ceremonies();
    routes.extend(keys::routes());
    routes.extend([
        Route::post("/api/v1/auth/link", Anyone, "Signs in by a link, once", entering::link)
            .giving(Given::Nothing),
        Route::post("/api/v1/auth/recover", Anyone, "Signs in by a recovery code", entering::recover)
            .giving(Given::Nothing),
        Route::post("/api/v1/auth/accept", Anyone, "Accepts an invitation", entering::accept)
            .giving(Given::Nothing),
        Route::post("/api/v1/auth/logout", ACCOUNT, "Signs out", entering::logout).giving(Given::Nothing),
        Route::get("/api/v1/auth/sessions", ACCOUNT, "Lists sessions", account::sessions),
        Route::delete("/api/v1/auth/sessions/{id}", ACCOUNT, "Ends a session", account::revoke_session),
        Route::post("/api/v1/auth/recovery", ACCOUNT, "Makes recovery codes", account::make_recovery_codes),
        Route::get("/api/v1/auth/tokens", ACCOUNT, "Lists tokens", account::tokens),
        Route::post("/api/v1/auth/tokens", ACCOUNT, "Makes a token for scripts", account::make_token),
        Route::delete("/api/v1/auth/tokens/{id}", ACCOUNT, "Takes a token back", account::revoke_token),
        Route::get("/api/v1/auth/audit", ACCOUNT, "Lists the audit trail", account::audit),
        Route::get("/api/v1/auth/invitations", Owner, "Lists invitations", inviting::list),
        Route::post("/api/v1/auth/invitations", Owner, "Invites a person", inviting::invite),
        Route::delete("/api/v1/auth/invitations/{id}", Owner, "Withdraws an invitation", inviting::withdraw),
    ]);
    routes
}

/// Those of passkeys.
fn ceremonies() -> Vec<Route> {
    const ACCOUNT: Access = Access::Signed(Scope::Account);
    const LOGIN: [&str; 2] = ["/api/v1/auth/passkeys/login/start", "/api/v1/auth/passkeys/login/finish"];
    const REGISTER: [&str; 2] =
        ["/api/v1/auth/passkeys/register/start", "/api/v1/auth/passkeys/register/finish"];
    use Access::Anyone;
    vec![
        Route::get("/api/v1/auth/passkeys", ACCOUNT, "Lists passkeys", passkeys::list),
        Route::delete("/api/v1/auth/passkeys/{id}", ACCOUNT, "Removes a passkey", passkeys::remove),
        Route::post(REGISTER[0], ACCOUNT, "Begins to add a passkey", passkeys::register_start),
        Route::post(REGISTER[1], ACCOUNT, "Adds the passkey", passkeys::register_finish),
        Route::post(LOGIN[0], Anyone, "Begins to sign in with a passkey", passkeys::login_start),
        Route::post(LOGIN[1], Anyone, "Signs in with the passkey", passkeys::login_finish)
            .giving(Given::Nothing),
    ]
}
