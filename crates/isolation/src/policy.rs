//! What a cell may see and do: data, written by whoever starts it and applied by every backend in the same way.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Everything that a cell is given. What is not named here is not there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    pub image: Image,
    pub mounts: Vec<Mount>,
    pub limits: Limits,
    pub network: Network,
    /// All variables that a command finds. Secrets do not belong here: everything inside can read them.
    pub environment: BTreeMap<String, String>,
    /// Whose cell it is. When root starts it, this decides the unprivileged uid under which it runs.
    pub owner: String,
}

impl Policy {
    /// A workspace with this machine's programs, the usual limits and no network.
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

/// Where the programs come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Image {
    /// The programs of this machine, read-only: `/usr` with its like, and the folders named here.
    Host { tools: Vec<PathBuf> },
    /// A folder that holds a whole root file system, read-only.
    Rootfs(PathBuf),
    /// A folder that holds an image in the OCI layout, which a container unpacks once.
    OciLayout(PathBuf),
}

/// A folder of the host inside the cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    pub source: PathBuf,
    /// An absolute path inside.
    pub target: PathBuf,
    pub access: Access,
    /// Names directly in the folder that must not be seen.
    pub hidden: Vec<String>,
    /// Files anywhere in the folder, relative to it, that can be neither read, written nor taken away. Their names show.
    #[serde(default)]
    pub covered: Vec<PathBuf>,
}

impl Mount {
    /// A folder as the workspace, with nothing in it hidden.
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

/// What may be done to a mounted folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    ReadOnly,
    /// Writes go to the folder itself.
    Direct,
    /// Writes go to `upper`, and the folder stays as it is. `work` is the kernel's, on the same file system.
    Layered {
        upper: PathBuf,
        work: PathBuf,
    },
}

/// What a cell may use.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Bytes of memory, all processes and their temporary files together.
    pub memory: u64,
    pub processes: u32,
    /// Processors, in hundredths.
    pub cpu_percent: u32,
    #[serde(with = "seconds")]
    pub time: Duration,
    /// Bytes written to layered folders.
    pub disk: u64,
    /// Files and folders made or changed in layered folders.
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

/// What of the network can be reached.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// Only the cell's own loopback.
    #[default]
    None,
    /// These hosts through our proxy: `example.org`, or `*.example.org` for all below it.
    Allow(Vec<String>),
    /// Every public host through our proxy.
    Open,
}

impl Network {
    pub fn is_none(&self) -> bool {
        *self == Self::None
    }
}

/// A limit that can be met.
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

/// Where the workspace stands inside.
pub const WORKSPACE: &str = "/workspace";
/// The home folder inside: empty, in memory, gone with the cell.
pub const HOME: &str = "/home";
/// Who a command is inside.
pub const UID: u32 = 1000;

/// A clean environment: a search path, a home, a language, and no trace of the host's.
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
