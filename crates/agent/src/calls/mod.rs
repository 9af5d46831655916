//! The tool calls of one round: checked in order, run concurrently, answered in order.
//!
//! - `input`: what the model wrote;
//! - `outcome`: what became of a call.

mod input;
mod outcome;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use tokio::task::JoinSet;
use tracing::Instrument;
use tribune_core::{CallContext, Clock, Error, ErrorKind, JsonObject, Result, ToolOutput};
use tribune_storage::MAX_PENDING_CALLS;

use crate::chat::{Citation, Event, Events, ToolCallSummary};
use crate::confirm::{Decided, HeldCall, MAX_CALL_BYTES, ask, question};
use crate::model::reply::Call;
use crate::results::{add_citation, done_label, running_label};
use crate::rounds::AnsweredCall;
use crate::text::{clip, plain};
use crate::toolbox::{ToolSet, Toolbox};
use input::{arguments, distinct_ids, echoed, shown_name, signature};
pub(crate) use outcome::Outcome;
use outcome::trace;

/// Maximum calls per round.
const MAX_CALLS_PER_ROUND: usize = 16;

const DECLINED: &str = "NOT DONE: the user declined. Do not call this again unless they ask for it anew.";
const TOO_LONG_TO_ASK: &str = "this needs the user's confirmation, and a call of more than 4 KB cannot wait for it; \
    nothing has been done: send less";
const TOO_MANY_TO_ASK: &str = "this needs the user's confirmation, and 8 calls wait for it already; nothing has been \
    done: ask about those first";

const _: () = assert!(MAX_CALL_BYTES == 4 * 1024 && MAX_PENDING_CALLS == 8, "the sentences above say so");

/// Runs the tool calls of one turn and keeps their outcomes.
pub(crate) struct Caller<'a> {
    toolbox: Arc<dyn Toolbox>,
    tools: Arc<ToolSet>,
    events: &'a dyn Events,
    clock: Arc<dyn Clock>,
    max_result_chars: usize,
    done: Vec<Outcome>,
    /// The number of each different call.
    made: HashMap<String, usize>,
    /// The calls that the user is asked about now.
    held: Vec<HeldCall>,
    /// Whether a confirmed call is held again because its question has changed.
    has_changed: bool,
}

/// The tool calls of a turn, for the answer.
pub(crate) struct Work {
    pub(crate) summaries: Vec<ToolCallSummary>,
    pub(crate) citations: Vec<Citation>,
    /// Calls that wait for a decision.
    pub(crate) held: Vec<HeldCall>,
    /// What was done, in lines for the model.
    pub(crate) trace: String,
    /// Whether a tool answered, so that the answer does not come from the model alone.
    pub(crate) looked_up: bool,
}

enum Plan {
    Start(JsonObject, Permission),
    /// The call of this number was the same.
    Repeated(usize),
    Not(Outcome),
}

enum Permission {
    NotNeeded,
    /// The question that the user confirmed. The call is held if it asks another one now.
    Needed(Option<String>),
}

enum Ended {
    Answered(ToolOutput),
    /// It did not run: the user must answer this question.
    Held(String),
    /// It did not run, because it cannot succeed.
    Refused(Error),
}

type Running = JoinSet<(usize, Result<Ended>)>;

impl<'a> Caller<'a> {
    pub(crate) fn new(
        toolbox: Arc<dyn Toolbox>,
        events: &'a dyn Events,
        clock: Arc<dyn Clock>,
        max_result_chars: usize,
    ) -> Self {
        Self {
            tools: toolbox.tools(),
            toolbox,
            events,
            clock,
            max_result_chars,
            done: Vec::new(),
            made: HashMap::new(),
            held: Vec::new(),
            has_changed: false,
        }
    }

    pub(crate) fn tools(&self) -> Arc<ToolSet> {
        self.tools.clone()
    }

    /// The outcomes so far.
    pub(crate) fn outcomes(&self) -> impl Iterator<Item = &Outcome> {
        self.done.iter()
    }

    /// The question to the user, if calls wait for a decision: the turn ends with it.
    pub(crate) fn question(&self) -> Option<String> {
        let again = if self.has_changed { "It has changed since you were asked. " } else { "" };
        (!self.held.is_empty()).then(|| format!("{again}{}", ask(&self.held)))
    }

    pub(crate) fn into_work(self) -> Work {
        let trace = trace(&self.done, &self.tools);
        // A question to the user is Tribune's own: the model claims nothing in it.
        let looked_up = !self.held.is_empty() || self.done.iter().any(|outcome| outcome.summary.success);
        let mut citations = Vec::new();
        let mut summaries = Vec::with_capacity(self.done.len());
        for outcome in self.done {
            summaries.push(outcome.summary);
            for citation in outcome.citations {
                add_citation(citation, &mut citations);
            }
        }
        Work { summaries, citations, held: self.held, trace, looked_up }
    }

    /// Runs the calls of one round.
    pub(crate) async fn round(&mut self, calls: Vec<Call>, cx: &CallContext) -> Vec<AnsweredCall> {
        let undecided = calls.iter().map(|_| None).collect();
        self.run(calls, undecided, cx).await
    }

    /// Runs the held calls that the user confirmed, and tells the model of those that they declined.
    pub(crate) async fn decided(&mut self, decided: Vec<Decided>, cx: &CallContext) -> Vec<AnsweredCall> {
        let call = |Decided { call, .. }: &Decided| Call {
            name: call.tool.clone(),
            arguments: call.arguments.clone(),
            ..Call::default()
        };
        let calls = decided.iter().map(call).collect();
        let answered = self.run(calls, decided.into_iter().map(Some).collect(), cx).await;
        self.has_changed = !self.held.is_empty();
        answered
    }

    async fn run(&mut self, calls: Vec<Call>, decided: Vec<Option<Decided>>, cx: &CallContext) -> Vec<AnsweredCall> {
        let first = self.done.len();
        let cx = self.context(cx);
        let mut running = Running::new();
        let mut ended: Vec<Option<Outcome>> = vec![None; calls.len()];
        let (mut questions, mut repeats) = (HashMap::new(), HashMap::new());
        for (at, (call, decided)) in calls.iter().zip(decided).enumerate() {
            self.events.emit(Event::ToolStart {
                call: first + at,
                tool: shown_name(call),
                label: self.tools.find(&call.name).map_or_else(|| shown_name(call), running_label),
            });
            match self.plan(at, first + at, call, decided) {
                Plan::Start(arguments, permission) => self.start(&mut running, at, call, arguments, permission, &cx),
                Plan::Repeated(number) => drop(repeats.insert(at, number)),
                Plan::Not(outcome) => ended[at] = Some(self.conclude(first + at, call, outcome)),
            }
        }
        while let Some(joined) = running.join_next().await {
            let Ok((at, end)) = joined else { continue };
            let outcome = match end {
                Ok(Ended::Held(question)) => {
                    questions.insert(at, question);
                    continue;
                }
                Ok(Ended::Refused(error)) => Outcome::error(&clip(error.message(), self.max_result_chars)),
                Ok(Ended::Answered(output)) => self.outcome(&calls[at], Ok(output)),
                Err(error) => self.outcome(&calls[at], Err(error)),
            };
            ended[at] = Some(self.conclude(first + at, &calls[at], outcome));
        }
        let ids = distinct_ids(&calls, first);
        let mut answered = Vec::with_capacity(calls.len());
        for (at, ((call, id), end)) in calls.into_iter().zip(ids).zip(ended).enumerate() {
            let outcome = end.unwrap_or_else(|| {
                let outcome = match (repeats.get(&at), questions.remove(&at)) {
                    (Some(number), _) => self.done[*number].repeated(),
                    (None, Some(question)) => self.hold(&call, question),
                    (None, None) => self.outcome(&call, Err(Error::internal("it stopped unexpectedly"))),
                };
                self.conclude(first + at, &call, outcome)
            });
            let (name, arguments, result) = (shown_name(&call), echoed(&call), outcome.result.clone());
            answered.push(AnsweredCall { id, name, arguments, result });
            self.done.push(outcome);
        }
        if self.done[first..].iter().any(|outcome| outcome.ran && !outcome.read_only) {
            // What was read before may have changed.
            self.made.retain(|_, number| !self.done[*number].read_only);
        }
        answered
    }

    fn hold(&mut self, call: &Call, question: String) -> Outcome {
        if self.held.len() == MAX_PENDING_CALLS {
            return Outcome::error(TOO_MANY_TO_ASK);
        }
        let (tool, arguments) = (call.name.clone(), call.arguments.clone());
        self.held.push(HeldCall { tool, arguments, question });
        let mut outcome = Outcome::not_run("", "needs your confirmation");
        outcome.summary.needs_confirmation = true;
        outcome
    }

    /// Tools get three quarters of the remaining time, so that the model can still answer.
    fn context(&self, cx: &CallContext) -> CallContext {
        let now = self.clock.monotonic();
        cx.until(now + cx.time_left(now) / 4 * 3)
    }

    fn plan(&mut self, at: usize, number: usize, call: &Call, decided: Option<Decided>) -> Plan {
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
        let permission = match spec.hints.destructive && !spec.hints.read_only {
            true if call.arguments.len() > MAX_CALL_BYTES => return Plan::Not(Outcome::error(TOO_LONG_TO_ASK)),
            true => Permission::Needed(decided.as_ref().map(|decided| decided.call.question.clone())),
            false => Permission::NotNeeded,
        };
        let prepared = self.toolbox.prepared(&call.name, arguments.clone());
        match self.made.entry(signature(&call.name, prepared)) {
            Entry::Occupied(same) => return Plan::Repeated(*same.get()),
            Entry::Vacant(place) => place.insert(number),
        };
        match decided {
            Some(Decided { confirmed: false, .. }) => Plan::Not(Outcome::not_run(DECLINED, "not done: you declined")),
            _ => Plan::Start(arguments, permission),
        }
    }

    fn start(
        &self,
        running: &mut Running,
        at: usize,
        call: &Call,
        arguments: JsonObject,
        permission: Permission,
        cx: &CallContext,
    ) {
        let (toolbox, tools, tool) = (Arc::clone(&self.toolbox), Arc::clone(&self.tools), call.name.clone());
        let left = cx.time_left(self.clock.monotonic());
        let mut cx = cx.clone();
        cx.cancel = cx.cancel.child_token();
        let call = async move {
            let _stop_what_it_started = cx.cancel.clone().drop_guard();
            let work = async {
                if let Permission::Needed(agreed) = permission
                    && let Some(spec) = tools.find(&tool)
                {
                    let own = match toolbox.question(&tool, arguments.clone(), &cx).await {
                        Ok(own) => own,
                        Err(error) => return Ok(Ended::Refused(error)),
                    };
                    // Asked again at the last moment: the object may be another one than the user knew.
                    let question = question(own, spec, &arguments);
                    if agreed.as_ref() != Some(&question) {
                        return Ok(Ended::Held(question));
                    }
                }
                toolbox.call(&tool, arguments, &cx).await.map(Ended::Answered)
            };
            let ended = tokio::time::timeout(left, work).await;
            (at, ended.unwrap_or_else(|_| Err(out_of_time())))
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

fn out_of_time() -> Error {
    let message = "the call timed out; it may have been done";
    Error::new(ErrorKind::DeadlineExceeded, message)
}
