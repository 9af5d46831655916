//! Web pages: the main content as Markdown.

use dom_query::Document;
use dom_smoothie::{Config, Readability, TextMode};
use serde_json::{Map, Value};

use super::{Found, damaged};
use crate::extracted::{Extracted, Problem, Reason};

/// Elements without text for readers.
const SKIPPED: &[&str] = &["head", "script", "style", "template", "noscript", "svg", "nav", "form", "button", "iframe"];
/// What marks the main content, in the order in which it is looked for.
const MAIN: [&str; 6] = ["main", "[role=main]", "article", "#content", ".document", "#main"];
const MAX_ELEMENTS: usize = 500_000;

pub(super) fn read(html: &str) -> Found {
    let document = Document::from(html);
    let meta = |names: &[&str]| {
        names.iter().find_map(|name| {
            let found = document.select(&format!("meta[name='{name}'], meta[property='{name}']"));
            found.attr("content").map(|content| content.trim().to_owned()).filter(|content| !content.is_empty())
        })
    };
    let mut fields = Map::new();
    let mut add = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            fields.insert(name.to_owned(), Value::String(value));
        }
    };
    add("author", meta(&["author", "article:author", "dcterms.creator"]));
    add("date", meta(&["article:published_time", "date", "dcterms.date", "article:modified_time"]));
    add("description", meta(&["description"]));
    add("language", document.select("html").attr("lang").map(|lang| lang.to_string()));
    let title = title(&document, meta(&["og:title"]));
    let text = main(&document).or_else(|| readable(html)).map_or_else(|| self::text(html), Ok)?;
    Ok(Extracted { title, text, is_markdown: true, fields, ..Extracted::default() })
}

/// All of the text, as Markdown.
pub(super) fn text(html: &str) -> Result<String, Problem> {
    let text = Document::from(html).root().md(Some(SKIPPED)).to_string();
    match text.trim().is_empty() {
        true => Err(Problem::new(Reason::NoText, "")),
        false => Ok(text),
    }
}

/// The only heading of the first level, or else what the page says of itself.
fn title(document: &Document, announced: Option<String>) -> Option<String> {
    let headings = document.select("h1");
    let heading = (headings.length() == 1).then(|| headings.text().split_whitespace().collect::<Vec<_>>().join(" "));
    let heading = heading.map(|heading| heading.trim_end_matches(['¶', '#', '\u{f0c1}']).trim().to_owned());
    let title = || document.select("title").first().text().split_whitespace().collect::<Vec<_>>().join(" ");
    heading
        .filter(|heading| !heading.is_empty())
        .or(announced)
        .or_else(|| Some(title()).filter(|title| !title.is_empty()))
}

/// The element that the page itself calls its main content.
fn main(document: &Document) -> Option<String> {
    MAIN.iter().find_map(|selector| {
        let found = document.select(selector);
        let node = found.nodes().first().filter(|_| found.length() == 1)?;
        let text = node.md(Some(SKIPPED)).to_string();
        (!text.trim().is_empty()).then_some(text)
    })
}

/// What a reader's view of the page would show.
fn readable(html: &str) -> Option<String> {
    let config = Config { text_mode: TextMode::Markdown, max_elements_to_parse: MAX_ELEMENTS, ..Config::default() };
    let article = Readability::new(html, None, Some(config)).and_then(|mut page| page.parse()).map_err(damaged).ok()?;
    let text = article.text_content.to_string();
    (!text.trim().is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn main_content_is_read_without_its_surroundings() {
        let page = "<html lang=en><head><title>Pumps - Site</title><meta name=author content='Ann'><style>x{}</style></head>\
            <body><nav>Home</nav><main><h1>Pumps<a>¶</a></h1><p>Brass <b>parts</b>.</p><pre><code>run()</code></pre></main>\
            <footer>Imprint</footer></body></html>";
        let found = read(page).expect("a page");
        assert_eq!(found.title.as_deref(), Some("Pumps"));
        assert_eq!(found.fields["author"], "Ann");
        assert!(found.text.contains("Brass **parts**.") && found.text.contains("run()"), "{}", found.text);
        assert!(!found.text.contains("Home") && !found.text.contains("Imprint"), "{}", found.text);
    }
}
