//! Markdown with or without YAML front matter, and plain text.

use std::path::Path;

use serde_json::Value;
use tribune_core::JsonObject;

use super::{Record, date, title_from_text, web_address};

/// The record of a Markdown file, and what is wrong with its front matter, if anything: a note
/// with a typo in its front matter is still a note.
pub(super) fn record(relative: &str, content: &str) -> (Record, Option<String>) {
    let Some((yaml, body)) = front_matter(content) else {
        return (with_fields(relative, content, JsonObject::new()), None);
    };
    if yaml.trim().is_empty() {
        return (with_fields(relative, body, JsonObject::new()), None);
    }
    match serde_saphyr::from_str::<Value>(yaml) {
        Ok(Value::Object(fields)) => (with_fields(relative, body, fields), None),
        Ok(_) => {
            let problem = "the front matter is not a list of `key: value` lines".to_owned();
            (with_fields(relative, content, JsonObject::new()), Some(problem))
        }
        Err(error) => {
            let reason = error.to_string();
            let reason = reason.lines().next().unwrap_or_default();
            let problem = format!("the front matter is not valid YAML ({reason})");
            (with_fields(relative, content, JsonObject::new()), Some(problem))
        }
    }
}

/// The record of a plain text file: its first line stands for a title.
pub(super) fn plain(relative: &str, content: &str) -> Record {
    Record {
        key: relative.to_owned(),
        title: title_from_text(content),
        text: content.to_owned(),
        date: None,
        url: None,
        fields: JsonObject::new(),
    }
}

fn with_fields(relative: &str, body: &str, mut fields: JsonObject) -> Record {
    let title = take_text(&mut fields, "title")
        .or_else(|| first_heading(body))
        .unwrap_or_else(|| file_stem(relative));
    let url = fields.get("url").and_then(Value::as_str).and_then(web_address);
    let date = ["date", "created", "published", "updated"]
        .iter()
        .find_map(|name| fields.get(*name).and_then(Value::as_str).and_then(date));
    Record {
        key: relative.to_owned(),
        title,
        text: body.to_owned(),
        date,
        url,
        fields,
    }
}

fn take_text(fields: &mut JsonObject, name: &str) -> Option<String> {
    let text = match fields.get(name)? {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    if text.is_empty() {
        return None;
    }
    fields.shift_remove(name);
    Some(text)
}

/// The YAML between a first line `---` and the next `---` or `...`, and what follows it.
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

fn first_heading(body: &str) -> Option<String> {
    headings(body).find(|(_, level, _)| *level == 1).map(|(_, _, title)| title.to_owned())
}

/// A heading and what follows it.
pub(crate) struct Section {
    pub(crate) at: usize,
    /// The headings it stands under and its own: `Water › Pumps`.
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
            Section {
                at,
                title: below_title.join(" › "),
            }
        })
        .collect()
}

/// Offset, level and text of each `#` heading that is not in a block of code.
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

fn file_stem(relative: &str) -> String {
    Path::new(relative)
        .file_stem()
        .and_then(|stem| stem.to_str())
        .unwrap_or(relative)
        .replace(['_', '-'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn front_matter_gives_title_date_url_and_keeps_every_other_key() {
        let (record, warning) = record(
            "a/b.md",
            "---\ntitle: Beans\ndate: 2024-05-28\nurl: https://example.org/x\ntags: [soil, water]\nnested: {a: 1}\n---\n\n# Heading\nText.\n",
        );
        assert_eq!(warning, None);
        assert_eq!((record.key.as_str(), record.title.as_str()), ("a/b.md", "Beans"));
        assert_eq!(record.text, "# Heading\nText.\n");
        assert_eq!(record.date, Some(jiff::civil::date(2024, 5, 28)));
        assert_eq!(record.url.as_deref(), Some("https://example.org/x"));
        assert_eq!(record.fields["tags"], serde_json::json!(["soil", "water"]));
        assert_eq!(record.fields["nested"]["a"], 1);
    }

    #[test]
    fn broken_front_matter_costs_nothing_but_a_warning() {
        let content = "---\ntitle: [unclosed\n---\nBody\n";
        let (record, warning) = record("x.md", content);
        assert!(warning.expect("a warning").contains("not valid YAML"));
        assert_eq!(record.text, content);
    }

    #[test]
    fn a_title_comes_from_the_heading_and_then_from_the_file_name() {
        assert_eq!(record("x.md", "```\n# no\n```\n# Yes #\n").0.title, "Yes");
        assert_eq!(record("dir/my-note_2.md", "text").0.title, "my note 2");
    }

    #[test]
    fn a_rule_at_the_top_is_not_front_matter() {
        let (record, warning) = record("x.md", "---\nno end of it");
        assert_eq!((record.text.as_str(), warning), ("---\nno end of it", None));
    }
}
