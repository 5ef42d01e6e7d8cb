//! `capability.*`: lasting permissions for agents.

use serde::{Deserialize, Serialize};

use crate::{GrantId, RunId};

/// Something that agents may do without asking again. Every field is always written, because snapshots hold it too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Grant {
    pub tool: Box<str>,
    /// What the tool may be used for: a pattern of paths, hosts or commands, as in the rules.
    pub pattern: Box<str>,
    /// The one run for which it is valid; all runs if absent.
    #[serde(default)]
    pub run: Option<RunId>,
}

/// The person gave agents a lasting permission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapabilityGrant {
    pub id: GrantId,
    pub grant: Grant,
}

/// The person revoked it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapabilityRevoke {
    pub id: GrantId,
}

events! {
    /// Lasting permissions for agents.
    CapabilityEvent {
        /// The person gave agents a lasting permission.
        "capability.grant" v 1 Final => Grant(CapabilityGrant),
        /// The person revoked it.
        "capability.revoke" v 1 Final => Revoke(CapabilityRevoke),
    }
}
