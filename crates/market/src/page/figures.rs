//! Whatever else an answer has, by name: no figure is lost on a page that has no picture for it.

use serde_json::Value;
use tribune_core::JsonObject;
use tribune_page::parts::{noted, panel};
use tribune_page::text::{capitalised, plain};
use tribune_page::{Content, Figure, Panel, Width};

use super::words::{amount, has, is_named, label};
use crate::kinds::Page;
use crate::kinds::{AnyFigures, Plain, columns_and_rows, fields_of};

/// Figures that a panel has at most; the text has all.
const MOST: usize = 48;
/// Parts of parts are for programs.
const DEEPEST: usize = 2;
const UNKNOWN: &str = "it is not known";

/// The figures that are not shown already. What is to be known of them all is said once on a page: here, if nothing
/// else is there to say it.
pub(super) fn rest(figures: &AnyFigures, shown: &str, is_alone: bool, page: &Page<'_>) -> Option<Panel> {
    let fields = fields_of(&Plain(figures));
    let why = fields.get("reason").and_then(Value::as_str).unwrap_or(UNKNOWN);
    let mut list = Vec::new();
    for (name, value) in &fields {
        if is_named(name) && !has(shown, name) && columns_and_rows(value).is_none() {
            add(label(name), name, value, why, page, 1, &mut list);
        }
    }
    if list.is_empty() {
        return None;
    }
    list.truncate(MOST);
    let panel = panel("figures", "Figures", Width::Whole, Content::Figures(list));
    Some(match standing(&fields).filter(|_| is_alone) {
        Some(standing) => noted(panel, format!("{standing}.")),
        None => panel,
    })
}

/// How far figures can be trusted: their standing and a note.
fn standing(fields: &JsonObject) -> Option<String> {
    let text = |name: &str| fields.get(name).and_then(Value::as_str);
    match (text("standing").map(capitalised), text("note")) {
        (Some(standing), Some(note)) => Some(format!("{standing}: {note}")),
        (standing, note) => standing.or_else(|| note.map(str::to_owned)),
    }
}

/// Adds a figure, or the parts of one: `why` says why it is null.
fn add(
    label_of_it: String,
    name: &str,
    value: &Value,
    why: &str,
    page: &Page<'_>,
    depth: usize,
    list: &mut Vec<Figure>,
) {
    let reason = |fields: &JsonObject| fields.get("reason").and_then(Value::as_str).unwrap_or(UNKNOWN).to_owned();
    let text = match value {
        Value::Null => return list.push(Figure::unknown(label_of_it, why)),
        Value::Object(fields) if fields.len() == 2 && fields.get("value").is_some_and(Value::is_null) => {
            return list.push(Figure::unknown(label_of_it, reason(fields)));
        }
        Value::Object(fields) if depth <= DEEPEST => {
            let why = reason(fields);
            for (name, value) in fields.iter().filter(|(name, _)| is_named(name) && *name != "reason") {
                let part = format!("{label_of_it}: {}", lowered(&label(name)));
                add(part, name, value, &why, page, depth + 1, list);
            }
            return;
        }
        Value::Object(_) | Value::Array(_) => return,
        Value::String(text) => text.clone(),
        Value::Number(number) if number.is_f64() => {
            let text = number.as_f64().and_then(plain);
            text.unwrap_or_else(|| number.to_string())
        }
        value => value.to_string(),
    };
    list.push(Figure::new(label_of_it, amount(name, &text, page)));
}

/// Within a label only the first word is capitalised, and abbreviations.
fn lowered(label: &str) -> String {
    let mut letters = label.chars();
    match (letters.next(), letters.clone().next()) {
        (Some(first), Some(second)) if !second.is_uppercase() => first.to_lowercase().chain(letters).collect(),
        _ => label.to_owned(),
    }
}
