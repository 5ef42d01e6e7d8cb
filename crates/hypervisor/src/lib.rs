//! The control plane: who may reach which computer, and the web server in front of them.
//!
//! [`identity`] knows who there is. [`access`] states for every route who may call it, and is the only way to a
//! router. [`server`] listens. [`vault`] keeps the keys of model providers. A user's request reaches that user's computer and no other, because the computer is
//! put into the request by the guard, from the principal it found.

pub mod access;
pub mod assets;
pub mod auth;
pub mod body;
pub mod ceremonies;
pub mod front;
pub mod identity;
pub mod keys;
pub mod pages;
pub mod problem;
pub mod server;
pub mod vault;
