//! The fixture resources, all under the `test://` scheme.

use rmcp::model::{ErrorData, ReadResourceResult, Resource, ResourceContents, ResourceTemplate};
use serde_json::json;

use super::media;

/// The fixtures own this scheme, so they also answer for URIs in it that name nothing.
const SCHEME: &str = "test://";

const STATIC_TEXT: &str = "test://static-text";
const STATIC_BINARY: &str = "test://static-binary";
const WATCHED: &str = "test://watched-resource";

const TEMPLATE: &str = "test://template/{id}/data";
const TEMPLATE_PREFIX: &str = "test://template/";
const TEMPLATE_SUFFIX: &str = "/data";

pub(super) fn all() -> Vec<Resource> {
    vec![
        Resource::new(STATIC_TEXT, "Static text")
            .with_description("A text that never changes")
            .with_mime_type("text/plain"),
        Resource::new(STATIC_BINARY, "Static binary").with_description("A one-pixel image").with_mime_type(media::PNG),
        Resource::new(WATCHED, "Watched resource")
            .with_description("A text that can be subscribed to")
            .with_mime_type("text/plain"),
    ]
}

pub(super) fn templates() -> Vec<ResourceTemplate> {
    vec![
        ResourceTemplate::new(TEMPLATE, "Templated data")
            .with_description("Data derived from the id in its URI")
            .with_mime_type("application/json"),
    ]
}

/// Whether the fixtures answer for `uri`.
pub(super) fn owns(uri: &str) -> bool {
    uri.starts_with(SCHEME)
}

/// Whether `uri` names a fixture resource, and can therefore be subscribed to.
pub(super) fn exists(uri: &str) -> bool {
    contents(uri).is_some()
}

/// Reads a resource the fixtures [own](owns).
pub(super) fn read(uri: &str) -> Result<ReadResourceResult, ErrorData> {
    contents(uri).map(|contents| ReadResourceResult::new(vec![contents])).ok_or_else(|| not_found(uri))
}

/// Accepts or refuses to start or end a subscription to a resource the fixtures [own](owns).
///
/// No subscription is recorded, because no fixture resource ever changes.
pub(super) fn check_subscribable(uri: &str) -> Result<(), ErrorData> {
    exists(uri).then_some(()).ok_or_else(|| not_found(uri))
}

fn contents(uri: &str) -> Option<ResourceContents> {
    match uri {
        STATIC_TEXT => Some(ResourceContents::text("This is the content of the static text resource.", uri)),
        STATIC_BINARY => Some(ResourceContents::blob(media::RED_PIXEL, uri).with_mime_type(media::PNG)),
        WATCHED => Some(ResourceContents::text("Watched resource content", uri)),
        _ => {
            let id = uri
                .strip_prefix(TEMPLATE_PREFIX)?
                .strip_suffix(TEMPLATE_SUFFIX)
                .filter(|id| !id.is_empty() && !id.contains('/'))?;
            let data = json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
            Some(ResourceContents::text(data.to_string(), uri).with_mime_type("application/json"))
        }
    }
}

fn not_found(uri: &str) -> ErrorData {
    ErrorData::resource_not_found("Resource not found", Some(json!({ "uri": uri })))
}
