//! The jail backend: isolation by kernel namespaces, a system call allow list, landlock and control groups.
//!
//! The host starts a launcher (this same binary with another argument) and sends it a [`SharedSetup`] and a
//! [`JailPlan`] over a socket. A launcher that has only the first can be kept as a spare, so that the next cell
//! starts at once. The launcher forks the cell init, which builds the isolation and then serves the same socket, and
//! supervises it. When the host exits for any reason the socket closes; launcher and init end, and with them every
//! process in the cell.

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

use crate::cgroup::Groups;
use crate::policy::{Image, Policy};

/// The first instructions to the launcher: everything that is the same for all cells of an owner and image.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SharedSetup {
    pub(crate) groups: Groups,
    pub(crate) base: RootSpec,
}

/// What the root file system consists of before it holds anything specific to one cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RootSpec {
    pub(crate) image: Image,
    /// The uid and gid outside the cell if root starts it; otherwise the starting user's own.
    pub(crate) outside: Option<u32>,
    /// The maximum bytes and files of each in-memory folder.
    #[serde(rename = "room")]
    pub(crate) tmpfs_limit: u64,
    pub(crate) files: u64,
}

impl SharedSetup {
    /// True if a launcher with this setup can become a cell that needs the other.
    fn is_compatible(&self, other: &Self) -> bool {
        self.base == other.base && self.groups.is_compatible(&other.groups)
    }
}

/// The instructions to the cell init.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct JailPlan {
    pub(crate) policy: Policy,
    /// The uid and gid outside the cell if root starts it; otherwise the starting user's own.
    pub(crate) outside: Option<u32>,
    pub(crate) groups: Groups,
}

/// The address inside a cell at which the proxy listens.
pub const PROXY: std::net::SocketAddrV4 = std::net::SocketAddrV4::new(std::net::Ipv4Addr::LOCALHOST, 3128);
