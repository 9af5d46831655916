//! Which address a request comes from, and whom a limit counts for.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use http::HeaderMap;
use ipnet::IpNet;
use serde::Deserialize;
use tribune_core::{Principal, UserId};

/// The address of the connection that a request came on; in the request's extensions.
#[derive(Debug, Clone, Copy)]
pub struct SocketPeer(pub IpAddr);

/// Everybody whose request a proxy has forwarded without an address that can be believed: all of them count as one.
const FORWARDED: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// The proxies whose `X-Forwarded-For` is believed: addresses and networks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Vec<String>")]
pub struct Proxies(Vec<IpNet>);

impl TryFrom<Vec<String>> for Proxies {
    type Error = String;

    fn try_from(entries: Vec<String>) -> Result<Self, String> {
        let parse = |entry: &String| {
            let address = || entry.parse::<IpAddr>().map(IpNet::from);
            entry
                .parse::<IpNet>()
                .or_else(|_| address())
                .map_err(|_| format!("\"{entry}\" is no address or network, such as \"127.0.0.1\" or \"10.0.0.0/8\""))
        };
        entries.iter().map(parse).collect::<Result<_, _>>().map(Self)
    }
}

impl Proxies {
    pub fn trusts(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(&address))
    }

    /// The caller's address. Each proxy appends the address that it was called from, so only what trusted proxies have
    /// appended is believed.
    pub fn caller(&self, socket: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut caller = socket;
        let lines = headers.get_all("x-forwarded-for").iter().rev();
        let lines = lines.map(|line| line.to_str().unwrap_or_default());
        for address in lines.flat_map(|line| line.rsplit(',')) {
            if !self.trusts(caller) {
                break;
            }
            // Without an address there is nobody behind the proxy who could be told from others.
            caller = address_of(address.trim()).unwrap_or(FORWARDED);
        }
        // The person at this machine comes without a proxy.
        let is_forwarded = headers.contains_key("x-forwarded-for");
        if caller.is_loopback() && is_forwarded { FORWARDED } else { caller }
    }
}

/// An address, with or without a port.
fn address_of(text: &str) -> Option<IpAddr> {
    let address = text.parse::<SocketAddr>().map(|address| address.ip());
    let address = address.or_else(|_| text.trim_start_matches('[').trim_end_matches(']').parse());
    address.ok().map(|address: IpAddr| address.to_canonical())
}

/// Whom a limit counts for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Subject {
    User(UserId),
    Peer(IpAddr),
}

impl Subject {
    /// `None` for the person at this machine, and for anonymous callers on loopback: behind a proxy that is not trusted,
    /// all of them share one address.
    pub fn new(principal: &Principal, peer: Option<IpAddr>) -> Option<Self> {
        match principal {
            Principal::Local => None,
            Principal::User(user) => Some(Self::User(user.clone())),
            Principal::Anonymous => Self::peer(peer),
        }
    }

    pub fn peer(peer: Option<IpAddr>) -> Option<Self> {
        peer.filter(|peer| !peer.is_loopback()).map(|peer| Self::Peer(subscriber(peer)))
    }
}

/// A subscriber gets a /64 of IPv6, and may use each of its addresses.
pub fn subscriber(peer: IpAddr) -> IpAddr {
    match peer {
        IpAddr::V6(peer) => IpAddr::V6(Ipv6Addr::from_bits(peer.to_bits() & !u128::from(u64::MAX))),
        IpAddr::V4(_) => peer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn only_trusted_proxies_name_callers() {
        let trusted = Proxies::try_from(vec!["127.0.0.1".to_owned(), "10.0.0.0/8".to_owned()]).expect("networks");
        for (socket, forwarded, caller) in [
            ("127.0.0.1", "203.0.113.7", "203.0.113.7"),
            ("127.0.0.1", "198.51.100.1, 203.0.113.7", "203.0.113.7"),
            ("127.0.0.1", "203.0.113.7, 10.1.2.3", "203.0.113.7"),
            ("127.0.0.1", "10.1.2.3", "10.1.2.3"),
            ("127.0.0.1", "203.0.113.7:4711", "203.0.113.7"),
            ("127.0.0.1", "[2001:db8::1]:443", "2001:db8::1"),
            ("127.0.0.1", "[2001:db8::1]", "2001:db8::1"),
            ("127.0.0.1", "203.0.113.7, nonsense", "0.0.0.0"),
            ("127.0.0.1", "unknown", "0.0.0.0"),
            ("127.0.0.1", "127.0.0.1", "0.0.0.0"),
            ("127.0.0.1", "", "0.0.0.0"),
            ("198.51.100.9", "203.0.113.7", "198.51.100.9"),
        ] {
            let headers = HeaderMap::from_iter([(
                http::HeaderName::from_static("x-forwarded-for"),
                http::HeaderValue::from_static(forwarded),
            )]);
            assert_eq!(trusted.caller(address(socket), &headers), address(caller), "{socket} {forwarded}");
            // Nobody is told from others behind a proxy that is not trusted, and nobody is taken for this machine.
            let untrusted = if socket == "127.0.0.1" { "0.0.0.0" } else { socket };
            assert_eq!(Proxies::default().caller(address(socket), &headers), address(untrusted));
        }
        assert_eq!(trusted.caller(address("127.0.0.1"), &HeaderMap::new()), address("127.0.0.1"));
        let refusal = Proxies::try_from(vec!["10.0.0.0/8".to_owned(), "proxy".to_owned()]).expect_err("no network");
        assert!(refusal.starts_with("\"proxy\" is no address or network"), "{refusal}");
    }

    #[test]
    fn limits_count_for_users_and_outside_addresses() {
        let outside = Some(address("2001:db8:1:2:3::4"));
        let neighbour = Some(address("2001:db8:1:2::9"));
        let user = Principal::User(UserId::new("ann").expect("a name"));
        assert_eq!(Subject::new(&Principal::Local, outside), None);
        assert_eq!(Subject::new(&Principal::Anonymous, Some(address("::1"))), None);
        assert_eq!(Subject::new(&Principal::Anonymous, outside), Subject::new(&Principal::Anonymous, neighbour));
        assert_eq!(Subject::new(&user, outside), Subject::new(&user, None));
        assert_ne!(Subject::new(&user, outside), Subject::peer(outside));
    }
}
