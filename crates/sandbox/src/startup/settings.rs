//! `[server]`, `[models]` and `[mcp]` of `{data}/choir.toml`. Variables and arguments take precedence.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use hypervisor::client_address::Network;
use hypervisor::server::{ServerConfig, Tls};
use serde::Deserialize;
use url::Url;

use crate::machine::MachineConfig;
use agent_host::agent_services::ServicesConfig;
use agent_host::telemetry::TelemetryConfig;
use computer::config::{SettingLine, SettingSource};
use computer::error::{ComputerError, ErrorCode};
use web_access::search::SearchConfig;

const FILE: &str = "choir.toml";
const PORT: u16 = 8080;

/// Settings from arguments and variables, which take precedence over the file.
#[derive(Debug, Clone, Default)]
pub struct CommandLineSettings {
    pub listen: Option<IpAddr>,
    pub port: Option<u16>,
    pub public_url: Option<Url>,
}

const LISTEN_VARIABLE: &str = "CHOIR_LISTEN";
const PORT_VARIABLE: &str = "CHOIR_PORT";
const PUBLIC_URL_VARIABLE: &str = "CHOIR_PUBLIC_URL";

impl CommandLineSettings {
    /// The settings from the environment.
    pub fn in_variables() -> Result<Self, ComputerError> {
        Ok(Self {
            listen: variable(LISTEN_VARIABLE, "an address such as 127.0.0.1")?,
            port: variable(PORT_VARIABLE, "a port from 0 to 65535")?,
            public_url: variable(PUBLIC_URL_VARIABLE, "an address such as https://choir.example.org")?,
        })
    }
}

fn variable<T: FromStr>(name: &str, wanted: &str) -> Result<Option<T>, ComputerError> {
    let Ok(text) = std::env::var(name) else { return Ok(None) };
    let wrong = |_| ComputerError::new(ErrorCode::BadRequest, format!("{name}={text:?} should be {wanted}"));
    text.parse().map(Some).map_err(wrong)
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ConfigFile {
    server: ServerSection,
    models: Option<toml::Table>,
    web: WebSection,
    telemetry: Option<TelemetryConfig>,
    mcp: Option<toml::Table>,
    rules: Option<toml::Table>,
    /// The settings of computers, which each computer reads.
    #[allow(dead_code, reason = "named so that it is no unknown section")]
    git: toml::Table,
    #[allow(dead_code, reason = "named so that it is no unknown section")]
    cells: toml::Table,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct WebSection {
    search: Option<SearchConfig>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ServerSection {
    listen: Option<SocketAddr>,
    public_url: Option<Url>,
    tls: Option<TlsSection>,
    trusted_proxies: Option<Vec<String>>,
    cors: Option<Vec<String>>,
    /// In seconds; 0 turns it off.
    idle_close: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TlsSection {
    #[serde(alias = "cert")]
    certificate: PathBuf,
    key: PathBuf,
}

/// The configuration of the server of a data folder.
pub fn machine_config(
    data: PathBuf,
    overrides: &CommandLineSettings,
) -> Result<MachineConfig, ComputerError> {
    let (file, path) = read(&data)?;
    let config = file.server.resolve(&path, data, overrides)?;
    let services = ServicesConfig { search: file.web.search, telemetry: file.telemetry };
    Ok(MachineConfig { models: file.models, services, mcp: file.mcp, rules: file.rules, ..config })
}

/// The settings of a data folder as `choir doctor` shows them, each with where it comes from.
pub fn server_settings(data: &Path) -> Result<(MachineConfig, Vec<SettingLine>), ComputerError> {
    let overrides = CommandLineSettings::in_variables()?;
    let (file, path) = read(data)?;
    let from =
        |in_file: bool| if in_file { SettingSource::File(path.clone()) } else { SettingSource::Default };
    let first = |variables: &[(&str, bool)], in_file: bool| match variables
        .iter()
        .find(|(_, overrides)| *overrides)
    {
        Some((name, _)) => SettingSource::Variable((*name).to_owned()),
        None => from(in_file),
    };
    let server = &file.server;
    let origins = [
        first(
            &[(LISTEN_VARIABLE, overrides.listen.is_some()), (PORT_VARIABLE, overrides.port.is_some())],
            server.listen.is_some(),
        ),
        first(&[(PUBLIC_URL_VARIABLE, overrides.public_url.is_some())], server.public_url.is_some()),
        from(server.tls.is_some()),
        from(server.trusted_proxies.is_some()),
        from(server.cors.is_some()),
        from(server.idle_close.is_some()),
    ];
    let config = file.server.resolve(&path, data.to_owned(), &overrides)?;
    let ServerConfig { listen, public_url, tls, trusted_proxies, cors, .. } = &config.server;
    let certificate = tls.as_ref().map(|tls| tls.certificate.display().to_string());
    let proxies = trusted_proxies.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let idle = config.idle_close.unwrap_or_default().as_secs();
    let values = [
        ("server.listen", listen.to_string(), "listen address; other interfaces than loopback require TLS"),
        (
            "server.public_url",
            public_url.as_ref().map(Url::to_string).unwrap_or_default(),
            "public URL of the server",
        ),
        ("server.tls", certificate.unwrap_or_default(), "TLS certificate; its key is set beside it"),
        ("server.trusted_proxies", proxies, "proxies whose X-Forwarded-For is trusted"),
        ("server.cors", cors.join(", "), "origins that may call the API with a token"),
        ("server.idle_close", idle.to_string(), "seconds after which an idle computer is closed (0: never)"),
    ];
    let shown = values.into_iter().zip(origins);
    let shown = shown.map(|((key, value, help), origin)| SettingLine { key, value, origin, help }).collect();
    Ok((config, shown))
}

impl ServerSection {
    fn resolve(
        self,
        path: &Path,
        data: PathBuf,
        overrides: &CommandLineSettings,
    ) -> Result<MachineConfig, ComputerError> {
        let Self { listen, public_url, tls, trusted_proxies, cors, idle_close } = self;
        let listen = listen.unwrap_or(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), PORT));
        let mut server = ServerConfig::local(overrides.port.unwrap_or(listen.port()), data);
        server.listen.set_ip(overrides.listen.unwrap_or(listen.ip()));
        server.public_url = overrides.public_url.clone().or(public_url);
        // Relative to the settings file, not to the current folder.
        let beside = |file: PathBuf| path.parent().unwrap_or(Path::new("")).join(file);
        server.tls = tls.map(|TlsSection { certificate, key }| Tls {
            certificate: beside(certificate),
            key: beside(key),
        });
        let proxies = trusted_proxies.unwrap_or_default();
        let proxies = proxies.iter().map(|text| text.parse::<Network>().map_err(|e| wrong(path, &e)));
        server.trusted_proxies = proxies.collect::<Result<_, _>>()?;
        server.cors = cors.unwrap_or_default();
        let idle_close = idle_close.map_or(MachineConfig::IDLE_CLOSE, Duration::from_secs);
        let idle_close = Some(idle_close).filter(|idle| !idle.is_zero());
        Ok(MachineConfig { idle_close, ..MachineConfig::new(server) })
    }
}

fn read(data: &Path) -> Result<(ConfigFile, PathBuf), ComputerError> {
    let path = match std::env::var_os("CHOIR_CONFIG") {
        Some(path) => PathBuf::from(path),
        None => data.join(FILE),
    };
    let file: ConfigFile = match std::fs::read_to_string(&path) {
        Ok(text) => toml::from_str(&text).map_err(|e| wrong(&path, &e))?,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => ConfigFile::default(),
        Err(e) => return Err(wrong(&path, &e)),
    };
    // Invalid MCP settings are reported at startup, not when an agent first needs the server.
    agent_host::mcp_tools::settings(file.mcp.as_ref()).map_err(|e| wrong(&path, &e.message))?;
    Ok((file, path))
}

fn wrong(path: &Path, error: &dyn std::fmt::Display) -> ComputerError {
    ComputerError::new(ErrorCode::BadRequest, format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str, overrides: &CommandLineSettings) -> Result<ServerConfig, ComputerError> {
        let data = tempfile::tempdir().unwrap();
        std::fs::write(data.path().join(FILE), text).unwrap();
        Ok(machine_config(data.path().to_owned(), overrides)?.server)
    }

    #[test]
    fn what_is_said_goes_before_the_file_and_the_file_before_the_default() {
        let none = CommandLineSettings::default();
        assert_eq!(config("", &none).unwrap().listen.to_string(), "127.0.0.1:8080");
        let file = "[server]\nlisten = \"127.0.0.1:9000\"\ntrusted_proxies = [\"10.0.0.0/8\"]";
        assert_eq!(config(file, &none).unwrap().listen.to_string(), "127.0.0.1:9000");
        let overrides = CommandLineSettings { port: Some(9001), ..none };
        assert_eq!(config(file, &overrides).unwrap().listen.to_string(), "127.0.0.1:9001");
    }

    #[test]
    fn a_setting_that_is_misspelled_or_wrong_is_named() {
        for (text, named) in [
            ("[server]\nlisen = \"127.0.0.1:1\"", "lisen"),
            ("[server]\nlisten = \"everywhere\"", "listen"),
            ("[server]\ntrusted_proxies = [\"moon\"]", "moon"),
            ("[sever]\n", "sever"),
            ("[web.search]\nkind = \"telepathy\"", "telepathy"),
            ("[telemetry]\notlp = \"nowhere\"", "nowhere"),
            ("[mcp.notes]\nurl = \"notes\"", "[mcp.notes] `url`"),
        ] {
            let failure = config(text, &CommandLineSettings::default()).unwrap_err();
            assert!(failure.message.contains(named), "{failure}");
        }
    }

    #[test]
    fn services_are_off_until_they_are_named() {
        let data = tempfile::tempdir().unwrap();
        let services =
            || machine_config(data.path().to_owned(), &CommandLineSettings::default()).unwrap().services;
        assert!(services().search.is_none() && services().telemetry.is_none());
        let text = "[web.search]\nkind = \"brave\"\n[telemetry]\notlp = \"http://127.0.0.1:4318\"";
        std::fs::write(data.path().join(FILE), text).unwrap();
        assert_eq!(services().search.map(|search| search.kind.name()), Some("brave"));
        assert!(services().telemetry.is_some_and(|telemetry| !telemetry.contents));
    }

    #[test]
    fn every_setting_is_shown_with_where_it_comes_from() {
        let data = tempfile::tempdir().unwrap();
        let text = "[server]\ntls = { cert = \"a.pem\", key = \"/b.pem\" }\nidle_close = 0";
        std::fs::write(data.path().join(FILE), text).unwrap();
        let (config, shown) = server_settings(data.path()).unwrap();
        let tls = Tls { certificate: data.path().join("a.pem"), key: "/b.pem".into() };
        assert_eq!((config.server.tls, config.idle_close), (Some(tls), None));
        let from_file =
            shown.iter().filter(|shown| shown.origin != SettingSource::Default).map(|shown| shown.key);
        assert_eq!(from_file.collect::<Vec<_>>(), ["server.tls", "server.idle_close"]);
        assert_eq!(shown[0].value, "127.0.0.1:8080");
    }
}
