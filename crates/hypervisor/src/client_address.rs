//! The client's IP address, also behind trusted proxies.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;

use axum::extract::{ConnectInfo, Request};
use thiserror::Error;

/// The client's address: the address of the peer, or the one that a trusted proxy reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ClientAddress(pub IpAddr);

/// An unknown address. It is not a loopback address, because those may read the metrics.
impl Default for ClientAddress {
    fn default() -> Self {
        Self(Ipv4Addr::UNSPECIFIED.into())
    }
}

impl fmt::Display for ClientAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl ClientAddress {
    pub(super) fn of(request: &Request, proxies: &[Network]) -> Self {
        let peer =
            request.extensions().get::<ConnectInfo<SocketAddr>>().map(|info| info.0.ip().to_canonical());
        let Some(mut address) = peer else { return Self::default() };
        let forwarded = request.headers().get_all("x-forwarded-for");
        let hops: Vec<_> = forwarded.iter().filter_map(|value| value.to_str().ok()).collect();
        // Each proxy appends the address of its peer: read from the right for as long as the peer is trusted.
        for hop in hops.iter().flat_map(|value| value.split(',')).rev() {
            if !proxies.iter().any(|network| network.contains(address)) {
                break;
            }
            let Ok(previous) = hop.trim().parse::<IpAddr>() else { break };
            address = previous.to_canonical();
        }
        Self(address)
    }

    /// The unit of rate limits: an IPv4 address, or the /64 network of an IPv6 address, since one client has all of it.
    pub(super) fn network_prefix(self) -> IpAddr {
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

/// A text that is not an IP address or network.
#[derive(Debug, Error)]
#[error("{0} is not an address or a network such as 10.0.0.0/8")]
pub struct NetworkError(String);

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let invalid = || NetworkError(text.to_owned());
        let (base, bits) = match text.split_once('/') {
            Some((base, bits)) => (base, Some(bits.parse::<u8>().map_err(|_| invalid())?)),
            None => (text, None),
        };
        let base: IpAddr = base.parse().map_err(|_| invalid())?;
        let max_bits = if base.is_ipv4() { 32 } else { 128 };
        let bits = bits.unwrap_or(max_bits);
        if bits > max_bits { Err(invalid()) } else { Ok(Self { base, bits }) }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.base, self.bits)
    }
}

impl Network {
    pub fn contains(&self, address: IpAddr) -> bool {
        let mask = |width: u32| u128::MAX.checked_shl(width - u32::from(self.bits)).unwrap_or(0);
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
    fn a_network_contains_its_own_addresses() {
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
        ClientAddress::of(&request, &proxies).to_string()
    }

    #[test]
    fn only_a_trusted_proxy_can_report_another_client_address() {
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
