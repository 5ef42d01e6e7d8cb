//! The arguments of the commands about the server and its keys.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Where a machine keeps its computers.
#[derive(Debug, Clone, Args)]
pub struct Data {
    /// The folder of all computers and of who may use them
    #[arg(long, value_name = "DIR", env = "CHOIR_DATA")]
    pub data: Option<PathBuf>,
    /// The port on this machine
    #[arg(long, value_name = "PORT", env = "CHOIR_PORT", help = "The port on this machine (default: 8080)")]
    pub port: Option<u16>,
}

#[derive(Debug, Args)]
pub struct Up {
    #[command(flatten)]
    pub data: Data,
    /// The address to listen on; beyond this machine only with --public-url
    #[arg(long, value_name = "IP", env = "CHOIR_LISTEN")]
    pub listen: Option<std::net::IpAddr>,
    /// The https address that people type, where a proxy with TLS stands in front
    #[arg(long, value_name = "URL", env = "CHOIR_PUBLIC_URL")]
    pub public_url: Option<url::Url>,
    /// Do not open a browser
    #[arg(long)]
    pub no_browser: bool,
}

#[derive(Debug, Args)]
pub struct Link {
    /// The folder of all computers and of who may use them
    #[arg(long, value_name = "DIR", env = "CHOIR_DATA")]
    pub data: Option<PathBuf>,
    /// The port in the link (default: the one that was served last)
    #[arg(long, value_name = "PORT", env = "CHOIR_PORT")]
    pub port: Option<u16>,
}

#[derive(Debug, Args)]
pub struct Keys {
    /// The folder of all computers and of who may use them
    #[arg(long, value_name = "DIR", env = "CHOIR_DATA", global = true)]
    pub data: Option<PathBuf>,
    #[command(subcommand)]
    pub action: Option<KeysAction>,
}

#[derive(Debug, Subcommand)]
pub enum KeysAction {
    /// Keep a provider's key, read from standard input or typed without an echo
    #[command(
        after_help = "Examples:\n  choir keys set anthropic\n  choir keys set bedrock < bedrock.key\n\n\
        Bedrock takes an API key, or an access key: ID:SECRET or ID:SECRET:SESSION_TOKEN. Its region is in choir.toml."
    )]
    Set {
        /// anthropic, bedrock, openai, zai, moonshot (Kimi), or another name of a-z, 0-9 and '-'
        provider: String,
        /// For everybody on this machine who has no key of their own
        #[arg(long)]
        shared: bool,
    },
    /// Forget a provider's key
    #[command(after_help = "Examples:\n  choir keys clear anthropic\n  choir keys clear zai --shared")]
    Clear {
        #[arg(required_unless_present = "unreadable")]
        provider: Option<String>,
        /// The one that everybody uses
        #[arg(long)]
        shared: bool,
        /// All that the master key does not open, of everybody: the way on after it was lost for good
        #[arg(long, conflicts_with_all = ["provider", "shared"])]
        unreadable: bool,
    },
    /// Seal all keys with a new master key
    #[command(after_help = "Example:\n  choir keys rotate\n\n\
        The new one is made, or taken from CHOIR_NEXT_MASTER_KEY. Where the old one comes from CHOIR_MASTER_KEY, \n\
        start everything with the new one afterwards.")]
    Rotate,
}
