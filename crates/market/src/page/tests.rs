//! Boards of a market against the simulated exchange: every answer is read back from its record, pages cost the exchange
//! next to nothing, and what was cited stays as it was.

mod looks;

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::Value;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use tribune_core::{CallContext, Cited, Document, DocumentId, Links, Principal, Source as _, SystemClock};
use tribune_exchange_sim::{Exchange, Limits, Mode, Settings, Simulation};
use tribune_page::{Board, Content, Panel, Tone, View};

use super::{Beside, Page, then};
use crate::kinds::{self, About, Answer, Fields as _, Named, Provenance, Record};
use crate::market::{self, Market};
use crate::source::MarketSource;
use tribune_analytics::{Action, Size};
use tribune_binance::testing::ShiftedClock;
use tribune_binance::{Millis, Notional, feed, rest};
use tribune_citations::Citations;
use tribune_citations::records::Records;
use tribune_market_resolve::id::MarketId;

const PATIENCE: Duration = Duration::from_secs(120);
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

const MINUTE: Millis = 60_000;

struct Bench {
    clock: Arc<ShiftedClock>,
    exchange: Exchange,
    source: Arc<MarketSource>,
    market: Arc<Market>,
    folder: TempDir,
}

impl Bench {
    async fn start() -> Self {
        Self::keeping(100, None).await
    }

    /// With so many live books at most, and the time of the exchange's clock if it is not the machine's.
    async fn keeping(max_books: usize, start: Option<Millis>) -> Self {
        let simulation = Simulation {
            seed: 7,
            start,
            events_per_second: 20.0,
            levels: 200,
            history_minutes: 120,
            warm_up: Duration::from_secs(20),
            ..Simulation::default()
        };
        let settings = Settings { mode: Mode::Simulated(simulation), limits: Limits::default(), ..Settings::default() };
        let exchange = tribune_exchange_sim::start(settings).await.expect("it starts");
        let folder = tempfile::tempdir().expect("a folder");
        let limits = tribune_citations::Limits { keep: Duration::from_secs(86_400), most: 1_000 };
        let citations = Citations::open(folder.path().to_owned(), limits, Arc::new(SystemClock)).expect("a folder");
        let records = Records::new(Some(Arc::new(citations)), Links::new("http://tribune.test"));
        let rest = rest::Settings {
            base_url: exchange.rest_url(),
            timeout: Duration::from_secs(20),
            ..rest::Settings::default()
        };
        let settings = market::Settings {
            rest,
            feed: feed::Settings { max_books, ..feed::Settings::new(exchange.stream_url()) },
            symbols: vec![SYMBOL.to_owned()],
            track_top: 0,
        };
        let clock = Arc::new(ShiftedClock::default());
        let market = Market::new(settings, clock.clone()).expect("settings");
        let source = Arc::new(MarketSource::new(market.clone(), records));
        tokio::spawn(source.clone().run(CancellationToken::new()));
        let bench = Self { clock, exchange, source, market, folder };
        bench.until("the book is live", || bench.is_live()).await;
        bench
    }

    /// How many citations are recorded.
    fn record_count(&self) -> i64 {
        let database = rusqlite::Connection::open(self.folder.path().join("records.db")).expect("a database");
        database
            .query_row("SELECT (SELECT count(*) FROM records) + (SELECT count(*) FROM anonymous_records)", [], |row| {
                row.get(0)
            })
            .expect("a count")
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

    /// The record of a document that is fetched now.
    async fn cited(&self, id: &DocumentId, cx: &CallContext) -> Document {
        let fetched = self.source.fetch(id, cx).await.expect("an answer").expect("ours");
        let record = fetched.url.as_deref().and_then(Links::cited_record).expect("a record");
        match self.source.cited(id, record).await.expect("a look") {
            Some(Cited::Kept { document, .. }) => {
                assert!(Record::read(&document).is_none(), "the values are for the page alone");
                *document
            }
            other => panic!("not kept: {other:?}"),
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
            all.push(kinds::load(&self.market, &id).await.expect("an answer"));
        }
        let size = Size::Quote("1000".parse::<Notional>().expect("money"));
        let cost = kinds::cost::load(market, SYMBOL, Action::Buy, size).await;
        let order = tribune_analytics::Order::Gain;
        let top = kinds::ranking::load_top(market, None, order, 5).await;
        all.extend([cost.expect("a cost"), top.expect("a ranking")]);
        all.push(kinds::average::load(market, SYMBOL).await.expect("an average"));
        all.push(kinds::book_health::load(market, SYMBOL).await.expect("health"));
        all.push(kinds::compare::load(market, SYMBOL).await.expect("a row"));
        let money = DocumentId::parse("markets:USDT").expect("an id");
        let money = MarketId::parse(&money).expect("ours").expect("a market's");
        all.push(kinds::load(market, &money).await.expect("all markets"));
        all
    }
}

impl Page<'_> {
    /// Of an answer about BTCUSDT without figures.
    pub(super) fn example(look: impl FnOnce(&Page<'_>)) {
        let about = About::symbol(&tribune_binance::Symbol::named("BTCUSDT", "BTC", "USDT"));
        let time = "2026-11-16T00:00:00Z";
        let provenance = serde_json::json!({"venue": "binance", "source": "rest", "exchange_time": time,
            "received_time": time, "age_ms": 1});
        let provenance: Provenance = serde_json::from_value(provenance).expect("a provenance");
        let named = Named { what: String::new(), headline: "".into(), figures: tribune_core::JsonObject::new() };
        look(&Page { about: &about, provenance: &provenance, named: &named, age_ms: 1, last_price: None });
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

/// The document of an answer, as a citation record gives it back.
fn from_record(answer: &Answer, snippet: Option<&str>) -> Document {
    let record = answer.record(&answer.document(), snippet, None).expect("written");
    tribune_citations::document(&record).expect("read")
}

/// What is written, read and written again is the same, and the page is drawn from what was read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_answer_is_drawn_from_its_record() {
    let bench = Bench::start().await;
    for answer in bench.answers().await {
        let document = from_record(&answer, Some("What a result said."));
        let id = &document.id;
        let record = Record::read(&document).expect("values").expect("of this version");
        let object = answer.object("http://tribune.test").fields();
        for (name, value) in &record.answer.figures {
            assert_eq!(object.get(name), Some(value), "{name} of {id}");
        }
        assert_eq!((&*record.answer, &*record.about), (answer.named(), &answer.about));
        assert_eq!(record.provenance.fields(), answer.provenance.fields());
        let board = then(&document).expect("a board");
        assert!(!board.panels.is_empty() && !board.is_live && board.shows_text, "{id}");
        let is_of_all = id.scheme() == "markets";
        assert_eq!(board.title, if is_of_all { "USDT markets" } else { "BTC/USDT" });
        assert_eq!(board.badges[0].tone, Tone::Simulated);
        assert!(board.notes.contains(&"What a result said.".to_owned()), "{id}");
        let mut unique = keys(&board);
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), board.panels.len(), "{:?}", keys(&board));
    }
}

/// Nothing that was acknowledged is lost: what cannot be drawn is still read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_of_other_versions_show_their_text() {
    let bench = Bench::start().await;
    let answer = kinds::ticker::load(&bench.market, SYMBOL).await.expect("a price");
    let mut document = from_record(&answer, None);
    let generic = serde_json::json!({"symbol": "BTCUSDT", "base": "BTC", "quote": "USDT", "what": "price",
        "fields": {"age_ms": 1}, "tables": []});
    for odd in [generic, Value::Null, serde_json::json!([]), serde_json::json!({"about": 7})] {
        document.metadata.insert("answer".to_owned(), odd);
        let board = then(&document).expect("a board");
        assert!(board.shows_text && board.panels.is_empty());
        assert!(board.notes[0].contains("cannot be drawn; its text is below"), "{:?}", board.notes);
    }
    Record::without(&mut document);
    assert_eq!(then(&document), None, "only a text");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn market_page_is_whole_and_asks_little() {
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
        assert!(after - before <= 2 * rounds, "{endpoint} was asked {} times in {took:?}", after - before);
    }
    let all = ["candles", "depth", "ladder", "spread", "imbalance", "profile", "flow", "cost_to_trade", "figures"];
    assert_eq!(keys(&first), all);
    for key in ["candles", "depth", "ladder", "profile", "cost_to_trade"] {
        let panel = panel(&first, key);
        assert!(!matches!(panel.content, Content::Missing(_)), "{panel:?}");
        assert!(panel.note.is_some(), "{key} says what it is of");
    }
    let headline = first.headline.as_ref().expect("a headline");
    assert!(headline.value.text.parse::<f64>().expect("a price") > 0.0);
    assert!(headline.age_ms.expect("an age") < 10_000 && headline.as_of.is_some());
    let labels: Vec<&str> = headline.figures.iter().map(|figure| &*figure.label).collect();
    assert_eq!(labels, ["High price", "Low price", "Volume", "Turnover", "Best bid", "Best ask", "Spread"]);
    assert!(first.is_live && first.shows_text && first.notes.is_empty(), "{:?}", first.notes);
    assert_eq!((&*first.badges[0].label, first.badges[1].tone), ("SIMULATED", Tone::Good));
    assert!(first.links.iter().any(|link| link.id.starts_with("report:")));
    assert_eq!(bench.record_count(), 0, "looking cites nothing");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_document_has_a_current_page() {
    let bench = Bench::start().await;
    for id in IDS {
        let board = bench.now(id).await;
        let missing: Vec<&Panel> = board
            .panels
            .iter()
            .filter(|panel| {
                // The lists of what the streams have brought begin with the test.
                let is_young = ["spread", "imbalance", "vacuums"].contains(&panel.key);
                matches!(panel.content, Content::Missing(_)) && !is_young
            })
            .collect();
        assert!(missing.is_empty() && !board.panels.is_empty(), "{id}: {missing:?}");
        assert_eq!(board.is_live, !id.starts_with("exchange_info"), "{id}");
        assert!(board.links.iter().any(|link| link.id.starts_with("ticker:")), "{id}");
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
async fn cited_page_stays_as_it_was() {
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
    let Content::Ladder(ladder) = &panel(&shown, "ladder").content else { panic!("a ladder") };
    let kept = bench.source.citing.kept(&document).await.expect("a look").expect("a record");
    let record = Record::read(&kept).expect("values").expect("of this version");
    let fields = &record.answer.figures;
    let best = fields["bids"]["rows"][0][0].as_str().expect("a price");
    assert_eq!(ladder.bids[0].price.parse::<f64>(), best.parse::<f64>());
    assert!(matches!(panel(&shown, "depth").content, Content::Depth(_)));
    assert!(shown.badges.iter().all(|badge| badge.label != "book is live"), "it is past");
    let update = fields["last_update_id"].as_u64().expect("an id");
    let moved = || {
        let tracked = bench.market.feed.lookup(SYMBOL).and_then(|tracked| tracked.live());
        tracked.is_some_and(|view| view.last_update_id != update)
    };
    bench.until("the book moves", moved).await;
    assert_eq!(bench.board(&document, true).await, shown, "the record alone is shown");
    let headline = shown.headline.expect("a headline");
    let millis = |time: Option<Timestamp>| time.map(Timestamp::as_millisecond);
    assert_eq!((&*headline.label, millis(headline.as_of)), ("Mid price", millis(fetched.as_of)));
    let id = DocumentId::parse("orderbook_l2:BTCUSDT").expect("an id");
    let depth = bench.cited(&id, &cx).await;
    let costs = bench.board(&depth, true).await;
    let Content::Table(costs) = &panel(&costs, "cost_to_trade").content else { panic!("{costs:?}") };
    assert_eq!((costs.rows.len(), &*costs.rows[0][1].text), (8, "1000"), "what it was to cost");
    // Without a record there is only the text, and the page is that.
    let mut old = *document;
    old.url = None;
    let view = bench.source.view(&old, old.as_of, &cx).await.expect("a look");
    assert_eq!(view, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn page_behind_a_search_result_is_whole() {
    // Shortly before a minute begins, of which the first trade is then seen.
    let now = Timestamp::now().as_millisecond();
    let bench = Bench::keeping(100, Some((now.div_euclid(MINUTE) + 1) * MINUTE - 2_000)).await;
    let cx = CallContext::new(Principal::Local, Instant::now() + PATIENCE);
    let is_traded = || {
        let tracked = bench.market.feed.lookup(SYMBOL).expect("tracked");
        let table = bench.market.known_symbols().expect("symbols");
        let beside = Beside::at_hand(&bench.market, table.lookup(SYMBOL).expect("listed"));
        let has = |fields: &tribune_core::JsonObject| fields.contains_key("klines") && fields.contains_key("bids");
        tracked.live().is_some() && beside.is_some_and(|beside| has(&beside.fields()))
    };
    bench.until("there are candles", is_traded).await;
    for (question, first) in [
        ("bitcoin price", "ticker:BTCUSDT"),
        ("BTCUSDT order book", "orderbook:BTCUSDT"),
        ("BTCUSDT 1h candles", "klines:BTCUSDT:1h"),
        ("BTCUSDT order flow", "analytics:order_flow:BTCUSDT"),
        ("BTCUSDT recent trades", "trades:BTCUSDT"),
        ("BTCUSDT anomalies", "analytics:anomalies:BTCUSDT"),
        ("BTCUSDT market health", "analytics:health:BTCUSDT"),
        ("BTCUSDT volume profile", "analytics:volume_profile:BTCUSDT"),
        ("BTCUSDT liquidity vacuums", "analytics:liquidity_vacuums:BTCUSDT"),
    ] {
        let query = tribune_core::Query { text: question.to_owned(), limit: 3 };
        let hits = bench.source.search(&query, &cx).await.expect("hits");
        let hit = hits.first().expect("a hit");
        assert_eq!(hit.id.as_str(), first, "{question}");
        let record = hit.url.as_deref().and_then(Links::cited_record).expect("a record");
        let Some(Cited::Kept { document, .. }) = bench.source.cited(&hit.id, record).await.expect("a look") else {
            panic!("not kept")
        };
        let kept = bench.source.citing.kept(&document).await.expect("a look").expect("a record");
        Record::read(&kept).expect("values").expect(question);
        let board = bench.board(&document, true).await;
        for key in ["candles", "depth", "ladder"] {
            let content = &panel(&board, key).content;
            assert!(!matches!(content, Content::Missing(_)), "{question}: {key}");
        }
        assert!(board.notes.contains(&hit.snippet), "{question}: {:?}", board.notes);
        assert_eq!(board.badges[0].tone, Tone::Simulated, "{question}");
        let is_dated = board.panels[0].note.as_ref().is_some_and(|note| note.contains("As of 20"));
        assert!(board.headline.is_some() || is_dated, "{question}");
        assert!(!first.starts_with("trades:") || keys(&board).contains(&"trades"), "{question}");
    }
}
