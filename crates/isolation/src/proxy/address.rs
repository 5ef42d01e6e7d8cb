//! Name resolution, and which addresses are public.
//!
//! An address counts as public only if it is known to be: not private networks, not this machine, and no IPv6 form
//! that embeds such an IPv4 address.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};

/// Resolves names and decides which addresses may be reached.
pub trait Resolver: Send + Sync + 'static {
    fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>>;

    fn is_public(&self, address: IpAddr) -> bool;
}

/// The system's resolver.
#[derive(Debug, Clone, Copy)]
pub struct SystemResolver;

impl Resolver for SystemResolver {
    fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        (host, port).to_socket_addrs().map(Iterator::collect)
    }

    fn is_public(&self, address: IpAddr) -> bool {
        is_public(address) && !is_of_this_machine(address)
    }
}

/// True for an address of this machine. Its services may trust local connections, even on a public address.
fn is_of_this_machine(address: IpAddr) -> bool {
    let any: SocketAddr = match address {
        IpAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        IpAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    // Nothing is sent: connecting a UDP socket only selects the source address. An address without a route cannot be
    // reached anyway.
    let from = UdpSocket::bind(any).and_then(|socket| {
        socket.connect((address, 9))?;
        socket.local_addr()
    });
    from.is_ok_and(|from| from.ip().to_canonical() == address.to_canonical())
}

/// True if an address belongs to the public internet.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// Non-public IPv4 networks (IANA's special-purpose registry), and one special address in a public range.
const PRIVATE_V4: &[(Ipv4Addr, u32)] = &[
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    // Link-local, including 169.254.169.254, where clouds serve credentials.
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    // The metadata address of Azure.
    (Ipv4Addr::new(168, 63, 129, 16), 32),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    // Multicast, reserved and broadcast.
    (Ipv4Addr::new(224, 0, 0, 0), 3),
];

fn is_public_v4(address: Ipv4Addr) -> bool {
    let is_in = |(network, bits): &(Ipv4Addr, u32)| {
        let mask = u32::MAX << (32 - bits);
        address.to_bits() & mask == network.to_bits()
    };
    !PRIVATE_V4.iter().any(is_in)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let words = address.segments();
    let v4 = |high: u16, low: u16| is_public_v4(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)));
    match words {
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => v4(high, low),
        [0x2002, high, low, ..] => v4(high, low),
        // Teredo: its server, and its client with every bit inverted.
        [0x2001, 0, high, low, _, _, client_high, client_low] => {
            v4(high, low) && v4(!client_high, !client_low)
        }
        // Protocol assignments and documentation.
        [0x2001, second, ..] if second < 0x200 || second == 0xdb8 => false,
        [0x3fff, second, ..] if second < 0x1000 => false,
        // Otherwise only global unicast is public.
        [first, ..] => first & 0xe000 == 0x2000,
    }
}
