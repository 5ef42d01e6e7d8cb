//! Programs that serve tools, each in a cell of its own for as long as it is spoken with. They see nothing of the person's
//! files unless that was said, never what an agent may not read, and change nothing.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agents::ground::Sight;
use isolation::proxy::{HostRules, Proxy};
use isolation::{Access, Backend, Cell, Command, Mount, Status};
use mcp::{Launch, LaunchedProgram, Program, Secrets};
use tempfile::TempDir;

use super::secrets::{Covers, Guarded};
use super::settings::{CellSettings, mount};
use crate::place::Place;

/// See the module.
#[derive(Debug)]
pub struct ServerCells {
    settings: CellSettings,
    backend: Arc<dyn Backend>,
    workspace: PathBuf,
    owner: String,
    sight: Sight,
    guarded: Arc<Guarded>,
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
        rules: &Arc<agents::Rules>,
    ) -> Self {
        let (workspace, sight) = (place.workspace.clone(), Sight::of_everyone(rules));
        let guarded = Arc::new(Guarded::new(&workspace));
        Self { settings, backend, workspace, owner, sight, guarded, folders }
    }

    /// The folder a program starts in, the person's files or nothing at all; and whether it is as it was then.
    fn workspace(&self, program: &Program, scratch: &Path) -> io::Result<(Mount, Check)> {
        if !program.workspace {
            let nothing = scratch.join("nothing");
            std::fs::create_dir(&nothing)?;
            return Ok((Mount::workspace(nothing, Access::ReadOnly), Arc::new(|| true)));
        }
        let covers = Covers::of(&self.guarded, &self.sight)?;
        let shown = mount(self.workspace.clone(), Access::ReadOnly, covers.paths());
        let (guarded, sight) = (Arc::clone(&self.guarded), self.sight.clone());
        let is_same = move || Covers::of(&guarded, &sight).is_ok_and(|now| now == covers);
        Ok((shown, Arc::new(is_same)))
    }

    /// Starts the cell of a server, with nothing in it yet. It ends with the guard.
    fn start(&self, name: &str, program: &Program) -> io::Result<(Ends, Check)> {
        std::fs::create_dir_all(&self.folders)?;
        let scratch = tempfile::Builder::new().prefix(&format!("mcp-{name}-")).tempdir_in(&self.folders)?;
        let rest = scratch.path().join("cell");
        std::fs::create_dir(&rest)?;
        let (workspace, is_confined) = self.workspace(program, scratch.path())?;
        let policy = self.settings.server_policy(&self.owner, workspace, program);
        let rules = HostRules::of(&policy.network).map_err(io::Error::other)?;
        let cell = self.backend.start(&policy, &rest).map_err(io::Error::other)?;
        // From here on it is ended, whatever fails.
        let mut guard = Ends { cell, proxy: None, scratch: Some(scratch) };
        let asked = name.to_owned();
        let tell = move |request: isolation::proxy::ProxiedRequest| {
            tracing::debug!(server = asked, host = request.host, verdict = ?request.verdict, "an MCP server's request");
        };
        guard.proxy =
            guard.cell.take_listener().map(|inside| Proxy::serve(inside, rules, tell)).transpose()?;
        Ok((guard, is_confined))
    }

    /// Whether the program of a server is there in its cell. Nothing of it is run.
    pub fn finds(&self, name: &str, program: &Program) -> io::Result<bool> {
        let offline = Program { network: mcp::NetworkScope::Nothing, ..program.clone() };
        let (guard, _) = self.start(name, &offline)?;
        let wanted = program.argv.first().cloned().unwrap_or_default();
        let look = Command::new(["/bin/sh".into(), "-c".into(), "command -v -- \"$0\"".into(), wanted]);
        let looked = guard.cell.exec(&look, &mut |_, _| ()).map_err(io::Error::other)?;
        Ok(looked.status == Status::Exited(0))
    }
}

type Check = Arc<dyn Fn() -> bool + Send + Sync>;

impl Launch for ServerCells {
    fn launch(&self, name: &str, program: &Program, secrets: Secrets) -> io::Result<LaunchedProgram> {
        let (guard, is_confined) = self.start(name, program)?;
        let mut command = Command::new(program.argv.clone());
        command.environment = secrets.iter().map(|(name, value)| (name.clone(), value.to_string())).collect();
        let command = guard.cell.spawn_piped(&command).map_err(io::Error::other)?;
        let stream = join(command.output, command.input)?;
        Ok(LaunchedProgram { stream, stderr_tail: command.stderr_tail, is_confined, guard: Box::new(guard) })
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
