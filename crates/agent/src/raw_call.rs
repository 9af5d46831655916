//! Recognises a tool call that a model wrote as text instead of making it, as small models do.

use serde_json::Value;

use crate::toolbox::ToolSet;

/// What models begin such a call with.
const TAGS: [&str; 9] = [
    "<tool_call",
    "<|tool_call",
    "<｜tool▁call",
    "<tool_use",
    "<function_call",
    "<function=",
    "<invoke",
    "<|python_tag|>",
    "[TOOL_CALLS]",
];
const ARGUMENTS: [&str; 5] = ["arguments", "parameters", "args", "input", "action_input"];
const NAMES: [&str; 5] = ["name", "function", "tool", "tool_name", "action"];

/// Whether a text that begins like this may turn out to be a call, so that it is not shown before it is complete.
pub(crate) fn may_become(text: &str) -> bool {
    text.trim_start().chars().next().is_none_or(|first| "{[<`".contains(first))
}

/// Whether an answer holds a call as text: a tag at the beginning of a line, JSON that names one of the tools, perhaps
/// after words on its line, or nothing but `tool(…)`.
pub(crate) fn is_raw_call(answer: &str, tools: &ToolSet) -> bool {
    let lines = answer.lines().map(str::trim_start);
    let has_tag = lines.clone().any(|line| TAGS.iter().any(|tag| line.starts_with(tag)));
    has_tag || lines.clone().any(|line| has_json_call(answer, line, tools)) || is_code_call(answer, tools)
}

/// `line` is a part of `answer`; the JSON that begins in it may have more lines.
fn has_json_call(answer: &str, line: &str, tools: &ToolSet) -> bool {
    let begins = if line.starts_with('[') { Some(0) } else { line.find('{') };
    let Some(begins) = begins else {
        return false;
    };
    let from = line.as_ptr() as usize - answer.as_ptr() as usize + begins;
    let value = serde_json::Deserializer::from_str(&answer[from..]).into_iter::<Value>().next();
    value.and_then(Result::ok).is_some_and(|value| is_call(&value, tools))
}

fn is_call(value: &Value, tools: &ToolSet) -> bool {
    match value {
        Value::Array(calls) => !calls.is_empty() && calls.iter().all(|call| is_call(call, tools)),
        // What a tool is, not a call of it.
        Value::Object(fields) if fields.contains_key("description") => false,
        Value::Object(fields) => {
            let nested = ["function", "tool_calls", "tool_call", "function_call"];
            let has = |names: &[&str]| names.iter().any(|name| fields.contains_key(*name));
            let names_a_tool = NAMES.iter().any(|name| fields.get(*name).is_some_and(|value| is_tool(value, tools)));
            names_a_tool && (has(&ARGUMENTS) || fields.len() == 1)
                || nested.iter().filter_map(|name| fields.get(*name)).any(|value| is_call(value, tools))
        }
        _ => false,
    }
}

fn is_tool(value: &Value, tools: &ToolSet) -> bool {
    value.as_str().is_some_and(|name| tools.find(name.strip_prefix("functions.").unwrap_or(name)).is_some())
}

/// `delete_task(task_id="…")`, perhaps in brackets or marked as code.
fn is_code_call(answer: &str, tools: &ToolSet) -> bool {
    let code = answer.trim().trim_matches(['`', '[', ']', '\n']);
    let name = code.ends_with(')').then(|| code.split('(').next()).flatten();
    name.is_some_and(|name| tools.find(name.strip_prefix("functions.").unwrap_or(name)).is_some())
}

#[cfg(test)]
mod tests {
    use tribune_core::{CallDisplay, Hints, JsonObject, ToolSpec};

    use super::*;

    fn tools() -> ToolSet {
        ToolSet::new(vec![ToolSpec {
            name: "delete_task".into(),
            title: "Delete a task".into(),
            description: String::new(),
            input_schema: JsonObject::new(),
            output_schema: JsonObject::new(),
            hints: Hints::READ,
            icon: None,
            display: CallDisplay::default(),
            aliases: Vec::new(),
        }])
    }

    #[test]
    fn written_calls_are_recognised() {
        for raw in [
            r#"{"name": "delete_task", "arguments": {"task_id": "1"}}"#,
            r#"{"name": "delete_task", "parameters": {}}"#,
            r#"{"name": "delete_task"}"#,
            r#"{"tool": "delete_task", "args": {}}"#,
            r#"{"action": "delete_task", "action_input": "1"}"#,
            r#"{"type": "function", "function": {"name": "delete_task", "arguments": "{}"}}"#,
            r#"{"tool_calls": [{"name": "delete_task", "arguments": {}}]}"#,
            r#"[{"name": "functions.delete_task", "arguments": {}}]"#,
            "{\n  \"name\": \"delete_task\",\n  \"arguments\": {}\n}\n{\"name\": \"x\"}",
            "I will delete it.\n```json\n{\"name\": \"delete_task\", \"arguments\": {}}\n```",
            "<tool_call>\n{\"name\": \"unknown\", \"arguments\": {}}\n</tool_call>",
            "One moment.\n<tool_call>{}",
            "<function=delete_task>{}</function>",
            "[TOOL_CALLS][{\"name\": \"x\"}]",
            "<|python_tag|>delete_task.call()",
            "Sure:  {\"name\": \"delete_task\", \"arguments\": {\n\"task_id\": \"1\"}}",
            "delete_task(task_id=\"1\")",
            "```\n[delete_task(task_id=\"1\")]\n```",
        ] {
            assert!(is_raw_call(raw, &tools()), "{raw}");
        }
    }

    #[test]
    fn answers_are_no_calls() {
        for answer in [
            "",
            "Done: \"Buy milk\" is deleted.",
            "[The note](https://example.org/note) says so.",
            r#"{"name": "Ann", "arguments": {}}"#,
            r#"{"name": "delete_task", "description": "deletes a task"}"#,
            r#"[{"type": "function", "function": {"name": "delete_task", "description": "", "parameters": {}}}]"#,
            "```json\n{\"title\": \"Buy milk\"}\n```",
            "A model writes `<tool_call>` before a call.",
            "[] {} <b>",
            "The set {1, 2} has {\"name\": \"Ann\"} in it.",
            "I use delete_task(task_id) for that (sometimes)",
        ] {
            assert!(!is_raw_call(answer, &tools()), "{answer}");
        }
    }
}
