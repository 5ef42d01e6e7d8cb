//! The projector: from events to SQLite read models and workspace files, and from outside edits back to events.
//!
//! Everything here is a projection of the log: it follows the log, is idempotent by its positions, and can be rebuilt
//! from nothing to the same content. No append waits for it, and it never writes outside the workspace.

mod capture;
mod error;
mod history;
mod identify;
mod label;
mod ledger;
mod materialize;
mod progress;
mod projector;
pub mod query;
mod reconcile;
mod recover;
mod rows;
pub mod scan;
pub mod verify;
mod views;
pub mod watch;
pub mod workspace;

pub use capture::{CaptureIds, Captured, Extent};
pub use error::ProjectError;
pub use label::{label, short};
pub use progress::{Progress, ProgressPhase};
pub use projector::{CaughtUp, Lag, Mint, Projector};
pub use views::{Position, READ_MODELS, Views, ViewsError};
