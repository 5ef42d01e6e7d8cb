//! The arguments of the server and key commands.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// The data folder and the port of a server.
#[derive(Debug, Clone, Args)]
pub struct Data {
    /// The data folder: all computers and user accounts
    #[arg(long, value_name = "DIR", env = "CHOIR_DATA")]
    pub data: Option<PathBuf>,
    /// The port to listen on (default: 8080)
    #[arg(long, value_name = "PORT", env = "CHOIR_PORT")]
    pub port: Option<u16>,
}

#[derive(Debug, Args)]
pub struct Up {
    #[command(flatten)]
    pub data: Data,
    /// The address to listen on; listens on this machine only unless TLS or --public-url is configured
    #[arg(long, value_name = "IP", env = "CHOIR_LISTEN")]
    pub listen: Option<std::net::IpAddr>,
    /// The https address that users type, if a TLS proxy is in front of the server
    #[arg(long, value_name = "URL", env = "CHOIR_PUBLIC_URL")]
    pub public_url: Option<url::Url>,
    /// Do not open a browser
    #[arg(long)]
    pub no_browser: bool,
}

#[derive(Debug, Args)]
pub struct Link {
    /// The data folder: all computers and user accounts
    #[arg(long, value_name = "DIR", env = "CHOIR_DATA")]
    pub data: Option<PathBuf>,
    /// The port in the link (default: the port of the last `choir up`)
    #[arg(long, value_name = "PORT", env = "CHOIR_PORT")]
    pub port: Option<u16>,
}

#[derive(Debug, Args)]
pub struct Keys {
    /// The data folder: all computers and user accounts
    #[arg(long, value_name = "DIR", env = "CHOIR_DATA", global = true)]
    pub data: Option<PathBuf>,
    #[command(subcommand)]
    pub action: Option<KeysAction>,
}

#[derive(Debug, Subcommand)]
pub enum KeysAction {
    /// Set a provider's key, read from standard input or typed without echo
    #[command(
        after_help = "Examples:\n  choir keys set anthropic\n  choir keys set bedrock < bedrock.key\n\n\
        Bedrock takes an API key, or an access key: ID:SECRET or ID:SECRET:SESSION_TOKEN. Its region is in choir.toml."
    )]
    Set {
        /// anthropic, bedrock, openai, zai, moonshot (Kimi), or another name of a-z, 0-9 and '-'
        provider: String,
        /// Share it with all users of this machine who have no key of their own
        #[arg(long)]
        shared: bool,
    },
    /// Clear a provider's key
    #[command(after_help = "Examples:\n  choir keys clear anthropic\n  choir keys clear zai --shared")]
    Clear {
        #[arg(required_unless_present = "unreadable")]
        provider: Option<String>,
        /// Clear the shared key
        #[arg(long)]
        shared: bool,
        /// Clear all keys, of all users, that the master key cannot open, for example after it was lost
        #[arg(long, conflicts_with_all = ["provider", "shared"])]
        unreadable: bool,
    },
    /// Encrypt all keys with a new master key
    #[command(after_help = "Example:\n  choir keys rotate\n\n\
        The new key is generated, or taken from CHOIR_NEXT_MASTER_KEY. If the old key comes from CHOIR_MASTER_KEY, \n\
        restart everything with the new one afterwards.")]
    Rotate,
}
