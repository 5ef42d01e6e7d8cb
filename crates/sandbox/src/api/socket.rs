//! The WebSocket of a tab: first the events that the tab missed, then new events, each once and in order; terminal
//! output in binary frames.
//!
//! A tab names the last event that it has. The server reads missed events in chunks, and the next chunk only when the
//! last one was sent, so the tab sets the pace. A tab that missed very many events gets the state instead.

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
use super::{CurrentComputer, ShellPermission, desktop};
use crate::open_computer::{Attachment, OpenComputer, Size, blocking};
use computer::AgentSpeech;
use computer::error::ComputerError;
use computer::output_feed::FeedState;

/// The largest message of a client.
const MESSAGE_LIMIT: usize = 256 << 10;
/// A tab mostly sends keystrokes; a longer message grows the buffer for as long as it needs.
const READ_BUFFER: usize = 4 << 10;
/// A tab that missed more events than this gets the state instead.
const MAX_BACKLOG_EVENTS: u64 = 5_000;
/// How many terminals and commands one tab may follow.
const MAX_ATTACHMENTS: usize = 16;

/// The last event that the tab has.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SinceQuery {
    since: Option<Seq>,
}

pub(super) async fn connect(
    open_computer: CurrentComputer,
    Extension(shell): Extension<ShellPermission>,
    Extension(state): Extension<Arc<ServerState>>,
    principal: Principal,
    Params(since): Params<SinceQuery>,
    upgrade: Result<WebSocketUpgrade, axum::extract::ws::rejection::WebSocketUpgradeRejection>,
) -> Result<Response, RouteError> {
    let terminals = match &principal.credential {
        Credential::Session { .. } => true,
        Credential::Token { scopes, .. } => scopes.contains(&TokenScope::Terminal),
    };
    let upgrade = upgrade.map_err(|e| RouteError::new(e.status(), "not_a_websocket", e.body_text()))?;
    let open_computer = open_computer.0;
    Ok(upgrade.max_message_size(MESSAGE_LIMIT).read_buffer_size(READ_BUFFER).on_upgrade(
        move |socket| async move {
            let tab = Tab {
                open_computer,
                shell,
                terminals,
                socket,
                sent: Seq::ZERO,
                projected: None,
                attached: Vec::new(),
            };
            // Signing out elsewhere ends this connection at once.
            tokio::select! {
                () = tab.serve(since.since) => {}
                () = principal.wait_until_invalid(&state.identity) => {}
            }
        },
    ))
}

struct Tab {
    open_computer: OpenComputer,
    shell: ShellPermission,
    /// Whether the caller may use terminals.
    terminals: bool,
    socket: WebSocket,
    /// The last event that was sent.
    sent: Seq,
    /// The projector's position that the tab was sent last.
    projected: Option<Seq>,
    attached: Vec<Attachment>,
}

/// What woke the task of a tab.
enum TabEvent {
    Client(Option<Result<Message, axum::Error>>),
    Events,
    Projected,
    Notice(String),
    Speech(AgentSpeech),
    /// A notice or speech message was dropped because the tab was slow. The log has everything.
    Missed,
    Terminal(TerminalId, FeedState),
    Closed,
}

impl Tab {
    async fn serve(mut self, since: Option<Seq>) {
        let head = self.open_computer.computer().log().head().seq;
        let started = match since {
            Some(seq) if seq <= head && head.0 - seq.0 <= MAX_BACKLOG_EVENTS => {
                self.sent = seq;
                Ok(())
            }
            Some(_) | None => self.send_state().await,
        };
        if started.is_ok() {
            let _ = self.run().await;
        }
        let _ = self.socket.close().await;
    }

    /// Sends the state; events after it follow.
    async fn send_state(&mut self) -> Result<(), ComputerError> {
        let open_computer = self.open_computer.clone();
        let state = blocking(move || desktop::state_at(&open_computer, None)).await?;
        self.sent = state.seq;
        self.send(&FromServer::State { state: Box::new(state) }).await.map_err(gone)
    }

    async fn run(&mut self) -> Result<(), axum::Error> {
        let mut head = self.open_computer.bus().head();
        let mut projected = self.open_computer.projected();
        let mut notices = self.open_computer.notices();
        let mut speeches = self.open_computer.subscribe_speech();
        head.mark_changed();
        projected.mark_changed();
        loop {
            let woken_by = {
                let mut terminals: FuturesUnordered<_> = self
                    .attached
                    .iter_mut()
                    .map(|attachment| async { (attachment.id(), attachment.changed().await) })
                    .collect();
                tokio::select! {
                    biased;
                    message = self.socket.recv() => TabEvent::Client(message),
                    changed = head.changed() => if changed.is_ok() { TabEvent::Events } else { TabEvent::Closed },
                    Some((id, state)) = terminals.next(), if !terminals.is_empty() => TabEvent::Terminal(id, state),
                    changed = projected.changed() => if changed.is_ok() { TabEvent::Projected } else { TabEvent::Closed },
                    Ok(text) = notices.recv() => TabEvent::Notice(text),
                    speech = speeches.recv() => speech.map_or(TabEvent::Missed, TabEvent::Speech),
                    () = self.open_computer.closed() => TabEvent::Closed,
                }
            };
            match woken_by {
                TabEvent::Client(Some(Ok(message))) => {
                    if !self.receive(message).await? {
                        return Ok(());
                    }
                }
                TabEvent::Client(Some(Err(_)) | None) | TabEvent::Closed => return Ok(()),
                TabEvent::Events => {
                    let _ = head.borrow_and_update();
                    self.send_events().await?;
                    let seq = *projected.borrow();
                    self.send_projected(seq).await?;
                }
                TabEvent::Projected => {
                    let seq = *projected.borrow_and_update();
                    self.send_projected(seq).await?;
                }
                TabEvent::Speech(AgentSpeech { run, task, text }) => {
                    self.send(&FromServer::Speech { run, task, text }).await?;
                }
                TabEvent::Missed => {}
                TabEvent::Notice(text) => self.send(&FromServer::Notice { text }).await?,
                TabEvent::Terminal(id, state) => self.send_output(id, state).await?,
            }
        }
    }

    /// Reports the projector's position, at most up to the last event sent: on this message the tab refetches what an
    /// event touched, and only once.
    async fn send_projected(&mut self, seq: Seq) -> Result<(), axum::Error> {
        let seq = seq.min(self.sent);
        if self.projected.is_none_or(|told| told < seq) {
            self.projected = Some(seq);
            self.send(&FromServer::Projected { seq }).await?;
        }
        Ok(())
    }

    /// Sends all events after the last one sent.
    async fn send_events(&mut self) -> Result<(), axum::Error> {
        loop {
            let (open_computer, after) = (self.open_computer.clone(), self.sent);
            let read =
                blocking(move || Ok(open_computer.bus().after(&**open_computer.computer().log(), after)?))
                    .await;
            let chunk = match read {
                Ok(chunk) => chunk,
                Err(failure) => return self.send(&FromServer::Notice { text: failure.message }).await,
            };
            let Some((last, _)) = chunk.last() else { return Ok(()) };
            self.sent = *last;
            for (_, event) in &chunk {
                let text = format!("{{\"event\":{{\"event\":{event}}}}}");
                self.socket.feed(Message::Text(text.into())).await?;
            }
            self.send(&FromServer::CaughtUp { seq: self.sent }).await?;
        }
    }

    async fn send_output(&mut self, id: TerminalId, state: FeedState) -> Result<(), axum::Error> {
        let Some(at) = self.attached.iter().position(|attachment| attachment.id() == id) else {
            return Ok(());
        };
        if let Some(output) = self.attached[at].next_chunk() {
            let frame = TerminalFrame { terminal: id, bytes: &output.bytes }.encode();
            self.socket.send(Message::Binary(Bytes::from(frame))).await?;
        }
        if let FeedState::Ended { code } = state {
            self.attached.swap_remove(at);
            self.send(&FromServer::TerminalEnded { terminal: id, code }).await?;
        }
        Ok(())
    }

    /// Handles a message; false if the client closed the connection.
    async fn receive(&mut self, message: Message) -> Result<bool, axum::Error> {
        let done = match message {
            Message::Close(_) => return Ok(false),
            Message::Ping(_) | Message::Pong(_) => return Ok(true),
            Message::Text(text) => match serde_json::from_str(&text) {
                Ok(message) => self.execute(message).await,
                Err(e) => Err(format!("not a message: {e}")),
            },
            Message::Binary(frame) => match TerminalFrame::parse(&frame) {
                Some(frame) => self.write_terminal(frame).await,
                None => Err("a binary frame must begin with the sixteen bytes of a terminal's id".into()),
            },
        };
        match done {
            Ok(Some(answer)) => self.send(&answer).await?,
            Ok(None) => {}
            Err(detail) => self.send(&FromServer::Refused { detail }).await?,
        }
        Ok(true)
    }

    async fn write_terminal(&mut self, frame: TerminalFrame<'_>) -> Result<Option<FromServer>, String> {
        self.may_use(frame.terminal)?;
        let typed = self.open_computer.terminals().type_in(frame.terminal, frame.bytes).await;
        typed.map(|()| None).map_err(|failure| failure.message)
    }

    async fn execute(&mut self, message: FromClient) -> Result<Option<FromServer>, String> {
        match message {
            FromClient::Attach { terminal, offset } => {
                self.may_use(terminal)?;
                self.attach(self.open_computer.terminals().attach(terminal, offset))
            }
            FromClient::AttachCommand { op, offset } => {
                self.attach(self.open_computer.commands().attach(op, offset))
            }
            FromClient::Detach { terminal } => {
                self.attached.retain(|attachment| attachment.id() != terminal);
                Ok(None)
            }
            FromClient::Resize { terminal, columns, rows } => {
                self.may_use(terminal)?;
                let resized = self.open_computer.terminals().resize(terminal, Size { columns, rows });
                resized.map(|()| None).map_err(|failure| failure.message)
            }
            FromClient::Acknowledged { terminal, bytes } => {
                let shown = self.attached.iter_mut().filter(|attachment| attachment.id() == terminal);
                shown.for_each(|attachment| attachment.acknowledge(bytes));
                Ok(None)
            }
        }
    }

    /// Sends the output of an attachment from now on.
    fn attach(
        &mut self,
        attachment: Result<Attachment, ComputerError>,
    ) -> Result<Option<FromServer>, String> {
        let attachment = attachment.map_err(|failure| failure.message)?;
        let (terminal, offset, written) = (attachment.id(), attachment.offset(), attachment.written());
        self.attached.retain(|attachment| attachment.id() != terminal);
        if self.attached.len() >= MAX_ATTACHMENTS {
            return Err(format!("one tab can follow at most {MAX_ATTACHMENTS} terminals and commands"));
        }
        self.attached.push(attachment);
        Ok(Some(FromServer::Attached { terminal, offset, written }))
    }

    /// A plain shell is allowed until a second account exists, no matter when the tab was opened.
    fn may_use(&self, terminal: TerminalId) -> Result<(), String> {
        if !self.terminals {
            return Err("this token lacks the scope `terminal`".into());
        }
        if self.open_computer.terminals().is_shell(terminal) && !self.shell.is_allowed() {
            self.open_computer.terminals().end_shells();
            return Err(ShellPermission::REFUSAL.into());
        }
        Ok(())
    }

    async fn send(&mut self, message: &FromServer) -> Result<(), axum::Error> {
        let text = serde_json::to_string(message).map_err(axum::Error::new)?;
        self.socket.send(Message::Text(text.into())).await
    }
}

fn gone(error: axum::Error) -> ComputerError {
    ComputerError::new(computer::error::ErrorCode::Failed, error.to_string())
}
