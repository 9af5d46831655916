//! A scripted model: an OpenAI-compatible endpoint on loopback.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};

use serde_json::{Value, json};

/// The model's next action.
#[derive(Debug, Clone)]
pub enum Reply {
    Says(String),
    /// Tool calls with arguments as text, so that they can be invalid.
    Calls(Vec<(String, String)>),
    /// An HTTP status with an error body.
    Fails(u16),
    /// Part of an answer, then the connection closes.
    BreaksOff,
    /// Not JSON at all.
    Garbage,
    /// Says the first pieces, and the others once it is released.
    HeldAfter(usize, Vec<String>),
}

pub fn says(text: &str) -> Reply {
    Reply::Says(text.to_owned())
}

pub fn calls(tool: &str, arguments: &Value) -> Reply {
    Reply::Calls(vec![(tool.to_owned(), arguments.to_string())])
}

type Script = dyn Fn(&ModelRequest) -> Reply + Send + Sync;

/// One request to the model.
pub struct ModelRequest {
    pub body: Value,
}

impl ModelRequest {
    pub fn messages(&self) -> &[Value] {
        self.body["messages"].as_array().map_or(&[], Vec::as_slice)
    }

    /// The last user message.
    pub fn question(&self) -> &str {
        let mut said = self.messages().iter().rev();
        said.find(|message| message["role"] == "user")
            .and_then(|message| message["content"].as_str())
            .unwrap_or_default()
    }

    /// Results of the tool calls for the question, in order.
    pub fn results(&self) -> Vec<&str> {
        let asked = self.messages().iter().rposition(|message| message["role"] == "user").unwrap_or(0);
        let since = self.messages()[asked..].iter();
        since.filter(|message| message["role"] == "tool").filter_map(|message| message["content"].as_str()).collect()
    }
}

pub struct Model {
    pub url: String,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    asked: Mutex<Vec<Value>>,
    /// How many held answers may go on.
    released: Mutex<usize>,
    changed: Condvar,
}

impl Shared {
    fn release(&self) {
        *self.released.lock().expect("the lock") += 1;
        self.changed.notify_all();
    }

    fn wait_for_release(&self) {
        let released = self.released.lock().expect("the lock");
        let mut released = self.changed.wait_while(released, |count| *count == 0).expect("the lock");
        *released -= 1;
    }
}

impl Model {
    pub fn start(script: impl Fn(&ModelRequest) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/v1", listener.local_addr().expect("an address"));
        let shared: Arc<Shared> = Arc::default();
        let (kept, script): (_, Arc<Script>) = (shared.clone(), Arc::new(script));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (kept, script) = (kept.clone(), script.clone());
                // Ignore clients that have disconnected.
                std::thread::spawn(move || drop(answer(&stream, &kept, &*script)));
            }
        });
        Self { url, shared }
    }

    /// Every request so far.
    pub fn asked(&self) -> Vec<Value> {
        self.shared.asked.lock().expect("the lock").clone()
    }

    /// Lets one held answer go on. A browser does the same with `POST {url}` and `{"release": true}`.
    pub fn release(&self) {
        self.shared.release();
    }

    /// The `[agent]` table for this model.
    pub fn table(&self) -> String {
        format!("[agent]\nbase_url = \"{}\"\nmodel = \"scripted\"\n", self.url)
    }
}

fn answer(stream: &TcpStream, shared: &Shared, script: &Script) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let line = line.trim().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let body: Value = serde_json::from_slice(&body)?;
    if body["release"] == true {
        shared.release();
        return send(stream, 200, "application/json", "{}");
    }
    shared.asked.lock().expect("the lock").push(body.clone());
    reply(stream, script(&ModelRequest { body }), shared)
}

fn reply(mut stream: &TcpStream, reply: Reply, shared: &Shared) -> std::io::Result<()> {
    match reply {
        Reply::Says(text) => send(stream, 200, "text/event-stream", &words(&text, true)),
        Reply::HeldAfter(count, pieces) => {
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")?;
            for (place, piece) in pieces.iter().enumerate() {
                if place == count {
                    shared.wait_for_release();
                }
                stream.write_all(event(&json!({"content": piece}), None).as_bytes())?;
            }
            stream.write_all(words("", true).as_bytes())
        }
        Reply::Calls(calls) => send(stream, 200, "text/event-stream", &tool_calls(&calls)),
        Reply::Fails(status) => {
            let body = json!({"error": {"message": "no", "type": "scripted"}}).to_string();
            send(stream, status, "application/json", &body)
        }
        Reply::BreaksOff => {
            stream.write_all(
                b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
            )?;
            let part = words("Half of an", false);
            write!(stream, "{:x}\r\n{part}\r\n", part.len())
        }
        Reply::Garbage => send(stream, 200, "text/event-stream", "data: {]\n\n\u{0}\u{1}\n\n"),
    }
}

fn send(mut stream: &TcpStream, status: u16, kind: &str, body: &str) -> std::io::Result<()> {
    write!(
        stream,
        "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}

fn event(delta: &Value, finish: Option<&str>) -> String {
    let chunk = json!({
        "id": "c", "object": "chat.completion.chunk", "created": 0, "model": "scripted",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    });
    format!("data: {chunk}\n\n")
}

fn words(text: &str, whole: bool) -> String {
    let mut stream: String = text.split_inclusive(' ').map(|word| event(&json!({"content": word}), None)).collect();
    if whole {
        stream += &event(&json!({}), Some("stop"));
        stream += "data: [DONE]\n\n";
    }
    stream
}

fn tool_calls(calls: &[(String, String)]) -> String {
    let calls: Vec<Value> = calls
        .iter()
        .enumerate()
        .map(|(at, (tool, arguments))| {
            json!({"index": at, "id": format!("call{at}"), "type": "function", "function": {"name": tool, "arguments": arguments}})
        })
        .collect();
    event(&json!({"tool_calls": calls}), None) + &event(&json!({}), Some("tool_calls")) + "data: [DONE]\n\n"
}
