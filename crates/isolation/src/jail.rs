//! The jail: walls made of the kernel's namespaces, an allow list of system calls, landlock and control groups.
//!
//! The host starts a launcher (this very binary under another name) and sends it a [`SharedSetup`] and a [`JailPlan`] over a
//! socket; a launcher that has only the first may be kept waiting, so that the next cell starts at once. The launcher
//! becomes the supervisor of the first process inside, which builds the walls and serves as the agent on the same
//! socket. When the host goes away, for whatever reason, the socket closes and both end, and with them all that runs
//! inside.

pub(crate) mod cgroup;
pub(crate) mod confine;
pub(crate) mod host;
pub(crate) mod identity;
pub(crate) mod launcher;
pub(crate) mod monitor;
pub(crate) mod probe;
pub(crate) mod root;
mod spare;
mod syscalls;

use serde::{Deserialize, Serialize};

pub use host::Jail;
pub(crate) use launcher::launch;

use crate::cell::Usage;
use crate::policy::{Image, Policy};
use cgroup::Groups;

/// What the launcher has to know first: it goes as far with it as the cells of an owner are alike.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SharedSetup {
    pub(crate) groups: Groups,
    pub(crate) base: RootSpec,
}

/// What a root is made of before it holds anything of one cell only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RootSpec {
    pub(crate) image: Image,
    /// The uid and gid outside, when root starts the cell; its own for anybody else.
    pub(crate) outside: Option<u32>,
    /// Bytes and files that each of its folders in memory may hold.
    pub(crate) room: u64,
    pub(crate) files: u64,
}

impl SharedSetup {
    /// True if a cell that wants the other can stand on this one.
    fn is_compatible(&self, other: &Self) -> bool {
        self.base == other.base && self.groups.is_compatible(&other.groups)
    }
}

/// All that the first process has to know.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct JailPlan {
    pub(crate) policy: Policy,
    /// The uid and gid outside, when root starts the cell; its own for anybody else.
    pub(crate) outside: Option<u32>,
    pub(crate) groups: Groups,
}

/// The launcher's last word, on its standard output.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum LaunchReport {
    Failed { step: String, reason: String },
    Ended(Usage),
}

/// The address inside at which our proxy listens.
pub const PROXY: std::net::SocketAddrV4 = std::net::SocketAddrV4::new(std::net::Ipv4Addr::LOCALHOST, 3128);
