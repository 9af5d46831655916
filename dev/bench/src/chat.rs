//! Chats over HTTP with a model that answers at once: what remains is what Tribune adds.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use anyhow::{Context, Result, ensure};
use axum::{Router, body::Bytes, http::header::CONTENT_TYPE, response::IntoResponse, routing::post};
use clap::Args;
use memchr::memmem;
use serde_json::{Value, json};

use crate::{
    http::Connection,
    load::{self, Check, Measured, Target},
    process::Server,
};

#[derive(Args)]
pub struct ChatArgs {
    /// How long each row is measured
    #[arg(long, default_value_t = 5)]
    seconds: u64,

    /// The tribune binary [default: the one beside this program]
    #[arg(long, value_name = "FILE")]
    tribune: Option<PathBuf>,
}

const CALLERS: usize = 100;
/// From one question of a caller to the next: 200 a second in all.
const PACE: Duration = Duration::from_millis(500);
const WARM_UP: Duration = Duration::from_secs(1);
const PLAIN: &str = "How are you?";
const WITH_A_TOOL: &str = "What is on my list?";
const GOAL_MS: f64 = 50.0;

#[allow(clippy::print_stdout)] // The table is the result.
pub async fn run(args: &ChatArgs) -> Result<()> {
    let seconds = Duration::from_secs(args.seconds);
    let program = match &args.tribune {
        Some(program) => program.clone(),
        None => std::env::current_exe()?.with_file_name("tribune"),
    };
    let dir = tempfile::tempdir().context("make a folder")?;
    let model = start_model()?;
    println!("| what | callers | a second | p50 ms | p99 ms |");
    println!("|---|---:|---:|---:|---:|");
    let alone = load_model(model, seconds).await?;
    print_row("the model alone, one request", &alone);
    let tables = format!("[agent]\nbase_url = \"http://{model}/v1\"\nmodel = \"instant\"\n");
    let server = Server::tribune(&program, dir.path(), &tables).await?;
    for (name, question) in [("an answer", PLAIN), ("an answer after a tool call", WITH_A_TOOL)] {
        let requests = begin_conversations(server.addr, question).await?;
        for (how, pace) in [("200 a second", Some(PACE)), ("as fast as it goes", None)] {
            let measured = load_tribune(&server, requests.clone(), pace, seconds).await?;
            print_row(&format!("{name}, {how}"), &measured);
            let p99 = measured.latency_ms(0.99);
            if p99 > GOAL_MS {
                eprintln!("{name}, {how}: p99 of {p99:.1} ms is above the goal of {GOAL_MS} ms");
            }
        }
    }
    server.stop().await
}

#[allow(clippy::print_stdout)]
fn print_row(name: &str, measured: &Measured) {
    println!(
        "| {name} | {CALLERS} | {:.0} | {:.2} | {:.2} |",
        measured.requests() as f64 / measured.elapsed.as_secs_f64(),
        measured.latency_ms(0.5),
        measured.latency_ms(0.99),
    );
}

/// An OpenAI-compatible endpoint on a thread of its own.
fn start_model() -> Result<SocketAddr> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").context("bind the model")?;
    listener.set_nonblocking(true)?;
    let addr = listener.local_addr()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::spawn(move || {
        runtime.block_on(async move {
            let listener = tokio::net::TcpListener::from_std(listener)?;
            let router = Router::new().route("/v1/chat/completions", post(complete));
            axum::serve(listener, router).await
        })
    });
    Ok(addr)
}

/// Answers at once; calls a tool first if the question is the one for that and no result is there yet.
async fn complete(body: Bytes) -> impl IntoResponse {
    let question = memmem::rfind(&body, WITH_A_TOOL.as_bytes());
    let answered = memmem::rfind(&body, b"\"role\":\"tool\"");
    let events = if question.is_some() && answered < question {
        chunk(
            &json!({"tool_calls": [{"index": 0, "id": "a", "type": "function", "function": {"name": "list_tasks", "arguments": "{}"}}]}),
            "tool_calls",
        )
    } else {
        chunk(&json!({"content": "Everything is as it should be."}), "stop")
    };
    ([(CONTENT_TYPE, "text/event-stream")], events)
}

fn chunk(delta: &Value, finish: &str) -> String {
    let part = |delta: &Value, finish: Option<&str>| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        let chunk = json!({"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "instant", "choices": [choice]});
        format!("data: {chunk}\n\n")
    };
    format!("{}{}data: [DONE]\n\n", part(delta, None), part(&json!({}), Some(finish)))
}

fn http_post(addr: SocketAddr, path: &str, body: &Value) -> Vec<u8> {
    let body = body.to_string();
    format!(
        "POST {path} HTTP/1.1\r\nhost: {addr}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// A conversation for each caller, each with something said in it, and the question that goes on with it.
async fn begin_conversations(addr: SocketAddr, question: &str) -> Result<Vec<Vec<u8>>> {
    let mut connection = Connection::open(addr).await?;
    let mut requests = Vec::with_capacity(CALLERS);
    for _ in 0..CALLERS {
        let begin = http_post(addr, "/chat", &json!({"message": question, "new_conversation": true}));
        let answer = connection.exchange(&begin).await?;
        ensure!(answer.status == 200, "{}", String::from_utf8_lossy(answer.body));
        let answer: Value = serde_json::from_slice(answer.body)?;
        let next = json!({"message": question, "conversation_id": answer["conversation_id"]});
        requests.push(http_post(addr, "/chat", &next));
    }
    Ok(requests)
}

async fn load_tribune(
    server: &Server,
    requests: Vec<Vec<u8>>,
    pace: Option<Duration>,
    measured: Duration,
) -> Result<Measured> {
    let target = Target {
        addr: server.addr,
        pid: server.pid,
        requests,
        connections: CALLERS,
        pace,
        check: Check::holding(b"Everything is as it should be."),
    };
    checked(load::run_for(target, WARM_UP, measured).await?)
}

async fn load_model(addr: SocketAddr, measured: Duration) -> Result<Measured> {
    let question = json!({"model": "instant", "stream": true, "messages": [{"role": "user", "content": PLAIN}]});
    let target = Target {
        addr,
        pid: std::process::id(),
        requests: vec![http_post(addr, "/v1/chat/completions", &question)],
        connections: CALLERS,
        pace: None,
        check: Check::holding(b"Everything is as it should be."),
    };
    checked(load::run_for(target, WARM_UP, measured).await?)
}

fn checked(measured: Measured) -> Result<Measured> {
    ensure!(
        measured.failures == 0,
        "{} answers failed, the first: {}",
        measured.failures,
        measured.first_failure.as_deref().unwrap_or_default()
    );
    Ok(measured)
}
