//! Assembles a reply from the pieces of a stream or from a complete response.
//!
//! Endpoints differ: any field of a piece may be missing, null, unknown or of another type.

use serde_json::Value;

use super::failure::{Cause, Failure};

/// Maximum length of an answer.
pub(crate) const MAX_TEXT_BYTES: usize = 100 * 1024;
/// Maximum length of a call's arguments.
pub(crate) const MAX_ARGUMENT_BYTES: usize = 64 * 1024;
/// More calls at once mean a broken model.
const MAX_CALLS: usize = 64;
const MAX_NAME_BYTES: usize = 128;

/// A tool call as the model wrote it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) arguments: String,
    /// The arguments exceed the limit.
    pub(crate) too_long: bool,
    /// The answer reached its limit during this call: the arguments may be incomplete even if they parse.
    pub(crate) cut_off: bool,
}

/// A complete reply.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) text: String,
    pub(crate) calls: Vec<Call>,
    /// The text is incomplete.
    pub(crate) cut: bool,
}

/// A reply under construction.
#[derive(Debug, Default)]
pub(super) struct Builder {
    reply: Reply,
    /// The endpoint's index of each call, parallel to `reply.calls`.
    numbers: Vec<Option<u64>>,
    /// The call that the last piece belonged to.
    writing: usize,
    /// The model stopped at its length limit.
    out_of_length: bool,
    /// The model said that it finished.
    finished: bool,
    /// The stream said that nothing follows.
    is_done: bool,
    /// Some event held a piece.
    pub(super) has_begun: bool,
}

impl Builder {
    /// Adds an event of a stream; returns the new text.
    pub(super) fn add_event(&mut self, event: &[u8]) -> Result<String, Failure> {
        self.is_done |= event.trim_ascii() == b"[DONE]";
        if self.is_done {
            return Ok(String::new());
        }
        self.has_begun = true;
        self.add(&serde_json::from_slice(event).map_err(|_| Cause::Garbage)?)
    }

    /// Whether the model has finished, or the stream has.
    pub(super) const fn is_over(&self) -> bool {
        self.is_done || self.finished
    }

    /// Adds a piece of a stream or a complete response; returns the new text.
    pub(super) fn add(&mut self, piece: &Value) -> Result<String, Failure> {
        if !piece["error"].is_null() {
            return Err(Failure::reported(piece));
        }
        let choice = &piece["choices"][0];
        if choice["index"].as_u64().is_some_and(|index| index != 0) {
            return Ok(String::new());
        }
        let said = if choice["delta"].is_object() { &choice["delta"] } else { &choice["message"] };
        let text = self.add_text(&[text_of(&said["content"]), text_of(&said["refusal"])].concat());
        for call in said["tool_calls"].as_array().into_iter().flatten() {
            self.add_call(call)?;
        }
        if let Some(reason) = choice["finish_reason"].as_str().filter(|reason| !reason.is_empty()) {
            self.finished = true;
            self.out_of_length |= reason == "length";
            self.reply.cut |= self.out_of_length;
        }
        Ok(text)
    }

    /// The text exceeded the limit: what follows is dropped.
    pub(super) const fn is_full(&self) -> bool {
        self.reply.cut && !self.finished
    }

    pub(super) fn build(mut self) -> Reply {
        if self.out_of_length || self.is_full() {
            // Pieces of several calls may come in turns.
            let last = self.reply.calls.len().saturating_sub(1);
            for at in [self.writing, last] {
                if let Some(call) = self.reply.calls.get_mut(at) {
                    call.cut_off = true;
                }
            }
        }
        self.reply
    }

    fn add_text(&mut self, more: &str) -> String {
        let room = MAX_TEXT_BYTES.saturating_sub(self.reply.text.len());
        let taken = &more[..more.floor_char_boundary(room)];
        self.reply.cut |= taken.len() < more.len();
        self.reply.text.push_str(taken);
        taken.to_owned()
    }

    fn add_call(&mut self, piece: &Value) -> Result<(), Failure> {
        let name = piece["function"]["name"].as_str().unwrap_or_default();
        let at = self.place_of(piece, name)?;
        self.writing = at;
        let Some(call) = self.reply.calls.get_mut(at) else {
            return Ok(());
        };
        if call.id.is_empty() {
            call.id.push_str(piece["id"].as_str().unwrap_or_default());
        }
        // Some endpoints repeat the name in every piece, others send it in parts.
        if call.name != name && call.name.len() + name.len() <= MAX_NAME_BYTES {
            call.name.push_str(name);
        }
        match &piece["function"]["arguments"] {
            Value::String(more) => call.add_arguments(more),
            whole @ Value::Object(_) => call.add_arguments(&whole.to_string()),
            _ => {}
        }
        Ok(())
    }

    /// The call of a piece: by index, else by id, else the last one. A piece that does not fit starts a new call, because
    /// some endpoints give every call the same index, or none.
    fn place_of(&mut self, piece: &Value, name: &str) -> Result<usize, Failure> {
        let number = piece["index"].as_u64();
        let id = piece["id"].as_str().filter(|id| !id.is_empty());
        let calls = &self.reply.calls;
        let known = match (number, id) {
            (Some(number), _) => self.numbers.iter().rposition(|known| *known == Some(number)),
            (None, Some(id)) => calls.iter().rposition(|call| call.id == id),
            (None, None) => calls.len().checked_sub(1),
        };
        if let Some(at) = known.filter(|&at| calls[at].goes_on_with(id, name, number.is_some())) {
            return Ok(at);
        }
        if calls.len() == MAX_CALLS {
            return Err(Cause::Garbage.into());
        }
        self.reply.calls.push(Call::default());
        self.numbers.push(number);
        Ok(self.reply.calls.len() - 1)
    }
}

impl Call {
    fn goes_on_with(&self, id: Option<&str>, name: &str, numbered: bool) -> bool {
        let other_id = id.is_some_and(|id| !self.id.is_empty() && self.id != id);
        let other_call = !name.is_empty() && !self.arguments.is_empty() && (!numbered || self.name != name);
        !(other_id || (id.is_none() && other_call))
    }

    fn add_arguments(&mut self, more: &str) {
        if self.arguments.len() + more.len() > MAX_ARGUMENT_BYTES {
            self.too_long = true;
        } else if !self.too_long {
            self.arguments.push_str(more);
        }
    }
}

/// Text, or the texts of a list of parts, without NUL characters.
fn text_of(content: &Value) -> String {
    let text = match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    };
    if text.contains('\0') { text.replace('\0', "") } else { text }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn built(pieces: &[Value]) -> Reply {
        let mut builder = Builder::default();
        for piece in pieces {
            builder.add(piece).expect("a piece");
        }
        builder.build()
    }

    fn calls(deltas: &[Value]) -> Vec<(String, String, String)> {
        let pieces: Vec<Value> =
            deltas.iter().map(|call| json!({"choices": [{"delta": {"tool_calls": [call]}}]})).collect();
        let all = |call: Call| (call.id, call.name, call.arguments);
        built(&pieces).calls.into_iter().map(all).collect()
    }

    fn call(id: &str, name: &str, arguments: &str) -> (String, String, String) {
        (id.into(), name.into(), arguments.into())
    }

    #[test]
    fn calls_are_split_by_index() {
        let calls = calls(&[
            json!({"index": 0, "id": "a", "type": "function", "function": {"name": "one", "arguments": ""}}),
            json!({"index": 1, "id": "b", "function": {"name": "two", "arguments": "{\"y"}}),
            json!({"index": 0, "function": {"arguments": "{\"x\":"}}),
            json!({"index": 1, "id": null, "function": {"name": null, "arguments": "\":2}"}}),
            json!({"index": 0, "id": "", "function": {"arguments": "1}"}}),
        ]);
        assert_eq!(calls, [call("a", "one", "{\"x\":1}"), call("b", "two", "{\"y\":2}")]);
    }

    #[test]
    fn equal_indexes_are_split_by_id() {
        let calls = calls(&[
            json!({"index": 0, "id": "a", "function": {"name": "one", "arguments": "{}"}}),
            json!({"index": 0, "id": "b", "function": {"name": "one", "arguments": "{}"}}),
        ]);
        assert_eq!(calls, [call("a", "one", "{}"), call("b", "one", "{}")]);
    }

    #[test]
    fn calls_without_index_are_split_by_id_or_name() {
        let calls = calls(&[
            json!({"id": "a", "function": {"name": "one", "arguments": "{\"x\":"}}),
            json!({"function": {"arguments": "1}"}}),
            json!({"id": "b", "function": {"name": "one", "arguments": {"x": 2}}}),
            json!({"function": {"name": "two", "arguments": "{}"}}),
            json!({"function": {"name": "two", "arguments": "{}"}}),
        ]);
        assert_eq!(
            calls,
            [
                call("a", "one", "{\"x\":1}"),
                call("b", "one", "{\"x\":2}"),
                call("", "two", "{}"),
                call("", "two", "{}"),
            ]
        );
    }

    #[test]
    fn repeated_name_is_not_doubled() {
        let piece =
            |arguments: &str| json!({"index": 0, "id": "a", "function": {"name": "one", "arguments": arguments}});
        assert_eq!(calls(&[piece("{"), piece("}")]), [call("a", "one", "{}")]);
    }

    #[test]
    fn malformed_fields_are_ignored() {
        let reply = built(&[
            json!({}),
            json!([]),
            json!("text"),
            json!({"choices": null, "error": null}),
            json!({"choices": [], "usage": {"total_tokens": 4}}),
            json!({"choices": [{"delta": null, "finish_reason": ""}]}),
            json!({"choices": [{"delta": {"role": "assistant", "content": null, "tool_calls": null}}]}),
            json!({"choices": [{"delta": {"content": "Hel", "reasoning_content": "hm"}, "finish_reason": null}]}),
            json!({"choices": [{"index": 1, "delta": {"content": "other"}}]}),
            json!({"choices": [{"delta": {"content": [{"type": "text", "text": "lo"}]}, "finish_reason": 7}]}),
        ]);
        assert_eq!((reply.text.as_str(), reply.calls.len(), reply.cut), ("Hello", 0, false));
    }

    #[test]
    fn unknown_finish_reason_ends_reply() {
        let mut builder = Builder::default();
        let piece = json!({"choices": [{"message": {"content": "Hi"}, "finish_reason": "eos_token"}]});
        assert_eq!(builder.add(&piece).expect("a piece"), "Hi");
        assert!(builder.finished);
    }

    #[test]
    fn text_limit_keeps_characters_whole() {
        let mut builder = Builder::default();
        let piece = json!({"choices": [{"delta": {"content": "é".repeat(MAX_TEXT_BYTES)}}]});
        builder.add(&piece).expect("a piece");
        assert!(builder.is_full());
        let reply = builder.build();
        assert_eq!((reply.text.len(), reply.cut), (MAX_TEXT_BYTES, true));
    }

    #[test]
    fn arguments_and_calls_are_bounded() {
        let long = "x".repeat(MAX_ARGUMENT_BYTES);
        let piece = |index: usize, arguments: &str| json!({"choices": [{"delta": {"tool_calls": [{"index": index, "function": {"arguments": arguments}}]}}]});
        let reply = built(&[piece(0, &long), piece(0, "y"), piece(0, "z")]);
        assert!(reply.calls[0].too_long && reply.calls[0].arguments.len() == MAX_ARGUMENT_BYTES);
        let mut builder = Builder::default();
        let refused = (0..=MAX_CALLS).find_map(|index| builder.add(&piece(index, "{}")).err());
        assert_eq!(refused.expect("a refusal").cause, Cause::Garbage);
    }

    #[test]
    fn unfinished_call_is_marked_cut_off() {
        let piece = |index: usize, arguments: &str, finish: Value| {
            json!({"choices": [{"finish_reason": finish, "delta": {
            "tool_calls": [{"index": index, "function": {"name": "one", "arguments": arguments}}]}}]})
        };
        let cut_off = |pieces: &[Value]| -> Vec<bool> { built(pieces).calls.iter().map(|call| call.cut_off).collect() };
        let null = || Value::Null;
        let two = [piece(0, "{}", null()), piece(1, "", json!("length"))];
        assert_eq!(cut_off(&two), [false, true]);
        let in_turns =
            [piece(0, "", null()), piece(1, "{}", null()), piece(2, "", null()), piece(0, "{", json!("length"))];
        assert_eq!(cut_off(&in_turns), [true, false, true]);
        assert_eq!(cut_off(&[piece(0, "{}", json!("tool_calls"))]), [false]);
        let talks = json!({"choices": [{"delta": {"content": "x".repeat(MAX_TEXT_BYTES + 1)}}]});
        assert_eq!(cut_off(&[piece(0, "", null()), talks]), [true]);
    }

    #[test]
    fn error_object_is_a_failure() {
        let error = Builder::default().add(&json!({"error": {"message": "no", "code": 503}}));
        assert_eq!(error.expect_err("an error").status, Some(503));
    }
}
