//! `/try`: every tool of every profile, to be tried by a person: what a host sees of it, a form, and its answer.
//!
//! - [`listing`]: profiles and their tools;
//! - [`tool`]: one tool: the form, the question before a change, the answer;
//! - [`form`], [`field`] and [`kind`]: JSON Schema as a form, what was filled in as arguments;
//! - [`curl`]: the request, as it is sent and as a command;
//! - [`answer`]: the answer as text, as structure and as it was on the wire;
//! - [`sender`]: which page a request comes from.

mod answer;
mod curl;
mod field;
mod form;
mod kind;
mod listing;
mod sender;
mod tool;

use std::sync::Arc;

use axum::response::Response;
use http::{HeaderValue, header};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use tribune_core::{Hints, Principal, UserId};

use super::guard::bare_host;
use crate::profile::Profile;
use crate::service::Service;

pub(super) use listing::{all, profile};
pub(super) use tool::{show, submit};

const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Whether a caller may see a profile: that of administrators is for the administrator's token alone.
fn is_open(profile: &Profile, principal: &Principal) -> bool {
    !profile.spec().admin || *principal == Principal::User(UserId::admin())
}

/// Where hosts reach a profile.
fn address(service: &Service, profile: &Arc<Profile>) -> String {
    let base = service.links.base();
    let host = base.parse::<http::Uri>().ok().and_then(|uri| uri.host().map(bare_host));
    // Another profile may have claimed the public host name.
    let is_plain = host.is_some_and(|host| Arc::ptr_eq(service.profile_for_host(&host), profile));
    if is_plain {
        format!("{base}/mcp")
    } else {
        format!("{base}/mcp/{}", utf8_percent_encode(profile.name(), SEGMENT))
    }
}

/// The page of a profile, below `base`.
fn profile_page(base: &str, profile: &str) -> String {
    format!("{base}/try/{}", utf8_percent_encode(profile, SEGMENT))
}

fn tool_page(base: &str, profile: &str, tool: &str) -> String {
    format!("{}/{}", profile_page(base, profile), utf8_percent_encode(tool, SEGMENT))
}

/// What a hint says, in a word and in a sentence.
#[derive(Debug, Serialize)]
struct Said {
    hint: &'static str,
    value: bool,
    meaning: &'static str,
    /// The word and how it is to be taken, where it is worth one.
    badge: Option<(&'static str, &'static str)>,
}

fn said(hints: Hints) -> [Said; 4] {
    let said = |hint, value, [yes, no]: [&'static str; 2], badge| Said {
        hint,
        value,
        meaning: if value { yes } else { no },
        badge,
    };
    [
        said(
            "readOnlyHint",
            hints.read_only,
            ["it reads and changes nothing", "it changes something"],
            Some(if hints.read_only {
                ("read-only", "good")
            } else {
                ("changes things", "warning")
            }),
        ),
        said(
            "destructiveHint",
            hints.destructive,
            ["what it removes cannot be brought back", "it destroys nothing"],
            hints.destructive.then_some(("destructive", "bad")),
        ),
        said(
            "idempotentHint",
            hints.idempotent,
            [
                "run again with the same arguments, it does nothing more",
                "every run stands for itself",
            ],
            hints.idempotent.then_some(("idempotent", "")),
        ),
        said(
            "openWorldHint",
            hints.open_world,
            [
                "it asks the world beyond this server",
                "it stays with what this server holds",
            ],
            hints.open_world.then_some(("open world", "")),
        ),
    ]
}

/// The name that somebody may have meant.
fn near<'n>(wanted: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    const NEAR_ENOUGH: f64 = 0.75;
    let measured = names.map(|name| (strsim::jaro_winkler(wanted, name), name));
    let nearest = measured.max_by(|(a, _), (b, _)| a.total_cmp(b))?;
    (nearest.0 >= NEAR_ENOUGH).then_some(nearest.1)
}

/// What is shown here is for this caller and this moment.
fn private(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
    response
}
