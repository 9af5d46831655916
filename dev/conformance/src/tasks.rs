//! Tools of the tasks extension: they answer with a task, and the task with the result.

use std::time::Duration;

use rmcp::{
    RoleServer,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ContentBlock, ErrorData,
        InputRequests, InputResponses, Tool,
    },
    service::RequestContext,
};

use super::{
    board::{Outcome, TaskBoard},
    input,
    rounds::{self, Answer},
    tools,
};

/// Longest a caller can make `slow_compute` take.
const LONGEST_COMPUTATION_SECS: f64 = 60.0;

/// How long the jobs take whose duration the caller does not choose.
const JOB: Duration = Duration::from_secs(1);

pub(super) fn tools() -> Vec<Tool> {
    vec![
        Tool::new(
            "greet",
            "Greets someone, never as a task",
            rmcp::object!({
                "type": "object",
                "properties": { "name": { "type": "string", "description": "Whom to greet" } }
            }),
        ),
        Tool::new(
            "slow_compute",
            "Computes for some seconds, as a task if the client supports tasks",
            rmcp::object!({
                "type": "object",
                "properties": {
                    "seconds": { "type": "number", "description": "Duration, up to 60" },
                    "label": { "type": "string", "description": "Name of the computation" }
                }
            }),
        ),
        tools::without_arguments("failing_job", "A task that ends in a tool error"),
        tools::without_arguments("protocol_error_job", "A task that ends in a protocol error"),
        Tool::new(
            "confirm_delete",
            "A task that asks for confirmation",
            rmcp::object!({
                "type": "object",
                "properties": {
                    "filename": { "type": "string", "description": "File to pretend to delete" }
                }
            }),
        ),
        tools::without_arguments("multi_input", "A task that asks two questions at once"),
        tools::without_arguments("test_tool_with_task", "Asks for a name first, then greets it in a task"),
    ]
}

pub(super) async fn call(
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
    board: &TaskBoard,
) -> Result<CallToolResponse, ErrorData> {
    let arguments = request.arguments.as_ref();
    match request.name.as_ref() {
        "greet" => {
            let name = tools::text_argument(arguments, "name").unwrap_or("World");
            Ok(success(format!("Hello, {name}!")).into())
        }
        "slow_compute" => {
            let label = tools::text_argument(arguments, "label").unwrap_or("computation");
            let result = success(format!("Finished: {label}"));
            let duration = computation_time(request);
            if supports_tasks(context) {
                return Ok(board.run(duration, Outcome::completed(&result)).into());
            }
            tokio::time::sleep(duration).await;
            Ok(result.into())
        }
        "failing_job" => {
            require_tasks(context)?;
            let result = CallToolResult::error(vec![ContentBlock::text("The job failed")]);
            Ok(board.run(JOB, Outcome::completed(&result)).into())
        }
        "protocol_error_job" => {
            require_tasks(context)?;
            let error = ErrorData::internal_error("The job broke down", None);
            Ok(board.run(JOB, Outcome::failed(&error)).into())
        }
        "confirm_delete" => {
            require_tasks(context)?;
            let filename = tools::text_argument(arguments, "filename").unwrap_or("the file");
            Ok(confirm_delete(board, filename.to_owned()))
        }
        "multi_input" => {
            require_tasks(context)?;
            Ok(two_questions(board))
        }
        "test_tool_with_task" => {
            require_tasks(context)?;
            greet_in_task(request, context, board)
        }
        other => Err(tools::unanswered(other)),
    }
}

fn confirm_delete(board: &TaskBoard, filename: String) -> CallToolResponse {
    let question = rounds::elicit_consent(&format!("Delete {filename}?"), "confirm");
    let questions = InputRequests::from([("confirm".to_owned(), question)]);
    let conclude = move |answers: &InputResponses| match rounds::consent_answer(Some(answers), "confirm", "confirm") {
        Answer::Given(true) => success(format!("Deleted {filename}")),
        Answer::Given(false) | Answer::Refused | Answer::Missing => success(format!("Kept {filename}")),
    };
    board.ask(questions, conclude).into()
}

fn two_questions(board: &TaskBoard) -> CallToolResponse {
    let questions = InputRequests::from([
        ("name".to_owned(), input::name_question()),
        ("consent".to_owned(), rounds::elicit_consent("Go ahead?", "confirm")),
    ]);
    board.ask(questions, |answers| success(format!("Received {} answers", answers.len()))).into()
}

/// The question belongs to the call, so it is answered before there is a task at all.
fn greet_in_task(
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
    board: &TaskBoard,
) -> Result<CallToolResponse, ErrorData> {
    match rounds::text_answer(request.input_responses.as_ref(), "user_name", "name") {
        Answer::Given(name) => {
            let result = success(format!("Hello, {name}!"));
            Ok(board.run(JOB, Outcome::completed(&result)).into())
        }
        Answer::Refused => Ok(input::refused()),
        Answer::Missing => rounds::ask(context, [("user_name", input::name_question())], None).map(Into::into),
    }
}

fn computation_time(request: &CallToolRequestParams) -> Duration {
    let seconds =
        request.arguments.as_ref().and_then(|arguments| arguments.get("seconds")?.as_f64()).unwrap_or_default();
    Duration::from_secs_f64(seconds.clamp(0.0, LONGEST_COMPUTATION_SECS))
}

fn supports_tasks(context: &RequestContext<RoleServer>) -> bool {
    context.client_capabilities().is_some_and(|declared| declared.supports_tasks())
}

fn require_tasks(context: &RequestContext<RoleServer>) -> Result<(), ErrorData> {
    if supports_tasks(context) {
        return Ok(());
    }
    Err(ErrorData::missing_required_client_capability(ClientCapabilities::builder().enable_tasks().build()))
}

fn success(text: String) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}
