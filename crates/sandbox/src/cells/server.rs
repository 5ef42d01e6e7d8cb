//! Programs that serve tools, each in a cell of its own for as long as it is spoken with. They see nothing of the person's
//! files unless that was said, and change nothing.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use isolation::proxy::{Proxy, Rules};
use isolation::{Access, Backend, Cell, Command, Mount};
use mcp::{Launch, Launched, Program, Secrets};
use tempfile::TempDir;

use super::settings::{CellSettings, mount};
use crate::place::Place;

/// See the module.
#[derive(Debug)]
pub struct ServerCells {
    settings: CellSettings,
    backend: Arc<dyn Backend>,
    workspace: PathBuf,
    owner: String,
    /// Where each cell has a folder of its own.
    folders: PathBuf,
}

impl ServerCells {
    pub fn new(
        settings: CellSettings,
        backend: Arc<dyn Backend>,
        place: &Place,
        owner: String,
        folders: PathBuf,
    ) -> Self {
        Self { settings, backend, workspace: place.workspace.clone(), owner, folders }
    }

    /// The folder a program starts in: the person's files, or nothing at all.
    fn workspace(&self, program: &Program, scratch: &Path) -> io::Result<Mount> {
        if program.workspace {
            return Ok(mount(self.workspace.clone(), Access::ReadOnly, Vec::new()));
        }
        let nothing = scratch.join("nothing");
        std::fs::create_dir(&nothing)?;
        Ok(Mount::workspace(nothing, Access::ReadOnly))
    }
}

impl Launch for ServerCells {
    fn launch(&self, name: &str, program: &Program, secrets: Secrets) -> io::Result<Launched> {
        std::fs::create_dir_all(&self.folders)?;
        let scratch = tempfile::Builder::new().prefix(&format!("mcp-{name}-")).tempdir_in(&self.folders)?;
        let rest = scratch.path().join("cell");
        std::fs::create_dir(&rest)?;
        let workspace = self.workspace(program, scratch.path())?;
        let policy = self.settings.server_policy(&self.owner, workspace, program);
        let rules = Rules::of(&policy.network).map_err(io::Error::other)?;
        let cell = self.backend.start(&policy, &rest).map_err(io::Error::other)?;
        // From here on it is ended, whatever fails.
        let mut guard = Ends { cell: Arc::clone(&cell), proxy: None, scratch: Some(scratch) };
        let asked = name.to_owned();
        let tell = move |request: isolation::proxy::Request| {
            tracing::debug!(server = asked, host = request.host, verdict = ?request.verdict, "an MCP server's request");
        };
        guard.proxy = cell.take_listener().map(|inside| Proxy::serve(inside, rules, tell)).transpose()?;
        let mut command = Command::new(program.argv.clone());
        command.environment = secrets.iter().map(|(name, value)| (name.clone(), value.to_string())).collect();
        let talk = cell.talk(&command).map_err(io::Error::other)?;
        let stream = join(talk.output, talk.input)?;
        Ok(Launched { stream, complaints: talk.complaints, guard: Box::new(guard) })
    }
}

/// Both directions as one stream that can be waited for.
fn join(
    mut output: Box<dyn io::Read + Send>,
    mut input: Box<dyn io::Write + Send>,
) -> io::Result<UnixStream> {
    let (theirs, ours) = UnixStream::pair()?;
    let (mut said, mut heard) = (ours.try_clone()?, ours);
    let thread = |name: &str| std::thread::Builder::new().name(name.to_owned());
    thread("mcp output").spawn(move || {
        let _ = io::copy(&mut output, &mut said);
        // Whoever listens is told that nothing more comes.
        let _ = said.shutdown(std::net::Shutdown::Both);
    })?;
    thread("mcp input").spawn(move || io::copy(&mut heard, &mut input))?;
    Ok(theirs)
}

/// Ends a program with everything that it left.
struct Ends {
    cell: Arc<dyn Cell>,
    proxy: Option<Proxy>,
    scratch: Option<TempDir>,
}

impl Drop for Ends {
    fn drop(&mut self) {
        self.cell.stop();
        self.proxy = None;
        let Some(scratch) = self.scratch.take().map(TempDir::keep) else { return };
        if let Err(error) = isolation::layer::remove(&scratch) {
            tracing::warn!(%error, "what the cell of an MCP server left could not be removed");
        }
    }
}
