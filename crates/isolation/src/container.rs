//! The container: the same policy and the same agent, with jail_plan that an OCI runtime builds.
//!
//! The host starts a launcher, which has a mount namespace of its own. In it stands a bundle in memory: what the OCI
//! format cannot say (layers over folders whose owners are mapped) is mounted there beforehand, the rest is written as
//! `config.json`. The launcher then starts the runtime, which hands the control socket to the agent inside, and waits.
//! The agent enters a user namespace, starts anew in it and puts the last jail_plan around itself, which are the jail's:
//! limits, no capabilities, landlock, and the list of system calls. When the host goes away the socket closes, the launcher ends
//! what runs, and bundle and state are gone with its mount namespace.

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

/// All that the launcher has to know. The agent is told `jail_plan`.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct ContainerPlan {
    jail_plan: jail::JailPlan,
    /// A folder on which the bundle is mounted.
    bundle: PathBuf,
    runtime: Runtime,
    /// What the container is called, among all of this machine.
    name: String,
    group_paths: GroupPaths,
}
