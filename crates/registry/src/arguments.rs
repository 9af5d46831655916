//! Arguments that do not fit a tool's schema, explained to the model that sent them.

use jsonschema::error::ValidationErrorKind;
use jsonschema::{ValidationError, Validator};
use serde_json::Value;
use tribune_core::wire::clip;
use tribune_core::{Error, ErrorKind, JsonObject, ToolSpec};

fn property<'s>(spec: &'s ToolSpec, name: &str) -> Option<&'s Value> {
    spec.input_schema.get("properties")?.get(name)
}

/// Some hosts write out every argument, with null for those that are not given.
pub(crate) fn omit_nulls(spec: &ToolSpec, args: &mut Value) {
    let takes_null = |name: &str| {
        let kinds = property(spec, name).and_then(|property| property.get("type"));
        kinds.is_none_or(|kinds| match kinds {
            Value::Array(kinds) => kinds.iter().any(|kind| kind == "null"),
            kind => kind == "null",
        })
    };
    if let Value::Object(args) = args {
        args.retain(|name, value| !value.is_null() || takes_null(name));
    }
}

/// Every fault of a call in one message that ends in a correct call.
pub(crate) fn explain(spec: &ToolSpec, arguments: &Validator, args: &Value) -> Error {
    const MOST_FAULTS: usize = 4;
    // Some quote the argument.
    const MAX_FAULT_CHARS: usize = 300;
    let given = args.as_object();
    let properties = spec.input_schema.get("properties").and_then(Value::as_object);
    let known: Vec<&str> = properties.into_iter().flat_map(|all| all.keys().map(String::as_str)).collect();
    let faults: Vec<String> = arguments
        .iter_errors(args)
        .take(MOST_FAULTS)
        .map(|fault| clip(&sentence(spec, &fault, given, &known), MAX_FAULT_CHARS).into_owned())
        .collect();
    Error::new(
        ErrorKind::InvalidArgument,
        format!("{} was not run: {}. Call it again with {}.", spec.name, faults.join("; "), usage(spec)),
    )
}

/// `known` are the arguments that the tool has.
fn sentence(spec: &ToolSpec, fault: &ValidationError<'_>, given: Option<&JsonObject>, known: &[&str]) -> String {
    let path = fault.instance_path().to_string();
    let argument = path.trim_start_matches('/').replace('/', ".");
    let subject = if argument.is_empty() { "the arguments".to_owned() } else { format!("`{argument}`") };
    match fault.kind() {
        ValidationErrorKind::Required { property } => {
            let wanted = property.as_str().unwrap_or_default();
            match given.and_then(|given| nearest(wanted, given.keys().filter(|name| !known.contains(&name.as_str())))) {
                Some(near) => {
                    format!("the argument `{wanted}` is missing (`{near}` is not an argument)")
                }
                None => format!("the argument `{wanted}` is missing"),
            }
        }
        ValidationErrorKind::Type { .. } => format!("{subject} has the wrong type: {fault}"),
        ValidationErrorKind::MinLength { limit } => {
            format!("{subject} must have at least {limit} character(s)")
        }
        ValidationErrorKind::MaxLength { limit } => {
            format!("{subject} must have at most {limit} characters")
        }
        ValidationErrorKind::Minimum { limit } => format!("{subject} must be at least {limit}"),
        ValidationErrorKind::Maximum { limit } => format!("{subject} must be at most {limit}"),
        ValidationErrorKind::Enum { options } => format!("{subject} must be one of {options}"),
        ValidationErrorKind::Pattern { .. } => {
            let described = property(spec, &argument).and_then(|property| property.get("description"));
            let described = described.and_then(Value::as_str).unwrap_or("see its pattern");
            format!("{subject} is not written as it should be: {}", described.trim_end_matches('.'))
        }
        ValidationErrorKind::MaxItems { limit } => format!("{subject} must have at most {limit} items"),
        ValidationErrorKind::MinItems { limit } => format!("{subject} must have at least {limit} items"),
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            format!("there is no argument `{}`", unexpected.join("`, `"))
        }
        _ => format!("{subject}: {fault}"),
    }
}

fn nearest<'a>(wanted: &str, given: impl Iterator<Item = &'a String>) -> Option<&'a String> {
    given.max_by(|a, b| strsim::jaro_winkler(wanted, a).total_cmp(&strsim::jaro_winkler(wanted, b)))
}

/// `{"query": string, "limit"?: integer}`
fn usage(spec: &ToolSpec) -> String {
    let required: Vec<&str> = spec
        .input_schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let arguments: Vec<String> = spec
        .input_schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(name, schema)| {
            let optional = if required.contains(&name.as_str()) { "" } else { "?" };
            let kind = schema.get("type").and_then(Value::as_str).unwrap_or("value");
            format!("\"{name}\"{optional}: {kind}")
        })
        .collect();
    format!("{{{}}}", arguments.join(", "))
}
