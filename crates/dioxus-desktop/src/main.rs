//! The desktop in the browser: windows, taskbar, prompt bar and the apps, on top of one connection to the computer.

mod api;
mod app_list;
mod apps;
mod change_log;
mod clock;
mod connection;
mod desktop;
mod dom;
mod format;
mod icons;
mod ids;
mod js_parts;
mod json;
mod menu;
mod model;
mod parts;
mod question_cards;
mod runs;
mod session;
mod state;
mod undo;
mod undo_plan;
mod upload;
mod words;

fn main() {
    dioxus::launch(session::Root);
}
