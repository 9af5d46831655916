//! One argument of a tool as a field of a form, and what is said beside it.

use serde::Serialize;
use serde_json::Value;
use tribune_core::JsonObject;

use super::kind::{Kind, label};

/// An argument as its schema describes it.
#[derive(Debug, Clone)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) kind: Kind,
    is_required: bool,
    description: String,
    default: Option<String>,
    example: Option<String>,
    /// What neither the description nor the kind of field tells.
    notes: Vec<String>,
    is_known: bool,
}

/// A field as the template shows it.
#[derive(Debug, Serialize)]
pub(super) struct Shown {
    name: String,
    /// Which element it is.
    element: &'static str,
    /// `type` of an `input`.
    input: &'static str,
    value: String,
    options: Vec<Choosable>,
    is_required: bool,
    is_known: bool,
    description: String,
    notes: String,
    placeholder: Option<String>,
}

#[derive(Debug, Serialize, PartialEq)]
pub(super) struct Choosable {
    value: String,
    is_chosen: bool,
}

impl Field {
    pub(super) fn new(name: &str, schema: &Value, is_required: bool) -> Self {
        let description = schema.get("description").and_then(Value::as_str).unwrap_or_default();
        let first_example = schema.get("examples").and_then(|examples| examples.get(0));
        let kind = Kind::of(schema, is_required);
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

    /// Something that was given and that the tool has no argument for.
    pub(super) fn unknown(name: &str) -> Self {
        Self {
            kind: Kind::Line,
            is_known: false,
            ..Self::new(name, &Value::Null, false)
        }
    }

    /// The fields of a tool's arguments: those that have to be given first.
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

    /// The field as it was filled in.
    pub(super) fn show(&self, filled: &[String]) -> Shown {
        let last = filled.last().map(String::as_str).unwrap_or_default();
        let (element, input) = self.element(last);
        Shown {
            name: self.name.clone(),
            element,
            input,
            value: if self.kind == Kind::Lines {
                filled.join("\n")
            } else {
                last.to_owned()
            },
            options: self.options(filled),
            is_required: self.is_required,
            is_known: self.is_known,
            description: self.description.clone(),
            notes: self.notes.join(" · "),
            placeholder: self.default.clone().or_else(|| self.example.clone()),
        }
    }

    /// An element that can hold what was filled in, whatever that is.
    fn element(&self, filled: &str) -> (&'static str, &'static str) {
        match &self.kind {
            Kind::Line | Kind::Number if filled.contains('\n') => ("textarea", ""),
            Kind::Line => ("input", "text"),
            Kind::Number => ("input", "number"),
            Kind::Date if filled.is_empty() || filled.parse::<jiff::civil::Date>().is_ok() => ("input", "date"),
            Kind::Date => ("input", "text"),
            Kind::Switch | Kind::Choice(_) => ("select", ""),
            Kind::Checks(_) => ("checks", ""),
            Kind::Text | Kind::Lines | Kind::Json => ("textarea", ""),
        }
    }

    /// What there is to choose from; what was given and is none of it comes last, so that it is not lost.
    fn options(&self, filled: &[String]) -> Vec<Choosable> {
        let mut values: Vec<String> = match &self.kind {
            Kind::Choice(options) | Kind::Checks(options) => options.iter().map(label).collect(),
            Kind::Switch => ["true", "false"].map(str::to_owned).into(),
            _ => return Vec::new(),
        };
        let is_several = matches!(self.kind, Kind::Checks(_));
        let given = if is_several {
            filled
        } else {
            &filled[filled.len().saturating_sub(1)..]
        };
        for text in given {
            if !text.is_empty() && !values.contains(text) {
                values.push(text.clone());
            }
        }
        let choosable = |value: String| Choosable {
            is_chosen: given.contains(&value),
            value,
        };
        values.into_iter().map(choosable).collect()
    }
}

/// What there is to know besides the description, which may have said it already.
fn notes(schema: &Value, kind: &Kind, description: &str) -> Vec<String> {
    let told = description.replace(',', "");
    let is_told = |numbers: &[&String]| numbers.iter().all(|number| told.contains(number.as_str()));
    let writing = match kind {
        Kind::Lines => Some("one on each line"),
        Kind::Json => Some("as JSON"),
        _ => None,
    };
    let limits = limits(schema).filter(|(numbers, _)| !is_told(&numbers.iter().collect::<Vec<_>>()));
    let default = schema.get("default").map(label).filter(|default| !is_told(&[default]));
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
    fn what_is_not_among_the_options_is_still_shown() {
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
    fn what_the_description_leaves_out_is_added() {
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
        assert_eq!(of(tags), "one on each line · at most 10 items");
        assert_eq!(of(json!({"type": "object"})), "as JSON");
    }
}
