//! Markdown with or without YAML front matter, and plain text.

use std::path::Path;

use serde_json::Value;
use tribune_core::JsonObject;

use super::{Draft, Input, Markup, READERS, Sink, Stop};

/// One document per file, with or without front matter.
pub(super) fn read(input: &Input<'_>, sink: &mut dyn Sink) -> Result<(), Stop> {
    let Some(text) = input.text(sink) else {
        return Ok(());
    };
    match draft(input.relative, &text) {
        Ok(draft) => input.give(None, draft, Vec::new(), sink),
        // A note with a typo in its front matter is still useful. Sources that search by fields refuse it instead.
        Err(broken) if input.reading.rules.requires_front_matter() => {
            sink.fault(broken.line, true, broken.problem);
            Ok(())
        }
        Err(Broken { line, problem }) => {
            let at = line.map_or_else(String::new, |line| format!(" in line {line}"));
            let mut whole = with_fields(input.relative, &text, JsonObject::new());
            // Front matter that limits the readers must not open the document because of a typo in another line.
            let head = front_matter(&text).map_or(&*text, |(yaml, _)| yaml);
            if input.reading.fields.mention_readers(head) {
                whole.fields.insert(READERS.to_owned(), Value::Null);
            }
            input.give(None, whole, vec![problem + &at], sink)
        }
    }
}

/// One document per file, with its first line as title.
pub(super) fn read_plain(input: &Input<'_>, sink: &mut dyn Sink) -> Result<(), Stop> {
    let Some(text) = input.text(sink) else {
        return Ok(());
    };
    let draft = Draft { place: input.relative.to_owned(), text: Some(text), ..Draft::default() };
    input.give(None, draft, Vec::new(), sink)
}

/// Why front matter cannot be parsed.
#[derive(Debug)]
struct Broken {
    /// In the whole file.
    line: Option<u64>,
    problem: String,
}

fn draft(relative: &str, content: &str) -> Result<Draft, Broken> {
    let broken = |line, problem: &str| Err(Broken { line, problem: problem.to_owned() });
    let (yaml, body) = match front_matter(content) {
        Some(parts) => parts,
        None if unclosed(content) => {
            let problem = "the front matter that begins here is never closed: put `---` on a line of its own behind it";
            return broken(Some(1), problem);
        }
        None => ("", content),
    };
    if yaml.trim().is_empty() {
        return Ok(with_fields(relative, body, JsonObject::new()));
    }
    let error = match serde_saphyr::from_str::<Value>(yaml) {
        Ok(Value::Object(fields)) => return Ok(with_fields(relative, body, fields)),
        Ok(_) => return broken(None, "the front matter is not a list of `key: value` lines"),
        Err(error) => error,
    };
    let reason = error.without_snippet().to_string();
    let reason = reason.lines().next().unwrap_or_default();
    // The parser counts lines from the beginning of the YAML, not of the file.
    let reason = reason.split(" at line ").next().unwrap_or_default();
    // The rest of the message is advice for programmers.
    let reason = reason.split(", set ").next().unwrap_or_default();
    // Plus the first line, `---`.
    let line = error.location().map(|at| at.line() + 1);
    broken(line, &format!("the front matter is not valid YAML ({reason})"))
}

fn with_fields(relative: &str, body: &str, fields: JsonObject) -> Draft {
    Draft {
        place: relative.to_owned(),
        heading: title(body),
        file_title: Some(file_stem(relative)),
        text: Some(body.to_owned()),
        fields,
        markup: Markup::Markdown,
        ..Draft::default()
    }
}

/// Whether a file begins with front matter that is not closed, and not with a horizontal rule.
fn unclosed(content: &str) -> bool {
    let mut lines = content.lines();
    let is_key = |line: &str| {
        let name = line.split_once(':').map_or("", |(name, _)| name);
        !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-')
    };
    lines.next().is_some_and(|line| line.trim_end() == "---") && lines.next().is_some_and(is_key)
}

/// The YAML between `---` on the first line and the next `---` or `...`, and the text after it.
fn front_matter(content: &str) -> Option<(&str, &str)> {
    let rest = content.strip_prefix("---")?;
    let (blank, rest) = rest.split_once('\n')?;
    if !blank.trim().is_empty() {
        return None;
    }
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        let bare = line.trim_end();
        if bare == "---" || bare == "..." {
            let body = &rest[at + line.len()..];
            return Some((&rest[..at], body.trim_start_matches(['\r', '\n'])));
        }
        at += line.len();
    }
    None
}

/// A section with its heading.
pub(crate) struct Section {
    pub(crate) at: usize,
    /// The path of headings: `Water › Pumps`.
    pub(crate) title: String,
}

/// The sections of a Markdown text, in order, below its first-level heading.
pub(crate) fn sections(body: &str) -> Vec<Section> {
    let mut path: Vec<(usize, &str)> = Vec::new();
    headings(body)
        .map(|(at, level, title)| {
            path.retain(|(above, _)| *above < level);
            path.push((level, title));
            let below_title: Vec<&str> = path.iter().filter(|(l, _)| *l > 1).map(|(_, t)| *t).collect();
            Section { at, title: below_title.join(" › ") }
        })
        .collect()
}

/// The first heading of the first level, or else the first of any level.
pub(super) fn title(body: &str) -> Option<String> {
    let first_level = headings(body).find(|(_, level, _)| *level == 1);
    first_level.or_else(|| headings(body).next()).map(|(_, _, title)| title.to_owned())
}

/// Offset, level and text of each `#` heading outside of code blocks.
fn headings(body: &str) -> impl Iterator<Item = (usize, usize, &str)> {
    let mut in_code = false;
    let mut at = 0;
    body.split_inclusive('\n').filter_map(move |line| {
        let start = at;
        at += line.len();
        if line.starts_with("```") || line.starts_with("~~~") {
            in_code = !in_code;
        }
        let level = line.bytes().take_while(|b| *b == b'#').count();
        if in_code || !(1..=6).contains(&level) {
            return None;
        }
        let title = line[level..].strip_prefix(' ')?.trim().trim_end_matches('#').trim();
        (!title.is_empty()).then_some((start, level, title))
    })
}

pub(super) fn file_stem(relative: &str) -> String {
    Path::new(relative).file_stem().and_then(|stem| stem.to_str()).unwrap_or(relative).replace(['_', '-'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{FieldMap, Record};

    fn record(relative: &str, content: &str) -> Record {
        let draft = draft(relative, content).expect("readable");
        draft.into_document(&FieldMap::default()).expect("a record")
    }

    #[test]
    fn front_matter_keeps_every_key() {
        let record = record(
            "a/b.md",
            "---\ntitle: Beans\ndate: 2024-05-28\nurl: https://example.org/x\ntags: [soil, water]\nnested: {a: 1}\n---\n\n# Heading\nText.\n",
        );
        assert_eq!((record.key.as_str(), record.title.as_str()), ("a/b.md", "Beans"));
        assert_eq!(record.text, "# Heading\nText.\n");
        assert_eq!(record.date, Some(jiff::civil::date(2024, 5, 28)));
        assert_eq!(record.url.as_deref(), Some("https://example.org/x"));
        assert_eq!(record.fields["tags"], serde_json::json!(["soil", "water"]));
        assert_eq!(record.fields["nested"]["a"], 1);
    }

    #[test]
    fn broken_front_matter_is_reported_with_its_line() {
        let broken = draft("x.md", "---\na: 1\ntitle: \"unclosed\nb: 2\n---\nBody\n").expect_err("broken");
        assert!(broken.problem.contains("not valid YAML"), "{broken:?}");
        assert!(!broken.problem.contains("at line"), "{broken:?}");
        assert!(broken.line.is_some_and(|line| (3..=5).contains(&line)), "{broken:?}");
        let broken = draft("x.md", "---\n- a\n- b\n---\nBody\n").expect_err("broken");
        assert!(broken.problem.contains("`key: value`"), "{broken:?}");
        let broken = draft("x.md", "---\nspeaker: A\n\nBody without an end\n").expect_err("broken");
        assert!(broken.problem.contains("never closed"), "{broken:?}");
    }

    #[test]
    fn title_comes_from_heading_or_file_name() {
        assert_eq!(record("x.md", "```\n# no\n```\n# Yes #\n").title, "Yes");
        assert_eq!(record("dir/my-note_2.md", "text").title, "my note 2");
    }

    #[test]
    fn rule_at_the_top_is_not_front_matter() {
        assert_eq!(record("x.md", "---\nno end of it").text, "---\nno end of it");
    }
}
