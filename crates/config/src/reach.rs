//! Who can reach a public address.

use std::net::{IpAddr, Ipv4Addr};

use http::Uri;

/// How far an address reaches, judging by its form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// A loopback address.
    ThisMachine,
    /// A private address, or a name that only a local network knows.
    ThisNetwork,
    /// A public name, without encryption.
    NotHttps,
    /// HTTPS at a public name; nobody has tried to connect.
    Public,
}

impl Reach {
    pub fn of(base: &str) -> Self {
        let uri: Option<Uri> = base.parse().ok();
        let host = uri.as_ref().and_then(Uri::host).unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        match host.parse::<IpAddr>() {
            Ok(address) if address.is_loopback() || address.is_unspecified() => Self::ThisMachine,
            Ok(address) if is_private(address) => Self::ThisNetwork,
            Err(_) if host == "localhost" || host.ends_with(".localhost") => Self::ThisMachine,
            Err(_) if is_local_name(&host) => Self::ThisNetwork,
            _ if base.starts_with("https://") => Self::Public,
            _ => Self::NotHttps,
        }
    }

    pub fn is_public(self) -> bool {
        self == Self::Public
    }

    /// Why hosts on the internet cannot connect; `None` if they can.
    pub fn warning(self, base: &str) -> Option<String> {
        let why = match self {
            Self::ThisMachine => "only this machine can reach it",
            Self::ThisNetwork => "only its own network can reach it",
            Self::NotHttps => "it is not HTTPS",
            Self::Public => return None,
        };
        Some(format!(
            "ChatGPT and Claude need a public HTTPS address. This server has {base}: {why}. Put a reverse proxy or a tunnel in front and set public_url in [server] to its address."
        ))
    }
}

fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_private() || v4.is_link_local() || is_shared(v4),
        IpAddr::V6(v6) => {
            v6.is_unique_local()
                || v6.is_unicast_link_local()
                || v6.to_ipv4_mapped().is_some_and(|v4| is_private(v4.into()))
        }
    }
}

/// Carrier-grade NAT, 100.64.0.0/10.
fn is_shared(address: Ipv4Addr) -> bool {
    let [first, second, ..] = address.octets();
    first == 100 && (64..128).contains(&second)
}

fn is_local_name(host: &str) -> bool {
    const LOCAL: [&str; 5] = [".local", ".lan", ".internal", ".home.arpa", ".test"];
    !host.contains('.') || LOCAL.iter().any(|end| host.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_form_decides_its_reach() {
        for (base, reach) in [
            ("http://127.0.0.1:8080", Reach::ThisMachine),
            ("http://[::1]:8080", Reach::ThisMachine),
            ("https://localhost", Reach::ThisMachine),
            ("http://0.0.0.0:8080", Reach::ThisMachine),
            ("https://192.168.1.4", Reach::ThisNetwork),
            ("https://100.100.1.4", Reach::ThisNetwork),
            ("http://[fd00::1]", Reach::ThisNetwork),
            ("https://tribune.local", Reach::ThisNetwork),
            ("https://tribune", Reach::ThisNetwork),
            ("http://tribune.example.org", Reach::NotHttps),
            ("http://8.8.8.8", Reach::NotHttps),
            ("https://tribune.example.org/t", Reach::Public),
        ] {
            assert_eq!(Reach::of(base), reach, "{base}");
            assert_eq!(reach.warning(base).is_none(), reach.is_public(), "{base}");
        }
    }
}
