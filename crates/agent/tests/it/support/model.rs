//! A model that says what it is told to, over real HTTP.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::post;
use futures::StreamExt;
use futures::stream;
use serde_json::{Value, json};

/// What the model does with one request.
#[derive(Clone)]
pub enum Answer {
    /// A response of these pieces, then its end.
    Pieces { status: u16, headers: Vec<(&'static str, String)>, pieces: Vec<Vec<u8>>, ending: Ending },
    /// Never answers.
    Silence,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    Whole,
    /// The connection breaks.
    Broken,
    /// Nothing more comes.
    Hanging,
}

#[derive(Clone)]
pub struct Request {
    pub headers: HeaderMap,
    pub body: Value,
}

impl Request {
    pub fn messages(&self) -> &Vec<Value> {
        self.body["messages"].as_array().expect("messages")
    }

    /// The contents of the messages of one role.
    pub fn contents(&self, role: &str) -> Vec<&str> {
        let of_role = self.messages().iter().filter(|message| message["role"] == role);
        of_role.map(|message| message["content"].as_str().unwrap_or_default()).collect()
    }
}

type Script = Arc<Mutex<VecDeque<Answer>>>;
type Requests = Arc<Mutex<Vec<Request>>>;

pub struct ScriptedModel {
    pub url: String,
    requests: Requests,
}

impl ScriptedModel {
    /// The last answer is given again and again.
    pub async fn start(answers: impl IntoIterator<Item = Answer>) -> Self {
        let script: Script = Arc::new(Mutex::new(answers.into_iter().collect()));
        let requests = Requests::default();
        let seen = Arc::clone(&requests);
        let handler = move |headers: HeaderMap, body: Bytes| {
            let body = serde_json::from_slice(&body).expect("a request is JSON");
            seen.lock().expect("requests").push(Request { headers, body });
            respond(next(&script))
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let app = Router::new().route("/v1/chat/completions", post(handler));
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { url: format!("http://{address}/v1"), requests }
    }

    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().expect("requests").clone()
    }
}

fn next(script: &Script) -> Answer {
    let mut script = script.lock().expect("the script");
    match script.len() {
        1 => script.front().cloned(),
        _ => script.pop_front(),
    }
    .expect("an answer")
}

async fn respond(answer: Answer) -> Response {
    let Answer::Pieces { status, headers, pieces, ending } = answer else {
        futures::future::pending::<Infallible>().await;
        unreachable!("it never answers");
    };
    let few = pieces.len() < 100;
    let pieces = stream::iter(pieces).then(move |piece| async move {
        // Each piece is sent on its own.
        if few {
            tokio::time::sleep(Duration::from_millis(2)).await;
        } else {
            tokio::task::yield_now().await;
        }
        Ok(Bytes::from(piece))
    });
    let end = stream::once(async move {
        match ending {
            Ending::Whole => Ok(Bytes::new()),
            Ending::Broken => {
                // What was said before must be on its way.
                tokio::time::sleep(Duration::from_millis(250)).await;
                Err(std::io::Error::other("broken"))
            }
            Ending::Hanging => futures::future::pending().await,
        }
    });
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(name, value);
    }
    response.body(Body::from_stream(pieces.chain(end))).expect("a response")
}

pub fn delta(delta: &Value, finish: Option<&str>) -> String {
    let piece = json!({"id": "x", "object": "chat.completion.chunk", "choices": [
        {"index": 0, "delta": delta, "finish_reason": finish}
    ]});
    format!("data: {piece}\n\n")
}

/// A stream of exactly these bytes.
pub fn stream_of(pieces: impl IntoIterator<Item = impl Into<Vec<u8>>>, ending: Ending) -> Answer {
    Answer::Pieces {
        status: 200,
        headers: vec![("content-type", "text/event-stream".into())],
        pieces: pieces.into_iter().map(Into::into).collect(),
        ending,
    }
}

/// Text, a word at a time.
pub fn says(text: &str) -> Answer {
    let mut pieces = vec![delta(&json!({"role": "assistant", "content": ""}), None)];
    pieces.extend(text.split_inclusive(' ').map(|word| delta(&json!({ "content": word }), None)));
    pieces.push(delta(&json!({}), Some("stop")));
    pieces.push("data: [DONE]\n\n".into());
    stream_of(pieces, Ending::Whole)
}

/// Calls, after some text if there is any: `(tool, arguments as they are written)`.
pub fn calls_after(text: &str, calls: &[(&str, &str)]) -> Answer {
    let mut pieces = Vec::new();
    if !text.is_empty() {
        pieces.push(delta(&json!({ "content": text }), None));
    }
    for (index, (name, arguments)) in calls.iter().enumerate() {
        let begin = json!({"tool_calls": [
            {"index": index, "id": format!("c{index}"), "type": "function", "function": {"name": name, "arguments": ""}}
        ]});
        pieces.push(delta(&begin, None));
        let rest = json!({"tool_calls": [{"index": index, "function": {"arguments": arguments}}]});
        pieces.push(delta(&rest, None));
    }
    pieces.push(delta(&json!({}), Some("tool_calls")));
    pieces.push("data: [DONE]\n\n".into());
    stream_of(pieces, Ending::Whole)
}

pub fn calls(calls: &[(&str, &str)]) -> Answer {
    calls_after("", calls)
}

/// A status with a body of JSON.
pub fn status(status: u16, headers: &[(&'static str, &str)], body: &Value) -> Answer {
    let mut all = vec![("content-type", "application/json".to_owned())];
    all.extend(headers.iter().map(|(name, value)| (*name, (*value).to_owned())));
    Answer::Pieces { status, headers: all, pieces: vec![body.to_string().into_bytes()], ending: Ending::Whole }
}
