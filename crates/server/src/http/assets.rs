//! Files that pages need, embedded in the binary.

use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode, header};
use sha2::{Digest, Sha256};

const CSS: &str = "text/css; charset=utf-8";
const JS: &str = "text/javascript; charset=utf-8";

macro_rules! file {
    ($name:literal) => {
        include_str!(concat!("../../assets/", $name))
    };
}

fn lookup(name: &str) -> Option<(&'static str, &'static str)> {
    Some(match name {
        "design.css" => (CSS, file!("design.css")),
        "tribune.css" => (CSS, file!("tribune.css")),
        "home.css" => (CSS, file!("home.css")),
        "live.js" => (JS, file!("live.js")),
        "patch.js" => (JS, file!("patch.js")),
        "search.js" => (JS, file!("search.js")),
        "board.css" => (CSS, file!("board.css")),
        "try.css" => (CSS, file!("try.css")),
        "copy.js" => (JS, file!("copy.js")),
        "reading.css" => (CSS, file!("reading.css")),
        "reading.js" => (JS, file!("reading.js")),
        "chat.css" => (CSS, file!("chat.css")),
        "chat.js" => (JS, file!("chat.js")),
        "chat-api.js" => (JS, file!("chat-api.js")),
        "chat-composer.js" => (JS, file!("chat-composer.js")),
        "chat-conversations.js" => (JS, file!("chat-conversations.js")),
        "chat-dom.js" => (JS, file!("chat-dom.js")),
        "chat-log.js" => (JS, file!("chat-log.js")),
        "chat-markdown.js" => (JS, file!("chat-markdown.js")),
        "chat-panels.js" => (JS, file!("chat-panels.js")),
        "chat-session.js" => (JS, file!("chat-session.js")),
        "chat-tasks.js" => (JS, file!("chat-tasks.js")),
        "chat-tools.js" => (JS, file!("chat-tools.js")),
        _ => return None,
    })
}

/// Browsers keep the files and ask whether they are still the same: modules of two versions must never meet.
pub(super) async fn asset(Path(name): Path<String>, asked: HeaderMap) -> Response {
    let Some((kind, content)) = lookup(&name) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let tag = tag(content);
    let same = asked
        .get(header::IF_NONE_MATCH)
        .and_then(|tags| tags.to_str().ok())
        .is_some_and(|tags| tags.contains(&tag));
    let headers = [
        (header::CONTENT_TYPE, kind.to_owned()),
        (header::CACHE_CONTROL, "public, no-cache".to_owned()),
        (header::ETAG, tag),
    ];
    if same {
        (StatusCode::NOT_MODIFIED, headers).into_response()
    } else {
        (headers, content).into_response()
    }
}

fn tag(content: &str) -> String {
    use std::fmt::Write;
    let digest = Sha256::digest(content.as_bytes());
    let mut tag = String::from("\"");
    for byte in digest.iter().take(12) {
        // Writing to a string cannot fail.
        let _ = write!(tag, "{byte:02x}");
    }
    tag.push('"');
    tag
}

#[cfg(test)]
mod tests {
    use super::{lookup, tag};

    /// Ways to make HTML or code of text: an answer may quote anything.
    const HTML_OF_TEXT: &[&str] = &[
        "innerHTML",
        "outerHTML",
        "insertAdjacent",
        "document.write",
        "DOMParser",
        "eval(",
    ];

    #[test]
    fn every_file_is_served_finds_what_it_imports_and_makes_no_html_of_text() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/assets");
        for entry in std::fs::read_dir(folder).expect("the assets") {
            let name = entry.expect("an entry").file_name().into_string().expect("a name");
            let (kind, content) = lookup(&name).unwrap_or_else(|| panic!("{name} is not served"));
            assert_eq!(kind.starts_with("text/css"), name.ends_with(".css"), "{name}");
            for way in HTML_OF_TEXT {
                assert!(!content.contains(way), "{name} may not use {way}");
            }
            for import in content.split("from './").skip(1) {
                let imported = import.split('\'').next().unwrap_or_default();
                assert!(lookup(imported).is_some(), "{name} imports {imported}");
            }
        }
    }

    #[test]
    fn a_tag_is_that_of_the_content() {
        // sha256 of nothing begins e3b0c44298fc1c149afbf4c8.
        assert_eq!(tag(""), "\"e3b0c44298fc1c149afbf4c8\"");
        assert_ne!(tag("a"), tag("b"));
    }
}
