//! `manifest.json`: the format, and the counts, sizes and hashes that the rest must have.

use serde::{Deserialize, Serialize};
use shared_types::{ChainHash, ContentHash, RootHash, Seq, Timestamp, UserId};

use super::ImportError;

/// Describes an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    pub format: String,
    pub version: u32,
    /// The user of the exported computer.
    pub user: UserId,
    /// The newest event.
    pub seq: Seq,
    /// The link of the newest event, which covers all before it.
    pub hash: ChainHash,
    /// The root of the replayed view, and the view version that was hashed.
    pub root: RootHash,
    #[serde(default = "first_view_version")]
    pub view: u32,
    pub created: Timestamp,
    pub events: EventsSummary,
    pub contents: ContentsSummary,
    /// Contents that events refer to and that were purged, sorted.
    pub purged: Vec<ContentHash>,
    /// Contents that events refer to and that were missing for another reason, sorted.
    pub missing: Vec<ContentHash>,
}

/// The first archives have no view version.
fn first_view_version() -> u32 {
    1
}

/// `log/events.jsonl` as bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventsSummary {
    pub sha256: ContentHash,
    pub size: u64,
}

/// All contents together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContentsSummary {
    pub count: u64,
    pub size: u64,
}

/// Read first, so that a newer archive is reported as newer, not as damaged.
#[derive(Deserialize)]
struct FormatHeader {
    format: String,
    version: u32,
}

impl Manifest {
    pub const FORMAT: &'static str = "choir-archive";
    pub const VERSION: u32 = 2;

    pub(super) fn parse(bytes: &[u8]) -> Result<Self, ImportError> {
        let wrong = |e: serde_json::Error| ImportError::Manifest { reason: e.to_string() };
        let header: FormatHeader = serde_json::from_slice(bytes).map_err(wrong)?;
        if header.format != Self::FORMAT {
            return Err(ImportError::Manifest { reason: format!("its format is {:?}", header.format) });
        }
        if !(1..=Self::VERSION).contains(&header.version) {
            return Err(ImportError::Version { found: header.version, known: Self::VERSION });
        }
        let manifest: Self = serde_json::from_slice(bytes).map_err(wrong)?;
        for (name, list) in [("purged", &manifest.purged), ("missing", &manifest.missing)] {
            if !list.is_sorted_by(|a, b| a < b) {
                return Err(ImportError::Manifest { reason: format!("its list {name} is not in order") });
            }
        }
        Ok(manifest)
    }

    /// All contents that the archive declares absent.
    pub(super) fn absent(&self) -> impl Iterator<Item = ContentHash> {
        self.purged.iter().chain(&self.missing).copied()
    }
}
