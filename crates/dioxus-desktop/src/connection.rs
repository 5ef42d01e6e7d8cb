//! The one WebSocket of this tab. It reconnects with backoff and jitter, and resumes after the newest event that the tab
//! has. Terminals listen here for their output.
//!
//! A message or frame that cannot be read, and a refusal by the server, are shown to the person, each text once.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use dioxus::prelude::*;
use shared_types::TerminalId;
use shared_types::wire::{FromClient, FromServer, Me, SentEvent, TerminalFrame};
use wasm_bindgen::JsCast;
use web_sys::{BinaryType, CloseEvent, Event, MessageEvent, WebSocket};

use crate::state::{AppState, ConnectionState, ToastAction};
use crate::{api, dom, ids, words};

/// A message for the listener of a terminal.
#[derive(Debug, Clone)]
pub(crate) enum FromTerminal {
    /// The socket is connected, possibly again: the listener attaches from its offset.
    Live,
    /// Output continues from `offset`; bytes before `written` were already shown once.
    Attached {
        offset: u64,
        written: u64,
    },
    Output(Vec<u8>),
    Ended,
}

type Listener = Rc<RefCell<dyn FnMut(FromTerminal)>>;

#[derive(Default)]
struct SocketState {
    socket: Option<WebSocket>,
    listeners: HashMap<TerminalId, Listener>,
    failures: u32,
    live: bool,
    stopped: bool,
}

thread_local! {
    static STATE: RefCell<SocketState> = RefCell::default();
}

const QUIET_MS: u32 = 2_000;
const MAX_RETRY_MS: f64 = 15_000.0;

/// Connects, and reconnects until the page is closed.
pub(crate) fn start(app_state: AppState) {
    connect(app_state);
    dom::listen::<Event>("online", false, move |_| retry_now(app_state));
    dom::listen::<Event>("pageshow", false, move |_| retry_now(app_state));
}

fn retry_now(app_state: AppState) {
    let waiting = STATE.with_borrow(|s| !s.live && !s.stopped && s.socket.is_none());
    if waiting {
        connect(app_state);
    }
}

/// Listens to a terminal, until [`ignore`]. If the socket is connected, the listener gets `Live` at once.
pub(crate) fn listen(terminal: TerminalId, listener: impl FnMut(FromTerminal) + 'static) {
    let listener: Listener = Rc::new(RefCell::new(listener));
    let live = STATE.with_borrow_mut(|s| {
        s.listeners.insert(terminal, listener.clone());
        s.live
    });
    if live {
        notify(&listener, FromTerminal::Live);
    }
}

/// Calls a listener, unless it is being called already.
fn notify(listener: &Listener, what: FromTerminal) {
    if let Ok(mut listener) = listener.try_borrow_mut() {
        (*listener)(what);
    }
}

pub(crate) fn ignore(terminal: TerminalId) {
    STATE.with_borrow_mut(|s| s.listeners.remove(&terminal));
}

/// Sends a message; false if the socket is not connected.
pub(crate) fn send(message: &FromClient) -> bool {
    let Ok(text) = serde_json::to_string(message) else { return false };
    STATE.with_borrow(|s| {
        s.socket.as_ref().is_some_and(|socket| s.live && socket.send_with_str(&text).is_ok())
    })
}

/// Sends input to a terminal; false if the socket is not connected.
pub(crate) fn type_into(terminal: TerminalId, bytes: &[u8]) -> bool {
    let frame = TerminalFrame { terminal, bytes }.encode();
    STATE.with_borrow(|s| {
        s.socket.as_ref().is_some_and(|socket| s.live && socket.send_with_u8_array(&frame).is_ok())
    })
}

fn address(app_state: AppState) -> Option<String> {
    let location = dom::window()?.location();
    let scheme = if location.protocol().ok()? == "https:" { "wss" } else { "ws" };
    let since = if *app_state.ready.peek() { app_state.seen().to_string() } else { String::new() };
    let path = api::query("/socket", &[("since", &since)]);
    Some(format!("{scheme}://{}{}", location.host().ok()?, api::url(&path)))
}

fn connect(app_state: AppState) {
    let Some(socket) = address(app_state).and_then(|address| WebSocket::new(&address).ok()) else { return };
    socket.set_binary_type(BinaryType::Arraybuffer);
    let opened = dom::callback::<Event>(move |_| on_open(app_state));
    let received = dom::callback::<MessageEvent>(move |event| on_message(app_state, &event));
    let closed = dom::callback::<CloseEvent>(move |_| on_close(app_state));
    socket.set_onopen(Some(opened.as_ref().unchecked_ref()));
    socket.set_onmessage(Some(received.as_ref().unchecked_ref()));
    socket.set_onclose(Some(closed.as_ref().unchecked_ref()));
    // The callbacks live as long as the socket. They are leaked with a lost socket, which is rare.
    opened.forget();
    received.forget();
    closed.forget();
    STATE.with_borrow_mut(|s| s.socket = Some(socket));
}

fn on_open(mut app_state: AppState) {
    let listeners: Vec<Listener> = STATE.with_borrow_mut(|s| {
        s.live = true;
        s.failures = 0;
        s.listeners.values().cloned().collect()
    });
    app_state.connection.set(ConnectionState::Live);
    app_state.resend();
    app_state.runs.refresh();
    for listener in listeners {
        notify(&listener, FromTerminal::Live);
    }
}

fn on_close(mut app_state: AppState) {
    let (was_live, failures) = STATE.with_borrow_mut(|s| {
        let was_live = std::mem::take(&mut s.live);
        s.socket = None;
        s.failures += 1;
        (was_live, s.failures)
    });
    if was_live || *app_state.connection.peek() == ConnectionState::Live {
        app_state.connection.set(ConnectionState::Connecting);
        api::run(async move {
            gloo_timers::future::TimeoutFuture::new(QUIET_MS).await;
            if *app_state.connection.peek() == ConnectionState::Connecting {
                app_state.connection.set(ConnectionState::Lost);
            }
        });
    } else if failures > 3 && *app_state.connection.peek() != ConnectionState::Lost {
        app_state.connection.set(ConnectionState::Lost);
    }
    let wait =
        (250.0 * f64::from(2u32.pow(failures.min(7)))).min(MAX_RETRY_MS) * (0.5 + ids::fraction() / 2.0);
    api::run(async move {
        gloo_timers::future::TimeoutFuture::new(wait as u32).await;
        if failures >= 3 && signed_out().await {
            STATE.with_borrow_mut(|s| s.stopped = true);
            app_state.me.set(None);
            return;
        }
        retry_now(app_state);
    });
}

/// A browser does not say why a WebSocket was refused, so this asks the server whether the session has ended.
async fn signed_out() -> bool {
    let me: api::ApiResult<Me> = api::get("/me").await;
    me.is_err_and(|failure| failure.status() == 401)
}

fn on_message(app_state: AppState, event: &MessageEvent) {
    let data = event.data();
    if let Some(text) = data.as_string() {
        match api::read(&text) {
            Ok(message) => on_text(app_state, message),
            Err(failure) => app_state.report_unreadable(&failure),
        }
    } else if let Ok(buffer) = data.dyn_into::<js_sys::ArrayBuffer>() {
        let bytes = js_sys::Uint8Array::new(&buffer).to_vec();
        match TerminalFrame::parse(&bytes) {
            Some(frame) => dispatch(frame.terminal, FromTerminal::Output(frame.bytes.to_vec())),
            None => app_state.report_unreadable(&api::unreadable(words::NOT_A_FRAME)),
        }
    } else {
        app_state.report_unreadable(&api::unreadable(words::NOT_A_FRAME));
    }
}

fn on_text(app_state: AppState, message: FromServer<SentEvent>) {
    match message {
        FromServer::State { state } => {
            app_state.reset(*state);
            app_state.runs.refresh();
        }
        FromServer::Event { event } => app_state.apply(event),
        FromServer::CaughtUp { .. } => {}
        FromServer::Projected { seq } => {
            app_state.on_projected(seq);
            app_state.runs.gather();
        }
        FromServer::Attached { terminal, offset, written } => {
            dispatch(terminal, FromTerminal::Attached { offset, written });
        }
        FromServer::TerminalEnded { terminal, .. } => dispatch(terminal, FromTerminal::Ended),
        FromServer::Speech { task, text, .. } => app_state.runs.stream(task, &text),
        FromServer::Notice { text } => {
            app_state.toast(text.as_str(), false, ToastAction::Nothing);
            app_state.notice(text, false, None);
        }
        FromServer::Refused { detail } => app_state.report_refused(&detail),
    }
}

fn dispatch(terminal: TerminalId, what: FromTerminal) {
    let listener = STATE.with_borrow(|s| s.listeners.get(&terminal).cloned());
    if let Some(listener) = listener {
        notify(&listener, what);
    }
}
