//! Files that pages need, embedded in the binary.

use std::collections::HashMap;
use std::io::Write as _;
use std::sync::LazyLock;

use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use flate2::Compression;
use flate2::write::GzEncoder;
use http::{HeaderMap, HeaderName, StatusCode, header};
use sha2::{Digest, Sha256};

const CSS: &str = "text/css; charset=utf-8";
const JS: &str = "text/javascript; charset=utf-8";

macro_rules! file {
    ($name:literal) => {
        include_str!(concat!("../../assets/", $name))
    };
}

/// What is served, read once.
struct File {
    kind: &'static str,
    content: &'static str,
    compressed: Vec<u8>,
    tag: String,
}

impl File {
    fn new(kind: &'static str, content: &'static str) -> Self {
        Self {
            kind,
            content,
            compressed: compressed(content),
            tag: tag(content),
        }
    }
}

static FILES: LazyLock<HashMap<&'static str, File>> = LazyLock::new(|| {
    let mut files = HashMap::new();
    macro_rules! files {
        ($kind:ident: $($name:literal),* $(,)?) => {
            $(files.insert($name, File::new($kind, file!($name)));)*
        };
    }
    files! { CSS:
        "board.css", "chat.css", "design.css", "home.css", "reading.css", "tribune.css", "try.css",
    }
    files! { JS:
        "chat-api.js",
        "chat-composer.js",
        "chat-conversations.js",
        "chat-dom.js",
        "chat-log.js",
        "chat-markdown.js",
        "chat-panels.js",
        "chat-session.js",
        "chat-tasks.js",
        "chat-tools.js",
        "chat.js",
        "copy.js",
        "live.js",
        "patch.js",
        "reading.js",
        "search.js",
    }
    files
});

/// Browsers keep the files and ask whether they are still the same: modules of two versions must never meet.
pub(super) async fn asset(Path(name): Path<String>, asked: HeaderMap) -> Response {
    let Some(file) = FILES.get(name.as_str()) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let says = |name: HeaderName, word: &str| {
        let mut given = asked.get_all(name).iter().filter_map(|value| value.to_str().ok());
        given.any(|value| value.contains(word))
    };
    let headers = [
        (header::CONTENT_TYPE, file.kind),
        (header::CACHE_CONTROL, "public, no-cache"),
        (header::VARY, "Accept-Encoding"),
        (header::ETAG, &file.tag),
    ];
    if says(header::IF_NONE_MATCH, &file.tag) {
        (StatusCode::NOT_MODIFIED, headers).into_response()
    } else if says(header::ACCEPT_ENCODING, "gzip") {
        (
            headers,
            [(header::CONTENT_ENCODING, "gzip")],
            file.compressed.as_slice(),
        )
            .into_response()
    } else {
        (headers, file.content).into_response()
    }
}

fn compressed(content: &str) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    // Writing to memory cannot fail.
    let _ = gzip.write_all(content.as_bytes());
    gzip.finish().unwrap_or_default()
}

/// Weak: the same for the file and for what it is compressed to.
fn tag(content: &str) -> String {
    use std::fmt::Write;
    let digest = Sha256::digest(content.as_bytes());
    let mut tag = String::from("W/\"");
    for byte in digest.iter().take(12) {
        // Writing to a string cannot fail.
        let _ = write!(tag, "{byte:02x}");
    }
    tag.push('"');
    tag
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::{FILES, compressed, tag};

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
            let file = FILES
                .get(name.as_str())
                .unwrap_or_else(|| panic!("{name} is not served"));
            let content = file.content;
            assert_eq!(file.kind.starts_with("text/css"), name.ends_with(".css"), "{name}");
            for way in HTML_OF_TEXT {
                assert!(!content.contains(way), "{name} may not use {way}");
            }
            for import in content.split("from './").skip(1) {
                let imported = import.split('\'').next().unwrap_or_default();
                assert!(FILES.contains_key(imported), "{name} imports {imported}");
            }
        }
    }

    #[test]
    fn a_tag_is_that_of_the_content() {
        // sha256 of nothing begins e3b0c44298fc1c149afbf4c8.
        assert_eq!(tag(""), "W/\"e3b0c44298fc1c149afbf4c8\"");
        assert_ne!(tag("a"), tag("b"));
    }

    #[test]
    fn what_is_compressed_can_be_read_again() {
        let mut read = String::new();
        let compressed = compressed("Hear, hear! ".repeat(100).as_str());
        flate2::read::GzDecoder::new(compressed.as_slice())
            .read_to_string(&mut read)
            .expect("gzip");
        assert!(compressed.len() < 100 && read == "Hear, hear! ".repeat(100));
    }
}
