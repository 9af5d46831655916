//! Documents as elements: what readers see, and what is filtered.

#![allow(clippy::disallowed_methods, reason = "tests use the machine's clock")]

use std::ops::Range;

use proptest::prelude::*;
use serde_json::Value;
use tribune_page::Node;
use tribune_page::TextFormat;
use tribune_page::markdown::{markdown, markdown_marked};
use tribune_page::plain::{plain, plain_marked};

fn html(nodes: &[Node]) -> String {
    nodes.iter().map(Node::to_string).collect()
}

/// The elements and their texts, in order.
#[derive(Default)]
struct RenderedText {
    text: String,
    marked: String,
    elements: Vec<String>,
    addresses: Vec<String>,
    ids: Vec<String>,
    depth: usize,
}

impl RenderedText {
    fn new(nodes: &[Node]) -> Self {
        let mut seen = Self::default();
        for node in nodes {
            seen.walk(&serde_json::to_value(node).expect("JSON"), false, 1);
        }
        seen
    }

    fn walk(&mut self, node: &Value, is_marked: bool, depth: usize) {
        self.depth = self.depth.max(depth);
        match node {
            Value::String(text) => {
                self.text.push_str(text);
                if is_marked {
                    self.marked.push_str(text);
                }
            }
            Value::Array(parts) => {
                let name = parts[0].as_str().expect("a name");
                self.elements.push(name.to_owned());
                for (attribute, value) in parts[1].as_object().expect("attributes") {
                    let value = value.as_str().expect("text").to_owned();
                    match attribute.as_str() {
                        "href" => self.addresses.push(value),
                        "id" => self.ids.push(value),
                        "class" | "title" | "rel" | "tabindex" | "scope" | "start" | "value" | "aria-label" => {}
                        other => panic!("the attribute {other}"),
                    }
                }
                for child in &parts[2..] {
                    self.walk(child, is_marked || name == "mark", depth + 1);
                }
            }
            other => panic!("{other}"),
        }
    }

    fn is_harmless(&self) -> bool {
        const ALLOWED: [&str; 27] = [
            "p",
            "h2",
            "h3",
            "h4",
            "h5",
            "h6",
            "blockquote",
            "pre",
            "code",
            "ul",
            "ol",
            "li",
            "table",
            "thead",
            "tbody",
            "tr",
            "th",
            "td",
            "em",
            "strong",
            "del",
            "a",
            "br",
            "hr",
            "mark",
            "sup",
            "span",
        ];
        let is_allowed = |name: &String| ALLOWED.contains(&name.as_str()) || name == "div" || name == "section";
        let is_safe = |address: &String| {
            let address = address.to_ascii_lowercase();
            ["https://", "http://", "mailto:", "#s-", "#note-"].iter().any(|good| address.starts_with(good))
        };
        self.elements.iter().all(is_allowed) && self.addresses.iter().all(is_safe)
    }
}

fn visible(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

#[test]
fn markdown_becomes_elements() {
    let text = "# One\n\nSome *soft* and **loud** `code` ~~gone~~ [out](https://example.org).\\\nNew line & more.\n\n## Two\n\n1. a\n2. b\n\n> said\n\n```rust\nlet x = \"<b>\";\n```\n\n---\n";
    assert_eq!(
        html(&markdown(text)),
        "<h2 id=\"s-one\">One</h2><p>Some <em>soft</em> and <strong>loud</strong> <code>code</code> <del>gone</del> \
         <a href=\"https://example.org\" rel=\"noreferrer noopener nofollow\">out</a>.<br>New line &amp; more.</p>\
         <h3 id=\"s-two\">Two</h3><ol><li>a</li><li>b</li></ol><blockquote><p>said</p></blockquote>\
         <pre tabindex=\"0\"><code>let x = &quot;&lt;b&gt;&quot;;\n</code></pre><hr>"
    );
}

#[test]
fn tables_lists_and_notes_keep_their_shape() {
    assert_eq!(
        html(&markdown("| a | b |\n|---|--:|\n| 1 | 2 |\n")),
        "<div class=\"scroll\" tabindex=\"0\"><table><thead><tr><th scope=\"col\">a</th><th scope=\"col\" class=\"number\">b</th></tr></thead>\
         <tbody><tr><td>1</td><td class=\"number\">2</td></tr></tbody></table></div>"
    );
    assert_eq!(
        html(&markdown("3. c\n4. d\n\n- [x] done\n- [ ] open\n")),
        "<ol start=\"3\"><li>c</li><li>d</li></ol><ul><li class=\"task\">☑ done</li><li class=\"task\">☐ open</li></ul>"
    );
    assert_eq!(
        html(&markdown("Said[^a] twice[^a].\n\n[^a]: So it is.\n")),
        "<p>Said<sup><a href=\"#note-1\" id=\"note-1-from\">1</a></sup> twice<sup><a href=\"#note-1\">1</a></sup>.</p>\
         <section class=\"footnotes\" aria-label=\"Notes\"><ol><li id=\"note-1\" value=\"1\"><p>So it is.</p>\
         <a href=\"#note-1-from\" aria-label=\"Back to the text\">↩</a></li></ol></section>"
    );
}

#[test]
fn headings_are_below_page_heading_with_anchors() {
    assert_eq!(
        html(&markdown("### Low\n\n#### Lower\n\n### Low\n\nUnder\n-----\n")),
        "<h3 id=\"s-low\">Low</h3><h4 id=\"s-lower\">Lower</h4><h3 id=\"s-low-1\">Low</h3><h2 id=\"s-under\">Under</h2>"
    );
    assert_eq!(html(&markdown("# <passage>")), "<h2 id=\"s-passage\">&lt;passage&gt;</h2>");
}

#[test]
fn links_and_images_are_safe() {
    assert_eq!(
        html(&markdown("[x](javascript:alert(1)) [y](other.md) [z](#where-it-is) <ann@example.org>")),
        "<p><span class=\"unlinked\" title=\"javascript:alert(1)\">x</span> <span class=\"unlinked\" title=\"other.md\">y</span> \
         <a href=\"#s-where-it-is\">z</a> <a href=\"mailto:ann@example.org\" rel=\"noreferrer noopener nofollow\">ann@example.org</a></p>"
    );
    assert_eq!(
        html(&markdown("![A cat](https://example.org/cat.png)")),
        "<p><span class=\"picture\">Picture: A cat <a href=\"https://example.org/cat.png\" rel=\"noreferrer noopener nofollow\">https://example.org/cat.png</a></span></p>"
    );
    // Links do not nest.
    let badge = RenderedText::new(&markdown("[![build](https://a.example/b.svg)](https://b.example)"));
    assert_eq!(badge.addresses, ["https://b.example"]);
}

#[test]
fn html_in_a_document_is_text() {
    let text = "<script>alert(1)</script>\n\nIn <b onclick=\"x()\">line</b> &lt;i&gt;\n\n<!-- gone? -->\n\n<img src=x onerror=alert(1)>\n\n</main></body>\n";
    let nodes = markdown(text);
    let seen = RenderedText::new(&nodes);
    assert!(seen.is_harmless());
    assert!(seen.elements.iter().all(|name| name == "p"), "{:?}", seen.elements);
    assert_eq!(visible(&seen.text), visible(&text.replace("&lt;i&gt;", "<i>")));
    assert!(html(&nodes).starts_with("<p class=\"source\">&lt;script&gt;alert(1)&lt;/script&gt;"));
}

#[test]
fn cited_text_and_blocks_are_marked() {
    let text = "First *part* here.\n\nSecond one.\n\nThird one.\n";
    let start = text.find("part").expect("there");
    let end = text.find("Third").expect("there") + 5;
    assert_eq!(
        html(&markdown_marked(text, Some(start..end))),
        "<p>First <em><mark id=\"passage\">part</mark></em><mark> here.</mark></p>\
         <p class=\"cited\"><mark>Second one.</mark></p><p><mark>Third</mark> one.</p>"
    );
    // Entities, escapes and code look different in the source.
    let cited = |text: &str, part: &str| {
        let start = text.find(part).expect("there");
        RenderedText::new(&markdown_marked(text, Some(start..start + part.len()))).marked
    };
    assert_eq!(cited("a &amp; b", "&amp; b"), "& b");
    assert_eq!(cited("a &amp; b", "mp;"), "&", "half of it is all of it");
    assert_eq!(cited("a \\* b", "\\* b"), "* b");
    assert_eq!(cited("a `cod` b", "`cod"), "cod");
    assert_eq!(cited("one\ntwo", "one\ntwo"), "one\ntwo");
}

#[test]
fn plain_text_keeps_lines_and_paragraphs() {
    let text = "Dear Sir,\r\n  two spaces\r\n\r\n\r\nYours <b>\n";
    assert_eq!(
        html(&plain(text)),
        "<p class=\"lines\">Dear Sir,\n  two spaces</p><p class=\"lines\">Yours &lt;b&gt;</p>"
    );
    assert_eq!(
        html(&plain_marked(text, Some(5..text.len()))),
        "<p class=\"lines\">Dear <mark id=\"passage\">Sir,\n  two spaces</mark></p>\
         <p class=\"lines cited\"><mark>Yours &lt;b&gt;</mark></p>"
    );
}

#[test]
fn repeated_title_is_omitted() {
    let read = |text: &str, format, cited| html(&tribune_page::reading::text(text, format, "The title", cited));
    assert_eq!(read("# The title #\n\nText.", TextFormat::Markdown, None), "<p>Text.</p>");
    assert_eq!(
        read("# The title\n\nText.", TextFormat::Markdown, Some(0..17)),
        "<p><mark id=\"passage\">Text</mark>.</p>"
    );
    assert_eq!(read("# Another\n", TextFormat::Markdown, None), "<h2 id=\"s-another\">Another</h2>");
    assert_eq!(read("The title\n\nText.", TextFormat::Plain, None), "<p class=\"lines\">Text.</p>");
    assert_eq!(read("The title\nText.", TextFormat::Plain, None), "<p class=\"lines\">The title\nText.</p>");
    assert_eq!(read("The title\n\n", TextFormat::Plain, None), "<p class=\"lines\">The title</p>");
}

/// Depth and size are bounded, and no text gets lost.
#[test]
fn hostile_shapes_stay_small_and_are_made_in_time() {
    let shapes = [
        "> ".repeat(50_000) + "deep",
        "- ".repeat(20_000) + "deep",
        "*a **b ".repeat(20_000) + "deep",
        "[".repeat(50_000) + "deep",
        "![".repeat(20_000) + "deep",
        "a ".to_owned() + &"`".repeat(50_001) + "deep",
        format!("{}\n{}\n{}deep", "|a".repeat(2_000), "|-".repeat(2_000), "|\n".repeat(2_000)),
        "<".repeat(50_000) + "deep",
        "a\n\n".repeat(100_000) + "deep",
        (0..5_000).map(|n| format!("[^{n}]: x\n\n")).collect::<String>() + &"[^1]".repeat(5_000) + "deep",
    ];
    for shape in shapes {
        let nodes = markdown_marked(&shape, Some(shape.len() - 4..shape.len()));
        let seen = RenderedText::new(&nodes);
        let begins: String = shape.chars().take(12).collect();
        assert!(seen.depth <= 60, "{begins}: {}", seen.depth);
        assert!(seen.is_harmless(), "{begins}");
        assert!(seen.text.contains("deep"), "{begins}");
        assert_eq!(seen.marked, "deep", "{begins}");
    }
}

#[test]
fn oversized_text_is_shown_unformatted() {
    let text = "*a* b\n\n".repeat(60_000);
    let seen = RenderedText::new(&markdown_marked(&text, Some(0..text.len())));
    let formatted = seen.elements.iter().filter(|name| *name == "em").count();
    assert!(formatted > 20_000 && formatted < 60_000, "{formatted}");
    // Every paragraph appears once, before and after the limit.
    assert_eq!(seen.text.matches('a').count(), 60_000);
    assert_eq!(seen.text.matches('b').count(), 60_000);
    assert_eq!(seen.marked, seen.text);
    assert_eq!(seen.ids, ["passage"]);
}

/// Text with Markdown and HTML syntax.
fn markup() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        4 => "[a-zé漢 ]{0,8}",
        2 => "[\\*_`#>|~\\[\\]()!<&;:\\\\^+=-]{1,3}",
        1 => Just("\n".to_owned()),
        1 => Just("\n\n".to_owned()),
        1 => Just("</p><script>alert(1)</script>".to_owned()),
        1 => Just("[x](javascript:alert(1))".to_owned()),
        1 => Just("![x](data:text/html,y)".to_owned()),
        1 => Just("<https://example.org>".to_owned()),
        1 => Just("|a|b|\n|-|-|\n|c|d|\n".to_owned()),
        1 => Just("&lt;&#0;&copy;".to_owned()),
        1 => any::<String>(),
    ];
    prop::collection::vec(part, 0..30).prop_map(|parts| parts.concat())
}

fn range() -> impl Strategy<Value = Range<usize>> {
    (0usize..300, 0usize..300).prop_map(|(a, b)| a..b)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn only_safe_elements_are_produced(text in markup(), cited in range()) {
        let nodes = markdown_marked(&text, Some(cited));
        let seen = RenderedText::new(&nodes);
        prop_assert!(seen.is_harmless(), "{:?} {:?}", seen.elements, seen.addresses);
        prop_assert!(seen.ids.iter().filter(|id| *id == "passage").count() <= 1);
        prop_assert_eq!(html(&nodes).contains("<script"), false);
    }

    #[test]
    fn marking_changes_no_text(text in markup(), cited in range()) {
        let (without, with) = (RenderedText::new(&markdown(&text)), RenderedText::new(&markdown_marked(&text, Some(cited.clone()))));
        prop_assert_eq!(&without.text, &with.text);
        let (without, with) = (RenderedText::new(&plain(&text)), RenderedText::new(&plain_marked(&text, Some(cited))));
        prop_assert_eq!(&without.text, &with.text);
    }

    #[test]
    fn plain_text_is_complete_and_marked(text in any::<String>(), cited in range()) {
        let seen = RenderedText::new(&plain_marked(&text, Some(cited.clone())));
        prop_assert_eq!(visible(&seen.text), visible(&text));
        let start = text.floor_char_boundary(cited.start);
        let end = text.ceil_char_boundary(cited.end.min(text.len()));
        let part = text.get(start..end).unwrap_or_default();
        prop_assert_eq!(visible(&seen.marked), visible(part));
    }

    #[test]
    fn markdown_keeps_all_words_in_order(words in prop::collection::vec("[a-zéß漢]{1,9}", 1..40), cited in range()) {
        let text = words.join(" ");
        let seen = RenderedText::new(&markdown_marked(&text, Some(cited)));
        prop_assert_eq!(seen.text, text);
    }
}
