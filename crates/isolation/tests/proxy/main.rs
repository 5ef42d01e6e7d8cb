//! The proxy as programs in a cell use it: real sockets on loopback, with the tests' own names and public addresses.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod addresses;
mod bounds;
mod cell;
mod fixture;
mod names;
mod plain;
mod smuggling;
mod tunnels;
