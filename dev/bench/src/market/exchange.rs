//! An exchange that only sends depth messages to subscribers, at a fixed rate. It runs in its own process, so that its
//! CPU time is not counted.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use axum::{
    Router,
    extract::{
        Query, State,
        ws::{Message, WebSocket, WebSocketUpgrade},
    },
    http::StatusCode,
    response::Response,
    routing::get,
};
use clap::Args;
use futures::{SinkExt, StreamExt, stream::SplitStream};
use serde::Deserialize;
use tokio::{
    net::TcpListener,
    sync::mpsc::{self, UnboundedReceiver, UnboundedSender},
};

use super::messages::{Book, Flow, IDS, message};

/// Of every book.
pub const MESSAGES_A_SECOND: u64 = 10;
/// Interval between sends.
const PACE: Duration = Duration::from_millis(5);
/// The number of different messages, which repeat.
const CYCLE: usize = 500;

#[derive(Args)]
pub struct ExchangeArgs {
    #[arg(long)]
    listen: SocketAddr,
    #[arg(long)]
    books: u32,
    #[arg(long)]
    levels: u32,
}

/// Every symbol has the same changes, starting at a different point of the cycle.
struct Exchange {
    first: Book,
    changes: Vec<Change>,
    symbols: Vec<Symbol>,
}

struct Change {
    best_bid: i64,
    levels: String,
}

struct Symbol {
    name: String,
    sent: AtomicU64,
}

pub fn symbol(number: u32) -> String {
    format!("S{number:04}USDT")
}

pub async fn serve(args: &ExchangeArgs) -> Result<()> {
    // A few more levels than a snapshot, because moving best prices remove some.
    let mut flow = Flow::new(args.levels as usize + 200, 1);
    let first = flow.book.clone();
    let changes =
        flow.cycle(CYCLE).into_iter().map(|change| Change { best_bid: change.best_bid, levels: change.levels() });
    let exchange = Exchange {
        first,
        changes: changes.collect(),
        symbols: (0..args.books).map(|number| Symbol { name: symbol(number), sent: AtomicU64::new(0) }).collect(),
    };
    let router = Router::new()
        .route("/readyz", get(|| async { "ready" }))
        .route("/api/v3/depth", get(depth))
        .route("/stream", get(stream))
        .with_state(Arc::new(exchange));
    let listener = TcpListener::bind(args.listen).await.context("listen")?;
    let listener = axum::serve::ListenerExt::tap_io(listener, |connection| {
        let _ = connection.set_nodelay(true);
    });
    axum::serve(listener, router).await.context("serve")
}

impl Exchange {
    fn lookup(&self, name: &str) -> Option<usize> {
        self.symbols.iter().position(|symbol| symbol.name.eq_ignore_ascii_case(name))
    }

    fn change(&self, symbol: usize, number: u64) -> &Change {
        &self.changes[(symbol * 7 + number as usize) % self.changes.len()]
    }

    fn next_message(&self, symbol: usize) -> String {
        let of = &self.symbols[symbol];
        let number = of.sent.fetch_add(1, Ordering::Relaxed);
        message(&of.name, number, &self.change(symbol, number).levels)
    }
}

#[derive(Deserialize)]
struct DepthQuery {
    symbol: String,
    limit: usize,
}

async fn depth(State(exchange): State<Arc<Exchange>>, Query(query): Query<DepthQuery>) -> Result<String, StatusCode> {
    let symbol = exchange.lookup(&query.symbol).ok_or(StatusCode::BAD_REQUEST)?;
    let sent = exchange.symbols[symbol].sent.load(Ordering::Relaxed);
    // The cycle ends in the state in which it began.
    let before = exchange.change(symbol, sent + exchange.changes.len() as u64 - 1);
    Ok(exchange.first.with_best(before.best_bid).snapshot_json(sent * IDS, query.limit))
}

async fn stream(State(exchange): State<Arc<Exchange>>, upgrade: WebSocketUpgrade) -> Response {
    upgrade.on_upgrade(|socket| send(exchange, socket))
}

/// Client messages for the sender.
struct Subscribed {
    symbols: Vec<usize>,
    id: u64,
}

#[derive(Deserialize)]
struct Subscription {
    params: Vec<String>,
    id: u64,
}

async fn send(exchange: Arc<Exchange>, socket: WebSocket) {
    let (mut sink, incoming) = socket.split();
    let (said, mut heard) = mpsc::unbounded_channel();
    tokio::spawn(listen(exchange.clone(), incoming, said));
    let mut symbols: Vec<usize> = Vec::new();
    let mut turn = 0;
    let mut owed = 0.0;
    let mut paid = Instant::now();
    let mut pace = tokio::time::interval(PACE);
    loop {
        pace.tick().await;
        match answers(&mut heard, &mut symbols) {
            Some(answers) => {
                for answer in answers {
                    if sink.feed(Message::text(answer)).await.is_err() {
                        return;
                    }
                }
            }
            None => return,
        }
        let now = Instant::now();
        owed += (now - paid).as_secs_f64() * (symbols.len() as u64 * MESSAGES_A_SECOND) as f64;
        paid = now;
        while owed >= 1.0 {
            owed -= 1.0;
            turn = (turn + 1) % symbols.len();
            if sink.feed(Message::text(exchange.next_message(symbols[turn]))).await.is_err() {
                return;
            }
        }
        if sink.flush().await.is_err() {
            return;
        }
    }
}

/// Handles subscriptions and returns the answers; `None` if the client disconnected.
fn answers(heard: &mut UnboundedReceiver<Subscribed>, symbols: &mut Vec<usize>) -> Option<Vec<String>> {
    let mut answers = Vec::new();
    loop {
        match heard.try_recv() {
            Ok(subscribed) => {
                symbols.extend(subscribed.symbols);
                answers.push(format!(r#"{{"result":null,"id":{}}}"#, subscribed.id));
            }
            Err(mpsc::error::TryRecvError::Empty) => return Some(answers),
            Err(mpsc::error::TryRecvError::Disconnected) => return None,
        }
    }
}

/// Only depth streams have messages.
async fn listen(exchange: Arc<Exchange>, mut incoming: SplitStream<WebSocket>, said: UnboundedSender<Subscribed>) {
    while let Some(Ok(message)) = incoming.next().await {
        let Message::Text(text) = message else { continue };
        let Ok(subscription) = serde_json::from_str::<Subscription>(&text) else {
            continue;
        };
        let depth = |stream: &String| exchange.lookup(stream.strip_suffix("@depth@100ms")?);
        let subscribed =
            Subscribed { symbols: subscription.params.iter().filter_map(depth).collect(), id: subscription.id };
        if said.send(subscribed).is_err() {
            return;
        }
    }
}
