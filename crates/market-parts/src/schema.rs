//! The schema of a type as tools have it.

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::Value;
use tribune_core::JsonObject;

/// As hosts take it: without references, titles and formats.
pub fn tool_schema<T: JsonSchema>(mut settings: SchemaSettings) -> JsonObject {
    settings.inline_subschemas = true;
    settings.meta_schema = None;
    let settings = settings.with_transform(RecursiveTransform(|schema: &mut Schema| {
        schema.remove("title");
        schema.remove("format");
        if schema.get("default").is_some_and(Value::is_null) {
            schema.remove("default");
        }
        if let Some(Value::String(description)) = schema.get_mut("description") {
            *description = description.replace('\n', " ");
        }
    }));
    let schema = settings.into_generator().into_root_schema_for::<T>();
    let mut schema = schema.as_object().cloned().unwrap_or_default();
    // It is the description of the type, not of the arguments.
    schema.shift_remove("description");
    // For types without fields.
    schema.entry("properties").or_insert_with(|| JsonObject::new().into());
    schema
}
