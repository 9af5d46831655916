//! One argument of a tool as a field of a form: what it is filled in with, and what that stands for.

use serde::Serialize;
use serde_json::Value;

use tribune_core::JsonObject;

/// More options than this are easier to write than to tick.
const MOST_CHECKS: usize = 12;
/// What may be longer than this is written on several lines. What has to be given is one line all the same unless it
/// may be much longer: a query, an id, a title, sent by the Enter key.
const LONG_CHARS: u64 = 200;
const LONG_REQUIRED_CHARS: u64 = 1_000;

/// How an argument is filled in.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    Line,
    Text,
    Date,
    Number,
    Switch,
    Choice(Vec<Value>),
    /// Texts, one on each line.
    Lines,
    /// Any of a few.
    Checks(Vec<Value>),
    /// Whatever has no field of its own.
    Json,
}

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

impl Kind {
    pub(super) fn of(schema: &Value, is_required: bool) -> Self {
        if let Some(options) = schema.get("enum").and_then(Value::as_array) {
            let all_plain = options.iter().all(|option| !option.is_object() && !option.is_array());
            return if all_plain {
                Self::Choice(options.clone())
            } else {
                Self::Json
            };
        }
        match single_type(schema) {
            Some("string") => Self::of_text(schema, is_required),
            Some("integer" | "number") => Self::Number,
            Some("boolean") => Self::Switch,
            Some("array") => match schema.get("items").map(|items| Self::of(items, true)) {
                Some(Self::Choice(options)) if options.len() <= MOST_CHECKS => Self::Checks(options),
                Some(Self::Choice(options)) if options.iter().all(Value::is_string) => Self::Lines,
                Some(Self::Line | Self::Text | Self::Date) => Self::Lines,
                _ => Self::Json,
            },
            _ => Self::Json,
        }
    }

    fn of_text(schema: &Value, is_required: bool) -> Self {
        let word = |keyword: &str| schema.get(keyword).and_then(Value::as_str);
        if word("format") == Some("date") || word("pattern") == Some(r"^\d{4}-\d{2}-\d{2}$") {
            return Self::Date;
        }
        let most = schema.get("maxLength").and_then(Value::as_u64).unwrap_or(0);
        let long = if is_required { LONG_REQUIRED_CHARS } else { LONG_CHARS };
        if most > long { Self::Text } else { Self::Line }
    }

    /// The value that was filled in; `None` if nothing was. What does not fit stays text: the tool then says what is
    /// wrong with it, in its own words.
    pub(super) fn read(&self, filled: &[String]) -> Option<Value> {
        let given: Vec<&str> = filled
            .iter()
            .map(String::as_str)
            .filter(|text| !text.is_empty())
            .collect();
        // Of a field that is there twice, the last one counts.
        let last = *given.last()?;
        let as_text = || Value::from(last);
        Some(match self {
            Self::Line | Self::Text | Self::Date => Value::from(last.replace("\r\n", "\n")),
            Self::Number => serde_json::from_str(last.trim())
                .ok()
                .filter(Value::is_number)
                .unwrap_or_else(as_text),
            Self::Switch => match last {
                "true" => Value::Bool(true),
                "false" => Value::Bool(false),
                _ => as_text(),
            },
            Self::Choice(options) => option_of(options, last),
            Self::Lines => {
                let lines = given.iter().flat_map(|text| text.split('\n'));
                let lines = lines.map(|line| line.trim_end_matches('\r'));
                let lines: Vec<Value> = lines.filter(|line| !line.trim().is_empty()).map(Value::from).collect();
                return (!lines.is_empty()).then_some(Value::Array(lines));
            }
            Self::Checks(options) => given.iter().map(|text| option_of(options, text)).collect(),
            Self::Json => serde_json::from_str(last).unwrap_or_else(|_| as_text()),
        })
    }

    /// What to fill in so that `value` is read; `None` if no field can say it.
    pub(super) fn write(&self, value: &Value) -> Option<Vec<String>> {
        let filled = match (self, value) {
            (Self::Json, value) => vec![value.to_string()],
            (Self::Lines, Value::Array(items)) => {
                let lines: Option<Vec<&str>> = items.iter().map(Value::as_str).collect();
                vec![lines?.join("\n")]
            }
            (Self::Checks(_), Value::Array(items)) => items.iter().map(label).collect(),
            (_, value) => vec![label(value)],
        };
        (self.read(&filled).as_ref() == Some(value)).then_some(filled)
    }
}

/// The one type that a schema asks for, besides null.
fn single_type(schema: &Value) -> Option<&str> {
    match schema.get("type")? {
        Value::String(name) => Some(name),
        Value::Array(names) => {
            let mut names = names.iter().filter_map(Value::as_str).filter(|name| *name != "null");
            names.next().filter(|_| names.next().is_none())
        }
        _ => None,
    }
}

/// A value as people read and write it.
fn label(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn option_of(options: &[Value], text: &str) -> Value {
    let found = options.iter().find(|option| label(option) == text);
    found.cloned().unwrap_or_else(|| Value::from(text))
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
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn the_schema_decides_how_an_argument_is_filled_in() {
        let enumerated = json!({"type": "string", "enum": ["a", "b"]});
        let cases = [
            (json!({"type": "string"}), Kind::Line),
            (json!({"type": "string", "maxLength": 200}), Kind::Line),
            (json!({"type": ["string", "null"], "maxLength": 1000}), Kind::Text),
            (json!({"type": "string", "format": "date"}), Kind::Date),
            (
                json!({"type": "string", "pattern": "^\\d{4}-\\d{2}-\\d{2}$"}),
                Kind::Date,
            ),
            (json!({"type": "integer"}), Kind::Number),
            (json!({"type": "number"}), Kind::Number),
            (json!({"type": "boolean"}), Kind::Switch),
            (
                json!({"type": "integer", "enum": [5, 10]}),
                Kind::Choice(vec![json!(5), json!(10)]),
            ),
            (json!({"type": "array", "items": {"type": "string"}}), Kind::Lines),
            (
                json!({"type": "array", "items": enumerated}),
                Kind::Checks(vec![json!("a"), json!("b")]),
            ),
            (json!({"type": "array", "items": {"type": "object"}}), Kind::Json),
            (json!({"type": "array"}), Kind::Json),
            (json!({"type": "object"}), Kind::Json),
            (json!({"enum": [["a"]]}), Kind::Json),
            (json!({"type": ["string", "integer"]}), Kind::Json),
            (json!(true), Kind::Json),
        ];
        for (schema, kind) in cases {
            assert_eq!(Kind::of(&schema, false), kind, "{schema}");
        }
        // A query is sent by the Enter key.
        assert_eq!(
            Kind::of(&json!({"type": "string", "maxLength": 1000}), true),
            Kind::Line
        );
    }

    #[test]
    fn what_was_filled_in_is_read_as_the_schema_means_it() {
        let read =
            |kind: Kind, texts: &[&str]| kind.read(&texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>());
        assert_eq!(read(Kind::Line, &[""]), None);
        assert_eq!(read(Kind::Line, &[" a "]), Some(json!(" a ")));
        assert_eq!(read(Kind::Text, &["a\r\nb"]), Some(json!("a\nb")));
        assert_eq!(read(Kind::Number, &[" 5 "]), Some(json!(5)));
        assert_eq!(
            read(Kind::Number, &["1000000000000000000"]),
            Some(json!(1_000_000_000_000_000_000_u64))
        );
        assert_eq!(read(Kind::Number, &["five"]), Some(json!("five")));
        assert_eq!(read(Kind::Number, &["1e999"]), Some(json!("1e999")));
        assert_eq!(read(Kind::Number, &["[1]"]), Some(json!("[1]")));
        assert_eq!(read(Kind::Switch, &["false"]), Some(json!(false)));
        assert_eq!(read(Kind::Switch, &["maybe"]), Some(json!("maybe")));
        assert_eq!(read(Kind::Choice(vec![json!(5), json!(10)]), &["10"]), Some(json!(10)));
        assert_eq!(read(Kind::Choice(vec![json!(5)]), &["6"]), Some(json!("6")));
        assert_eq!(read(Kind::Lines, &["a\r\n\r\n b", "c"]), Some(json!(["a", " b", "c"])));
        assert_eq!(read(Kind::Lines, &["\n \n"]), None);
        assert_eq!(
            read(Kind::Checks(vec![json!("a"), json!("b")]), &["b", "x"]),
            Some(json!(["b", "x"]))
        );
        assert_eq!(read(Kind::Json, &["{\"a\": [1]}"]), Some(json!({"a": [1]})));
        assert_eq!(read(Kind::Json, &["{"]), Some(json!("{")));
        assert_eq!(read(Kind::Line, &["a", "b"]), Some(json!("b")));
    }

    #[test]
    fn what_no_field_can_say_is_not_written() {
        assert_eq!(Kind::Line.write(&json!("")), None);
        assert_eq!(Kind::Line.write(&Value::Null), None);
        assert_eq!(Kind::Line.write(&json!("a\r\nb")), None);
        assert_eq!(Kind::Lines.write(&json!([])), None);
        assert_eq!(Kind::Lines.write(&json!(["a\nb"])), None);
        assert_eq!(Kind::Lines.write(&json!([1])), None);
        assert_eq!(Kind::Number.write(&json!("5")), None);
        assert_eq!(Kind::Choice(vec![json!("5"), json!(5)]).write(&json!(5)), None);
    }

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

    proptest! {
        #[test]
        fn what_a_field_says_is_read_back(text in any::<String>(), number in any::<i64>(), items in prop::collection::vec(any::<String>(), 0..4)) {
            for value in [json!(text), json!(number), json!(items), json!({"a": text})] {
                for kind in [Kind::Line, Kind::Text, Kind::Number, Kind::Lines, Kind::Json, Kind::Checks(vec![json!("a")])] {
                    if let Some(filled) = kind.write(&value) {
                        prop_assert_eq!(kind.read(&filled), Some(value.clone()));
                    }
                }
            }
            // Ordinary ones always can be said.
            if !text.is_empty() && !text.contains('\r') {
                prop_assert!(Kind::Line.write(&json!(text)).is_some());
            }
            prop_assert!(Kind::Number.write(&json!(number)).is_some());
        }
    }
}
