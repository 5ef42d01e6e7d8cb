//! A request that changes the computer of its sender.
//!
//! The caller mints its id and sends it in the header `Choir-Command`: a resend with the same id gets the first answer
//! and changes nothing. Without the header the request gets a new id.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;
use computer::error::ComputerError;
use computer::ids;
use computer::protocol::{Answer, Envelope, Request, VERSION};
use hypervisor::access::{DescribedExtractor, RouteDescription};
use hypervisor::recent_answers::COMMAND_HEADER;
use shared_types::wire::ChangeResult;
use shared_types::{Actor, CommandId, OpId};

use super::problem::{self, RouteError};
use crate::open_computer::{OpenComputer, blocking};

/// The computer that a request changes, and the id of the request.
#[derive(Debug)]
pub(super) struct ChangeContext {
    pub(super) computer: OpenComputer,
    command: CommandId,
}

impl ChangeContext {
    /// A request whose id is in its body.
    pub(super) fn with_command(computer: &OpenComputer, command: CommandId) -> Self {
        Self { computer: computer.clone(), command }
    }

    /// The operation of the request. It has the id of the request, so a resend has the same one.
    fn op(&self) -> OpId {
        OpId::from_bytes(*self.command.as_bytes())
    }

    pub(super) fn envelope(&self, request: Request) -> Envelope {
        let (command, op) = (self.command, self.op());
        Envelope { version: VERSION, actor: Actor::DESKTOP, command, op, request }
    }

    /// Sends a request without a body.
    pub(super) async fn send(&self, request: Request) -> Result<Answer, ComputerError> {
        self.send_envelope(self.envelope(request)).await
    }

    /// The same with an envelope, for a request whose operation has an id of its own.
    pub(super) async fn send_envelope(&self, envelope: Envelope) -> Result<Answer, ComputerError> {
        let computer = Arc::clone(self.computer.computer());
        blocking(move || Ok(computer.handle(&envelope, &mut std::io::empty(), &|_, _, _| ()))).await
    }

    /// Sends a request and returns its changes.
    pub(super) async fn apply(&self, request: Request) -> Result<ChangeResult, RouteError> {
        let answer = self.send(request).await.and_then(Answer::into_done);
        answer.map_err(|failure| problem::with_conflicts(&self.computer, failure))
    }
}

impl DescribedExtractor for ChangeContext {
    fn describe(description: &mut RouteDescription) {
        description.is_recorded_in_log = true;
    }
}

impl<S: Send + Sync> FromRequestParts<S> for ChangeContext {
    type Rejection = RouteError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, RouteError> {
        let command = match parts.headers.get(COMMAND_HEADER) {
            None => ids::new_command(),
            Some(value) => value.to_str().ok().and_then(|text| text.parse().ok()).ok_or_else(|| {
                let detail = "the header Choir-Command is not a UUID";
                RouteError::new(StatusCode::BAD_REQUEST, "bad_request", detail)
            })?,
        };
        let computer = parts.extensions.get::<OpenComputer>().cloned();
        let computer = computer.ok_or_else(|| {
            RouteError::new(StatusCode::INTERNAL_SERVER_ERROR, "failed", "no computer was attached")
        })?;
        Ok(Self { computer, command })
    }
}
