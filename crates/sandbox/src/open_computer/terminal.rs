//! One terminal: a process with a screen, and its newest output. How the process was started is not known here.

use std::io::{self, Read};
use std::sync::{Arc, Mutex, PoisonError};

use shared_types::wire::{self, PartKind, TerminalKind};
use shared_types::{TerminalId, Timestamp};

use super::activity::{ActiveTerminal, TerminalActivity};
use super::input_queue::{Full, InputQueue};
use super::marks::MarkParser;
use super::process::{Process, ProcessControl, Size};
use crate::supervision::PartSupervisor;
use computer::ids;
use computer::output_feed::{Attachment, Backpressure, OutputFeed};

/// A running terminal.
pub(super) struct Terminal {
    pub(super) kind: TerminalKind,
    started: Timestamp,
    input: Arc<InputQueue>,
    control: Arc<dyn ProcessControl>,
    size: Mutex<Size>,
    feed: Arc<OutputFeed>,
}

impl std::fmt::Debug for Terminal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Terminal").field("id", &self.id()).finish_non_exhaustive()
    }
}

impl Terminal {
    /// Reads the output of a process until it ends, and reports the marks of commands in it.
    pub(super) fn start(
        kind: TerminalKind,
        process: Process,
        size: Size,
        activity: &Arc<TerminalActivity>,
        parts: &PartSupervisor,
    ) -> io::Result<Arc<Self>> {
        let Process { output, input, control, wait } = process;
        let terminal = Arc::new(Self {
            kind,
            started: ids::now(),
            input: InputQueue::start(input, Arc::clone(&control))?,
            control,
            size: Mutex::new(size),
            feed: OutputFeed::new(ids::new_terminal(), Backpressure::WaitForTabs),
        });
        let (feed, input) = (Arc::clone(&terminal.feed), Arc::clone(&terminal.input));
        let active = activity.register();
        let running = parts.guard(PartKind::Terminal, terminal.id().to_string());
        std::thread::Builder::new().name("terminal".into()).spawn(move || {
            let _running = running;
            read(output, &feed, active);
            feed.end(wait());
            input.close();
        })?;
        Ok(terminal)
    }

    pub(super) fn id(&self) -> TerminalId {
        self.feed.id()
    }

    pub(super) fn describe(&self) -> wire::Terminal {
        let Size { columns, rows } = *self.size.lock().unwrap_or_else(PoisonError::into_inner);
        wire::Terminal { id: self.id(), kind: self.kind, started: self.started, columns, rows }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.feed.has_ended()
    }

    /// Sends input. Refused if the program has not read the earlier input.
    pub(super) async fn type_in(&self, bytes: &[u8]) -> Result<(), Full> {
        self.input.push(bytes).await
    }

    pub(super) fn resize(&self, size: Size) {
        *self.size.lock().unwrap_or_else(PoisonError::into_inner) = size;
        self.input.resize(size);
    }

    pub(super) fn end(&self) {
        self.input.close();
        self.control.end();
    }

    pub(super) fn attach(&self, offset: u64) -> Attachment {
        self.feed.attach(offset)
    }
}

fn read(mut output: Box<dyn Read + Send>, feed: &OutputFeed, mut active: ActiveTerminal) {
    let mut buffer = [0; 8192];
    let mut marks = MarkParser::default();
    loop {
        let count = match output.read(&mut buffer) {
            Ok(0) => return,
            Ok(count) => count,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            // The shell's side is closed.
            Err(_) => return,
        };
        marks.find(&buffer[..count]).for_each(|mark| active.on_mark(mark));
        feed.add(&buffer[..count]);
    }
}
