//! The JavaScript modules of `web/`: terminal, editor and viewer. Each is loaded on first use; this file and the module
//! declare the same small typed interface.
//!
//! Dropping a handle disposes of the mounted view and of its callbacks.

use crate::words;
use dioxus::core::{Runtime, ScopeId};
use js_sys::{Function, Object, Reflect, Uint8Array};
use wasm_bindgen::closure::Closure;
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::HtmlElement;

#[wasm_bindgen]
extern "C" {
    /// Set by `web/src/boot.ts`.
    #[wasm_bindgen(js_name = choirPart, catch)]
    async fn part(name: &str) -> Result<JsValue, JsValue>;

    type Module;
    #[wasm_bindgen(method, catch)]
    async fn mount(this: &Module, element: &HtmlElement, options: &JsValue) -> Result<JsValue, JsValue>;

    type JsHandle;
    #[wasm_bindgen(method, catch)]
    fn dispose(this: &JsHandle) -> Result<(), JsValue>;
    #[wasm_bindgen(method, catch)]
    fn focus(this: &JsHandle) -> Result<(), JsValue>;

    type TerminalPart;
    #[wasm_bindgen(method)]
    fn write(this: &TerminalPart, bytes: &Uint8Array, done: &Function);
    #[wasm_bindgen(method)]
    fn replay(this: &TerminalPart, bytes: &Uint8Array, done: &Function);
    #[wasm_bindgen(method)]
    fn reset(this: &TerminalPart);
    #[wasm_bindgen(method)]
    fn fit(this: &TerminalPart);
    #[wasm_bindgen(method)]
    fn columns(this: &TerminalPart) -> u16;
    #[wasm_bindgen(method)]
    fn rows(this: &TerminalPart) -> u16;
    #[wasm_bindgen(method, js_name = onData)]
    fn on_data(this: &TerminalPart, callback: &Function);
    #[wasm_bindgen(method, js_name = onResize)]
    fn on_resize(this: &TerminalPart, callback: &Function);

    type EditorPart;
    #[wasm_bindgen(method, js_name = getText)]
    fn get_text(this: &EditorPart) -> String;
    #[wasm_bindgen(method, js_name = setText)]
    fn set_text(this: &EditorPart, text: &str);
    #[wasm_bindgen(method, js_name = setTheme)]
    fn set_theme(this: &EditorPart, dark: bool);
    #[wasm_bindgen(method, js_name = onChange)]
    fn on_change(this: &EditorPart, callback: &Function);
    #[wasm_bindgen(method, js_name = onSave)]
    fn on_save(this: &EditorPart, callback: &Function);
    #[wasm_bindgen(method, js_name = onStatus)]
    fn on_status(this: &EditorPart, callback: &Function);
    #[wasm_bindgen(method, js_name = setSaved)]
    fn set_saved(this: &EditorPart, text: Option<String>);
    #[wasm_bindgen(method, js_name = isSaved)]
    fn is_saved(this: &EditorPart) -> bool;
    #[wasm_bindgen(method, js_name = setWraps)]
    fn set_wraps(this: &EditorPart, wraps: bool);
    #[wasm_bindgen(method, js_name = goToLine)]
    fn go_to_line(this: &EditorPart);
    #[wasm_bindgen(method, js_name = keepDraft)]
    fn keep_draft(this: &EditorPart, key: &str, head: &str);
    #[wasm_bindgen(method, js_name = dropDraft)]
    fn drop_draft(this: &EditorPart);

    type ViewerPart;
    #[wasm_bindgen(method, js_name = onOpen)]
    fn on_open(this: &ViewerPart, callback: &Function);

    type JsStatus;
    #[wasm_bindgen(method, getter)]
    fn line(this: &JsStatus) -> u32;
    #[wasm_bindgen(method, getter)]
    fn column(this: &JsStatus) -> u32;
    #[wasm_bindgen(method, getter)]
    fn selected(this: &JsStatus) -> u32;
    #[wasm_bindgen(method, getter)]
    fn language(this: &JsStatus) -> String;
    #[wasm_bindgen(method, getter, js_name = lineEnding)]
    fn line_ending(this: &JsStatus) -> String;
    #[wasm_bindgen(method, getter)]
    fn wraps(this: &JsStatus) -> bool;

    type EditorModule;
    #[wasm_bindgen(method, js_name = findDraft)]
    fn find_draft(this: &EditorModule, key: &str) -> Option<String>;
    #[wasm_bindgen(method, js_name = forgetDraft)]
    fn forget_draft(this: &EditorModule, key: &str);
}

/// Why a module is not loaded, as a sentence for the person.
pub(crate) type ModuleLoadError = String;

async fn load(name: &str) -> Result<Module, ModuleLoadError> {
    part(name).await.map(JsCast::unchecked_into).map_err(|error| why(&error))
}

fn why(error: &JsValue) -> ModuleLoadError {
    let text = error.dyn_ref::<js_sys::Error>().map(|e| String::from(e.message())).unwrap_or_default();
    words::part_not_loaded(&text)
}

fn options(pairs: &[(&str, JsValue)]) -> JsValue {
    let object = Object::new();
    for (key, value) in pairs {
        // Setting a field of a new plain object cannot fail.
        let _ = Reflect::set(&object, &(*key).into(), value);
    }
    object.into()
}

/// A mounted view. It is disposed of when this is dropped.
struct Mounted {
    part: JsHandle,
    callbacks: Vec<Closure<dyn FnMut(JsValue, JsValue)>>,
}

impl Mounted {
    fn new(handle: JsValue) -> Self {
        Self { part: handle.unchecked_into(), callbacks: Vec::new() }
    }

    /// A callback that runs inside the desktop's runtime and lives as long as the view.
    fn keep(&mut self, mut run: impl FnMut(JsValue, JsValue) + 'static) -> Function {
        let runtime = Runtime::current();
        let closure = Closure::<dyn FnMut(JsValue, JsValue)>::new(move |one: JsValue, two: JsValue| {
            runtime.in_scope(ScopeId::APP, || run(one, two));
        });
        let function = closure.as_ref().unchecked_ref::<Function>().clone();
        self.callbacks.push(closure);
        function
    }

    fn focus(&self) {
        let _ = self.part.focus();
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = self.part.dispose();
    }
}

fn number(value: &JsValue) -> u64 {
    value.as_f64().map(|number| number as u64).unwrap_or_default()
}

/// A screen with a keyboard.
pub(crate) struct TerminalScreen {
    mounted: Mounted,
    shown: Function,
}

impl TerminalScreen {
    /// `shown` is called with the number of bytes of a [`write`](Self::write) that are on the screen.
    pub(crate) async fn mount(
        element: &HtmlElement,
        label: &str,
        mut shown: impl FnMut(u64) + 'static,
    ) -> Result<Self, ModuleLoadError> {
        let options = options(&[("label", label.into())]);
        let handle = load("terminal").await?.mount(element, &options).await.map_err(|error| why(&error))?;
        let mut mounted = Mounted::new(handle);
        let shown = mounted.keep(move |bytes, _| shown(number(&bytes)));
        Ok(Self { mounted, shown })
    }

    fn part(&self) -> &TerminalPart {
        self.mounted.part.unchecked_ref()
    }

    pub(crate) fn write(&self, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.part().write(&Uint8Array::from(bytes), &self.shown);
        }
    }

    /// Shows old output: questions in it to the screen are not answered, since they have been.
    pub(crate) fn replay(&self, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.part().replay(&Uint8Array::from(bytes), &self.shown);
        }
    }

    pub(crate) fn reset(&self) {
        self.part().reset();
    }

    pub(crate) fn fit(&self) {
        self.part().fit();
    }

    pub(crate) fn focus(&self) {
        self.mounted.focus();
    }

    /// Columns and rows.
    pub(crate) fn size(&self) -> (u16, u16) {
        (self.part().columns(), self.part().rows())
    }

    pub(crate) fn on_typed(&mut self, mut run: impl FnMut(String) + 'static) {
        let callback = self.mounted.keep(move |text, _| run(text.as_string().unwrap_or_default()));
        self.part().on_data(&callback);
    }

    pub(crate) fn on_resized(&mut self, mut run: impl FnMut(u16, u16) + 'static) {
        let side = |value: &JsValue| u16::try_from(number(value)).unwrap_or(u16::MAX);
        let callback = self.mounted.keep(move |columns, rows| run(side(&columns), side(&rows)));
        self.part().on_resize(&callback);
    }
}

/// What the status bar shows about a text.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct TextStatus {
    /// Line and column of the cursor, from one.
    pub line: u32,
    pub column: u32,
    /// How many characters are selected.
    pub selected: u32,
    /// Empty for plain text.
    pub language: String,
    pub line_ending: String,
    pub wraps: bool,
}

/// A text that can be edited.
pub(crate) struct TextEditor {
    mounted: Mounted,
}

impl TextEditor {
    pub(crate) async fn mount(
        element: &HtmlElement,
        path: &str,
        text: &str,
        saved: Option<&str>,
        dark: bool,
    ) -> Result<Self, ModuleLoadError> {
        let saved = saved.map_or(JsValue::UNDEFINED, JsValue::from_str);
        let options =
            options(&[("path", path.into()), ("text", text.into()), ("saved", saved), ("dark", dark.into())]);
        let handle = load("editor").await?.mount(element, &options).await.map_err(|error| why(&error))?;
        Ok(Self { mounted: Mounted::new(handle) })
    }

    /// The draft under a key, as JSON, if there is one.
    pub(crate) async fn find_draft(key: &str) -> Option<String> {
        load("editor").await.ok()?.unchecked_ref::<EditorModule>().find_draft(key)
    }

    pub(crate) async fn forget_draft(key: &str) {
        if let Ok(module) = load("editor").await {
            module.unchecked_ref::<EditorModule>().forget_draft(key);
        }
    }

    fn part(&self) -> &EditorPart {
        self.mounted.part.unchecked_ref()
    }

    /// Keeps the text as a draft under a key, with a JSON object, until the draft is dropped or the window is closed.
    pub(crate) fn keep_draft(&self, key: &str, head: &str) {
        self.part().keep_draft(key, head);
    }

    pub(crate) fn drop_draft(&self) {
        self.part().drop_draft();
    }

    pub(crate) fn get(&self) -> String {
        self.part().get_text()
    }

    /// Does not count as a change by the person.
    pub(crate) fn set(&self, text: &str) {
        self.part().set_text(text);
    }

    /// The text that the file holds; nothing if it is not known.
    pub(crate) fn set_saved(&self, text: Option<&str>) {
        self.part().set_saved(text.map(ToOwned::to_owned));
    }

    /// Whether the text is the one that the file holds.
    pub(crate) fn is_saved(&self) -> bool {
        self.part().is_saved()
    }

    pub(crate) fn set_wraps(&self, wraps: bool) {
        self.part().set_wraps(wraps);
    }

    /// Asks for a line and goes there.
    pub(crate) fn go_to_line(&self) {
        self.part().go_to_line();
    }

    /// `run` is called with the status now, and whenever it changes.
    pub(crate) fn on_status(&mut self, mut run: impl FnMut(TextStatus) + 'static) {
        let callback = self.mounted.keep(move |status, _| {
            let status: &JsStatus = status.unchecked_ref();
            run(TextStatus {
                line: status.line(),
                column: status.column(),
                selected: status.selected(),
                language: status.language(),
                line_ending: status.line_ending(),
                wraps: status.wraps(),
            });
        });
        self.part().on_status(&callback);
    }

    pub(crate) fn set_dark(&self, dark: bool) {
        self.part().set_theme(dark);
    }

    pub(crate) fn focus(&self) {
        self.mounted.focus();
    }

    pub(crate) fn on_change(&mut self, mut run: impl FnMut() + 'static) {
        let callback = self.mounted.keep(move |_, _| run());
        self.part().on_change(&callback);
    }

    pub(crate) fn on_save(&mut self, mut run: impl FnMut() + 'static) {
        let callback = self.mounted.keep(move |_, _| run());
        self.part().on_save(&callback);
    }
}

/// A file of the workspace, shown by its kind.
pub(crate) struct FileView {
    mounted: Mounted,
}

impl FileView {
    /// `view` is a kind of `web/src/viewer.ts`. With a text, that is rendered and the file is not read.
    pub(crate) async fn mount(
        element: &HtmlElement,
        view: &str,
        path: &str,
        text: Option<&str>,
    ) -> Result<Self, ModuleLoadError> {
        let label = path.rsplit('/').next().unwrap_or(path);
        let mut pairs = vec![("kind", view.into()), ("path", path.into()), ("label", label.into())];
        pairs.extend(text.map(|text| ("text", text.into())));
        let handle =
            load("viewer").await?.mount(element, &options(&pairs)).await.map_err(|error| why(&error))?;
        Ok(Self { mounted: Mounted::new(handle) })
    }

    /// Calls back with the path of a file that a link leads to.
    pub(crate) fn on_open(&mut self, mut run: impl FnMut(String) + 'static) {
        let callback = self.mounted.keep(move |path, _| run(path.as_string().unwrap_or_default()));
        self.mounted.part.unchecked_ref::<ViewerPart>().on_open(&callback);
    }
}
