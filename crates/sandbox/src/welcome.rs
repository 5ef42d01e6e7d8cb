//! The first content of a new computer: a welcome document, open on the desktop.

use shared_types::payload::window::{Rect, Window, WindowMode};
use shared_types::wire::DesktopAction;
use shared_types::{Actor, FilePath, WindowId};

use computer::Computer;
use computer::error::{ComputerError, ErrorCode};
use computer::ids;
use computer::protocol::{Envelope, Request};

const PATH: &str = "Welcome.md";
const TEXT: &str = include_str!("welcome.md");

/// Writes the document and opens it in a window.
pub fn prepare(computer: &Computer) -> Result<(), ComputerError> {
    let path = FilePath::parse(PATH).map_err(|e| ComputerError::new(ErrorCode::Failed, e.to_string()))?;
    let write = Request::Write { path, mode: None, base: kernel::Base::Absent };
    ask(computer, write, TEXT.as_bytes())?;
    let state = Window {
        app: "editor".into(),
        title: PATH.into(),
        rect: Rect { x: 96, y: 56, width: 760, height: 560 },
        mode: WindowMode::Normal,
        z: 1,
        shows: Some(PATH.into()),
    };
    let window = WindowId::from_bytes(*ids::new_op().as_bytes());
    ask(computer, Request::Gesture(DesktopAction::SetWindow { window, state }), &[])
}

fn ask(computer: &Computer, request: Request, mut body: &[u8]) -> Result<(), ComputerError> {
    let envelope = Envelope { actor: Actor::DESKTOP, ..Envelope::new(request) };
    computer.handle(&envelope, &mut body, &|_, _, _| ()).into_done().map(drop)
}
