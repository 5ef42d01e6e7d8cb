//! The items of a context menu. `desktop::menu` renders it.

use std::rc::Rc;

use wasm_bindgen::JsCast;
use web_sys::HtmlElement;

use crate::dom;

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
    pub x: f64,
    pub y: f64,
    pub items: Vec<Item>,
    /// The element that had the focus and gets it back.
    pub from: Option<HtmlElement>,
}

impl Menu {
    pub(crate) fn at(x: f64, y: f64, items: Vec<Item>) -> Self {
        let from = dom::active().and_then(|e| e.dyn_into().ok());
        dom::focus_soon("menu-0");
        Self { x, y, items, from }
    }
}
