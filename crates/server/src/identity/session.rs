//! Browsers that have signed in: a cookie that no script can read holds the secret of a session in the store.

use axum::response::Response;
use http::{HeaderMap, HeaderValue, header};
use tribune_core::{Links, Result};

use super::accounts::{Accounts, NewSession, SESSION_LIVES};

/// A cookie of this server.
pub(crate) struct Cookie {
    name: String,
    attributes: String,
}

impl Cookie {
    /// `purpose` is part of the name.
    pub(crate) fn new(purpose: &str, port: u16, links: &Links) -> Self {
        let (path, is_secure) = (links.path_prefix(), links.base().starts_with("https://"));
        let (prefix, secure) = match (is_secure, path) {
            // The browser then takes it only from this host, over https, for all paths.
            (true, "") => ("__Host-", "; Secure"),
            (true, _) => ("__Secure-", "; Secure"),
            (false, _) => ("", ""),
        };
        Self {
            // Cookies ignore ports: two servers on one machine would share one name.
            name: format!("{prefix}tribune_{purpose}_{port}"),
            // Lax: a link from another site opens as the signed-in user; a form there cannot act as them.
            attributes: format!("Path={path}/; HttpOnly; SameSite=Lax{secure}"),
        }
    }

    pub(crate) fn read<'h>(&self, headers: &'h HeaderMap) -> Option<&'h str> {
        let lines = headers.get_all(header::COOKIE).iter();
        let lines = lines.filter_map(|value| value.to_str().ok());
        lines
            .flat_map(|line| line.split(';'))
            .find_map(|pair| pair.trim().strip_prefix(&self.name)?.strip_prefix('='))
            .filter(|value| !value.is_empty())
    }

    pub(crate) fn set(&self, response: &mut Response, value: &str, seconds: u64) {
        let cookie = format!("{}={value}; Max-Age={seconds}; {}", self.name, self.attributes);
        if let Ok(cookie) = HeaderValue::from_str(&cookie) {
            response.headers_mut().append(header::SET_COOKIE, cookie);
        }
    }

    /// Tells the browser to delete it.
    pub(crate) fn forget(&self, response: &mut Response) {
        self.set(response, "", 0);
    }

    /// Begins a session and gives the browser its secret. The one that `request` has ends.
    pub(crate) async fn begin(
        &self,
        response: &mut Response,
        request: &HeaderMap,
        accounts: &Accounts,
        session: NewSession<'_>,
    ) -> Result<()> {
        let secret = accounts.begin_session(session).await?;
        if let Some(old) = self.read(request).filter(|old| Accounts::is_session(old)) {
            accounts.end_session(old).await?;
        }
        self.set(response, &secret, SESSION_LIVES.as_secs());
        Ok(())
    }
}

/// A path of this server to go back to; the start page for anything else.
pub(crate) fn own_path(back: &str) -> &str {
    let is_plain = |c: char| c.is_ascii_graphic() && c != '\\';
    let is_own = back.starts_with('/') && !back.starts_with("//") && back.chars().all(is_plain);
    if is_own { back } else { "/" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_own_paths_are_gone_back_to() {
        assert_eq!(own_path("/data/notes:x.md?passage=2"), "/data/notes:x.md?passage=2");
        for elsewhere in ["//evil.example", "https://evil.example", "/\\evil.example", "", "/a\r\nb: c"] {
            assert_eq!(own_path(elsewhere), "/", "{elsewhere}");
        }
    }

    #[test]
    fn https_cookies_have_a_host_prefix() {
        for (address, name) in [
            ("https://tribune.test", "__Host-tribune_session_80"),
            ("https://host.test/tribune", "__Secure-tribune_session_80"),
            ("http://localhost:80", "tribune_session_80"),
        ] {
            let cookie = Cookie::new("session", 80, &Links::new(address));
            assert_eq!(cookie.name, name);
            assert_eq!(cookie.attributes.contains("Secure"), address.starts_with("https"));
        }
    }
}
