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

use crate::desk::{Desk, Offer};
use crate::{api, dom, ids};

/// How the tab stands to the computer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Link {
    Connecting,
    Live,
    /// Lost for so long that the person should know.
    Lost,
}

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
pub(crate) fn start(desk: Desk) {
    connect(desk);
    dom::listen::<Event>("online", false, move |_| retry_now(desk));
    dom::listen::<Event>("pageshow", false, move |_| retry_now(desk));
}

fn retry_now(desk: Desk) {
    let waiting = STATE.with_borrow(|s| !s.live && !s.stopped && s.socket.is_none());
    if waiting {
        connect(desk);
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
        say(&listener, FromTerminal::Live);
    }
}

/// A listener that is being spoken to hears nothing else meanwhile.
fn say(listener: &Listener, what: FromTerminal) {
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

fn address(desk: Desk) -> Option<String> {
    let location = dom::window()?.location();
    let scheme = if location.protocol().ok()? == "https:" { "wss" } else { "ws" };
    let since = if *desk.ready.peek() { desk.seen().to_string() } else { String::new() };
    let path = api::query("/socket", &[("since", &since)]);
    Some(format!("{scheme}://{}{}", location.host().ok()?, api::url(&path)))
}

fn connect(desk: Desk) {
    let Some(socket) = address(desk).and_then(|address| WebSocket::new(&address).ok()) else { return };
    socket.set_binary_type(BinaryType::Arraybuffer);
    let opened = dom::callback::<Event>(move |_| on_open(desk));
    let heard = dom::callback::<MessageEvent>(move |event| on_message(desk, &event));
    let closed = dom::callback::<CloseEvent>(move |_| on_close(desk));
    socket.set_onopen(Some(opened.as_ref().unchecked_ref()));
    socket.set_onmessage(Some(heard.as_ref().unchecked_ref()));
    socket.set_onclose(Some(closed.as_ref().unchecked_ref()));
    // They live as long as the socket; a lost socket is rare enough to leave them to the page.
    opened.forget();
    heard.forget();
    closed.forget();
    STATE.with_borrow_mut(|s| s.socket = Some(socket));
}

fn on_open(mut desk: Desk) {
    let listeners: Vec<Listener> = STATE.with_borrow_mut(|s| {
        s.live = true;
        s.failures = 0;
        s.listeners.values().cloned().collect()
    });
    desk.link.set(Link::Live);
    desk.resend();
    desk.runs.refresh();
    for listener in listeners {
        say(&listener, FromTerminal::Live);
    }
}

fn on_close(mut desk: Desk) {
    let (was_live, failures) = STATE.with_borrow_mut(|s| {
        let was_live = std::mem::take(&mut s.live);
        s.socket = None;
        s.failures += 1;
        (was_live, s.failures)
    });
    if was_live || *desk.link.peek() == Link::Live {
        desk.link.set(Link::Connecting);
        api::run(async move {
            gloo_timers::future::TimeoutFuture::new(QUIET).await;
            if *desk.link.peek() == Link::Connecting {
                desk.link.set(Link::Lost);
            }
        });
    } else if failures > 3 && *desk.link.peek() != Link::Lost {
        desk.link.set(Link::Lost);
    }
    let wait = (250.0 * f64::from(2u32.pow(failures.min(7)))).min(SLOWEST) * (0.5 + ids::fraction() / 2.0);
    api::run(async move {
        gloo_timers::future::TimeoutFuture::new(wait as u32).await;
        if failures >= 3 && signed_out().await {
            STATE.with_borrow_mut(|s| s.stopped = true);
            desk.me.set(None);
            return;
        }
        retry_now(desk);
    });
}

/// A socket cannot say why it was refused, so the session is asked about.
async fn signed_out() -> bool {
    let me: api::Answer<Me> = api::get("/me").await;
    me.is_err_and(|failure| failure.status() == 401)
}

fn on_message(desk: Desk, event: &MessageEvent) {
    let data = event.data();
    if let Some(text) = data.as_string() {
        match api::read(&text) {
            Ok(message) => on_text(desk, message),
            Err(failure) => desk.fail_to_read(&failure),
        }
    } else if let Ok(buffer) = data.dyn_into::<js_sys::ArrayBuffer>() {
        let bytes = js_sys::Uint8Array::new(&buffer).to_vec();
        if let Some(frame) = TerminalFrame::parse(&bytes) {
            tell(frame.terminal, FromTerminal::Output(frame.bytes.to_vec()));
        }
    }
}

fn on_text(desk: Desk, message: FromServer<SentEvent>) {
    match message {
        FromServer::State { state } => {
            desk.reset(*state);
            desk.runs.refresh();
        }
        FromServer::Event { event } => desk.apply(event),
        FromServer::Through { .. } => {}
        FromServer::Projected { seq } => {
            desk.on_projected(seq);
            desk.runs.gather();
        }
        FromServer::Attached { terminal, offset, written } => {
            tell(terminal, FromTerminal::Attached { offset, written });
        }
        FromServer::TerminalEnded { terminal, .. } => tell(terminal, FromTerminal::Ended),
        FromServer::Said { task, text, .. } => desk.runs.stream(task, &text),
        FromServer::Notice { text } => {
            desk.toast(text.as_str(), false, Offer::Nothing);
            desk.notice(text, false, None);
        }
        FromServer::Refused { detail } => dom::warn(&detail),
    }
}

fn tell(terminal: TerminalId, what: FromTerminal) {
    let listener = STATE.with_borrow(|s| s.listeners.get(&terminal).cloned());
    if let Some(listener) = listener {
        say(&listener, what);
    }
}
