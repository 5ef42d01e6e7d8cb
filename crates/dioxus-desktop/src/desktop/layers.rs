//! The layers over the windows: cards, toasts, panels, dialogs and menus. No first paint needs them, so their code is a
//! module of its own, which is fetched as soon as the desktop is there.

// The split macro declares the function as `extern`.
#![allow(unsafe_code)]

use dioxus::prelude::*;
use wasm_split_helpers::{SplitLoaderError, wasm_split};

use super::{launcher, menu, revert_dialog, shortcuts, taskbar, toast, tour};
use crate::dom;
use crate::question_cards::Cards;
use crate::state::{ConnectionState, app_state};

type Draw = fn() -> Element;

static FETCHED: GlobalSignal<Option<Draw>> = Signal::global(|| None);

#[wasm_split(layers, fallible)]
fn layers() -> Result<Draw, SplitLoaderError> {
    Ok(|| rsx! { AllLayers {} })
}

#[component]
fn AllLayers() -> Element {
    rsx! {
        Cards {}
        toast::Toasts {}
        launcher::Launcher {}
        taskbar::Notices {}
        shortcuts::CheatSheet {}
        tour::Tour {}
        revert_dialog::RevertDialogLayer {}
        menu::MenuLayer {}
    }
}

/// All layers, once their code is there. A fetch that failed is repeated when the connection is back, and when the person
/// asks for a layer.
#[component]
pub(super) fn Layers() -> Element {
    let app_state = app_state();
    use_effect(move || {
        let _ = (app_state.overlay.read(), app_state.menu.read(), app_state.revert_dialog.read());
        if *app_state.connection.read() != ConnectionState::Lost && FETCHED.peek().is_none() {
            spawn(async {
                match layers().await {
                    Ok(draw) => *FETCHED.write() = Some(draw),
                    // No toast can be shown without the layers.
                    Err(error) => dom::warn(&format!("layers: {error:?}")),
                }
            });
        }
    });
    match *FETCHED.read() {
        Some(draw) => draw(),
        None => rsx! {},
    }
}
