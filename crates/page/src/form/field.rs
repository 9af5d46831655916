//! One argument of a tool as a form field: from its schema to a kind of field, and between input and values.

use serde::Serialize;
use serde_json::Value;

/// More options than this are easier to type than to tick.
const MAX_CHECKS: usize = 12;
/// Longer texts get several lines. Required ones stay on one line up to a higher limit: a query, an id or a title is
/// sent with the Enter key.
const LONG_CHARS: u64 = 200;
const LONG_REQUIRED_CHARS: u64 = 1_000;

/// An argument with what its schema says.
#[derive(Debug, Clone, Serialize)]
pub struct Field {
    pub(super) name: String,
    pub(super) is_required: bool,
    #[serde(skip)]
    kind: Kind,
    description: String,
    /// The default, or else an example.
    placeholder: Option<String>,
    /// What the description does not say.
    notes: String,
}

/// A field with its input, as a template shows it.
#[derive(Debug, Clone, Serialize)]
pub struct FilledField {
    #[serde(flatten)]
    field: Field,
    /// The element that can hold the input: `text`, `textarea`, `number`, `date`, `select` or `checks`.
    element: &'static str,
    value: String,
    options: Vec<String>,
    input: Vec<String>,
}

/// A kind of form field.
#[derive(Debug, Clone, PartialEq)]
enum Kind {
    Line,
    Text,
    Date,
    Number,
    Choice(Vec<Value>),
    /// Texts, one per line.
    Lines,
    /// Any of a few options.
    Checks(Vec<Value>),
    /// Everything else.
    Json,
}

impl Field {
    pub(super) fn new(name: &str, schema: &Value, is_required: bool) -> Self {
        let description = schema["description"].as_str().unwrap_or_default();
        let kind = Kind::new(schema, is_required);
        let placeholder = schema.get("default").or_else(|| schema.pointer("/examples/0"));
        Self {
            name: name.to_owned(),
            is_required,
            notes: notes(schema, &kind, description),
            kind,
            description: description.to_owned(),
            placeholder: placeholder.map(label),
        }
    }

    /// For input that is no argument of the tool.
    pub(super) fn unknown(name: &str) -> Self {
        Self { kind: Kind::Line, description: "Unknown argument.".to_owned(), ..Self::new(name, &Value::Null, false) }
    }

    /// The value of the input; `None` if it is empty. Input that does not fit stays text, and the tool says what is wrong.
    pub(super) fn read(&self, input: &[String]) -> Option<Value> {
        let given = input.iter().map(String::as_str).filter(|text| !text.is_empty());
        // The last one of several counts.
        let last = given.clone().next_back()?;
        let text = || Value::from(last);
        Some(match &self.kind {
            Kind::Line | Kind::Text | Kind::Date => last.replace("\r\n", "\n").into(),
            Kind::Number => {
                let number = serde_json::from_str(last.trim()).ok();
                number.filter(Value::is_number).unwrap_or_else(text)
            }
            Kind::Choice(options) => find_option(options, last),
            Kind::Checks(options) => given.map(|text| find_option(options, text)).collect(),
            Kind::Lines => {
                let lines = given.flat_map(|text| text.split('\n'));
                let lines = lines.map(|line| line.trim_end_matches('\r'));
                let lines: Vec<Value> = lines.filter(|line| !line.trim().is_empty()).map(Value::from).collect();
                return (!lines.is_empty()).then_some(Value::Array(lines));
            }
            Kind::Json => serde_json::from_str(last).unwrap_or_else(|_| text()),
        })
    }

    /// The input for `value`. Not every kind can express every value: what it cannot express does not read back.
    pub(super) fn write(&self, value: &Value) -> Vec<String> {
        match (&self.kind, value) {
            (Kind::Json, value) => vec![value.to_string()],
            (Kind::Lines, Value::Array(items)) => vec![items.iter().map(label).collect::<Vec<_>>().join("\n")],
            (Kind::Checks(_), Value::Array(items)) => items.iter().map(label).collect(),
            (_, value) => vec![label(value)],
        }
    }

    pub(super) fn filled(&self, input: &[String]) -> FilledField {
        let last = input.last().map(String::as_str).unwrap_or_default();
        let value = if self.kind == Kind::Lines { input.join("\n") } else { last.to_owned() };
        FilledField {
            field: self.clone(),
            element: self.element(last),
            value,
            options: self.options(input),
            input: input.to_vec(),
        }
    }

    /// An element that can hold the input.
    fn element(&self, input: &str) -> &'static str {
        match self.kind {
            Kind::Line | Kind::Number if input.contains('\n') => "textarea",
            Kind::Line => "text",
            Kind::Number => "number",
            Kind::Date if input.is_empty() || input.parse::<jiff::civil::Date>().is_ok() => "date",
            Kind::Date => "text",
            Kind::Choice(_) => "select",
            Kind::Checks(_) => "checks",
            Kind::Text | Kind::Lines | Kind::Json => "textarea",
        }
    }

    /// The options; input that is none of them comes last, so that it is not lost.
    fn options(&self, input: &[String]) -> Vec<String> {
        let (Kind::Choice(options) | Kind::Checks(options)) = &self.kind else {
            return Vec::new();
        };
        let known: Vec<String> = options.iter().map(label).collect();
        let other = input.iter().filter(|text| !text.is_empty() && !known.contains(text));
        known.iter().chain(other).cloned().collect()
    }
}

impl Kind {
    fn new(schema: &Value, is_required: bool) -> Self {
        if let Some(options) = schema["enum"].as_array() {
            let all_plain = options.iter().all(|option| !option.is_object() && !option.is_array());
            return if all_plain { Self::Choice(options.clone()) } else { Self::Json };
        }
        match single_type(schema) {
            Some("string") => Self::for_text(schema, is_required),
            Some("integer" | "number") => Self::Number,
            Some("boolean") => Self::Choice(vec![true.into(), false.into()]),
            Some("array") => match Self::new(&schema["items"], true) {
                Self::Choice(options) if options.len() <= MAX_CHECKS => Self::Checks(options),
                Self::Choice(options) if options.iter().all(Value::is_string) => Self::Lines,
                Self::Line | Self::Text | Self::Date => Self::Lines,
                _ => Self::Json,
            },
            _ => Self::Json,
        }
    }

    fn for_text(schema: &Value, is_required: bool) -> Self {
        if schema["format"] == "date" || schema["pattern"] == r"^\d{4}-\d{2}-\d{2}$" {
            return Self::Date;
        }
        let long = if is_required { LONG_REQUIRED_CHARS } else { LONG_CHARS };
        if schema["maxLength"].as_u64().is_some_and(|most| most > long) { Self::Text } else { Self::Line }
    }
}

/// The only type of a schema besides null.
fn single_type(schema: &Value) -> Option<&str> {
    match &schema["type"] {
        Value::String(name) => Some(name),
        Value::Array(names) => {
            let mut names = names.iter().filter_map(Value::as_str).filter(|name| *name != "null");
            names.next().filter(|_| names.next().is_none())
        }
        _ => None,
    }
}

/// A value as text.
fn label(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn find_option(options: &[Value], text: &str) -> Value {
    let found = options.iter().find(|option| label(option) == text);
    found.cloned().unwrap_or_else(|| Value::from(text))
}

/// Notes beside the description, unless it has the same numbers.
fn notes(schema: &Value, kind: &Kind, description: &str) -> String {
    const LIMITS: [(&str, &str, &str); 3] =
        [("minimum", "maximum", ""), ("minLength", "maxLength", " characters"), ("minItems", "maxItems", " items")];
    let stated = description.replace(',', "");
    let is_new = |value: &&Value| !stated.contains(&label(value));
    let limits = LIMITS.into_iter().find_map(|(least, most, what)| {
        let least = schema.get(least).filter(|least| what.is_empty() || least.as_u64() > Some(1));
        let most = schema.get(most);
        least.into_iter().chain(most).find(is_new)?;
        Some(match (least, most) {
            (Some(least), Some(most)) => format!("{least} to {most}{what}"),
            (Some(least), None) => format!("at least {least}{what}"),
            (None, most) => format!("at most {}{what}", most?),
        })
    });
    let default = schema.get("default").filter(is_new);
    let types = schema["type"].as_array();
    let takes_null = *kind != Kind::Json && types.is_some_and(|types| types.iter().any(|name| name == "null"));
    let notes = [
        (*kind == Kind::Lines).then(|| "one per line".to_owned()),
        (*kind == Kind::Json).then(|| "as JSON".to_owned()),
        limits,
        default.map(|default| format!("default {}", label(default))),
        takes_null.then(|| "null only as JSON".to_owned()),
    ];
    notes.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn field(kind: Kind) -> Field {
        Field { kind, ..Field::unknown("a") }
    }

    #[test]
    fn schema_decides_the_kind() {
        let enumerated = json!({"type": "string", "enum": ["a", "b"]});
        let cases = [
            (json!({"type": "string"}), Kind::Line),
            (json!({"type": "string", "maxLength": 200}), Kind::Line),
            (json!({"type": ["string", "null"], "maxLength": 1000}), Kind::Text),
            (json!({"type": "string", "format": "date"}), Kind::Date),
            (json!({"type": "string", "pattern": "^\\d{4}-\\d{2}-\\d{2}$"}), Kind::Date),
            (json!({"type": "integer"}), Kind::Number),
            (json!({"type": "number"}), Kind::Number),
            (json!({"type": "boolean"}), Kind::Choice(vec![json!(true), json!(false)])),
            (json!({"type": "integer", "enum": [5, 10]}), Kind::Choice(vec![json!(5), json!(10)])),
            (json!({"type": "array", "items": {"type": "string"}}), Kind::Lines),
            (json!({"type": "array", "items": enumerated}), Kind::Checks(vec![json!("a"), json!("b")])),
            (json!({"type": "array", "items": {"type": "object"}}), Kind::Json),
            (json!({"type": "array"}), Kind::Json),
            (json!({"type": "object"}), Kind::Json),
            (json!({"enum": [["a"]]}), Kind::Json),
            (json!({"type": ["string", "integer"]}), Kind::Json),
            (json!(true), Kind::Json),
        ];
        for (schema, kind) in cases {
            assert_eq!(Kind::new(&schema, false), kind, "{schema}");
        }
        // A query is sent by the Enter key.
        assert_eq!(Kind::new(&json!({"type": "string", "maxLength": 1000}), true), Kind::Line);
    }

    #[test]
    fn input_is_read_by_kind() {
        let read = |kind: Kind, texts: &[&str]| {
            field(kind).read(&texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(read(Kind::Line, &[""]), None);
        assert_eq!(read(Kind::Line, &[" a "]), Some(json!(" a ")));
        assert_eq!(read(Kind::Text, &["a\r\nb"]), Some(json!("a\nb")));
        assert_eq!(read(Kind::Number, &[" 5 "]), Some(json!(5)));
        assert_eq!(read(Kind::Number, &["1000000000000000000"]), Some(json!(1_000_000_000_000_000_000_u64)));
        assert_eq!(read(Kind::Number, &["five"]), Some(json!("five")));
        assert_eq!(read(Kind::Number, &["1e999"]), Some(json!("1e999")));
        assert_eq!(read(Kind::Number, &["[1]"]), Some(json!("[1]")));
        let switch = || Kind::new(&json!({"type": "boolean"}), false);
        assert_eq!(read(switch(), &["false"]), Some(json!(false)));
        assert_eq!(read(switch(), &["maybe"]), Some(json!("maybe")));
        assert_eq!(read(Kind::Choice(vec![json!(5), json!(10)]), &["10"]), Some(json!(10)));
        assert_eq!(read(Kind::Choice(vec![json!(5)]), &["6"]), Some(json!("6")));
        assert_eq!(read(Kind::Lines, &["a\r\n\r\n b", "c"]), Some(json!(["a", " b", "c"])));
        assert_eq!(read(Kind::Lines, &["\n \n"]), None);
        assert_eq!(read(Kind::Checks(vec![json!("a"), json!("b")]), &["b", "x"]), Some(json!(["b", "x"])));
        assert_eq!(read(Kind::Json, &["{\"a\": [1]}"]), Some(json!({"a": [1]})));
        assert_eq!(read(Kind::Json, &["{"]), Some(json!("{")));
        assert_eq!(read(Kind::Line, &["a", "b"]), Some(json!("b")));
    }

    proptest! {
        #[test]
        fn ordinary_values_read_back(text in "[^\r]{1,40}", number in any::<i64>(), items in prop::collection::vec("[a-z]{1,9}", 1..4)) {
            for (kind, value) in [
                (Kind::Line, json!(text)),
                (Kind::Number, json!(number)),
                (Kind::Lines, json!(items)),
                (Kind::Checks(vec![json!("a")]), json!(items)),
                (Kind::Json, json!({"a": text})),
            ] {
                let field = field(kind);
                prop_assert_eq!(field.read(&field.write(&value)), Some(value));
            }
        }
    }

    #[test]
    fn input_beside_the_options_is_kept() {
        let field = Field::new("party", &json!({"enum": ["Labor", "Liberal"]}), false);
        assert_eq!(field.options(&["ALP".to_owned()]), ["Labor", "Liberal", "ALP"]);
        let field = Field::new("day", &json!({"type": "string", "format": "date"}), false);
        assert_eq!(field.element("2024-02-30"), "text");
        assert_eq!(field.element("2024-02-29"), "date");
    }

    #[test]
    fn notes_add_what_the_description_omits() {
        let notes = |schema: Value| Field::new("a", &schema, false).notes;
        assert_eq!(
            notes(json!({"type": "integer", "minimum": 1, "maximum": 50, "default": 10})),
            "1 to 50 · default 10"
        );
        assert_eq!(
            notes(
                json!({"type": "integer", "minimum": 1, "maximum": 50, "default": 10, "description": "1-50, default 10"})
            ),
            ""
        );
        assert_eq!(notes(json!({"type": "integer", "minimum": 0})), "at least 0");
        assert_eq!(notes(json!({"type": "string", "minLength": 1, "maxLength": 200})), "at most 200 characters");
        assert_eq!(notes(json!({"type": "string", "minLength": 2, "maxLength": 9})), "2 to 9 characters");
        assert_eq!(notes(json!({"type": "string", "maxLength": 1000, "description": "up to 1,000"})), "");
        assert_eq!(notes(json!({"type": ["string", "null"], "minLength": 1})), "null only as JSON");
        let tags = json!({"type": "array", "items": {"type": "string"}, "maxItems": 10});
        assert_eq!(notes(tags), "one per line · at most 10 items");
        assert_eq!(notes(json!({"type": "object"})), "as JSON");
    }
}
