//! Exports and imports of a whole computer as one zip file.
//!
//! An archive holds one user's log up to one seq, the contents that its events name, and a manifest:
//!
//! ```text
//! log/events.jsonl              every stored event, one a line, payloads byte for byte
//! contents/{h[0..2]}/{sha256}   every available content that an event names, sorted by hash
//! manifest.json                 last, because it describes the rest: head, root, hashes, sizes, absent contents
//! ```
//!
//! No other entry is allowed. Contents above the inline limit are stored, not deflated, so an archive cannot unpack
//! to much more than its own size. [`export`] streams and keeps only the list of what it wrote in memory;
//! [`Archive::verify`] reads everything and writes nothing; only a [`Verified`] archive can be imported, by [`adopt`]
//! into an empty computer or by [`plan_import`] and [`stage_contents`] into another.
//!
//! The layout is that of an RO-Crate without its description: adding a `ro-crate-metadata.json` at the top, whose
//! root dataset lists `log/events.jsonl`, `manifest.json` and each content as a `File` (with `contentSize`, `sha256`
//! and, for files of the workspace, their path as `name`), makes it one. No entry has to move for that; the
//! manifest's version goes up, because a reader of version 1 refuses unknown entries.
//!
//! This crate knows nothing of the workspace, the socket or the command line, and reads no clock.

mod adopt;
mod contents;
mod entry;
mod error;
mod events;
mod export;
mod import_files;
mod limits;
mod manifest;
mod open;
mod reading;
mod references;
mod source;
mod swap;
mod verify;

pub use adopt::adopt;
pub use error::{EntryFault, ExportError, ImportError};
pub use export::export;
pub use import_files::{ImportPlan, plan_import, stage_contents};
pub use limits::Limits;
pub use manifest::{ContentsSummary, EventsSummary, Manifest};
pub use open::Archive;
pub use source::Source;
pub use swap::{InterruptedImport, finish_interrupted};
pub use verify::Verified;

/// Receives how much is done, and of how much. The unit differs; only the ratio matters.
pub type Progress<'a> = &'a dyn Fn(u64, u64);
