//! `/openapi.json`: the HTTP interface of the chat, for client generators.

use std::sync::{Arc, OnceLock};

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use serde_json::{Value, json};

use crate::response;
use crate::service::Service;

pub(crate) async fn document(State(service): State<Arc<Service>>) -> Response {
    static DOCUMENT: OnceLock<String> = OnceLock::new();
    let base = service.links.base();
    response::json(StatusCode::OK, DOCUMENT.get_or_init(|| openapi(base).to_string()).as_str())
}

fn openapi(base: &str) -> Value {
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Tribune",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Conversations with the agent. The tools themselves are served over MCP at /mcp."
        },
        "servers": [{"url": base}],
        "security": [{"token": []}, {}],
        "paths": {
            "/chat": {"post": chat()},
            "/conversations": {"get": conversations()},
            "/conversations/{id}/messages": {"get": messages()},
            "/session": {"post": sign_in(), "delete": sign_out()},
        },
        "components": {
            "securitySchemes": {"token": {
                "type": "http",
                "scheme": "bearer",
                "description": "A token from `tribune token create --user NAME`. Not needed on the machine itself, unless auth.required is set."
            }},
            "schemas": schemas(),
            "responses": {"Problem": {
                "description": "What went wrong, and what to do about it.",
                "content": {"application/json": {"schema": schema("Problem")}}
            }},
            "headers": {"Link": {
                "description": "The next page: `<address>; rel=\"next\"`. Absent on the last page.",
                "schema": {"type": "string"}
            }}
        }
    })
}

fn schema(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

fn with_problems(mut responses: Value, statuses: &[&str]) -> Value {
    for status in statuses {
        responses[*status] = json!({"$ref": "#/components/responses/Problem"});
    }
    responses
}

fn chat() -> Value {
    json!({
        "operationId": "chat",
        "summary": "Ask the agent",
        "description": "Answers with JSON, or with `Accept: text/event-stream` as a stream: the events `started`, `delta`, `discard`, `tool_start`, `tool_end`, and at the end `answer` or `error`.",
        "requestBody": {"required": true, "content": {"application/json": {"schema": schema("ChatRequest")}}},
        "responses": with_problems(json!({
            "200": {
                "description": "The answer; it is stored together with the question.",
                "content": {
                    "application/json": {"schema": schema("ChatAnswer")},
                    "text/event-stream": {"schema": {"type": "string"}}
                }
            }
        }), &["400", "401", "404", "408", "413", "429", "500", "503", "504"])
    })
}

fn conversations() -> Value {
    json!({
        "operationId": "listConversations",
        "summary": "Your conversations, last active first",
        "parameters": [number("limit", 1, 100, 20), cursor("after")],
        "responses": with_problems(listed("Conversation"), &["400", "401", "503"])
    })
}

fn messages() -> Value {
    json!({
        "operationId": "listMessages",
        "summary": "The last messages of a conversation, oldest first",
        "description": "The `Link` header leads to earlier messages.",
        "parameters": [
            {"name": "id", "in": "path", "required": true, "schema": {"type": "string", "format": "uuid"}},
            number("limit", 1, 200, 50),
            cursor("before")
        ],
        "responses": with_problems(listed("Message"), &["400", "401", "404", "503"])
    })
}

fn sign_in() -> Value {
    json!({
        "operationId": "signIn",
        "summary": "Exchange a token for a cookie, for browsers",
        "requestBody": {"required": true, "content": {"application/json": {"schema": {
            "type": "object", "required": ["token"], "properties": {"token": {"type": "string"}}
        }}}},
        "responses": with_problems(json!({"204": {"description": "Signed in."}}), &["400", "401", "503"])
    })
}

fn sign_out() -> Value {
    json!({
        "operationId": "signOut",
        "summary": "Drop the cookie",
        "responses": {"204": {"description": "Signed out."}}
    })
}

fn number(name: &str, low: u32, high: u32, usual: u32) -> Value {
    json!({
        "name": name, "in": "query",
        "schema": {"type": "integer", "minimum": low, "maximum": high, "default": usual}
    })
}

fn cursor(name: &str) -> Value {
    json!({
        "name": name, "in": "query", "description": "From the `Link` header of the previous page.",
        "schema": {"type": "string"}
    })
}

fn decisions(what: &str) -> Value {
    json!({
        "type": "array", "maxItems": 8, "default": [], "description": what,
        "items": {"type": "string", "format": "uuid"}
    })
}

fn listed(item: &str) -> Value {
    json!({"200": {
        "description": "A list.",
        "headers": {"Link": {"$ref": "#/components/headers/Link"}},
        "content": {"application/json": {"schema": {"type": "array", "items": schema(item)}}}
    }})
}

fn schemas() -> Value {
    let id = json!({"type": "string", "format": "uuid"});
    let time = json!({"type": "string", "format": "date-time"});
    json!({
        "ChatRequest": {
            "type": "object",
            "additionalProperties": false,
            "anyOf": [{"required": ["message"]}, {"required": ["confirm"]}, {"required": ["decline"]}],
            "properties": {
                "message": {"type": "string", "maxLength": 4000, "description": "At least one character, unless the request decides about calls."},
                "conversation_id": {"anyOf": [id, {"type": "null"}], "description": "Continues this conversation. Default: the latest one if it was active within the last 30 minutes, else a new one."},
                "new_conversation": {"type": "boolean", "default": false, "description": "Always starts a new conversation."},
                "request_id": {"anyOf": [id, {"type": "null"}], "description": "Idempotency key: a request with the same id gets the stored answer, and nothing is done twice."},
                "confirm": decisions("These calls run: ids from `confirmations` of this conversation."),
                "decline": decisions("These calls do not run.")
            }
        },
        "ChatAnswer": {
            "type": "object",
            "required": ["message", "conversation_id", "tool_calls", "confirmations", "looked_up", "citations"],
            "properties": {
                "message": {"type": "string", "description": "Markdown."},
                "conversation_id": id,
                "tool_calls": {"anyOf": [{"type": "array", "items": schema("ToolCall")}, {"type": "null"}]},
                "confirmations": {"type": "array", "maxItems": 8, "description": "Destructive calls that wait for the user. Decide with `confirm` or `decline`, or with one of a few words as the next message.", "items": schema("Confirmation")},
                "looked_up": {"type": "boolean", "description": "false: no tool answered, and the answer comes from the model alone."},
                "citations": {"type": "array", "items": {
                    "type": "object",
                    "required": ["title", "url"],
                    "properties": {"title": {"type": "string"}, "url": {"type": "string", "format": "uri"}}
                }}
            }
        },
        "Confirmation": {
            "type": "object",
            "required": ["id", "tool", "question"],
            "properties": {
                "id": id,
                "tool": {"type": "string"},
                "question": {"type": "string", "description": "For a person: names what is done, and to what."}
            }
        },
        "ToolCall": {
            "type": "object",
            "required": ["tool", "label", "success"],
            "properties": {
                "tool": {"type": "string"},
                "label": {"type": "string", "description": "What the call did, in a few words for a person."},
                "success": {"type": "boolean"},
                "result_preview": {"type": ["string", "null"], "maxLength": 200},
                "needs_confirmation": {"type": "boolean", "description": "The call waits for the user's decision; see `confirmations`."}
            }
        },
        "Conversation": {
            "type": "object",
            "required": ["id", "created_at", "last_activity", "message_count", "preview"],
            "properties": {
                "id": id, "created_at": time, "last_activity": time,
                "message_count": {"type": "integer", "minimum": 0},
                "preview": {"type": ["string", "null"], "maxLength": 100}
            }
        },
        "Message": {
            "type": "object",
            "required": ["id", "role", "content", "created_at"],
            "properties": {
                "id": id, "created_at": time,
                "role": {"type": "string", "enum": ["user", "assistant"]},
                "content": {"type": "string"},
                "looked_up": {"type": "boolean", "description": "Of answers: as in ChatAnswer."}
            }
        },
        "Problem": {
            "type": "object",
            "required": ["error"],
            "properties": {"error": {
                "type": "object",
                "required": ["code", "message"],
                "properties": {
                    "code": {"type": "string"},
                    "message": {"type": "string"},
                    "missing": {"type": "array", "items": {"type": "string"}, "description": "Configuration lines to add, if that is the problem."}
                }
            }}
        }
    })
}
