//! Exports and imports of a whole computer as one zip file.
//!
//! An archive holds one user's log up to one seq, the contents that its events name, and a manifest:
//!
//! ```text
//! log/events.jsonl              every stored event as it travels, one a line, payloads byte for byte
//! contents/{h[0..2]}/{sha256}   every content that an event names and that is here, sorted by hash
//! manifest.json                 last, because it sums the rest up: head, root, hashes, sizes, what is absent
//! ```
//!
//! No other entry may be in it. Contents above the inline limit are stored, not deflated, so an archive cannot hide
//! much more than its own size. [`export`] streams and holds only the list of what it wrote; [`Archive::verify`] reads
//! everything and writes nothing; only a [`Verified`] archive can be taken in, by [`adopt`] into an empty computer or
//! by [`plan_import`] and [`stage_contents`] into another.
//!
//! The layout is that of an RO-Crate without its description: a `ro-crate-metadata.json` at the top whose root dataset
//! has `log/events.jsonl`, `manifest.json` and each content as a `File` (with `contentSize`, `sha256` and, for files of
//! the workspace, their path as `name`) makes it one. Nothing has to move for that; the manifest's version goes up,
//! because a reader of version 1 refuses entries that it does not know.
//!
//! This module knows nothing of the workspace, the socket or the command line, and reads no clock.

mod adopt;
mod bring;
mod contents;
mod entry;
mod error;
mod events;
mod export;
mod limits;
mod manifest;
mod naming;
mod open;
mod reading;
mod source;
mod swap;
mod verify;

pub use adopt::adopt;
pub use bring::{Plan, plan_import, stage_contents};
pub use error::{EntryFault, ExportError, ImportError};
pub use export::export;
pub use limits::Limits;
pub use manifest::{ContentsSummary, EventsSummary, Manifest};
pub use open::Archive;
pub use source::Source;
pub use swap::{Interrupted, finish_interrupted};
pub use verify::Verified;

/// Told how much is done, and of how much. What is counted differs; the share is what matters.
pub type Progress<'a> = &'a dyn Fn(u64, u64);
