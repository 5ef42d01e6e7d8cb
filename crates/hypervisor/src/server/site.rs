//! What this place is called: its origins, the hosts it answers to, its cookie, its links.

use thiserror::Error;
use url::{Host, Url};

use crate::identity::{NewSession, Secret, spans};

/// Why an address cannot be a public one.
#[derive(Debug, Error)]
pub enum SiteError {
    #[error(
        "public_url {0} must be https, with a name and without a path, such as https://choir.example.org"
    )]
    PublicUrl(Url),
    #[error("cors: {0} is not an origin such as https://app.example.org")]
    Cors(String),
    #[error("port {0} makes no address")]
    Port(u16),
}

/// Whom a request is addressed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Addressed {
    /// One of our names.
    ToUs,
    /// The loopback by number, where passkeys do not work.
    ToLoopback,
    /// Some other name that leads here: a page of a stranger, or a mistake.
    ToAnother,
}

/// What our own port speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    Plain,
    Tls,
}

/// The names of one server.
#[derive(Debug, Clone)]
pub struct Site {
    port: u16,
    /// Where people go: the public address, or `localhost`.
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
            let plain = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
            let nobody = url.username().is_empty() && url.password().is_none();
            if url.scheme() != "https" || url.domain().is_none() || !plain || !nobody {
                return Err(SiteError::PublicUrl(url.clone()));
            }
        }
        let cors = cors.iter().map(|text| origin_of(text)).collect::<Result<_, _>>()?;
        Ok(Self { port, origin: public.unwrap_or_else(|| local.clone()), local, cors })
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Where people go.
    pub fn origin(&self) -> &Url {
        &self.origin
    }

    /// Whether people reach this place over TLS.
    pub fn is_secure(&self) -> bool {
        self.origin.scheme() == "https"
    }

    /// Whether people reach this place from this machine only.
    pub fn is_local(&self) -> bool {
        self.origin == self.local
    }

    /// Whether a page with this origin is one of ours.
    pub fn is_ours(&self, origin: &str) -> bool {
        [&self.origin, &self.local].iter().any(|ours| ours.origin().ascii_serialization() == origin)
    }

    /// Whether pages of this origin may call with a token of their own.
    pub fn is_welcome(&self, origin: &str) -> bool {
        self.cors.iter().any(|welcome| welcome == origin)
    }

    pub fn addressed(&self, host: &str) -> Addressed {
        // The scheme only supplies the port that is left out.
        let url = |ours: &Url| Url::parse(&format!("{}://{host}/", ours.scheme())).ok().filter(is_bare);
        let (public, local) = (url(&self.origin), url(&self.local));
        let is = |given: &Option<Url>, ours: &Url| {
            given.as_ref().is_some_and(|given| {
                given.host() == ours.host() && given.port_or_known_default() == ours.port_or_known_default()
            })
        };
        if is(&public, &self.origin) || is(&local, &self.local) {
            return Addressed::ToUs;
        }
        let number = local.filter(|url| url.port_or_known_default() == Some(self.port));
        match number.as_ref().and_then(Url::host) {
            Some(Host::Ipv4(address)) if address.is_loopback() => Addressed::ToLoopback,
            Some(Host::Ipv6(address)) if address.is_loopback() => Addressed::ToLoopback,
            _ => Addressed::ToAnother,
        }
    }

    /// The name of the cookie. Cookies do not tell ports apart, and two servers may share `localhost`. Over TLS the
    /// name begins so that no browser takes it from a page without, or from another host.
    pub fn cookie(&self) -> String {
        let prefix = if self.is_secure() { "__Host-" } else { "" };
        format!("{prefix}choir_session_{}", self.port)
    }

    /// The cookie of a session that has begun.
    pub fn set_cookie(&self, session: &NewSession) -> String {
        self.cookie_line(&session.secret.reveal(), spans::SESSION_AT_MOST / 1_000)
    }

    /// A cookie that takes the place of the session's and is gone at once.
    pub fn clear_cookie(&self) -> String {
        self.cookie_line("", 0)
    }

    fn cookie_line(&self, value: &str, seconds: i64) -> String {
        let secure = if self.is_secure() { "; Secure" } else { "" };
        let name = self.cookie();
        format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}")
    }

    /// A link that signs in. The secret is in the fragment, which browsers send to nobody.
    pub fn sign_in_link(&self, secret: &Secret) -> String {
        format!("{}#{}", self.origin, secret.reveal())
    }

    /// A link that accepts an invitation.
    pub fn invitation_link(&self, secret: &Secret) -> String {
        format!("{}#invite-{}", self.origin, secret.reveal())
    }
}

/// Whether a host with an empty path around it was only a host.
fn is_bare(url: &Url) -> bool {
    url.path() == "/" && url.query().is_none() && url.fragment().is_none() && url.username().is_empty()
}

fn origin_of(text: &str) -> Result<String, SiteError> {
    let wrong = || SiteError::Cors(text.to_owned());
    let url = Url::parse(text).map_err(|_| wrong())?;
    if !matches!(url.scheme(), "http" | "https") || !is_bare(&url) {
        return Err(wrong());
    }
    Ok(url.origin().ascii_serialization())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_answers_to_its_own_names_and_ports_only() {
        let local = Site::new(8080, Transport::Plain, None, &[]).unwrap();
        let name = Some("https://choir.example.org".parse().unwrap());
        let public = Site::new(8080, Transport::Plain, name, &[]).unwrap();
        for (host, at_home, in_public) in [
            ("localhost:8080", Addressed::ToUs, Addressed::ToUs),
            ("LOCALHOST:8080", Addressed::ToUs, Addressed::ToUs),
            ("localhost", Addressed::ToAnother, Addressed::ToAnother),
            ("localhost:8081", Addressed::ToAnother, Addressed::ToAnother),
            ("127.0.0.1:8080", Addressed::ToLoopback, Addressed::ToLoopback),
            ("[::1]:8080", Addressed::ToLoopback, Addressed::ToLoopback),
            ("10.0.0.1:8080", Addressed::ToAnother, Addressed::ToAnother),
            ("choir.example.org", Addressed::ToAnother, Addressed::ToUs),
            ("choir.example.org:443", Addressed::ToAnother, Addressed::ToUs),
            ("choir.example.org:80", Addressed::ToAnother, Addressed::ToAnother),
            ("evil.example:8080", Addressed::ToAnother, Addressed::ToAnother),
            ("localhost:8080@evil.example", Addressed::ToAnother, Addressed::ToAnother),
            ("localhost:8080/x", Addressed::ToAnother, Addressed::ToAnother),
            ("", Addressed::ToAnother, Addressed::ToAnother),
        ] {
            assert_eq!(local.addressed(host), at_home, "{host}");
            assert_eq!(public.addressed(host), in_public, "{host}");
        }
    }

    #[test]
    fn with_tls_the_local_name_is_https_and_needs_no_port_where_it_is_the_usual_one() {
        let site = Site::new(443, Transport::Tls, None, &[]).unwrap();
        assert_eq!(site.addressed("localhost"), Addressed::ToUs);
        assert_eq!(site.addressed("localhost:80"), Addressed::ToAnother);
        assert!(site.is_secure() && site.is_local());
        assert!(site.is_ours("https://localhost") && !site.is_ours("http://localhost"));
    }

    #[test]
    fn a_public_address_needs_tls_and_a_name() {
        for bad in ["http://choir.example.org", "https://192.0.2.1", "https://choir.example.org/desk"] {
            assert!(Site::new(8080, Transport::Plain, Some(bad.parse().unwrap()), &[]).is_err(), "{bad}");
        }
        assert!(Site::new(8080, Transport::Plain, None, &["*".into()]).is_err());
    }
}
