//! `/try`: every tool of every profile, with what a host sees of it, a form to call it, and the response.
//!
//! - [`listing`]: profiles and their tools;
//! - [`tool`]: one tool: the form, the confirmation before a change, the response;
//! - [`form`], [`field`] and [`kind`]: from JSON Schema to a form, and from its input to arguments;
//! - [`curl`]: the request as a command;
//! - [`answer`]: the response as text, structured and raw;
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

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use tribune_core::{Hints, Principal, UserId};

use crate::address::bare_host;
use crate::service::{Profile, Service};

pub(crate) use listing::{all, profile};
pub(crate) use tool::{show, submit};

const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Whether a caller may see a profile: `admin` needs the admin token.
fn is_open(profile: &Profile, principal: &Principal) -> bool {
    !profile.spec().admin || *principal == Principal::User(UserId::admin())
}

/// The MCP address of a profile.
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

/// What a hint of a tool means.
#[derive(Debug, Serialize)]
struct HintMeaning {
    hint: &'static str,
    value: bool,
    meaning: &'static str,
    /// A word and its tone, if the hint deserves a badge.
    badge: Option<(&'static str, &'static str)>,
}

fn hint_meanings(hints: Hints) -> [HintMeaning; 4] {
    let meaning = |hint, value, [yes, no]: [&'static str; 2], badge| HintMeaning {
        hint,
        value,
        meaning: if value { yes } else { no },
        badge,
    };
    [
        meaning(
            "readOnlyHint",
            hints.read_only,
            ["the tool only reads", "the tool changes data"],
            Some(if hints.read_only {
                ("read-only", "good")
            } else {
                ("changes data", "warning")
            }),
        ),
        meaning(
            "destructiveHint",
            hints.destructive,
            ["the change cannot be undone", "nothing is deleted"],
            hints.destructive.then_some(("destructive", "bad")),
        ),
        meaning(
            "idempotentHint",
            hints.idempotent,
            [
                "repeating a call has no further effect",
                "repeating a call may have further effects",
            ],
            hints.idempotent.then_some(("idempotent", "")),
        ),
        meaning(
            "openWorldHint",
            hints.open_world,
            [
                "the tool uses services outside this server",
                "the tool uses only data of this server",
            ],
            hints.open_world.then_some(("open world", "")),
        ),
    ]
}

/// The most similar name, if one is similar enough.
fn near<'n>(wanted: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    const NEAR_ENOUGH: f64 = 0.75;
    let measured = names.map(|name| (strsim::jaro_winkler(wanted, name), name));
    let nearest = measured.max_by(|(a, _), (b, _)| a.total_cmp(b))?;
    (nearest.0 >= NEAR_ENOUGH).then_some(nearest.1)
}
