//! Context menus: one layer for the whole desktop. Arrow keys move, Enter does, Escape closes and the focus returns.

use dioxus::prelude::*;

use crate::dom;
use crate::icons::Icon;
use crate::menu::Item;
use crate::state::app_state;

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
