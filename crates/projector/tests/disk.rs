//! The layer that touches the disk, against a real one: hostile things, faults, ignore rules and the watcher.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "disk/fixture.rs"]
mod fixture;
#[path = "disk/full.rs"]
mod full;
#[path = "disk/hostile.rs"]
mod hostile;
#[path = "disk/ignoring.rs"]
mod ignoring;
#[path = "disk/placing.rs"]
mod placing;
#[path = "disk/scanning.rs"]
mod scanning;
#[path = "disk/stat_cache.rs"]
mod stat_cache;
#[path = "disk/swapping.rs"]
mod swapping;
#[path = "disk/touching.rs"]
mod touching;
#[path = "disk/watching.rs"]
mod watching;
