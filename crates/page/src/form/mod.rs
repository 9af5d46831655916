//! From a schema of arguments to a form, and from its input to arguments. Each argument is a query parameter, so that an
//! address is a call.

mod field;

use indexmap::IndexMap;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::{Map, Value};

use field::Field;
pub use field::FilledField;

type JsonObject = Map<String, Value>;

/// More than any tool has arguments.
const MAX_PARAMETERS: usize = 200;
/// Leaves readable characters in queries unescaped.
const ESCAPED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b':').remove(b'/').remove(b',');

/// Parameters that are not arguments. An argument of one of these names can be given as JSON.
///
/// Runs a call that has no arguments.
const RUN: &str = "run";
/// All arguments at once.
const JSON: &str = "json";
/// Confirms a change.
const CONFIRM: &str = "confirm";

/// The form of a schema.
pub struct Form {
    /// Required arguments come first.
    fields: Vec<Field>,
    /// Other names for arguments: `(alias, argument)`.
    aliases: Vec<(&'static str, &'static str)>,
}

/// The input of a form.
#[derive(Debug)]
pub struct Input {
    /// The texts of each field, by name.
    texts: IndexMap<String, Vec<String>>,
    /// All arguments as JSON, instead.
    pub json: Option<String>,
    /// The arguments, or why the input is invalid.
    pub arguments: Result<JsonObject, String>,
    /// Whether a call is requested, and not only the form.
    pub is_call: bool,
    pub is_confirmed: bool,
}

impl Form {
    pub fn new(schema: &JsonObject, aliases: &[(&'static str, &'static str)]) -> Self {
        let required = schema.get("required").and_then(|required| required.as_array());
        let is_required = |name: &str| required.is_some_and(|required| required.iter().any(|other| other == name));
        let properties = schema.get("properties").and_then(|properties| properties.as_object());
        let mut fields: Vec<Field> = properties
            .into_iter()
            .flatten()
            .map(|(name, schema)| Field::new(name, schema, is_required(name)))
            .collect();
        fields.sort_by_key(|field| !field.is_required);
        Self { fields, aliases: aliases.to_vec() }
    }

    pub fn needs_arguments(&self) -> bool {
        self.fields.iter().any(|field| field.is_required)
    }

    fn field(&self, name: &str) -> Field {
        let known = self.fields.iter().find(|field| field.name == name);
        known.cloned().unwrap_or_else(|| Field::unknown(name))
    }

    /// Reads the query of an address, or the body of a form.
    pub fn read(&self, sent: &str) -> Input {
        self.read_parameters(decoded(sent))
    }

    fn read_parameters(&self, parameters: impl Iterator<Item = (String, String)>) -> Input {
        let mut input = Input {
            texts: IndexMap::new(),
            json: None,
            arguments: Ok(JsonObject::new()),
            is_call: false,
            is_confirmed: false,
        };
        for (count, (name, text)) in parameters.enumerate() {
            if count >= MAX_PARAMETERS {
                input.arguments = Err(format!("More than {MAX_PARAMETERS} parameters; send fewer."));
                return input;
            }
            input.is_call = true;
            match name.as_str() {
                RUN => {}
                CONFIRM => input.is_confirmed = text == "yes",
                JSON => input.json = Some(text).filter(|text| !text.trim().is_empty()),
                // Calls accept aliases, too.
                name => {
                    let alias = self.aliases.iter().find(|(alias, _)| *alias == name);
                    let name = alias.map_or(name, |(_, argument)| *argument);
                    input.texts.entry(name.to_owned()).or_default().push(text);
                }
            }
        }
        input.texts.retain(|_, texts| texts.iter().any(|text| !text.is_empty()));
        input.arguments = self.arguments(&input);
        input
    }

    fn arguments(&self, input: &Input) -> Result<JsonObject, String> {
        let Some(json) = &input.json else {
            let values = input.texts.iter();
            return Ok(values
                .filter_map(|(name, texts)| Some((name.clone(), self.field(name).read(texts)?)))
                .collect());
        };
        if !input.texts.is_empty() {
            return Err("Arguments were sent twice, as fields and as JSON; send one of them.".to_owned());
        }
        serde_json::from_str(json)
            .map_err(|error| format!("Not a JSON object: {error}; write {{\"argument\": value, …}}"))
    }

    /// The parameters of a call: one for each argument, or all as JSON if a field cannot express its value.
    pub fn parameters(&self, arguments: &JsonObject) -> Vec<(String, String)> {
        if arguments.is_empty() {
            return vec![(RUN.to_owned(), "1".to_owned())];
        }
        let mut parameters = Vec::new();
        for (name, value) in arguments {
            let texts = self.field(name).write(value).into_iter();
            parameters.extend(texts.map(|text| (name.clone(), text)));
        }
        if self.read_parameters(parameters.iter().cloned()).arguments.as_ref() == Ok(arguments) {
            return parameters;
        }
        vec![(JSON.to_owned(), serde_json::to_string(arguments).unwrap_or_default())]
    }

    /// The same as a query string.
    pub fn query(&self, arguments: &JsonObject) -> String {
        let escaped = |text: &str| utf8_percent_encode(text, ESCAPED).to_string();
        let parameters = self.parameters(arguments);
        let parameters = parameters.iter().map(|(name, text)| format!("{}={}", escaped(name), escaped(text)));
        parameters.collect::<Vec<_>>().join("&")
    }

    /// The fields with their input, unknown ones last.
    pub fn filled(&self, input: &Input) -> Vec<FilledField> {
        let mut given = input.texts.clone();
        if let (Some(_), Ok(arguments)) = (&input.json, &input.arguments) {
            given.extend(arguments.iter().map(|(name, value)| (name.clone(), self.field(name).write(value))));
        }
        let is_unknown = |name: &&String| self.fields.iter().all(|field| field.name != **name);
        let unknown: Vec<Field> = given.keys().filter(is_unknown).map(|name| Field::unknown(name)).collect();
        let all = self.fields.iter().chain(&unknown);
        all.map(|field| field.filled(given.get(&field.name).map_or(&[], Vec::as_slice))).collect()
    }
}

/// Decoded names and values.
fn decoded(sent: &str) -> impl Iterator<Item = (String, String)> + '_ {
    let plain = |text: &str| percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned();
    sent.split('&').filter(|pair| !pair.is_empty()).map(move |pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (plain(name), plain(value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn form_of(properties: Value) -> Form {
        let schema = json!({"type": "object", "properties": properties, "required": ["query"]});
        Form::new(schema.as_object().expect("an object"), &[("q", "query")])
    }

    fn form() -> Form {
        form_of(json!({
            "limit": {"type": "integer", "description": "how many"},
            "query": {"type": "string", "description": "words"},
            "tags": {"type": "array", "items": {"type": "string"}, "description": "tags"},
            "deep": {"type": "boolean", "description": "whether"},
            "filter": {"type": "object", "description": "what"},
        }))
    }

    #[test]
    fn address_is_a_call() {
        let form = form();
        let input = form.read("query=runner+beans%21&limit=5&tags=a%0D%0Ab&deep=true&filter=%7B%22a%22%3A1%7D");
        let arguments = input.arguments.expect("arguments");
        let expected =
            json!({"query": "runner beans!", "limit": 5, "tags": ["a", "b"], "deep": true, "filter": {"a": 1}});
        assert_eq!(Value::from(arguments.clone()), expected);
        assert!(input.is_call);
        assert_eq!(
            form.query(&arguments),
            "query=runner%20beans%21&limit=5&tags=a%0Ab&deep=true&filter=%7B%22a%22:1%7D"
        );
    }

    #[test]
    fn empty_fields_are_omitted() {
        let input = form().read("query=&limit=&deep=");
        assert_eq!(input.arguments, Ok(JsonObject::new()));
        assert!(input.is_call);
        let nothing = form().read("");
        assert!(!nothing.is_call);
        assert_eq!(form().query(&JsonObject::new()), "run=1");
        assert!(form().read("run=1").is_call);
    }

    #[test]
    fn arguments_can_be_json() {
        let input = form().read("json=%7B%22query%22%3A+null%7D");
        assert_eq!(input.arguments.map(Value::from), Ok(json!({"query": null})));
        let twice = form().read("json=%7B%7D&query=x").arguments.expect_err("both");
        assert!(twice.contains("twice"), "{twice}");
        for wrong in ["json=%5B1%5D", "json=x", "json=%7B"] {
            let error = form().read(wrong).arguments.expect_err(wrong);
            assert!(error.starts_with("Not a JSON object"), "{error}");
        }
    }

    #[test]
    fn aliases_are_resolved_and_unknown_names_kept() {
        let input = form().read("q=beans&querry=x");
        assert_eq!(
            input.arguments.as_ref().map(|a| Value::from(a.clone())),
            Ok(json!({"query": "beans", "querry": "x"}))
        );
        assert_eq!(form().filled(&input).len(), 6);
    }

    #[test]
    fn arguments_named_like_our_parameters_are_json() {
        let form = form_of(json!({"query": {"type": "string"}, "run": {"type": "integer"}}));
        let arguments = JsonObject::from_iter([("run".to_owned(), json!(3))]);
        assert_eq!(form.query(&arguments), "json=%7B%22run%22:3%7D");
    }

    #[test]
    fn parameters_are_limited() {
        let many = "a=1&".repeat(MAX_PARAMETERS + 1);
        assert!(form().read(&many).arguments.is_err());
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(2, 8, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::vec((any::<String>(), inner), 0..3)
                    .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn every_call_round_trips_through_its_address(values in prop::collection::vec(any_json(), 5), other in any::<String>(), text in any::<String>()) {
            let names = ["query", "limit", "tags", "deep", "filter"];
            let mut arguments: JsonObject = names.map(str::to_owned).into_iter().zip(values).collect();
            arguments.insert(other, Value::from(text));
            let form = form();
            let read = form.read(&form.query(&arguments));
            prop_assert_eq!(read.arguments, Ok(arguments));
        }

        #[test]
        fn any_query_can_be_read(sent in any::<String>()) {
            let form = form();
            let input = form.read(&sent);
            prop_assert!(form.filled(&input).len() >= 5);
        }
    }
}
