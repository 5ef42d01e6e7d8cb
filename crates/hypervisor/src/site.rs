//! The names of a server: its origins, the hosts it serves, its cookie and its sign-in links.

use thiserror::Error;
use url::{Host, Url};

use crate::identity::{NewSession, RandomSecret, limits};

/// Why the names in the configuration are not valid.
#[derive(Debug, Error)]
pub enum SiteError {
    #[error(
        "public_url {0} must be https, with a name and without a path, such as https://choir.example.org"
    )]
    PublicUrl(Url),
    #[error("cors: {0} is not an origin such as https://app.example.org")]
    Cors(String),
    #[error("port {0} is not valid in an address")]
    Port(u16),
}

/// How the `Host` header of a request relates to this server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostMatch {
    /// One of the server's own names.
    Ours,
    /// A loopback IP address. Passkeys need a name and do not work there.
    Loopback,
    /// Another name that resolves to this server, as in a DNS rebinding attack.
    Unknown,
}

/// The protocol of the server's own port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    Plain,
    Tls,
}

/// The names of one server.
#[derive(Debug, Clone)]
pub struct Site {
    port: u16,
    /// The address that users type: the public URL, or `localhost`.
    origin: Url,
    local: Url,
    cors: Vec<String>,
}

impl Site {
    pub fn new(
        port: u16,
        transport: Transport,
        public: Option<Url>,
        cors: &[String],
    ) -> Result<Self, SiteError> {
        let scheme = match transport {
            Transport::Plain => "http",
            Transport::Tls => "https",
        };
        let local = Url::parse(&format!("{scheme}://localhost:{port}")).map_err(|_| SiteError::Port(port))?;
        if let Some(url) = &public {
            let no_path = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
            let no_login = url.username().is_empty() && url.password().is_none();
            if url.scheme() != "https" || url.domain().is_none() || !no_path || !no_login {
                return Err(SiteError::PublicUrl(url.clone()));
            }
        }
        let cors = cors.iter().map(|text| origin_of(text)).collect::<Result<_, _>>()?;
        Ok(Self { port, origin: public.unwrap_or_else(|| local.clone()), local, cors })
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// The address that users type.
    pub fn origin(&self) -> &Url {
        &self.origin
    }

    /// Whether users connect over TLS.
    pub fn is_secure(&self) -> bool {
        self.origin.scheme() == "https"
    }

    /// Whether the server has no public URL, so that only this machine can reach it.
    pub fn is_local(&self) -> bool {
        self.origin == self.local
    }

    /// Whether this is the origin of our own pages.
    pub fn is_own_origin(&self, origin: &str) -> bool {
        [&self.origin, &self.local].iter().any(|ours| ours.origin().ascii_serialization() == origin)
    }

    /// Whether the configuration lets pages of this origin call with a token (CORS).
    pub fn is_allowed_origin(&self, origin: &str) -> bool {
        self.cors.iter().any(|allowed| allowed == origin)
    }

    /// Compares a `Host` header with the server's names.
    pub fn match_host(&self, host: &str) -> HostMatch {
        // The scheme only supplies the default port.
        let url = |ours: &Url| Url::parse(&format!("{}://{host}/", ours.scheme())).ok().filter(is_bare);
        let (public, local) = (url(&self.origin), url(&self.local));
        let is = |given: &Option<Url>, ours: &Url| {
            given.as_ref().is_some_and(|given| {
                given.host() == ours.host() && given.port_or_known_default() == ours.port_or_known_default()
            })
        };
        if is(&public, &self.origin) || is(&local, &self.local) {
            return HostMatch::Ours;
        }
        let by_ip = local.filter(|url| url.port_or_known_default() == Some(self.port));
        match by_ip.as_ref().and_then(Url::host) {
            Some(Host::Ipv4(address)) if address.is_loopback() => HostMatch::Loopback,
            Some(Host::Ipv6(address)) if address.is_loopback() => HostMatch::Loopback,
            _ => HostMatch::Unknown,
        }
    }

    /// The name of the session cookie. It contains the port, because browsers send cookies to every port of a host and
    /// two servers may share `localhost`. Over TLS the `__Host-` prefix makes browsers refuse the cookie from plain
    /// HTTP or from another host.
    pub fn cookie(&self) -> String {
        let prefix = if self.is_secure() { "__Host-" } else { "" };
        format!("{prefix}choir_session_{}", self.port)
    }

    /// The `Set-Cookie` header for a new session.
    pub fn set_cookie(&self, session: &NewSession) -> String {
        self.cookie_line(&session.secret.reveal(), limits::SESSION_MAX_AGE / 1_000)
    }

    /// The `Set-Cookie` header that removes the session cookie.
    pub fn clear_cookie(&self) -> String {
        self.cookie_line("", 0)
    }

    fn cookie_line(&self, value: &str, seconds: i64) -> String {
        let secure = if self.is_secure() { "; Secure" } else { "" };
        let name = self.cookie();
        format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}")
    }

    /// A sign-in link. The secret is in the fragment, which browsers never send to a server.
    pub fn sign_in_link(&self, secret: &RandomSecret) -> String {
        format!("{}#{}", self.origin, secret.reveal())
    }

    /// A link that accepts an invitation.
    pub fn invitation_link(&self, secret: &RandomSecret) -> String {
        format!("{}#invite-{}", self.origin, secret.reveal())
    }
}

/// Whether a URL has only a scheme, a host and a port.
fn is_bare(url: &Url) -> bool {
    url.path() == "/" && url.query().is_none() && url.fragment().is_none() && url.username().is_empty()
}

fn origin_of(text: &str) -> Result<String, SiteError> {
    let invalid = || SiteError::Cors(text.to_owned());
    let url = Url::parse(text).map_err(|_| invalid())?;
    if !matches!(url.scheme(), "http" | "https") || !is_bare(&url) {
        return Err(invalid());
    }
    Ok(url.origin().ascii_serialization())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_serves_only_its_own_names_and_ports() {
        let local = Site::new(8080, Transport::Plain, None, &[]).unwrap();
        let public_url = Some("https://choir.example.org".parse().unwrap());
        let public = Site::new(8080, Transport::Plain, public_url, &[]).unwrap();
        for (host, for_local, for_public) in [
            ("localhost:8080", HostMatch::Ours, HostMatch::Ours),
            ("LOCALHOST:8080", HostMatch::Ours, HostMatch::Ours),
            ("localhost", HostMatch::Unknown, HostMatch::Unknown),
            ("localhost:8081", HostMatch::Unknown, HostMatch::Unknown),
            ("127.0.0.1:8080", HostMatch::Loopback, HostMatch::Loopback),
            ("[::1]:8080", HostMatch::Loopback, HostMatch::Loopback),
            ("10.0.0.1:8080", HostMatch::Unknown, HostMatch::Unknown),
            ("choir.example.org", HostMatch::Unknown, HostMatch::Ours),
            ("choir.example.org:443", HostMatch::Unknown, HostMatch::Ours),
            ("choir.example.org:80", HostMatch::Unknown, HostMatch::Unknown),
            ("evil.example:8080", HostMatch::Unknown, HostMatch::Unknown),
            ("localhost:8080@evil.example", HostMatch::Unknown, HostMatch::Unknown),
            ("localhost:8080/x", HostMatch::Unknown, HostMatch::Unknown),
            ("", HostMatch::Unknown, HostMatch::Unknown),
        ] {
            assert_eq!(local.match_host(host), for_local, "{host}");
            assert_eq!(public.match_host(host), for_public, "{host}");
        }
    }

    #[test]
    fn with_tls_the_local_name_is_https_and_needs_no_default_port() {
        let site = Site::new(443, Transport::Tls, None, &[]).unwrap();
        assert_eq!(site.match_host("localhost"), HostMatch::Ours);
        assert_eq!(site.match_host("localhost:80"), HostMatch::Unknown);
        assert!(site.is_secure() && site.is_local());
        assert!(site.is_own_origin("https://localhost") && !site.is_own_origin("http://localhost"));
    }

    #[test]
    fn a_public_url_needs_tls_and_a_name() {
        for bad in ["http://choir.example.org", "https://192.0.2.1", "https://choir.example.org/desk"] {
            assert!(Site::new(8080, Transport::Plain, Some(bad.parse().unwrap()), &[]).is_err(), "{bad}");
        }
        assert!(Site::new(8080, Transport::Plain, None, &["*".into()]).is_err());
    }
}
