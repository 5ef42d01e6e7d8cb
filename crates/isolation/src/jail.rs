//! The jail: walls made of the kernel's namespaces, an allow list of system calls, landlock and control groups.
//!
//! The host starts a launcher (this very binary under another name) and sends it a [`Ground`] and a [`Plan`] over a
//! socket; a launcher that has only the first may be kept waiting, so that the next cell starts at once. The launcher builds the walls and becomes the supervisor of the first process inside, which serves as the agent on the
//! same socket. When the host goes away, for whatever reason, the socket closes and both end, and with them all that
//! runs inside.

pub(crate) mod cgroup;
pub(crate) mod confine;
pub(crate) mod host;
pub(crate) mod identity;
pub(crate) mod launcher;
pub(crate) mod probe;
pub(crate) mod root;
mod spare;
mod syscalls;
pub(crate) mod warden;

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

pub use host::Jail;
pub(crate) use launcher::launch;

use crate::cell::Usage;
use crate::policy::Policy;
use cgroup::Groups;

/// What the launcher has to know first: it goes as far with it as every cell of an owner is alike.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Ground {
    /// The uid and gid outside, when root starts the cell; its own for anybody else.
    pub(crate) outside: Option<u32>,
    pub(crate) groups: Groups,
}

impl Ground {
    /// True if a cell that wants the other can stand on this one.
    fn is_like(&self, other: &Self) -> bool {
        self.outside == other.outside && self.groups.is_like(&other.groups)
    }
}

/// All that the launcher has to know.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) policy: Policy,
    /// A folder on which the new root is mounted.
    pub(crate) root: PathBuf,
    /// The uid and gid outside, when root starts the cell; its own for anybody else.
    pub(crate) outside: Option<u32>,
    pub(crate) groups: Groups,
}

/// The launcher's last word, on its standard output.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Verdict {
    Failed { step: String, reason: String },
    Over(Usage),
}

/// The address inside at which our proxy listens.
pub const PROXY: std::net::SocketAddrV4 = std::net::SocketAddrV4::new(std::net::Ipv4Addr::LOCALHOST, 3128);
