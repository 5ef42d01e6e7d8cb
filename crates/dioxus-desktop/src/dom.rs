//! The few things that need the document itself: places of elements, focus, direct style writes, listeners.

use std::cell::RefCell;
use std::rc::Rc;

use dioxus::core::{Runtime, ScopeId};
use dioxus::prelude::KeyboardEvent;
use dioxus::web::WebEventExt;
use wasm_bindgen::closure::Closure;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{Document, Element, Event, HtmlElement, Window};

pub(crate) fn window() -> Option<Window> {
    web_sys::window()
}

pub(crate) fn document() -> Option<Document> {
    window()?.document()
}

/// The name of a key by the browser, such as `a` or `ArrowDown`. Dioxus would need a table of all names in the bundle.
pub(crate) fn key(event: &KeyboardEvent) -> String {
    event.data().as_web_event().key()
}

pub(crate) fn by_id(id: &str) -> Option<HtmlElement> {
    document()?.get_element_by_id(id)?.dyn_into().ok()
}

pub(crate) fn focus(id: &str) {
    if let Some(element) = by_id(id) {
        let _ = element.focus();
    }
}

/// Moves the focus after the next render.
pub(crate) fn focus_soon(id: impl Into<String>) {
    let id = id.into();
    gloo_timers::callback::Timeout::new(0, move || focus(&id)).forget();
}

thread_local! {
    /// The control of each window that had the focus last, by the id of the window's element.
    static LAST_FOCUSED: RefCell<Vec<(String, HtmlElement)>> = const { RefCell::new(Vec::new()) };
}

/// The controls that a window without a last one begins with: an editor, a terminal, a list.
const FIRST_CONTROL: &str = ".cm-content, .xterm-helper-textarea, [role=listbox][tabindex='0']";

/// Remembers the focused control of a window.
pub(crate) fn remember_focus(window: &str) {
    let Some(control) = active().and_then(|element| element.dyn_into::<HtmlElement>().ok()) else { return };
    // The frame itself is focused by a press on it, and is none of its controls.
    if control.id() == window {
        return;
    }
    LAST_FOCUSED.with_borrow_mut(|controls| {
        controls.retain(|(of, control)| of != window && control.is_connected());
        controls.push((window.to_owned(), control));
    });
}

/// Moves the focus into a window, to the control that had it last, after the next render.
pub(crate) fn focus_window_soon(window: impl Into<String>) {
    let window = window.into();
    gloo_timers::callback::Timeout::new(0, move || focus_window(&window)).forget();
}

fn focus_window(window: &str) {
    let Some(frame) = by_id(window) else { return };
    // What the person has chosen inside meanwhile stays.
    if active().is_some_and(|element| element.id() != window && frame.contains(Some(&element))) {
        return;
    }
    let last = LAST_FOCUSED.with_borrow(|controls| controls.iter().find(|(of, _)| of == window).cloned());
    let last = last
        .map(|(_, control)| control)
        .filter(|control| control.is_connected() && frame.contains(Some(control)));
    let first = || frame.query_selector(FIRST_CONTROL).ok().flatten().and_then(|e| e.dyn_into().ok());
    let control = last.or_else(first);
    let _ = control.as_ref().unwrap_or(&frame).focus();
    // A control that is hidden or disabled by now does not take it.
    if active().as_ref() != control.as_deref() {
        let _ = frame.focus();
    }
}

/// Selects the text of the window that has the focus, if one has.
pub(crate) fn select_window_text() {
    let body = active().and_then(|element| element.closest(".win").ok().flatten());
    let body = body.and_then(|frame| frame.query_selector(".body").ok().flatten());
    if let (Some(body), Some(Ok(Some(selection)))) = (body, window().map(|window| window.get_selection())) {
        let _ = selection.select_all_children(&body);
    }
}

/// Scrolls an element into view, by as little as possible.
pub(crate) fn reveal(id: &str) {
    if let Some(element) = by_id(id) {
        let options = web_sys::ScrollIntoViewOptions::new();
        options.set_block(web_sys::ScrollLogicalPosition::Nearest);
        element.scroll_into_view_with_scroll_into_view_options(&options);
    }
}

/// A direct style write; the content security policy allows it, unlike a style attribute.
pub(crate) fn style(element: &HtmlElement, property: &str, value: &str) {
    let _ = element.style().set_property(property, value);
}

/// Width and height of the viewport.
pub(crate) fn screen() -> (i32, i32) {
    let read = |get: fn(&Window) -> Result<JsValue, JsValue>| {
        window().and_then(|w| get(&w).ok()).and_then(|v| v.as_f64()).unwrap_or(1024.0) as i32
    };
    (read(Window::inner_width), read(Window::inner_height))
}

pub(crate) fn active() -> Option<Element> {
    document()?.active_element()
}

/// Whether the focus is inside an element that a selector names.
pub(crate) fn is_in(selector: &str) -> bool {
    active().is_some_and(|element| element.closest(selector).ok().flatten().is_some())
}

/// Whether the focus is in a text field.
pub(crate) fn is_typing() -> bool {
    let Some(element) = active() else { return false };
    let tag = element.tag_name();
    let text_input = tag == "INPUT"
        && !matches!(
            element.get_attribute("type").as_deref(),
            Some("checkbox" | "radio" | "range" | "button")
        );
    text_input
        || tag == "TEXTAREA"
        || tag == "SELECT"
        || element.dyn_ref::<HtmlElement>().is_some_and(HtmlElement::is_content_editable)
}

/// Listens on the window for as long as the page lives, inside the desktop's runtime.
pub(crate) fn listen<E: JsCast + 'static>(event: &str, capture: bool, mut run: impl FnMut(E) + 'static) {
    let Some(window) = window() else { return };
    let runtime = Runtime::current();
    let closure = Closure::<dyn FnMut(Event)>::new(move |event: Event| {
        if let Ok(event) = event.dyn_into::<E>() {
            runtime.in_scope(ScopeId::APP, || run(event));
        }
    });
    let target = closure.as_ref().unchecked_ref();
    let _ = window.add_event_listener_with_callback_and_bool(event, target, capture);
    closure.forget();
}

/// A callback for the browser that runs inside the desktop's runtime.
pub(crate) fn callback<T: wasm_bindgen::convert::FromWasmAbi + 'static>(
    mut run: impl FnMut(T) + 'static,
) -> Closure<dyn FnMut(T)> {
    let runtime: Rc<Runtime> = Runtime::current();
    Closure::new(move |value: T| runtime.in_scope(ScopeId::APP, || run(value)))
}

/// A value that [`keep`] stored in this browser.
pub(crate) fn kept(key: &str) -> Option<String> {
    window()?.local_storage().ok()??.get_item(key).ok()?
}

/// A value of this tab's session storage.
pub(crate) fn session_get(key: &str) -> Option<String> {
    window()?.session_storage().ok()??.get_item(key).ok()?
}

pub(crate) fn session_set(key: &str, value: &str) {
    if let Some(Ok(Some(storage))) = window().map(|w| w.session_storage()) {
        let _ = storage.set_item(key, value);
    }
}

/// Stores a value in this browser, or removes it.
pub(crate) fn keep(key: &str, value: Option<&str>) {
    if let Some(Ok(Some(storage))) = window().map(|w| w.local_storage()) {
        let _ = match value {
            Some(value) => storage.set_item(key, value),
            None => storage.remove_item(key),
        };
    }
}

/// Stores a text in this browser; false if there is no room.
pub(crate) fn keep_safe(key: &str, text: &str) -> bool {
    let storage = window().and_then(|window| window.local_storage().ok().flatten());
    storage.is_some_and(|storage| storage.set_item(key, text).is_ok())
}

/// The prefix of the keys of drafts.
pub(crate) const DRAFT: &str = "draft:";
/// What was chosen recently in the prompt bar.
pub(crate) const RECENT: &str = "recent";

/// Deletes all drafts of this browser and what was chosen recently, for sign-out.
pub(crate) fn forget_drafts() {
    let Some(window) = window() else { return };
    // Open editors stop keeping drafts, too.
    if let Ok(event) = Event::new("choir-sign-out") {
        let _ = window.dispatch_event(&event);
    }
    for storage in [window.local_storage(), window.session_storage()] {
        let Ok(Some(storage)) = storage else { continue };
        let count = storage.length().unwrap_or_default();
        let keys: Vec<String> = (0..count).filter_map(|at| storage.key(at).ok().flatten()).collect();
        for key in keys.iter().filter(|key| key.starts_with(DRAFT) || *key == RECENT) {
            let _ = storage.remove_item(key);
        }
    }
}

/// Puts text on the clipboard.
pub(crate) fn copy(text: &str) {
    if let Some(window) = window() {
        let _ = window.navigator().clipboard().write_text(text);
    }
}

/// Part of an address.
pub(crate) fn encode(text: &str) -> String {
    js_sys::encode_uri_component(text).into()
}

/// Downloads a URL under a name.
pub(crate) fn download(url: &str, name: &str) {
    let Some(document) = document() else { return };
    let Some(anchor) =
        document.create_element("a").ok().and_then(|a| a.dyn_into::<web_sys::HtmlAnchorElement>().ok())
    else {
        return;
    };
    anchor.set_href(url);
    anchor.set_download(name);
    anchor.click();
}

/// Leaves a line in the console of the browser.
pub(crate) fn warn(text: &str) {
    web_sys::console::warn_1(&text.into());
}

/// Moves the focus to the prompt bar from anywhere.
pub(crate) fn focus_prompt() {
    focus("prompt");
    if let Some(input) = by_id("prompt")
        && let Some(input) = input.dyn_ref::<web_sys::HtmlTextAreaElement>()
    {
        input.select();
    }
}
