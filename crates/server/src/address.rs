//! Host names of requests and settings.

use http::{HeaderMap, Uri, header};

/// A host name without port and brackets, in lower case.
pub(crate) fn bare_host(host: &str) -> String {
    let host = host.trim();
    let without_port = match host.strip_prefix('[') {
        Some(v6) => match v6.split_once(']') {
            Some((v6, port)) if port.is_empty() || port.starts_with(':') => v6,
            _ => host,
        },
        None if host.matches(':').count() == 1 => host.split(':').next().unwrap_or(host),
        None => host,
    };
    without_port.to_ascii_lowercase()
}

/// The host name that a request is addressed to; `None` if it names none, or two.
pub(crate) fn host_name(headers: &HeaderMap, uri: &Uri) -> Option<String> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let (host, another) = (hosts.next(), hosts.next());
    let host = host.map(|host| host.to_str().unwrap_or_default());
    let mut named = host.into_iter().chain(uri.host()).map(bare_host);
    let first = named.next().filter(|host| !host.is_empty())?;
    (another.is_none() && named.all(|other| other == first)).then_some(first)
}

pub(crate) fn is_loopback_name(host: &str) -> bool {
    matches!(host, "localhost" | "127.0.0.1" | "::1")
}

/// Whether a page was served by this machine.
pub(crate) fn is_loopback_origin(origin: &str) -> bool {
    let origin: Option<Uri> = origin.parse().ok();
    let host = origin.as_ref().and_then(Uri::host).map(bare_host);
    host.is_some_and(|host| is_loopback_name(&host))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn request_names_one_host() {
        for (hosts, uri, name) in [
            (vec!["localhost:80"], "/", Some("localhost")),
            (vec![], "http://localhost/", Some("localhost")),
            (vec!["LOCALHOST"], "http://localhost:80/", Some("localhost")),
            (vec!["localhost"], "http://evil.example/", None),
            (vec!["evil.example"], "http://localhost/", None),
            (vec!["localhost", "localhost"], "/", None),
            (vec![""], "/", None),
            (vec![], "/", None),
        ] {
            let headers = hosts.iter().map(|host| (header::HOST, HeaderValue::from_static(host)));
            let found = host_name(&headers.collect(), &Uri::from_static(uri));
            assert_eq!(found.as_deref(), name, "{hosts:?} {uri}");
        }
    }

    #[test]
    fn host_names_lose_their_port() {
        for (given, name) in [
            ("Example.org:8080", "example.org"),
            ("[::1]:80", "::1"),
            ("::1", "::1"),
            ("localhost", "localhost"),
            ("[::1]", "::1"),
            ("[::1]evil", "[::1]evil"),
        ] {
            assert_eq!(bare_host(given), name);
        }
    }
}
