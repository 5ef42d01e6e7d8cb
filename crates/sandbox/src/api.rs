//! The routes of one computer, under `/api/v1`.
//!
//! Every route states who may call it, here and nowhere else: a [`Route`] cannot be made without its [`Access`]. A
//! handler is given the [`Desk`] of the user who is signed in, which is all that it can reach.

mod checkpoints;
mod content;
mod desktop;
mod files;
mod operations;
pub mod problem;
mod socket;
mod terminals;
mod transfer;

use axum::http::Method;
pub use hypervisor::access::{Access, Route};
use shared_types::wire::Scope;

use crate::desk::Desk;

/// All routes of a computer.
pub fn routes() -> Vec<Route> {
    use Access::{Owner, Signed};
    use Scope::{Read, Terminal, Write};
    let get = Method::GET;
    let post = Method::POST;
    vec![
        Route::new(get.clone(), "/api/v1/state", Signed(Read), desktop::state),
        Route::new(post.clone(), "/api/v1/gestures", Signed(Write), desktop::gesture),
        Route::new(get.clone(), "/api/v1/storage", Signed(Read), desktop::storage),
        Route::new(get.clone(), "/api/v1/socket", Signed(Read), socket::connect),
        Route::new(get.clone(), "/api/v1/files", Signed(Read), files::list),
        Route::new(post.clone(), "/api/v1/files/move", Signed(Write), files::rename),
        Route::new(post.clone(), "/api/v1/files/copy", Signed(Write), files::copy),
        Route::new(post.clone(), "/api/v1/files/delete", Signed(Write), files::delete),
        Route::new(post.clone(), "/api/v1/folders", Signed(Write), files::make_folder),
        Route::new(get.clone(), "/api/v1/search", Signed(Read), files::search),
        Route::new(get.clone(), "/api/v1/versions", Signed(Read), files::versions),
        Route::new(get.clone(), "/api/v1/content", Signed(Read), content::read),
        Route::new(Method::PUT, "/api/v1/content", Signed(Write), content::write).with_file(),
        Route::new(get.clone(), "/api/v1/compare", Signed(Read), checkpoints::compare),
        Route::new(get.clone(), "/api/v1/checkpoints", Signed(Read), checkpoints::list),
        Route::new(post.clone(), "/api/v1/checkpoints", Signed(Write), checkpoints::make),
        Route::new(get.clone(), "/api/v1/operations", Signed(Read), operations::list),
        Route::new(get.clone(), "/api/v1/operations/{op}", Signed(Read), operations::show),
        Route::new(post.clone(), "/api/v1/operations/{op}/undo", Signed(Write), operations::undo),
        Route::new(post.clone(), "/api/v1/operations/{op}/redo", Signed(Write), operations::redo),
        Route::new(post.clone(), "/api/v1/undo", Signed(Write), operations::undo_latest),
        Route::new(post.clone(), "/api/v1/redo", Signed(Write), operations::redo_latest),
        Route::new(post.clone(), "/api/v1/restore", Signed(Write), operations::restore),
        Route::new(get.clone(), "/api/v1/export", Signed(Read), transfer::export),
        Route::new(post.clone(), "/api/v1/import", Signed(Write), transfer::import).with_file(),
        // A plain shell has the owner's power over the machine.
        Route::new(get, "/api/v1/terminals", Owner, terminals::list),
        Route::new(post, "/api/v1/terminals", Owner, terminals::start),
        Route::new(Method::DELETE, "/api/v1/terminals/{id}", Owner, terminals::end),
    ]
    .into_iter()
    .inspect(|route| debug_assert!(route.access != Signed(Terminal), "cells come later"))
    .collect()
}

/// Whether the caller may use the owner's shell; put beside the desk by whoever knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shell(pub bool);

type Of = axum::Extension<Desk>;
