//! Starts the server: data folder, owner, sign-in link, shutdown signals.

mod settings;

use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;

use hypervisor::assets::Assets;
use hypervisor::server::clock;
use shared_types::UserId;
use tracing_subscriber::EnvFilter;

pub use settings::{CommandLineSettings, machine_config, server_settings};

use crate::machine::{Machine, MachineConfig, MachineError};
use computer::error::{ComputerError, ErrorCode};

/// What a server says and serves.
#[derive(Clone)]
pub struct Startup {
    pub config: MachineConfig,
    pub assets: Arc<dyn Assets>,
    pub version: &'static str,
    /// Told the sign-in link, once it is good.
    pub ready: Arc<dyn Fn(&str) + Send + Sync>,
}

impl std::fmt::Debug for Startup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Startup").field("config", &self.config).finish_non_exhaustive()
    }
}

/// Serves until Ctrl-C or SIGTERM.
pub fn run(startup: &Startup) -> Result<(), MachineError> {
    write_logs();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(ComputerError::from)?;
    runtime.block_on(serve(startup))
}

async fn serve(startup: &Startup) -> Result<(), MachineError> {
    let Startup { config, assets, version, ready } = startup;
    let (user, name) = owner();
    let machine = Machine::start(config, clock(), &user, &name, Arc::clone(assets), version).await?;
    let link = machine.link()?;
    println!("ChoirOS {version} is up. Your files: {}", machine.workspace().display());
    println!("Open this link to sign in (once, within five minutes; choir link makes another):");
    println!("  {link}");
    println!("Ctrl-C stops it.");
    ready(&link);
    machine.serve(stopped()).await?;
    println!("Stopped. All your work is saved.");
    Ok(())
}

/// Logs go to stderr: for people at a terminal, as JSON elsewhere. `CHOIR_LOG` says how much.
fn write_logs() {
    let filter = EnvFilter::try_from_env("CHOIR_LOG").unwrap_or_else(|_| EnvFilter::new("warn,rmcp=off"));
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // A second start in one process keeps the first one's.
    let _ = if std::io::stderr().is_terminal() { logs.try_init() } else { logs.json().try_init() };
}

async fn stopped() {
    use tokio::signal::unix::{SignalKind, signal};
    let ended = async {
        match signal(SignalKind::terminate()) {
            Ok(mut ended) => drop(ended.recv().await),
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        () = ended => {}
    }
}

/// The folder that was named, or the one of this user.
pub fn data_folder(named: Option<PathBuf>) -> Result<PathBuf, ComputerError> {
    if let Some(folder) = named {
        return Ok(std::path::absolute(folder)?);
    }
    let home = std::env::home_dir().ok_or_else(|| {
        ComputerError::new(
            ErrorCode::BadRequest,
            "there is no home folder; say where with --data DIR or CHOIR_DATA",
        )
    })?;
    let shared = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    Ok(shared.unwrap_or_else(|| home.join(".local/share")).join("choir"))
}

/// The person at this machine, by their login name.
fn owner() -> (UserId, String) {
    let name = std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).unwrap_or_default();
    let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    match UserId::parse(&name.chars().map(letter).take(64).collect::<String>()) {
        Ok(id) => (id, name),
        Err(_) => (UserId::owner(), "Owner".to_owned()),
    }
}
