//! Boards of a market against the simulated exchange: every answer is read back as it was told, pages cost the exchange
//! next to nothing, and what was cited stays as it was.

mod looks;

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;
use tribune_core::view::{Board, Content, Panel, Tone, View};
use tribune_core::{CallContext, Cited, Document, DocumentId, Links, Principal, Source as _, SystemClock};
use tribune_exchange_sim::{Exchange, Limits, Mode, Settings, Simulation};

use super::record::Told;
use super::then;
use crate::analytics::cost::{Action, Size};
use crate::answers::{self, Answer};
use crate::citations::{self, Citations};
use crate::feed;
use crate::market::{self, Market};
use crate::number::Notional;
use crate::records::Records;
use crate::rest;
use crate::source::MarketSource;
use crate::symbols::MarketId;

const PATIENCE: Duration = Duration::from_secs(30);
const SYMBOL: &str = "BTCUSDT";
const IDS: [&str; 12] = [
    "ticker:BTCUSDT",
    "orderbook:BTCUSDT",
    "orderbook_l1:BTCUSDT",
    "orderbook_l2:BTCUSDT",
    "klines:BTCUSDT:1m",
    "trades:BTCUSDT",
    "exchange_info:BTCUSDT",
    "analytics:order_flow:BTCUSDT",
    "analytics:volume_profile:BTCUSDT",
    "analytics:anomalies:BTCUSDT",
    "analytics:liquidity_vacuums:BTCUSDT",
    "analytics:health:BTCUSDT",
];

struct Bench {
    exchange: Exchange,
    source: MarketSource,
    market: Arc<Market>,
    folder: TempDir,
}

impl Bench {
    async fn start() -> Self {
        Self::keeping(100).await
    }

    /// With so many live books at most.
    async fn keeping(max_books: usize) -> Self {
        let simulation = Simulation {
            seed: 7,
            events_per_second: 20.0,
            levels: 200,
            history_minutes: 120,
            warm_up: Duration::from_secs(20),
            ..Simulation::default()
        };
        let settings = Settings {
            mode: Mode::Simulated(simulation),
            limits: Limits::default(),
            ..Settings::default()
        };
        let exchange = tribune_exchange_sim::start(settings).await.expect("it starts");
        let folder = tempfile::tempdir().expect("a folder");
        let limits = citations::Limits {
            keep: Duration::from_secs(86_400),
            most: 1_000,
        };
        let citations = Citations::open(folder.path().to_owned(), limits, Arc::new(SystemClock)).expect("a folder");
        let records = Records::new(
            Some(Arc::new(citations)),
            limits.keep,
            Links::new("http://tribune.test"),
        );
        let source = MarketSource::new(records, None, Arc::new(SystemClock)).expect("settings");
        let rest = rest::Settings {
            base_url: exchange.rest_url(),
            timeout: Duration::from_secs(20),
            ..rest::Settings::default()
        };
        let settings = market::Settings {
            rest,
            feed: feed::Settings {
                max_books,
                ..feed::Settings::new(exchange.stream_url())
            },
            symbols: vec![SYMBOL.to_owned()],
            track_top: 0,
        };
        let market = source.begin(settings).expect("it begins");
        let bench = Self {
            exchange,
            source,
            market,
            folder,
        };
        bench.until("the book is live", || bench.is_live()).await;
        bench
    }

    fn is_live(&self) -> bool {
        let tracked = self.market.feed.lookup(SYMBOL);
        tracked.is_some_and(|tracked| tracked.live().is_some() && tracked.tape.last().is_some())
    }

    async fn until(&self, what: &str, holds: impl Fn() -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !holds() {
            assert!(Instant::now() < deadline, "it never came to this: {what}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn board(&self, document: &Document, cited: bool) -> Board {
        let cited = document.as_of.filter(|_| cited);
        let cx = CallContext::new(Principal::Local, Instant::now() + PATIENCE);
        match self.source.view(document, cited, &cx).await.expect("a view") {
            Some(View::Board(board)) => *board,
            other => panic!("{}: {other:?}", document.id),
        }
    }

    /// As the page of an id has it: nothing but the id is used of the document.
    async fn now(&self, id: &str) -> Board {
        self.board(&nothing_but(id), false).await
    }

    fn asked(&self, endpoint: &str) -> u64 {
        let counts = self.exchange.counts();
        let of = |name: &str| counts.requests.get(name).copied().unwrap_or(0);
        of(&format!("/api/v3/{endpoint}")) + of(endpoint)
    }

    async fn answers(&self) -> Vec<Answer> {
        let market = &*self.market;
        let mut all = Vec::new();
        for id in IDS {
            let id = DocumentId::parse(id).expect("an id");
            let id = MarketId::parse(&id).expect("ours").expect("a market's");
            all.push(self.source.answer(&id).await.expect("an answer"));
        }
        let size = Size::Quote(Notional::parse("1000").expect("money"));
        all.push(
            answers::cost::cost_to_trade(market, SYMBOL, Action::Buy, size)
                .await
                .expect("a cost"),
        );
        all.push(answers::ticker::average(market, SYMBOL).await.expect("an average"));
        all.push(answers::anomalies::book_health(market, SYMBOL).await.expect("health"));
        all.push(answers::compare::row(market, SYMBOL).await.expect("a row"));
        all
    }
}

fn nothing_but(id: &str) -> Document {
    Document {
        id: DocumentId::parse(id).expect("an id"),
        title: String::new(),
        text: String::new(),
        url: None,
        as_of: None,
        metadata: tribune_core::JsonObject::new(),
        passages: Vec::new(),
    }
}

fn keys(board: &Board) -> Vec<&str> {
    board.panels.iter().map(|panel| panel.key).collect()
}

fn panel<'a>(board: &'a Board, key: &str) -> &'a Panel {
    let found = board.panels.iter().find(|panel| panel.key == key);
    found.unwrap_or_else(|| panic!("no panel {key} among {:?}", keys(board)))
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_answer_is_read_back_as_it_was_told() {
    let bench = Bench::start().await;
    for answer in bench.answers().await {
        let document = answer.clone().into_document();
        let told = Told::read(&document).unwrap_or_else(|| panic!("not read: {}", document.text));
        for (name, value) in &answer.data {
            assert_eq!(told.fields.get(name), Some(&plain(value)), "{name} of {}", document.id);
        }
        assert_eq!(told.tables.len(), answer.tables.len());
        for (read, table) in told.tables.iter().zip(&answer.tables) {
            let rows: Vec<Vec<String>> = table.rows.iter().map(|row| row.iter().map(plain).collect()).collect();
            assert_eq!(
                (read.name.as_str(), &read.columns[..]),
                (
                    table.name,
                    &table.columns.iter().map(|&name| name.to_owned()).collect::<Vec<_>>()[..]
                )
            );
            assert_eq!(read.rows, rows, "{} of {}", table.name, document.id);
        }
        let board = then(&document).expect("a board");
        assert!(
            !board.panels.is_empty() && !board.is_live && board.shows_text,
            "{}",
            document.id
        );
        assert_eq!((&*board.title, board.badges[0].tone), ("BTC/USDT", Tone::Simulated));
        let is_cost = answer.data.contains_key("asked_quote");
        let says_so = board
            .notes
            .iter()
            .any(|note| note.contains("for buying 1000 USDT now, ask"));
        assert_eq!(says_so, is_cost, "{}: {:?}", document.id, board.notes);
        let mut unique = keys(&board);
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), board.panels.len(), "{:?}", keys(&board));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_on_a_market_shows_it_whole_and_asks_the_exchange_little() {
    let bench = Bench::start().await;
    let endpoints = ["ticker/24hr", "klines", "depth", "aggTrades", "trades"];
    let first = bench.now("ticker:BTCUSDT").await;
    let before: Vec<u64> = endpoints.iter().map(|endpoint| bench.asked(endpoint)).collect();
    let began = Instant::now();
    for _ in 0..200 {
        bench.now("ticker:BTCUSDT").await;
    }
    let (spent, took) = (endpoints.iter().map(|endpoint| bench.asked(endpoint)), began.elapsed());
    // Each may have grown old once while the test ran.
    let rounds = 1 + took.as_secs() / 5;
    for ((endpoint, before), after) in endpoints.iter().zip(before).zip(spent) {
        assert!(
            after - before <= 2 * rounds,
            "{endpoint} was asked {} times in {took:?}",
            after - before
        );
    }
    assert_eq!(
        keys(&first),
        [
            "candles",
            "depth",
            "ladder",
            "spread",
            "imbalance",
            "profile",
            "flow",
            "cost"
        ]
    );
    for key in ["candles", "depth", "ladder", "profile", "cost"] {
        let panel = panel(&first, key);
        assert!(!matches!(panel.content, Content::Missing(_)), "{panel:?}");
        assert!(panel.note.is_some(), "{key} says what it is of");
    }
    let headline = first.headline.as_ref().expect("a headline");
    assert!(headline.value.text.parse::<f64>().expect("a price") > 0.0);
    assert!(headline.age_ms.expect("an age") < 10_000 && headline.as_of.is_some());
    let labels: Vec<&str> = headline.figures.iter().map(|figure| &*figure.label).collect();
    assert_eq!(
        labels,
        [
            "24 h high",
            "24 h low",
            "24 h volume",
            "24 h worth",
            "Best bid",
            "Best ask",
            "Spread"
        ]
    );
    assert!(
        first.is_live && first.shows_text && first.notes.is_empty(),
        "{:?}",
        first.notes
    );
    assert_eq!(
        (&*first.badges[0].label, first.badges[1].tone),
        ("SIMULATED", Tone::Good)
    );
    assert!(first.links.iter().any(|link| link.id.scheme() == "report"));
    let kept = std::fs::read_dir(bench.folder.path()).expect("the folder").count();
    assert_eq!(kept, 0, "looking cites nothing");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_document_has_a_page_of_the_present() {
    let bench = Bench::start().await;
    for id in IDS {
        let board = bench.now(id).await;
        let missing: Vec<&Panel> = board
            .panels
            .iter()
            .filter(|panel| {
                // The lists of what the streams have brought begin with the test.
                let is_young = id.contains("order_flow") && panel.key == "trades"
                    || ["spread", "imbalance", "vacuums"].contains(&panel.key);
                matches!(panel.content, Content::Missing(_)) && !is_young
            })
            .collect();
        assert!(missing.is_empty() && !board.panels.is_empty(), "{id}: {missing:?}");
        assert_eq!(board.is_live, !id.starts_with("exchange_info"), "{id}");
        assert!(board.links.iter().any(|link| link.id.scheme() == "ticker"), "{id}");
    }
    let first = async |id: &str| bench.now(id).await.panels[0].key;
    assert_eq!(first("klines:BTCUSDT:1m").await, "candles");
    assert_eq!(first("trades:BTCUSDT").await, "trades");
    assert_eq!(first("analytics:volume_profile:BTCUSDT").await, "profile");
    assert_eq!(first("analytics:health:BTCUSDT").await, "components");
    assert_eq!(first("orderbook:BTCUSDT").await, "depth");
    // A bare symbol is its market.
    assert_eq!(first("market:btcusdt").await, "candles");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_cited_stays_as_it_was() {
    let bench = Bench::start().await;
    let cx = CallContext::new(Principal::Local, Instant::now() + PATIENCE);
    let id = DocumentId::parse("orderbook:BTCUSDT").expect("an id");
    let fetched = bench.source.fetch(&id, &cx).await.expect("an answer").expect("ours");
    let url = fetched.url.clone().expect("a citation");
    let record = Links::cited_record(&url).expect("a record");
    let Some(Cited::Kept { document, .. }) = bench.source.cited(&id, record).await.expect("a look") else {
        panic!("not kept")
    };
    let shown = bench.board(&document, true).await;
    let Content::Ladder(ladder) = &panel(&shown, "ladder").content else {
        panic!("a ladder")
    };
    let told = Told::read(&fetched).expect("an answer");
    let best = &told.table("bids").expect("bids").rows[0][0];
    assert_eq!(ladder.bids[0].price.parse::<f64>(), best.parse::<f64>());
    assert!(matches!(panel(&shown, "depth").content, Content::Depth(_)));
    assert!(
        shown.badges.iter().all(|badge| badge.label != "live book"),
        "it is past"
    );
    let update = told.text("last_update_id").expect("an id").to_owned();
    let moved = || {
        let tracked = bench.market.feed.lookup(SYMBOL).and_then(|tracked| tracked.live());
        tracked.is_some_and(|view| view.last_update_id.to_string() != update)
    };
    bench.until("the book moves", moved).await;
    assert_eq!(bench.board(&document, true).await, shown, "the record alone is shown");
    let headline = shown.headline.expect("a headline");
    assert_eq!((&*headline.label, headline.as_of), ("Mid price", fetched.as_of));
    let id = DocumentId::parse("orderbook_l2:BTCUSDT").expect("an id");
    let depth = bench.source.fetch(&id, &cx).await.expect("an answer").expect("ours");
    let costs = bench.board(&depth, true).await;
    let Content::Table(costs) = &panel(&costs, "cost").content else {
        panic!("{costs:?}")
    };
    assert_eq!(
        (costs.rows.len(), &*costs.rows[0][1].text),
        (8, "1000"),
        "what it was to cost"
    );
    // A search result has a sentence only, and its page is that.
    let brief = Document {
        text: "BTCUSDT: last price 1.".to_owned(),
        ..*document
    };
    let view = bench.source.view(&brief, brief.as_of, &cx).await.expect("a look");
    assert_eq!(view, None);
}
