//! The projector over a real log, a real writer and a real disk: rebuilt, stopped anywhere, edited from outside.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

#[path = "project/calling.rs"]
mod calling;
#[path = "project/computer.rs"]
mod computer;
#[path = "project/finding.rs"]
mod finding;
#[path = "project/full.rs"]
mod full;
#[path = "project/history.rs"]
mod history;
#[path = "project/ignoring.rs"]
mod ignoring;
#[path = "project/lagging.rs"]
mod lagging;
#[path = "project/losing.rs"]
mod losing;
#[path = "project/obstacles.rs"]
mod obstacles;
#[path = "project/outside.rs"]
mod outside;
#[path = "project/racing.rs"]
mod racing;
#[path = "project/rebuilding.rs"]
mod rebuilding;
#[path = "project/running.rs"]
mod running;
#[path = "project/scale.rs"]
mod scale;
#[path = "project/stopping.rs"]
mod stopping;
#[path = "project/undoing.rs"]
mod undoing;
