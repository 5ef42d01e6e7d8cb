//! Signing in: the screen before the desktop, and what passkeys say.

pub(crate) const CHOIR_OS: &str = "ChoirOS";
pub(crate) const LEAD: &str = "This computer is running. Sign in to open its desktop.";
pub(crate) const SESSION_ENDED: &str = "This session has ended. Sign in again to go on.";
pub(crate) const WITH_PASSKEY: &str = "Sign in with a passkey";
pub(crate) const USER: &str = "User";
pub(crate) const RECOVERY_CODE: &str = "Recovery code";
pub(crate) const WITH_CODE: &str = "Sign in with the code";
pub(crate) const USE_CODE: &str = "Use a recovery code";
// "No passkey yet? On the machine itself, run `choir link` and open the link it prints."
pub(crate) const NO_PASSKEY_YET: &str = "No passkey yet? On the machine itself, run ";
pub(crate) const LINK_COMMAND: &str = "choir link";
pub(crate) const OPEN_PRINTED_LINK: &str = " and open the link it prints.";

// Passkeys.
pub(crate) const PASSKEY_NOT_USED: &str = "The passkey was not used.";
pub(crate) const NO_PASSKEYS_HERE: &str =
    "This browser cannot use passkeys on this page. Use a recovery code or a sign-in link.";
pub(crate) const CANCELLED: &str = "It was cancelled, or took too long. Nothing was changed; try again.";
pub(crate) const ALREADY_HERE: &str = "This device already has a passkey for this account.";
