//! Settings: passkeys, sessions, tokens, recovery codes, people.

// Passkeys.
pub(crate) const PASSKEYS_ABOUT: &str =
    "A passkey signs you in with this device's lock: no password, nothing to type.";
pub(crate) const PASSKEY_NAME: &str = "Name of the passkey";
pub(crate) const PASSKEY_NAME_EXAMPLE: &str = "Name, such as Laptop";
pub(crate) const THIS_DEVICE: &str = "This device";
pub(crate) const ADD_PASSKEY: &str = "Add a passkey";
pub(crate) const PASSKEY_ADDED: &str = "Passkey added";
pub(crate) const PASSKEY_REMOVED: &str = "Passkey removed";
pub(crate) const NO_PASSKEYS: &str =
    "There is none yet. Until then only a link from the machine itself signs you in.";

pub(crate) fn added(added: &str, used: Option<&str>) -> String {
    match used {
        Some(used) => format!("added {added}, used {used}"),
        None => format!("added {added}"),
    }
}

pub(crate) fn remove(name: &str) -> String {
    format!("Remove {name}")
}

// Sessions.
pub(crate) const SESSIONS_ABOUT: &str = "Every browser that is signed in. Ending one signs it out at once.";
pub(crate) const THIS_SESSION: &str = "this one";
pub(crate) const END: &str = "End";
pub(crate) const SESSION_ENDED: &str = "Session ended";

pub(crate) fn browser_on(browser: &str, system: &str) -> String {
    format!("{browser} on {system}")
}

pub(crate) fn session(address: &str, seen: &str, since: &str) -> String {
    format!("{address} · seen {seen} · since {since}")
}

// Tokens.
pub(crate) const TOKENS_ABOUT: &str =
    "For scripts. A token can do only what its scopes say, and its secret is shown once.";
pub(crate) const TOKEN_NAME: &str = "Name of the token";
pub(crate) const TOKEN_NAME_EXAMPLE: &str = "What it is for";
pub(crate) const SCOPE_READ: &str = "read";
pub(crate) const SCOPE_WRITE: &str = "write";
pub(crate) const SCOPE_TERMINAL: &str = "terminal";
pub(crate) const SCOPE_ACCOUNT: &str = "account";
pub(crate) const HOW_LONG: &str = "How long";
pub(crate) const DAYS_30: &str = "30 days";
pub(crate) const DAYS_90: &str = "90 days";
pub(crate) const A_YEAR: &str = "a year";
pub(crate) const FOR_EVER: &str = "for ever";
pub(crate) const MAKE: &str = "Make";
pub(crate) const COPY_NOW: &str = "Copy it now; it will not be shown again.";
pub(crate) const TOKEN_REVOKED: &str = "Token revoked";

pub(crate) fn token(scopes: &str, made: &str, ends: Option<&str>) -> String {
    match ends {
        Some(ends) => format!("{scopes} · made {made} · ends {ends}"),
        None => format!("{scopes} · made {made}"),
    }
}

pub(crate) fn revoke(name: &str) -> String {
    format!("Revoke {name}")
}

// Recovery codes.
pub(crate) const CODES_ABOUT: &str = "Ten codes, each good for one sign-in, for the day when every passkey is lost. Making new ones ends the old ones. Keep them on paper.";
pub(crate) const MAKE_CODES: &str = "Make ten new codes";
pub(crate) const CODES_SHOWN_ONCE: &str = "They are shown only now.";
pub(crate) const COPY_ALL: &str = "Copy all";

// People.
pub(crate) const PEOPLE_ABOUT: &str = "Each person you invite gets a desktop, files and a history of their own on this machine. Neither of you sees what belongs to the other.";
pub(crate) const PEOPLE_AND_SHELLS: &str = "A plain shell reaches everything on the machine, so none is offered while there is more than one account.";
pub(crate) const PERSON_NAME: &str = "Name of the person";
pub(crate) const PERSON_NAME_EXAMPLE: &str = "Their name";
pub(crate) const INVITE: &str = "Invite";
pub(crate) const NO_INVITATIONS: &str = "No invitation is open.";
pub(crate) const INVITATION_WITHDRAWN: &str = "Invitation withdrawn";

pub(crate) fn give_link(name: &str, until: &str) -> String {
    format!("Give this link to {name}. It works once, until {until}, and is shown only now.")
}

pub(crate) fn not_accepted(until: &str) -> String {
    format!("not accepted yet · until {until}")
}

pub(crate) fn withdraw(name: &str) -> String {
    format!("Withdraw the invitation of {name}")
}
