//! The desktop in the browser: windows, taskbar, prompt bar and the apps, on top of one connection to the computer.

mod api;
mod apps;
mod choir;
mod clock;
mod connection;
mod desk;
mod desktop;
mod dom;
mod foreign;
mod icons;
mod ids;
mod model;
mod parts;
mod session;
mod undo;
mod upload;
mod wire;

fn main() {
    dioxus::launch(session::Root);
}
