//! Commands in cells through the whole computer: the log, the disk and the cell.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../../../isolation/tests/attacks/attack.rs"]
#[allow(dead_code)]
mod attack;
mod attacks;
mod ignoring;
mod real_work;
mod test_computer;
mod transactions;
