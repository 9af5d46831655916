//! Documents of other servers. What a stranger names is only fetched from public addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{Client, RequestBuilder};
use serde_json::Value;
use tribune_core::{Error, Result};
use url::{Host, Url};

const MAX_BYTES: usize = 256 * 1024;
const TIMEOUT: Duration = Duration::from_secs(10);

/// Fetches JSON, without redirects and with limits.
#[derive(Clone)]
pub(crate) struct Fetcher {
    client: Client,
    /// Hosts with port that may have any address; `None` for a fetcher that may reach everything.
    exempt: Option<Arc<[String]>>,
}

impl Fetcher {
    /// For addresses that the operator configured.
    pub(crate) fn trusted() -> Result<Self> {
        let client = builder().build().map_err(unusable)?;
        Ok(Self { client, exempt: None })
    }

    /// For addresses that strangers name. `exempt` hosts, written `host:port`, may be of this network.
    pub(crate) fn guarded(exempt: Arc<[String]>) -> Result<Self> {
        let names = exempt.iter().filter_map(|host| host.rsplit_once(':'));
        let resolver = PublicOnly { exempt: names.map(|(name, _)| name.to_owned()).collect() };
        // A proxy would resolve names by itself.
        let client = builder().no_proxy().dns_resolver(Arc::new(resolver)).build();
        Ok(Self { client: client.map_err(unusable)?, exempt: Some(exempt) })
    }

    /// Whether the operator allowed this address whatever it is.
    pub(crate) fn is_exempt(&self, url: &Url) -> bool {
        let Some(exempt) = &self.exempt else { return true };
        let host = url.host_str().unwrap_or_default();
        let named = format!("{host}:{}", url.port_or_known_default().unwrap_or(0));
        exempt.contains(&named)
    }

    /// Whether an address is private as it is written. Other names are resolved when the connection is made.
    fn is_private(&self, url: &Url) -> bool {
        match url.host() {
            Some(Host::Ipv4(address)) => !is_public(IpAddr::V4(address)),
            Some(Host::Ipv6(address)) => !is_public(IpAddr::V6(address)),
            // The resolver sees no ports: an exempt name may be private, and only its named port is exempt.
            Some(Host::Domain(name)) => self
                .exempt
                .iter()
                .flat_map(|exempt| exempt.iter())
                .any(|exempt| exempt.rsplit_once(':').is_some_and(|(exempt, _)| exempt == name)),
            None => true,
        }
    }

    pub(crate) async fn json(&self, url: &Url) -> Result<Value> {
        if self.is_private(url) && !self.is_exempt(url) {
            return Err(Error::invalid_argument(format!("{url} is not a public address")));
        }
        send(self.client.get(url.clone()), url).await
    }

    pub(crate) fn post(&self, url: &Url) -> RequestBuilder {
        self.client.post(url.clone())
    }
}

/// Sends a request and reads a bounded JSON answer of status 200.
pub(crate) async fn send(request: RequestBuilder, url: &Url) -> Result<Value> {
    let failed = |why: String| Error::unavailable(format!("{url} cannot be used: {why}"));
    let request = request.header("accept", "application/json");
    let mut answer = request.send().await.map_err(|error| failed(reason(&error)))?;
    if answer.status() != 200 {
        return Err(failed(format!("it answers with status {}", answer.status().as_u16())));
    }
    let mut body = Vec::new();
    while let Some(bytes) = answer.chunk().await.map_err(|error| failed(reason(&error)))? {
        if body.len() + bytes.len() > MAX_BYTES {
            return Err(failed(format!("it is larger than {MAX_BYTES} bytes")));
        }
        body.extend_from_slice(&bytes);
    }
    serde_json::from_slice(&body).map_err(|error| failed(format!("it is not JSON: {error}")))
}

fn reason(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

fn builder() -> reqwest::ClientBuilder {
    // Fails if the program has installed a provider already, which is fine.
    drop(rustls::crypto::ring::default_provider().install_default());
    Client::builder()
        .timeout(TIMEOUT)
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("tribune/", env!("CARGO_PKG_VERSION")))
}

fn unusable(error: reqwest::Error) -> Error {
    Error::unavailable("cannot create an HTTP client").caused_by(error)
}

/// Resolves names to public addresses only, when the connection is made: a second look-up could give another answer.
struct PublicOnly {
    exempt: Vec<String>,
}

impl Resolve for PublicOnly {
    fn resolve(&self, name: Name) -> Resolving {
        let is_exempt = self.exempt.iter().any(|exempt| exempt == name.as_str());
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let public: Vec<SocketAddr> = found.filter(|found| is_exempt || is_public(found.ip())).collect();
            if public.is_empty() {
                return Err(format!("{} has no public address", name.as_str()).into());
            }
            Ok(Box::new(public.into_iter()) as Addrs)
        })
    }
}

/// Whether an address is public: not of this machine, its network, or a special purpose.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let is_special = matches!(
        (a, b, c),
        (0 | 10 | 127 | 224..=255, ..)
            | (100, 64..=127, _)
            | (169, 254, _)
            | (172, 16..=31, _)
            | (192, 0, 0 | 2)
            | (192, 88, 99)
            | (192, 168, _)
            | (198, 18..=19, _)
            | (198, 51, 100)
            | (203, 0, 113)
    );
    !is_special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    // Those that stand for an address of version 4: mapped, translated, 6to4.
    let [.., high, low] = segments;
    let embedded = match segments {
        [0, 0, 0, 0, 0, 0xffff, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => Some((high, low)),
        [0x2002, high, low, ..] => Some((high, low)),
        _ => None,
    };
    if let Some((high, low)) = embedded {
        return is_public_v4(Ipv4Addr::from(u32::from(high) << 16 | u32::from(low)));
    }
    // Global unicast is 2000::/3; in it, documentation, Teredo and other protocols are not for this.
    let is_global = segments[0] & 0xe000 == 0x2000;
    is_global && !matches!(segments, [0x2001, 0..=0x1ff | 0xdb8, ..] | [0x3fff, 0..=0xfff, ..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_addresses_are_not_public() {
        for public in ["93.184.216.34", "8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8"] {
            assert!(is_public(public.parse().expect("an address")), "{public}");
        }
        for private in [
            "127.0.0.1",
            "127.9.9.9",
            "0.0.0.0",
            "10.1.2.3",
            "172.31.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "192.0.2.1",
            "198.18.0.1",
            "203.0.113.9",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "fe80::1",
            "fc00::1",
            "fd12::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "2001:db8::1",
            "2001::1",
        ] {
            assert!(!is_public(private.parse().expect("an address")), "{private}");
        }
    }

    #[tokio::test]
    async fn only_named_port_of_exempt_host_is_contacted() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let fetcher = Fetcher::guarded(Arc::from(["localhost:1".to_owned(), "127.0.0.1:1".to_owned()]));
        let fetcher = fetcher.expect("a client");
        for host in ["localhost", "127.0.0.1"] {
            let url = Url::parse(&format!("https://{host}:{port}/client.json")).expect("a URL");
            let error = fetcher.json(&url).await.expect_err(host);
            assert!(error.message().contains("public address"), "{host}: {error}");
        }
        assert!(tokio::time::timeout(Duration::ZERO, listener.accept()).await.is_err(), "nobody came");
    }

    #[tokio::test]
    async fn private_hosts_are_not_contacted() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let fetcher = Fetcher::guarded(Arc::from([])).expect("a client");
        for host in ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "2130706433", "0x7f.1", "127.1"] {
            let url = Url::parse(&format!("http://{host}:{port}/client.json")).expect("a URL");
            let error = fetcher.json(&url).await.expect_err(host);
            assert!(error.message().contains("public address"), "{host}: {error}");
        }
        let contacted = tokio::time::timeout(Duration::ZERO, listener.accept()).await;
        assert!(contacted.is_err(), "nobody came");
    }
}
