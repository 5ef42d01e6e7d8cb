//! The terminals of one computer.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use shared_types::{TerminalId, wire};

use super::terminal::{Attachment, Terminal};
use crate::failure::{Code, Failure};

/// Shells that may run at once.
const LIMIT: usize = 32;
/// What a screen can be.
const SIZES: std::ops::RangeInclusive<u16> = 2..=1000;

/// All terminals that run.
#[derive(Debug)]
pub struct Terminals {
    folder: PathBuf,
    running: Mutex<BTreeMap<TerminalId, Arc<Terminal>>>,
}

fn unknown(id: TerminalId) -> Failure {
    Failure::new(Code::NotFound, format!("there is no terminal {id}; it may have ended"))
}

impl Terminals {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder, running: Mutex::default() }
    }

    fn running(&self) -> MutexGuard<'_, BTreeMap<TerminalId, Arc<Terminal>>> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.retain(|_, terminal| !terminal.has_ended());
        running
    }

    fn get(&self, id: TerminalId) -> Result<Arc<Terminal>, Failure> {
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
    pub fn start(&self, columns: u16, rows: u16) -> Result<wire::Terminal, Failure> {
        check_size(columns, rows)?;
        let mut running = self.running();
        if running.len() >= LIMIT {
            return Err(Failure::new(Code::Refused, format!("{LIMIT} terminals run already; close one")));
        }
        let terminal = Terminal::start(&self.folder, columns, rows)
            .map_err(|e| Failure::new(Code::Failed, format!("no shell could be started: {e}")))?;
        let described = terminal.describe();
        running.insert(terminal.id, terminal);
        Ok(described)
    }

    pub fn end(&self, id: TerminalId) -> Result<(), Failure> {
        self.get(id)?.end();
        Ok(())
    }

    pub fn attach(&self, id: TerminalId, offset: u64) -> Result<Attachment, Failure> {
        Ok(self.get(id)?.attach(offset))
    }

    pub fn type_in(&self, id: TerminalId, bytes: &[u8]) -> Result<(), Failure> {
        let closed = |e: io::Error| Failure::new(Code::Failed, format!("the terminal does not listen: {e}"));
        self.get(id)?.type_in(bytes).map_err(closed)
    }

    pub fn resize(&self, id: TerminalId, columns: u16, rows: u16) -> Result<(), Failure> {
        check_size(columns, rows)?;
        self.get(id)?.resize(columns, rows).map_err(|e| Failure::new(Code::Failed, e.to_string()))
    }

    pub(super) fn end_all(&self) {
        self.running().values().for_each(|terminal| terminal.end());
    }
}

fn check_size(columns: u16, rows: u16) -> Result<(), Failure> {
    if SIZES.contains(&columns) && SIZES.contains(&rows) {
        return Ok(());
    }
    let message = format!("a terminal of {columns} by {rows} cannot be: each must be from 2 to 1000");
    Err(Failure::new(Code::BadRequest, message))
}
