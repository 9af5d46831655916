//! The rules that ChatGPT, Claude, Gemini and the rest hold tools to, in one place.
//!
//! [`crate::Registry`] refuses a tool that breaks one, so a host never gets to reject it opaquely.

use serde_json::Value;
use tribune_core::{JsonObject, ToolSpec};

/// The tightest host limit is 64; a namespace prefix added by a client must still fit.
pub const MAX_NAME_CHARS: usize = 50;
/// Gemini cuts at 1,024.
pub const MAX_DESCRIPTION_CHARS: usize = 1000;
const MAX_ICON_BYTES: usize = 8 * 1024;

/// Everything wrong with a spec; empty when every host will take it.
pub fn faults(spec: &ToolSpec) -> Vec<String> {
    let mut faults = Vec::new();
    name(&spec.name, &mut faults);
    if spec.title.trim().is_empty() {
        faults.push("has no title".to_owned());
    }
    let length = spec.description.chars().count();
    if length == 0 || length > MAX_DESCRIPTION_CHARS {
        faults.push(format!("the description has {length} characters; hosts take 1 to {MAX_DESCRIPTION_CHARS}"));
    }
    if spec.hints.read_only && spec.hints.destructive {
        faults.push("claims to be read-only and destructive at once".to_owned());
    }
    schema("input", &spec.input_schema, true, &mut faults);
    schema("output", &spec.output_schema, false, &mut faults);
    if let Some(icon) = &spec.icon {
        let known = icon.starts_with("data:image/") || icon.starts_with("https://");
        let is_uri = icon.chars().all(|c| c.is_ascii_graphic() && !"\"<>\\^`{|}".contains(c));
        if !known || !is_uri || icon.len() > MAX_ICON_BYTES {
            faults.push("the icon is not a small and properly encoded `data:image/` or `https://` address".to_owned());
        }
    }
    faults
}

fn name(name: &str, faults: &mut Vec<String>) {
    let snake = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let starts_well = name.starts_with(|c: char| c.is_ascii_lowercase());
    if !starts_well || !name.chars().all(snake) || name.len() > MAX_NAME_CHARS {
        faults.push(format!("the name is not snake_case of at most {MAX_NAME_CHARS} characters"));
    }
}

fn schema(which: &str, schema: &JsonObject, described: bool, faults: &mut Vec<String>) {
    if schema.get("type").and_then(Value::as_str) != Some("object") {
        faults.push(format!("the {which} schema is not a plain object"));
    }
    for keyword in ["$schema", "$ref", "propertyNames", "oneOf", "allOf"] {
        if mentions(&Value::Object(schema.clone()), keyword) {
            faults.push(format!("the {which} schema uses `{keyword}`, which some hosts reject"));
        }
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    if described {
        for (argument, schema) in properties.into_iter().flatten() {
            if schema.get("description").and_then(Value::as_str).is_none_or(str::is_empty) {
                faults.push(format!("the argument `{argument}` has no description"));
            }
        }
    }
    let required = schema.get("required").and_then(Value::as_array);
    for property in required.into_iter().flatten().filter_map(Value::as_str) {
        if !properties.is_some_and(|known| known.contains_key(property)) {
            faults.push(format!("the {which} schema requires `{property}` without describing it"));
        }
    }
}

/// Whether `keyword` is used as a key anywhere but as the name of a property.
fn mentions(schema: &Value, keyword: &str) -> bool {
    match schema {
        Value::Object(map) => map.iter().any(|(key, value)| {
            if key == "properties" {
                value.as_object().is_some_and(|p| p.values().any(|v| mentions(v, keyword)))
            } else {
                key == keyword || mentions(value, keyword)
            }
        }),
        Value::Array(items) => items.iter().any(|item| mentions(item, keyword)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tribune_core::{CallDisplay, Hints};

    fn good() -> ToolSpec {
        let object = |value: Value| value.as_object().cloned().expect("object");
        ToolSpec {
            name: "search".to_owned(),
            title: "Search".to_owned(),
            description: "Searches.".to_owned(),
            input_schema: object(json!({
                "type": "object",
                "properties": {"query": {"type": "string", "description": "words"}},
                "required": ["query"],
            })),
            output_schema: object(json!({"type": "object"})),
            hints: Hints::READ,
            icon: Some("data:image/svg+xml;base64,PHN2Zy8+".to_owned()),
            display: CallDisplay::default(),
            aliases: vec![],
        }
    }

    #[test]
    fn a_good_tool_has_no_faults() {
        assert_eq!(faults(&good()), Vec::<String>::new());
    }

    #[test]
    fn each_rule_finds_its_fault() {
        type Break = fn(&mut ToolSpec);
        let cases: [(Break, &str); 10] = [
            (|s| s.name = "binance.get".into(), "snake_case"),
            (|s| s.name = "x".repeat(51), "snake_case"),
            (|s| s.title = " ".into(), "no title"),
            (|s| s.description = "x".repeat(1001), "1001 characters"),
            (|s| s.hints.destructive = true, "at once"),
            (|s| s.icon = Some("🔍".into()), "icon"),
            (|s| s.icon = Some("data:image/svg+xml,<svg />".into()), "icon"),
            (|s| drop(s.input_schema.insert("$schema".into(), json!("x"))), "$schema"),
            (|s| s.input_schema["properties"]["query"] = json!({"type": "string"}), "no description"),
            (|s| drop(s.input_schema.insert("required".into(), json!(["other"]))), "requires `other`"),
        ];
        for (spoil, fault) in cases {
            let mut spec = good();
            spoil(&mut spec);
            let found = faults(&spec);
            assert!(found.iter().any(|f| f.contains(fault)), "{fault}: {found:?}");
        }
    }
}
