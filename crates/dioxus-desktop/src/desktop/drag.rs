//! Moving and resizing. While the pointer is down only styles change, at most once a frame; nothing is rendered. At
//! the end there is one gesture.

use std::cell::RefCell;
use std::collections::HashMap;

use dioxus::prelude::*;
use shared_types::WindowId;
use shared_types::payload::window::{Rect, WindowMode};
use wasm_bindgen::JsCast;
use web_sys::{HtmlElement, PointerEvent};

use super::snap::{self, Zone};
use super::window::reachable;
use crate::dom;
use crate::state::{AppState, BAR};

/// The side or corner that is pulled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Edge {
    N,
    S,
    E,
    W,
    NE,
    NW,
    SE,
    SW,
}

impl Edge {
    pub(crate) const ALL: [Self; 8] =
        [Self::N, Self::S, Self::E, Self::W, Self::NE, Self::NW, Self::SE, Self::SW];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::N => "n",
            Self::S => "s",
            Self::E => "e",
            Self::W => "w",
            Self::NE => "ne",
            Self::NW => "nw",
            Self::SE => "se",
            Self::SW => "sw",
        }
    }

    fn pull(self, rect: Rect, dx: i32, dy: i32) -> Rect {
        const LEAST: (i32, i32) = (280, 160);
        let (mut left, mut top) = (rect.x, rect.y);
        let (mut right, mut bottom) = (rect.x + rect.width as i32, rect.y + rect.height as i32);
        let name = self.name();
        if name.contains('w') {
            left = (left + dx).min(right - LEAST.0);
        }
        if name.contains('e') {
            right = (right + dx).max(left + LEAST.0);
        }
        if name.contains('n') {
            top = (top + dy).min(bottom - LEAST.1).max(0);
        }
        if name.contains('s') {
            bottom = (bottom + dy).max(top + LEAST.1);
        }
        Rect { x: left, y: top, width: (right - left) as u32, height: (bottom - top) as u32 }
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Move,
    Resize(Edge),
}

struct Drag {
    id: WindowId,
    kind: Kind,
    element: HtmlElement,
    pointer: i32,
    start: (i32, i32),
    at: (i32, i32),
    rect: Rect,
    was_max: bool,
    moved: bool,
    zone: Option<Zone>,
    frame_asked: bool,
}

thread_local! {
    static DRAG: RefCell<Option<Drag>> = const { RefCell::new(None) };
    /// The rectangles of windows before they were snapped; a window gets it back when it is dragged away.
    static BEFORE: RefCell<HashMap<WindowId, Rect>> = RefCell::default();
}

/// Remembers the rectangle of a window before it is snapped.
pub(crate) fn remember(id: WindowId, rect: Rect) {
    BEFORE.with_borrow_mut(|before| *before.entry(id).or_insert(rect));
}

/// Listens for the pointer once, for every window.
pub(crate) fn install(app_state: AppState) {
    let frame = dom::callback::<f64>(|_| paint());
    let frame = std::rc::Rc::new(frame);
    dom::listen::<PointerEvent>("pointermove", false, move |event| {
        let ask = DRAG.with_borrow_mut(|drag| {
            let Some(drag) = drag.as_mut().filter(|d| d.pointer == event.pointer_id()) else { return false };
            drag.at = (event.client_x(), event.client_y());
            !std::mem::replace(&mut drag.frame_asked, true)
        });
        if ask && let Some(window) = dom::window() {
            let _ = window.request_animation_frame((*frame).as_ref().unchecked_ref());
        }
    });
    dom::listen::<PointerEvent>("pointerup", false, move |event| {
        end(app_state, Some(event.pointer_id()), true)
    });
    dom::listen::<PointerEvent>("pointercancel", false, move |event| {
        end(app_state, Some(event.pointer_id()), false)
    });
}

/// Whether something is being dragged.
pub(crate) fn active() -> bool {
    DRAG.with_borrow(Option::is_some)
}

/// Cancels a drag.
pub(crate) fn cancel(app_state: AppState) {
    end(app_state, None, false);
}

pub(crate) fn begin_move(app_state: AppState, id: WindowId, event: &PointerEvent) {
    begin(app_state, id, Kind::Move, event);
}

pub(crate) fn begin_resize(app_state: AppState, id: WindowId, edge: Edge, event: &PointerEvent) {
    begin(app_state, id, Kind::Resize(edge), event);
}

fn begin(app_state: AppState, id: WindowId, kind: Kind, event: &PointerEvent) {
    let screen = *app_state.screen.peek();
    if screen.0 <= 640 || active() {
        return;
    }
    let (Some(state), Some(element)) = (app_state.window(id), dom::by_id(&format!("w-{id}"))) else { return };
    app_state.raise(id);
    let at = (event.client_x(), event.client_y());
    let drag = Drag {
        id,
        kind,
        element,
        pointer: event.pointer_id(),
        start: at,
        at,
        rect: reachable(state.rect, screen),
        was_max: state.mode == WindowMode::Maximized,
        moved: false,
        zone: None,
        frame_asked: false,
    };
    DRAG.with_borrow_mut(|current| *current = Some(drag));
}

/// One frame of the drag.
fn paint() {
    DRAG.with_borrow_mut(|drag| {
        let Some(drag) = drag else { return };
        drag.frame_asked = false;
        let (dx, dy) = (drag.at.0 - drag.start.0, drag.at.1 - drag.start.1);
        if !drag.moved {
            if dx.abs() < 4 && dy.abs() < 4 {
                return;
            }
            drag.moved = true;
            // Only now: a captured pointer would take clicks and double-clicks away from the title.
            let _ = drag.element.set_pointer_capture(drag.pointer);
            let _ = drag.element.class_list().add_1("dragging");
            if matches!(drag.kind, Kind::Move) {
                detach(drag);
            }
        }
        match drag.kind {
            Kind::Move => {
                let y = dy.max(-drag.rect.y);
                dom::style(&drag.element, "transform", &format!("translate3d({dx}px,{y}px,0)"));
                let zone = snap::zone_at(drag.at, dom::screen());
                if zone != drag.zone {
                    drag.zone = zone;
                    snap::preview(zone);
                }
            }
            Kind::Resize(edge) => place(&drag.element, edge.pull(drag.rect, dx, dy)),
        }
    });
}

/// A maximised or snapped window takes its own size again under the pointer.
fn detach(drag: &mut Drag) {
    let before = BEFORE.with_borrow_mut(|before| before.remove(&drag.id));
    let size = match before {
        Some(before) => before,
        None if drag.was_max => drag.rect,
        None => return,
    };
    let width = size.width as i32;
    let x = (drag.start.0 - width / 2).max(0);
    let y = (drag.start.1 - 16).max(0);
    drag.rect = Rect { x, y, width: size.width, height: size.height };
    let _ = drag.element.class_list().remove_1("max");
    place(&drag.element, drag.rect);
}

fn place(element: &HtmlElement, rect: Rect) {
    dom::style(element, "left", &format!("{}px", rect.x));
    dom::style(element, "top", &format!("{}px", rect.y));
    dom::style(element, "width", &format!("{}px", rect.width));
    dom::style(element, "height", &format!("{}px", rect.height));
}

fn end(app_state: AppState, pointer: Option<i32>, keep: bool) {
    let drag = DRAG.with_borrow_mut(|drag| {
        if drag.as_ref().is_some_and(|d| pointer.is_none_or(|p| p == d.pointer)) { drag.take() } else { None }
    });
    let Some(drag) = drag else { return };
    if !drag.moved {
        return;
    }
    let _ = drag.element.release_pointer_capture(drag.pointer);
    snap::preview(None);
    let _ = drag.element.class_list().remove_1("dragging");
    dom::style(&drag.element, "transform", "");
    if !keep {
        if let Some(state) = app_state.window(drag.id) {
            place(&drag.element, reachable(state.rect, dom::screen()));
            if drag.was_max {
                let _ = drag.element.class_list().add_1("max");
            }
        }
        return;
    }
    let (width, height) = dom::screen();
    let (dx, dy) = (drag.at.0 - drag.start.0, drag.at.1 - drag.start.1);
    let rect = match drag.kind {
        Kind::Resize(edge) => edge.pull(drag.rect, dx, dy),
        Kind::Move => {
            let y = (drag.rect.y + dy).clamp(0, (height - BAR - 34).max(0));
            let x = (drag.rect.x + dx).clamp(80 - drag.rect.width as i32, width - 80);
            Rect { x, y, ..drag.rect }
        }
    };
    if let (Kind::Move, Some(zone)) = (drag.kind, drag.zone) {
        place(&drag.element, drag.rect);
        snap::to_zone(app_state, drag.id, zone);
    } else {
        place(&drag.element, rect);
        app_state.change(drag.id, |w| {
            w.rect = rect;
            w.mode = WindowMode::Normal;
        });
    }
}
