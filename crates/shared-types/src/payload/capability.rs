//! `capability.*`: what the person allowed agents for more than once.

use serde::{Deserialize, Serialize};

use crate::{GrantId, RunId};

/// Something that agents may do without asking again. Every field is written: a snapshot holds it too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Grant {
    pub tool: Box<str>,
    /// What of it: a pattern of paths, hosts or commands, as the rules have them.
    pub pattern: Box<str>,
    /// The one run in which it holds; in all of them, if absent.
    #[serde(default)]
    pub run: Option<RunId>,
}

/// The person allowed something for more than once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapabilityGrant {
    pub id: GrantId,
    pub grant: Grant,
}

/// The person took it back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapabilityRevoke {
    pub id: GrantId,
}

events! {
    /// What the person allowed agents for more than once.
    CapabilityEvent {
        /// The person allowed something for more than once.
        "capability.grant" v 1 Final => Grant(CapabilityGrant),
        /// The person took it back.
        "capability.revoke" v 1 Final => Revoke(CapabilityRevoke),
    }
}
