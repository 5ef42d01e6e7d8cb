//! The proxy as programs in a cell meet it: real sockets on loopback, with names and public addresses of the tests'
//! own making.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod addresses;
mod bounds;
mod cell;
mod fixture;
mod names;
mod plain;
mod smuggling;
mod tunnels;
