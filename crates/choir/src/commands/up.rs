//! `choir up`: the server of this machine, and a link to its desktop.

use std::borrow::Cow;
use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use anyhow::{Context, Result};
use hypervisor::assets::{Asset, Assets};
use hypervisor::machine::Machine;
use hypervisor::server::ServerConfig;
use shared_types::UserId;
use tracing_subscriber::EnvFilter;

use crate::cli::{Data, Up};
use crate::render::line;
use crate::web;

const VERSION: &str = env!("CARGO_PKG_VERSION");

pub(crate) fn run(args: &Up) -> Result<()> {
    let filter = EnvFilter::try_from_env("CHOIR_LOG").unwrap_or_else(|_| EnvFilter::new("warn"));
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let started = if std::io::stderr().is_terminal() { logs.try_init() } else { logs.json().try_init() };
    started.map_err(|e| anyhow::anyhow!("logs cannot be written: {e}"))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(serve(args))
}

async fn serve(args: &Up) -> Result<()> {
    let data = data_folder(&args.data)?;
    let mut config = ServerConfig::local(args.data.port, data.clone());
    config.listen = SocketAddr::new(args.listen, args.data.port);
    config.public_url = args.public_url.clone();
    let (user, name) = owner();
    let machine = Machine::start(&config, &user, &name, Arc::new(Embedded), VERSION).await?;
    let link = machine.link()?;
    line(&format!("ChoirOS {VERSION} is up. Your files: {}", machine.workspace().display()));
    line("Open this link to sign in (once, within five minutes; choir link makes another):");
    line(&format!("  {link}"));
    line("Ctrl-C stops it.");
    if !args.no_browser && std::io::stdout().is_terminal() {
        open_browser(&link);
    }
    machine.serve(stopped()).await?;
    line("Stopped. Everything is where it was when you come back.");
    Ok(())
}

/// Until Ctrl-C or SIGTERM.
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
pub(super) fn data_folder(data: &Data) -> Result<PathBuf> {
    if let Some(folder) = &data.data {
        return std::path::absolute(folder).with_context(|| format!("{} is no folder", folder.display()));
    }
    let home = std::env::home_dir().context("there is no home folder; say where with --data DIR")?;
    let shared = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    Ok(shared.unwrap_or_else(|| home.join(".local/share")).join("choir"))
}

/// The person at this machine, by their login name.
pub(super) fn owner() -> (UserId, String) {
    let name = std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).unwrap_or_default();
    let id: String = name
        .to_lowercase()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .take(64)
        .collect();
    match UserId::parse(&id) {
        Ok(id) => (id, name),
        // The login name has no letters that an id may have.
        Err(_) => (fallback(), "Owner".to_owned()),
    }
}

fn fallback() -> UserId {
    UserId::parse("owner").unwrap_or_else(|_| unreachable!("it is a valid id"))
}

fn open_browser(link: &str) {
    let opened = std::process::Command::new("xdg-open")
        .arg(link)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    // Without one, the link on the screen does.
    if let Ok(mut child) = opened {
        std::thread::spawn(move || child.wait());
    }
}

/// The desktop that this binary carries.
struct Embedded;

impl Assets for Embedded {
    fn get(&self, path: &str) -> Option<Asset> {
        let (bytes, brotli) = match web::find(path) {
            Some(found) => found,
            None if Path::new(path) == Path::new("index.html") => (web::MISSING.as_bytes(), None),
            None => return None,
        };
        Some(Asset {
            bytes: Cow::Borrowed(bytes),
            brotli: brotli.map(Cow::Borrowed),
            mime: web::content_type(path),
            immutable: path.starts_with("assets/"),
        })
    }
}
