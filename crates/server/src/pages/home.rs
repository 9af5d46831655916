//! `/`: the sources, how to connect, a search over everything, and the chat.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::{Query, State};
use axum::response::Response;
use futures::future::join_all;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use minijinja::{Value as Page, context};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use tribune_core::{CallContext, DocumentId, JsonObject, Links, Principal, Result, Scope, Source, UserId};

use tribune_page::Element;

use super::sources;
use crate::connect::{Host, Reach, Token};
use crate::identity::Caller;
use crate::response::{self, page, private, problem, wants_json};
use crate::service::{NoChat, Profile, Service, call};

/// Example searches, and how long the page waits for each.
const MAX_EXAMPLES: usize = 4;
const MAX_WAIT_FOR_EXAMPLE: Duration = Duration::from_millis(300);
/// Up to this many tools of a profile are listed by name.
const MAX_NAMED_TOOLS: usize = 5;

pub(crate) async fn home(
    State(service): State<Arc<Service>>,
    Query(parameters): Query<HashMap<String, String>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
) -> Response {
    let is_user = caller.principal != Principal::Anonymous;
    // Anonymous callers see only how to sign in.
    let closed = service.settings.auth_required && !is_user;
    let query = parameters.get("q").map_or("", |query| query.trim());
    let mut response = if query.is_empty() || closed {
        overview(&service, &caller, closed).await
    } else {
        results(&service, query, caller, &headers).await
    };
    let vary = HeaderValue::from_static("Accept, Cookie");
    response.headers_mut().insert(header::VARY, vary);
    if is_user { private(response) } else { response }
}

async fn overview(service: &Service, caller: &Caller, closed: bool) -> Response {
    let principal = &caller.principal;
    let user = principal.user();
    let base = service.links.base();
    let (model, missing_model) = match &service.chat {
        Ok(chat) => (Some(chat.agent.settings().model.clone()), None),
        Err(no_chat) => (None, Some(no_chat.remedy())),
    };
    let token = Token::remote(&service.settings);
    let guides = Host::ALL.map(|host| guide(host, base, token));
    let examples = if closed { Vec::new() } else { examples(service).await };
    let is_operator = caller.scopes.contains(Scope::Admin);
    let sources = (!closed).then(|| sources::region(service, &sources::shown(service, caller), is_operator));
    page::render(
        StatusCode::OK,
        "home.html",
        context! {
            base => service.links.path_prefix(),
            version => env!("CARGO_PKG_VERSION"),
            user => user.as_ref().map(UserId::as_str),
            local => *principal == Principal::Local,
            // Whether the person at this machine signs in with a link.
            link => service.settings.local.is_some(),
            closed,
            // Others would be refused.
            operator => is_operator,
            model => &model,
            missing_model,
            unusable => matches!(service.chat, Err(NoChat::Unusable(_))),
            // The chat comes first for those who can use it.
            chat_first => closed || (model.is_some() && user.is_some()),
            // Whether there is anything to sign in for.
            talk => closed || model.is_some() || service.sources().iter().any(|source| source.is_personal()),
            panels => panels(service.sources()),
            // Example questions to the chat.
            titles => shared(service)
                .filter(|source| caller.may_use(&***source))
                .map(|source| source.facts().title)
                .collect::<Vec<_>>(),
            examples,
            sources => sources.map(|region| Page::from_safe_string(region.element.to_string())),
            profiles => if closed { Vec::new() } else { profiles(service, caller) },
            guides,
            warning => Reach::of(base).warning(base),
        },
    )
}

fn panels(sources: &[Arc<dyn Source>]) -> Vec<Page> {
    let panels = sources.iter().filter_map(|source| Some((source.name(), source.panel()?)));
    let shown = panels.map(|(name, panel)| {
        context! {
            name,
            title => panel.title,
            ability => panel.ability,
            questions => panel.questions.to_vec(),
            markup => Page::from_safe_string(panel.markup.to_owned()),
        }
    });
    shown.collect()
}

fn shared(service: &Service) -> impl Iterator<Item = &Arc<dyn Source>> {
    service.sources().iter().filter(|source| !source.is_personal())
}

/// Searches that find something: the title of a document, or a live document by its id.
async fn examples(service: &Service) -> Vec<(String, String)> {
    let deadline = service.clock.monotonic() + service.settings.config.source_timeout;
    let cx = CallContext::new(Principal::Anonymous, deadline).uncited();
    let questions = shared(service).map(|source| {
        let (source, cx) = (source.clone(), cx.clone());
        async move {
            let facts = source.facts();
            let id = DocumentId::parse(facts.example_id.as_deref()?).ok()?;
            if facts.live {
                return Some(format!("{} {}", id.key(), id.scheme()));
            }
            let document = tokio::time::timeout(MAX_WAIT_FOR_EXAMPLE, source.fetch(&id, &cx)).await;
            document.ok()?.ok()?.map(|document| document.title)
        }
    });
    let found = join_all(questions).await.into_iter().flatten().take(MAX_EXAMPLES);
    let link = |question: String| {
        let query = utf8_percent_encode(&question, NON_ALPHANUMERIC);
        let href = format!("{}/?q={query}", service.links.path_prefix());
        (question, href)
    };
    found.map(link).collect()
}

fn guide(host: Host, base: &str, token: Token<'_>) -> Page {
    let guide = host.guide(base, token);
    context! {
        name => guide.name,
        key => guide.name.to_lowercase().replace(' ', "-"),
        steps => guide.steps,
        paste => guide.paste,
        note => guide.note.map(|note| Page::from_safe_string(with_code(&note).to_string())),
        needs_public => guide.needs_public,
    }
}

/// Text with code in backticks.
fn with_code(text: &str) -> Element {
    let mut line = Element::new("span");
    for (at, part) in text.split('`').enumerate() {
        match at % 2 {
            0 => line.push(part.to_owned()),
            _ => line.push(Element::new("code").text(part.to_owned())),
        }
    }
    line
}

fn profiles(service: &Service, caller: &Caller) -> Vec<Page> {
    let profile = |profile: &Arc<Profile>| {
        let state = profile.state_for(caller);
        let names: Vec<&str> = state.visible_to(&caller.principal).registry.names().collect();
        let tools = match names.len() {
            0..=MAX_NAMED_TOOLS => names.join(", "),
            many => format!("{many} tools"),
        };
        context! {
            name => profile.name(),
            address => service.mcp_address(profile),
            tools,
        }
    };
    service.profiles_for(caller).map(profile).collect()
}

/// Search results as a page, or as JSON for the search box.
async fn results(service: &Service, query: &str, caller: Caller, headers: &HeaderMap) -> Response {
    let found = search(service, query, caller).await;
    if wants_json(headers) {
        return match found {
            Ok(found) => response::json(StatusCode::OK, found.to_string()),
            Err(error) => problem::from_error(&error),
        };
    }
    let base = service.links.path_prefix();
    let values = match found {
        Ok(found) => context! { base, query, found => minijinja::value::Serde(&found) },
        Err(error) => context! { base, query, problem => error.message() },
    };
    page::render(StatusCode::OK, "results.html", values)
}

/// Runs the `search` tool; `href` of each result is its page on the address that the reader used.
async fn search(service: &Service, query: &str, caller: Caller) -> Result<Value> {
    let state = service.default_profile().state_for(&caller);
    let tool = state.registry.lookup("search");
    let tool = tool.ok_or_else(|| tribune_core::Error::not_found("This server has no search"))?;
    let cx = service.call_context(&caller).uncited();
    let args = JsonObject::from_iter([("query".to_owned(), Value::from(query))]);
    let output = call::run(service, &tool, args, &cx).await?;
    let mut found: Value = serde_json::from_str(output.json())
        .map_err(|error| tribune_core::Error::internal("The results are not JSON").caused_by(error))?;
    for hit in found["results"].as_array_mut().into_iter().flatten() {
        hit["href"] = href(service, hit).into();
        let scheme = hit["id"].as_str().and_then(|id| id.split(':').next());
        let owner = scheme.and_then(|scheme| service.owner(scheme));
        hit["source"] = owner.map(|source| source.facts().title).into();
    }
    Ok(found)
}

/// The current page here, not the permalink or the original.
fn href(service: &Service, hit: &Value) -> String {
    let url = hit["url"].as_str().unwrap_or_default();
    let passage = url.split_once("?passage=").map(|(_, rest)| rest.split('#').next());
    let passage = passage.flatten().and_then(|number| number.parse().ok());
    let id = hit["id"].as_str().unwrap_or_default();
    match DocumentId::parse(id) {
        Ok(id) => Links::new(service.links.path_prefix()).citation(&id, passage),
        Err(_) => url.to_owned(),
    }
}
