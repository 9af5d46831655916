//! Document pages: readable, citable, and safe whatever the document contains.

use serde_json::json;

use crate::support::{TestServer, root};

const HTML: (&str, &str) = ("accept", "text/html");

/// Known injection attempts.
const HOSTILE: &str = r##"---
title: "</title><script>alert('title')</script>"
author: "<img src=x onerror=alert('author')>"
"<b>field</b>": "\"><svg onload=alert('field')>"
url: "javascript:alert('url')"
---
# A heading <script>alert(1)</script>

<script>alert(2)</script>
<SCRIPT SRC=//evil.example/x.js></SCRIPT>
<img src="https://evil.example/x.png" onerror="alert(3)">
<iframe srcdoc="<script>alert(4)</script>"></iframe>
<svg/onload=alert(5)><math><mi xlink:href="data:x,<script>alert(6)</script>">

In a line <a href="javascript:alert(7)" onmouseover=alert(8)>x</a> and <style>*{display:none}</style>.

[one](javascript:alert(9)) [two](JaVaScRiPt:alert(10)) [three](data:text/html;base64,PHNjcmlwdD4=)
[four](&#106;avascript:alert(11)) [five](java&Tab;script:alert(12)) [six](//evil.example) <javascript:alert(13)>
![seven](javascript:alert(14)) ![eight](https://evil.example/pixel.png) [nine]: javascript:alert(15)

[ten]

</p></article></main></body></html><!-- unclosed <![CDATA[ <script>alert(16)</script> ]]>

&lt;script&gt;alert(17)&lt;/script&gt; &#60;script&#62;alert(18)&#60;/script&#62; <<script>script>alert(19)</script>

<form action="https://evil.example"><input name=q><button formaction=javascript:alert(20)>go</button></form>
<base href="https://evil.example/"><meta http-equiv="refresh" content="0;url=https://evil.example">
<link rel=stylesheet href=https://evil.example/x.css><object data=x></object><embed src=x>

| a | <script>alert(21)</script> |
|---|---|
| `<script>alert(22)</script>` | [x](vbscript:alert(23)) |

```html" onclick="alert(24)
<script>alert(25)</script>
```

The walrus is at the end.

[ten]: javascript:alert(26) "a title"
"##;

/// The tags of a page, in order.
fn tags(page: &str) -> Vec<&str> {
    let after = page.split('<').skip(1);
    after.map(|rest| rest.split('>').next().unwrap_or_default()).collect()
}

fn between<'a>(page: &'a str, start: &str, end: &str) -> &'a str {
    let (_, rest) = page.split_once(start).unwrap_or_else(|| panic!("{start} in {page}"));
    rest.split(end).next().unwrap_or_default()
}

#[test]
fn document_markup_stays_text() {
    let plain = HOSTILE.split("---\n").nth(2).expect("a body");
    let row = json!({"id": "row", "title": "<script>alert('row')</script>", "text": plain}).to_string();
    let server =
        TestServer::builder().documents(&[("bad.md", HOSTILE), ("bad.txt", plain), ("bad.jsonl", &row)]).start();
    for id in ["bad.md", "bad.txt", "row"] {
        let page = server.get(&format!("/data/docs:{id}"), &[HTML]);
        assert_eq!(page.status, 200);
        assert!(page.body.contains("The walrus is at the end."), "{id}: all of it is shown");
        assert!(page.body.contains("&lt;script&gt;alert(2)&lt;/script&gt;"), "{id}: {}", page.body);
        for tag in tags(&page.body) {
            // Slashes are escaped.
            let tag = tag.to_ascii_lowercase().replace("&#x2f;", "/");
            let name = tag.trim_start_matches('/').split([' ', '\n', '/']).next().unwrap_or_default().to_owned();
            let harmless = [
                "!doctype", "html", "head", "meta", "title", "link", "body", "a", "header", "div", "svg", "rect",
                "path", "nav", "form", "label", "input", "button", "main", "article", "p", "h1", "h2", "h3", "span",
                "section", "aside", "ul", "li", "details", "summary", "footer", "dl", "dt", "dd", "code", "pre",
                "table", "thead", "tbody", "tr", "th", "td", "script", "br", "time", "small", "b", "em", "mark",
            ];
            assert!(harmless.contains(&name.as_str()), "{id}: <{tag}>");
            assert!(!tag.contains(" on") && !tag.contains(" style=") && !tag.contains(" srcdoc"), "{id}: <{tag}>");
            for address in ["href=\"", "src=\"", "action=\""].iter().flat_map(|name| tag.split(name).skip(1)) {
                let good = ["/", "#", "https://", "http://127.0.0.1", "data:image/svg+xml,"];
                assert!(good.iter().any(|good| address.starts_with(good)), "{id}: <{tag}>");
                assert!(!address.starts_with("//"), "{id}: <{tag}>");
            }
            if name == "script" && tag != "/script" {
                assert!(tag.starts_with("script type=\"module\" src=\"/assets/"), "{id}: <{tag}>");
            }
            if name == "link" {
                let ours = tag.contains("href=\"/assets/") || tag.contains("href=\"data:image/svg+xml");
                assert!(ours, "{id}: <{tag}>");
            }
        }
        assert_eq!(page.body.matches("</main>").count(), 1, "{id}");
        assert_eq!(page.body.matches("<h1").count(), 1, "{id}");
        let policy = page.header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'; script-src 'self';"), "{policy}");
        assert!(policy.contains("require-trusted-types-for 'script'") && !policy.contains("unsafe"), "{policy}");
    }
}

#[test]
fn speech_page_shows_author_reference_and_neighbours() {
    let folder = root().join("crates/tribune/demo/hansard").display().to_string();
    let table = format!(
        "[[sources]]\nname = \"hansard\"\nkind = \"speeches\"\ntitle = \"Sample speeches\"\npath = {folder:?}\nembedder = \"none\"\n"
    );
    let server = TestServer::builder().tables(&table).start();
    let path = "/data/hansard:d812de22-e8ae-47be-b246-fad5d33e86ea";
    let page = server.get(&format!("{path}?passage=1"), &[HTML]);
    let body = page.body.replace("&#x2f;", "/").replace("&#x27;", "'");
    for part in [
        "<p class=\"collection\">Sample speeches</p>",
        "<span class=\"who\">Rosalind Achterberg</span>",
        "Member for Banksmere · Labor · NSW · House of Representatives",
        "<time datetime=\"2024-02-13\">House Hansard (sample), 13 February 2024, p. 17</time>",
        "<h2>More by Rosalind Achterberg</h2>",
        "<h2>Similar documents</h2>",
        "Passage 2</a> of 4",
        "<dt>Parliament no</dt><dd>47</dd>",
        "<small>Next →</small><b>No bars between Yarrandoo and the border (sample speech)</b>",
    ] {
        assert!(body.contains(part), "{part}: {body}");
    }
    assert!(!body.contains("content_hash") && !body.contains("House of Reps<"), "{body}");
    // The mark covers exactly the passage, and the page has one anchor for it.
    assert_eq!(body.matches("id=\"passage\"").count(), 1);
    let cited = between(&body, "<mark id=\"passage\">", "</mark>");
    assert!(cited.starts_with("So Kirra works two night shifts"), "{cited}");
    assert!(body.contains("<a href=\"#passage\">Jump to the cited passage"), "{body}");
    // The citation has the address of this page.
    let cite = between(&body, "id=\"cite\">", "</p>");
    assert!(
        cite.starts_with("Rosalind Achterberg, ‘Child Care: Banksmere Growth Corridor (sample)’, House Hansard (sample), 13 February 2024, p. 17."),
        "{cite}"
    );
    assert!(cite.contains(&format!("{}{path}?passage=1#passage", server.url)), "{cite}");
    // Without a cited passage none is marked.
    let whole = server.get(path, &[HTML]).body;
    assert!(!whole.contains("<mark") && !whole.contains("Jump to") && !whole.contains("reading.js"), "{whole}");
    assert!(whole.len() < 30_000, "{} bytes", whole.len());
    // The next speech links back to this one.
    let next = between(&body, "<a class=\"next\" href=\"", "\"");
    let after = server.get(next, &[HTML]).body.replace("&#x2f;", "/");
    assert!(between(&after, "<a class=\"previous\" href=\"", "\"").ends_with(path), "{after}");
}

#[test]
fn note_page_renders_markdown_json_keeps_source() {
    let note = "---\ntitle: The pump\ndate: 2025-06-03\nauthor: Ivo Trench\n---\n# The pump\n\nIt *leaks*.\n\n## Parts\n\n1. seal\n2. hose\n";
    let server = TestServer::builder()
        .documents(&[
            ("a.md", "# Before\n\nFirst.\n"),
            ("b.md", note),
            ("c.md", "---\nauthor: Ivo Trench\n---\n# After\n\nLast.\n"),
            ("letter.txt", "A letter\n\nDear Sir,\nI am <b>.\n"),
        ])
        .start();
    let page = server.get("/data/docs:b.md", &[HTML]).body;
    let prose = between(&page, "<div class=\"prose\" dir=\"auto\">", "</div>").trim();
    assert_eq!(
        prose, "<p>It <em>leaks</em>.</p><h2 id=\"s-parts\">Parts</h2><ol><li>seal</li><li>hose</li></ol>",
        "the title is not said twice"
    );
    assert!(page.contains("Ivo Trench, ‘The pump’, ") && page.contains("3 June 2025."), "{page}");
    assert!(between(&page, "class=\"previous\"", "</a>").contains("<b>Before</b>"), "{page}");
    assert!(between(&page, "class=\"next\"", "</a>").contains("<b>After</b>"), "{page}");
    assert!(page.contains("<h2>More by Ivo Trench</h2>"), "{page}");
    let letter = server.get("/data/docs:letter.txt", &[HTML]).body;
    let prose = between(&letter, "<div class=\"prose\" dir=\"auto\">", "</div>").trim();
    assert_eq!(prose, "<p class=\"lines\">Dear Sir,\nI am &lt;b&gt;.</p>");

    let json = server.get("/data/docs:b.md", &[("accept", "application/json")]);
    let expected = json!({
        "id": "docs:b.md",
        "title": "The pump",
        "text": "# The pump\n\nIt *leaks*.\n\n## Parts\n\n1. seal\n2. hose\n",
        "url": format!("{}/data/docs:b.md", server.url),
        "metadata": {"source": "docs", "as_of": "2025-06-03T00:00:00Z", "date": "2025-06-03", "author": "Ivo Trench"},
    });
    assert_eq!(json.json(), expected);
    assert_eq!(json.body, server.get("/data/docs:b.md?format=json", &[HTML]).body);
}
