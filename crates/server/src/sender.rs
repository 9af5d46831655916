//! Which page sent a request. A cookie says who sent it; only the page says whether they meant to (CSRF).

use http::{HeaderMap, StatusCode, Uri, header};

use crate::response::{Refusal, problem};

pub(crate) const REFUSED: &str = "Changes are accepted only from pages of this server. Open the tool here and run it again; programs use the MCP address instead.";

/// Whether a page of this server sent a form. Allowed origins may call the server with their own token; a form of theirs
/// would act with the cookie of the reader.
pub(crate) fn is_own_page(headers: &HeaderMap, public_url: &str) -> bool {
    let site = text(headers, "sec-fetch-site");
    let origin = text(headers, header::ORIGIN.as_str());
    let site_is_own = site.is_none_or(|site| matches!(site, "same-origin" | "none"));
    let origin_is_own = origin.is_none_or(|origin| is_own_origin(origin, headers, public_url));
    (site.is_some() || origin.is_some()) && site_is_own && origin_is_own
}

/// Whether a page of another origin sent a request. Programs that are no browsers do not say what sent it.
pub(crate) fn is_foreign(headers: &HeaderMap, public_url: &str) -> bool {
    let is_said = headers.contains_key("sec-fetch-site") || headers.contains_key(header::ORIGIN);
    is_said && !is_own_page(headers, public_url)
}

/// Refuses what a page of another origin sends: it could sign a browser in as somebody else, or allow access.
pub(crate) fn refuse_foreign(headers: &HeaderMap, public_url: &str) -> Result<(), Refusal> {
    if is_foreign(headers, public_url) { Err(foreign()) } else { Ok(()) }
}

/// Refuses also requests that do not say which page sent them.
pub(crate) fn require_own_page(headers: &HeaderMap, public_url: &str) -> Result<(), Refusal> {
    if is_own_page(headers, public_url) { Ok(()) } else { Err(foreign()) }
}

fn foreign() -> Refusal {
    let message = "A page of another site sent this request, so nothing was done. Send it from a page of this server.";
    problem::with_status(StatusCode::FORBIDDEN, "forbidden", message).into()
}

/// Whether another site embeds this address, for example as an image.
pub(crate) fn is_embedded(headers: &HeaderMap) -> bool {
    let is_elsewhere = text(headers, "sec-fetch-site").is_some_and(|site| matches!(site, "cross-site" | "same-site"));
    let is_opened = text(headers, "sec-fetch-dest").is_none_or(|what| what == "document");
    is_elsewhere && !is_opened
}

/// Whether an origin is the addressed host or the public address.
fn is_own_origin(origin: &str, headers: &HeaderMap, public_url: &str) -> bool {
    let Some((scheme, authority)) = origin.split_once("://") else {
        return false;
    };
    let addressed = text(headers, header::HOST.as_str()).is_some_and(|host| host.eq_ignore_ascii_case(authority));
    let public = public_url.parse::<Uri>().ok();
    let is_public = public.is_some_and(|public| {
        public.scheme_str() == Some(scheme)
            && public.authority().is_some_and(|known| known.as_str().eq_ignore_ascii_case(authority))
    });
    addressed || is_public
}

fn text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    // An unreadable value is present and wrong.
    headers.get(name).map(|value| value.to_str().unwrap_or("?"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn headers(given: &[(&'static str, &'static str)]) -> HeaderMap {
        let given =
            given.iter().map(|(name, value)| (http::HeaderName::from_static(name), HeaderValue::from_static(value)));
        given.collect()
    }

    #[test]
    fn changes_come_from_own_pages() {
        let host = ("host", "127.0.0.1:8080");
        let own = ("origin", "http://127.0.0.1:8080");
        for (given, is_own) in [
            (vec![host, own], true),
            (vec![host, own, ("sec-fetch-site", "same-origin")], true),
            (vec![host, ("sec-fetch-site", "none")], true),
            (vec![host, ("origin", "https://tribune.example.org")], true),
            (vec![host], false),
            (vec![host, ("origin", "null")], false),
            (vec![host, ("origin", "http://tribune.example.org")], false),
            (vec![host, ("origin", "https://evil.example")], false),
            (vec![host, ("origin", "http://127.0.0.1:3000")], false),
            (vec![host, own, ("sec-fetch-site", "same-site")], false),
            (vec![host, own, ("sec-fetch-site", "cross-site")], false),
            (vec![host, ("origin", "https://evil.example"), ("sec-fetch-site", "none")], false),
        ] {
            assert_eq!(is_own_page(&headers(&given), "https://tribune.example.org/t"), is_own, "{given:?}");
        }
    }

    #[test]
    fn links_are_followed_and_images_are_not() {
        let link = [("sec-fetch-site", "cross-site"), ("sec-fetch-dest", "document")];
        let image = [("sec-fetch-site", "cross-site"), ("sec-fetch-dest", "image")];
        let own = [("sec-fetch-site", "same-origin"), ("sec-fetch-dest", "empty")];
        assert!(!is_embedded(&headers(&link)));
        assert!(is_embedded(&headers(&image)));
        assert!(!is_embedded(&headers(&own)));
        assert!(!is_embedded(&headers(&[])));
    }
}
