//! The code of the apps, in a few modules. Each is fetched when the first window of one of its apps opens, or before that,
//! once the desktop has nothing else to do.

// The split macro declares the function as `extern`.
#![allow(unsafe_code)]

use std::collections::HashMap;

use dioxus::prelude::*;
use shared_types::WindowId;
use wasm_split_helpers::{SplitLoaderError, wasm_split};

/// Draws the inside of a window.
type Draw = fn(WindowId, Option<String>) -> Element;

static FETCHED: GlobalSignal<HashMap<&'static str, Draw>> = Signal::global(HashMap::new);

/// The code of an app that was fetched.
pub(super) fn of(app: &str) -> Option<Draw> {
    FETCHED.read().get(app).copied()
}

macro_rules! apps {
    ($($module:ident: $($app:ident)*;)*) => {
        #[cfg(test)]
        const NAMES: &[&str] = &[$($(stringify!($app)),*),*];

        $(
            #[wasm_split($module, fallible)]
            fn $module(app: String) -> Result<Option<Draw>, SplitLoaderError> {
                Ok(match app.as_str() {
                    $(stringify!($app) => Some({
                        use super::$app::App;
                        |window, shows| rsx! { App { window, shows } }
                    }),)*
                    _ => None,
                })
            }
        )*

        async fn get(app: &str) -> Result<Option<Draw>, SplitLoaderError> {
            match app {
                $($(stringify!($app))|* => $module(app.to_owned()).await,)*
                _ => Ok(None),
            }
        }
    };
}

// Code that two modules share becomes another module, so a few large ones are better than many.
apps! {
    work: files terminal editor timeline git help viewer;
    choir: runs settings;
}

/// Why the code of an app is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FetchError {
    Unknown,
    Unreachable,
}

/// Fetches the code of an app, unless that was done.
pub(super) async fn fetch(app: &str) -> Result<(), FetchError> {
    if FETCHED.peek().contains_key(app) {
        return Ok(());
    }
    let known = crate::app_list::find(app).ok_or(FetchError::Unknown)?;
    let draw = get(app).await.map_err(|_| FetchError::Unreachable)?.ok_or(FetchError::Unknown)?;
    FETCHED.write().insert(known.id, draw);
    Ok(())
}

/// Fetches the code of every app, one after the other. A failed fetch is repeated when the app is opened.
pub(crate) async fn fetch_all() {
    for app in crate::app_list::APPS {
        let _ = fetch(app.id).await;
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_app_has_its_code() {
        for app in crate::app_list::APPS {
            assert!(super::NAMES.contains(&app.id), "{}", app.id);
        }
        assert_eq!(super::NAMES.len(), crate::app_list::APPS.len());
    }
}
