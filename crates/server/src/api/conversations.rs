//! `/conversations`: the caller's conversations and their messages, page by page.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use http::{HeaderValue, header};
use jiff::Timestamp;
use serde::Serialize;
use tribune_core::{Error, Result, UserId};
use tribune_storage::ConversationStore;
use uuid::Uuid;

use crate::identity::Caller;
use crate::response::{self, Refusal, problem};
use crate::service::Service;

const MAX_CONVERSATIONS: usize = 100;
const CONVERSATIONS: usize = 20;
const MAX_MESSAGES: usize = 200;
const MESSAGES: usize = 50;
const SIGN_IN: &str = "Conversations need a user: send `Authorization: Bearer TOKEN`. The operator creates a token with `tribune token create --user NAME`.";

type Parameters = Query<HashMap<String, String>>;

/// Most recently active first.
pub(crate) async fn list(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Caller>,
    Query(parameters): Parameters,
) -> Result<Response, Refusal> {
    let (store, owner) = store_and_owner(&service, &caller)?;
    let limit = limit(&parameters, CONVERSATIONS, MAX_CONVERSATIONS)?;
    let after = parameters.get("after").map(|cursor| read_cursor(cursor)).transpose()?;
    let page = store.list(&owner, limit, after).await?;
    let next = page.next.map(|(at, id)| format!("conversations?limit={limit}&after={}.{id}", at.as_microsecond()));
    Ok(answer(&service, &page.items, next))
}

/// The messages of one conversation: the last ones, oldest first.
pub(crate) async fn messages(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Query(parameters): Parameters,
) -> Result<Response, Refusal> {
    let (store, owner) = store_and_owner(&service, &caller)?;
    let limit = limit(&parameters, MESSAGES, MAX_MESSAGES)?;
    let before = parameters.get("before").map(|cursor| cursor.parse()).transpose();
    let before = before.map_err(|_| invalid_cursor("before"))?;
    let unknown = || Error::not_found("Unknown conversation");
    let id = Uuid::try_parse(&id).map_err(|_| unknown())?;
    let page = store.messages(&owner, id, limit, before).await?;
    let page = page.ok_or_else(unknown)?;
    let next = page.next.map(|before| format!("conversations/{id}/messages?limit={limit}&before={before}"));
    Ok(answer(&service, &page.items, next))
}

fn store_and_owner<'s>(
    service: &'s Service,
    caller: &Caller,
) -> Result<(&'s Arc<dyn ConversationStore>, UserId), Refusal> {
    let owner = caller.principal.user();
    let owner = owner.ok_or_else(|| problem::unauthorized(SIGN_IN, super::chat::chat_challenge(service)))?;
    let store = service.conversations.as_ref();
    let store = store.ok_or_else(|| Error::not_found("This server stores no conversations"))?;
    Ok((store, owner))
}

/// A list, with the address of the next page in its `Link` header.
fn answer<T: Serialize>(service: &Service, items: &[T], next: Option<String>) -> Response {
    let mut response = response::private(Json(items).into_response());
    let link = next.map(|next| format!("<{}/{next}>; rel=\"next\"", service.links.path_prefix()));
    if let Some(Ok(link)) = link.map(|link| HeaderValue::from_str(&link)) {
        response.headers_mut().insert(header::LINK, link);
    }
    response
}

fn limit(parameters: &HashMap<String, String>, default: usize, max: usize) -> Result<usize> {
    let Some(given) = parameters.get("limit") else {
        return Ok(default);
    };
    match given.parse() {
        Ok(limit) if (1..=max).contains(&limit) => Ok(limit),
        _ => Err(Error::invalid_argument(format!("`limit` must be a number from 1 to {max}"))),
    }
}

/// `MICROSECONDS.UUID`
fn read_cursor(text: &str) -> Result<(Timestamp, Uuid)> {
    let parse = || {
        let (micros, id) = text.split_once('.')?;
        let at = Timestamp::from_microsecond(micros.parse().ok()?).ok()?;
        Some((at, Uuid::try_parse(id).ok()?))
    };
    parse().ok_or_else(|| invalid_cursor("after"))
}

fn invalid_cursor(name: &str) -> Error {
    Error::invalid_argument(format!(
        "Invalid cursor `{name}`: take it from the `Link` header of the previous page, or omit it for the first page"
    ))
}
