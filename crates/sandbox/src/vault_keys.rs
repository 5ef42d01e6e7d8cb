//! Keys of providers from the vault, for the agents of a user.

use std::sync::Arc;

use agent_host::agent_services::UserKeys;
use hypervisor::vault::{KeyReader, Vault};
use models::{ApiKey, ApiKeys};
use shared_types::UserId;

/// Keys of one user, read from the vault on each use.
struct VaultKeys(KeyReader);

impl ApiKeys for VaultKeys {
    fn key(&self, provider: &str) -> Option<ApiKey> {
        self.0.get(provider).map(|secret| ApiKey::new(secret.reveal()))
    }
}

/// The keys that a vault has for each user.
pub fn keys_per_user(vault: &Vault) -> UserKeys {
    let vault = vault.clone();
    Arc::new(move |user| Arc::new(VaultKeys(vault.reader(user))))
}

/// One user's keys, for every computer.
pub fn keys_of_user(vault: &Vault, user: UserId) -> UserKeys {
    let vault = vault.clone();
    Arc::new(move |_| Arc::new(VaultKeys(vault.reader(&user))))
}
