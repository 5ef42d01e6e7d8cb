//! One shell and its screen. Output is shown in order and once, input is sent to the shell, and the number of bytes shown
//! is reported, so that the server sends only a little ahead.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use dioxus::prelude::*;
use dioxus::web::WebEventExt;
use shared_types::wire::FromClient;
use shared_types::{TerminalId, WindowId};
use wasm_bindgen::JsCast;
use web_sys::HtmlElement;

use crate::connection::{self, FromTerminal};
use crate::icons::Icon;
use crate::js_modules::TerminalScreen;
use crate::state::{AppState, app_state};
use crate::words;

/// Bytes that are shown before the next report.
const REPORT: u64 = 16 << 10;

/// The state that the callbacks of one shell share.
#[derive(Default)]
struct ShellConnection {
    screen: RefCell<Option<TerminalScreen>>,
    /// Bytes of output since the shell was started, as far as they arrived here.
    heard: Cell<u64>,
    /// Output before this was written before this screen was there.
    replayed: Cell<u64>,
    /// Bytes that the screen has been given and not shown yet, and those shown and not reported yet.
    waiting: Cell<u64>,
    shown: Cell<u64>,
}

impl ShellConnection {
    fn with(&self, act: impl FnOnce(&TerminalScreen)) {
        if let Some(screen) = self.screen.borrow().as_ref() {
            act(screen);
        }
    }

    fn attach(&self, terminal: TerminalId) {
        self.waiting.set(0);
        self.shown.set(0);
        connection::send(&FromClient::Attach { terminal, offset: self.heard.get() });
        self.with(|screen| resize(terminal, screen.size()));
    }

    /// The server continues from `offset`. If earlier output is missing, the screen is cleared first.
    fn attached(&self, offset: u64, written: u64) {
        self.replayed.set(written);
        if offset != self.heard.replace(offset) {
            self.with(TerminalScreen::reset);
        }
    }

    fn output(&self, bytes: &[u8]) {
        let (count, heard) = (bytes.len() as u64, self.heard.get());
        self.heard.set(heard + count);
        self.waiting.set(self.waiting.get() + count);
        let old = usize::try_from(self.replayed.get().saturating_sub(heard)).unwrap_or(usize::MAX);
        let (old, new) = bytes.split_at(old.min(bytes.len()));
        self.with(|screen| {
            screen.replay(old);
            screen.write(new);
        });
    }

    fn report(&self, terminal: TerminalId, bytes: u64) {
        let waiting = self.waiting.get().saturating_sub(bytes);
        self.waiting.set(waiting);
        let shown = self.shown.get() + bytes;
        if shown >= REPORT || waiting == 0 {
            connection::send(&FromClient::Acknowledged { terminal, bytes: shown });
            self.shown.set(0);
        } else {
            self.shown.set(shown);
        }
    }
}

fn resize(terminal: TerminalId, (columns, rows): (u16, u16)) {
    connection::send(&FromClient::Resize { terminal, columns, rows });
}

#[component]
pub(super) fn Shell(
    window: WindowId,
    terminal: TerminalId,
    front: bool,
    ended: Signal<Vec<TerminalId>>,
    onclose: EventHandler<()>,
) -> Element {
    let app_state = app_state();
    let wire = use_hook(|| Rc::new(ShellConnection::default()));
    let mut error = use_signal(|| None::<String>);
    let ending = {
        let wire = wire.clone();
        move || {
            connection::ignore(terminal);
            connection::send(&FromClient::Detach { terminal });
            // The screen's callbacks hold the wire, so the screen is let go by hand.
            wire.screen.take();
        }
    };
    use_drop(ending);
    // A hidden screen has no size; it takes one when it comes to the front.
    let shown = wire.clone();
    use_effect(use_reactive!(|front| {
        if front {
            shown.with(|screen| {
                screen.fit();
                if app_state.may_take_focus(window) {
                    screen.focus();
                }
            });
        }
    }));
    let mounted = wire.clone();
    let over = ended.read().contains(&terminal);
    rsx! {
        div {
            class: "part part-terminal",
            id: "term-{terminal}",
            role: "tabpanel",
            hidden: !front,
            onmounted: move |event| {
                let wire = mounted.clone();
                let Ok(element) = event.data().as_web_event().dyn_into::<HtmlElement>() else { return };
                spawn(async move {
                    if let Err(absent) = open(app_state, window, terminal, &element, &wire, ended).await {
                        error.set(Some(absent));
                    }
                });
            },
        }
        if let Some(text) = error() {
            div { class: "bar bad", role: "alert", hidden: !front, Icon { name: "triangle-alert" } span { "{text}" } }
        } else if over {
            div { class: "bar", role: "status", hidden: !front,
                Icon { name: "info" }
                span { {words::terminal::SHELL_ENDED} }
                button { class: "btn", r#type: "button", onclick: move |_| onclose.call(()), {words::CLOSE} }
            }
        }
    }
}

/// Puts a screen into the element and ties it to the shell.
async fn open(
    app_state: AppState,
    window: WindowId,
    terminal: TerminalId,
    element: &HtmlElement,
    wire: &Rc<ShellConnection>,
    mut ended: Signal<Vec<TerminalId>>,
) -> Result<(), String> {
    let reporting = Rc::downgrade(wire);
    let shown = move |bytes| {
        if let Some(wire) = reporting.upgrade() {
            wire.report(terminal, bytes);
        }
    };
    let mut screen = TerminalScreen::mount(element, words::terminal::SHELL, shown).await?;
    if !element.is_connected() {
        // Closed while it was loading.
        return Ok(());
    }
    screen.on_typed(move |text| {
        connection::type_into(terminal, text.as_bytes());
    });
    screen.on_resized(move |columns, rows| resize(terminal, (columns, rows)));
    // After a reload every window opens at once; only the front one takes the keys.
    if !element.hidden() && app_state.may_take_focus(window) {
        screen.focus();
    }
    wire.screen.replace(Some(screen));
    let listening = Rc::downgrade(wire);
    connection::listen(terminal, move |said| {
        let Some(wire) = listening.upgrade() else { return };
        match said {
            FromTerminal::Live => wire.attach(terminal),
            FromTerminal::Attached { offset, written } => wire.attached(offset, written),
            FromTerminal::Output(bytes) => wire.output(&bytes),
            FromTerminal::Ended => {
                if !ended.peek().contains(&terminal) {
                    ended.write().push(terminal);
                }
            }
        }
    });
    Ok(())
}
