//! A document as read from a file, and how it becomes the record of a plain document.

use jiff::civil::Date;
use serde_json::Value;
use tribune_core::JsonObject;

use super::{FieldMap, Markup, Place, Record};

/// A document as read from a file, before the rules of its source are applied.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Draft {
    /// Its key unless it has an id.
    pub place: String,
    /// `None` if the text is in the field `text`.
    pub text: Option<String>,
    /// The first heading in the text.
    pub heading: Option<String>,
    /// A title that is better than the first words of the text.
    pub file_title: Option<String>,
    pub fields: JsonObject,
    pub markup: Markup,
    pub places: Vec<Place>,
    /// Rows have their id in `id` by default, and their date only in `date`.
    pub is_row: bool,
}

impl Draft {
    /// The record of a plain document.
    pub(super) fn into_document(mut self, map: &FieldMap) -> Result<Record, String> {
        if self.is_row {
            self.use_title_as_text()?;
        }
        let text = self.take_body()?;
        let ids: &[&str] = match (self.is_row, map.theirs("id")) {
            (true, _) => &["id", "_id"],
            (false, Some(_)) => &["id"],
            (false, None) => &[],
        };
        let mut fields = self.fields;
        let key = take_id(&mut fields, ids)?.unwrap_or(self.place);
        let title = take_text(&mut fields, "title")
            .or(self.heading)
            .or(self.file_title)
            .unwrap_or_else(|| title_from_text(&text));
        let text_of = |name: &str| fields.get(name).and_then(Value::as_str);
        let url = text_of("url").and_then(web_address);
        let dates: &[&str] = if self.is_row { &["date"] } else { &["date", "created", "published", "updated"] };
        let date = dates.iter().find_map(|name| text_of(name).and_then(date));
        let (markup, places) = (self.markup, self.places);
        Ok(Record { key, title, text, date, url, fields, markup, places, ..Record::default() })
    }

    /// A row may have only a title.
    fn use_title_as_text(&mut self) -> Result<(), String> {
        let is_blank = matches!(self.fields.get("text"), Some(Value::String(text)) if text.trim().is_empty());
        if !is_blank {
            return Ok(());
        }
        match self.fields.get("title") {
            Some(Value::String(title)) if !title.trim().is_empty() => self.text = Some(title.clone()),
            _ => return Err("`text` is empty, and there is no `title`".to_owned()),
        }
        self.fields.shift_remove("text");
        Ok(())
    }

    /// The text, from the file's body or the field `text`, unchanged.
    pub fn take_body(&mut self) -> Result<String, String> {
        let has_body = self.text.is_some();
        if let Some(text) = self.text.take().filter(|text| !text.trim().is_empty()) {
            return Ok(text);
        }
        match self.fields.shift_remove("text") {
            Some(Value::String(text)) if !text.trim().is_empty() => Ok(text),
            _ if has_body => Err("the file has no text".to_owned()),
            Some(Value::String(_)) => Err("`text` is empty".to_owned()),
            Some(_) => Err("`text` is not a string".to_owned()),
            None => Err("has no `text`".to_owned()),
        }
    }
}

/// Takes the first of `names` with an id out of the fields.
pub fn take_id(fields: &mut JsonObject, names: &[&str]) -> Result<Option<String>, String> {
    for name in names {
        let id = match fields.get(*name) {
            Some(Value::String(id)) if !id.is_empty() => id.clone(),
            Some(Value::Number(id)) => id.to_string(),
            Some(Value::Null | Value::String(_)) | None => continue,
            Some(_) => return Err(format!("`{name}` is neither a string nor a number")),
        };
        fields.shift_remove(*name);
        return Ok(Some(id));
    }
    Ok(None)
}

/// Takes a single-line text out of the fields.
pub fn take_text(fields: &mut JsonObject, name: &str) -> Option<String> {
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

/// The date at the beginning of `text`: `2024-05-28`, with or without a time.
pub fn date(text: &str) -> Option<Date> {
    let text = text.trim();
    let head = text.get(..10)?;
    let rest = &text[10..];
    if !rest.is_empty() && !rest.starts_with(['T', 't', ' ']) {
        return None;
    }
    head.parse().ok()
}

/// The longest URL that browsers and proxies accept.
const MAX_URL_BYTES: usize = 2048;

/// A URL that a person can open.
pub fn web_address(text: &str) -> Option<String> {
    let text = text.trim();
    let is_web = text.starts_with("https://") || text.starts_with("http://");
    (is_web && text.len() <= MAX_URL_BYTES && !text.contains(char::is_whitespace)).then(|| text.to_owned())
}

/// The first words of a text, for documents without a title.
pub fn title_from_text(text: &str) -> String {
    const MAX_CHARS: usize = 80;
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    if line.chars().count() <= MAX_CHARS {
        return line.to_owned();
    }
    let cut: String = line.chars().take(MAX_CHARS).collect();
    let cut = cut.rsplit_once(' ').map_or(cut.as_str(), |(head, _)| head);
    format!("{cut}…")
}
