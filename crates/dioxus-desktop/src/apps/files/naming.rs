//! The field for a name, in the row of the file that gets it. What is wrong with a name is said there, and what was
//! typed stays.

use dioxus::prelude::*;
use shared_types::FilePath;
use wasm_bindgen::JsCast;

use super::{FilesView, actions};
use crate::state::app_state;
use crate::words;
use crate::{api, dom};

/// What gets a name.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Naming {
    Rename(FilePath),
    /// A file that is made once it has a name.
    NewFile,
    NewFolder,
}

impl Naming {
    /// The name to begin with, and how much of it typing replaces, in the browser's units.
    fn first_name(&self, view: FilesView) -> (String, usize) {
        match self {
            Self::Rename(path) => {
                let name = path.name();
                let stem = name.rfind('.').filter(|at| *at > 0).unwrap_or(name.len());
                (name.to_owned(), name[..stem].encode_utf16().count())
            }
            // The whole of it: the person knows the ending.
            Self::NewFile => {
                let name = actions::free_name(|name| view.has(name), "untitled", ".txt");
                let length = name.encode_utf16().count();
                (name, length)
            }
            Self::NewFolder => {
                let name = actions::free_name(|name| view.has(name), words::files::NEW_FOLDER, "");
                let length = name.encode_utf16().count();
                (name, length)
            }
        }
    }

    /// Why a name cannot be given.
    fn problem(&self, view: FilesView, name: &str) -> Option<String> {
        if name.is_empty() {
            return Some(words::files::NAME_NEEDED.to_owned());
        }
        if name.contains('/') {
            return Some(words::files::NO_SLASH.to_owned());
        }
        let is_own = matches!(self, Self::Rename(path) if path.name() == name);
        if !is_own && view.has(name) {
            return Some(words::files::name_taken(name));
        }
        view.join(name).err().map(|error| error.to_string())
    }
}

#[component]
pub(crate) fn NameField(view: FilesView, naming: Naming) -> Element {
    let app_state = app_state();
    let first = naming.clone();
    let mut name = use_signal(move || first.first_name(view).0);
    let mut problem = use_signal(|| None::<String>);
    let mut is_sent = use_signal(|| false);
    let id = format!("rename-{}", view.window);
    let selected = naming.clone();
    use_effect(move || {
        let id = format!("rename-{}", view.window);
        let (_, length) = selected.first_name(view);
        api::run(async move {
            gloo_timers::future::TimeoutFuture::new(0).await;
            dom::focus(&id);
            if let Some(Ok(input)) = dom::by_id(&id).map(|e| e.dyn_into::<web_sys::HtmlInputElement>()) {
                let _ = input.set_selection_range(0, length as u32);
            }
        });
    });
    let give = use_callback(move |()| {
        let wanted = name.peek().trim().to_owned();
        // Escape takes the field away, which ends its focus, too.
        if *is_sent.peek() || view.naming.peek().as_ref() != Some(&naming) {
            return;
        }
        if let Some(wrong) = naming.problem(view, &wanted) {
            problem.set(Some(wrong));
            return;
        }
        is_sent.set(true);
        let naming = naming.clone();
        api::run(async move {
            if let Err(failure) = actions::give_name(app_state, view, &naming, &wanted).await {
                api::update_if_open(problem, |problem| *problem = Some(failure));
                api::update_if_open(is_sent, |is_sent| *is_sent = false);
            }
        });
    });
    let stop = move || {
        let mut naming = view.naming;
        naming.set(None);
        dom::focus_soon(format!("list-{}", view.window));
    };
    rsx! {
        span { class: "naming",
            input {
                id,
                class: "field rename",
                "aria-label": words::files::NEW_NAME,
                "aria-invalid": problem.read().is_some().to_string(),
                "aria-describedby": "problem-{view.window}",
                value: "{name}",
                oninput: move |event| {
                    name.set(event.value());
                    problem.set(None);
                },
                onclick: move |event| event.stop_propagation(),
                ondoubleclick: move |event| event.stop_propagation(),
                onkeydown: move |event| {
                    event.stop_propagation();
                    match dom::key(&event).as_str() {
                        "Enter" => give.call(()),
                        "Escape" => stop(),
                        _ => {}
                    }
                },
                // A press elsewhere gives the name, too, unless it cannot be given.
                onblur: move |_| give.call(()),
            }
            span { id: "problem-{view.window}", class: "problem", role: "alert", if let Some(problem) = problem.read().as_ref() { "{problem}" } }
        }
    }
}
