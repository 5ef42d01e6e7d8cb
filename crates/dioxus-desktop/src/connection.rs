//! The one WebSocket of this tab. It resumes where it stopped, backs off with jitter, and never asks twice for what
//! it has. Terminals listen here for their output.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use dioxus::prelude::*;
use shared_types::TerminalId;
use shared_types::wire::{FromClient, FromServer, Me, SentEvent, TerminalFrame};
use wasm_bindgen::JsCast;
use web_sys::{BinaryType, CloseEvent, Event, MessageEvent, WebSocket};

use crate::state::{AppState, Link, Offer};
use crate::{api, dom, ids};

/// What a terminal hears.
#[derive(Debug, Clone)]
pub(crate) enum FromTerminal {
    /// The link is there (again): attach from where you are.
    Live,
    /// Output goes on from `offset`; what comes before `written` is shown again.
    Attached {
        offset: u64,
        written: u64,
    },
    Output(Vec<u8>),
    Ended,
}

type Listener = Rc<RefCell<dyn FnMut(FromTerminal)>>;

#[derive(Default)]
struct State {
    socket: Option<WebSocket>,
    listeners: HashMap<TerminalId, Listener>,
    failures: u32,
    live: bool,
    stopped: bool,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

const QUIET: u32 = 2_000;
const SLOWEST: f64 = 15_000.0;

/// Connects, for as long as the page lives.
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

/// Listens to a terminal, until [`ignore`]. If the link is live, `Live` is said at once.
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

/// A listener that is being spoken to hears nothing else meanwhile.
fn notify(listener: &Listener, what: FromTerminal) {
    if let Ok(mut listener) = listener.try_borrow_mut() {
        (*listener)(what);
    }
}

pub(crate) fn ignore(terminal: TerminalId) {
    STATE.with_borrow_mut(|s| s.listeners.remove(&terminal));
}

/// Says something; false if there is no link.
pub(crate) fn send(message: &FromClient) -> bool {
    let Ok(text) = serde_json::to_string(message) else { return false };
    STATE.with_borrow(|s| {
        s.socket.as_ref().is_some_and(|socket| s.live && socket.send_with_str(&text).is_ok())
    })
}

/// Sends what was typed into a terminal; false if there is no link.
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
    // They live as long as the socket; a lost socket is rare enough to leave them to the page.
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
    app_state.link.set(Link::Live);
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
    if was_live || *app_state.link.peek() == Link::Live {
        app_state.link.set(Link::Connecting);
        api::run(async move {
            gloo_timers::future::TimeoutFuture::new(QUIET).await;
            if *app_state.link.peek() == Link::Connecting {
                app_state.link.set(Link::Lost);
            }
        });
    } else if failures > 3 && *app_state.link.peek() != Link::Lost {
        app_state.link.set(Link::Lost);
    }
    let wait = (250.0 * f64::from(2u32.pow(failures.min(7)))).min(SLOWEST) * (0.5 + ids::fraction() / 2.0);
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

/// A socket cannot say why it was refused, so the session is asked about.
async fn signed_out() -> bool {
    let me: api::Answer<Me> = api::get("/me").await;
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
        if let Some(frame) = TerminalFrame::parse(&bytes) {
            dispatch(frame.terminal, FromTerminal::Output(frame.bytes.to_vec()));
        }
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
            app_state.toast(text.as_str(), false, Offer::Nothing);
            app_state.notice(text, false, None);
        }
        FromServer::Refused { detail } => dom::warn(&detail),
    }
}

fn dispatch(terminal: TerminalId, what: FromTerminal) {
    let listener = STATE.with_borrow(|s| s.listeners.get(&terminal).cloned());
    if let Some(listener) = listener {
        notify(&listener, what);
    }
}
