//! What the server of a computer and its desktop say to each other, over HTTP and over the one WebSocket of a tab.
//!
//! Events travel in their own JSON form (see [`StoredEvent`](crate::StoredEvent)). Everything else is here, so that a
//! field that one side forgets does not compile on the other.

mod account;
mod calls;
mod checkpoints;
mod commands;
mod desktop;
mod files;
mod health;
mod keys;
mod operations;
mod parts;
mod problem;
mod runs;
mod services;
mod signing_in;
mod socket;
mod terminals;
mod tools;

pub use account::{ApiToken, AuditLine, Link, Me, NewToken, Passkey, Scope, Session};
pub use calls::{CallDetails, CallRow, CallStatus};
pub use checkpoints::{Checkpoint, Comparison, NewCheckpoint};
pub use commands::{OpenCommand, Ran, RunCommand, RunLimits, RunNetwork, StartCommand, StartedCommand};
pub use desktop::{DesktopAction, DesktopState, Gesture, Storage};
pub use files::{AtPath, Entry, Found, FromTo, Listing, Matched, Version};
pub use health::Health;
pub use keys::{KeyEntry, KeyScope, NewKey};
pub use operations::{
    Change, Done, Operation, OperationDetail, Operations, RestoreTo, Revert, RevertDirection, Reverted, Side,
};
pub use parts::{PartKind, PartRule, PartState, PartStatus, PartsReport};
pub use problem::{Clash, Problem};
pub use runs::{
    Agent, AgentState, GestureOnRun, GrantLine, GrantList, LocalModelLine, ModelLine, ModelList, ModelTried,
    Questions, RoleLine, RunCost, RunDetails, RunGesture, RunLine, RunList, RunQuestion, RunState, StartRun,
    Step, StepKind, StepParts,
};
pub use services::{SearchLine, SearchTried, ServiceList, TelemetryLine};
pub use signing_in::{
    CeremonyStart, FinishCeremony, Invitation, Invite, Invited, NewPasskey, Recover, RecoveryCodes,
};
pub use socket::{FromClient, FromServer, SentEvent};
pub use terminals::{NewTerminal, Terminal, TerminalFrame, TerminalKind};
pub use tools::{ToolLine, ToolServerKind, ToolServerLine, ToolServerState};
