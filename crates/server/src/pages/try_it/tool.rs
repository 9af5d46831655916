//! One tool: its form, the confirmation before a change, and the response.

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
use super::form::{Form, Input};
use super::{address, hint_meanings, listing, profile_page, sender, tool_page};
use crate::identity::Caller;
use crate::mcp::Streamable;
use crate::request::read_limited;
use crate::response::{page, private};
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
    streamable: &'a Streamable,
    caller: Caller,
    profile: &'a Arc<Profile>,
    spec: ToolSpec,
    form: Form,
}

/// An address is a call: a read-only tool runs, any other gets its form filled in.
pub(crate) async fn show(
    State(service): State<Arc<Service>>,
    State(streamable): State<Arc<Streamable>>,
    Extension(caller): Extension<Caller>,
    Path((profile, tool)): Path<(String, String)>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let page = match ToolPage::find((&service, &streamable), caller, &profile, &tool, &headers) {
        Ok(page) => page,
        Err(refusal) => return *refusal,
    };
    let sent = uri.query().unwrap_or_default();
    let input = page.form.read(sent);
    let reads = page.spec.hints.read_only;
    let step = match &input.arguments {
        _ if sent.len() > MAX_FORM_BYTES => Step::Refuse(StatusCode::URI_TOO_LONG, TOO_LONG.to_owned()),
        Err(problem) => Step::Refuse(StatusCode::BAD_REQUEST, problem.clone()),
        Ok(_) if !input.is_call || !reads => Step::Fill,
        Ok(_) if sender::is_embedded(&headers) => Step::Refuse(StatusCode::FORBIDDEN, EMBEDDED.to_owned()),
        Ok(arguments) if input.is_padded => return page.shorter(arguments),
        Ok(_) => Step::Run,
    };
    page.take(step, &input).await
}

/// A submitted form: a change needs a confirmation before it runs.
pub(crate) async fn submit(
    State(service): State<Arc<Service>>,
    State(streamable): State<Arc<Streamable>>,
    Extension(caller): Extension<Caller>,
    Path((profile, tool)): Path<(String, String)>,
    request: Request<Body>,
) -> Response {
    let (parts, body) = request.into_parts();
    let page = match ToolPage::find((&service, &streamable), caller, &profile, &tool, &parts.headers) {
        Ok(page) => page,
        Err(refusal) => return *refusal,
    };
    if !sender::is_own_page(&parts.headers, &service.settings.public_url) {
        let refused = Step::Refuse(StatusCode::FORBIDDEN, sender::REFUSED.to_owned());
        return page.take(refused, &page.form.read("")).await;
    }
    let body = match read_limited(body, MAX_FORM_BYTES, service.settings.call_timeout).await {
        Ok(body) => body,
        Err(refusal) => {
            let refused = Step::Refuse(refusal.status(), TOO_LONG.to_owned());
            return page.take(refused, &page.form.read("")).await;
        }
    };
    let input = page.form.read(&String::from_utf8_lossy(&body));
    let step = match &input.arguments {
        Err(problem) => Step::Refuse(StatusCode::BAD_REQUEST, problem.clone()),
        Ok(_) if page.spec.hints.read_only || input.is_confirmed => Step::Run,
        Ok(_) => Step::Confirm,
    };
    page.take(step, &input).await
}

impl<'a> ToolPage<'a> {
    fn find(
        (service, streamable): (&'a Service, &'a Streamable),
        caller: Caller,
        profile: &str,
        tool: &str,
        headers: &HeaderMap,
    ) -> Result<Self, Box<Response>> {
        let profile = listing::find(service, &caller.principal, profile, headers)?;
        let state = profile.state();
        let known = state.visible_to(&caller.principal).registry.lookup(tool);
        let Some(spec) = known.map(|tool| tool.spec().clone()) else {
            let response = listing::no_tool(service, &caller.principal, profile, tool, headers);
            return Err(Box::new(response));
        };
        Ok(Self {
            form: Form::new(&spec),
            service,
            streamable,
            caller,
            profile,
            spec,
        })
    }

    async fn take(&self, step: Step, input: &Input) -> Response {
        let nothing = JsonObject::new();
        let arguments = input.arguments.as_ref().unwrap_or(&nothing);
        let request = CallRequest::new(address(self.service, self.profile), &self.spec.name, arguments);
        let answer = match step {
            Step::Run => Some(self.run(&request).await),
            _ => None,
        };
        self.page(&step, input, arguments, &request, answer)
    }

    /// Sends the request through the MCP endpoint, as a host does.
    async fn run(&self, request: &CallRequest) -> Answer {
        let clock = &self.service.clock;
        let started = clock.monotonic();
        let request = request.to_http(self.caller.clone());
        let response = Box::pin(self.streamable.handle(self.profile, request)).await;
        let body = axum::body::to_bytes(response.into_body(), MAX_ANSWER_BYTES).await;
        let took: Duration = clock.monotonic().saturating_duration_since(started);
        let body = body.unwrap_or_else(|_| "The response is incomplete; run the tool again.".into());
        Answer::new(&String::from_utf8_lossy(&body), took, &self.service.links)
    }

    fn page(
        &self,
        step: &Step,
        input: &Input,
        arguments: &JsonObject,
        request: &CallRequest,
        answer: Option<Answer>,
    ) -> Response {
        let (status, problem) = match step {
            Step::Refuse(status, problem) => (*status, Some(problem.as_str())),
            _ => (StatusCode::OK, None),
        };
        let links = &self.service.links;
        let (base, profile, spec) = (links.path_prefix(), self.profile.name(), &self.spec);
        let query = self.form.query(arguments);
        let is_whole = problem.is_none() && (input.is_call || !self.form.needs_arguments());
        let review = matches!(step, Step::Confirm).then(|| self.review(arguments));
        private(page::render(
            status,
            "try_tool.html",
            context! {
                base,
                section => "try",
                profile => profile,
                profile_page => profile_page(base, profile),
                address => address(self.service, self.profile),
                tool => context! {
                    name => spec.name.as_str(),
                    title => spec.title.as_str(),
                    description => spec.description.as_str(),
                    input_schema => indented(&Value::Object(spec.input_schema.clone()).to_string()),
                    output_schema => indented(&Value::Object(spec.output_schema.clone()).to_string()),
                    reads => spec.hints.read_only,
                    destructive => spec.hints.destructive,
                },
                hints => Serde(hint_meanings(spec.hints)),
                action => tool_page(base, profile, &spec.name),
                words => Serde(&self.form.words),
                fields => Serde(self.form.show(input)),
                json => input.json.as_deref().unwrap_or_default(),
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

    /// What the call will do, and the form fields that confirm it.
    fn review(&self, arguments: &JsonObject) -> minijinja::Value {
        let given: Vec<(&String, String)> = arguments.iter().map(|(name, value)| (name, plain(value))).collect();
        let whose = match &self.caller.principal {
            Principal::User(user) => user.to_string(),
            Principal::Local => "the user of this machine".to_owned(),
            Principal::Anonymous => "an anonymous caller".to_owned(),
        };
        context! {
            what => listing::first_sentence(&self.spec.description),
            given => Serde(given),
            whose,
            parameters => Serde(self.form.parameters(arguments)),
        }
    }

    /// Redirects to the same address without empty parameters.
    fn shorter(&self, arguments: &JsonObject) -> Response {
        let page = tool_page(self.service.links.path_prefix(), self.profile.name(), &self.spec.name);
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::SEE_OTHER;
        if let Ok(location) = HeaderValue::from_str(&format!("{page}?{}", self.form.query(arguments))) {
            response.headers_mut().insert(header::LOCATION, location);
        }
        private(response)
    }
}

/// A value for people: text as it is, several texts one per line.
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
