//! One tool call: checked, with a deadline, counted and logged, for every transport.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use tribune_core::{CallContext, Error, ErrorKind, JsonObject, Principal, Result, Scopes, Tool, ToolOutput};
use tribune_registry::Registered;

use super::Service;
use crate::audit::{self, Asked};

/// Runs a tool.
pub async fn run(service: &Service, tool: &Registered<'_>, args: JsonObject, cx: &CallContext) -> Result<ToolOutput> {
    let asked = asked(service, tool.tool(), &args, cx);
    run_checked(service, tool.tool(), || tool.prepare(args), asked, cx).await
}

/// What the audit log is to keep of a call; `None` if nothing.
fn asked(service: &Service, tool: &Arc<dyn Tool>, args: &JsonObject, cx: &CallContext) -> Option<Asked> {
    let audit = service.audit.get()?;
    audit.wants(cx, tool.spec().hints.read_only).then(|| Asked::new(args, tool.spec()))
}

/// What to ask the user before a destructive call runs.
pub(crate) async fn question(tool: &Registered<'_>, args: JsonObject, cx: &CallContext) -> Result<Option<String>> {
    admit(&**tool.tool(), &cx.principal, cx.scopes)?;
    let asked = match tool.prepare(args) {
        Ok(args) => tool.tool().question(&args, cx).await,
        Err(error) => Err(error),
    };
    asked.map_err(|error| coded(&**tool.tool(), error))
}

/// Runs a tool of another server, which checks its arguments itself.
pub(crate) async fn run_foreign(
    service: &Service,
    tool: &Arc<dyn Tool>,
    args: JsonObject,
    cx: &CallContext,
) -> Result<ToolOutput> {
    let asked = asked(service, tool, &args, cx);
    run_checked(service, tool, || Ok(args), asked, cx).await
}

/// The log gets the tool, the duration, the number of results and the outcome; never the arguments or the answer.
async fn run_checked(
    service: &Service,
    tool: &Arc<dyn Tool>,
    args: impl FnOnce() -> Result<JsonObject>,
    asked: Option<Asked>,
    cx: &CallContext,
) -> Result<ToolOutput> {
    // A stopping server waits until this is dropped.
    let _running = service.calls.token();
    let started = service.clock.monotonic();
    let admitted = admit(&**tool, &cx.principal, cx.scopes).and_then(|()| Ok(service.limits.call(tool.spec(), cx)?));
    let outcome = match admitted.and_then(|()| args()) {
        Ok(args) => bounded(service, tool, args, cx).await,
        Err(error) => Err(error),
    };
    let outcome = outcome.map_err(|error| coded(&**tool, error.told_to(cx.scopes)));
    let elapsed = service.clock.monotonic().saturating_duration_since(started);
    record(&tool.spec().name, cx, elapsed, &outcome);
    if let Some((audit, asked)) = service.audit.get().zip(asked) {
        let outcome = outcome.as_ref().map_err(Error::kind);
        let who = || format!("limit {} {:?}", audit::name(&cx.principal), cx.peer);
        if !matches!(outcome, Err(ErrorKind::RateLimited)) || service.limits.is_traced(who()) {
            audit.tool(&tool.spec().name, asked, cx, outcome.map_err(ErrorKind::as_str));
        }
    }
    outcome
}

fn coded(tool: &dyn Tool, error: Error) -> Error {
    match tool.error_code(error.kind()) {
        Some(code) => error.coded(code),
        None => error,
    }
}

/// Whether a caller has to sign in, or to be allowed more, to call a tool.
pub(crate) fn lacks(tool: &dyn Tool, is_anonymous: bool, scopes: Scopes) -> bool {
    match is_anonymous {
        true => tool.needs_user(),
        false => !scopes.contains(tool.scope()),
    }
}

/// Refuses calls that the caller may not make.
pub(crate) fn admit(tool: &dyn Tool, principal: &Principal, scopes: Scopes) -> Result<()> {
    let is_anonymous = *principal == Principal::Anonymous;
    let name = &tool.spec().name;
    match lacks(tool, is_anonymous, scopes) {
        false => Ok(()),
        true if is_anonymous => Err(Error::forbidden(format!(
            "{name} needs a user, and this call is anonymous. Send `Authorization: Bearer TOKEN`; the operator creates a token with `tribune token create --user NAME`."
        ))),
        true => Err(Error::forbidden(format!(
            "{name} needs the scope `{}`, which this token does not have. Sign in again and allow it, or ask the operator for a token with it.",
            tool.scope().as_str()
        ))),
    }
}

async fn bounded(service: &Service, tool: &Arc<dyn Tool>, args: JsonObject, cx: &CallContext) -> Result<ToolOutput> {
    let left = cx.time_left(service.clock.monotonic());
    let call = tokio::time::timeout(left, tool.call(args, cx));
    tokio::select! {
        biased;
        answer = call => answer.unwrap_or_else(|_| Err(timed_out(tool, left))),
        () = cx.cancel.cancelled() => Err(Error::new(ErrorKind::Cancelled, "The caller cancelled the call")),
    }
}

fn timed_out(tool: &Arc<dyn Tool>, left: Duration) -> Error {
    let spec = tool.spec();
    let next = if spec.hints.read_only {
        ". Ask for less, or try again in a moment."
    } else {
        "; it may have been done. Check before you try again."
    };
    let seconds = left.as_secs_f64().ceil();
    let message = format!("{} timed out after {seconds} seconds{next}", spec.name);
    Error::new(ErrorKind::DeadlineExceeded, message)
}

fn record(tool: &str, cx: &CallContext, elapsed: Duration, outcome: &Result<ToolOutput>) {
    let (result, count) = match outcome {
        Ok(output) => ("ok", output.count),
        Err(error) => (error.kind().as_str(), 0),
    };
    meters(tool, result, |meters| {
        meters.calls.increment(1);
        meters.seconds.record(elapsed.as_secs_f64());
    });
    let ms = elapsed.as_secs_f64() * 1000.0;
    let (correlation_id, user) = (&*cx.correlation_id, audit::name(&cx.principal));
    match outcome {
        Err(error) if error.kind() == ErrorKind::Internal => {
            let cause = std::error::Error::source(error).map(ToString::to_string);
            let cause = cause.unwrap_or_default();
            tracing::error!(tool, user, outcome = result, ms, correlation_id, cause, "tool call failed");
        }
        _ => tracing::info!(tool, user, outcome = result, ms, count, correlation_id, "tool call"),
    }
}

/// The metrics of one tool and outcome.
struct Meters {
    calls: metrics::Counter,
    seconds: metrics::Histogram,
}

/// Keeps the handles of metrics: a lookup in the recorder for each call is slow.
fn meters(tool: &str, outcome: &'static str, count: impl FnOnce(&Meters)) {
    static KNOWN: RwLock<BTreeMap<String, BTreeMap<&'static str, Meters>>> = RwLock::new(BTreeMap::new());
    let known = KNOWN.read();
    if let Some(meters) = known.get(tool).and_then(|outcomes| outcomes.get(outcome)) {
        return count(meters);
    }
    drop(known);
    let meters = Meters {
        calls: metrics::counter!("tribune_tool_calls_total", "tool" => tool.to_owned(), "outcome" => outcome),
        seconds: metrics::histogram!("tribune_tool_call_seconds", "tool" => tool.to_owned()),
    };
    count(&meters);
    let mut known = KNOWN.write();
    known.entry(tool.to_owned()).or_default().insert(outcome, meters);
}
