//! The entries of a feed, in any of the three formats, as plain text.

use feed_rs::model::{Entry as FeedEntry, Link};
use feed_rs::parser;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tribune_core::JsonObject;

/// Longer texts are truncated.
const MAX_TEXT_BYTES: usize = 1024 * 1024;
/// Wide enough that paragraphs stay on one line.
const LINE_CHARS: usize = 10_000;

/// One entry as stored and indexed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// A hash of the feed's URL and the entry's own id, so it never changes.
    pub id: String,
    pub title: String,
    pub text: String,
    /// The entry's own page.
    #[serde(default)]
    pub url: Option<String>,
    /// `feed`: the title of the feed, or its URL. As far as they are known, `date`: the day of publication, or else of
    /// the last update; `author`; `published`: the same time as `date`, to the second; `tags`.
    #[serde(flatten)]
    pub fields: JsonObject,
}

/// Parses RSS, Atom or JSON Feed. Blocks; not for async threads.
pub fn parse(url: &str, bytes: &[u8]) -> Result<Vec<Entry>, String> {
    // An entry without an id is identified by its link, which does not change.
    let id = |links: &[Link], title: &Option<feed_rs::model::Text>, _: Option<&str>| {
        let link = links.first().map(|link| link.href.clone());
        link.or_else(|| title.as_ref().map(|title| title.content.clone())).unwrap_or_default()
    };
    let parser = parser::Builder::new().base_uri(Some(url)).id_generator(id).build();
    let feed = parser.parse(bytes).map_err(|error| format!("neither RSS, Atom nor JSON Feed: {error}"))?;
    let title = feed.title.map(|title| plain(&title.content)).filter(|title| !title.is_empty());
    let title = title.unwrap_or_else(|| url.to_owned());
    let entries = feed.entries.into_iter();
    Ok(entries.filter_map(|found| entry(url, &title, found)).collect())
}

/// `None` for an entry without title and text.
fn entry(url: &str, feed: &str, found: FeedEntry) -> Option<Entry> {
    let body = found.content.and_then(|content| content.body);
    let body = body.or_else(|| found.summary.map(|summary| summary.content));
    let mut text = plain(&body.unwrap_or_default());
    let title = found.title.map(|title| plain(&title.content)).unwrap_or_default();
    let title = match title.is_empty() {
        true => text.lines().next().unwrap_or_default().chars().take(100).collect(),
        false => title,
    };
    if title.is_empty() {
        return None;
    }
    if text.is_empty() {
        text.clone_from(&title);
    }
    text.truncate(text.floor_char_boundary(MAX_TEXT_BYTES));
    let time = found.published.or(found.updated);
    let page = found.links.iter().find(|link| link.rel.as_deref().is_none_or(|rel| rel == "alternate"));
    let page = page.or(found.links.first()).map(|link| link.href.clone());
    let authors: Vec<&str> = found.authors.iter().filter_map(|author| author.name.as_deref()).collect();
    let tags: Vec<String> = found.categories.into_iter().map(|category| category.term).collect();
    let fields = [
        ("feed", Some(feed.into())),
        ("date", time.map(|time| time.format("%Y-%m-%d").to_string().into())),
        ("author", (!authors.is_empty()).then(|| authors.join(", ").into())),
        ("published", time.map(|time| time.format("%Y-%m-%dT%H:%M:%SZ").to_string().into())),
        ("tags", (!tags.is_empty()).then(|| tags.into())),
    ];
    Some(Entry {
        id: short_hash(&[url, &found.id]),
        title,
        text,
        url: page.filter(|page| page.starts_with("https://") || page.starts_with("http://")),
        fields: fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect(),
    })
}

/// Converts HTML to text; other text stays as it is.
fn plain(text: &str) -> String {
    let is_html = (text.contains('<') && text.contains('>')) || (text.contains('&') && text.contains(';'));
    if !is_html {
        return text.trim().to_owned();
    }
    let config = html2text::config::plain_no_decorate().no_table_borders().allow_width_overflow();
    let converted = config.string_from_read(text.as_bytes(), LINE_CHARS);
    converted.unwrap_or_else(|_| text.to_owned()).trim().to_owned()
}

/// 20 hexadecimal digits of SHA-256.
pub fn short_hash(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    hash.finalize().iter().take(10).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_becomes_text() {
        assert_eq!(
            plain("<p>Ferry <b>times</b> &amp; fares</p><ul><li>Day</li><li>Night</li></ul><script>x()</script>"),
            "Ferry times & fares\n* Day\n* Night"
        );
        assert_eq!(plain(" plain\n\ntext 1 < 2 "), "plain\n\ntext 1 < 2");
    }

    #[test]
    fn entry_without_id_is_identified_by_link() {
        let feed = |title: &str| {
            format!(
                "<rss version=\"2.0\"><channel><title>T</title><link>https://example.org</link><description>d</description>\
                 <item><title>{title}</title><link>https://example.org/a</link></item></channel></rss>"
            )
        };
        let id = |title: &str| parse("https://example.org/feed", feed(title).as_bytes()).expect("a feed")[0].id.clone();
        assert_eq!(id("Before"), id("After"));
    }

    #[test]
    fn same_id_in_two_feeds_is_two_entries() {
        assert_ne!(short_hash(&["https://a.example/feed", "1"]), short_hash(&["https://b.example/feed", "1"]));
        assert_ne!(short_hash(&["ab", "c"]), short_hash(&["a", "bc"]));
    }

    #[test]
    fn other_text_is_refused() {
        let error = parse("https://example.org", b"<html><body>404</body></html>").expect_err("no feed");
        assert!(error.contains("neither RSS, Atom nor JSON Feed"), "{error}");
    }
}
