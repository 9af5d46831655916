//! reStructuredText, AsciiDoc and Org as Markdown: headings, code blocks and links; other markup that readers would
//! stumble over is left out.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value};

use crate::extracted::Extracted;

/// Adds a line, with one blank line at most before it.
fn push_line(text: &mut String, line: &str) {
    if line.trim().is_empty() && (text.is_empty() || text.ends_with("\n\n")) {
        return;
    }
    text.push_str(line.trim_end());
    text.push('\n');
}

fn heading(text: &mut String, level: usize, title: &str) {
    push_line(text, "");
    push_line(text, &format!("{} {}", "#".repeat(level.clamp(1, 6)), title.trim()));
    push_line(text, "");
}

fn markdown(text: String, fields: Map<String, Value>) -> Extracted {
    Extracted { text, is_markdown: true, fields, ..Extracted::default() }
}

macro_rules! pattern {
    ($name:ident, $pattern:literal) => {
        static $name: LazyLock<Regex> = LazyLock::new(|| Regex::new($pattern).expect("a pattern"));
    };
}

pattern!(RST_ROLE, r":[a-zA-Z][\w:.+-]*:`([^`<]*?)\s*(?:<[^>`]*>)?`");
pattern!(RST_LINK, r"`([^`<]+?)\s*<([^>`\s]+)>`__?");
pattern!(RST_LITERAL, r"``([^`]+)``");
pattern!(RST_REFERENCE, r"`([^`]+)`__?");
pattern!(RST_DIRECTIVE, r"^\s*\.\. +([\w:.+-]+)::\s*(.*)$");
pattern!(RST_OPTION, r"^\s+:[\w -]+:(\s.*)?$");

/// Directives whose contents are shown as code.
const RST_CODE: [&str; 6] = ["code", "code-block", "sourcecode", "highlight", "parsed-literal", "ipython"];
/// Directives that are about the page, not on it.
const RST_HIDDEN: [&str; 9] =
    ["toctree", "index", "image", "figure", "include", "literalinclude", "currentmodule", "meta", "only"];

/// The level of a heading is the order in which its line was first used.
pub(super) fn rst(source: &str) -> Extracted {
    let lines: Vec<&str> = source.lines().collect();
    let mut text = String::new();
    let mut styles: Vec<(char, bool)> = Vec::new();
    // The indentation of a directive whose contents are hidden or code, and whether they are code.
    let mut inside: Option<(usize, bool)> = None;
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        at += 1;
        let indent = line.len() - line.trim_start().len();
        if let Some((outer, is_code)) = inside {
            if line.trim().is_empty() || indent > outer {
                if is_code && !RST_OPTION.is_match(line) {
                    push_line(&mut text, line);
                }
                continue;
            }
            if is_code {
                push_line(&mut text, "```");
                push_line(&mut text, "");
            }
            inside = None;
        }
        let next = lines.get(at).copied().unwrap_or_default();
        if let Some(ruler) = ruler(line)
            && let Some(below) = lines.get(at + 1)
            && self::ruler(below) == Some(ruler)
            && !next.trim().is_empty()
        {
            heading(&mut text, level(&mut styles, (ruler, true)), next);
            at += 2;
        } else if let Some(ruler) = ruler(next)
            && !line.trim().is_empty()
            && indent == 0
            && next.trim_end().chars().count() + 1 >= line.trim_end().chars().count()
        {
            heading(&mut text, level(&mut styles, (ruler, false)), &rst_inline(line));
            at += 1;
        } else if let Some(directive) = RST_DIRECTIVE.captures(line) {
            let (name, rest) = (&directive[1], directive[2].trim());
            if RST_CODE.contains(&name) {
                push_line(&mut text, "");
                push_line(&mut text, &format!("```{rest}"));
                inside = Some((indent, true));
            } else if RST_HIDDEN.contains(&name) {
                inside = Some((indent, false));
            } else {
                // Notes, warnings, functions: their name and contents are text.
                push_line(&mut text, &format!("**{}** {}", name.rsplit(':').next().unwrap_or(name), rst_inline(rest)));
            }
        } else if let Some(note) = line.trim_start().strip_prefix(".. [") {
            // A footnote or a citation: what follows is its text.
            push_line(&mut text, &rst_inline(note.split_once(']').map_or(note, |(_, note)| note).trim()));
        } else if line.trim_start().starts_with(".. ") || line.trim() == ".." {
            // A comment, a target or a substitution.
            inside = Some((indent, false));
        } else if RST_OPTION.is_match(line) && text.ends_with("\n") && indent > 0 {
            // An option of a directive.
        } else if line.trim_end().ends_with("::") {
            let shown = line.trim_end().trim_end_matches(':');
            push_line(
                &mut text,
                &if shown.trim().is_empty() { String::new() } else { format!("{}:", rst_inline(shown)) },
            );
            push_line(&mut text, "");
            push_line(&mut text, "```");
            inside = Some((indent, true));
        } else {
            push_line(&mut text, &rst_inline(line));
        }
    }
    if let Some((_, true)) = inside {
        push_line(&mut text, "```");
    }
    markdown(text, Map::new())
}

/// The character of a line that is nothing but one punctuation mark.
fn ruler(line: &str) -> Option<char> {
    let line = line.trim_end();
    let first = line.chars().next().filter(char::is_ascii_punctuation)?;
    (line.len() >= 3 && line.chars().all(|c| c == first)).then_some(first)
}

fn level(styles: &mut Vec<(char, bool)>, style: (char, bool)) -> usize {
    if let Some(known) = styles.iter().position(|known| *known == style) {
        return known + 1;
    }
    styles.push(style);
    styles.len()
}

fn rst_inline(line: &str) -> String {
    let line = RST_LITERAL.replace_all(line, "`$1`");
    let line = RST_ROLE.replace_all(&line, "$1");
    let line = RST_LINK.replace_all(&line, "[$1]($2)");
    let line = RST_REFERENCE.replace_all(&line, |found: &regex::Captures<'_>| match found[0].ends_with('_') {
        true => found[1].to_owned(),
        false => found[0].to_owned(),
    });
    line.into_owned()
}

pattern!(ADOC_HEADING, r"^(={1,6}|#{1,6})\s+(\S.*)$");
pattern!(ADOC_ATTRIBUTE, r"^:!?([\w-]+)!?:\s*(.*)$");
pattern!(ADOC_SOURCE, r"^\[source(?:%\w+)?(?:,\s*(\w+))?.*\]$");
pattern!(ADOC_BLOCK, r"^\[.*\]$");
pattern!(ADOC_LINK, r"(?:link:)?((?:https?|mailto)://?[^\s\[\]]+)\[([^\]]*)\]");
pattern!(ADOC_XREF, r"(?:xref:[^\s\[]+\[([^\]]*)\])|(?:<<[^,>]+,\s*([^>]+)>>)");
pattern!(ADOC_MACRO, r"^(?:image|include|ifdef|ifndef|endif|toc|video|audio)::?\S*\[.*\]$");

pub(super) fn asciidoc(source: &str) -> Extracted {
    let (mut text, mut fields) = (String::new(), Map::new());
    let mut language = String::new();
    let mut fence: Option<&str> = None;
    let mut is_comment = false;
    for line in source.lines() {
        let line = line.trim_end();
        if line == "////" {
            is_comment = !is_comment;
        } else if is_comment {
        } else if let Some(open) = fence {
            push_line(&mut text, if line == open { "```" } else { line });
            fence = fence.filter(|_| line != open);
        } else if matches!(line, "----" | "...." | "```") || (line.starts_with("----") && ruler(line).is_some()) {
            push_line(&mut text, &format!("```{language}"));
            language.clear();
            fence = Some(line);
        } else if let Some(found) = ADOC_HEADING.captures(line) {
            heading(&mut text, found[1].len(), &adoc_inline(&found[2]));
        } else if let Some(found) = ADOC_ATTRIBUTE.captures(line) {
            if matches!(&found[1], "author" | "date" | "revdate" | "keywords" | "description") {
                let name = if &found[1] == "revdate" { "date" } else { &found[1] };
                fields.insert(name.to_owned(), found[2].into());
            }
        } else if let Some(found) = ADOC_SOURCE.captures(line) {
            language = found.get(1).map_or("", |found| found.as_str()).to_owned();
        } else if ADOC_BLOCK.is_match(line) || ADOC_MACRO.is_match(line) || line.starts_with("//") {
        } else if matches!(line, "====" | "****" | "____" | "|===" | "--" | "+" | "'''") {
            push_line(&mut text, "");
        } else {
            // The title of a block: `.Example`.
            let title = line.strip_prefix('.').filter(|rest| rest.starts_with(|c: char| c.is_alphanumeric()));
            match title {
                Some(title) => push_line(&mut text, &format!("**{}**", adoc_inline(title))),
                None => push_line(&mut text, &adoc_inline(line)),
            }
        }
    }
    if fence.is_some() {
        push_line(&mut text, "```");
    }
    markdown(text, fields)
}

fn adoc_inline(line: &str) -> String {
    let line = ADOC_XREF.replace_all(line, "$1$2");
    let line = ADOC_LINK.replace_all(&line, |found: &regex::Captures<'_>| match &found[2] {
        "" => found[1].to_owned(),
        shown => format!("[{}]({})", shown.trim_end_matches('^'), &found[1]),
    });
    line.into_owned()
}

pattern!(
    ORG_HEADING,
    r"^(\*+)\s+(?:(?:TODO|DONE|NEXT|WAITING|CANCELLED)\s+)?(?:\[#[A-Z]\]\s+)?(.*?)(?:\s+(:[\w@:]+:))?$"
);
pattern!(ORG_KEYWORD, r"^#\+(\w+):\s*(.*)$");
pattern!(ORG_LINK, r"\[\[([^\]]+)\](?:\[([^\]]+)\])?\]");

pub(super) fn org(source: &str) -> Extracted {
    let (mut text, mut fields) = (String::new(), Map::new());
    let (mut is_code, mut is_drawer) = (false, false);
    for line in source.lines() {
        let bare = line.trim();
        let lower = bare.to_ascii_lowercase();
        if is_drawer {
            is_drawer = lower != ":end:";
        } else if is_code {
            is_code = !(lower.starts_with("#+end_src") || lower.starts_with("#+end_example"));
            push_line(&mut text, if is_code { line } else { "```" });
        } else if matches!(lower.as_str(), ":properties:" | ":logbook:") {
            is_drawer = true;
        } else if let Some(rest) = lower.strip_prefix("#+begin_src").or_else(|| lower.strip_prefix("#+begin_example")) {
            push_line(&mut text, &format!("```{}", rest.split_whitespace().next().unwrap_or_default()));
            is_code = true;
        } else if let Some(found) = ORG_KEYWORD.captures(bare) {
            let name = found[1].to_ascii_lowercase();
            if matches!(name.as_str(), "title" | "author" | "date" | "description") {
                fields.insert(name, found[2].trim_matches(['<', '>', '[', ']']).into());
            } else if name == "filetags" {
                let tags = found[2].split([':', ' ']).filter(|tag| !tag.is_empty());
                fields.insert("tags".to_owned(), tags.collect());
            }
        } else if lower.starts_with("#+") || bare.starts_with("# ") {
        } else if let Some(found) = ORG_HEADING.captures(line) {
            heading(&mut text, found[1].len() + 1, &org_inline(&found[2]));
        } else {
            push_line(&mut text, &org_inline(line));
        }
    }
    if is_code {
        push_line(&mut text, "```");
    }
    let title = fields.remove("title").and_then(|title| title.as_str().map(str::to_owned));
    Extracted { title, ..markdown(text, fields) }
}

fn org_inline(line: &str) -> String {
    let links = ORG_LINK.replace_all(line, |found: &regex::Captures<'_>| {
        let target = &found[1];
        let shown = found.get(2).map_or(target, |shown| shown.as_str());
        match target.contains("://") {
            true => format!("[{shown}]({target})"),
            false => shown.to_owned(),
        }
    });
    links.into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rst_headings_code_and_roles() {
        let source = "=====\nTitle\n=====\n\nSee :ref:`the guide <guide>` and ``x = 1``; `site <https://e.org>`_.\n\n.. toctree::\n   :maxdepth: 2\n\n   a\n   b\n\nPart\n----\n\n.. code-block:: python\n   :linenos:\n\n   def f():\n       pass\n\n.. note:: Mind the gap.\n\n.. _target:\n\nAn example::\n\n  $ run\n\nEnd.\n";
        let text = rst(source).text;
        assert_eq!(
            text,
            "# Title\n\nSee the guide and `x = 1`; [site](https://e.org).\n\n## Part\n\n```python\n\n   def f():\n       pass\n\n```\n\n**note** Mind the gap.\n\nAn example:\n\n```\n\n  $ run\n\n```\n\nEnd.\n"
        );
    }

    #[test]
    fn asciidoc_headings_code_and_links() {
        let source = "= Title\n:author: Ann\n:toc:\n\nSee https://e.org[the site^] and <<part,Part>>.\n\n[source,ruby]\n----\nputs 1\n----\n\n== Part\n.A block\n====\nInside.\n====\n";
        let found = asciidoc(source);
        assert_eq!(found.fields["author"], "Ann");
        assert_eq!(
            found.text,
            "# Title\n\nSee [the site](https://e.org) and Part.\n\n```ruby\nputs 1\n```\n\n## Part\n\n**A block**\n\nInside.\n\n"
        );
    }

    #[test]
    fn org_headings_tags_and_code() {
        let source = "#+TITLE: Log\n#+FILETAGS: :sea:tide:\n* TODO First :now:\n:PROPERTIES:\n:ID: 1\n:END:\nSee [[https://e.org][the site]] and [[file:x.org][x]].\n#+BEGIN_SRC sh\nls\n#+END_SRC\n";
        let found = org(source);
        assert_eq!(found.title.as_deref(), Some("Log"));
        assert_eq!(found.fields["tags"], serde_json::json!(["sea", "tide"]));
        assert_eq!(found.text, "## First\n\nSee [the site](https://e.org) and x.\n```sh\nls\n```\n");
    }
}
