//! The bar at the bottom: launcher, apps, prompt bar, notifications, connection, clock.

use dioxus::prelude::*;
use shared_types::WindowId;
use shared_types::payload::window::WindowMode;
use shared_types::wire::RunState;

use super::prompt::Prompt;
use crate::app_list::{self, AppInfo};
use crate::format::money;
use crate::icons::Icon;
use crate::menu::{Item, Menu};
use crate::state::ConnectionState;
use crate::state::{AppState, Overlay, app_state};
use crate::widgets::{button, choose_text};
use crate::words;
use crate::{clock, dom, ids, runs};

#[component]
pub(crate) fn Taskbar() -> Element {
    let mut app_state = app_state();
    rsx! {
        nav { class: "task", id: "taskbar", "aria-label": words::desktop::TASKBAR,
            div { class: "apps",
                button {
                    id: "launcher-button",
                    class: "app launcher-button",
                    title: words::desktop::ALL_APPS,
                    "aria-label": words::desktop::ALL_APPS,
                    "aria-expanded": (*app_state.overlay.read() == Overlay::Launcher).to_string(),
                    onclick: move |_| toggle(app_state, Overlay::Launcher),
                    Icon { name: "layout-grid" }
                }
                for app in app_list::APPS {
                    AppButton { key: "{app.id}", app }
                }
            }
            Prompt {}
            div { class: "tray",
                Working {}
                Unsaved {}
                button {
                    id: "notices-button",
                    class: "icon-btn bell",
                    title: words::desktop::NOTIFICATIONS,
                    "aria-label": words::desktop::NOTIFICATIONS,
                    "aria-expanded": (*app_state.overlay.read() == Overlay::Notices).to_string(),
                    onclick: move |_| {
                        toggle(app_state, Overlay::Notices);
                        app_state.unread.set(0);
                    },
                    Icon { name: "bell" }
                    if *app_state.unread.read() > 0 { i { class: "badge" } }
                }
                ConnectionIndicator {}
                Clock {}
            }
        }
    }
}

/// Opens an overlay, or closes it if it is the one that is open.
pub(crate) fn toggle(mut app_state: AppState, overlay: Overlay) {
    let next = if *app_state.overlay.peek() == overlay { Overlay::None } else { overlay };
    app_state.overlay.set(next);
}

fn windows_of(app_state: AppState, app: &AppInfo) -> Vec<(WindowId, String, WindowMode)> {
    let windows = app_state.windows.read();
    windows
        .iter()
        .filter(|(_, w)| *w.app == *app.id)
        .map(|(id, w)| (*id, w.title.to_string(), w.mode))
        .collect()
}

/// A click shows the app, minimises its front window, or cycles through several windows.
fn show(app_state: AppState, app: &'static AppInfo) {
    let windows = windows_of(app_state, app);
    let front = app_state.front();
    match windows.as_slice() {
        [] => app_state.open_new(app, None),
        [(id, ..)] if front == Some(*id) => app_state.change(*id, |w| w.mode = WindowMode::Minimized),
        [(id, ..)] => app_state.show(*id),
        many => {
            let stack = app_state.stack.peek().clone();
            let order = |id: &WindowId| stack.iter().position(|other| other == id).unwrap_or_default();
            let next = if many.iter().any(|(id, ..)| front == Some(*id)) {
                many.iter().map(|(id, ..)| *id).min_by_key(order)
            } else {
                many.iter().map(|(id, ..)| *id).max_by_key(order)
            };
            if let Some(id) = next {
                app_state.show(id);
            }
        }
    }
}

#[component]
fn AppButton(app: &'static AppInfo) -> Element {
    let mut app_state = app_state();
    let windows = windows_of(app_state, app);
    let running = !windows.is_empty();
    if !running && !app.pinned {
        return rsx! {};
    }
    let front = app_state.front().is_some_and(|front| windows.iter().any(|(id, ..)| *id == front));
    let class = match (running, front) {
        (_, true) => "app run front",
        (true, false) => "app run",
        (false, false) => "app",
    };
    rsx! {
        button {
            class,
            title: "{app.title}",
            "aria-label": if running { words::desktop::running(app.title) } else { app.title.to_owned() },
            "aria-pressed": front.to_string(),
            "data-app": app.id,
            onclick: move |_| show(app_state, app),
            onauxclick: move |_| app_state.open_new(app, None),
            oncontextmenu: move |event| {
                event.prevent_default();
                let at = event.client_coordinates();
                let mut items: Vec<Item> = windows
                    .iter()
                    .cloned()
                    .map(|(id, title, _)| Item::new(app.icon, title, move || app_state.show(id)))
                    .collect();
                if !items.is_empty() {
                    items.push(Item::Line);
                }
                items.push(Item::new("plus", words::desktop::NEW_WINDOW, move || app_state.open_new(app, None)));
                for (id, title, _) in windows.iter().cloned() {
                    items.push(Item::new("x", words::desktop::close_window(&title), move || app_state.close(id)));
                }
                app_state.menu.set(Some(Menu::at(at.x, at.y, items)));
            },
            Icon { name: app.icon }
        }
    }
}

/// The runs in progress and their cost so far.
#[component]
fn Working() -> Element {
    let app_state = app_state();
    let asked = app_state.runs.questions.read().iter().filter(|q| q.about.needs_answer()).count() as u64;
    let newest = app_state.runs.newest.read();
    let open: Vec<_> = newest.iter().filter(|line| !line.state.is_over()).collect();
    let Some(first) = open.first() else { return rsx! {} };
    let run = open.iter().find(|line| line.state == RunState::Waiting).unwrap_or(first).run;
    let working = open.iter().filter(|line| line.state == RunState::Running).count();
    let spent = open.iter().map(|line| line.cost.micros).sum::<u64>();
    let label = match (asked, working) {
        (0, 0) if open.iter().all(|line| line.state == RunState::Paused) => {
            words::desktop::runs_paused(open.len())
        }
        (0, 0) => words::desktop::runs_waiting(open.len()),
        (0, n) => words::desktop::runs_working(n),
        (n, _) => words::desktop::questions(n),
    };
    rsx! {
        button {
            class: if asked > 0 { "pill ask" } else { "pill live" },
            id: "working",
            title: "{first.title}",
            onclick: move |_| runs::open(app_state, run),
            Icon { name: "activity" }
            "{label}"
            if spent > 0 { span { class: "wide-only", {words::desktop::cost_so_far(&money(spent))} } }
        }
    }
}

/// The number of changes since the last checkpoint.
#[component]
fn Unsaved() -> Element {
    let app_state = app_state();
    let count = *app_state.unsaved.read();
    if count == 0 {
        return rsx! {};
    }
    let label = words::desktop::since_checkpoint(count);
    rsx! {
        button {
            class: "pill",
            title: "{label}",
            "aria-label": "{label}",
            onclick: move |_| {
                if let Some(app) = app_list::find("git") {
                    app_state.open(app, None);
                }
            },
            Icon { name: "git-commit-horizontal" }
            "{clock::count(count)}"
        }
    }
}

#[component]
fn ConnectionIndicator() -> Element {
    let (icon, class, label) = match *app_state().connection.read() {
        ConnectionState::Live => ("wifi", "link live", words::desktop::CONNECTED),
        ConnectionState::Connecting => ("wifi", "link connecting", words::desktop::CONNECTING),
        ConnectionState::Lost => ("wifi-off", "link lost", words::desktop::NOT_CONNECTED),
    };
    rsx! {
        span { class, id: "link", role: "img", title: label, "aria-label": label, Icon { name: icon } }
    }
}

#[component]
fn Clock() -> Element {
    let mut now = use_signal(ids::now);
    use_future(move || async move {
        loop {
            let millis = ids::now().millis();
            let rest = 60_000 - millis.rem_euclid(60_000);
            gloo_timers::future::TimeoutFuture::new(rest as u32 + 20).await;
            now.set(ids::now());
        }
    });
    let at = now();
    rsx! {
        div { class: "clock", "{clock::time(at)}" small { "{clock::day(at)}" } }
    }
}

/// The list behind the bell.
#[component]
pub(crate) fn Notices() -> Element {
    let mut app_state = app_state();
    if *app_state.overlay.read() != Overlay::Notices {
        return rsx! {};
    }
    let notices = app_state.notices.read().clone();
    let close = move || {
        let mut app_state = app_state;
        app_state.overlay.set(Overlay::None);
        dom::focus("notices-button");
    };
    rsx! {
        div { class: "scrim clear", onpointerdown: move |_| close() }
        section { class: "panel notices", role: "dialog", "aria-label": words::desktop::NOTIFICATIONS,
            header {
                b { {words::desktop::NOTIFICATIONS} }
                span { class: "sp" }
                if !notices.is_empty() {
                    button { class: "btn ghost", onclick: move |_| app_state.notices.set(Vec::new()), {words::desktop::CLEAR} }
                }
            }
            if notices.is_empty() {
                crate::widgets::Empty { icon: "bell", title: words::desktop::NOTHING_NEW, p { {words::desktop::NOTHING_NEW_MORE} } }
            }
            ul {
                for (i, notice) in notices.into_iter().enumerate() {
                    li { key: "{i}", class: if notice.bad { "bad" } else { "" },
                        Icon { name: choose_text(notice.bad, "triangle-alert", "info") }
                        span { "{notice.text}" }
                        if let Some(run) = notice.run {
                            {button("btn small", "", words::OPEN, move || {
                                close();
                                runs::open(app_state, run);
                            })}
                        }
                        time { "{clock::when(notice.at)}" }
                    }
                }
            }
        }
    }
}
