//! Search and fetch against a simulated exchange in this process.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use serde::{Deserialize, Serialize};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use tribune_binance::{feed, rest};
use tribune_citations::records::Records;
use tribune_citations::{Citations, Limits};
use tribune_core::{CallContext, Clock, DocumentId, Links, Principal, Query, Source, SystemClock};
use tribune_exchange_sim::{self as simulator, Exchange, Mode, Simulation};
use tribune_market::{MarketSource, market};

use crate::own::{Watch, at_share, ms};

/// A symbol that is always tracked.
const SYMBOL: &str = "BTCUSDT";
const READY_WITHIN: Duration = Duration::from_mins(1);
const CALL_LIMIT: Duration = Duration::from_secs(5);
/// Documents that come from a live book and its trades.
const DOCUMENTS: [&str; 4] = ["orderbook", "orderbook_l1", "orderbook_l2", "analytics:order_flow"];
const QUESTIONS: [&str; 12] = [
    "Bitcoin trading volume",
    "ETHUSDT",
    "eth/btc 1h candles",
    "order flow on solana",
    "bitcoin vs ethereum spread",
    "what is the price of dogecoin",
    "how liquid is XRP right now",
    "volume profile of chainlink",
    "latest trades of avalanche",
    "btc order book depth",
    "cardanno",
    "weather in Lisbon tomorrow",
];

#[derive(Args)]
pub struct AnswersArgs {
    #[arg(long)]
    symbols: usize,
    #[arg(long)]
    times: usize,
}

#[derive(Serialize, Deserialize)]
pub struct Answers {
    pub symbols: u64,
    pub rows: Vec<Row>,
}

#[derive(Serialize, Deserialize)]
pub struct Row {
    pub what: String,
    pub times: usize,
    pub p50_ms: f64,
    pub p99_ms: f64,
    pub max_ms: f64,
    pub other_cores: f64,
}

pub async fn measure(args: &AnswersArgs) -> Result<Answers> {
    let dir = TempDir::with_prefix("tribune-citations-").context("make a temporary directory")?;
    let exchange = exchange(args.symbols).await?;
    let source = source(&exchange, &dir)?;
    until_live(&source).await?;
    let mut rows = Vec::new();
    for kind in DOCUMENTS {
        let id = DocumentId::parse(&format!("{kind}:{SYMBOL}"))?;
        rows.push(
            timed(&format!("fetch {id}"), args.times, |_| async {
                let document = source.fetch(&id, &call()).await?;
                ensure!(document.is_some(), "there is no {id}");
                Ok(())
            })
            .await?,
        );
    }
    let found = |number: usize| {
        let query = Query { text: QUESTIONS[number % QUESTIONS.len()].to_owned(), limit: 10 };
        let source = &source;
        async move {
            source.search(&query, &call()).await?;
            Ok(())
        }
    };
    let what = format!("search, {} questions in turn", QUESTIONS.len());
    rows.push(timed(&what, args.times, found).await?);
    Ok(Answers { symbols: source.facts().documents.unwrap_or(0), rows })
}

async fn exchange(symbols: usize) -> Result<Exchange> {
    let simulation = Simulation { history_minutes: 24 * 60, ..Simulation::default() };
    let settings = tribune_exchange_sim::Settings {
        mode: Mode::Simulated(Simulation {
            // The others are the well-known ones.
            extra_symbols: symbols.saturating_sub(14),
            ..simulation
        }),
        limits: simulator::Limits { weight_per_minute: 1_000_000, ..simulator::Limits::default() },
        ..tribune_exchange_sim::Settings::default()
    };
    tribune_exchange_sim::start(settings).await.context("start the exchange")
}

fn source(exchange: &Exchange, dir: &TempDir) -> Result<Arc<MarketSource>> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let limits = Limits { keep: Duration::from_hours(24), most: 1_000_000 };
    let citations = Citations::open(dir.path().to_owned(), limits, clock.clone())?;
    let links = Links::new("https://tribune.example.org");
    let records = Records::new(Some(Arc::new(citations)), links);
    let settings = market::Settings {
        rest: rest::Settings { base_url: exchange.rest_url(), ..rest::Settings::default() },
        feed: feed::Settings::new(exchange.stream_url()),
        symbols: vec![SYMBOL.to_owned()],
        track_top: 0,
    };
    let source = Arc::new(MarketSource::new(market::Market::new(settings, clock)?, records));
    tokio::spawn(source.clone().run(CancellationToken::new()));
    Ok(source)
}

/// Waits until a document comes from a live book.
async fn until_live(source: &MarketSource) -> Result<()> {
    let id = DocumentId::parse(&format!("orderbook_l1:{SYMBOL}"))?;
    let begun = Instant::now();
    let mut last = String::new();
    while begun.elapsed() < READY_WITHIN {
        match source.fetch(&id, &call()).await {
            Ok(Some(document)) => {
                if document.metadata.get("book_state").is_some_and(|state| state == "live") {
                    return Ok(());
                }
                last = format!("{:?}", document.metadata);
            }
            Ok(None) => bail!("there is no {id}"),
            Err(error) => last = error.to_string(),
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    bail!("no live book after {READY_WITHIN:?}: {last}")
}

fn call() -> CallContext {
    CallContext::new(Principal::Local, Instant::now() + CALL_LIMIT)
}

/// Sequential calls, the first tenth unmeasured.
async fn timed<F: Future<Output = Result<()>>>(what: &str, times: usize, ask: impl Fn(usize) -> F) -> Result<Row> {
    for number in 0..times / 10 {
        ask(number).await?;
    }
    let watch = Watch::start()?;
    let mut latencies = Vec::with_capacity(times);
    for number in 0..times {
        let asked = Instant::now();
        ask(number).await?;
        latencies.push(asked.elapsed());
    }
    let spent = watch.stop()?;
    latencies.sort_unstable();
    let at = |share| at_share(&latencies, share).map_or(f64::NAN, ms);
    Ok(Row {
        what: what.to_owned(),
        times,
        p50_ms: at(0.50),
        p99_ms: at(0.99),
        max_ms: at(1.0),
        other_cores: spent.other_cores(),
    })
}
