//! Archives of whole computers: out, verified, in again; and everything that must be refused.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

#[path = "archive/adopting.rs"]
mod adopting;
#[path = "archive/bringing.rs"]
mod bringing;
#[path = "archive/computer.rs"]
mod computer;
#[path = "archive/damage.rs"]
mod damage;
#[path = "archive/exporting.rs"]
mod exporting;
#[path = "archive/repack.rs"]
mod repack;
