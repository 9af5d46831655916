//! One tool call: checked, bounded in time, counted and logged, whatever transport it came by.

use tribune_core::registry::Registered;
use tribune_core::{CallContext, Error, ErrorKind, JsonObject, Result, ToolOutput};

use crate::service::Service;

/// Runs a tool. Neither the arguments nor the answer are logged: only that it ran, for how long,
/// how much came back and how it ended.
pub async fn run(service: &Service, tool: &Registered<'_>, args: JsonObject, cx: &CallContext) -> Result<ToolOutput> {
    // Held to the end: a stopping server waits for it.
    let _under_way = service.calls.token();
    let started = service.clock.monotonic();
    let outcome = match tool.prepare(args) {
        Ok(args) => bounded(service, tool, args, cx).await,
        Err(error) => Err(error),
    };
    let elapsed = service.clock.monotonic().saturating_duration_since(started);
    record(&tool.spec().name, cx, elapsed, &outcome);
    outcome
}

async fn bounded(service: &Service, tool: &Registered<'_>, args: JsonObject, cx: &CallContext) -> Result<ToolOutput> {
    let left = cx.time_left(service.clock.monotonic());
    let call = tokio::time::timeout(left, tool.tool().call(args, cx));
    tokio::select! {
        biased;
        answer = call => answer.unwrap_or_else(|_| Err(out_of_time(tool, left))),
        () = cx.cancel.cancelled() => Err(Error::new(ErrorKind::Cancelled, "the caller cancelled the call")),
    }
}

fn out_of_time(tool: &Registered<'_>, left: std::time::Duration) -> Error {
    Error::new(
        ErrorKind::DeadlineExceeded,
        format!(
            "{} did not finish within {} seconds and was stopped. Ask for less at once, or try again in a moment.",
            tool.spec().name,
            left.as_secs_f64().ceil()
        ),
    )
}

fn record(tool: &str, cx: &CallContext, elapsed: std::time::Duration, outcome: &Result<ToolOutput>) {
    let (result, count) = match outcome {
        Ok(output) => ("ok", output.count),
        Err(error) => (error.kind().as_str(), 0),
    };
    let labels = [("tool", tool.to_owned()), ("outcome", result.to_owned())];
    metrics::counter!("tribune_tool_calls_total", &labels).increment(1);
    metrics::histogram!("tribune_tool_call_seconds", "tool" => tool.to_owned()).record(elapsed.as_secs_f64());
    let ms = elapsed.as_secs_f64() * 1000.0;
    match outcome {
        Err(error) if error.kind() == ErrorKind::Internal => {
            let cause = std::error::Error::source(error)
                .map(ToString::to_string)
                .unwrap_or_default();
            tracing::error!(
                tool,
                outcome = result,
                ms,
                correlation_id = &*cx.correlation_id,
                cause,
                "tool call failed"
            );
        }
        _ => tracing::info!(
            tool,
            outcome = result,
            ms,
            count,
            correlation_id = &*cx.correlation_id,
            "tool call"
        ),
    }
}
