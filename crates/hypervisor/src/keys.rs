//! The vault routes: list, set and clear the API keys of model providers. No route returns a secret.
//!
//! They are account routes: they need a session, and no token can call them. AI agents have no session.

use std::sync::Arc;

use axum::extract::Path;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, HeaderName};
use axum::{Extension, Json as Answer};
use serde::Deserialize;
use shared_types::wire::{NewKey, TokenScope};

use crate::access::{Access, Principal, Route};
use crate::body::{Confidential, Params};
use crate::identity::ClientInfo;
use crate::problem::ApiError;
use crate::server_state::ServerState;
use crate::vault::{KeyEntry, KeyScope, ProviderName, ProviderSecret, VaultError};

const NO_STORE: [(HeaderName, &str); 1] = [(CACHE_CONTROL, "no-store")];

/// All vault routes.
pub fn routes() -> Vec<Route> {
    const ACCOUNT: Access = Access::SignedIn(TokenScope::Account);
    const ONE: &str = "/api/v1/keys/{provider}";
    vec![
        Route::get(
            "/api/v1/keys",
            ACCOUNT,
            "Lists the model providers that have a key, without the keys",
            list,
        ),
        Route::put(ONE, ACCOUNT, "Sets a provider's key; the owner may share it with all users", set),
        Route::delete(ONE, ACCOUNT, "Clears a provider's key", clear),
    ]
}

/// Parameters of `DELETE /keys/{provider}`.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct ClearKey {
    /// Clears the shared key instead of the user's own. Only the owner may do this.
    #[serde(default)]
    shared: bool,
}

const fn scope(shared: bool) -> KeyScope {
    if shared { KeyScope::Shared } else { KeyScope::Own }
}

async fn list(
    Extension(state): Extension<Arc<ServerState>>,
    principal: Principal,
) -> Result<([(HeaderName, &'static str); 1], Answer<Vec<KeyEntry>>), ApiError> {
    let listed = state.vault.list(&principal.as_user()).map_err(|error| api_error(&principal, &error))?;
    Ok((NO_STORE, Answer(listed)))
}

async fn set(
    Extension(state): Extension<Arc<ServerState>>,
    principal: Principal,
    client: ClientInfo,
    Path(provider): Path<String>,
    Confidential(key): Confidential<NewKey<ProviderSecret>>,
) -> Result<StatusCode, ApiError> {
    let set = || {
        let provider = ProviderName::parse(&provider)?;
        state.vault.set(&principal.as_user(), scope(key.shared), &provider, &key.secret, &client)
    };
    set().map(|()| StatusCode::NO_CONTENT).map_err(|error| api_error(&principal, &error))
}

async fn clear(
    Extension(state): Extension<Arc<ServerState>>,
    principal: Principal,
    client: ClientInfo,
    Path(provider): Path<String>,
    Params(params): Params<ClearKey>,
) -> Result<StatusCode, ApiError> {
    let clear = || {
        let provider = ProviderName::parse(&provider)?;
        state.vault.clear(&principal.as_user(), scope(params.shared), &provider, &client)
    };
    clear().map(|()| StatusCode::NO_CONTENT).map_err(|error| api_error(&principal, &error))
}

/// Maps a vault error to an HTTP error. Only the owner sees the path of the master key and how to fix it.
fn api_error(principal: &Principal, error: &VaultError) -> ApiError {
    let detail = format!("Nothing was changed: {error}.");
    match error {
        VaultError::Invalid(_) => ApiError::invalid(detail),
        VaultError::NotOwner => ApiError::forbidden(&detail),
        VaultError::Missing => ApiError::new(StatusCode::NOT_FOUND, "not_found", detail),
        VaultError::LimitReached { .. } => ApiError::new(StatusCode::CONFLICT, "full", detail),
        VaultError::Corrupt { .. } => ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "damaged", detail),
        VaultError::Locked(_) => {
            tracing::error!(error = error as &dyn std::error::Error, "vault");
            let for_others =
                "Nothing was changed: the vault is locked. The owner of this machine can unlock it.";
            let detail = if principal.owner { detail } else { for_others.into() };
            ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "vault_locked", detail)
        }
        VaultError::Store(_) | VaultError::Identity(_) => {
            tracing::error!(error = error as &dyn std::error::Error, "vault");
            ApiError::internal()
        }
    }
}
