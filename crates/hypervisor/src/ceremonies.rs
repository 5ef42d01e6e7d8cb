//! Passkeys: registering one, and signing in with one.
//!
//! Both are ceremonies of two requests. What the server must remember between them stays in memory, for five
//! minutes, and is used once. A registration belongs to the session that began it; nobody else can finish it.
//! Signing in asks for no name: the authenticator says whose passkey it offers.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;
use shared_types::Timestamp;
use shared_types::wire::{Begun, Passkey};
use thiserror::Error;
use url::Url;
use webauthn_rs::prelude::{
    CredentialID, DiscoverableAuthentication, PasskeyRegistration, PublicKeyCredential,
    RegisterPublicKeyCredential, Uuid, WebauthnError,
};
use webauthn_rs::{Webauthn, WebauthnBuilder};

use crate::identity::{Caller, Holder, Identity, IdentityError, NewSession, Secret, checked_name, spans};

/// Why passkeys cannot work at an address.
#[derive(Debug, Error)]
pub enum PasskeysError {
    #[error("{0} has no name that a passkey could be bound to; passkeys refuse IP addresses")]
    NoName(Url),
    #[error("passkeys cannot be set up for this address")]
    Webauthn(#[source] WebauthnError),
}

#[derive(Debug)]
struct Registering {
    session: String,
    name: String,
    state: PasskeyRegistration,
}

/// Both ceremonies, for one address. They are kept apart so that strangers who begin to sign in cannot push out a
/// registration.
#[derive(Debug)]
pub struct Passkeys {
    webauthn: Webauthn,
    registering: Mutex<Pending<Registering>>,
    entering: Mutex<Pending<DiscoverableAuthentication>>,
}

impl Passkeys {
    pub fn new(origin: &Url) -> Result<Self, PasskeysError> {
        let name = origin.domain().ok_or_else(|| PasskeysError::NoName(origin.clone()))?;
        let webauthn = WebauthnBuilder::new(name, origin)
            .and_then(|builder| builder.rp_name("ChoirOS").build())
            .map_err(PasskeysError::Webauthn)?;
        Ok(Self { webauthn, registering: Mutex::default(), entering: Mutex::default() })
    }

    /// Begins to add a passkey to the account of the session that asks.
    pub fn start_registration(
        &self,
        identity: &Identity,
        holder: &Holder,
        name: &str,
    ) -> Result<Begun, IdentityError> {
        // Said before the person has touched anything.
        let name = checked_name(name)?;
        let user = &holder.user;
        let known: Vec<CredentialID> =
            identity.passkey_keys(&user.id)?.iter().map(|key| key.cred_id().clone()).collect();
        let handle = Uuid::from_bytes(user.handle);
        let (options, state) = self
            .webauthn
            .start_passkey_registration(handle, user.id.as_str(), &user.name, Some(known))
            .map_err(failed)?;
        let mut options = as_value(&options)?;
        // The library leaves passkeys that say their user themselves to chance; signing in here depends on them.
        if let Some(selection) = options.pointer_mut("/publicKey/authenticatorSelection") {
            selection["residentKey"] = "required".into();
            selection["requireResidentKey"] = true.into();
        }
        let registering = Registering { session: holder.session.clone(), name, state };
        let ceremony = lock(&self.registering).put(identity.now(), registering)?;
        Ok(Begun { ceremony, options })
    }

    /// Adds the passkey to the account of the session that began this.
    pub fn finish_registration(
        &self,
        identity: &Identity,
        holder: &Holder,
        ceremony: &str,
        credential: &RegisterPublicKeyCredential,
        caller: &Caller,
    ) -> Result<Passkey, IdentityError> {
        let begun = lock(&self.registering).take(identity.now(), ceremony);
        let Some(begun) = begun.filter(|begun| begun.session == holder.session) else {
            return Err(IdentityError::Missing("registration; it may have taken too long: begin again"));
        };
        let key = self.webauthn.finish_passkey_registration(credential, &begun.state).map_err(failed)?;
        identity.add_passkey(&holder.user.id, &begun.name, &key, caller)
    }

    /// Begins to sign in, for whoever it may be.
    pub fn start_login(&self, identity: &Identity) -> Result<Begun, IdentityError> {
        let (mut options, state) = self.webauthn.start_discoverable_authentication().map_err(failed)?;
        // The library asks for the quiet form that fills in a text field; we have a button.
        options.mediation = None;
        let ceremony = lock(&self.entering).put(identity.now(), state)?;
        Ok(Begun { ceremony, options: as_value(&options)? })
    }

    pub fn finish_login(
        &self,
        identity: &Identity,
        ceremony: &str,
        credential: &PublicKeyCredential,
        caller: &Caller,
    ) -> Result<NewSession, IdentityError> {
        let state = lock(&self.entering).take(identity.now(), ceremony);
        let Some(state) = state else { return identity.refuse(caller, "passkey") };
        let Ok((handle, id)) = self.webauthn.identify_discoverable_authentication(credential) else {
            return identity.refuse(caller, "passkey");
        };
        let stored = identity.passkey(id)?.filter(|stored| stored.user.handle == *handle.as_bytes());
        let Some(mut stored) = stored else { return identity.refuse(caller, "passkey") };
        match self.webauthn.finish_discoverable_authentication_v2(credential, state, &stored.key) {
            Ok(result) => {
                stored.key.update_credential(&result);
                identity.enter_by_passkey(stored, caller)
            }
            Err(error) => {
                tracing::info!(%error, user = %stored.user.id, "passkey refused");
                identity.refuse(caller, "passkey")
            }
        }
    }
}

fn failed(error: WebauthnError) -> IdentityError {
    IdentityError::Invalid(format!("the passkey was not accepted: {error}"))
}

fn as_value(options: &impl serde::Serialize) -> Result<Value, IdentityError> {
    serde_json::to_value(options).map_err(|e| IdentityError::Damaged(e.to_string()))
}

fn lock<T>(pending: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    pending.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ceremonies that wait for their second half, oldest first.
#[derive(Debug)]
struct Pending<T>(VecDeque<(Timestamp, String, T)>);

impl<T> Default for Pending<T> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<T> Pending<T> {
    fn put(&mut self, now: Timestamp, value: T) -> Result<String, IdentityError> {
        self.forget(now);
        if self.0.len() >= spans::CEREMONIES {
            self.0.pop_front();
        }
        let id = Secret::generate()?.reveal();
        self.0.push_back((now, id.clone(), value));
        Ok(id)
    }

    fn take(&mut self, now: Timestamp, id: &str) -> Option<T> {
        self.forget(now);
        let at = self.0.iter().position(|(_, other, _)| other == id)?;
        self.0.remove(at).map(|(_, _, value)| value)
    }

    fn forget(&mut self, now: Timestamp) {
        self.0.retain(|(begun, _, _)| now.millis() - begun.millis() < spans::CEREMONY);
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
        let mut pending = Pending::default();
        let (first, second) = (pending.put(at(0), 1).unwrap(), pending.put(at(0), 2).unwrap());
        assert_eq!(pending.take(at(1), &first), Some(1));
        assert_eq!(pending.take(at(1), &first), None);
        assert_eq!(pending.take(at(spans::CEREMONY), &second), None);
    }

    #[test]
    fn a_flood_of_ceremonies_pushes_out_the_oldest() {
        let mut pending = Pending::default();
        let first = pending.put(at(0), 0).unwrap();
        for n in 0..spans::CEREMONIES {
            pending.put(at(0), n).unwrap();
        }
        assert_eq!(pending.0.len(), spans::CEREMONIES);
        assert_eq!(pending.take(at(1), &first), None);
    }
}
