//! How to connect each host: the text to paste, for the start page and the command line.

pub use tribune_config::Reach;

use crate::settings::Settings;

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
    /// A token that the client gets by itself, when its user signs in.
    SignIn,
    /// A user's token, in whose place `TOKEN` is shown: anonymous callers are refused.
    Needed,
    /// The secret of the person at this machine.
    Local(&'a str),
}

impl<'a> Token<'a> {
    /// What clients on other machines send.
    pub fn remote(settings: &Settings) -> Self {
        match (settings.offers_oauth, settings.auth_required) {
            (true, _) => Self::SignIn,
            (false, true) => Self::Needed,
            (false, false) => Self::None,
        }
    }

    fn shown(self) -> Option<&'a str> {
        match self {
            Self::None | Self::SignIn => None,
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
                let authentication = match token {
                    Token::SignIn => Some("OAuth"),
                    Token::None => Some("No authentication"),
                    Token::Needed | Token::Local(_) => None,
                };
                paste.extend(authentication.map(|choice| ("Authentication", choice.to_owned())));
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
            Self::ChatGpt | Self::Claude if needs_token => Some(format!(
                "This server requires the header `{HEADER}`, which {name} cannot send. With `issuer = \"builtin\"` in [auth], people sign in from {name} instead."
            )),
            Self::ClaudeCode | Self::VsCode | Self::Cursor if matches!(token, Token::Local(_)) => {
                Some(LOCAL.to_owned())
            }
            Self::Other if needs_token => Some(format!("Send the header `{HEADER}`. {TOKENS}")),
            _ if needs_token => Some(TOKENS.to_owned()),
            Self::ClaudeCode if token == Token::SignIn => {
                Some("Then type `/mcp` in Claude Code to sign in.".to_owned())
            }
            Self::Claude | Self::VsCode | Self::Cursor | Self::Other if token == Token::SignIn => {
                Some(SIGN_IN.to_owned())
            }
            Self::ChatGpt => Some(format!(
                "For Deep Research use {base}/mcp/research instead: exactly `search` and `fetch`. After the data or tools change, press Refresh on the connector."
            )),
            _ => None,
        };
        Guide { name, steps, paste, note, needs_public: matches!(self, Self::ChatGpt | Self::Claude) }
    }
}

const HEADER: &str = "Authorization: Bearer TOKEN";
const LOCAL: &str = "The header is the secret of this machine's user: with it, a client sees your personal data too. Share it with nobody, and leave it out for a client that needs shared data only.";
const SIGN_IN: &str = "The client opens a page of this server: sign in there and allow access.";
const TOKENS: &str =
    "Replace TOKEN with a user's token; the operator creates one with `tribune token create --user NAME`.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pasted_text_is_valid_and_has_the_address() {
        for host in Host::ALL {
            for token in [Token::None, Token::SignIn, Token::Needed, Token::Local("tribune_local_1")] {
                let guide = host.guide("https://tribune.example.org", token);
                let all: String = guide.paste.iter().map(|(_, text)| text.as_str()).collect();
                assert!(all.contains("https://tribune.example.org/mcp"), "{host:?}");
                for (_, text) in guide.paste.iter().filter(|(_, text)| text.starts_with('{')) {
                    serde_json::from_str::<serde_json::Value>(text).expect("JSON");
                }
                let text = format!("{all} {}", guide.note.unwrap_or_default());
                assert_eq!(text.contains("Bearer TOKEN"), token == Token::Needed, "{text}");
                let signs_in = ["OAuth", "sign in"].into_iter().any(|words| text.contains(words));
                // Without an issuer, the note for hosts that send no header says how to get one.
                if token != Token::Needed {
                    assert_eq!(signs_in, token == Token::SignIn, "{host:?} {token:?}: {text}");
                }
            }
        }
    }
}
