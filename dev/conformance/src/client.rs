//! Tools that need something from the client while their call is open.
//!
//! Only revisions with a handshake allow a server to send requests of its own. On later ones these
//! tools report that they cannot; [`super::input`] has their successors.
#![expect(deprecated, reason = "the suite still checks sampling on the revisions that have it")]

use rmcp::{
    RoleServer,
    model::{
        CallToolRequestParams, CallToolResult, ClientCapabilities, ContentBlock, CreateMessageRequestParams,
        ElicitRequestParams, ElicitationSchema, ErrorData, JsonObject, SamplingCapability, SamplingMessage, Tool,
    },
    service::RequestContext,
};

use super::{negotiates_per_request, tools};

pub(super) fn tools() -> Vec<Tool> {
    vec![
        Tool::new(
            "test_sampling",
            "Asks the client's model to answer a prompt",
            rmcp::object!({
                "type": "object",
                "properties": {
                    "prompt": { "type": "string", "description": "Prompt for the model" }
                },
                "required": ["prompt"]
            }),
        ),
        Tool::new(
            "test_elicitation",
            "Asks the user for a name and an address",
            rmcp::object!({
                "type": "object",
                "properties": {
                    "message": { "type": "string", "description": "Message shown to the user" }
                },
                "required": ["message"]
            }),
        ),
        tools::without_arguments(
            "test_elicitation_sep1034_defaults",
            "Asks the user to confirm a default for every primitive type",
        ),
        tools::without_arguments(
            "test_elicitation_sep1330_enums",
            "Asks the user to choose, once per way to describe choices",
        ),
        tools::without_arguments("test_missing_capability", "Refuses clients that do not declare sampling"),
    ]
}

pub(super) async fn call(
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResult, ErrorData> {
    if request.name == "test_missing_capability" {
        return require_sampling(context);
    }
    // The SDK refuses such a request only where it knows the version of the whole connection. Over
    // stdio it would send it, and the call would wait for an answer that no client may give.
    if negotiates_per_request(context) {
        return Ok(CallToolResult::error(vec![ContentBlock::text(
            "This protocol version has no requests from server to client",
        )]));
    }
    let arguments = request.arguments.as_ref();
    match request.name.as_ref() {
        "test_sampling" => {
            let prompt = tools::text_argument(arguments, "prompt").unwrap_or("Say hello");
            Ok(sample(context, prompt).await)
        }
        "test_elicitation" => {
            let message = tools::text_argument(arguments, "message").unwrap_or("Who are you?");
            elicit(context, message, contact_form()).await
        }
        "test_elicitation_sep1034_defaults" => elicit(context, "Please check these values", defaults_form()).await,
        "test_elicitation_sep1330_enums" => elicit(context, "Please choose", choices_form()).await,
        other => Err(tools::unanswered(other)),
    }
}

fn require_sampling(context: &RequestContext<RoleServer>) -> Result<CallToolResult, ErrorData> {
    let declared = context.client_capabilities().unwrap_or_default();
    if declared.sampling.is_none() {
        let mut required = ClientCapabilities::default();
        required.sampling = Some(SamplingCapability::default());
        return Err(ErrorData::missing_required_client_capability(required));
    }
    Ok(CallToolResult::success(vec![ContentBlock::text("The client declares sampling")]))
}

async fn sample(context: &RequestContext<RoleServer>, prompt: &str) -> CallToolResult {
    let params = CreateMessageRequestParams::new(vec![SamplingMessage::user_text(prompt)], 100);
    match context.peer.create_message(params).await {
        Ok(reply) => {
            let text = reply
                .message
                .content
                .first()
                .and_then(|block| block.as_text())
                .map_or("(no text)", |block| block.text.as_str());
            CallToolResult::success(vec![ContentBlock::text(format!("LLM response: {text}"))])
        }
        Err(error) => failed("Sampling", &error),
    }
}

async fn elicit(
    context: &RequestContext<RoleServer>,
    message: &str,
    form: JsonObject,
) -> Result<CallToolResult, ErrorData> {
    let requested_schema = ElicitationSchema::from_json_schema(form)
        .map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    let params =
        ElicitRequestParams::FormElicitationParams { meta: None, message: message.to_owned(), requested_schema };
    match context.peer.create_elicitation(params).await {
        Ok(reply) => {
            Ok(CallToolResult::success(vec![ContentBlock::text("User response:"), ContentBlock::json(reply)?]))
        }
        Err(error) => Ok(failed("Elicitation", &error)),
    }
}

fn failed(what: &str, error: &rmcp::ServiceError) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(format!("{what} failed: {error}"))])
}

fn contact_form() -> JsonObject {
    rmcp::object!({
        "type": "object",
        "properties": {
            "username": { "type": "string", "description": "Name of the user" },
            "email": { "type": "string", "description": "Address of the user" }
        },
        "required": ["username", "email"]
    })
}

/// One field per primitive type, each with a default (SEP-1034).
fn defaults_form() -> JsonObject {
    rmcp::object!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "default": "John Doe" },
            "age": { "type": "integer", "default": 30 },
            "score": { "type": "number", "default": 95.5 },
            "status": {
                "type": "string",
                "enum": ["active", "inactive", "pending"],
                "default": "active"
            },
            "verified": { "type": "boolean", "default": true }
        }
    })
}

/// One field per way to describe a choice, including the deprecated one (SEP-1330).
fn choices_form() -> JsonObject {
    rmcp::object!({
        "type": "object",
        "properties": {
            "untitledSingle": { "type": "string", "enum": ["option1", "option2", "option3"] },
            "titledSingle": {
                "type": "string",
                "oneOf": [
                    { "const": "value1", "title": "First Option" },
                    { "const": "value2", "title": "Second Option" },
                    { "const": "value3", "title": "Third Option" }
                ]
            },
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"]
            },
            "untitledMulti": {
                "type": "array",
                "items": { "type": "string", "enum": ["option1", "option2", "option3"] }
            },
            "titledMulti": {
                "type": "array",
                "items": {
                    "anyOf": [
                        { "const": "value1", "title": "First Choice" },
                        { "const": "value2", "title": "Second Choice" },
                        { "const": "value3", "title": "Third Choice" }
                    ]
                }
            }
        }
    })
}
