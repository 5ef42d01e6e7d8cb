//! The one WebSocket of a tab: events in order and once, then whatever happens; terminals beside them.
//!
//! A tab names the last event it has. What it missed comes first, in chunks that the tab's own pace sets, since
//! nothing is read ahead of what could be sent. One that was away for very long starts again from the state.

use std::sync::Arc;

use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::response::Response;
use axum::{Extension, body::Bytes};
use event_log::EventLog;
use futures_util::stream::FuturesUnordered;
use futures_util::{SinkExt, StreamExt};
use hypervisor::access::{Credential, Principal};
use hypervisor::server_state::ServerState;
use schemars::JsonSchema;
use serde::Deserialize;
use shared_types::wire::{FromClient, FromServer, TerminalFrame, TokenScope};
use shared_types::{Seq, TerminalId};

use super::problem::{Params, RouteError};
use super::{Of, Shell, desktop};
use crate::open_computer::{Attachment, OpenComputer, Size, blocking};
use computer::AgentSpeech;
use computer::error::ComputerError;

/// Messages of a client that are larger than this are no messages.
const MESSAGE_LIMIT: usize = 256 << 10;
/// A tab that is further behind gets the state instead of every event.
const FAR: u64 = 5_000;
/// Terminals that one tab may look at.
const ATTACHED: usize = 16;

/// Where the tab stands.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Since {
    since: Option<Seq>,
}

pub(super) async fn connect(
    desk: Of,
    Extension(shell): Extension<Shell>,
    Extension(state): Extension<Arc<ServerState>>,
    principal: Principal,
    Params(since): Params<Since>,
    upgrade: Result<WebSocketUpgrade, axum::extract::ws::rejection::WebSocketUpgradeRejection>,
) -> Result<Response, RouteError> {
    let terminals = match &principal.credential {
        Credential::Session { .. } => true,
        Credential::Token { scopes, .. } => scopes.contains(&TokenScope::Terminal),
    };
    let upgrade = upgrade.map_err(|e| RouteError::new(e.status(), "not_a_websocket", e.body_text()))?;
    let desk = desk.0;
    Ok(upgrade.max_message_size(MESSAGE_LIMIT).on_upgrade(move |socket| async move {
        let tab =
            Tab { desk, shell, terminals, socket, sent: Seq::ZERO, projected: None, attached: Vec::new() };
        // Whoever is signed out elsewhere is so here, at once.
        tokio::select! {
            () = tab.serve(since.since) => {}
            () = principal.wait_until_invalid(&state.identity) => {}
        }
    }))
}

struct Tab {
    desk: OpenComputer,
    shell: Shell,
    /// Whether terminals are among what the caller may use.
    terminals: bool,
    socket: WebSocket,
    /// The last event that was sent.
    sent: Seq,
    /// How far lists and search are, as the tab was told.
    projected: Option<Seq>,
    attached: Vec<Attachment>,
}

/// What woke the tab's task.
enum Woken {
    Client(Option<Result<Message, axum::Error>>),
    Events,
    Projected,
    Notice(String),
    Said(AgentSpeech),
    /// Something that was for this tab is gone; nothing of it is missed.
    Missed,
    Terminal(TerminalId, Option<Option<i32>>),
    Closed,
}

impl Tab {
    async fn serve(mut self, since: Option<Seq>) {
        let head = self.desk.computer().log().head().seq;
        let started = match since {
            Some(seq) if seq <= head && head.0 - seq.0 <= FAR => {
                self.sent = seq;
                Ok(())
            }
            Some(_) | None => self.start_over().await,
        };
        if started.is_ok() {
            let _ = self.run().await;
        }
        let _ = self.socket.close().await;
    }

    /// Sends the state; events go on after it.
    async fn start_over(&mut self) -> Result<(), ComputerError> {
        let desk = self.desk.clone();
        let state = blocking(move || desktop::state_at(&desk, None)).await?;
        self.sent = state.seq;
        self.say(&FromServer::State { state: Box::new(state) }).await.map_err(gone)
    }

    async fn run(&mut self) -> Result<(), axum::Error> {
        let mut head = self.desk.bus().head();
        let mut projected = self.desk.projected();
        let mut notices = self.desk.notices();
        let mut said = self.desk.said();
        head.mark_changed();
        projected.mark_changed();
        loop {
            let woken = {
                let mut terminals: FuturesUnordered<_> = self
                    .attached
                    .iter_mut()
                    .map(|attachment| async { (attachment.id(), attachment.changed().await) })
                    .collect();
                tokio::select! {
                    biased;
                    message = self.socket.recv() => Woken::Client(message),
                    changed = head.changed() => if changed.is_ok() { Woken::Events } else { Woken::Closed },
                    Some((id, ended)) = terminals.next(), if !terminals.is_empty() => Woken::Terminal(id, ended),
                    changed = projected.changed() => if changed.is_ok() { Woken::Projected } else { Woken::Closed },
                    Ok(text) = notices.recv() => Woken::Notice(text),
                    voice = said.recv() => voice.map_or(Woken::Missed, Woken::Said),
                    () = self.desk.closed() => Woken::Closed,
                }
            };
            match woken {
                Woken::Client(Some(Ok(message))) => {
                    if !self.hear(message).await? {
                        return Ok(());
                    }
                }
                Woken::Client(Some(Err(_)) | None) | Woken::Closed => return Ok(()),
                Woken::Events => {
                    let _ = head.borrow_and_update();
                    self.send_events().await?;
                    let seq = *projected.borrow();
                    self.tell_projected(seq).await?;
                }
                Woken::Projected => {
                    let seq = *projected.borrow_and_update();
                    self.tell_projected(seq).await?;
                }
                Woken::Said(AgentSpeech { run, task, text }) => {
                    self.say(&FromServer::Speech { run, task, text }).await?;
                }
                Woken::Missed => {}
                Woken::Notice(text) => self.say(&FromServer::Notice { text }).await?,
                Woken::Terminal(id, ended) => self.send_output(id, ended).await?,
            }
        }
    }

    /// Tells how far lists and search are, but of no event that the tab has not got: it reads again what an event
    /// touched when it hears this, and would not once more.
    async fn tell_projected(&mut self, seq: Seq) -> Result<(), axum::Error> {
        let seq = seq.min(self.sent);
        if self.projected.is_none_or(|told| told < seq) {
            self.projected = Some(seq);
            self.say(&FromServer::Projected { seq }).await?;
        }
        Ok(())
    }

    /// Everything after what was sent.
    async fn send_events(&mut self) -> Result<(), axum::Error> {
        loop {
            let (desk, after) = (self.desk.clone(), self.sent);
            let read = blocking(move || Ok(desk.bus().after(&**desk.computer().log(), after)?)).await;
            let chunk = match read {
                Ok(chunk) => chunk,
                Err(failure) => return self.say(&FromServer::Notice { text: failure.message }).await,
            };
            let Some((last, _)) = chunk.last() else { return Ok(()) };
            self.sent = *last;
            for (_, event) in &chunk {
                let text = format!("{{\"event\":{{\"event\":{event}}}}}");
                self.socket.feed(Message::Text(text.into())).await?;
            }
            self.say(&FromServer::CaughtUp { seq: self.sent }).await?;
        }
    }

    async fn send_output(&mut self, id: TerminalId, ended: Option<Option<i32>>) -> Result<(), axum::Error> {
        let Some(at) = self.attached.iter().position(|attachment| attachment.id() == id) else {
            return Ok(());
        };
        if let Some(output) = self.attached[at].take() {
            let frame = TerminalFrame { terminal: id, bytes: &output.bytes }.encode();
            self.socket.send(Message::Binary(Bytes::from(frame))).await?;
        }
        if let Some(code) = ended {
            self.attached.swap_remove(at);
            self.say(&FromServer::TerminalEnded { terminal: id, code }).await?;
        }
        Ok(())
    }

    /// False if the client says goodbye.
    async fn hear(&mut self, message: Message) -> Result<bool, axum::Error> {
        let done = match message {
            Message::Close(_) => return Ok(false),
            Message::Ping(_) | Message::Pong(_) => return Ok(true),
            Message::Text(text) => match serde_json::from_str(&text) {
                Ok(said) => self.obey(said).await,
                Err(e) => Err(format!("not a message: {e}")),
            },
            Message::Binary(frame) => match TerminalFrame::parse(&frame) {
                Some(frame) => self.type_in(frame).await,
                None => Err("a binary frame begins with the sixteen bytes of a terminal's id".into()),
            },
        };
        match done {
            Ok(Some(answer)) => self.say(&answer).await?,
            Ok(None) => {}
            Err(detail) => self.say(&FromServer::Refused { detail }).await?,
        }
        Ok(true)
    }

    async fn type_in(&mut self, frame: TerminalFrame<'_>) -> Result<Option<FromServer>, String> {
        self.may_use(frame.terminal)?;
        let typed = self.desk.terminals().type_in(frame.terminal, frame.bytes).await;
        typed.map(|()| None).map_err(|failure| failure.message)
    }

    async fn obey(&mut self, said: FromClient) -> Result<Option<FromServer>, String> {
        match said {
            FromClient::Attach { terminal, offset } => {
                self.may_use(terminal)?;
                self.look(self.desk.terminals().attach(terminal, offset))
            }
            FromClient::AttachCommand { op, offset } => self.look(self.desk.commands().attach(op, offset)),
            FromClient::Detach { terminal } => {
                self.attached.retain(|attachment| attachment.id() != terminal);
                Ok(None)
            }
            FromClient::Resize { terminal, columns, rows } => {
                self.may_use(terminal)?;
                let resized = self.desk.terminals().resize(terminal, Size { columns, rows });
                resized.map(|()| None).map_err(|failure| failure.message)
            }
            FromClient::Acknowledged { terminal, bytes } => {
                let shown = self.attached.iter_mut().filter(|attachment| attachment.id() == terminal);
                shown.for_each(|attachment| attachment.show(bytes));
                Ok(None)
            }
        }
    }

    /// Sends what an attachment gives, from now on.
    fn look(&mut self, attachment: Result<Attachment, ComputerError>) -> Result<Option<FromServer>, String> {
        let attachment = attachment.map_err(|failure| failure.message)?;
        let (terminal, offset, written) = (attachment.id(), attachment.offset(), attachment.written());
        self.attached.retain(|attachment| attachment.id() != terminal);
        if self.attached.len() >= ATTACHED {
            return Err(format!("one tab looks at {ATTACHED} terminals and commands at most"));
        }
        self.attached.push(attachment);
        Ok(Some(FromServer::Attached { terminal, offset, written }))
    }

    /// A plain shell is offered until somebody else gets an account, whenever the tab was opened.
    fn may_use(&self, terminal: TerminalId) -> Result<(), String> {
        if !self.terminals {
            return Err("this token is not good for terminals".into());
        }
        if self.desk.terminals().is_shell(terminal) && !self.shell.is_offered() {
            self.desk.terminals().end_shells();
            return Err(Shell::WHY.into());
        }
        Ok(())
    }

    async fn say(&mut self, message: &FromServer) -> Result<(), axum::Error> {
        let text = serde_json::to_string(message).map_err(axum::Error::new)?;
        self.socket.send(Message::Text(text.into())).await
    }
}

fn gone(error: axum::Error) -> ComputerError {
    ComputerError::new(computer::error::ErrorCode::Failed, error.to_string())
}
