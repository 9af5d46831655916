//! Which addresses a program may be sent back to.

use url::{Host, Url};

const MAX_CHARS: usize = 2_000;
/// Schemes of hosts on people's machines whose makers put no domain into them. Others have a dot (RFC 8252): schemes
/// without one belong to browsers and systems, such as `intent` and `search-ms`.
const HOST_SCHEMES: [&str; 12] = [
    "antigravity",
    "claude",
    "cursor",
    "kiro",
    "lmstudio",
    "raycast",
    "vscode",
    "vscode-insiders",
    "vscodium",
    "warp",
    "windsurf",
    "zed",
];

/// Checks an address that a program wants to be sent back to.
pub(crate) fn check(address: &str) -> Result<Url, String> {
    let refused = |why: &str| Err(format!("the redirect address {address:?} {why}"));
    if address.len() > MAX_CHARS || address.contains(|c: char| c.is_control() || c.is_whitespace()) {
        return refused("is too long or has spaces or control characters");
    }
    let Ok(url) = Url::parse(address) else {
        return refused("is not a URL");
    };
    if url.fragment().is_some() {
        return refused("must have no fragment");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return refused("must have no user name or password");
    }
    if !is_plain(address, &url) {
        return refused(&format!("must be written as browsers write it: {url}"));
    }
    match url.scheme() {
        "https" => Ok(url),
        "http" if is_loopback(&url) => Ok(url),
        "http" => refused("must be https, or http to a loopback address"),
        scheme if scheme.contains('.') || HOST_SCHEMES.contains(&scheme) => Ok(url),
        _ => refused("has a scheme without a dot, such as com.example.app, that is none of a known host"),
    }
}

/// Whether every reader of an address takes it for the same. A host that is not ASCII, or an empty path, may be written
/// otherwise than a browser does.
fn is_plain(address: &str, url: &Url) -> bool {
    match address.is_ascii() {
        true => url.as_str() == address || url.as_str().strip_suffix('/') == Some(address),
        false => address.starts_with("https://") && !address.contains('\\'),
    }
}

/// Whom an address reaches: a host, or the program that a scheme opens, whatever stands where a host would.
pub(crate) fn destination(url: &Url) -> String {
    match (url.scheme(), url.host_str()) {
        ("https" | "http", Some(host)) => host.to_owned(),
        (scheme, _) => format!("{scheme}:"),
    }
}

/// The same as a policy of a page names it.
pub(crate) fn origin(url: &Url) -> String {
    match url.scheme() {
        "https" | "http" => url.origin().ascii_serialization(),
        scheme => format!("{scheme}:"),
    }
}

pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// Whether a program that registered one address may use another: the same, or the same on another loopback port, because
/// native programs listen where they can.
pub(crate) fn matches(registered: &str, given: &str) -> bool {
    if registered == given {
        return true;
    }
    let (Ok(registered), Ok(mut given)) = (Url::parse(registered), Url::parse(given)) else {
        return false;
    };
    let is_native = registered.scheme() == "http" && is_loopback(&registered) && is_loopback(&given);
    is_native && given.set_port(registered.port()).is_ok() && given == registered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dangerous_addresses_are_refused() {
        for fine in [
            "https://chatgpt.com/connector/oauth/x",
            "http://127.0.0.1:6274/oauth/callback",
            "http://localhost/cb",
            "http://[::1]:1/cb",
            "cursor://anysphere.cursor-mcp/oauth/callback",
            "com.example.app:/cb",
            "vscode://saoudrizwan.claude-dev/oauth",
            "https://bücher.example/cb",
            "https://chatgpt.com",
        ] {
            assert!(check(fine).is_ok(), "{fine}");
        }
        for wrong in [
            "http://example.org/cb",
            "javascript:alert(1)",
            "JavaScript:alert(1)",
            "data:text/html,x",
            "file:///etc/passwd",
            "https://example.org/cb#token",
            "https://ann:pw@example.org/",
            "https://example.org/a b",
            "https://example.org/\r\nx",
            "http://localhost.example.org/",
            "https:evil.example",
            "https://evil.example\\@good.example/cb",
            "https://évil.example\\@good.example/cb",
            "https://Good.example/cb",
            "https://good.example/a/../b",
            "http://0x7f.1/cb",
            "intent://scan/",
            "ms-msdt:/id",
            "search-ms:query=x",
            "tel:112",
            "urn:x",
            "mailto:ann@example.org",
            "/relative",
            "",
        ] {
            assert!(check(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_loopback_ports_vary() {
        assert!(matches("http://127.0.0.1:1/cb", "http://127.0.0.1:65000/cb"));
        assert!(matches("http://localhost/cb?a=1", "http://localhost:9/cb?a=1"));
        for (registered, given) in [
            ("https://example.org/cb", "https://example.org:8443/cb"),
            ("https://example.org/cb", "https://example.org/cb/"),
            ("https://example.org/cb", "https://example.org/cb?x=1"),
            ("http://127.0.0.1:1/cb", "http://127.0.0.1:1/other"),
            ("http://127.0.0.1:1/cb", "http://localhost:1/cb"),
            ("http://127.0.0.1:1/cb", "http://example.org:1/cb"),
            ("cursor://a/cb", "cursor://b/cb"),
        ] {
            assert!(!matches(registered, given), "{registered} {given}");
        }
    }
}
