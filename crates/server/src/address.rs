//! Host names of requests and settings.

use http::{HeaderMap, Uri, header};

/// A host name without port and brackets, in lower case.
pub(crate) fn bare_host(host: &str) -> String {
    let host = host.trim();
    let without_port = match host.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or(v6),
        None if host.matches(':').count() == 1 => host.split(':').next().unwrap_or(host),
        None => host,
    };
    without_port.to_ascii_lowercase()
}

/// The host name that a request is addressed to; `None` if it names none, or two.
pub(crate) fn host_name(headers: &HeaderMap, uri: &Uri) -> Option<String> {
    let mut hosts = headers.get_all(header::HOST).iter();
    match hosts.next() {
        Some(_) if hosts.next().is_some() => None,
        Some(host) => host.to_str().ok().map(bare_host),
        None => uri.host().map(bare_host),
    }
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
    use super::bare_host;

    #[test]
    fn host_names_lose_their_port() {
        for (given, name) in
            [("Example.org:8080", "example.org"), ("[::1]:80", "::1"), ("::1", "::1"), ("localhost", "localhost")]
        {
            assert_eq!(bare_host(given), name);
        }
    }
}
