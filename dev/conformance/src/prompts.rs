//! The fixture prompts, and completion for their arguments.

use rmcp::{
    RoleServer,
    model::{
        CompleteRequestParams, CompleteResult, CompletionInfo, ContentBlock, ErrorData, GetPromptRequestParams,
        GetPromptResponse, GetPromptResult, Prompt, PromptArgument, PromptMessage, Role,
    },
    service::RequestContext,
};
use serde_json::json;

use super::{
    media,
    rounds::{self, Answer},
    tools::text_argument,
};

const SIMPLE: &str = "test_simple_prompt";
const WITH_ARGUMENTS: &str = "test_prompt_with_arguments";
const WITH_RESOURCE: &str = "test_prompt_with_embedded_resource";
const WITH_IMAGE: &str = "test_prompt_with_image";
const INPUT_REQUIRED: &str = "test_input_required_result_prompt";

/// Suggestions for every prompt argument, offered by prefix.
const SUGGESTIONS: [&str; 4] = ["paris", "park", "party", "test"];

pub(super) fn all() -> Vec<Prompt> {
    vec![
        Prompt::new(SIMPLE, Some("One text message"), None),
        Prompt::new(
            WITH_ARGUMENTS,
            Some("Repeats both of its arguments"),
            Some(vec![required_argument("arg1", "First argument"), required_argument("arg2", "Second argument")]),
        ),
        Prompt::new(
            WITH_RESOURCE,
            Some("Embeds a resource"),
            Some(vec![required_argument("resourceUri", "URI of the embedded resource")]),
        ),
        Prompt::new(WITH_IMAGE, Some("Contains an image"), None),
        Prompt::new(INPUT_REQUIRED, Some("Asks the user for context before it returns"), None),
    ]
}

fn required_argument(name: &str, description: &str) -> PromptArgument {
    PromptArgument::new(name).with_description(description).with_required(true)
}

/// Whether the fixtures answer for the prompt `name`.
pub(super) fn owns(name: &str) -> bool {
    [SIMPLE, WITH_ARGUMENTS, WITH_RESOURCE, WITH_IMAGE, INPUT_REQUIRED].contains(&name)
}

/// Gets a prompt the fixtures [own](owns).
pub(super) fn get(
    request: &GetPromptRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<GetPromptResponse, ErrorData> {
    let argument = |name| text_argument(request.arguments.as_ref(), name).ok_or_else(|| missing_argument(name));
    let messages = match request.name.as_str() {
        SIMPLE => vec![text("This is a simple prompt for testing.")],
        WITH_ARGUMENTS => {
            vec![text(format!("Prompt with arguments: arg1='{}', arg2='{}'", argument("arg1")?, argument("arg2")?))]
        }
        WITH_RESOURCE => vec![
            user(ContentBlock::embedded_text(argument("resourceUri")?, "Embedded resource content for testing.")),
            text("Please process the embedded resource above."),
        ],
        WITH_IMAGE => {
            vec![user(ContentBlock::image(media::RED_PIXEL, media::PNG)), text("Please analyze the image above.")]
        }
        INPUT_REQUIRED => return with_user_context(request, context),
        other => {
            return Err(ErrorData::invalid_params("Unknown prompt", Some(json!({ "name": other }))));
        }
    };
    Ok(GetPromptResult::new(messages).into())
}

/// Shows that a prompt can ask for input just as a tool can.
fn with_user_context(
    request: &GetPromptRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<GetPromptResponse, ErrorData> {
    let message = match rounds::text_answer(request.input_responses.as_ref(), "user_context", "context") {
        Answer::Given(given) => text(format!("Use this context: {given}")),
        Answer::Refused => text("Proceed without context."),
        Answer::Missing => {
            let question = rounds::elicit_text("What context should the prompt use?", "context");
            return rounds::ask(context, [("user_context", question)], None).map(Into::into);
        }
    };
    Ok(GetPromptResult::new(vec![message]).into())
}

/// Suggests values for an argument of a prompt the fixtures [own](owns).
pub(super) fn complete(request: &CompleteRequestParams) -> Result<CompleteResult, ErrorData> {
    let values = SUGGESTIONS
        .iter()
        .filter(|suggestion| suggestion.starts_with(&request.argument.value))
        .map(ToString::to_string)
        .collect();
    CompletionInfo::with_all_values(values)
        .map(CompleteResult::new)
        .map_err(|error| ErrorData::internal_error(error, None))
}

fn missing_argument(name: &str) -> ErrorData {
    ErrorData::invalid_params("Missing prompt argument", Some(json!({ "argument": name })))
}

fn text(text: impl Into<String>) -> PromptMessage {
    user(ContentBlock::text(text))
}

fn user(content: ContentBlock) -> PromptMessage {
    PromptMessage::new(Role::User, content)
}
