//! Tools that answer from constants: content types, errors, logs, progress and input schemas.

use std::time::Duration;

use rmcp::{
    RoleServer,
    model::{
        CallToolRequestParams, CallToolResult, ContentBlock, ErrorData, ProgressNotificationParam, ResourceContents,
        Tool,
    },
    service::RequestContext,
};

use super::{logging::LogThreshold, media, tools};

/// Pause between two notifications of one call, long enough that they arrive apart.
const BEAT: Duration = Duration::from_millis(50);

pub(super) fn tools() -> Vec<Tool> {
    vec![
        tools::without_arguments("test_simple_text", "Returns one text"),
        tools::without_arguments("test_image_content", "Returns one image"),
        tools::without_arguments("test_audio_content", "Returns one piece of audio"),
        tools::without_arguments("test_embedded_resource", "Returns one embedded resource"),
        tools::without_arguments("test_multiple_content_types", "Returns a text, an image and a resource together"),
        tools::without_arguments("test_error_handling", "Always reports a tool error"),
        tools::without_arguments("test_tool_with_logging", "Logs its start, its middle and its end"),
        tools::without_arguments("test_logging_tool", "Logs only when the request names a log level"),
        tools::without_arguments("test_tool_with_progress", "Reports progress in three steps"),
        tools::without_arguments(
            "test_reconnection",
            "Returns after a pause in which its stream may be closed and resumed",
        ),
        Tool::new(
            "test_custom_header",
            "Takes an argument that the request repeats in a header",
            rmcp::object!({
                "type": "object",
                "properties": {
                    "region": {
                        "type": "string",
                        "description": "Region to route the call to",
                        "x-mcp-header": "Region"
                    }
                }
            }),
        ),
        Tool::new(
            "json_schema_2020_12_tool",
            "Declares its arguments with the vocabulary of JSON Schema 2020-12",
            rmcp::object!({
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "type": "object",
                "$defs": {
                    "address": {
                        "$anchor": "addressDef",
                        "type": "object",
                        "properties": {
                            "street": { "type": "string" },
                            "city": { "type": "string" }
                        }
                    }
                },
                "properties": {
                    "name": { "type": "string" },
                    "address": { "$ref": "#/$defs/address" },
                    "contactMethod": { "type": "string", "enum": ["phone", "email"] },
                    "phone": { "type": "string" },
                    "email": { "type": "string" }
                },
                "allOf": [
                    { "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }
                ],
                "if": {
                    "properties": { "contactMethod": { "const": "phone" } },
                    "required": ["contactMethod"]
                },
                "then": { "required": ["phone"] },
                "else": { "required": ["email"] },
                "additionalProperties": false
            }),
        ),
    ]
}

pub(super) async fn call(
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
    log: &LogThreshold,
) -> Result<CallToolResult, ErrorData> {
    let content = match request.name.as_ref() {
        "test_simple_text" => vec![ContentBlock::text("This is a simple text response for testing.")],
        "test_image_content" => vec![ContentBlock::image(media::RED_PIXEL, media::PNG)],
        "test_audio_content" => vec![ContentBlock::audio(media::SILENCE, media::WAV)],
        "test_embedded_resource" => {
            vec![ContentBlock::embedded_text("test://embedded-resource", "This is an embedded resource content.")]
        }
        "test_multiple_content_types" => vec![
            ContentBlock::text("Multiple content types test:"),
            ContentBlock::image(media::RED_PIXEL, media::PNG),
            ContentBlock::resource(
                ResourceContents::text(r#"{"test":"data","value":123}"#, "test://mixed-content-resource")
                    .with_mime_type("application/json"),
            ),
        ],
        "test_error_handling" => {
            return Ok(CallToolResult::error(vec![ContentBlock::text(
                "This tool intentionally returns an error for testing",
            )]));
        }
        "test_tool_with_logging" | "test_logging_tool" => {
            log.info(context, "Tool execution started").await;
            tokio::time::sleep(BEAT).await;
            log.info(context, "Tool processing data").await;
            tokio::time::sleep(BEAT).await;
            log.info(context, "Tool execution completed").await;
            vec![ContentBlock::text("Logged three messages")]
        }
        "test_tool_with_progress" => {
            report_progress(context).await;
            vec![ContentBlock::text("Reported all progress")]
        }
        "test_reconnection" => {
            tokio::time::sleep(BEAT).await;
            vec![ContentBlock::text("Reconnection test completed")]
        }
        "test_custom_header" => {
            let region = tools::text_argument(request.arguments.as_ref(), "region");
            vec![ContentBlock::text(format!("Region: {}", region.unwrap_or("none")))]
        }
        "json_schema_2020_12_tool" => {
            vec![ContentBlock::json(request.arguments.as_ref())?]
        }
        other => return Err(tools::unanswered(other)),
    };
    Ok(CallToolResult::success(content))
}

/// Without a progress token the client wants no notifications, but the call takes as long.
async fn report_progress(context: &RequestContext<RoleServer>) {
    let token = context.meta.get_progress_token();
    for percent in [0.0, 50.0, 100.0] {
        if percent > 0.0 {
            tokio::time::sleep(BEAT).await;
        }
        let Some(token) = token.clone() else { continue };
        let step =
            ProgressNotificationParam::new(token, percent).with_total(100.0).with_message(format!("{percent} of 100"));
        if let Err(error) = context.peer.notify_progress(step).await {
            tracing::debug!(%error, "progress not delivered");
        }
    }
}
