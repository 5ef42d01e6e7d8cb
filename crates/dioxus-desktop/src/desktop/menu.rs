//! Context menus: one layer for the whole desktop. Arrow keys move, Enter does, Escape closes and the focus returns.

use std::rc::Rc;

use dioxus::prelude::*;
use wasm_bindgen::JsCast;
use web_sys::HtmlElement;

use crate::dom;
use crate::icons::Icon;
use crate::state::app_state;

/// A line of a menu.
#[derive(Clone)]
pub(crate) enum Item {
    Do { icon: &'static str, label: String, key: &'static str, bad: bool, run: Rc<dyn Fn()> },
    Line,
}

impl Item {
    pub(crate) fn new(icon: &'static str, label: impl Into<String>, run: impl Fn() + 'static) -> Self {
        Self::Do { icon, label: label.into(), key: "", bad: false, run: Rc::new(run) }
    }

    /// The shortcut that does the same.
    pub(crate) fn key(self, text: &'static str) -> Self {
        match self {
            Self::Do { icon, label, bad, run, .. } => Self::Do { icon, label, key: text, bad, run },
            Self::Line => Self::Line,
        }
    }

    pub(crate) fn bad(self) -> Self {
        match self {
            Self::Do { icon, label, key, run, .. } => Self::Do { icon, label, key, bad: true, run },
            Self::Line => Self::Line,
        }
    }
}

/// An open menu.
#[derive(Clone)]
pub(crate) struct Menu {
    x: f64,
    y: f64,
    items: Vec<Item>,
    /// What had the focus, to give it back.
    from: Option<HtmlElement>,
}

impl Menu {
    pub(crate) fn at(x: f64, y: f64, items: Vec<Item>) -> Self {
        let from = dom::active().and_then(|e| e.dyn_into().ok());
        dom::focus_soon("menu-0");
        Self { x, y, items, from }
    }
}

fn close(focus_back: bool) {
    let mut app_state = app_state();
    let menu = app_state.menu.write().take();
    if focus_back && let Some(from) = menu.and_then(|m| m.from) {
        let _ = from.focus();
    }
}

fn step(by: isize, count: usize) {
    let current = dom::active().and_then(|e| e.id().strip_prefix("menu-")?.parse::<isize>().ok());
    let next = current.map_or(0, |c| (c + by).rem_euclid(count.max(1) as isize));
    dom::focus(&format!("menu-{next}"));
}

#[component]
pub(crate) fn MenuLayer() -> Element {
    let app_state = app_state();
    let Some(menu) = app_state.menu.read().clone() else { return rsx! {} };
    let (width, height) = *app_state.screen.read();
    let tall = menu.items.iter().map(|i| if matches!(i, Item::Line) { 9 } else { 30 }).sum::<i32>() + 12;
    let x = (menu.x as i32).min(width - 236).max(4);
    let y = (menu.y as i32).min(height - tall - 4).max(4);
    let doing = menu.items.iter().filter(|i| matches!(i, Item::Do { .. })).count();
    let mut number = 0;
    rsx! {
        div {
            class: "scrim clear",
            onpointerdown: move |_| close(true),
            oncontextmenu: move |event| {
                event.prevent_default();
                event.stop_propagation();
                close(true);
            },
        }
        div {
            class: "menu",
            role: "menu",
            left: "{x}px",
            top: "{y}px",
            onkeydown: move |event| {
                match dom::key(&event).as_str() {
                    "ArrowDown" => step(1, doing),
                    "ArrowUp" => step(-1, doing),
                    "Home" => dom::focus("menu-0"),
                    "Escape" | "Tab" => close(true),
                    _ => return,
                }
                event.prevent_default();
                event.stop_propagation();
            },
            for (i, item) in menu.items.into_iter().enumerate() {
                match item {
                    Item::Line => rsx! { hr { key: "{i}" } },
                    Item::Do { icon, label, key, bad, run } => {
                        let id = number;
                        number += 1;
                        rsx! {
                            button {
                                key: "{i}",
                                id: "menu-{id}",
                                role: "menuitem",
                                tabindex: "-1",
                                class: if bad { "bad" } else { "" },
                                onclick: move |_| {
                                    close(true);
                                    run();
                                },
                                Icon { name: icon }
                                span { "{label}" }
                                if !key.is_empty() { kbd { "{key}" } }
                            }
                        }
                    }
                }
            }
        }
    }
}
