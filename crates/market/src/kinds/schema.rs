//! Output schemas: an answer's figures with their JSON types, and which of them are always present. Nested parts and
//! descriptions are left out, because every model reads every tool's schema.

use std::collections::HashSet;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};
use tribune_core::JsonObject;
use tribune_core::wire::object;

use super::answer::Envelope;

const NUMBERS: &str = "Prices, sizes and money are decimal strings. null is not known; a reason says why.";
const RESULTS: &str = "One for each symbol, with the figures that one alone has.";
const FAILED: &str = "Symbols without an answer, and why.";

/// What an answer may be about, which decides what it always has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Symbol,
    /// One symbol, or several, each with an answer in a list.
    OneOrSeveral,
    /// Several symbols in a list.
    Several,
    /// All markets of one quote asset.
    AllMarkets,
}

/// The schema of a tool whose answers have the figures `F`.
pub(crate) fn output_schema<F: JsonSchema>(shape: Shape) -> JsonObject {
    schema::<F>(shape, false)
}

/// The same of answers that come from an order book, and say its state.
pub(crate) fn book_schema<F: JsonSchema>(shape: Shape) -> JsonObject {
    schema::<F>(shape, true)
}

fn schema<F: JsonSchema>(shape: Shape, of_book: bool) -> JsonObject {
    let (mut properties, mut required) = figures::<F>();
    let mut keep = |names: [&str; 2], always: &[&str], is_there: bool| {
        if is_there {
            required.extend(always.iter().map(|&name| name.to_owned()));
        } else {
            properties.retain(|name, _| !names.contains(&name.as_str()));
        }
    };
    let pair = ["symbol", "base_asset"];
    keep(pair, &pair, shape != Shape::AllMarkets);
    keep(["book_state", "book_state_reason"], &["book_state"], of_book);
    let list = |items: Value, description: &str| json!({"type": "array", "items": items, "description": description});
    let failed = list(json!({"type": "object"}), FAILED);
    object(match shape {
        Shape::Symbol | Shape::AllMarkets => {
            json!({"type": "object", "description": NUMBERS, "properties": properties, "required": required})
        }
        Shape::OneOrSeveral => {
            properties.insert("results".to_owned(), list(json!({"type": "object"}), RESULTS));
            properties.insert("failed".to_owned(), failed);
            json!({"type": "object", "description": NUMBERS, "properties": properties})
        }
        Shape::Several => {
            let row = json!({"type": "object", "properties": properties, "required": required});
            json!({
                "type": "object",
                "description": NUMBERS,
                "properties": {"results": {"type": "array", "items": row}, "failed": failed},
                "required": ["results", "failed"],
            })
        }
    })
}

/// The figures of an answer with their types, and the names of the required ones.
fn figures<F: JsonSchema>() -> (JsonObject, Vec<String>) {
    let mut settings = SchemaSettings::default().for_serialize();
    settings.inline_subschemas = true;
    settings.meta_schema = None;
    let schema = settings.into_generator().into_root_schema_for::<Envelope<'static, F>>();
    let of = |name: &str| schema.as_object().and_then(|schema| schema.get(name));
    let properties = of("properties").and_then(Value::as_object).into_iter().flatten();
    let named = properties.filter(|(name, _)| is_named(name));
    let properties: Map<String, Value> =
        named.map(|(name, schema)| (name.clone(), json!({"type": types(schema)}))).collect();
    let required = of("required").and_then(Value::as_array).into_iter().flatten();
    let required = required.filter_map(Value::as_str).filter(|name| is_named(name));
    (properties, required.map(str::to_owned).collect())
}

/// Whether a schema names the figure: what only explains others is left to the answer.
fn is_named(name: &str) -> bool {
    !["standing", "note", "reason", "basis", "start_ms", "end_ms"].contains(&name)
        && !["_standing", "_listed", "_cut", "_levels_known", "_counts"].iter().any(|ending| name.ends_with(ending))
}

/// `"string"`, or `["string", "null"]` where there are several.
fn types(schema: &Value) -> Value {
    let mut all = types_of(schema);
    let mut seen = HashSet::new();
    all.retain(|name| seen.insert(*name));
    match all.as_slice() {
        [one] => json!(one),
        several => json!(several),
    }
}

fn types_of(schema: &Value) -> Vec<&str> {
    let listed = |name: &str| schema.get(name).and_then(Value::as_array).into_iter().flatten();
    let own = schema.get("type").into_iter().chain(listed("type")).filter_map(Value::as_str);
    let constant = schema.get("const").into_iter().chain(listed("enum"));
    let words = constant.filter(|value| value.is_string()).map(|_| "string");
    let alternatives = listed("anyOf").chain(listed("oneOf")).flat_map(types_of);
    own.chain(words).chain(alternatives).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schema_has_types_and_required_names() {
        let schema = Value::Object(output_schema::<crate::kinds::ticker::Ticker>(Shape::Symbol));
        let type_of = |name: &str| &schema["properties"][name]["type"];
        assert_eq!(type_of("last_price"), &json!(["string", "null"]));
        assert_eq!(type_of("volume_base"), &json!("string"));
        assert_eq!(type_of("best_bid"), &json!(["object", "null"]));
        let required = schema["required"].as_array().expect("a list");
        let is_required = |name: &str| required.contains(&json!(name));
        assert!(is_required("last_price") && is_required("symbol") && !is_required("best_bid"));
        let bands = book_schema::<crate::kinds::depth::MarketDepth>(Shape::Symbol);
        assert_eq!(bands["properties"]["bands"]["type"], json!(["array", "object"]));
    }
}
