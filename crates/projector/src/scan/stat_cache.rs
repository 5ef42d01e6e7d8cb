//! Decides when a file need not be read again, as git does. Pure: the caller keeps the entries and the clock.

use shared_types::payload::file::FileNode;

use crate::workspace::Stat;

/// File times come from the tick of the kernel's clock, which is coarser than the nanoseconds they are stored in.
const TICK_NS: i64 = 100_000_000;
/// Some file systems store whole or even seconds only.
const COARSE_TICK_NS: i64 = 3_000_000_000;
const SECOND_NS: i64 = 1_000_000_000;

/// The node at a path when it was last read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheEntry {
    pub stat: Stat,
    pub node: FileNode,
    /// The wall clock before the content was read, in nanoseconds since 1970.
    pub checked_at_ns: i64,
}

/// Whether a file with the stat `now` still holds the entry's node. A file that was changed at about the time of the
/// check can change again within the same tick of the clock and keep its stat: such an entry is never trusted, and the
/// file is read again.
pub fn is_trusted(entry: &CacheEntry, now: &Stat) -> bool {
    is_unchanged(&entry.stat, entry.checked_at_ns, now)
}

/// The same for the fields of an entry.
pub(crate) fn is_unchanged(then: &Stat, checked_at_ns: i64, now: &Stat) -> bool {
    let quiet_before = checked_at_ns.saturating_sub(tick(now));
    then == now && now.mtime_ns < quiet_before && now.ctime_ns < quiet_before
}

fn tick(stat: &Stat) -> i64 {
    let whole_seconds = stat.mtime_ns % SECOND_NS == 0 && stat.ctime_ns % SECOND_NS == 0;
    if whole_seconds { COARSE_TICK_NS } else { TICK_NS }
}
