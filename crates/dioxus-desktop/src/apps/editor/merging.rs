//! The person's text beside what is in the file now: differences can be taken over one by one, and the outcome is
//! saved on top of both.

use std::cell::RefCell;
use std::rc::Rc;

use dioxus::prelude::*;
use dioxus::web::WebEventExt;
use shared_types::FilePath;
use wasm_bindgen::JsCast;
use web_sys::HtmlElement;

use super::document::Document;
use super::file::{self, Base};
use crate::api;
use crate::desk::{Desk, desk};
use crate::foreign::Merge;
use crate::icons::Icon;

#[component]
pub(super) fn Merging(document: Document, onclose: EventHandler<()>) -> Element {
    let desk = desk();
    let view = use_hook(|| Rc::new(RefCell::new(None::<Merge>)));
    let mut against = use_signal(|| None::<Base>);
    let mounted = view.clone();
    let done = view.clone();
    rsx! {
            div { class: "bar",
                Icon { name: "git-compare" }
                span { "On the left what is in the file, on the right your text. Take over what you want to keep." }
                button {
                    class: "btn pri",
                    r#type: "button",
                    disabled: against.read().is_none(),
                    onclick: move |_| {
                        let text = done.borrow().as_ref().map(Merge::get);
                        let Some((text, base)) = text.zip(against.peek().clone()) else { return };
                        document.with(|editor| editor.set(&text));
                        document.build_on(base);
                        onclose.call(());
                        api::run(async move {
        document.save(desk).await;
    });
                    },
                    "Save the merge"
                }
                button { class: "btn", r#type: "button", onclick: move |_| onclose.call(()), "Cancel" }
            }
            div {
                class: "part part-merge",
                onmounted: move |event| {
                    let Ok(element) = event.data().as_web_event().dyn_into::<HtmlElement>() else { return };
                    let Some(path) = document.path.peek().clone() else { return };
                    let view = mounted.clone();
                    spawn(async move {
                        match open(desk, document, &path, &element).await {
                            Ok((merge, base)) => {
                                view.replace(Some(merge));
                                against.set(Some(base));
                            }
                            Err(why) => {
                                desk.toast(why, true, crate::desk::Offer::Nothing);
                                onclose.call(());
                            }
                        }
                    });
                },
            }
        }
}

async fn open(
    desk: Desk,
    document: Document,
    path: &FilePath,
    element: &HtmlElement,
) -> Result<(Merge, Base), String> {
    let (base, theirs) = file::theirs(path).await.map_err(|failure| failure.text())?;
    let mine = document.text();
    let merge = Merge::mount(element, path.as_str(), (&mine, &theirs), super::dark(desk)).await?;
    Ok((merge, base))
}
