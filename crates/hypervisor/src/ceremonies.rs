//! The WebAuthn ceremonies: registering a passkey, and signing in with one.
//!
//! A ceremony takes two requests. The state between them is kept in memory for five minutes and used once. Only the
//! session that started a registration can finish it. Signing in needs no user name: the authenticator identifies the
//! user.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;
use shared_types::Timestamp;
use shared_types::wire::{CeremonyStart, Passkey};
use thiserror::Error;
use url::Url;
use webauthn_rs::prelude::{
    CredentialID, DiscoverableAuthentication, PasskeyRegistration, PublicKeyCredential,
    RegisterPublicKeyCredential, Uuid, WebauthnError,
};
use webauthn_rs::{Webauthn, WebauthnBuilder};

use crate::identity::{
    ClientInfo, IdentityError, IdentityStore, NewSession, RandomSecret, VerifiedSession, check_name, limits,
};

/// Why passkeys do not work at the configured address.
#[derive(Debug, Error)]
pub enum PasskeySetupError {
    #[error("{0} has no host name; passkeys do not work with IP addresses")]
    NoName(Url),
    #[error("passkeys cannot be set up for this address")]
    Webauthn(#[source] WebauthnError),
}

/// The server's state of a registration.
#[derive(Debug)]
struct PendingRegistration {
    session: String,
    name: String,
    state: PasskeyRegistration,
}

/// The pending ceremonies of one server. Registrations have their own queue, so that anonymous logins cannot push them
/// out.
#[derive(Debug)]
pub struct PasskeyCeremonies {
    webauthn: Webauthn,
    registrations: Mutex<PendingCeremonies<PendingRegistration>>,
    logins: Mutex<PendingCeremonies<DiscoverableAuthentication>>,
}

impl PasskeyCeremonies {
    pub fn new(origin: &Url) -> Result<Self, PasskeySetupError> {
        let name = origin.domain().ok_or_else(|| PasskeySetupError::NoName(origin.clone()))?;
        let webauthn = WebauthnBuilder::new(name, origin)
            .and_then(|builder| builder.rp_name("ChoirOS").build())
            .map_err(PasskeySetupError::Webauthn)?;
        Ok(Self { webauthn, registrations: Mutex::default(), logins: Mutex::default() })
    }

    /// Starts to register a passkey for the account of a session.
    pub fn start_registration(
        &self,
        identity: &IdentityStore,
        session: &VerifiedSession,
        name: &str,
    ) -> Result<CeremonyStart, IdentityError> {
        // Checked first, so that an invalid name fails before the user touches the authenticator.
        let name = check_name(name)?;
        let user = &session.user;
        let known: Vec<CredentialID> =
            identity.passkey_keys(&user.id)?.iter().map(|key| key.cred_id().clone()).collect();
        let handle = Uuid::from_bytes(user.handle);
        let (options, state) = self
            .webauthn
            .start_passkey_registration(handle, user.id.as_str(), &user.name, Some(known))
            .map_err(failed)?;
        let mut options = as_value(&options)?;
        // The library makes discoverable credentials optional, but signing in without a name depends on them.
        if let Some(selection) = options.pointer_mut("/publicKey/authenticatorSelection") {
            selection["residentKey"] = "required".into();
            selection["requireResidentKey"] = true.into();
        }
        let registration = PendingRegistration { session: session.id.clone(), name, state };
        let ceremony = lock(&self.registrations).put(identity.now(), registration)?;
        Ok(CeremonyStart { ceremony, options })
    }

    /// Adds the passkey to the account of the session that started the registration.
    pub fn finish_registration(
        &self,
        identity: &IdentityStore,
        session: &VerifiedSession,
        ceremony: &str,
        credential: &RegisterPublicKeyCredential,
        client: &ClientInfo,
    ) -> Result<Passkey, IdentityError> {
        let pending = lock(&self.registrations).take(identity.now(), ceremony);
        let Some(pending) = pending.filter(|pending| pending.session == session.id) else {
            return Err(IdentityError::Missing("registration; it may have expired: start again"));
        };
        let key = self.webauthn.finish_passkey_registration(credential, &pending.state).map_err(failed)?;
        identity.add_passkey(&session.user.id, &pending.name, &key, client)
    }

    /// Starts a login. The user is not known yet.
    pub fn start_login(&self, identity: &IdentityStore) -> Result<CeremonyStart, IdentityError> {
        let (mut options, state) = self.webauthn.start_discoverable_authentication().map_err(failed)?;
        // The library asks for conditional mediation (autofill in a text field), but our page has a button.
        options.mediation = None;
        let ceremony = lock(&self.logins).put(identity.now(), state)?;
        Ok(CeremonyStart { ceremony, options: as_value(&options)? })
    }

    pub fn finish_login(
        &self,
        identity: &IdentityStore,
        ceremony: &str,
        credential: &PublicKeyCredential,
        client: &ClientInfo,
    ) -> Result<NewSession, IdentityError> {
        let state = lock(&self.logins).take(identity.now(), ceremony);
        let Some(state) = state else { return identity.refuse_sign_in(client, "passkey") };
        let Ok((handle, id)) = self.webauthn.identify_discoverable_authentication(credential) else {
            return identity.refuse_sign_in(client, "passkey");
        };
        let stored = identity.passkey(id)?.filter(|stored| stored.user.handle == *handle.as_bytes());
        let Some(mut stored) = stored else { return identity.refuse_sign_in(client, "passkey") };
        match self.webauthn.finish_discoverable_authentication_v2(credential, state, &stored.key) {
            Ok(result) => {
                stored.key.update_credential(&result);
                identity.sign_in_with_passkey(stored, client)
            }
            Err(error) => {
                tracing::info!(%error, user = %stored.user.id, "passkey refused");
                identity.refuse_sign_in(client, "passkey")
            }
        }
    }
}

fn failed(error: WebauthnError) -> IdentityError {
    IdentityError::Invalid(format!("the passkey was not accepted: {error}"))
}

fn as_value(options: &impl serde::Serialize) -> Result<Value, IdentityError> {
    serde_json::to_value(options).map_err(|e| IdentityError::Corrupt(e.to_string()))
}

fn lock<T>(pending: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    pending.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ceremonies that wait for their second request, oldest first.
#[derive(Debug)]
struct PendingCeremonies<T>(VecDeque<(Timestamp, String, T)>);

impl<T> Default for PendingCeremonies<T> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<T> PendingCeremonies<T> {
    fn put(&mut self, now: Timestamp, value: T) -> Result<String, IdentityError> {
        self.drop_expired(now);
        if self.0.len() >= limits::MAX_CEREMONIES {
            self.0.pop_front();
        }
        let id = RandomSecret::generate()?.reveal();
        self.0.push_back((now, id.clone(), value));
        Ok(id)
    }

    fn take(&mut self, now: Timestamp, id: &str) -> Option<T> {
        self.drop_expired(now);
        let at = self.0.iter().position(|(_, other, _)| other == id)?;
        self.0.remove(at).map(|(_, _, value)| value)
    }

    fn drop_expired(&mut self, now: Timestamp) {
        self.0.retain(|(started, _, _)| now.millis() - started.millis() < limits::CEREMONY_TIMEOUT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[test]
    fn a_ceremony_is_finished_once_and_in_time() {
        let mut pending = PendingCeremonies::default();
        let (first, second) = (pending.put(at(0), 1).unwrap(), pending.put(at(0), 2).unwrap());
        assert_eq!(pending.take(at(1), &first), Some(1));
        assert_eq!(pending.take(at(1), &first), None);
        assert_eq!(pending.take(at(limits::CEREMONY_TIMEOUT), &second), None);
    }

    #[test]
    fn a_flood_of_ceremonies_pushes_out_the_oldest() {
        let mut pending = PendingCeremonies::default();
        let first = pending.put(at(0), 0).unwrap();
        for n in 0..limits::MAX_CEREMONIES {
            pending.put(at(0), n).unwrap();
        }
        assert_eq!(pending.0.len(), limits::MAX_CEREMONIES);
        assert_eq!(pending.take(at(1), &first), None);
    }
}
