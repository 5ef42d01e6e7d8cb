//! The container backend: the same policy and the same cell init, isolated by an OCI runtime.
//!
//! The host starts a launcher, which has its own mount namespace and builds a bundle in memory there. What the OCI
//! format cannot express (overlays with mapped owners) is mounted in the bundle; the rest goes into `config.json`.
//! The launcher then starts the runtime, which passes the control socket to the cell init. The init enters a user
//! namespace, re-executes itself in it and applies the last isolation steps of the jail: resource limits, no
//! capabilities, landlock, and the system call filter. When the host exits, the socket closes and the launcher ends
//! the container; bundle and state vanish with its mount namespace.

mod bundle;
mod groups;
mod host;
mod image;
mod init;

mod launcher;
mod program;
mod runtime;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use host::Container;
pub(crate) use init::{enter, serve};
pub(crate) use launcher::launch;

use crate::jail;
use groups::GroupPaths;
use runtime::Runtime;

/// The launcher's instructions. The cell init receives only `jail_plan`.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct ContainerPlan {
    jail_plan: jail::JailPlan,
    /// The folder on which the bundle is mounted.
    bundle: PathBuf,
    runtime: Runtime,
    /// The container's name, unique on this machine.
    name: String,
    group_paths: GroupPaths,
}
