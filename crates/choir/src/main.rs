//! Placeholder until this crate is written in the next commits.
fn main() {}
