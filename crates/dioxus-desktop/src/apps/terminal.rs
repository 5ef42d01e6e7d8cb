//! Terminal: shells on the computer, one a tab. The server keeps what they wrote, and the window remembers which ones
//! it shows, so that a reload, a lost connection or a second screen changes nothing.
//!
//! The window's `shows` holds the ids of its shells, separated by spaces, and is the only list of tabs there is.

mod shell;

use dioxus::prelude::*;
use shared_types::wire::{NewTerminal, Terminal};
use shared_types::{TerminalId, WindowId};

use self::shell::Shell;
use crate::api::{self, Answer, Failure};
use crate::desk::{Desk, desk};
use crate::icons::Icon;
use crate::parts::{Empty, IconButton, Trouble, Waiting};

/// Until the screen has measured itself.
const FIRST_SIZE: NewTerminal = NewTerminal { columns: 80, rows: 24 };

#[component]
pub(crate) fn App(window: WindowId, shows: Option<String>) -> Element {
    let desk = desk();
    let offered = desk.me.read().as_ref().is_some_and(|me| me.shell);
    if !offered {
        return rsx! {
            Empty { icon: "square-terminal", title: "No shell here",
                p { "A plain shell has the owner's power over this machine. It is offered to the owner only, from the machine itself, and only while nobody else has an account." }
            }
        };
    }
    rsx! { Shells { window, shows } }
}

#[component]
fn Shells(window: WindowId, shows: Option<String>) -> Element {
    let desk = desk();
    let tabs = parse(shows.as_deref());
    let mut front = use_signal(|| None::<TerminalId>);
    let mut trouble = use_signal(|| None::<Failure>);
    let ended = use_signal(Vec::<TerminalId>::new);
    let first = tabs.clone();
    use_hook(move || {
        spawn(async move {
            if let Err(failure) = revive(desk, window, first, ended).await {
                trouble.set(Some(failure));
            }
        });
    });
    let add = move || {
        spawn(async move {
            match start().await {
                Ok(id) => {
                    show(desk, window, |tabs| tabs.push(id));
                    front.set(Some(id));
                }
                Err(failure) => desk.fail(&failure),
            }
        });
    };
    let close = move |id: TerminalId| {
        show(desk, window, |tabs| tabs.retain(|other| *other != id));
        if parse(desk.window(window).and_then(|w| w.shows).as_deref()).is_empty() {
            desk.close(window);
        }
        // A shell that has ended already is not there to be closed.
        api::run(async move { drop(api::delete(&format!("/terminals/{id}")).await) });
    };

    if let Some(failure) = trouble().filter(|_| tabs.is_empty()) {
        return rsx! { Trouble { failure } };
    }
    if tabs.is_empty() {
        return rsx! { Waiting {} };
    }
    let active = front().filter(|id| tabs.contains(id)).or_else(|| tabs.last().copied());
    rsx! {
        div { class: "terminal",
            div { class: "tabs", role: "tablist", "aria-label": "Shells",
                for (index, id) in tabs.iter().copied().enumerate() {
                    div { key: "{id}", class: if active == Some(id) { "tab on" } else { "tab" },
                        button {
                            class: "tab-name",
                            r#type: "button",
                            role: "tab",
                            "aria-selected": if active == Some(id) { "true" } else { "false" },
                            onclick: move |_| front.set(Some(id)),
                            Icon { name: "square-terminal" }
                            if ended.read().contains(&id) { "Ended" } else { "Shell {index + 1}" }
                        }
                        IconButton { icon: "x", label: "Close shell {index + 1}", class: "tab-close", onclick: move |_| close(id) }
                    }
                }
                IconButton { icon: "plus", label: "New shell", class: "tab-new", onclick: move |_| add() }
            }
            for id in tabs.iter().copied() {
                Shell { key: "{id}", window, terminal: id, front: active == Some(id), ended, onclose: move |()| close(id) }
            }
        }
    }
}

fn parse(shows: Option<&str>) -> Vec<TerminalId> {
    shows.unwrap_or_default().split_whitespace().filter_map(|id| id.parse().ok()).collect()
}

/// Changes which shells the window shows.
fn show(desk: Desk, window: WindowId, change: impl FnOnce(&mut Vec<TerminalId>)) {
    desk.change(window, |state| {
        let mut tabs = parse(state.shows.as_deref());
        change(&mut tabs);
        let ids: Vec<String> = tabs.iter().map(ToString::to_string).collect();
        state.shows = (!ids.is_empty()).then(|| ids.join(" ").into());
    });
}

async fn start() -> Answer<TerminalId> {
    let terminal: Terminal = api::post("/terminals", &FIRST_SIZE).await?;
    Ok(terminal.id)
}

/// Finds out which shells still run. A window without any gets one, such as after the computer was restarted.
async fn revive(
    desk: Desk,
    window: WindowId,
    tabs: Vec<TerminalId>,
    mut ended: Signal<Vec<TerminalId>>,
) -> Answer<()> {
    let running: Vec<Terminal> = api::get("/terminals").await?;
    let gone: Vec<TerminalId> =
        tabs.iter().copied().filter(|id| !running.iter().any(|terminal| terminal.id == *id)).collect();
    if gone.len() < tabs.len() {
        ended.set(gone);
        return Ok(());
    }
    let id = start().await?;
    // A second screen of the same computer may have been quicker.
    let now = parse(desk.window(window).and_then(|state| state.shows).as_deref());
    if now == tabs {
        show(desk, window, |tabs| *tabs = vec![id]);
        return Ok(());
    }
    api::delete(&format!("/terminals/{id}")).await
}
