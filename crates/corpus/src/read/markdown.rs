//! Markdown with or without YAML front matter, and plain text.

use std::path::Path;

use serde_json::Value;
use tribune_core::JsonObject;

use super::Draft;

/// Front matter that cannot be read.
#[derive(Debug)]
pub(super) struct Broken {
    /// Counted in the file.
    pub(super) line: Option<u64>,
    pub(super) problem: String,
}

impl Broken {
    /// The problem where there is no other place for its line.
    pub(super) fn told(self) -> String {
        match self.line {
            Some(line) => format!("{} in line {line}", self.problem),
            None => self.problem,
        }
    }
}

/// What a Markdown file says.
pub(super) fn draft(relative: &str, content: &str) -> Result<Draft, Broken> {
    let Some((yaml, body)) = front_matter(content) else {
        return match unclosed(content) {
            true => Err(Broken {
                line: Some(1),
                problem: "the front matter that begins here is never closed: put `---` on a line of its own behind it"
                    .to_owned(),
            }),
            false => Ok(with_fields(relative, content, JsonObject::new())),
        };
    };
    if yaml.trim().is_empty() {
        return Ok(with_fields(relative, body, JsonObject::new()));
    }
    match serde_saphyr::from_str::<Value>(yaml) {
        Ok(Value::Object(fields)) => Ok(with_fields(relative, body, fields)),
        Ok(_) => Err(Broken {
            line: None,
            problem: "the front matter is not a list of `key: value` lines".to_owned(),
        }),
        Err(error) => {
            let reason = error.without_snippet().to_string();
            // Its own line number counts from the beginning of the YAML, which no reader does.
            let reason = reason.lines().next().unwrap_or_default();
            let reason = reason.split(" at line ").next().unwrap_or_default();
            // The library goes on with advice to programmers.
            let reason = reason.split(", set ").next().unwrap_or_default();
            Err(Broken {
                // The line `---` comes first.
                line: error.location().map(|at| at.line() + 1),
                problem: format!("the front matter is not valid YAML ({reason})"),
            })
        }
    }
}

/// A Markdown file whose front matter cannot be read, taken as it stands.
pub(super) fn unread(relative: &str, content: &str) -> Draft {
    with_fields(relative, content, JsonObject::new())
}

/// A plain text file: its first line stands for a title.
pub(super) fn plain(relative: &str, content: &str) -> Draft {
    Draft {
        place: relative.to_owned(),
        text: Some(content.to_owned()),
        ..Draft::default()
    }
}

fn with_fields(relative: &str, body: &str, fields: JsonObject) -> Draft {
    Draft {
        place: relative.to_owned(),
        heading: first_heading(body),
        file_title: Some(file_stem(relative)),
        text: Some(body.to_owned()),
        fields,
        is_row: false,
    }
}

/// Whether a file begins like front matter that has no end, and not merely with a rule.
fn unclosed(content: &str) -> bool {
    let mut lines = content.lines();
    let is_key = |line: &str| {
        let name = line.split_once(':').map_or("", |(name, _)| name);
        !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-')
    };
    lines.next().is_some_and(|line| line.trim_end() == "---") && lines.next().is_some_and(is_key)
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
    headings(body)
        .find(|(_, level, _)| *level == 1)
        .map(|(_, _, title)| title.to_owned())
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
    use crate::read::{FieldMap, Record};

    fn record(relative: &str, content: &str) -> Record {
        let draft = draft(relative, content).expect("readable");
        draft.into_document(&FieldMap::default()).expect("a record")
    }

    #[test]
    fn front_matter_gives_title_date_url_and_keeps_every_other_key() {
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
    fn broken_front_matter_is_told_with_its_line_in_the_file() {
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
    fn a_title_comes_from_the_heading_and_then_from_the_file_name() {
        assert_eq!(record("x.md", "```\n# no\n```\n# Yes #\n").title, "Yes");
        assert_eq!(record("dir/my-note_2.md", "text").title, "my note 2");
    }

    #[test]
    fn a_rule_at_the_top_is_not_front_matter() {
        assert_eq!(record("x.md", "---\nno end of it").text, "---\nno end of it");
    }
}
