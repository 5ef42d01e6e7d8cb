//! The desktop in the browser: windows, taskbar, prompt bar and the apps, on top of one connection to the computer.

mod api;
mod app_list;
mod apps;
mod change_log;
mod clock;
mod connection;
mod desktop;
mod dom;
mod file_kinds;
mod format;
mod icons;
mod ids;
mod js_modules;
mod json;
mod menu;
mod model;
mod question_cards;
mod runs;
mod session;
mod state;
mod undo;
mod undo_plan;
mod upload;
mod widgets;
mod words;

fn main() {
    dioxus::launch(session::Root);
}
