//! The server of computers: routes, tabs, terminals, the registry, and the supervised parts of each open computer.

pub mod api;
pub mod desk;
pub mod hold;
pub mod host;
pub mod machine;
pub mod registry;
pub mod startup;
mod vault_keys;
pub mod welcome;

pub use vault_keys::{keys_of_each, keys_of_one};
