//! A model that says what a test wants: an OpenAI-compatible endpoint on loopback, as fast as it can be.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

/// What the model does next.
#[derive(Debug, Clone)]
pub enum Reply {
    Says(String),
    /// Tools and their arguments, as text: a model may get those wrong.
    Calls(Vec<(String, String)>),
    /// An HTTP status with an error body.
    Fails(u16),
    /// Part of an answer, then the connection ends.
    BreaksOff,
    /// Not JSON at all.
    Garbage,
    /// Says it piece by piece, with pauses.
    Pieces(Vec<String>, Duration),
    /// Says it after a while.
    Slowly(Duration, String),
}

pub fn says(text: &str) -> Reply {
    Reply::Says(text.to_owned())
}

pub fn calls(tool: &str, arguments: &Value) -> Reply {
    Reply::Calls(vec![(tool.to_owned(), arguments.to_string())])
}

type Script = dyn Fn(&Asked) -> Reply + Send + Sync;

/// One request to the model.
pub struct Asked {
    pub body: Value,
}

impl Asked {
    pub fn messages(&self) -> &[Value] {
        self.body["messages"].as_array().map_or(&[], Vec::as_slice)
    }

    /// What the user said last.
    pub fn question(&self) -> &str {
        let mut said = self.messages().iter().rev();
        said.find(|message| message["role"] == "user")
            .and_then(|message| message["content"].as_str())
            .unwrap_or_default()
    }

    /// Results of the tools that were called for the question, first to last.
    pub fn results(&self) -> Vec<&str> {
        let asked = self
            .messages()
            .iter()
            .rposition(|message| message["role"] == "user")
            .unwrap_or(0);
        let since = self.messages()[asked..].iter();
        since
            .filter(|message| message["role"] == "tool")
            .filter_map(|message| message["content"].as_str())
            .collect()
    }
}

pub struct Model {
    pub url: String,
    asked: Arc<Mutex<Vec<Value>>>,
}

impl Model {
    pub fn start(script: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/v1", listener.local_addr().expect("an address"));
        let asked: Arc<Mutex<Vec<Value>>> = Arc::default();
        let (kept, script): (_, Arc<Script>) = (asked.clone(), Arc::new(script));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (kept, script) = (kept.clone(), script.clone());
                // A client that has gone is no reason for the model to fail.
                std::thread::spawn(move || drop(answer(&stream, &kept, &*script)));
            }
        });
        Self { url, asked }
    }

    /// Every request so far.
    pub fn asked(&self) -> Vec<Value> {
        self.asked.lock().expect("the lock").clone()
    }

    /// The table that lets Tribune use it.
    pub fn table(&self) -> String {
        format!("[agent]\nbase_url = \"{}\"\nmodel = \"scripted\"\n", self.url)
    }
}

fn answer(stream: &TcpStream, kept: &Mutex<Vec<Value>>, script: &Script) -> std::io::Result<()> {
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
    kept.lock().expect("the lock").push(body.clone());
    reply(stream, script(&Asked { body }))
}

fn reply(mut stream: &TcpStream, reply: Reply) -> std::io::Result<()> {
    match reply {
        Reply::Says(text) => send(stream, 200, "text/event-stream", &words(&text, true)),
        Reply::Slowly(time, text) => {
            std::thread::sleep(time);
            send(stream, 200, "text/event-stream", &words(&text, true))
        }
        Reply::Pieces(pieces, pause) => {
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")?;
            for piece in pieces {
                stream.write_all(event(&json!({"content": piece}), None).as_bytes())?;
                std::thread::sleep(pause);
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
    let mut stream: String = text
        .split_inclusive(' ')
        .map(|word| event(&json!({"content": word}), None))
        .collect();
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
