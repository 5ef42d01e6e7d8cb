//! Archives of whole computers: exported, verified and imported; and all that must be refused.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

#[path = "archive/adopting.rs"]
mod adopting;
#[path = "archive/computer.rs"]
mod computer;
#[path = "archive/damage.rs"]
mod damage;
#[path = "archive/exporting.rs"]
mod exporting;
#[path = "archive/importing.rs"]
mod importing;
#[path = "archive/repack.rs"]
mod repack;
