//! Runs the programs of MCP servers, each in its own cell while it is connected. A program sees the workspace only if
//! configured, read-only, and never files that an agent may not read.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agents::Rules as AgentRules;
use computer::ReadPolicy;
use computer::cells::{CellSettings, CoveredFiles, GuardedFiles, mount};
use computer::paths::{ComputerPaths, STATE};
use isolation::proxy::{HostRules, Proxy};
use isolation::{Access, Backend, Cell, Command, Limits, Mount, Network, Policy, Status};
use mcp::{Launch, LaunchedProgram, Program, Secrets};
use tempfile::TempDir;

/// See the module.
pub struct McpServerCells {
    settings: CellSettings,
    backend: Arc<dyn Backend>,
    workspace: PathBuf,
    owner: String,
    read_policy: ReadPolicy,
    guarded: Arc<GuardedFiles>,
    /// Where each cell gets its own folder.
    folders: PathBuf,
    on_start: Option<OnStart>,
}

/// Called with the name of a server when its program starts; the returned value is dropped when the program ends.
pub type OnStart = Arc<dyn Fn(&str) -> Box<dyn Send + Sync> + Send + Sync>;

impl std::fmt::Debug for McpServerCells {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("McpServerCells").field(&self.workspace).finish()
    }
}

impl McpServerCells {
    pub fn new(
        settings: CellSettings,
        backend: Arc<dyn Backend>,
        place: &ComputerPaths,
        owner: String,
        folders: PathBuf,
        rules: &Arc<AgentRules>,
    ) -> Self {
        let (workspace, read_policy) = (place.workspace.clone(), every_agent(rules));
        let guarded = Arc::new(GuardedFiles::new(&workspace));
        Self { settings, backend, workspace, owner, read_policy, guarded, folders, on_start: None }
    }

    /// Adds a function that is called when a program starts.
    #[must_use]
    pub fn with_on_start(self, on_start: OnStart) -> Self {
        Self { on_start: Some(on_start), ..self }
    }

    /// The workspace mount of a program, and a check whether its guarded files are still the same.
    fn workspace(&self, program: &Program, scratch: &Path) -> io::Result<(Mount, UnchangedCheck)> {
        if !program.workspace {
            let nothing = scratch.join("nothing");
            std::fs::create_dir(&nothing)?;
            return Ok((Mount::workspace(nothing, Access::ReadOnly), Arc::new(|| true)));
        }
        let covers = CoveredFiles::of(&self.guarded, &self.read_policy)?;
        let workspace = mount(self.workspace.clone(), Access::ReadOnly, covers.paths());
        let (guarded, read_policy) = (Arc::clone(&self.guarded), self.read_policy.clone());
        let is_same = move || CoveredFiles::of(&guarded, &read_policy).is_ok_and(|now| now == covers);
        Ok((workspace, Arc::new(is_same)))
    }

    /// Starts the cell of a server, without its program. Dropping the guard ends the cell.
    fn start(&self, name: &str, program: &Program) -> io::Result<(McpCellGuard, UnchangedCheck)> {
        std::fs::create_dir_all(&self.folders)?;
        let scratch = tempfile::Builder::new().prefix(&format!("mcp-{name}-")).tempdir_in(&self.folders)?;
        let rest = scratch.path().join("cell");
        std::fs::create_dir(&rest)?;
        let (workspace, is_confined) = self.workspace(program, scratch.path())?;
        let policy = policy(&self.settings, &self.owner, workspace, program);
        let rules = HostRules::of(&policy.network).map_err(io::Error::other)?;
        let cell = self.backend.start(&policy, &rest).map_err(io::Error::other)?;
        // From here on the guard ends the cell, even if a later step fails.
        let mut guard = McpCellGuard { cell, proxy: None, scratch: Some(scratch) };
        let server = name.to_owned();
        let log_request = move |request: isolation::proxy::ProxiedRequest| {
            tracing::debug!(server, host = request.host, verdict = ?request.verdict, "an MCP server's request");
        };
        guard.proxy =
            guard.cell.take_listener().map(|inside| Proxy::serve(inside, rules, log_request)).transpose()?;
        Ok((guard, is_confined))
    }

    /// Whether the program of a server exists in its cell. It is not run.
    pub fn has_program(&self, name: &str, program: &Program) -> io::Result<bool> {
        let offline = Program { network: mcp::NetworkScope::Nothing, ..program.clone() };
        let (guard, _) = self.start(name, &offline)?;
        let wanted = program.argv.first().cloned().unwrap_or_default();
        let lookup = Command::new(["/bin/sh".into(), "-c".into(), "command -v -- \"$0\"".into(), wanted]);
        let found = guard.cell.exec(&lookup, &mut |_, _| ()).map_err(io::Error::other)?;
        Ok(found.status == Status::Exited(0))
    }
}

/// The files that every agent may read by the rules.
fn every_agent(rules: &Arc<AgentRules>) -> ReadPolicy {
    let rules = Arc::clone(rules);
    ReadPolicy::for_every_agent(move |path| rules.may_everyone_read(path))
}

/// The policy of an MCP server's program: its configured access, and the machine's programs.
fn policy(settings: &CellSettings, owner: &str, workspace: Mount, program: &Program) -> Policy {
    let network = match &program.network {
        mcp::NetworkScope::Nothing => Network::None,
        mcp::NetworkScope::Hosts(hosts) => Network::Allow(hosts.clone()),
        mcp::NetworkScope::Everything => Network::Open,
    };
    let memory = program.memory_mb.map_or(settings.limits.memory, |memory| memory << 20);
    let limits = Limits { memory, ..settings.limits };
    let mut policy = settings.policy_over(owner, workspace, limits, network);
    policy.mounts.extend(program.mounts.iter().map(|folder| Mount {
        source: folder.clone(),
        target: folder.clone(),
        access: Access::ReadOnly,
        hidden: vec![STATE.to_owned()],
        covered: Vec::new(),
    }));
    policy.environment.extend(program.environment.clone());
    policy
}

type UnchangedCheck = Arc<dyn Fn() -> bool + Send + Sync>;

impl Launch for McpServerCells {
    fn launch(&self, name: &str, program: &Program, secrets: Secrets) -> io::Result<LaunchedProgram> {
        let (guard, is_confined) = self.start(name, program)?;
        let mut command = Command::new(program.argv.clone());
        command.environment = secrets.iter().map(|(name, value)| (name.clone(), value.to_string())).collect();
        let command = guard.cell.spawn_piped(&command).map_err(io::Error::other)?;
        let stream = join(command.output, command.input)?;
        let started = self.on_start.as_ref().map(|on_start| on_start(name));
        let guard = Box::new((guard, started));
        Ok(LaunchedProgram { stream, stderr_tail: command.stderr_tail, is_confined, guard })
    }
}

/// Joins both directions into one stream that can be polled.
fn join(
    mut output: Box<dyn io::Read + Send>,
    mut input: Box<dyn io::Write + Send>,
) -> io::Result<UnixStream> {
    let (theirs, ours) = UnixStream::pair()?;
    let (mut output_end, mut input_end) = (ours.try_clone()?, ours);
    let thread = |name: &str| std::thread::Builder::new().name(name.to_owned());
    thread("mcp output").spawn(move || {
        let _ = io::copy(&mut output, &mut output_end);
        // Signals the end of the output to the reader.
        let _ = output_end.shutdown(std::net::Shutdown::Both);
    })?;
    thread("mcp input").spawn(move || io::copy(&mut input_end, &mut input))?;
    Ok(theirs)
}

/// Ends the cell of a program and removes its folder when dropped.
struct McpCellGuard {
    cell: Arc<dyn Cell>,
    proxy: Option<Proxy>,
    scratch: Option<TempDir>,
}

impl Drop for McpCellGuard {
    fn drop(&mut self) {
        self.cell.stop();
        self.proxy = None;
        let Some(scratch) = self.scratch.take().map(TempDir::keep) else { return };
        if let Err(error) = isolation::layer::remove(&scratch) {
            tracing::warn!(%error, "the folder of an MCP server's cell could not be removed");
        }
    }
}
