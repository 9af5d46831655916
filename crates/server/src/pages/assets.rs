//! Style sheets and scripts, embedded in the binary.

use std::collections::HashMap;
use std::io::Write as _;
use std::sync::{Arc, LazyLock};

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use flate2::Compression;
use flate2::write::GzEncoder;
use http::{HeaderMap, HeaderName, StatusCode, header};
use sha2::{Digest, Sha256};

use crate::service::Service;

/// A file with its compressed form and tag, computed once.
struct File {
    kind: &'static str,
    content: &'static str,
    compressed: Vec<u8>,
    tag: String,
}

impl File {
    fn new(name: &str, content: &'static str) -> Self {
        let is_style = std::path::Path::new(name).extension().is_some_and(|end| end == "css");
        Self {
            kind: if is_style { "text/css; charset=utf-8" } else { "text/javascript; charset=utf-8" },
            content,
            compressed: compressed(content),
            tag: tag(content),
        }
    }
}

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../../assets/", $name)))),*]
    };
}

static FILES: LazyLock<HashMap<&'static str, File>> = LazyLock::new(|| {
    let files = files![
        "board.css",
        "chat-api.js",
        "chat-composer.js",
        "chat-conversations.js",
        "chat-dom.js",
        "chat-log.js",
        "chat-markdown.js",
        "chat-panels.js",
        "chat-session.js",
        "chat-tools.js",
        "chat.css",
        "chat.js",
        "copy.js",
        "design.css",
        "home.css",
        "live.js",
        "patch.js",
        "reading.css",
        "reading.js",
        "search.js",
        "tribune.css",
        "try.css",
    ];
    files.map(|(name, content)| (name, File::new(name, content))).into()
});

pub(crate) async fn asset(
    State(service): State<Arc<Service>>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Response {
    if let Some(file) = FILES.get(name.as_str()) {
        return send(file, &headers);
    }
    match panel_file(&service, &name) {
        Some(file) => send(&file, &headers),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

/// `panel-{source}.js` and `.css`: small, so they are compressed when they are asked for.
fn panel_file(service: &Service, name: &str) -> Option<File> {
    let (source, end) = name.strip_prefix("panel-")?.rsplit_once('.')?;
    let panel = service.sources().iter().find(|known| known.name() == source)?.panel()?;
    let content = match end {
        "js" => panel.script,
        "css" => panel.style,
        _ => return None,
    };
    Some(File::new(name, content))
}

/// Browsers revalidate on every page: modules of two versions must not meet.
fn send(file: &File, headers: &HeaderMap) -> Response {
    let says = |name: HeaderName, word: &str| {
        let mut given = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
        given.any(|value| value.contains(word))
    };
    let sent = [
        (header::CONTENT_TYPE, file.kind),
        (header::CACHE_CONTROL, "public, no-cache"),
        (header::VARY, "Accept-Encoding"),
        (header::ETAG, &file.tag),
    ];
    if says(header::IF_NONE_MATCH, &file.tag) {
        (StatusCode::NOT_MODIFIED, sent).into_response()
    } else if says(header::ACCEPT_ENCODING, "gzip") {
        (sent, [(header::CONTENT_ENCODING, "gzip")], file.compressed.clone()).into_response()
    } else {
        (sent, file.content).into_response()
    }
}

fn compressed(content: &str) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    // Writing to memory cannot fail.
    let _ = gzip.write_all(content.as_bytes());
    gzip.finish().unwrap_or_default()
}

/// Weak: the same for the file and its compressed form.
fn tag(content: &str) -> String {
    let digest = Sha256::digest(content.as_bytes());
    let hex: String = digest.iter().take(12).map(|byte| format!("{byte:02x}")).collect();
    format!("W/\"{hex}\"")
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::{FILES, compressed, tag};

    /// APIs that turn text into HTML or code: an answer may quote anything.
    const UNSAFE_APIS: &[&str] = &["innerHTML", "outerHTML", "insertAdjacent", "document.write", "DOMParser", "eval("];

    #[test]
    fn every_asset_is_served_complete_and_safe() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/assets");
        for entry in std::fs::read_dir(folder).expect("the assets") {
            let name = entry.expect("an entry").file_name().into_string().expect("a name");
            let file = FILES.get(name.as_str()).unwrap_or_else(|| panic!("{name} is not served"));
            let content = file.content;
            assert_eq!(file.kind.starts_with("text/css"), name.ends_with(".css"), "{name}");
            for way in UNSAFE_APIS {
                assert!(!content.contains(way), "{name} may not use {way}");
            }
            for import in content.split("from './").skip(1) {
                let imported = import.split('\'').next().unwrap_or_default();
                assert!(FILES.contains_key(imported), "{name} imports {imported}");
            }
        }
    }

    #[test]
    fn tag_depends_on_content() {
        // sha256 of nothing begins e3b0c44298fc1c149afbf4c8.
        assert_eq!(tag(""), "W/\"e3b0c44298fc1c149afbf4c8\"");
        assert_ne!(tag("a"), tag("b"));
    }

    #[test]
    fn compression_round_trips() {
        let mut read = String::new();
        let compressed = compressed("Hear, hear! ".repeat(100).as_str());
        flate2::read::GzDecoder::new(compressed.as_slice()).read_to_string(&mut read).expect("gzip");
        assert!(compressed.len() < 100 && read == "Hear, hear! ".repeat(100));
    }
}
