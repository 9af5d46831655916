//! One tool: its form, the confirmation before a change, and the response.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::Response;
use http::request::Parts;
use http::{Method, Request, StatusCode};
use minijinja::value::Serde;
use minijinja::{Value as Shown, context};
use serde_json::Value;
use tribune_core::{JsonObject, Principal, ToolSpec};
use tribune_page::form::{Form, Input};

use super::answer;
use super::curl::CallRequest;
use super::listing::Visit;
use super::{profile_page, shown, tool_page};
use crate::identity::Caller;
use crate::mcp::Streamable;
use crate::request::read_limited;
use crate::response::{Refusal, page, private};
use crate::sender;
use crate::service::{Profile, Service};

const MAX_FORM_BYTES: usize = 64 * 1024;
/// Responses of tools stay far below.
const MAX_ANSWER_BYTES: usize = 64 * 1024 * 1024;
const TOO_LONG: &str = "The arguments are longer than 64 KB; send less.";
const EMBEDDED: &str = "Another page embedded this address, so the tool was not run. Run it here if you want to.";

/// What to do with the form's input.
enum Step {
    /// Show the form.
    Fill,
    /// Say why the input is refused.
    Refuse(StatusCode, String),
    /// Ask for a confirmation.
    Confirm,
    Run,
}

/// A tool that the caller may see.
struct ToolPage<'a> {
    service: &'a Service,
    caller: &'a Caller,
    profile: &'a Arc<Profile>,
    spec: ToolSpec,
    form: Form,
}

/// An address is a call: a read-only tool runs, any other gets its form filled in. A submitted form runs a change once it
/// is confirmed.
pub(crate) async fn tool(
    State(service): State<Arc<Service>>,
    State(streamable): State<Arc<Streamable>>,
    Extension(caller): Extension<Caller>,
    Path((profile, name)): Path<(String, String)>,
    request: Request<Body>,
) -> Result<Response, Refusal> {
    let (parts, body) = request.into_parts();
    let visit = Visit::new(&service, &caller, &parts.headers);
    let profile = visit.find(&profile)?;
    let state = profile.state_for(&caller);
    let Some(tool) = state.visible_to(&caller.principal).registry.lookup(&name) else {
        return Ok(visit.no_tool(profile, &name));
    };
    let page = ToolPage {
        service: &service,
        caller: &caller,
        profile,
        spec: tool.spec().clone(),
        form: Form::new(&tool.spec().input_schema, &tool.spec().aliases),
    };
    let (input, step) = match sent(&service, &parts, body).await {
        Ok(sent) => {
            let input = page.form.read(&sent);
            let step = page.step(&input, parts.method == Method::POST);
            (input, step)
        }
        Err((status, problem)) => (page.form.read(""), Step::Refuse(status, problem.to_owned())),
    };
    Ok(page.take(&streamable, step, &input).await)
}

/// What a form of this server sent, or an address that somebody opened.
async fn sent(service: &Service, parts: &Parts, body: Body) -> Result<String, (StatusCode, &'static str)> {
    if parts.method != Method::POST {
        if sender::is_embedded(&parts.headers) {
            return Err((StatusCode::FORBIDDEN, EMBEDDED));
        }
        return Ok(parts.uri.query().unwrap_or_default().to_owned());
    }
    if !sender::is_own_page(&parts.headers, &service.settings.public_url) {
        return Err((StatusCode::FORBIDDEN, sender::REFUSED));
    }
    match read_limited(body, MAX_FORM_BYTES, service.settings.config.call_timeout).await {
        Ok(body) => Ok(String::from_utf8_lossy(&body).into_owned()),
        Err((status, _)) => Err((status, TOO_LONG)),
    }
}

impl ToolPage<'_> {
    fn step(&self, input: &Input, is_submitted: bool) -> Step {
        match &input.arguments {
            Err(problem) => Step::Refuse(StatusCode::BAD_REQUEST, problem.clone()),
            Ok(_) if !input.is_call => Step::Fill,
            Ok(_) if self.spec.hints.read_only => Step::Run,
            Ok(_) if !is_submitted => Step::Fill,
            Ok(_) if input.is_confirmed => Step::Run,
            Ok(_) => Step::Confirm,
        }
    }

    async fn take(&self, streamable: &Streamable, step: Step, input: &Input) -> Response {
        let nothing = JsonObject::new();
        let arguments = input.arguments.as_ref().unwrap_or(&nothing);
        let request = CallRequest::new(self.service.mcp_address(self.profile), &self.spec.name, arguments);
        let (mut status, mut problem, mut review, mut answer) = (StatusCode::OK, None, None, None);
        match step {
            Step::Fill => {}
            Step::Refuse(code, why) => (status, problem) = (code, Some(why)),
            Step::Confirm => review = Some(self.review(arguments)),
            Step::Run => answer = Some(self.run(streamable, &request).await),
        }
        let links = &self.service.links;
        let (base, profile, name) = (links.path_prefix(), self.profile.name(), &self.spec.name);
        let query = self.form.query(arguments);
        let is_whole = problem.is_none() && (input.is_call || !self.form.needs_arguments());
        let schema = |schema: &JsonObject| serde_json::to_string_pretty(schema).unwrap_or_default();
        private(page::render(
            status,
            "try_tool.html",
            context! {
                base,
                section => "try",
                profile,
                profile_page => profile_page(base, profile),
                address => &request.address,
                tool => shown(&self.spec, base, profile),
                input_schema => schema(&self.spec.input_schema),
                output_schema => schema(&self.spec.output_schema),
                fields => Serde(&self.form.filled(input)),
                json => input.json.as_deref().unwrap_or_default(),
                problem,
                review,
                answer,
                curl => is_whole.then(|| request.to_curl(&self.caller.principal)).flatten(),
                needs_token => matches!(self.caller.principal, Principal::User(_)),
                link => is_whole.then(|| format!("{}?{query}", tool_page(links.base(), profile, name))),
                edit => format!("{}?{query}", tool_page(base, profile, name)),
            },
        ))
    }

    /// Sends the request through the MCP endpoint, as a host does.
    async fn run(&self, streamable: &Streamable, request: &CallRequest) -> Shown {
        let clock = &self.service.clock;
        let started = clock.monotonic();
        let request = request.to_http(self.caller.clone());
        let response = Box::pin(streamable.handle(self.profile, request)).await;
        let body = axum::body::to_bytes(response.into_body(), MAX_ANSWER_BYTES).await;
        let took = clock.monotonic().saturating_duration_since(started);
        let body = body.unwrap_or_else(|_| "The response is incomplete; run the tool again.".into());
        answer::shown(&String::from_utf8_lossy(&body), took, &self.service.links)
    }

    /// What the call will do, and the form fields that confirm it.
    fn review(&self, arguments: &JsonObject) -> Shown {
        let plain = |value: &Value| match value {
            Value::String(text) => text.clone(),
            other => serde_json::to_string_pretty(other).unwrap_or_default(),
        };
        let given = arguments.iter().map(|(name, value)| (name.clone(), plain(value)));
        let whose = match &self.caller.principal {
            Principal::User(user) => user.as_str(),
            Principal::Local => "the user of this machine",
            Principal::Anonymous => "an anonymous caller",
        };
        context! {
            given => given.collect::<Vec<_>>(),
            whose,
            parameters => self.form.parameters(arguments),
        }
    }
}
