//! The way to the world, and which addresses belong to it.
//!
//! Everything that is not known to be public is not: private networks, this machine, and every form in which an
//! address of IPv4 can hide in one of IPv6.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};

/// How names become addresses, and which of those may be reached.
pub trait Resolver: Send + Sync + 'static {
    fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>>;

    fn is_public(&self, address: IpAddr) -> bool;
}

/// The real one.
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

/// Whether the kernel would speak to itself. A machine with a public address of its own may trust those who use it.
fn is_of_this_machine(address: IpAddr) -> bool {
    let any: SocketAddr = match address {
        IpAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        IpAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    // Nothing is sent: the kernel only says from where it would be. An address without a way is not reached anyway.
    let from = UdpSocket::bind(any).and_then(|socket| {
        socket.connect((address, 9))?;
        socket.local_addr()
    });
    from.is_ok_and(|from| from.ip().to_canonical() == address.to_canonical())
}

/// Whether an address belongs to the public internet.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// The networks of IPv4 that are somebody's own (IANA's special-purpose registry), and one address that looks public.
const PRIVATE_V4: &[(Ipv4Addr, u32)] = &[
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    // The machine's neighbours, among them 169.254.169.254, where clouds keep credentials.
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    // The same of one cloud.
    (Ipv4Addr::new(168, 63, 129, 16), 32),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    // Multicast, the reserved rest, and broadcast.
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
        // Teredo: its server, and its client with every bit turned.
        [0x2001, 0, high, low, _, _, client_high, client_low] => {
            v4(high, low) && v4(!client_high, !client_low)
        }
        // Protocols' own, and documentation.
        [0x2001, second, ..] if second < 0x200 || second == 0xdb8 => false,
        [0x3fff, second, ..] if second < 0x1000 => false,
        // All else that is public is global unicast.
        [first, ..] => first & 0xe000 == 0x2000,
    }
}
