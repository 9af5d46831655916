//! How an argument is entered: from its schema to a kind of field, and between text and values.

use serde_json::Value;

/// More options than this are easier to type than to tick.
const MAX_CHECKS: usize = 12;
/// Longer texts get several lines. Required ones stay on one line up to a higher limit: a query, an id or a title is
/// sent with the Enter key.
const LONG_CHARS: u64 = 200;
const LONG_REQUIRED_CHARS: u64 = 1_000;

/// A kind of form field.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    Line,
    Text,
    Date,
    Number,
    Switch,
    Choice(Vec<Value>),
    /// Texts, one per line.
    Lines,
    /// Any of a few options.
    Checks(Vec<Value>),
    /// Everything else.
    Json,
}

impl Kind {
    pub(super) fn new(schema: &Value, is_required: bool) -> Self {
        if let Some(options) = schema.get("enum").and_then(Value::as_array) {
            let all_plain = options.iter().all(|option| !option.is_object() && !option.is_array());
            return if all_plain {
                Self::Choice(options.clone())
            } else {
                Self::Json
            };
        }
        match single_type(schema) {
            Some("string") => Self::for_text(schema, is_required),
            Some("integer" | "number") => Self::Number,
            Some("boolean") => Self::Switch,
            Some("array") => match schema.get("items").map(|items| Self::new(items, true)) {
                Some(Self::Choice(options)) if options.len() <= MAX_CHECKS => Self::Checks(options),
                Some(Self::Choice(options)) if options.iter().all(Value::is_string) => Self::Lines,
                Some(Self::Line | Self::Text | Self::Date) => Self::Lines,
                _ => Self::Json,
            },
            _ => Self::Json,
        }
    }

    fn for_text(schema: &Value, is_required: bool) -> Self {
        let word = |keyword: &str| schema.get(keyword).and_then(Value::as_str);
        if word("format") == Some("date") || word("pattern") == Some(r"^\d{4}-\d{2}-\d{2}$") {
            return Self::Date;
        }
        let most = schema.get("maxLength").and_then(Value::as_u64).unwrap_or(0);
        let long = if is_required { LONG_REQUIRED_CHARS } else { LONG_CHARS };
        if most > long { Self::Text } else { Self::Line }
    }

    /// The value of the input; `None` if it is empty. Input that does not fit stays text, and the tool says what is wrong.
    pub(super) fn read(&self, input: &[String]) -> Option<Value> {
        let given: Vec<&str> = input
            .iter()
            .map(String::as_str)
            .filter(|text| !text.is_empty())
            .collect();
        // The last one of several counts.
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
            Self::Choice(options) => find_option(options, last),
            Self::Lines => {
                let lines = given.iter().flat_map(|text| text.split('\n'));
                let lines = lines.map(|line| line.trim_end_matches('\r'));
                let lines: Vec<Value> = lines.filter(|line| !line.trim().is_empty()).map(Value::from).collect();
                return (!lines.is_empty()).then_some(Value::Array(lines));
            }
            Self::Checks(options) => given.iter().map(|text| find_option(options, text)).collect(),
            Self::Json => serde_json::from_str(last).unwrap_or_else(|_| as_text()),
        })
    }

    /// The input for `value`; `None` if the field cannot express it.
    pub(super) fn write(&self, value: &Value) -> Option<Vec<String>> {
        let input = match (self, value) {
            (Self::Json, value) => vec![value.to_string()],
            (Self::Lines, Value::Array(items)) => {
                let lines: Option<Vec<&str>> = items.iter().map(Value::as_str).collect();
                vec![lines?.join("\n")]
            }
            (Self::Checks(_), Value::Array(items)) => items.iter().map(label).collect(),
            (_, value) => vec![label(value)],
        };
        (self.read(&input).as_ref() == Some(value)).then_some(input)
    }
}

/// The only type of a schema besides null.
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

/// A value as text.
pub(super) fn label(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn find_option(options: &[Value], text: &str) -> Value {
    let found = options.iter().find(|option| label(option) == text);
    found.cloned().unwrap_or_else(|| Value::from(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn schema_decides_the_kind() {
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
            assert_eq!(Kind::new(&schema, false), kind, "{schema}");
        }
        // A query is sent by the Enter key.
        assert_eq!(
            Kind::new(&json!({"type": "string", "maxLength": 1000}), true),
            Kind::Line
        );
    }

    #[test]
    fn input_is_read_by_kind() {
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
    fn inexpressible_values_are_not_written() {
        assert_eq!(Kind::Line.write(&json!("")), None);
        assert_eq!(Kind::Line.write(&Value::Null), None);
        assert_eq!(Kind::Line.write(&json!("a\r\nb")), None);
        assert_eq!(Kind::Lines.write(&json!([])), None);
        assert_eq!(Kind::Lines.write(&json!(["a\nb"])), None);
        assert_eq!(Kind::Lines.write(&json!([1])), None);
        assert_eq!(Kind::Number.write(&json!("5")), None);
        assert_eq!(Kind::Choice(vec![json!("5"), json!(5)]).write(&json!(5)), None);
    }

    proptest! {
        #[test]
        fn written_values_read_back(text in any::<String>(), number in any::<i64>(), items in prop::collection::vec(any::<String>(), 0..4)) {
            for value in [json!(text), json!(number), json!(items), json!({"a": text})] {
                for kind in [Kind::Line, Kind::Text, Kind::Number, Kind::Lines, Kind::Json, Kind::Checks(vec![json!("a")])] {
                    if let Some(input) = kind.write(&value) {
                        prop_assert_eq!(kind.read(&input), Some(value.clone()));
                    }
                }
            }
            // Ordinary values are always expressible.
            if !text.is_empty() && !text.contains('\r') {
                prop_assert!(Kind::Line.write(&json!(text)).is_some());
            }
            prop_assert!(Kind::Number.write(&json!(number)).is_some());
        }
    }
}
