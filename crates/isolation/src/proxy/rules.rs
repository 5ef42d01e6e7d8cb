//! Which hosts a cell may reach, compared in normal form.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use thiserror::Error;

use super::error::RequestError;
use crate::policy::Network;

/// The ports allowed for an entry without a port.
const WEB: [u16; 2] = [80, 443];

/// The hosts that may be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostRules(Allowed);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Allowed {
    Nothing,
    Listed(Vec<HostRule>),
    Everything,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct HostRule {
    hosts: HostPattern,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum HostPattern {
    One(Host),
    /// All subdomains, but not the domain itself.
    Below(String),
}

/// An invalid entry.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{entry:?} is not a host: {reason}")]
pub struct HostRuleError {
    entry: String,
    reason: &'static str,
}

impl HostRules {
    pub fn of(network: &Network) -> Result<Self, HostRuleError> {
        Ok(Self(match network {
            Network::None => Allowed::Nothing,
            Network::Allow(entries) => {
                Allowed::Listed(entries.iter().map(|entry| HostRule::parse(entry)).collect::<Result<_, _>>()?)
            }
            Network::Open => Allowed::Everything,
        }))
    }

    /// Checks host and port against the list. Addresses are checked separately.
    pub(super) fn check(&self, host: &Host, port: u16) -> Result<(), RequestError> {
        let rules = match &self.0 {
            Allowed::Everything => return Ok(()),
            Allowed::Listed(rules) => rules.as_slice(),
            Allowed::Nothing => &[],
        };
        if rules
            .iter()
            .any(|rule| rule.hosts.has(host) && rule.port.map_or(WEB.contains(&port), |p| p == port))
        {
            return Ok(());
        }
        let listed = rules.iter().any(|rule| rule.hosts.has(host));
        let what = if WEB.contains(&port) { host.to_string() } else { format!("{host}:{port}") };
        let reason = if listed {
            format!("port {port} of {host} is not on the list of what this cell may reach")
        } else {
            format!("{host} is not on the list of hosts that this cell may reach")
        };
        Err(RequestError::refused(reason, Some(format!("To allow it: choir run --net {what} …"))))
    }
}

impl HostPattern {
    fn has(&self, host: &Host) -> bool {
        match (self, host) {
            (Self::One(one), host) => one == host,
            (Self::Below(parent), Host::Name(name)) => {
                name.strip_suffix(parent.as_str()).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
            }
            (Self::Below(_), Host::Address(_)) => false,
        }
    }
}

impl HostRule {
    fn parse(entry: &str) -> Result<Self, HostRuleError> {
        let wrong = |reason| HostRuleError { entry: entry.to_owned(), reason };
        let text = entry.trim();
        if text.contains("://") || text.contains('/') {
            return Err(wrong("write only the host name, without a scheme or a path"));
        }
        if let Ok(address) = text.parse::<Ipv6Addr>() {
            return Ok(Self {
                hosts: HostPattern::One(Host::Address(IpAddr::V6(address).to_canonical())),
                port: None,
            });
        }
        let (name, port) =
            split_port(text).ok_or_else(|| wrong("the port must be a number from 1 to 65535"))?;
        let (name, below) = name.strip_prefix("*.").map_or((name, false), |rest| (rest, true));
        if name.contains('*') {
            return Err(wrong("a star is allowed only at the beginning, as in *.example.org"));
        }
        let hosts = match (Host::parse(name), below) {
            (Some(Host::Name(name)), true) => HostPattern::Below(name),
            (Some(Host::Address(_)), true) => return Err(wrong("an address has no subdomains")),
            (Some(host), false) => HostPattern::One(host),
            (None, _) => return Err(wrong("the name is not valid")),
        };
        Ok(Self { hosts, port })
    }
}

/// Splits `host:port` and `[address]:port`; the port may be missing.
pub(super) fn split_port(text: &str) -> Option<(&str, Option<u16>)> {
    let after_address = text.rfind(']').map_or(0, |at| at + 1);
    let Some(colon) = text[after_address..].find(':').map(|at| at + after_address) else {
        return Some((text, None));
    };
    let (host, digits) = (&text[..colon], &text[colon + 1..]);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let port = digits.parse().ok().filter(|port| is_number && *port != 0)?;
    Some((host, Some(port)))
}

/// A host in normal form: a lower-case ASCII name without a trailing dot, or an address. Numeric forms (`2130706433`,
/// `0177.0.0.1`, `127.1`) become the addresses that they mean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Host {
    Name(String),
    Address(IpAddr),
}

impl Host {
    pub(super) fn parse(text: &str) -> Option<Self> {
        match url::Host::parse(text).ok()? {
            url::Host::Ipv4(address) => Some(Self::Address(address.into())),
            url::Host::Ipv6(address) => Some(Self::Address(IpAddr::V6(address).to_canonical())),
            url::Host::Domain(name) => {
                let name = name.strip_suffix('.').unwrap_or(&name);
                let is_known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
                let is_label = |label: &str| (1..=63).contains(&label.len()) && label.bytes().all(is_known);
                (name.len() <= 253 && name.split('.').all(is_label)).then(|| Self::Name(name.to_owned()))
            }
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(address)) => address.fmt(f),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}
