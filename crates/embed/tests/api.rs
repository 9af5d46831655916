//! An embeddings endpoint that fails in the ways endpoints do.

#![allow(clippy::disallowed_methods, reason = "tests use the machine's clock")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tribune_embed::api::{Api, Settings};
use tribune_embed::{Embedder, Role};

const KEY: &str = "sk-canary-7431";

/// The head and body of each request.
type Requests = Arc<Mutex<Vec<(String, Value)>>>;
type Answer = Box<dyn Fn(usize, &Value) -> (u16, String) + Send>;

/// Answers each request with what `answer` makes of its number and body; returns the base URL and what was asked.
fn serve(answer: impl Fn(usize, &Value) -> (u16, String) + Send + 'static) -> (String, Requests) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let base = format!("http://{}/v1", listener.local_addr().expect("it listens"));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = seen.clone();
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let mut stream = BufReader::new(stream.expect("a connection"));
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") && stream.read_line(&mut head).expect("a head") > 0 {}
            let length =
                head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
            let mut body = vec![0; length.unwrap_or(0)];
            stream.read_exact(&mut body).expect("a body");
            let body: Value = serde_json::from_slice(&body).expect("JSON");
            let (status, text) = answer(number, &body);
            log.lock().expect("no panic").push((head, body));
            let reply = format!(
                "HTTP/1.1 {status} x\r\nretry-after: 0\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{text}",
                text.len()
            );
            // A client that has read enough may hang up.
            drop(stream.get_mut().write_all(reply.as_bytes()));
        }
    });
    (base, seen)
}

fn settings(base: &str) -> Settings {
    Settings { key: Some(KEY.into()), first_retry_wait: Duration::from_millis(1), ..Settings::new(base, "small") }
}

/// For each text a vector of its length and 0, in the opposite order.
fn vectors(body: &Value) -> (u16, String) {
    let texts = body["input"].as_array().expect("texts");
    let data: Vec<Value> = texts
        .iter()
        .enumerate()
        .rev()
        .map(|(index, text)| json!({ "index": index, "embedding": [text.as_str().expect("a text").len(), 3.0] }))
        .collect();
    (200, json!({ "data": data }).to_string())
}

#[test]
fn batches_are_retried_and_kept_in_order() {
    let (base, seen) = serve(|number, body| match number {
        0 => (429, "slow down".into()),
        1 => (503, String::new()),
        _ => vectors(body),
    });
    let api = Api::new(settings(&format!("{base}/"))).expect("settings are fine");
    assert_eq!(api.dimensions(), 0);
    let texts: Vec<String> = (0..100).map(|length| "x".repeat(length)).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let found = api.embed(Role::Passage, &texts).expect("embeds");
    assert_eq!(api.dimensions(), 2);
    assert_eq!(found.len(), 100);
    assert_eq!(found[0], [0.0, 1.0]);
    assert_eq!(found[4], [0.8, 0.6]);
    let seen = seen.lock().expect("no panic");
    let sizes: Vec<usize> = seen.iter().map(|(_, body)| body["input"].as_array().expect("texts").len()).collect();
    assert_eq!(sizes, [64, 64, 64, 36]);
    assert!(seen[0].0.starts_with("POST /v1/embeddings "), "{}", seen[0].0);
    assert!(seen[0].0.contains(KEY));
    assert_eq!(seen[0].1["model"], "small");
    assert!(seen[0].1.get("dimensions").is_none());
}

fn failure(settings: Settings) -> String {
    let api = Api::new(settings).expect("settings are fine");
    let error = api.embed(Role::Passage, &["a", "b"]).expect_err("fails").to_string();
    assert!(!error.contains(KEY), "{error}");
    error
}

#[test]
fn retries_end_when_endpoint_stays_down() {
    let (base, seen) = serve(|_, _| (500, json!({ "error": { "message": "out of memory" } }).to_string()));
    assert!(failure(settings(&base)).contains("500") && seen.lock().expect("no panic").len() == 5);
    let (base, _) = serve(|_, _| (500, json!({ "error": { "message": "out of memory" } }).to_string()));
    assert!(failure(settings(&base)).contains("out of memory"));
}

/// Somebody waits for a query: it is asked once, and the next one soon after not at all.
#[test]
fn query_does_not_wait_for_failed_endpoint() {
    let (base, seen) = serve(|_, _| (503, String::new()));
    let api = Api::new(settings(&base)).expect("settings are fine");
    for _ in 0..3 {
        api.embed(Role::Query, &["a"]).expect_err("fails");
    }
    assert_eq!(seen.lock().expect("no panic").len(), 1);
    // One that never answers is given up.
    let (base, _) = serve(|_, _| {
        loop {
            std::thread::park();
        }
    });
    let hanging = Api::new(settings(&base)).expect("settings are fine");
    hanging.embed(Role::Query, &["a"]).expect_err("fails");
}

#[test]
fn client_errors_are_not_retried_and_hide_the_key() {
    for status in [400, 401, 403] {
        let (base, seen) =
            serve(move |_, _| (status, json!({ "error": { "message": format!("bad key {KEY}") } }).to_string()));
        assert!(failure(settings(&base)).contains(&status.to_string()));
        assert_eq!(seen.lock().expect("no panic").len(), 1);
    }
}

#[test]
fn invalid_answers_are_refused() {
    let two =
        |first: Value, second: Value| move |_: usize, _: &Value| (200, json!({ "data": [first, second] }).to_string());
    let cases: Vec<(&str, Answer)> = vec![
        ("not a list", Box::new(|_, _| (200, "<html>".into()))),
        ("0 vectors for 2", Box::new(|_, _| (200, r#"{"data":[]}"#.into()))),
        ("instead of 2", Box::new(two(json!({ "embedding": [1, 2] }), json!({ "embedding": [1, 2, 3] })))),
        ("0 dimensions", Box::new(two(json!({ "embedding": [] }), json!({ "embedding": [] })))),
        (
            "wrong indexes",
            Box::new(two(json!({ "index": 0, "embedding": [1] }), json!({ "index": 0, "embedding": [1] }))),
        ),
        (
            "wrong indexes",
            Box::new(two(json!({ "index": 9, "embedding": [1] }), json!({ "index": 0, "embedding": [1] }))),
        ),
    ];
    for (expected, answer) in cases {
        let (base, _) = serve(answer);
        let error = failure(settings(&base));
        assert!(error.contains(expected), "{error}");
    }
    let (base, seen) = serve(|_, body| vectors(body));
    let asked = Settings { dimensions: Some(5), ..settings(&base) };
    assert!(failure(asked).contains("2 dimensions instead of 5"));
    assert_eq!(seen.lock().expect("no panic")[0].1["dimensions"], 5);
}

#[test]
fn fingerprints_differ_by_model_and_invalid_settings_fail() {
    assert!(Api::new(settings("ftp://x/v1")).is_err());
    assert!(Api::new(settings("nonsense")).is_err());
    assert!(Api::new(settings("https://user:secret@x/v1")).is_err());
    let of = |settings| Api::new(settings).expect("settings are fine").fingerprint().to_owned();
    let one = of(settings("https://x/v1"));
    assert_eq!(one, of(settings("https://x/v1/")));
    assert_ne!(one, of(Settings::new("https://x/v1", "large")));
    assert_ne!(one, of(Settings { dimensions: Some(5), ..settings("https://x/v1") }));
    assert!(Api::connect(settings("http://127.0.0.1:9/v1")).is_err());
}
