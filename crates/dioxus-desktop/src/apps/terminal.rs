//! Terminal: shells on the computer, one per tab. The server keeps their output and the window remembers its shells, so
//! that a reload, a lost connection or a second screen changes nothing. A new shell runs in a cell; the owner may open a
//! plain one.
//!
//! The window's `shows` holds the ids of its shells, separated by spaces, and is the only list of tabs there is.

mod shell;

use dioxus::prelude::*;
use shared_types::wire::{NewTerminal, Terminal, TerminalKind};
use shared_types::{TerminalId, WindowId};

use self::shell::Shell;
use crate::api::{self, ApiFailure, ApiResult};
use crate::icons::Icon;
use crate::menu::{Item, Menu};
use crate::state::{AppState, app_state};
use crate::widgets::{Empty, IconButton, Loading, choose_text};
use crate::words;

#[component]
pub(crate) fn App(window: WindowId, shows: Option<String>) -> Element {
    let app_state = app_state();
    let offered = app_state.me.read().as_ref().is_some_and(|me| me.shell);
    let tabs = parse(app_state, shows.as_deref());
    let mut front = use_signal(|| None::<TerminalId>);
    let mut error = use_signal(|| None::<ApiFailure>);
    let ended = use_signal(Vec::<TerminalId>::new);
    let mut plain = use_signal(Vec::<TerminalId>::new);
    let first = tabs.clone();
    use_hook(move || {
        spawn(async move {
            if let Err(failure) = revive(app_state, window, first, ended).await {
                error.set(Some(failure));
            }
        });
    });
    // Fetches which shells are plain, again when the window gets others, also from a second screen.
    use_effect(use_reactive!(|shows| {
        if shows.is_some() {
            spawn(async move {
                match api::get::<Vec<Terminal>>("/terminals").await {
                    Ok(running) => {
                        let shells = running.iter().filter(|terminal| terminal.kind == TerminalKind::Shell);
                        plain.set(shells.map(|terminal| terminal.id).collect());
                    }
                    Err(failure) => app_state.report_unreadable(&failure),
                }
            });
        }
    }));
    let add = move |kind: TerminalKind| {
        spawn(async move {
            match start(kind).await {
                Ok(id) => {
                    show(app_state, window, |tabs| tabs.push(id));
                    front.set(Some(id));
                }
                Err(failure) => app_state.report_failure(&failure),
            }
        });
    };
    let close = move |id: TerminalId| {
        show(app_state, window, |tabs| tabs.retain(|other| *other != id));
        if parse(app_state, app_state.window(window).and_then(|w| w.shows).as_deref()).is_empty() {
            app_state.close(window);
        }
        // A shell that has ended already is not there to be closed.
        api::run(async move { drop(api::delete(&format!("/terminals/{id}")).await) });
    };

    if tabs.is_empty() {
        let Some(failure) = error() else { return rsx! { Loading {} } };
        return rsx! {
            Empty { icon: "box", title: words::terminal::NO_CELL,
                p { "{failure.text()}" }
                p { {words::terminal::NO_CELL_MORE} }
                if offered {
                    button { class: "btn", onclick: move |_| add(TerminalKind::Shell), Icon { name: "square-terminal" } {words::terminal::PLAIN_SHELL} }
                }
            }
        };
    }
    let active = front().filter(|id| tabs.contains(id)).or_else(|| tabs.last().copied());
    let kinds = move |event: MouseEvent| {
        let mut app_state = app_state;
        let at = event.client_coordinates();
        let items = vec![
            Item::new("box", words::terminal::IN_A_CELL, move || add(TerminalKind::Cell)),
            Item::new("square-terminal", words::terminal::PLAIN_SHELL, move || add(TerminalKind::Shell)),
        ];
        app_state.menu.set(Some(Menu::at(at.x, at.y, items)));
    };
    rsx! {
        div { class: "terminal",
            div { class: "tabs", role: "tablist", "aria-label": words::terminal::SHELLS,
                for (index, id) in tabs.iter().copied().enumerate() {
                    Tab {
                        key: "{id}",
                        number: index + 1,
                        on: active == Some(id),
                        plain: plain.read().contains(&id),
                        over: ended.read().contains(&id),
                        onchoose: move |()| front.set(Some(id)),
                        onclose: move |()| close(id),
                    }
                }
                IconButton { icon: "plus", label: words::terminal::NEW_SHELL, class: "tab-new", onclick: move |_| add(TerminalKind::Cell) }
                if offered {
                    IconButton { icon: "chevron-down", label: words::terminal::KIND_OF_SHELL, class: "tab-kind", onclick: kinds }
                }
            }
            for id in tabs.iter().copied() {
                Shell { key: "{id}", window, terminal: id, front: active == Some(id), ended, onclose: move |()| close(id) }
            }
        }
    }
}

#[component]
fn Tab(
    number: usize,
    on: bool,
    plain: bool,
    over: bool,
    onchoose: EventHandler<()>,
    onclose: EventHandler<()>,
) -> Element {
    let name = match (over, plain) {
        (true, _) => words::terminal::ENDED.to_owned(),
        (false, true) => words::terminal::shell(number),
        (false, false) => words::terminal::cell(number),
    };
    rsx! {
        div { class: if on { "tab on" } else { "tab" },
            button {
                class: "tab-name",
                r#type: "button",
                role: "tab",
                "aria-selected": on.to_string(),
                title: choose_text(plain, words::terminal::ABOUT_PLAIN_SHELL, words::terminal::ABOUT_CELL),
                onclick: move |_| onchoose.call(()),
                Icon { name: choose_text(plain, "square-terminal", "box") }
                "{name}"
                if plain { span { class: "chip warn", {words::terminal::PLAIN} } }
            }
            IconButton { icon: "x", label: words::terminal::close_shell(number), class: "tab-close", onclick: move |_| onclose.call(()) }
        }
    }
}

/// The shells of a window: their ids, separated by spaces. One that cannot be read is reported.
fn parse(app_state: AppState, shows: Option<&str>) -> Vec<TerminalId> {
    let mut ids = Vec::new();
    for text in shows.unwrap_or_default().split_whitespace() {
        match text.parse() {
            Ok(id) => ids.push(id),
            Err(_) => app_state.report_unreadable_later(text),
        }
    }
    ids
}

/// Changes which shells the window shows.
fn show(app_state: AppState, window: WindowId, change: impl FnOnce(&mut Vec<TerminalId>)) {
    app_state.change(window, |state| {
        let mut tabs = parse(app_state, state.shows.as_deref());
        change(&mut tabs);
        let ids: Vec<String> = tabs.iter().map(ToString::to_string).collect();
        state.shows = (!ids.is_empty()).then(|| ids.join(" ").into());
    });
}

/// The size is a guess until the screen has measured itself.
async fn start(kind: TerminalKind) -> ApiResult<TerminalId> {
    let terminal: Terminal = api::post("/terminals", &NewTerminal { kind, columns: 80, rows: 24 }).await?;
    Ok(terminal.id)
}

/// Finds out which shells still run. A window without any gets one, such as after the computer was restarted.
async fn revive(
    app_state: AppState,
    window: WindowId,
    tabs: Vec<TerminalId>,
    mut ended: Signal<Vec<TerminalId>>,
) -> ApiResult<()> {
    let running: Vec<Terminal> = api::get("/terminals").await?;
    let gone: Vec<TerminalId> =
        tabs.iter().copied().filter(|id| !running.iter().any(|terminal| terminal.id == *id)).collect();
    if gone.len() < tabs.len() {
        ended.set(gone);
        return Ok(());
    }
    let id = start(TerminalKind::Cell).await?;
    // A second screen of the same computer may have been quicker.
    let now = parse(app_state, app_state.window(window).and_then(|state| state.shows).as_deref());
    if now == tabs {
        show(app_state, window, |tabs| *tabs = vec![id]);
        return Ok(());
    }
    api::delete(&format!("/terminals/{id}")).await
}
