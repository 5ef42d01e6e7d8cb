//! The server of computers: routes, tabs, terminals, the registry, and the supervised parts of each open computer.

pub mod api;
pub mod computer_host;
pub mod machine;
pub mod open_computer;
pub mod registry;
pub mod startup;
pub mod supervision;
mod vault_keys;
pub mod welcome;

pub use vault_keys::{keys_of_user, keys_per_user};
