//! From which address a request comes, also behind a proxy that we trust.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;

use axum::extract::{ConnectInfo, Request};
use thiserror::Error;

/// The caller's address: the peer's, or what a trusted proxy says it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Address(pub IpAddr);

/// Where nobody knows; it is not the loopback, which may see more.
impl Default for Address {
    fn default() -> Self {
        Self(Ipv4Addr::UNSPECIFIED.into())
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl Address {
    pub(super) fn of(request: &Request, proxies: &[Network]) -> Self {
        let peer =
            request.extensions().get::<ConnectInfo<SocketAddr>>().map(|info| info.0.ip().to_canonical());
        let Some(mut address) = peer else { return Self::default() };
        let forwarded = request.headers().get_all("x-forwarded-for");
        let hops: Vec<_> = forwarded.iter().filter_map(|value| value.to_str().ok()).collect();
        // Each proxy appends whom it heard from: read from the right, for as long as those are trusted.
        for hop in hops.iter().flat_map(|value| value.split(',')).rev() {
            if !proxies.iter().any(|network| network.contains(address)) {
                break;
            }
            let Ok(before) = hop.trim().parse::<IpAddr>() else { break };
            address = before.to_canonical();
        }
        Self(address)
    }

    /// What shares one rate: an IPv6 caller has a whole network of addresses.
    pub(super) fn neighbourhood(self) -> IpAddr {
        match self.0 {
            IpAddr::V4(_) => self.0,
            IpAddr::V6(address) => (address.to_bits() >> 64 << 64).to_be_bytes().into(),
        }
    }
}

/// A range of addresses, such as `10.0.0.0/8` or `::1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    base: IpAddr,
    bits: u8,
}

/// Why a text is not a range of addresses.
#[derive(Debug, Error)]
#[error("{0} is not an address or a network such as 10.0.0.0/8")]
pub struct NetworkError(String);

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let wrong = || NetworkError(text.to_owned());
        let (base, bits) = match text.split_once('/') {
            Some((base, bits)) => (base, Some(bits.parse::<u8>().map_err(|_| wrong())?)),
            None => (text, None),
        };
        let base: IpAddr = base.parse().map_err(|_| wrong())?;
        let whole = if base.is_ipv4() { 32 } else { 128 };
        let bits = bits.unwrap_or(whole);
        if bits > whole { Err(wrong()) } else { Ok(Self { base, bits }) }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.base, self.bits)
    }
}

impl Network {
    pub fn contains(&self, address: IpAddr) -> bool {
        let mask = |whole: u32| u128::MAX.checked_shl(whole - u32::from(self.bits)).unwrap_or(0);
        match (self.base, address) {
            (IpAddr::V4(base), IpAddr::V4(other)) => {
                u128::from(base.to_bits()) & mask(32) == u128::from(other.to_bits()) & mask(32)
            }
            (IpAddr::V6(base), IpAddr::V6(other)) => {
                base.to_bits() & mask(128) == other.to_bits() & mask(128)
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_holds_its_own_addresses() {
        for (network, address, inside) in [
            ("10.0.0.0/8", "10.1.2.3", true),
            ("10.0.0.0/8", "11.0.0.1", false),
            ("127.0.0.1", "127.0.0.1", true),
            ("127.0.0.1", "127.0.0.2", false),
            ("0.0.0.0/0", "8.8.8.8", true),
            ("::/0", "8.8.8.8", false),
            ("2001:db8::/32", "2001:db8:1::1", true),
        ] {
            let network: Network = network.parse().unwrap();
            assert_eq!(network.contains(address.parse().unwrap()), inside, "{network:?} {address}");
        }
        for bad in ["10.0.0.0/33", "x", "", "10.0.0.0/"] {
            assert!(bad.parse::<Network>().is_err(), "{bad}");
        }
    }

    fn address(peer: &str, forwarded: &str, proxies: &[&str]) -> String {
        let mut request = Request::new(axum::body::Body::empty());
        request.extensions_mut().insert(ConnectInfo(SocketAddr::new(peer.parse().unwrap(), 1)));
        request.headers_mut().insert("x-forwarded-for", forwarded.parse().unwrap());
        let proxies: Vec<Network> = proxies.iter().map(|text| text.parse().unwrap()).collect();
        Address::of(&request, &proxies).to_string()
    }

    #[test]
    fn only_a_trusted_proxy_says_who_asked() {
        assert_eq!(address("192.0.2.9", "203.0.113.5", &[]), "192.0.2.9");
        assert_eq!(address("127.0.0.1", "203.0.113.5", &["127.0.0.1"]), "203.0.113.5");
        assert_eq!(address("127.0.0.1", "6.6.6.6, 203.0.113.5", &["127.0.0.1"]), "203.0.113.5");
        assert_eq!(
            address("127.0.0.1", "203.0.113.5, 10.0.0.2", &["127.0.0.1", "10.0.0.0/8"]),
            "203.0.113.5"
        );
        assert_eq!(address("127.0.0.1", "nonsense", &["127.0.0.1"]), "127.0.0.1");
    }
}
