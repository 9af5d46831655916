//! The board of the present. It is asked for about once a second by every live page, so it reads what is kept anyway
//! (the live book, the tape, the history of the book), and what must be asked of the exchange is asked once in a while
//! for all viewers together. Ages are true: what is kept grows older.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use futures::{FutureExt as _, join};
use jiff::Timestamp;
use tribune_core::view::{Board, Content, Headline, Panel, Width};
use tribune_core::{Document, Result};

use super::book::{Pair, depth_chart, imbalance_line, ladder, spread_line};
use super::cache::{Cache, Found};
use super::cost::{cost_table, sizes};
use super::record::{Told, places};
use super::ticker::{Bests, Day};
use super::{candles, drawn, flow, parts, profile};
use crate::analytics::quotes::quotes;
use crate::answers::candles::Range;
use crate::answers::{self, Answer};
use crate::feed::Published;
use crate::market::{BookReading, Market};
use crate::model::{Interval, Symbol};
use crate::number::Notional;
use crate::source::MarketSource;
use crate::symbols::{AnalyticsKind, Kind, MarketId};
use rust_decimal::prelude::ToPrimitive;

/// The candles of a page about a market.
const CANDLES: usize = 72;
const CANDLES_OF: Interval = Interval::H1;
const FEWEST_CANDLES: usize = 24;
const YOUNG_CANDLES_OF: Interval = Interval::M5;
/// Levels asked for where the book is not live: enough for a picture, at half the weight of a thousand.
const ASKED_LEVELS: u32 = 500;
const TRADES: usize = 50;
const FLOW_SECS: u32 = 60;
const PROFILE_HOURS: u32 = 24;

/// How long answers of the exchange are kept for pages. Each costs weight; a minute's candles change less than a price.
const KEEP_PRICE: Duration = Duration::from_secs(5);
const KEEP_BOOK: Duration = Duration::from_secs(5);
const KEEP_ANALYTICS: Duration = Duration::from_secs(10);
const KEEP_PROFILE: Duration = Duration::from_secs(60);
/// What is read from streams costs only time.
const KEEP_STREAMED: Duration = Duration::from_millis(900);

/// A picture that is older than this says how old it is.
const TOLD_AGE_MS: u64 = 5_000;

/// What pages of the present keep between looks.
#[derive(Default)]
pub(crate) struct Pages {
    answers: Cache<Read>,
    books: Cache<BookReading>,
}

/// An answer, and when it was made.
struct Read {
    told: Told,
    at: Instant,
}

/// One look at one market.
struct Look<'a> {
    source: &'a MarketSource,
    market: &'a Market,
    symbol: &'a Symbol,
    tracked: Option<Arc<Published>>,
}

/// The board of what there is now about a document's subject.
pub(crate) async fn now(source: &MarketSource, id: &MarketId) -> Result<Board> {
    let market = source.market()?;
    let symbol = market.symbol(id.symbol()).await?;
    let look = Look {
        source,
        market,
        symbol: &symbol,
        tracked: market.feed.lookup(&symbol.name),
    };
    let mut board = match id.kind() {
        Kind::Ticker => look.whole().await,
        kind => look.one(id, kind).await,
    };
    let has_report = market.always_tracked().contains(&symbol.name);
    board.links = parts::links(&symbol.name, has_report);
    board.is_live = id.kind() != Kind::ExchangeInfo;
    Ok(board)
}

impl Look<'_> {
    /// A page on the whole market.
    async fn whole(&self) -> Board {
        let name = &*self.symbol.name;
        let (ticker, candles, profile, flow, book) = join!(
            self.read("ticker", KEEP_PRICE, answers::ticker::ticker(self.market, name).boxed()),
            self.candles(),
            self.read(
                "profile",
                KEEP_PROFILE,
                answers::profile::profile(self.market, name, PROFILE_HOURS, None).boxed()
            ),
            self.read(
                "flow",
                self.keep_flow(),
                answers::flow::order_flow(self.market, name, FLOW_SECS).boxed()
            ),
            self.book(),
        );
        let day = ticker
            .as_ref()
            .ok()
            .and_then(Day::of)
            .map(|day| self.with_last_trade(day));
        let mut board = self.frame(book.as_deref().ok(), None);
        board.headline = self.headline(day.as_ref(), &ticker, book.as_deref().ok());
        if let Err(why) = &ticker {
            board.notes.push(format!("The price could not be had: {why}"));
        }
        let last = day.as_ref().and_then(|day| day.last?.to_f64());
        let worth = day.as_ref().and_then(|day| Notional::parse(day.worth.as_deref()?).ok());
        board.panels.push(from_answer(
            "candles",
            "Candles",
            Width::Whole,
            candles,
            candles::candles,
        ));
        board.panels.extend(self.book_panels(book, worth));
        board
            .panels
            .push(from_answer("profile", "Volume profile", Width::Half, profile, |told| {
                profile::chart(told, last, Width::Half)
            }));
        board
            .panels
            .push(from_answer("flow", "Order flow", Width::Half, flow, |told| {
                Some(flow::panel_of_flow(told))
            }));
        arranged(&mut board.panels);
        board
    }

    /// Hours, or minutes where the market is too young for a picture of hours.
    async fn candles(&self) -> Result<Told, String> {
        let of = |interval: Interval| {
            let range = Range::newest(interval, CANDLES);
            let answer = answers::candles::candles(self.market, &self.symbol.name, range);
            async move { self.read(interval.as_str(), KEEP_PRICE, answer.boxed()).await }
        };
        let hours = of(CANDLES_OF).await;
        if hours.as_ref().is_ok_and(|told| candles::count(told) < FEWEST_CANDLES) {
            return of(YOUNG_CANDLES_OF).await.or(hours);
        }
        hours
    }

    /// A page on one thing about it.
    async fn one(&self, id: &MarketId, kind: Kind) -> Board {
        let key = id.to_string();
        let keep = self.keep(kind);
        let told = match kind {
            Kind::Trades => match answers::trades::streamed(self.market, self.symbol, TRADES) {
                Some(answer) => self.read(&key, KEEP_STREAMED, async { answer }.boxed()).await,
                None => self.read(&key, keep, self.source.answer(id).boxed()).await,
            },
            _ => self.read(&key, keep, self.source.answer(id).boxed()).await,
        };
        let told = match told {
            Ok(told) => told,
            Err(why) => {
                let mut board = self.frame(None, None);
                board.panels = vec![parts::panel("answer", "Now", Width::Whole, Content::Missing(why))];
                return board;
            }
        };
        let mut board = parts::frame(&parts::About::of(&told, false), Some(&told.what));
        let last = self.tracked.as_ref().and_then(|tracked| tracked.tape.last());
        let (headline, mut panels) = drawn(&told, last.map(|trade| trade.price.as_f64()));
        if matches!(kind, Kind::OrderBook | Kind::OrderBookL1 | Kind::OrderBookL2) {
            panels = self.with_live_book(panels, kind).await;
        }
        if kind == Kind::Analytics(AnalyticsKind::OrderFlow)
            && let Some(Ok(trades)) = answers::trades::streamed(self.market, self.symbol, TRADES)
        {
            let trades = Told::read(&trades.into_document());
            panels.extend(trades.as_ref().and_then(flow::trades));
        }
        board.headline = headline;
        board.panels = panels;
        board
    }

    /// The pictures of the answer, with the whole live book in place of the levels that an answer lists.
    async fn with_live_book(&self, panels: Vec<Panel>, kind: Kind) -> Vec<Panel> {
        let book = self.book().await;
        let day = self
            .market
            .feed
            .board
            .lookup(&self.symbol.name)
            .map(|day| day.quote_volume);
        let is_wanted = |panel: &Panel| kind != Kind::OrderBookL1 || !matches!(panel.key, "depth" | "ladder" | "cost");
        let mut all: Vec<Panel> = self.book_panels(book, day).into_iter().filter(is_wanted).collect();
        let others = panels
            .into_iter()
            .filter(|panel| !matches!(panel.key, "depth" | "ladder"));
        all.extend(others);
        all
    }

    fn book_panels(&self, book: Found<BookReading>, day: Option<Notional>) -> Vec<Panel> {
        let exchange_now = self.market.exchange_now();
        let samples = self
            .tracked
            .as_ref()
            .map(|tracked| tracked.watch.history())
            .unwrap_or_default();
        let lines = [
            spread_line(&samples, exchange_now),
            imbalance_line(&samples, exchange_now),
        ];
        let mut panels = match &book {
            Ok(book) => {
                let (depth, pair) = (&book.view.depth, self.pair());
                vec![
                    depth_chart(depth, &pair),
                    ladder(depth, &pair),
                    cost_table(depth, &pair, &sizes(&pair.quote, day)),
                ]
            }
            Err(why) => [("depth", "Depth"), ("ladder", "Order book"), ("cost", "Cost to trade")]
                .map(|(key, title)| parts::panel(key, title, Width::Half, Content::Missing(why.clone())))
                .into(),
        };
        let cost = panels.pop();
        panels.extend(lines);
        panels.extend(cost);
        panels
    }

    /// The book: the live one, or one that was asked for a moment ago.
    async fn book(&self) -> Found<BookReading> {
        if self.tracked.as_ref().is_some_and(|tracked| tracked.live().is_some()) {
            return self
                .market
                .book(self.symbol)
                .await
                .map(Arc::new)
                .map_err(|error| error.to_string());
        }
        let asked = self.market.book_of(self.symbol, ASKED_LEVELS);
        let books = &self.source.pages().books;
        books
            .get(self.symbol.name.to_string(), KEEP_BOOK, &*self.market.clock, asked)
            .await
    }

    /// An answer that was made a moment ago, as old as it is by now, or one that is made now.
    async fn read(&self, what: &str, keep: Duration, answer: BoxFuture<'_, Result<Answer>>) -> Result<Told, String> {
        let clock = &*self.market.clock;
        let read = async {
            let document: Document = answer.await?.into_document();
            let told = Told::read(&document).ok_or_else(|| {
                tribune_core::Error::internal(format!(
                    "the answer about {} cannot be drawn; its text has it",
                    document.id
                ))
            })?;
            Ok(Read {
                told,
                at: clock.monotonic(),
            })
        };
        let key = format!("{what} {}", self.symbol.name);
        let read = self.source.pages().answers.get(key, keep, clock, read).await?;
        let since = clock.monotonic().saturating_duration_since(read.at).as_millis();
        Ok(read.told.aged(u64::try_from(since).unwrap_or(u64::MAX)))
    }

    const fn keep_unstreamed(kind: Kind) -> Duration {
        match kind {
            Kind::Ticker | Kind::Klines(_) => KEEP_PRICE,
            Kind::Analytics(AnalyticsKind::VolumeProfile | AnalyticsKind::LiquidityVacuums) => KEEP_PROFILE,
            _ => KEEP_ANALYTICS,
        }
    }

    fn keep(&self, kind: Kind) -> Duration {
        let is_live = self.tracked.as_ref().is_some_and(|tracked| tracked.live().is_some());
        match kind {
            Kind::OrderBook | Kind::OrderBookL1 | Kind::OrderBookL2 if is_live => KEEP_STREAMED,
            Kind::Analytics(AnalyticsKind::OrderFlow) => self.keep_flow(),
            kind => Self::keep_unstreamed(kind),
        }
    }

    /// The tape has the last minute, or the exchange must be asked for it.
    fn keep_flow(&self) -> Duration {
        let from = self.market.exchange_now() - i64::from(FLOW_SECS) * 1_000;
        let is_whole = |tracked: &Arc<Published>| {
            let complete_from = tracked.tape.complete_from();
            tracked.live().is_some() && complete_from.is_some_and(|complete| complete <= from)
        };
        match &self.tracked {
            Some(tracked) if is_whole(tracked) => KEEP_STREAMED,
            _ => KEEP_ANALYTICS,
        }
    }

    /// The stream of trades is newer than any ticker: while it is live, its last trade is the price.
    fn with_last_trade(&self, mut day: Day) -> Day {
        let live = self.tracked.as_ref().filter(|tracked| tracked.live().is_some());
        if let Some(tracked) = live
            && let Some(trade) = tracked.tape.last()
        {
            let now = self.market.clock.monotonic();
            let age = now.saturating_duration_since(tracked.confirmed()).as_millis();
            let age = i64::try_from(age).unwrap_or(i64::MAX);
            let as_of = Timestamp::from_millisecond(self.market.exchange_now().saturating_sub(age)).ok();
            day.trade(trade.price.decimal(), as_of, age.unsigned_abs());
        }
        day
    }

    fn headline(
        &self,
        day: Option<&Day>,
        ticker: &Result<Told, String>,
        book: Option<&BookReading>,
    ) -> Option<Headline> {
        let told = ticker.as_ref().ok()?;
        let live = book.and_then(|book| quotes(&book.view.depth).ok());
        let bests = live.map(|quotes| Bests::quoted(&quotes)).or_else(|| Bests::of(told));
        Some(day?.headline(bests.as_ref(), told))
    }

    fn frame(&self, book: Option<&BookReading>, what: Option<&str>) -> Board {
        let about = parts::About {
            base: &self.symbol.base,
            quote: &self.symbol.quote,
            simulated: self.market.simulated(),
            state: book.map(|book| book.state),
            reason: book.and_then(|book| book.reason.as_deref()),
            clock_note: self.market.clock_note(),
            is_past: false,
        };
        parts::frame(&about, what)
    }

    fn pair(&self) -> Pair {
        let step = self.symbol.tick_size.map(|step| step.to_string());
        Pair {
            base: self.symbol.base.to_string(),
            quote: self.symbol.quote.to_string(),
            price_places: places([step.as_deref().unwrap_or("0.00000001")]),
        }
    }
}

/// The picture of an answer, or why there is none.
fn from_answer(
    key: &'static str,
    title: &str,
    width: Width,
    told: Result<Told, String>,
    draw: impl FnOnce(&Told) -> Option<Panel>,
) -> Panel {
    let drawn = told.and_then(|told| {
        let panel = draw(&told).ok_or_else(|| "there is nothing to draw".to_owned())?;
        Ok(with_age(panel, told.age_ms()))
    });
    drawn.unwrap_or_else(|why| parts::panel(key, title, width, Content::Missing(why)))
}

/// What was asked for a while ago says so.
fn with_age(mut panel: Panel, age_ms: Option<u64>) -> Panel {
    if let (Some(note), Some(age)) = (&mut panel.note, age_ms.filter(|age| *age >= TOLD_AGE_MS)) {
        note.push_str(&format!(" {} s old.", age / 1_000));
    }
    panel
}

/// The order of a page on a whole market: pairs of halves stand side by side.
fn arranged(panels: &mut [Panel]) {
    const ORDER: [&str; 8] = [
        "candles",
        "depth",
        "ladder",
        "spread",
        "imbalance",
        "profile",
        "flow",
        "cost",
    ];
    panels.sort_by_key(|panel| ORDER.iter().position(|key| *key == panel.key).unwrap_or(ORDER.len()));
}
