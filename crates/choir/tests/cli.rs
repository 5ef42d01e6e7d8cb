//! The real binary on real folders: arguments in, output and files on disk out.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "cli/agents.rs"]
mod agents;
#[path = "cli/approving.rs"]
mod approving;
#[path = "cli/commands.rs"]
mod commands;
#[path = "cli/concurrency.rs"]
mod concurrency;
#[path = "cli/conflicts.rs"]
mod conflicts;
#[path = "cli/damage.rs"]
mod damage;
#[path = "cli/disks.rs"]
mod disks;
#[path = "cli/help.rs"]
mod help;
#[path = "cli/history.rs"]
mod history;
#[path = "cli/holder.rs"]
mod holder;
#[path = "cli/input.rs"]
mod input;
#[path = "cli/keys.rs"]
mod keys;
#[path = "cli/killing.rs"]
mod killing;
#[path = "cli/large.rs"]
mod large;
#[path = "cli/links.rs"]
mod links;
#[path = "cli/machine.rs"]
mod machine;
#[path = "cli/models.rs"]
mod models;
#[path = "cli/older_version.rs"]
mod older_version;
#[path = "cli/outside.rs"]
mod outside;
#[path = "cli/process.rs"]
mod process;
#[path = "cli/running.rs"]
mod running;
#[path = "cli/scenario.rs"]
mod scenario;
#[path = "cli/servers.rs"]
mod servers;
#[path = "cli/services.rs"]
mod services;
#[path = "cli/test_computer.rs"]
mod test_computer;
#[path = "cli/undo.rs"]
mod undo;
#[path = "cli/watching.rs"]
mod watching;
#[path = "cli/wire.rs"]
mod wire;
