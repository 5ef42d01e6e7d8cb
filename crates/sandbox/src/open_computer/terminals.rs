//! The terminals of one computer.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use shared_types::TerminalId;
use shared_types::wire::{self, TerminalKind};

use super::activity::TerminalActivity;
use super::input_queue::Full;
use super::process::Size;
use super::terminal::Terminal;
use super::{cell_process, shell_process};
use crate::supervision::PartSupervisor;
use computer::Computer;
use computer::error::{ComputerError, ErrorCode};
use computer::output_feed::Attachment;

/// Shells that may run at once.
const MAX_TERMINALS: usize = 32;
/// What a screen can be.
const SCREEN_SIZES: std::ops::RangeInclusive<u16> = 2..=1000;

/// All terminals that run.
#[derive(Debug)]
pub struct Terminals {
    computer: Arc<Computer>,
    activity: Arc<TerminalActivity>,
    parts: PartSupervisor,
    running: Mutex<BTreeMap<TerminalId, Arc<Terminal>>>,
}

fn unknown(id: TerminalId) -> ComputerError {
    ComputerError::new(ErrorCode::NotFound, format!("there is no terminal {id}; it may have ended"))
}

impl Terminals {
    pub(super) fn new(
        computer: Arc<Computer>,
        activity: Arc<TerminalActivity>,
        parts: PartSupervisor,
    ) -> Self {
        Self { computer, activity, parts, running: Mutex::default() }
    }

    fn running(&self) -> MutexGuard<'_, BTreeMap<TerminalId, Arc<Terminal>>> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.retain(|_, terminal| !terminal.has_ended());
        running
    }

    fn get(&self, id: TerminalId) -> Result<Arc<Terminal>, ComputerError> {
        self.running
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&id)
            .cloned()
            .ok_or_else(|| unknown(id))
    }

    pub fn list(&self) -> Vec<wire::Terminal> {
        self.running().values().map(|terminal| terminal.describe()).collect()
    }

    /// Starts a shell in the workspace.
    pub fn start(&self, kind: TerminalKind, size: Size) -> Result<wire::Terminal, ComputerError> {
        check(size)?;
        let full = || {
            ComputerError::new(
                ErrorCode::Refused,
                format!("{MAX_TERMINALS} terminals run already; close one"),
            )
        };
        if self.running().len() >= MAX_TERMINALS {
            return Err(full());
        }
        let failed =
            |e: io::Error| ComputerError::new(ErrorCode::Failed, format!("no shell could be started: {e}"));
        let process = match kind {
            TerminalKind::Cell => cell_process::start(&self.computer, size)?,
            TerminalKind::Shell => shell_process::start(&self.computer.paths, size).map_err(failed)?,
        };
        let terminal = Terminal::start(kind, process, size, &self.activity, &self.parts).map_err(failed)?;
        let described = terminal.describe();
        // Making a cell takes a while, and other requests must not wait for it.
        let mut running = self.running();
        if running.len() >= MAX_TERMINALS {
            terminal.end();
            return Err(full());
        }
        running.insert(terminal.id(), terminal);
        Ok(described)
    }

    /// Whether a terminal is a plain shell, with the owner's power over the machine.
    pub fn is_shell(&self, id: TerminalId) -> bool {
        self.get(id).is_ok_and(|terminal| terminal.kind == TerminalKind::Shell)
    }

    /// Ends the plain shells, as when a second account is created.
    pub fn end_shells(&self) {
        self.running()
            .values()
            .filter(|terminal| terminal.kind == TerminalKind::Shell)
            .for_each(|shell| shell.end());
    }

    pub fn end(&self, id: TerminalId) -> Result<(), ComputerError> {
        self.get(id)?.end();
        Ok(())
    }

    pub fn attach(&self, id: TerminalId, offset: u64) -> Result<Attachment, ComputerError> {
        Ok(self.get(id)?.attach(offset))
    }

    /// Types bytes into a terminal. Waits a moment at most, and never on a thread that serves others.
    pub async fn type_in(&self, id: TerminalId, bytes: &[u8]) -> Result<(), ComputerError> {
        let full = |Full| {
            ComputerError::new(
                ErrorCode::Refused,
                "the program in this terminal does not read what is typed, so the last input was dropped; \
                 close the terminal to end it",
            )
        };
        self.get(id)?.type_in(bytes).await.map_err(full)
    }

    pub fn resize(&self, id: TerminalId, size: Size) -> Result<(), ComputerError> {
        check(size)?;
        self.get(id)?.resize(size);
        Ok(())
    }

    pub(super) fn end_all(&self) {
        let all: Vec<Arc<Terminal>> = self.running().values().cloned().collect();
        all.iter().for_each(|terminal| terminal.end());
    }
}

fn check(Size { columns, rows }: Size) -> Result<(), ComputerError> {
    if SCREEN_SIZES.contains(&columns) && SCREEN_SIZES.contains(&rows) {
        return Ok(());
    }
    let message = format!("invalid terminal size {columns}x{rows}: columns and rows must be from 2 to 1000");
    Err(ComputerError::new(ErrorCode::BadRequest, message))
}
