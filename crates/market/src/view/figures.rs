//! Whatever else an answer has, by name: nothing that was said is lost on a page that has no picture for it.

use serde_json::Value;
use tribune_core::view::{Content, Figure, Panel, Width};

use super::lists::plain;
use super::parts::{noted, panel};
use super::record::Told;
use super::words::{amount, is_told, label, standing};

/// Figures that a panel has at most; the text has all.
const MOST: usize = 48;
/// Parts of parts are for programs.
const DEEPEST: usize = 2;
const UNKNOWN: &str = "it is not known";

/// The fields that are not shown already. What is to be known of them all is said once on a page: here, if nothing
/// else is there to say it.
pub(crate) fn rest(told: &Told, shown: &[&str], is_alone: bool) -> Option<Panel> {
    let mut list = Vec::new();
    for (name, value) in &told.fields {
        if !is_told(name) || shown.contains(&name.as_str()) {
            continue;
        }
        match told.parts(name) {
            Some(parts) => flatten(&label(name), name, &parts, told, 1, &mut list),
            None => list.push(figure(label(name), name, value, told)),
        }
    }
    if list.is_empty() {
        return None;
    }
    list.truncate(MOST);
    let panel = panel("figures", "Figures", Width::Whole, Content::Figures(list));
    Some(match standing(told).filter(|_| is_alone) {
        Some(standing) => noted(panel, format!("{standing}.")),
        None => panel,
    })
}

fn figure(label: String, name: &str, value: &str, told: &Told) -> Figure {
    if value == "null" {
        let why = told.text("reason").unwrap_or(UNKNOWN);
        return Figure::unknown(label, why);
    }
    Figure::new(label, amount(name, value, told))
}

fn flatten(of: &str, name: &str, parts: &Value, told: &Told, depth: usize, list: &mut Vec<Figure>) {
    match parts {
        // Null, and why.
        Value::Object(fields) if fields.len() == 2 && fields.get("value").is_some_and(Value::is_null) => {
            let why = fields.get("reason").and_then(Value::as_str);
            list.push(Figure::unknown(of, why.unwrap_or(UNKNOWN)));
        }
        Value::Object(fields) if depth <= DEEPEST => {
            let why = fields.get("reason").and_then(Value::as_str).unwrap_or(UNKNOWN);
            for (name, value) in fields.iter().filter(|(name, _)| is_told(name) && *name != "reason") {
                let of = format!("{of}: {}", lowered(&label(name)));
                match value {
                    Value::Null => list.push(Figure::unknown(of, why)),
                    value => flatten(&of, name, value, told, depth + 1, list),
                }
            }
        }
        Value::Object(_) | Value::Array(_) => {}
        Value::Null => list.push(Figure::unknown(of, UNKNOWN)),
        Value::String(text) => list.push(Figure::new(of, amount(name, text, told))),
        Value::Number(number) if !number.is_i64() && !number.is_u64() => {
            let text = number.as_f64().and_then(plain).unwrap_or_else(|| number.to_string());
            list.push(Figure::new(of, amount(name, &text, told)));
        }
        value => list.push(Figure::new(of, amount(name, &value.to_string(), told))),
    }
}

/// Within a label only the first word is capitalised, and abbreviations.
fn lowered(label: &str) -> String {
    let mut letters = label.chars();
    match (letters.next(), letters.clone().next()) {
        (Some(first), Some(second)) if !second.is_uppercase() => first.to_lowercase().chain(letters).collect(),
        _ => label.to_owned(),
    }
}
