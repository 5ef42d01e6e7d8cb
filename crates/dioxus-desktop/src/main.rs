//! The desktop in the browser: windows, taskbar, prompt bar and the apps, on top of one connection to the computer.

mod api;
mod apps;
mod changes;
mod clock;
mod connection;
mod desktop;
mod dom;
mod format;
mod icons;
mod ids;
mod js_parts;
mod json;
mod model;
mod parts;
mod runs;
mod session;
mod state;
mod undo;
mod upload;
mod words;

fn main() {
    dioxus::launch(session::Root);
}
