//! `/conversations`: what was said, page by page.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::response::Response;
use http::{HeaderValue, StatusCode, header};
use jiff::Timestamp;
use serde::Serialize;
use tribune_core::store::ConversationStore;
use tribune_core::{Error, Result, UserId};
use uuid::Uuid;

use super::callers::Caller;
use super::{App, problem};
use crate::mcp::rpc;

const MAX_CONVERSATIONS: usize = 100;
const CONVERSATIONS: usize = 20;
const MAX_MESSAGES: usize = 200;
const MESSAGES: usize = 50;
const SIGN_IN: &str = "conversations belong to users: send `Authorization: Bearer TOKEN`; the operator makes a token with `tribune token create --user NAME`";

type Asked = Query<HashMap<String, String>>;

/// The caller's conversations, last active first.
pub(super) async fn list(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Query(asked): Asked,
) -> Response {
    let (store, owner) = match kept_for(&app, &caller) {
        Ok(kept) => kept,
        Err(refusal) => return *refusal,
    };
    let page = async {
        let limit = limit(&asked, CONVERSATIONS, MAX_CONVERSATIONS)?;
        let after = asked.get("after").map(|cursor| read_cursor(cursor)).transpose()?;
        let page = store.list(&owner, limit, after).await?;
        let next = page
            .next
            .map(|(at, id)| format!("conversations?limit={limit}&after={}.{id}", at.as_microsecond()));
        Ok((page.items, next))
    };
    answer(&app, page.await)
}

/// The messages of one conversation: the last ones, oldest first.
pub(super) async fn messages(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Query(asked): Asked,
) -> Response {
    let (store, owner) = match kept_for(&app, &caller) {
        Ok(kept) => kept,
        Err(refusal) => return *refusal,
    };
    let page = async {
        let limit = limit(&asked, MESSAGES, MAX_MESSAGES)?;
        let before = asked.get("before").map(|cursor| cursor.parse()).transpose();
        let before = before.map_err(|_| wrong_cursor("before"))?;
        let Ok(id) = Uuid::try_parse(&id) else {
            return Err(no_such_conversation());
        };
        let page = store.messages(&owner, id, limit, before).await?;
        let page = page.ok_or_else(no_such_conversation)?;
        let next = page
            .next
            .map(|before| format!("conversations/{id}/messages?limit={limit}&before={before}"));
        Ok((page.items, next))
    };
    answer(&app, page.await)
}

fn kept_for(app: &App, caller: &Caller) -> Result<(Arc<dyn ConversationStore>, UserId), Box<Response>> {
    let Some(owner) = caller.principal.user() else {
        return Err(Box::new(problem::unauthorized(SIGN_IN)));
    };
    match &app.service.conversations {
        Some(store) => Ok((store.clone(), owner)),
        None => Err(Box::new(problem::of(&Error::not_found(
            "this server keeps no conversations",
        )))),
    }
}

/// A list, and in its `Link` header where it goes on.
fn answer<T: Serialize>(app: &App, page: Result<(Vec<T>, Option<String>)>) -> Response {
    let (items, next) = match page {
        Ok(page) => page,
        Err(error) => return problem::of(&error),
    };
    let Ok(body) = serde_json::to_string(&items) else {
        return problem::of(&Error::internal("the list could not be written as JSON"));
    };
    let mut response = rpc::json_response(StatusCode::OK, body);
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
    let link = next.map(|next| format!("<{}/{next}>; rel=\"next\"", app.service.links.path_prefix()));
    if let Some(Ok(link)) = link.map(|link| HeaderValue::from_str(&link)) {
        headers.insert(header::LINK, link);
    }
    response
}

fn limit(asked: &HashMap<String, String>, usual: usize, most: usize) -> Result<usize> {
    let Some(given) = asked.get("limit") else {
        return Ok(usual);
    };
    match given.parse() {
        Ok(limit) if (1..=most).contains(&limit) => Ok(limit),
        _ => Err(Error::invalid_argument(format!(
            "`limit` must be a number from 1 to {most}"
        ))),
    }
}

/// `MICROSECONDS.UUID`
fn read_cursor(text: &str) -> Result<(Timestamp, Uuid)> {
    let parse = || {
        let (micros, id) = text.split_once('.')?;
        let at = Timestamp::from_microsecond(micros.parse().ok()?).ok()?;
        Some((at, Uuid::try_parse(id).ok()?))
    };
    parse().ok_or_else(|| wrong_cursor("after"))
}

fn wrong_cursor(name: &str) -> Error {
    Error::invalid_argument(format!(
        "`{name}` is not from the `Link` header of an answer before: follow that as it is, or leave it out to begin"
    ))
}

fn no_such_conversation() -> Error {
    Error::not_found("there is no such conversation")
}
