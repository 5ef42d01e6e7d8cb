//! What a cell may see and do, as data. The caller writes the policy, and every backend applies it in the same way.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Everything that a cell is given. Anything not listed here does not exist in the cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    pub image: Image,
    pub mounts: Vec<Mount>,
    pub limits: Limits,
    pub network: Network,
    /// The complete environment of every command. Do not put secrets here: every process in the cell can read them.
    pub environment: BTreeMap<String, String>,
    /// The cell's owner. When root starts the cell, the owner determines the unprivileged uid under which it runs.
    pub owner: String,
}

impl Policy {
    /// A policy with one workspace, this machine's programs, default limits and no network.
    pub fn for_workspace(workspace: Mount, owner: impl Into<String>) -> Self {
        Self {
            image: Image::Host { tools: Vec::new() },
            mounts: vec![workspace],
            limits: Limits::default(),
            network: Network::None,
            environment: clean_environment(),
            owner: owner.into(),
        }
    }
}

/// The source of a cell's programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Image {
    /// This machine's programs, read-only: `/usr` and similar folders, and the folders listed here.
    Host { tools: Vec<PathBuf> },
    /// A folder with a complete root file system, read-only.
    Rootfs(PathBuf),
    /// A folder with an image in the OCI layout. A container unpacks it once.
    OciLayout(PathBuf),
}

/// A folder of the host that is mounted in the cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    pub source: PathBuf,
    /// An absolute path inside the cell.
    pub target: PathBuf,
    pub access: Access,
    /// Names directly in the folder that are hidden from the cell.
    pub hidden: Vec<String>,
    /// Paths of files relative to the folder that cannot be read, written or removed. Their names stay visible.
    #[serde(default)]
    pub covered: Vec<PathBuf>,
}

impl Mount {
    /// The workspace mount, with nothing hidden.
    pub fn workspace(source: impl Into<PathBuf>, access: Access) -> Self {
        Self {
            source: source.into(),
            target: WORKSPACE.into(),
            access,
            hidden: Vec::new(),
            covered: Vec::new(),
        }
    }
}

/// How a mounted folder may be accessed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    ReadOnly,
    /// Writes go to the folder itself.
    Direct,
    /// Writes go to `upper`, and the folder stays unchanged. `work` is the overlay's work folder, on the same file
    /// system as `upper`.
    Layered {
        upper: PathBuf,
        work: PathBuf,
    },
}

/// Resource limits of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Bytes of memory for all processes and their temporary files together.
    pub memory: u64,
    pub processes: u32,
    /// Percent of one processor.
    pub cpu_percent: u32,
    #[serde(with = "seconds")]
    pub time: Duration,
    /// Bytes written to layered folders.
    pub disk: u64,
    /// Files and folders created or changed in layered folders.
    pub files: u64,
    /// Bytes of output.
    pub output: u64,
    pub open_files: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory: 2 << 30,
            processes: 512,
            cpu_percent: 200,
            time: Duration::from_secs(600),
            disk: 4 << 30,
            files: 500_000,
            output: 16 << 20,
            open_files: 4096,
        }
    }
}

/// What a cell can reach on the network.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// Only the cell's own loopback.
    #[default]
    None,
    /// These hosts through the proxy: `example.org`, or `*.example.org` for all its subdomains.
    Allow(Vec<String>),
    /// Every public host through the proxy.
    Open,
}

impl Network {
    pub fn is_none(&self) -> bool {
        *self == Self::None
    }
}

/// A limit that a cell can exceed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    Memory,
    Processes,
    Time,
    Disk,
    Files,
    Output,
}

/// Where the workspace is mounted in a cell.
pub const WORKSPACE: &str = "/workspace";
/// The home folder in a cell: empty, in memory, discarded with the cell.
pub const HOME: &str = "/home";
/// The uid and gid of commands inside a cell.
pub const UID: u32 = 1000;

/// A minimal environment with nothing of the host's.
pub fn clean_environment() -> BTreeMap<String, String> {
    [
        ("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"),
        ("HOME", HOME),
        ("USER", "choir"),
        ("LOGNAME", "choir"),
        ("SHELL", "/bin/bash"),
        ("LANG", "C.UTF-8"),
        ("TMPDIR", "/tmp"),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .collect()
}

mod seconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(time.as_secs_f64())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        let seconds = f64::deserialize(deserializer)?;
        Duration::try_from_secs_f64(seconds).map_err(serde::de::Error::custom)
    }
}
