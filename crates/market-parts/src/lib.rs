//! What the sources about markets share, beside the exchange's errors as Tribune's and schemas of tools.
//!
//! - [`parts`]: badges, links and columns of their pages
//! - [`book`]: charts of an order book

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests use the machine's clock"))]

pub mod book;
pub mod parts;

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::Value;
use tribune_binance::RestError;
use tribune_binance::rest::ErrorKind as Kind;
use tribune_core::{Error, ErrorKind, JsonObject};

/// For `map_err`: neither type is of the crates that need this.
pub fn exchange_error(error: RestError) -> Error {
    let kind = match error.kind() {
        Kind::InvalidArgument => ErrorKind::InvalidArgument,
        Kind::NotFound => ErrorKind::NotFound,
        Kind::Forbidden => ErrorKind::Forbidden,
        Kind::Unavailable => ErrorKind::Unavailable,
        Kind::Internal => ErrorKind::Internal,
    };
    Error::new(kind, error.to_string())
}

/// The schema of a type as hosts take it: without references, titles and formats.
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
