//! The tool calls of one round: checked in order, run concurrently, answered in order.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::Value;
use tokio::task::JoinSet;
use tracing::Instrument;
use tribune_core::{CallContext, CallDisplay, Clock, Error, ErrorKind, JsonObject, Result, ToolOutput, ToolSpec};

use crate::chat::{Citation, Event, Events, ToolCallSummary};
use crate::confirm::{Confirmations, MAX_ASKED, MAX_NOTE_BYTES, Verdict};
use crate::model::reply::{Call, MAX_ARGUMENT_BYTES};
use crate::results::{
    MAX_PREVIEW_CHARS, add_citation, collect_citations, done_label, named_objects, preview, running_label,
};
use crate::rounds::AnsweredCall;
use crate::text::{Beginning, clip, plain};
use crate::toolbox::{ToolSet, Toolbox};

/// Maximum calls per round.
const MAX_CALLS_PER_ROUND: usize = 16;
/// Longer ids are replaced.
const MAX_ID_BYTES: usize = 64;
/// No tool has a longer name.
const MAX_NAME_CHARS: usize = 64;
/// Objects of one turn whose titles are remembered, and how much of a title a question shows.
const MAX_OBJECTS: usize = 500;
const MAX_OBJECT_CHARS: usize = 80;

const CONFIRMATION_NEEDED: &str = "CONFIRMATION NEEDED: nothing has been done, and the user is asked at the end of your \
    answer. Say what is about to be done. Call this again with the same arguments only if they agree.";
const DECLINED: &str = "NOT DONE: the user declined. Do not call this again unless they ask for it anew.";
const TOO_LONG_TO_ASK: &str = "this needs the user's confirmation, and a call of more than 4 KB cannot wait for it; \
    nothing has been done: send less";
const TOO_MANY_TO_ASK: &str = "this needs the user's confirmation, and 8 calls wait for it already; nothing has been \
    done: ask about those first";

const _: () = assert!(MAX_NOTE_BYTES == 4 * 1024 && MAX_ASKED == 8, "the sentences above say so");

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
    /// Ids and titles of the objects in the answer.
    pub(crate) objects: Vec<(String, String)>,
}

/// Runs the tool calls of one turn and keeps their outcomes.
pub(crate) struct Caller<'a> {
    toolbox: Arc<dyn Toolbox>,
    tools: Arc<ToolSet>,
    confirmations: Confirmations,
    events: &'a dyn Events,
    clock: Arc<dyn Clock>,
    max_result_chars: usize,
    done: Vec<Outcome>,
    /// Titles by id, from the answers of this turn.
    titles: HashMap<String, String>,
}

/// The tool calls of a turn, for the answer.
pub(crate) struct Work {
    pub(crate) summaries: Vec<ToolCallSummary>,
    pub(crate) citations: Vec<Citation>,
    /// Calls that wait for a confirmation.
    pub(crate) pending: Vec<String>,
}

enum Plan {
    Run(JsonObject),
    Not(Outcome),
}

type Running = JoinSet<(usize, Result<ToolOutput>)>;

impl<'a> Caller<'a> {
    pub(crate) fn new(
        toolbox: Arc<dyn Toolbox>,
        confirmations: Confirmations,
        events: &'a dyn Events,
        clock: Arc<dyn Clock>,
        max_result_chars: usize,
    ) -> Self {
        Self {
            tools: toolbox.tools(),
            toolbox,
            confirmations,
            events,
            clock,
            max_result_chars,
            done: Vec::new(),
            titles: HashMap::new(),
        }
    }

    pub(crate) fn tools(&self) -> Arc<ToolSet> {
        self.tools.clone()
    }

    /// The outcomes so far.
    pub(crate) fn outcomes(&self) -> impl Iterator<Item = &Outcome> {
        self.done.iter()
    }

    pub(crate) fn into_work(self) -> Work {
        let mut citations = Vec::new();
        let mut summaries = Vec::with_capacity(self.done.len());
        for outcome in self.done {
            summaries.push(outcome.summary);
            for citation in outcome.citations {
                add_citation(citation, &mut citations);
            }
        }
        Work { summaries, citations, pending: self.confirmations.into_asked() }
    }

    /// What the user is asked to confirm: `Delete the task "Buy milk"?`.
    pub(crate) fn questions(&self) -> Vec<String> {
        let mut questions: Vec<String> = Vec::new();
        for (tool, arguments) in self.confirmations.asked_calls() {
            let Some(spec) = self.tools.find(&tool) else { continue };
            let question = self.question(spec, &arguments);
            if !questions.contains(&question) {
                questions.push(question);
            }
        }
        questions
    }

    fn question(&self, spec: &ToolSpec, arguments: &JsonObject) -> String {
        let confirmation = spec.display.confirmation;
        let named = confirmation.and_then(|(action, argument)| {
            let value = arguments.get(argument)?;
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            // An id without a title tells a person nothing.
            let name = plain(self.titles.get(&value).unwrap_or(&value));
            let is_telling = name.chars().any(char::is_alphanumeric);
            is_telling.then(|| format!("{action} \"{}\"?", clip(&name, MAX_OBJECT_CHARS)))
        });
        named.unwrap_or_else(|| format!("{}?", plain(&spec.title)))
    }

    /// Whether one of these calls was confirmed by the user.
    pub(crate) fn uses_yes(&self, calls: &[Call]) -> bool {
        let uses = |call: &Call| arguments(call).is_ok_and(|given| self.confirmations.uses_yes(&call.name, &given));
        calls.iter().any(uses)
    }

    /// See [`Confirmations::lose_yes`].
    pub(crate) const fn lose_yes(&mut self) {
        self.confirmations.lose_yes();
    }

    /// Runs the calls of one round.
    pub(crate) async fn round(&mut self, calls: Vec<Call>, cx: &CallContext) -> Vec<AnsweredCall> {
        let first = self.done.len();
        let cx = self.context(cx);
        let mut running = Running::new();
        let mut ended = Vec::with_capacity(calls.len());
        for (at, call) in calls.iter().enumerate() {
            self.events.emit(Event::ToolStart {
                call: first + at,
                tool: shown_name(call),
                label: self.tools.find(&call.name).map_or_else(|| shown_name(call), running_label),
            });
            ended.push(match self.plan(at, call) {
                Plan::Run(arguments) => {
                    self.start(&mut running, at, call.name.clone(), arguments, &cx);
                    None
                }
                Plan::Not(outcome) => Some(self.conclude(first + at, call, outcome)),
            });
        }
        while let Some(joined) = running.join_next().await {
            let Ok((at, answer)) = joined else { continue };
            ended[at] = Some(self.conclude(first + at, &calls[at], self.outcome(&calls[at], answer)));
        }
        let ids = distinct_ids(&calls, first);
        let mut answered = Vec::with_capacity(calls.len());
        for (at, ((call, id), end)) in calls.into_iter().zip(ids).zip(ended).enumerate() {
            let mut outcome = end.unwrap_or_else(|| {
                let panicked = Error::internal("it stopped unexpectedly");
                self.conclude(first + at, &call, self.outcome(&call, Err(panicked)))
            });
            for (id, title) in std::mem::take(&mut outcome.objects) {
                if self.titles.len() < MAX_OBJECTS {
                    self.titles.insert(id, title);
                }
            }
            answered.push(AnsweredCall {
                id,
                arguments: echoed(&call),
                name: shown_name(&call),
                result: std::mem::take(&mut outcome.result),
            });
            self.done.push(outcome);
        }
        answered
    }

    /// Tools get three quarters of the remaining time, so that the model can still answer.
    fn context(&self, cx: &CallContext) -> CallContext {
        let now = self.clock.monotonic();
        cx.until(now + cx.time_left(now) / 4 * 3)
    }

    fn plan(&mut self, at: usize, call: &Call) -> Plan {
        if at >= MAX_CALLS_PER_ROUND {
            let most = format!("at most {MAX_CALLS_PER_ROUND} calls run at once; repeat the others afterwards");
            return Plan::Not(Outcome::error(&most));
        }
        let Some(spec) = self.tools.find(&call.name) else {
            let names: Vec<&str> = self.tools.specs().iter().map(|spec| spec.name.as_str()).collect();
            let available = format!("error: unknown tool; available: {}", names.join(", "));
            return Plan::Not(Outcome::not_run(&available, "unknown tool"));
        };
        let arguments = match arguments(call) {
            Ok(arguments) => arguments,
            Err(wrong) => return Plan::Not(Outcome::error(wrong)),
        };
        if !spec.hints.destructive || spec.hints.read_only {
            return Plan::Run(arguments);
        }
        match self.confirmations.decide(&call.name, &arguments) {
            Verdict::Run => Plan::Run(arguments),
            Verdict::Ask => {
                let mut waiting = Outcome::not_run(CONFIRMATION_NEEDED, "needs your confirmation");
                waiting.summary.needs_confirmation = true;
                Plan::Not(waiting)
            }
            Verdict::Refused => Plan::Not(Outcome::not_run(DECLINED, "not done: you declined")),
            Verdict::TooLong => Plan::Not(Outcome::error(TOO_LONG_TO_ASK)),
            Verdict::TooMany => Plan::Not(Outcome::error(TOO_MANY_TO_ASK)),
        }
    }

    fn start(&self, running: &mut Running, at: usize, tool: String, arguments: JsonObject, cx: &CallContext) {
        let toolbox = Arc::clone(&self.toolbox);
        let left = cx.time_left(self.clock.monotonic());
        let mut cx = cx.clone();
        cx.cancel = cx.cancel.child_token();
        let call = async move {
            let _stop_what_it_started = cx.cancel.clone().drop_guard();
            let answer = tokio::time::timeout(left, toolbox.call(&tool, arguments, &cx)).await;
            (at, answer.unwrap_or_else(|_| Err(out_of_time())))
        };
        running.spawn(call.in_current_span());
    }

    fn outcome(&self, call: &Call, answer: Result<ToolOutput>) -> Outcome {
        let display = self.tools.find(&call.name).map(|spec| spec.display.clone());
        Outcome::new(answer, &display.unwrap_or_default(), self.max_result_chars)
    }

    /// Completes the summary and reports the end of the call.
    fn conclude(&self, number: usize, call: &Call, mut outcome: Outcome) -> Outcome {
        let spec = self.tools.find(&call.name);
        outcome.read_only = spec.is_some_and(|spec| spec.hints.read_only);
        outcome.summary.tool = shown_name(call);
        outcome.summary.label = match spec {
            Some(spec) if outcome.summary.success => done_label(spec),
            Some(spec) => plain(&spec.title),
            None => shown_name(call),
        };
        self.events.emit(Event::ToolEnd { call: number, summary: outcome.summary.clone() });
        outcome
    }
}

impl Outcome {
    /// Keeps only what is needed of an answer: there may be many, and long ones.
    fn new(answer: Result<ToolOutput>, display: &CallDisplay, max_result_chars: usize) -> Self {
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
        let objects = named_objects(&json).take(MAX_OBJECTS);
        let objects = objects.map(|(id, title)| (id.to_owned(), clip(title, MAX_OBJECT_CHARS)));
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
            objects: objects.collect(),
        }
    }

    /// A call that did not run because of the model's input.
    fn error(message: &str) -> Self {
        Self::not_run(&format!("error: {message}"), &clip(&plain(message), MAX_PREVIEW_CHARS))
    }

    fn not_run(result: &str, preview: &str) -> Self {
        Self {
            summary: ToolCallSummary { result_preview: Some(preview.to_owned()), ..ToolCallSummary::default() },
            result: Beginning::of(result, usize::MAX),
            ..Self::default()
        }
    }
}

fn out_of_time() -> Error {
    let message = "the call timed out; it may have been done";
    Error::new(ErrorKind::DeadlineExceeded, message)
}

/// The arguments of a call; empty input is an empty object.
fn arguments(call: &Call) -> Result<JsonObject, &'static str> {
    if call.cut_off {
        return Err("the call was cut off because the answer was too long; repeat it with less text");
    }
    if call.too_long {
        return Err("the arguments are longer than 64 KB; send less");
    }
    if call.arguments.trim().is_empty() {
        return Ok(JsonObject::new());
    }
    match serde_json::from_str(&call.arguments) {
        Ok(Value::Object(arguments)) => Ok(arguments),
        Ok(_) => Err("the arguments are not a JSON object; send one, for example {\"name\": \"value\"}"),
        Err(_) => Err("the arguments are not valid JSON; send one JSON object"),
    }
}

const _: () = assert!(MAX_ARGUMENT_BYTES == 64 * 1024, "the sentence above says so");

/// The arguments as the model sees them again. Invalid ones become an empty object: some servers fail on anything else
/// in their own history, and the result says what was wrong.
fn echoed(call: &Call) -> String {
    match arguments(call) {
        Ok(_) if !call.arguments.trim().is_empty() => call.arguments.clone(),
        _ => "{}".to_owned(),
    }
}

fn shown_name(call: &Call) -> String {
    clip(&plain(&call.name), MAX_NAME_CHARS)
}

/// The ids of the calls; missing, duplicate and too long ones are replaced.
fn distinct_ids(calls: &[Call], first: usize) -> Vec<String> {
    let mut seen = HashSet::new();
    let id = |(at, call): (usize, &Call)| {
        let fit = !call.id.is_empty() && call.id.len() <= MAX_ID_BYTES && seen.insert(call.id.clone());
        if fit { call.id.clone() } else { format!("tribune_{}", first + at) }
    };
    calls.iter().enumerate().map(id).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(id: &str, arguments: &str) -> Call {
        Call { id: id.into(), name: "look".into(), arguments: arguments.into(), too_long: false, cut_off: false }
    }

    #[test]
    fn arguments_are_one_object_or_empty() {
        assert_eq!(arguments(&call("", " ")), Ok(JsonObject::new()));
        assert_eq!(arguments(&call("", "{}")), Ok(JsonObject::new()));
        assert!(arguments(&call("", "{\"a\":1}")).is_ok_and(|object| object["a"] == 1));
        for wrong in ["[]", "null", "\"x\"", "{\"a\":", "{} {}"] {
            assert!(arguments(&call("", wrong)).is_err(), "{wrong}");
            assert_eq!(echoed(&call("", wrong)), "{}");
        }
        assert_eq!(echoed(&call("", "{ \"a\": 1 }")), "{ \"a\": 1 }");
        let cut_off = Call { cut_off: true, ..call("", "") };
        assert!(arguments(&cut_off).is_err_and(|wrong| wrong.contains("was cut off")));
    }

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

    #[test]
    fn every_call_of_a_round_has_a_distinct_id() {
        let calls = [call("a", ""), call("a", ""), call("", ""), call(&"x".repeat(65), "")];
        assert_eq!(distinct_ids(&calls, 4), ["a", "tribune_5", "tribune_6", "tribune_7"]);
    }
}
