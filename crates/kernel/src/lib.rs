//! The pure model of one user's computer.
//!
//! [`decide`] is the only way to make an event, [`evolve`] the only way to change a [`View`], and [`react`] returns the
//! effects that an event starts. None of them reads a clock, a disk or a random number: time, ids and contents come in
//! with the command, so that the server, a replay on another machine and the browser reach the same state.

pub mod command;
pub mod conflict;
mod decide;
pub mod diff;
mod effect;
mod evolve;
mod files;
pub mod merge;
mod moves;
mod net_change;
mod operation;
mod react;
pub mod rejection;
pub mod run;
mod slice;
pub mod view;

pub use command::{Action, Base, Choice, Command, Contents, Origin, OutsideEdit, Resolutions, RunAction};
pub use conflict::{Conflict, ConflictSide};
pub use decide::{Decision, MAX_EVENTS, decide};
pub use effect::{Effect, EffectKind};
pub use evolve::evolve;
pub use files::Files;
pub use operation::{FileEffect, file_effects, touched_files};
pub use react::react;
pub use rejection::Rejection;
pub use slice::Slice;
pub use view::{Call, CallState, Conversation, SliceBytes, SnapshotError, VIEW_VERSION, View};
