//! `scripted-model SCRIPT.toml`: a scripted model for tests that run the real programs.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use clap::Parser;
use scripted_model::{ACCESS_KEY, Script, ServerOptions, Wire};

/// A model that answers from a script, over the wire protocols of Anthropic, OpenAI and Amazon Bedrock
///
/// Prints one line of JSON with its URLs and its key, then serves until it is killed.
#[derive(Debug, Parser)]
struct Args {
    /// A script, or a folder of scripts; the script is chosen by its `objective` in the first message
    script: PathBuf,
    /// Port to listen on; 0 for any free port
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Key that clients must send; random by default
    #[arg(long)]
    key: Option<String>,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let scripts = read(&args.script)?;
    let server =
        ServerOptions { scripts, port: args.port, key: args.key }.serve().context("cannot listen")?;
    let urls: serde_json::Map<_, _> =
        Wire::ALL.iter().map(|wire| (wire.name().to_owned(), server.url(*wire).into())).collect();
    let line = serde_json::json!({"urls": urls, "key": server.key(), "access_key": ACCESS_KEY});
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()?;
    drop(out);
    server.wait();
    Ok(())
}

fn read(path: &Path) -> Result<Vec<Script>> {
    if !path.is_dir() {
        return Ok(vec![parse(path)?]);
    }
    let entries = fs::read_dir(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    paths.sort();
    ensure!(!paths.is_empty(), "{} has no scripts (*.toml)", path.display());
    paths.iter().map(|path| parse(path)).collect()
}

fn parse(path: &Path) -> Result<Script> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    Script::parse(&text).with_context(|| format!("{} is not a valid script", path.display()))
}
