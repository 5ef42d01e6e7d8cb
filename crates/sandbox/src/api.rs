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

use axum::extract::DefaultBodyLimit;
use axum::handler::Handler;
use axum::http::Method;
use axum::routing::{MethodFilter, MethodRouter, on};
use shared_types::wire::Scope;

use crate::desk::Desk;

/// Who may call a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Anyone,
    /// Somebody who is signed in, by a session or by a token with this scope; only what is theirs is reached.
    Signed(Scope),
    /// The person who owns the machine, by a session.
    Owner,
}

/// A route with its statement.
#[derive(Debug, Clone)]
pub struct Route {
    pub method: Method,
    pub path: &'static str,
    pub access: Access,
    pub handler: MethodRouter,
}

/// Bodies that are bytes of files may be large; everything else is bounded by the server.
const FILE_LIMIT: usize = 4 << 30;

impl Route {
    pub fn new<H, T>(method: Method, path: &'static str, access: Access, handler: H) -> Self
    where
        H: Handler<T, ()>,
        T: 'static,
    {
        // Every method of the table has a filter.
        let filter = MethodFilter::try_from(method.clone()).unwrap_or(MethodFilter::GET);
        Self { method, path, access, handler: on(filter, handler) }
    }

    /// Takes bytes of files.
    pub fn with_file(self) -> Self {
        Self { handler: self.handler.layer(DefaultBodyLimit::max(FILE_LIMIT)), ..self }
    }
}

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
