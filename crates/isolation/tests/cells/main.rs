//! Cells as their users meet them, on the real kernel.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod foreign;
mod house;
mod leaving;
mod limits;
mod running;
mod warm;
