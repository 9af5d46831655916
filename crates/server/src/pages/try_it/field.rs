//! One argument of a tool as a form field, with its description.

use serde::Serialize;
use serde_json::Value;
use tribune_core::JsonObject;

use super::kind::{Kind, label};

/// An argument with what its schema says.
#[derive(Debug, Clone)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) kind: Kind,
    is_required: bool,
    description: String,
    default: Option<String>,
    example: Option<String>,
    /// What the description does not say.
    notes: Vec<String>,
    is_known: bool,
}

/// A field for the template.
#[derive(Debug, Serialize)]
pub(super) struct FieldView {
    name: String,
    /// The HTML element.
    element: &'static str,
    /// `type` of an `input`.
    input: &'static str,
    value: String,
    options: Vec<Choice>,
    is_required: bool,
    is_known: bool,
    description: String,
    notes: String,
    placeholder: Option<String>,
}

#[derive(Debug, Serialize, PartialEq)]
pub(super) struct Choice {
    value: String,
    is_chosen: bool,
}

impl Field {
    pub(super) fn new(name: &str, schema: &Value, is_required: bool) -> Self {
        let description = schema.get("description").and_then(Value::as_str).unwrap_or_default();
        let first_example = schema.get("examples").and_then(|examples| examples.get(0));
        let kind = Kind::new(schema, is_required);
        Self {
            name: name.to_owned(),
            notes: notes(schema, &kind, description),
            kind,
            is_required,
            description: description.to_owned(),
            default: schema.get("default").map(label),
            example: first_example.map(label),
            is_known: true,
        }
    }

    /// For input that is no argument of the tool.
    pub(super) fn unknown(name: &str) -> Self {
        Self {
            kind: Kind::Line,
            is_known: false,
            ..Self::new(name, &Value::Null, false)
        }
    }

    /// The fields of all arguments, required ones first.
    pub(super) fn all(schema: &JsonObject) -> Vec<Self> {
        let required = schema.get("required").and_then(Value::as_array);
        let is_required = |name: &str| required.is_some_and(|required| required.iter().any(|other| other == name));
        let properties = schema.get("properties").and_then(Value::as_object);
        let mut fields: Vec<Self> = properties
            .into_iter()
            .flatten()
            .map(|(name, schema)| Self::new(name, schema, is_required(name)))
            .collect();
        fields.sort_by_key(|field| !field.is_required);
        fields
    }

    pub(super) fn is_required(&self) -> bool {
        self.is_required
    }

    /// The field with its input.
    pub(super) fn show(&self, texts: &[String]) -> FieldView {
        let last = texts.last().map(String::as_str).unwrap_or_default();
        let (element, input) = self.element(last);
        FieldView {
            name: self.name.clone(),
            element,
            input,
            value: if self.kind == Kind::Lines {
                texts.join("\n")
            } else {
                last.to_owned()
            },
            options: self.options(texts),
            is_required: self.is_required,
            is_known: self.is_known,
            description: self.description.clone(),
            notes: self.notes.join(" · "),
            placeholder: self.default.clone().or_else(|| self.example.clone()),
        }
    }

    /// An element that can hold the input.
    fn element(&self, input: &str) -> (&'static str, &'static str) {
        match &self.kind {
            Kind::Line | Kind::Number if input.contains('\n') => ("textarea", ""),
            Kind::Line => ("input", "text"),
            Kind::Number => ("input", "number"),
            Kind::Date if input.is_empty() || input.parse::<jiff::civil::Date>().is_ok() => ("input", "date"),
            Kind::Date => ("input", "text"),
            Kind::Switch | Kind::Choice(_) => ("select", ""),
            Kind::Checks(_) => ("checks", ""),
            Kind::Text | Kind::Lines | Kind::Json => ("textarea", ""),
        }
    }

    /// The options; input that is none of them comes last, so that it is not lost.
    fn options(&self, input: &[String]) -> Vec<Choice> {
        let mut values: Vec<String> = match &self.kind {
            Kind::Choice(options) | Kind::Checks(options) => options.iter().map(label).collect(),
            Kind::Switch => ["true", "false"].map(str::to_owned).into(),
            _ => return Vec::new(),
        };
        let is_several = matches!(self.kind, Kind::Checks(_));
        let given = if is_several {
            input
        } else {
            &input[input.len().saturating_sub(1)..]
        };
        for text in given {
            if !text.is_empty() && !values.contains(text) {
                values.push(text.clone());
            }
        }
        let choice = |value: String| Choice {
            is_chosen: given.contains(&value),
            value,
        };
        values.into_iter().map(choice).collect()
    }
}

/// Notes beside the description, unless it says the same.
fn notes(schema: &Value, kind: &Kind, description: &str) -> Vec<String> {
    let text = description.replace(',', "");
    let is_stated = |numbers: &[&String]| numbers.iter().all(|number| text.contains(number.as_str()));
    let writing = match kind {
        Kind::Lines => Some("one per line"),
        Kind::Json => Some("as JSON"),
        _ => None,
    };
    let limits = limits(schema).filter(|(numbers, _)| !is_stated(&numbers.iter().collect::<Vec<_>>()));
    let default = schema
        .get("default")
        .map(label)
        .filter(|default| !is_stated(&[default]));
    let types = schema.get("type").and_then(Value::as_array);
    let takes_null = *kind != Kind::Json && types.is_some_and(|types| types.iter().any(|name| name == "null"));
    let notes = [
        writing.map(str::to_owned),
        limits.map(|(_, words)| words),
        default.map(|default| format!("default {default}")),
        takes_null.then(|| "null only as JSON".to_owned()),
    ];
    notes.into_iter().flatten().collect()
}

/// The numbers, and what they mean: `1 to 50`, `at most 200 characters`.
fn limits(schema: &Value) -> Option<(Vec<String>, String)> {
    let number = |keyword: &str| schema.get(keyword).filter(|limit| limit.is_number()).map(label);
    let span = |least: Option<String>, most: Option<String>, what: &str| {
        let words = match (&least, &most) {
            (Some(least), Some(most)) => format!("{least} to {most}{what}"),
            (Some(least), None) => format!("at least {least}{what}"),
            (None, Some(most)) => format!("at most {most}{what}"),
            (None, None) => return None,
        };
        Some((least.into_iter().chain(most).collect(), words))
    };
    let least_chars = number("minLength").filter(|least| least != "0" && least != "1");
    span(number("minimum"), number("maximum"), "")
        .or_else(|| span(least_chars, number("maxLength"), " characters"))
        .or_else(|| span(number("minItems"), number("maxItems"), " items"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn input_beside_the_options_is_kept() {
        let field = Field::new("party", &json!({"enum": ["Labor", "Liberal"]}), false);
        let shown = field.show(&["ALP".to_owned()]);
        let chosen: Vec<&str> = shown
            .options
            .iter()
            .filter(|o| o.is_chosen)
            .map(|o| o.value.as_str())
            .collect();
        assert_eq!((shown.options.len(), chosen), (3, vec!["ALP"]));
        let field = Field::new("day", &json!({"type": "string", "format": "date"}), false);
        assert_eq!(field.show(&["2024-02-30".to_owned()]).input, "text");
        assert_eq!(field.show(&["2024-02-29".to_owned()]).input, "date");
    }

    #[test]
    fn notes_add_what_the_description_omits() {
        let of = |schema: Value| Field::new("a", &schema, false).show(&[]).notes;
        assert_eq!(
            of(json!({"type": "integer", "minimum": 1, "maximum": 50, "default": 10})),
            "1 to 50 · default 10"
        );
        assert_eq!(
            of(
                json!({"type": "integer", "minimum": 1, "maximum": 50, "default": 10, "description": "1-50, default 10"})
            ),
            ""
        );
        assert_eq!(of(json!({"type": "integer", "minimum": 0})), "at least 0");
        assert_eq!(
            of(json!({"type": "string", "minLength": 1, "maxLength": 200})),
            "at most 200 characters"
        );
        assert_eq!(
            of(json!({"type": "string", "minLength": 2, "maxLength": 9})),
            "2 to 9 characters"
        );
        assert_eq!(
            of(json!({"type": "string", "maxLength": 1000, "description": "up to 1,000"})),
            ""
        );
        assert_eq!(
            of(json!({"type": ["string", "null"], "minLength": 1})),
            "null only as JSON"
        );
        let tags = json!({"type": "array", "items": {"type": "string"}, "maxItems": 10});
        assert_eq!(of(tags), "one per line · at most 10 items");
        assert_eq!(of(json!({"type": "object"})), "as JSON");
    }
}
