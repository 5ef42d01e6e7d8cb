//! `[server]` of `{data}/choir.toml`, below what variables and arguments say.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use hypervisor::server::address::Network;
use hypervisor::server::{ServerConfig, Tls};
use serde::Deserialize;
use url::Url;

use crate::failure::{Code, Failure};

const FILE: &str = "choir.toml";
const PORT: u16 = 8080;

/// What arguments and variables say; it goes before the file.
#[derive(Debug, Clone, Default)]
pub struct Said {
    pub listen: Option<IpAddr>,
    pub port: Option<u16>,
    pub public_url: Option<Url>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct File {
    server: Server,
    /// What belongs to each computer is read there.
    #[allow(dead_code, reason = "named so that it is no unknown section")]
    git: toml::Table,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Server {
    listen: Option<SocketAddr>,
    public_url: Option<Url>,
    tls: Option<Certificate>,
    trusted_proxies: Vec<String>,
    cors: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Certificate {
    certificate: PathBuf,
    key: PathBuf,
}

/// How the server of a data folder is to listen.
pub fn server_config(data: PathBuf, said: &Said) -> Result<ServerConfig, Failure> {
    let path = match std::env::var_os("CHOIR_CONFIG") {
        Some(path) => PathBuf::from(path),
        None => data.join(FILE),
    };
    let file = match std::fs::read_to_string(&path) {
        Ok(text) => read(&text, &path)?,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => File::default(),
        Err(e) => return Err(wrong(&path, &e)),
    };
    let Server { listen, public_url, tls, trusted_proxies, cors } = file.server;
    let listen = listen.unwrap_or(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), PORT));
    let mut config = ServerConfig::local(said.port.unwrap_or(listen.port()), data);
    config.listen.set_ip(said.listen.unwrap_or(listen.ip()));
    config.public_url = said.public_url.clone().or(public_url);
    config.tls = tls.map(|Certificate { certificate, key }| Tls { certificate, key });
    let proxies = trusted_proxies.iter().map(|text| text.parse::<Network>().map_err(|e| wrong(&path, &e)));
    config.trusted_proxies = proxies.collect::<Result<_, _>>()?;
    config.cors = cors;
    Ok(config)
}

fn read(text: &str, path: &Path) -> Result<File, Failure> {
    toml::from_str(text).map_err(|e| wrong(path, &e))
}

fn wrong(path: &Path, error: &dyn std::fmt::Display) -> Failure {
    Failure::new(Code::BadRequest, format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str, said: &Said) -> Result<ServerConfig, Failure> {
        let data = tempfile::tempdir().unwrap();
        std::fs::write(data.path().join(FILE), text).unwrap();
        server_config(data.path().to_owned(), said)
    }

    #[test]
    fn what_is_said_goes_before_the_file_and_the_file_before_the_default() {
        let none = Said::default();
        assert_eq!(config("", &none).unwrap().listen.to_string(), "127.0.0.1:8080");
        let file = "[server]\nlisten = \"127.0.0.1:9000\"\ntrusted_proxies = [\"10.0.0.0/8\"]";
        assert_eq!(config(file, &none).unwrap().listen.to_string(), "127.0.0.1:9000");
        let said = Said { port: Some(9001), ..none };
        assert_eq!(config(file, &said).unwrap().listen.to_string(), "127.0.0.1:9001");
    }

    #[test]
    fn a_setting_that_is_misspelled_or_wrong_is_named() {
        for (text, named) in [
            ("[server]\nlisen = \"127.0.0.1:1\"", "lisen"),
            ("[server]\nlisten = \"everywhere\"", "listen"),
            ("[server]\ntrusted_proxies = [\"moon\"]", "moon"),
            ("[sever]\n", "sever"),
        ] {
            let failure = config(text, &Said::default()).unwrap_err();
            assert!(failure.message.contains(named), "{failure}");
        }
    }
}
