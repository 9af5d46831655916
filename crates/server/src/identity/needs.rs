//! What a caller needs for each path. A path that is not listed needs the scope `read`, so that a new one is never open by
//! mistake.

use tribune_core::Scope;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// Open to everybody: pages for signing in.
    Nothing,
    /// The start page: it hides its content from strangers, and a token needs to allow it.
    Home,
    /// A profile's endpoint: each tool says what it needs.
    Profile,
    Scope(Scope),
}

pub(crate) fn need(path: &str) -> Need {
    let is_below =
        |parent: &str| path.strip_prefix(parent).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    if path == "/" {
        return Need::Home;
    }
    if ["/session", "/login", "/oauth", "/.well-known", "/assets"].into_iter().any(is_below) {
        return Need::Nothing;
    }
    if is_below("/mcp") || is_below("/sse") {
        return Need::Profile;
    }
    if is_below("/chat") || is_below("/conversations") {
        return Need::Scope(Scope::Chat);
    }
    if path == "/readyz" || path == "/metrics" {
        return Need::Scope(Scope::Admin);
    }
    Need::Scope(Scope::Read)
}

/// Whether pages of any origin may call this path: programs in browsers read metadata and get tokens there, and no cookie
/// counts.
pub(crate) fn is_open_to_pages(path: &str) -> bool {
    path.starts_with("/.well-known/")
        || matches!(path, "/oauth/token" | "/oauth/register" | "/oauth/revoke" | "/oauth/jwks")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_paths_need_a_scope() {
        for (path, needed) in [
            ("/", Need::Home),
            ("/login/callback", Need::Nothing),
            ("/mcp/research", Need::Profile),
            ("/chat", Need::Scope(Scope::Chat)),
            ("/data/x", Need::Scope(Scope::Read)),
            ("/loginx", Need::Scope(Scope::Read)),
            ("/mcpx", Need::Scope(Scope::Read)),
            ("/new", Need::Scope(Scope::Read)),
        ] {
            assert_eq!(need(path), needed, "{path}");
        }
    }
}
