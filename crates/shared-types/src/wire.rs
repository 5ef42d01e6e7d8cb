//! Messages between the server and the desktop, over HTTP and over the WebSocket of a tab.
//!
//! Events travel in their own JSON form (see [`StoredEvent`](crate::StoredEvent)). Everything else is here, so that
//! both sides compile against the same fields.

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

pub use account::{ApiToken, AuditLine, Me, NewToken, Passkey, Session, SignInLink, TokenScope};
pub use calls::{CallDetails, CallLine, CallStatus};
pub use checkpoints::{Checkpoint, Comparison, NewCheckpoint};
pub use commands::{
    CellCommand, CommandLimits, CommandNetwork, CommandResult, OpenCommand, StartCommand, StartedCommand,
};
pub use desktop::{DesktopAction, DesktopState, Gesture, Storage};
pub use files::{
    ChangeSeveral, Entry, FileMatch, Listing, MatchedIn, MoveBody, PathBody, UploadedFile, Version,
};
pub use health::Health;
pub use keys::{KeyEntry, KeyScope, NewKey};
pub use operations::{
    Change, ChangeResult, Operation, OperationDetails, Operations, RestoreRequest, RevertDirection,
    RevertOptions, Reverted, Side,
};
pub use parts::{PartKind, PartRule, PartState, PartStatus, PartsReport};
pub use problem::{ConflictView, Problem};
pub use runs::{
    Agent, AgentState, ControlRun, GrantLine, GrantList, LocalModelLine, ModelLine, ModelList,
    ModelTestResult, Questions, RoleLine, RunControl, RunCost, RunDetails, RunLine, RunList, RunQuestion,
    RunState, StartRun, Step, StepDetail, StepKind,
};
pub use services::{SearchLine, SearchTestResult, ServiceList, TelemetryLine};
pub use signing_in::{
    CeremonyStart, CreatedInvitation, FinishCeremony, Invitation, InvitationRequest, NewPasskey,
    RecoveryCodes, RecoveryLogin,
};
pub use socket::{FromClient, FromServer, SentEvent};
pub use terminals::{NewTerminal, Terminal, TerminalFrame, TerminalKind};
pub use tools::{McpServerKind, McpServerLine, McpServerState, McpToolLine};
