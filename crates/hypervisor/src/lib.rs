//! The control plane: accounts, access control, and the web server in front of the computers.
//!
//! [`identity`] stores users and their credentials. [`access`] pairs every route with its access rule and builds the
//! router. [`server`] listens and serves connections. [`vault`] stores the API keys of model providers.
//!
//! A request reaches the computer of its own user and no other: the route guard authenticates the principal, and the
//! computer in the request is looked up from that principal.

pub mod access;
pub mod assets;
pub mod auth;
pub mod body;
pub mod ceremonies;
pub mod client_address;
pub mod identity;
pub mod keys;
pub mod metrics;
pub mod pages;
pub mod problem;
pub mod rate_limits;
pub mod recent_answers;
pub mod server;
pub mod server_state;
pub mod site;
pub mod vault;
