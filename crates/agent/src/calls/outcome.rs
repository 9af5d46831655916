//! What became of a call: for the person, for the model, and for the trace of the turn.

use serde_json::Value;
use tribune_core::{CallDisplay, Result, ToolOutput};

use crate::chat::{Citation, ToolCallSummary};
use crate::results::{MAX_PREVIEW_CHARS, collect_citations, object_ids, preview};
use crate::text::{Beginning, clip, plain};
use crate::toolbox::ToolSet;

/// The trace of a turn, and the ids of each call in it.
const MAX_TRACE_CHARS: usize = 1000;
const MAX_TRACED_IDS: usize = 5;
const REPEATED: &str = "[You made this call already in this turn. It did not run again; this is what it answered.]";

/// The outcome of a call.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outcome {
    /// For a person.
    pub(crate) summary: ToolCallSummary,
    /// For the model, already cut.
    pub(crate) result: Beginning,
    /// Whether the tool ran, successfully or not.
    pub(crate) ran: bool,
    /// Whether the tool only reads.
    pub(crate) read_only: bool,
    pub(crate) citations: Vec<Citation>,
    /// Some ids of the objects in the answer.
    pub(crate) ids: Vec<String>,
}

impl Outcome {
    /// Keeps only what is needed of an answer: there may be many, and long ones.
    pub(super) fn new(answer: Result<ToolOutput>, display: &CallDisplay, max_result_chars: usize) -> Self {
        let output = match answer {
            Ok(output) => output,
            Err(error) => {
                let message = clip(error.message(), max_result_chars);
                return Self { ran: true, ..Self::error(&message) };
            }
        };
        let json: Value = serde_json::from_str(output.json()).unwrap_or(Value::Null);
        let mut citations = Vec::new();
        if !display.is_uncitable {
            collect_citations(&json, &mut citations);
        }
        Self {
            summary: ToolCallSummary {
                success: true,
                result_preview: Some(preview(&output, &json, display.items)),
                ..ToolCallSummary::default()
            },
            result: Beginning::of(output.text(), max_result_chars),
            ran: true,
            read_only: false,
            citations,
            ids: object_ids(&json).take(MAX_TRACED_IDS).map(str::to_owned).collect(),
        }
    }

    /// A call that did not run because of the model's input.
    pub(super) fn error(message: &str) -> Self {
        Self::not_run(&format!("error: {message}"), &clip(&plain(message), MAX_PREVIEW_CHARS))
    }

    /// For a call that was made before.
    pub(super) fn repeated(&self) -> Self {
        let result = format!("{REPEATED}\n{}", self.result.cut(usize::MAX));
        let result = Beginning::of(&result, usize::MAX);
        Self { result, citations: Vec::new(), ids: Vec::new(), ..self.clone() }
    }

    pub(super) fn not_run(result: &str, preview: &str) -> Self {
        Self {
            summary: ToolCallSummary { result_preview: Some(preview.to_owned()), ..ToolCallSummary::default() },
            result: Beginning::of(result, usize::MAX),
            ..Self::default()
        }
    }
}

/// The calls of a turn to these tools, without what they were about.
pub(super) fn trace(done: &[Outcome], tools: &ToolSet) -> String {
    let line = |outcome: &Outcome| {
        let ended = match &outcome.summary {
            summary if summary.success => "done",
            summary if summary.needs_confirmation => "not run, the user is asked",
            _ if outcome.ran => "failed",
            _ => "not run",
        };
        let ids = if outcome.ids.is_empty() { String::new() } else { format!(" ({})", outcome.ids.join(", ")) };
        format!("{}: {ended}{ids}", outcome.summary.tool)
    };
    // The name of a tool that does not exist is any text.
    let known = done.iter().filter(|outcome| tools.find(&outcome.summary.tool).is_some());
    clip(&known.map(line).collect::<Vec<_>>().join("; "), MAX_TRACE_CHARS)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tribune_core::Error;

    use super::*;

    #[test]
    fn long_answer_is_cut() {
        let filler = "é".repeat(100_000);
        let found = json!({"results": [{"title": "Beans", "url": "https://example.org/beans", "text": filler}]});
        let output = ToolOutput::structured(&found, 1).expect("an answer");
        let outcome = Outcome::new(Ok(output), &CallDisplay::default(), 50);
        assert_eq!(outcome.result.chars(), 50);
        // The whole is 100,000 characters and {"results":[{"title":"Beans","url":"https://example.org/beans","text":""}]}.
        assert!(outcome.result.cut(50).ends_with("\n[cut here: 100025 more characters]"));
        assert_eq!(outcome.summary.result_preview.as_deref(), Some("1 result"));
        assert_eq!(outcome.citations.len(), 1);

        let failed = Outcome::new(Err(Error::unavailable(filler)), &CallDisplay::default(), 50);
        assert_eq!(failed.result.chars(), "error: ".len() + 50);
    }
}
