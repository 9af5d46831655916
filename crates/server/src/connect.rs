//! How to connect each host: the text to paste, for the start page and the command line.

/// A program that connects to MCP servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Host {
    ChatGpt,
    Claude,
    ClaudeCode,
    VsCode,
    Cursor,
    Other,
}

/// What a client sends to show who calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Token<'a> {
    /// Nothing: anonymous callers may read shared data.
    None,
    /// A user's token, in whose place `TOKEN` is shown: anonymous callers are refused.
    Needed,
    /// The secret of the person at this machine.
    Local(&'a str),
}

impl<'a> Token<'a> {
    fn shown(self) -> Option<&'a str> {
        match self {
            Self::None => None,
            Self::Needed => Some("TOKEN"),
            Self::Local(secret) => Some(secret),
        }
    }
}

/// How to connect one host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guide {
    pub name: &'static str,
    /// Where to click, in the host's own words.
    pub steps: &'static str,
    /// What to paste there: `(what it is, the text)`.
    pub paste: Vec<(&'static str, String)>,
    pub note: Option<String>,
    /// Whether it connects from its own servers and needs a public address.
    pub needs_public: bool,
}

impl Host {
    pub const ALL: [Self; 6] = [Self::ChatGpt, Self::Claude, Self::ClaudeCode, Self::VsCode, Self::Cursor, Self::Other];

    /// `base` is the public address without a trailing slash.
    pub fn guide(self, base: &str, token: Token<'_>) -> Guide {
        let mcp = format!("{base}/mcp");
        let (flag, headers) = match token.shown() {
            Some(token) => (
                format!(r#" --header "Authorization: Bearer {token}""#),
                format!(r#", "headers": {{ "Authorization": "Bearer {token}" }}"#),
            ),
            None => (String::new(), String::new()),
        };
        let needs_token = token == Token::Needed;
        let (name, steps, paste) = match self {
            Self::ChatGpt => {
                let mut paste = vec![("Name", "Tribune".to_owned()), ("MCP server URL", mcp)];
                if !needs_token {
                    paste.push(("Authentication", "No authentication".to_owned()));
                }
                (
                    "ChatGPT",
                    "On the web: Settings > Connectors > Advanced settings > Developer mode: on. Then Settings > Connectors > Create, and fill in:",
                    paste,
                )
            }
            Self::Claude => (
                "Claude",
                "On the web or on the desktop: Settings > Connectors > Add custom connector, and paste:",
                vec![("URL", mcp)],
            ),
            Self::ClaudeCode => (
                "Claude Code",
                "In a terminal:",
                vec![("Command", format!("claude mcp add --transport http tribune {mcp}{flag}"))],
            ),
            Self::VsCode => (
                "VS Code",
                "Add this to .vscode/mcp.json:",
                vec![(
                    ".vscode/mcp.json",
                    format!(
                        "{{\n  \"servers\": {{\n    \"tribune\": {{ \"type\": \"http\", \"url\": \"{mcp}\"{headers} }}\n  }}\n}}"
                    ),
                )],
            ),
            Self::Cursor => (
                "Cursor",
                "Add this to ~/.cursor/mcp.json, or to .cursor/mcp.json of a project:",
                vec![(
                    ".cursor/mcp.json",
                    format!("{{\n  \"mcpServers\": {{\n    \"tribune\": {{ \"url\": \"{mcp}\"{headers} }}\n  }}\n}}"),
                )],
            ),
            Self::Other => (
                "Other clients",
                "Any MCP client accepts one of these addresses:",
                vec![("Streamable HTTP", mcp), ("HTTP with SSE, for older clients", format!("{base}/sse"))],
            ),
        };
        let note = match self {
            Self::ChatGpt | Self::Claude if needs_token => {
                Some(format!("This server requires the header `{HEADER}`, which {name} cannot send."))
            }
            Self::ClaudeCode | Self::VsCode | Self::Cursor if matches!(token, Token::Local(_)) => {
                Some(LOCAL.to_owned())
            }
            Self::Other if needs_token => Some(format!("Send the header `{HEADER}`. {TOKENS}")),
            _ if needs_token => Some(TOKENS.to_owned()),
            Self::ChatGpt => Some(format!(
                "For Deep Research use {base}/mcp/research instead: exactly `search` and `fetch`. After the data or tools change, press Refresh on the connector."
            )),
            _ => None,
        };
        Guide { name, steps, paste, note, needs_public: matches!(self, Self::ChatGpt | Self::Claude) }
    }
}

const HEADER: &str = "Authorization: Bearer TOKEN";
const LOCAL: &str = "The header is the secret of this machine's user: with it, a client sees your tasks too. Share it with nobody, and leave it out for a client that needs shared data only.";
const TOKENS: &str =
    "Replace TOKEN with a user's token; the operator creates one with `tribune token create --user NAME`.";

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
        let uri: Option<http::Uri> = base.parse().ok();
        let host = uri.as_ref().and_then(http::Uri::host).unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        match host.parse::<std::net::IpAddr>() {
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

fn is_private(address: std::net::IpAddr) -> bool {
    match address {
        std::net::IpAddr::V4(v4) => v4.is_private() || v4.is_link_local() || is_shared(v4),
        std::net::IpAddr::V6(v6) => {
            v6.is_unique_local()
                || v6.is_unicast_link_local()
                || v6.to_ipv4_mapped().is_some_and(|v4| is_private(v4.into()))
        }
    }
}

/// Carrier-grade NAT, 100.64.0.0/10.
fn is_shared(address: std::net::Ipv4Addr) -> bool {
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

    #[test]
    fn pasted_text_is_valid_and_has_the_address() {
        for host in Host::ALL {
            for token in [Token::None, Token::Needed, Token::Local("tribune_local_1")] {
                let guide = host.guide("https://tribune.example.org", token);
                let all: String = guide.paste.iter().map(|(_, text)| text.as_str()).collect();
                assert!(all.contains("https://tribune.example.org/mcp"), "{host:?}");
                for (_, text) in guide.paste.iter().filter(|(_, text)| text.starts_with('{')) {
                    serde_json::from_str::<serde_json::Value>(text).expect("JSON");
                }
                let text = format!("{all} {}", guide.note.unwrap_or_default());
                assert_eq!(text.contains("Bearer TOKEN"), token == Token::Needed, "{text}");
            }
        }
    }
}
