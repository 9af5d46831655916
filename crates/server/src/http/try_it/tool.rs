//! One tool: its form, its answer, and the question before a change.

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::Response;
use http::{HeaderMap, HeaderValue, Request, StatusCode, Uri, header};
use minijinja::context;
use minijinja::value::Serde;
use serde_json::Value;
use tribune_core::{JsonObject, Principal, ToolSpec};

use super::answer::{Answer, indented};
use super::curl::CallRequest;
use super::form::{Filled, Form};
use super::{address, listing, private, profile_page, said, sender, tool_page};
use crate::http::callers::Caller;
use crate::http::{App, page, read_limited};
use crate::profile::Profile;

const MAX_FORM_BYTES: usize = 64 * 1024;
/// Answers of tools stay far below.
const MAX_ANSWER_BYTES: usize = 64 * 1024 * 1024;
const TOO_LONG: &str = "what was filled in is longer than 64 KB; give less";
const EMBEDDED: &str =
    "a page elsewhere has loaded this address as a part of itself, and nothing was run; run it here if you want to";

/// What becomes of what was filled in.
enum Step {
    /// Nothing yet: the form.
    Fill,
    /// It cannot be sent: why.
    Refuse(StatusCode, String),
    /// A change: asks whether it is meant.
    Ask,
    Run,
}

/// A tool that the caller may see, and who the caller is.
struct Tried<'a> {
    app: &'a App,
    caller: Caller,
    profile: &'a Arc<Profile>,
    spec: ToolSpec,
    form: Form,
}

/// An address is a call: one that only reads is run, one that changes something is filled in.
pub(in crate::http) async fn show(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path((profile, tool)): Path<(String, String)>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let tried = match Tried::find(&app, caller, &profile, &tool, &headers) {
        Ok(tried) => tried,
        Err(refusal) => return *refusal,
    };
    let sent = uri.query().unwrap_or_default();
    let filled = tried.form.read(sent);
    let reads = tried.spec.hints.read_only;
    let step = match &filled.arguments {
        _ if sent.len() > MAX_FORM_BYTES => Step::Refuse(StatusCode::URI_TOO_LONG, TOO_LONG.to_owned()),
        Err(problem) => Step::Refuse(StatusCode::BAD_REQUEST, problem.clone()),
        Ok(_) if !filled.is_asked || !reads => Step::Fill,
        Ok(_) if sender::is_part_of_another_page(&headers) => Step::Refuse(StatusCode::FORBIDDEN, EMBEDDED.to_owned()),
        Ok(arguments) if filled.is_padded => return tried.shorter(arguments),
        Ok(_) => Step::Run,
    };
    tried.take(step, &filled).await
}

/// A form that was sent: a change is asked about first, and done when it is confirmed.
pub(in crate::http) async fn submit(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path((profile, tool)): Path<(String, String)>,
    request: Request<Body>,
) -> Response {
    let (parts, body) = request.into_parts();
    let tried = match Tried::find(&app, caller, &profile, &tool, &parts.headers) {
        Ok(tried) => tried,
        Err(refusal) => return *refusal,
    };
    if !sender::is_own_page(&parts.headers, &app.service.settings.public_url) {
        let refused = Step::Refuse(StatusCode::FORBIDDEN, sender::REFUSED.to_owned());
        return tried.take(refused, &tried.form.read("")).await;
    }
    let body = match read_limited(body, MAX_FORM_BYTES, &app).await {
        Ok(body) => body,
        Err(refusal) => {
            let refused = Step::Refuse(refusal.status(), TOO_LONG.to_owned());
            return tried.take(refused, &tried.form.read("")).await;
        }
    };
    let filled = tried.form.read(&String::from_utf8_lossy(&body));
    let step = match &filled.arguments {
        Err(problem) => Step::Refuse(StatusCode::BAD_REQUEST, problem.clone()),
        Ok(_) if tried.spec.hints.read_only || filled.is_confirmed => Step::Run,
        Ok(_) => Step::Ask,
    };
    tried.take(step, &filled).await
}

impl<'a> Tried<'a> {
    fn find(
        app: &'a App,
        caller: Caller,
        profile: &str,
        tool: &str,
        headers: &HeaderMap,
    ) -> Result<Self, Box<Response>> {
        let profile = listing::find(app, &caller.principal, profile, headers)?;
        let state = profile.state();
        let known = state.shown_to(&caller.principal).registry.lookup(tool);
        let Some(spec) = known.map(|tool| tool.spec().clone()) else {
            let response = listing::no_tool(app, &caller.principal, profile, tool, headers);
            return Err(Box::new(response));
        };
        Ok(Self {
            form: Form::of(&spec),
            app,
            caller,
            profile,
            spec,
        })
    }

    async fn take(&self, step: Step, filled: &Filled) -> Response {
        let nothing = JsonObject::new();
        let arguments = filled.arguments.as_ref().unwrap_or(&nothing);
        let request = CallRequest::new(address(&self.app.service, self.profile), &self.spec.name, arguments);
        let answer = match step {
            Step::Run => Some(self.run(&request).await),
            _ => None,
        };
        self.page(&step, filled, arguments, &request, answer)
    }

    /// Sends the request the way that hosts' requests go.
    async fn run(&self, request: &CallRequest) -> Answer {
        let clock = &self.app.service.clock;
        let started = clock.monotonic();
        let request = request.to_http(self.caller.clone());
        let response = Box::pin(self.app.streamable.handle(self.profile, request)).await;
        let body = axum::body::to_bytes(response.into_body(), MAX_ANSWER_BYTES).await;
        let took: Duration = clock.monotonic().saturating_duration_since(started);
        let body = body.unwrap_or_else(|_| "the answer could not be read whole; run it again".into());
        Answer::of(&String::from_utf8_lossy(&body), took, &self.app.service.links)
    }

    fn page(
        &self,
        step: &Step,
        filled: &Filled,
        arguments: &JsonObject,
        request: &CallRequest,
        answer: Option<Answer>,
    ) -> Response {
        let (status, problem) = match step {
            Step::Refuse(status, problem) => (*status, Some(problem.as_str())),
            _ => (StatusCode::OK, None),
        };
        let links = &self.app.service.links;
        let (base, profile, spec) = (links.path_prefix(), self.profile.name(), &self.spec);
        let query = self.form.query(arguments);
        let is_whole = problem.is_none() && (filled.is_asked || !self.form.needs_arguments());
        let review = matches!(step, Step::Ask).then(|| self.review(arguments));
        private(page::render(
            status,
            "try_tool.html",
            context! {
                base,
                section => "try",
                profile => profile,
                profile_page => profile_page(base, profile),
                address => address(&self.app.service, self.profile),
                tool => context! {
                    name => spec.name.as_str(),
                    title => spec.title.as_str(),
                    description => spec.description.as_str(),
                    input_schema => indented(&Value::Object(spec.input_schema.clone()).to_string()),
                    output_schema => indented(&Value::Object(spec.output_schema.clone()).to_string()),
                    reads => spec.hints.read_only,
                    destructive => spec.hints.destructive,
                },
                hints => Serde(said(spec.hints)),
                action => tool_page(base, profile, &spec.name),
                words => Serde(&self.form.words),
                fields => Serde(self.form.show(filled)),
                json => filled.json.as_deref().unwrap_or_default(),
                problem,
                review,
                answer => Serde(answer),
                curl => is_whole.then(|| request.to_curl(&self.caller.principal)).flatten(),
                needs_token => matches!(self.caller.principal, Principal::User(_)),
                link => is_whole.then(|| format!("{}?{query}", tool_page(links.base(), profile, &spec.name))),
                edit => format!("{}?{query}", tool_page(base, profile, &spec.name)),
            },
        ))
    }

    /// What is about to be done, in words, and what to send so that it is.
    fn review(&self, arguments: &JsonObject) -> minijinja::Value {
        let given: Vec<(&String, String)> = arguments.iter().map(|(name, value)| (name, plain(value))).collect();
        let whose = match &self.caller.principal {
            Principal::User(user) => user.to_string(),
            Principal::Local => "the person at this machine".to_owned(),
            Principal::Anonymous => "nobody in particular".to_owned(),
        };
        context! {
            what => listing::first_sentence(&self.spec.description),
            given => Serde(given),
            whose,
            parameters => Serde(self.form.parameters(arguments)),
        }
    }

    /// Sends a browser on to the address that says the same without empty parameters: the one worth keeping.
    fn shorter(&self, arguments: &JsonObject) -> Response {
        let page = tool_page(
            self.app.service.links.path_prefix(),
            self.profile.name(),
            &self.spec.name,
        );
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::SEE_OTHER;
        if let Ok(location) = HeaderValue::from_str(&format!("{page}?{}", self.form.query(arguments))) {
            response.headers_mut().insert(header::LOCATION, location);
        }
        private(response)
    }
}

/// A value as people read it: texts as they are, several one below the other.
fn plain(value: &Value) -> String {
    let lines = match value {
        Value::String(text) => return text.clone(),
        Value::Array(items) => items.iter().map(Value::as_str).collect::<Option<Vec<_>>>(),
        _ => None,
    };
    match lines {
        Some(lines) if !lines.is_empty() => lines.join("\n"),
        _ => indented(&value.to_string()),
    }
}
