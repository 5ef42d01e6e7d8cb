//! Cells as their callers use them, on the real kernel.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod cleanup;
mod fixture;
mod images;
mod limits;
mod running;
mod warm;
