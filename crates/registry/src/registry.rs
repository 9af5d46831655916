//! The tools of one endpoint: in the order they were added, arguments checked before a call.

use std::collections::HashMap;
use std::sync::Arc;

use indexmap::IndexMap;
use jsonschema::Validator;
use serde_json::Value;
use tribune_core::{Error, JsonObject, Tool, ToolSpec};

use crate::arguments::{explain, omit_nulls};
use crate::lint;

/// A tool that cannot be offered, found before anything is served.
#[derive(Debug, thiserror::Error)]
pub enum RegistrationError {
    #[error("two tools are named `{0}`; rename the source that brings one of them")]
    Duplicate(String),
    #[error("tool `{tool}`: {}", .faults.join("; "))]
    Faulty { tool: String, faults: Vec<String> },
}

struct Entry {
    tool: Arc<dyn Tool>,
    arguments: Validator,
}

/// Insertion-ordered, because hosts show tools in the order they are listed.
#[derive(Default)]
pub struct Registry {
    entries: IndexMap<String, Entry>,
    /// Older names of tools, and the current ones.
    also_called: HashMap<String, String>,
    /// Whether the list depends on the caller, and so must not be cached for others.
    pub depends_on_caller: bool,
}

impl Registry {
    /// Adds a tool after checking it against the rules of [`lint`] and compiling its schema.
    pub fn add(&mut self, tool: Arc<dyn Tool>) -> Result<(), RegistrationError> {
        let spec = tool.spec();
        let name = spec.name.clone();
        let faulty = |faults| RegistrationError::Faulty { tool: name.clone(), faults };
        let faults = lint::faults(spec);
        if !faults.is_empty() {
            return Err(faulty(faults));
        }
        let arguments = jsonschema::draft202012::options()
            .offline()
            .build(&Value::Object(spec.input_schema.clone()))
            .map_err(|e| faulty(vec![format!("input schema: {e}")]))?;
        if self.entries.contains_key(&name) {
            return Err(RegistrationError::Duplicate(name));
        }
        for other in tool.also_called() {
            self.also_called.entry(other).or_insert_with(|| name.clone());
        }
        self.entries.insert(name, Entry { tool, arguments });
        Ok(())
    }

    pub fn tools(&self) -> impl Iterator<Item = &Arc<dyn Tool>> {
        self.entries.values().map(|entry| &entry.tool)
    }

    pub fn specs(&self) -> impl Iterator<Item = &ToolSpec> {
        self.tools().map(|tool| tool.spec())
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// The tool under `name`, ready to be called with [`Registered::prepare`]d arguments.
    pub fn lookup(&self, name: &str) -> Option<Registered<'_>> {
        let by_other_name = || self.entries.get(self.also_called.get(name)?);
        self.entries.get(name).or_else(by_other_name).map(Registered)
    }
}

/// A tool of a [`Registry`].
pub struct Registered<'a>(&'a Entry);

impl Registered<'_> {
    pub fn spec(&self) -> &ToolSpec {
        self.0.tool.spec()
    }

    pub fn tool(&self) -> &Arc<dyn Tool> {
        &self.0.tool
    }

    /// Renames aliases and checks the arguments; the error is a sentence for the model that made the call.
    pub fn prepare(&self, mut args: JsonObject) -> Result<JsonObject, Error> {
        let spec = self.spec();
        for (alias, argument) in &spec.aliases {
            if !args.contains_key(*argument)
                && let Some(value) = args.shift_remove(*alias)
            {
                args.insert((*argument).to_owned(), value);
            }
        }
        self.0.tool.normalise(&mut args);
        let mut args = Value::Object(args);
        if !self.0.arguments.is_valid(&args) {
            omit_nulls(spec, &mut args);
            if !self.0.arguments.is_valid(&args) {
                return Err(explain(spec, &self.0.arguments, &args));
            }
        }
        match args {
            Value::Object(args) => Ok(args),
            _ => Err(Error::internal("arguments changed shape while being checked")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tribune_core::{CallContext, CallDisplay, Hints, Result, ToolOutput};

    struct Echo(ToolSpec);

    #[async_trait::async_trait]
    impl Tool for Echo {
        fn spec(&self) -> &ToolSpec {
            &self.0
        }
        fn also_called(&self) -> Vec<String> {
            vec![format!("old.{}", self.0.name), "alpha".to_owned()]
        }
        async fn call(&self, args: JsonObject, _: &CallContext) -> Result<ToolOutput> {
            ToolOutput::structured(&args, 1)
        }
    }

    fn object(value: Value) -> JsonObject {
        value.as_object().cloned().expect("an object")
    }

    fn echo(name: &str) -> Arc<dyn Tool> {
        Arc::new(Echo(ToolSpec {
            name: name.to_owned(),
            title: "Echo".to_owned(),
            description: "Gives back what it is given.".to_owned(),
            input_schema: object(json!({
                "type": "object",
                "properties": {
                    "query": {"type": "string", "minLength": 1, "description": "words"},
                    "limit": {"type": "integer", "minimum": 1, "maximum": 50, "description": "how many"},
                    "since": {"type": ["string", "null"], "pattern": "^[0-9]{4}$", "description": "A year, as 2026."},
                },
                "required": ["query"],
            })),
            output_schema: object(json!({"type": "object"})),
            hints: Hints::READ,
            icon: None,
            display: CallDisplay::default(),
            aliases: vec![("q", "query")],
        }))
    }

    fn registry() -> Registry {
        let mut registry = Registry::default();
        registry.add(echo("zeta")).expect("zeta");
        registry.add(echo("alpha")).expect("alpha");
        registry
    }

    #[test]
    fn tools_keep_their_order() {
        assert_eq!(registry().names().collect::<Vec<_>>(), ["zeta", "alpha"]);
    }

    #[test]
    fn older_names_work_unlisted() {
        let registry = registry();
        let called = |name: &str| registry.lookup(name).map(|tool| tool.spec().name.clone());
        assert_eq!(called("old.zeta").as_deref(), Some("zeta"));
        // A tool's own name comes before what another is also called.
        assert_eq!(called("alpha").as_deref(), Some("alpha"));
        assert_eq!(called("old.other"), None);
        assert_eq!(registry.names().count(), 2);
    }

    #[test]
    fn duplicate_tool_is_refused() {
        let error = registry().add(echo("zeta")).expect_err("duplicate");
        assert!(matches!(error, RegistrationError::Duplicate(name) if name == "zeta"));
    }

    #[test]
    fn wrong_arguments_get_a_correct_call() {
        let registry = registry();
        let tool = registry.lookup("zeta").expect("zeta");
        let message = |args| tool.prepare(object(args)).expect_err("refused").to_string();
        assert_eq!(
            message(json!({"querry": "x"})),
            "zeta was not run: the argument `query` is missing (`querry` is not an argument). \
             Call it again with {\"query\": string, \"limit\"?: integer, \"since\"?: value}."
        );
        let misspelt = message(json!({"query": "x", "since": "last year"}));
        assert!(misspelt.contains("`since` is not written as it should be: A year, as 2026."), "{misspelt}");
        assert!(message(json!({"query": ""})).contains("at least 1 character"));
        assert!(message(json!({"query": "x", "limit": 51})).contains("`limit` must be at most 50"));
        assert!(message(json!({"query": 7})).contains("`query` has the wrong type"));
    }

    #[test]
    fn null_arguments_are_omitted_unless_allowed() {
        let registry = registry();
        let tool = registry.lookup("zeta").expect("zeta");
        let given = tool.prepare(object(json!({"query": "x", "limit": null, "since": null})));
        assert_eq!(Value::Object(given.expect("prepared")), json!({"query": "x", "since": null}));
        let nothing = tool.prepare(object(json!({"query": null}))).expect_err("refused");
        assert!(nothing.to_string().contains("`query` is missing"), "{nothing}");
    }

    #[test]
    fn alias_never_replaces_its_argument() {
        let registry = registry();
        let tool = registry.lookup("zeta").expect("zeta");
        assert_eq!(tool.prepare(object(json!({"q": "x"}))).expect("alias")["query"], "x");
        let both = tool.prepare(object(json!({"q": "x", "query": "y"}))).expect("both");
        assert_eq!(both["query"], "y");
    }
}
