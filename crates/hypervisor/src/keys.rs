//! The routes of the vault: which keys of providers there are, a new one, one less. No route gives a secret out.
//!
//! They are the account's: a person who is signed in calls them, and no token does, since no scope covers them. An
//! agent has neither a session nor such a token.

use std::sync::Arc;

use axum::extract::Path;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, HeaderName};
use axum::{Extension, Json as Answer};
use serde::Deserialize;
use shared_types::wire::{NewKey, Scope};

use crate::access::{Access, Principal, Route};
use crate::body::{Confidential, Params};
use crate::front::Front;
use crate::identity::Caller;
use crate::problem::Refusal;
use crate::vault::{KeyEntry, KeyScope, Provider, Secret, VaultError};

const NOT_KEPT: [(HeaderName, &str); 1] = [(CACHE_CONTROL, "no-store")];

/// Every route of the vault.
pub fn routes() -> Vec<Route> {
    const ACCOUNT: Access = Access::Signed(Scope::Account);
    const ONE: &str = "/api/v1/keys/{provider}";
    vec![
        Route::get("/api/v1/keys", ACCOUNT, "Lists the keys of model providers, without the keys", list),
        Route::put(ONE, ACCOUNT, "Keeps a provider's key; the owner may share it with everybody here", set),
        Route::delete(ONE, ACCOUNT, "Forgets a provider's key", clear),
    ]
}

/// Parameters of `DELETE /keys/{provider}`.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Which {
    /// The one that everybody uses. Only the owner may.
    #[serde(default)]
    shared: bool,
}

const fn scope(shared: bool) -> KeyScope {
    if shared { KeyScope::Shared } else { KeyScope::Own }
}

async fn list(
    Extension(front): Extension<Arc<Front>>,
    principal: Principal,
) -> Result<([(HeaderName, &'static str); 1], Answer<Vec<KeyEntry>>), Refusal> {
    let listed = front.vault.list(&principal.as_user()).map_err(|error| refusal(&principal, &error))?;
    Ok((NOT_KEPT, Answer(listed)))
}

async fn set(
    Extension(front): Extension<Arc<Front>>,
    principal: Principal,
    caller: Caller,
    Path(provider): Path<String>,
    Confidential(key): Confidential<NewKey<Secret>>,
) -> Result<StatusCode, Refusal> {
    let set = || {
        let provider = Provider::parse(&provider)?;
        front.vault.set(&principal.as_user(), scope(key.shared), &provider, &key.secret, &caller)
    };
    set().map(|()| StatusCode::NO_CONTENT).map_err(|error| refusal(&principal, &error))
}

async fn clear(
    Extension(front): Extension<Arc<Front>>,
    principal: Principal,
    caller: Caller,
    Path(provider): Path<String>,
    Params(which): Params<Which>,
) -> Result<StatusCode, Refusal> {
    let clear = || {
        let provider = Provider::parse(&provider)?;
        front.vault.clear(&principal.as_user(), scope(which.shared), &provider, &caller)
    };
    clear().map(|()| StatusCode::NO_CONTENT).map_err(|error| refusal(&principal, &error))
}

/// How an error is told. What to do about the master key is the owner's business, and where it lies too.
fn refusal(principal: &Principal, error: &VaultError) -> Refusal {
    let nothing = format!("Nothing was changed: {error}.");
    match error {
        VaultError::Invalid(_) => Refusal::invalid(nothing),
        VaultError::NotOwner => Refusal::forbidden(&nothing),
        VaultError::Missing => Refusal::new(StatusCode::NOT_FOUND, "not_found", nothing),
        VaultError::Full { .. } => Refusal::new(StatusCode::CONFLICT, "full", nothing),
        VaultError::Damaged { .. } => Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "damaged", nothing),
        VaultError::Locked(_) => {
            tracing::error!(error = error as &dyn std::error::Error, "vault");
            let others = "Nothing was changed: the vault is locked. The owner of this machine can open it.";
            let detail = if principal.owner { nothing } else { others.into() };
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "vault_locked", detail)
        }
        VaultError::Store(_) | VaultError::Identity(_) => {
            tracing::error!(error = error as &dyn std::error::Error, "vault");
            Refusal::internal()
        }
    }
}
