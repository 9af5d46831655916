//! Pages for people.
//!
//! - [`home`]: the start page: search, sources, how to connect, the chat;
//! - [`data`]: the page behind a citation, as text (`reading`) or as figures (`board`);
//! - [`live`]: updates for open pages;
//! - [`try_it`]: every tool with a form;
//! - [`design`]: colours, type and parts of all pages;
//! - `sources`: the sources as cards;
//! - [`assets`]: style sheets and scripts.

pub(crate) mod assets;
mod board;
pub(crate) mod data;
pub(crate) mod design;
pub(crate) mod home;
pub(crate) mod live;
mod reading;
mod sources;
pub(crate) mod try_it;

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use http::HeaderMap;

use crate::response::page;
use crate::service::Service;

pub(crate) async fn not_found(State(service): State<Arc<Service>>, headers: HeaderMap) -> Response {
    page::missing(
        &headers,
        service.links.path_prefix(),
        "Page not found",
        "The start page lists the sources and how to connect.",
    )
}
