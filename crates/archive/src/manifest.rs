//! `manifest.json`: what an archive is, and what everything in it must come to.

use serde::{Deserialize, Serialize};
use shared_types::{ChainHash, ContentHash, RootHash, Seq, Timestamp, UserId};

use super::ImportError;

/// The sum of an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    pub format: String,
    pub version: u32,
    /// Whose computer it was.
    pub user: UserId,
    /// The newest event.
    pub seq: Seq,
    /// The link of the newest event, which covers all before it.
    pub hash: ChainHash,
    /// The root of the view that replay reaches, and which version of views hashes to it.
    pub root: RootHash,
    #[serde(default = "first")]
    pub view: u32,
    pub created: Timestamp,
    pub events: EventsSummary,
    pub contents: ContentsSummary,
    /// Contents that events name and that were purged, sorted.
    pub purged: Vec<ContentHash>,
    /// Contents that events name and that were not there for another reason, sorted.
    pub missing: Vec<ContentHash>,
}

/// The first archives did not say it.
fn first() -> u32 {
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

/// What is read before anything else, so that a newer archive is called that and not damaged.
#[derive(Deserialize)]
struct Kind {
    format: String,
    version: u32,
}

impl Manifest {
    pub const FORMAT: &'static str = "choir-archive";
    pub const VERSION: u32 = 2;

    pub(super) fn parse(bytes: &[u8]) -> Result<Self, ImportError> {
        let wrong = |e: serde_json::Error| ImportError::Manifest { reason: e.to_string() };
        let kind: Kind = serde_json::from_slice(bytes).map_err(wrong)?;
        if kind.format != Self::FORMAT {
            return Err(ImportError::Manifest { reason: format!("its format is {:?}", kind.format) });
        }
        if !(1..=Self::VERSION).contains(&kind.version) {
            return Err(ImportError::Version { found: kind.version, known: Self::VERSION });
        }
        let manifest: Self = serde_json::from_slice(bytes).map_err(wrong)?;
        for (name, list) in [("purged", &manifest.purged), ("missing", &manifest.missing)] {
            if !list.is_sorted_by(|a, b| a < b) {
                return Err(ImportError::Manifest { reason: format!("its list {name} is not in order") });
            }
        }
        Ok(manifest)
    }

    /// Everything that the archive says it does not hold.
    pub(super) fn absent(&self) -> impl Iterator<Item = ContentHash> {
        self.purged.iter().chain(&self.missing).copied()
    }
}
