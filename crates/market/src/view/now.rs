//! The board of the present. It is asked for about once a second by every live page, so it reads what is kept anyway
//! (the live book, the tape, the history of the book), and what must be asked of the exchange is asked once in a while
//! for all viewers together. Ages are true: what is kept grows older.
//!
//! A live page renews its panels by their keys, so those of one document are the same at every look: what is not there
//! at the moment says why.

mod asked;

use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt as _, join};
use jiff::Timestamp;
use rust_decimal::prelude::ToPrimitive;
use tribune_core::view::{Board, Content, Headline, Panel, Width};
use tribune_core::{Error, Result};

use super::book::{Pair, depth_chart, imbalance_line, ladder, spread_line};
use super::cache::Found;
use super::cost::cost_table;
use super::record::{Told, places};
use super::ticker::{Bests, Day};
use super::{candles, dated, drawn, flow, parts, profile, ranking, words};
use crate::analytics::sizes::sizes;
use crate::answers;
use crate::answers::candles::Range;
use crate::answers::flow::FLOW_SECS;
use crate::feed::{BookState, Published};
use crate::market::{ASKED_EACH_TIME, BookReading, Market, NOT_KEPT, Origin};
use crate::model::{Interval, Symbol, SymbolStatus};
use crate::number::Notional;
use crate::source::MarketSource;
use crate::symbols::{AnalyticsKind, Kind, MarketId};
pub(crate) use asked::Pages;
use asked::{KEEP_BOOK, KEEP_PROFILE, KEEP_STREAMED, is_current, keep_candles, keep_markets};

/// The candles of a page about a market.
const CANDLES: usize = 72;
const CANDLES_OF: Interval = Interval::H1;
const FEWEST_CANDLES: usize = 24;
const YOUNG_CANDLES_OF: Interval = Interval::M5;
const TRADES: usize = 50;
const PROFILE_HOURS: u32 = 24;

/// A picture that is kept for longer than this says of when it is.
const AS_GOOD_AS_NOW: Duration = Duration::from_secs(5);
/// What an answer may take to come, when the one before has had its time.
const UNDER_WAY: Duration = Duration::from_secs(3);

/// One look at one market.
struct Look<'a> {
    market: &'a Market,
    symbol: &'a Symbol,
    pages: &'a Pages,
    /// `None` of a book that is not kept.
    tracked: Option<Arc<Published>>,
}

/// The board of what there is now about a document's subject; an error if there is nothing.
pub(crate) async fn now(source: &MarketSource, id: &MarketId) -> Result<Board> {
    let market = source.market()?.for_pages();
    if id.kind() == Kind::Markets {
        return all_markets(&market, source.pages(), id).await;
    }
    let symbol = market.symbol(id.symbol()).await?;
    let is_watched = symbol.status == SymbolStatus::Trading && takes_a_live_book(id.kind());
    let look = Look {
        symbol: &symbol,
        pages: source.pages(),
        tracked: if is_watched {
            market.watched(&symbol)
        } else {
            market.feed.lookup(&symbol.name)
        },
        market: &market,
    };
    let mut board = match id.kind() {
        Kind::Ticker => look.whole().await?,
        kind => look.one(id, kind).await?,
    };
    let has_report = market.always_tracked().contains(&symbol.name);
    board.links = parts::links(&symbol.name, has_report);
    board.is_live = id.kind() != Kind::ExchangeInfo;
    Ok(board)
}

/// The board of all markets of one money.
async fn all_markets(market: &Market, pages: &Pages, id: &MarketId) -> Result<Board> {
    let answer = MarketSource::answer_by(market, id).boxed();
    let told = pages.read(id.to_string(), keep_markets(market), &*market.clock, answer);
    let board = ranking::board(&told.await.map_err(Error::unavailable)?);
    Ok(Board { is_live: true, ..board })
}

/// Whether the page is better, and costs the exchange less, where the book is live.
const fn takes_a_live_book(kind: Kind) -> bool {
    match kind {
        Kind::Klines(_) | Kind::ExchangeInfo | Kind::Report | Kind::Markets => false,
        Kind::Analytics(kind) => !matches!(kind, AnalyticsKind::VolumeProfile | AnalyticsKind::LiquidityVacuums),
        _ => true,
    }
}

/// The panels of a page, by key: all of them are there at every look.
const fn panels_of(kind: Kind) -> &'static [(&'static str, &'static str, Width)] {
    const DEPTH: (&str, &str, Width) = ("depth", "Depth", Width::Half);
    const LADDER: (&str, &str, Width) = ("ladder", "Order book", Width::Half);
    const SPREAD: (&str, &str, Width) = ("spread", "Spread", Width::Half);
    const IMBALANCE: (&str, &str, Width) = ("imbalance", "Order book imbalance", Width::Half);
    const CANDLES: (&str, &str, Width) = ("candles", "Candles", Width::Whole);
    const COST: (&str, &str, Width) = ("cost", "Cost to trade", Width::Whole);
    const FLOW: (&str, &str, Width) = ("flow", "Order flow", Width::Half);
    const TRADES: (&str, &str, Width) = ("trades", "Trades", Width::Whole);
    const FIGURES: (&str, &str, Width) = ("figures", "Figures", Width::Whole);
    match kind {
        Kind::Ticker | Kind::Report => &[
            CANDLES,
            DEPTH,
            LADDER,
            SPREAD,
            IMBALANCE,
            ("profile", "Volume profile", Width::Half),
            FLOW,
            COST,
        ],
        Kind::OrderBook => &[DEPTH, LADDER, SPREAD, IMBALANCE, COST, FIGURES],
        Kind::OrderBookL1 => &[SPREAD, IMBALANCE, FIGURES],
        Kind::OrderBookL2 => &[
            DEPTH,
            LADDER,
            SPREAD,
            IMBALANCE,
            COST,
            ("bands", "Depth near the mid", Width::Whole),
            FIGURES,
        ],
        Kind::Klines(_) => &[CANDLES, FIGURES],
        // Drawn by itself.
        Kind::Markets => &[],
        Kind::Trades => &[TRADES, FLOW],
        Kind::ExchangeInfo => &[FIGURES],
        Kind::Analytics(AnalyticsKind::OrderFlow) => &[FIGURES, TRADES],
        Kind::Analytics(AnalyticsKind::VolumeProfile) => &[("profile", "Volume profile", Width::Whole), FIGURES],
        Kind::Analytics(AnalyticsKind::LiquidityVacuums) => &[("vacuums", "Liquidity vacuums", Width::Whole), FIGURES],
        Kind::Analytics(AnalyticsKind::Anomalies) => &[("checks", "Checks", Width::Whole), FIGURES],
        Kind::Analytics(AnalyticsKind::Health) => &[("components", "Components of the score", Width::Whole), FIGURES],
    }
}

/// Those that the page has, in their order; one that could not be drawn says why.
fn settled(kind: Kind, mut drawn: Vec<Panel>, why: Option<&str>) -> Vec<Panel> {
    let take = |(key, ..): &(&'static str, &'static str, Width)| {
        let at = drawn.iter().position(|panel| panel.key == *key);
        at.map(|at| drawn.swap_remove(at)).unwrap_or_else(|| {
            let why = why.unwrap_or("there is nothing to see of it at the moment");
            missing(kind, key, why)
        })
    };
    panels_of(kind).iter().map(take).collect()
}

/// A panel of the page that has nothing to show now.
fn missing(kind: Kind, key: &'static str, why: impl Into<String>) -> Panel {
    let known = panels_of(kind).iter().find(|(known, ..)| *known == key);
    let (title, width) = known.map_or((key, Width::Half), |(_, title, width)| (*title, *width));
    parts::panel(key, title, width, Content::Missing(why.into()))
}

impl Look<'_> {
    /// A page on the whole market.
    async fn whole(&self) -> Result<Board> {
        let name = &*self.symbol.name;
        let (ticker, candles, profile, flow, book) = join!(
            self.read(
                "ticker",
                self.keep(Kind::Ticker),
                answers::ticker::ticker(self.market, name).boxed()
            ),
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
        if let (Err(why), Err(_), Err(_)) = (&ticker, &candles, &book) {
            return Err(Error::unavailable(why.clone()));
        }
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
        board.notes.extend(self.old_day(&ticker));
        let last = day.as_ref().and_then(|day| day.last?.to_f64());
        let worth = day.as_ref().and_then(|day| Notional::parse(day.worth.as_deref()?).ok());
        let mut panels = self.book_panels(book, worth);
        panels.extend([
            from_answer("candles", candles, keep_candles(CANDLES_OF), candles::candles),
            from_answer("profile", profile, KEEP_PROFILE, |told| {
                profile::chart(told, last, Width::Half)
            }),
            from_answer("flow", flow, self.keep_flow(), |told| Some(flow::panel_of_flow(told))),
        ]);
        board.panels = settled(Kind::Ticker, panels, None);
        Ok(board)
    }

    /// The price may be of this moment, and what the ticker says of the day not: then that is said.
    fn old_day(&self, ticker: &Result<Told, String>) -> Option<String> {
        let age = ticker.as_ref().ok()?.age_ms()?;
        let is_old = Duration::from_millis(age) > self.keep(Kind::Ticker) + UNDER_WAY;
        is_old.then(|| format!("Range, volume and worth of the day are {} old", words::age(age)))
    }

    /// Hours, or minutes where the market is too young for a picture of hours.
    async fn candles(&self) -> Result<Told, String> {
        let of = |interval: Interval| {
            let range = Range::newest(interval, CANDLES);
            let answer = answers::candles::candles(self.market, &self.symbol.name, range);
            async move {
                self.read(interval.as_str(), keep_candles(interval), answer.boxed())
                    .await
            }
        };
        let hours = of(CANDLES_OF).await;
        if hours.as_ref().is_ok_and(|told| candles::count(told) < FEWEST_CANDLES) {
            return of(YOUNG_CANDLES_OF).await.or(hours);
        }
        hours
    }

    /// A page on one thing about it.
    async fn one(&self, id: &MarketId, kind: Kind) -> Result<Board> {
        let told = self.told(id, kind).await.map_err(Error::unavailable)?;
        let mut board = parts::frame(&self.about(&told), Some(&told.what));
        let last = self.tracked.as_ref().and_then(|tracked| tracked.tape.last());
        let (headline, panels) = drawn(&told, last.map(|trade| trade.price.as_f64()));
        // Where there is no headline the first panel says it for all, and trades have their times.
        let age = told.age_ms().filter(|_| headline.is_some() && kind != Kind::Trades);
        let is_said = |panel| aged(panel, told.as_of, age, self.keep(kind));
        let mut panels: Vec<Panel> = panels.into_iter().map(is_said).collect();
        if matches!(kind, Kind::OrderBook | Kind::OrderBookL1 | Kind::OrderBookL2) {
            panels = self.with_live_book(panels).await;
        }
        if kind == Kind::Analytics(AnalyticsKind::OrderFlow) {
            panels.push(self.last_trades());
        }
        board.headline = headline;
        board.panels = settled(kind, panels, told.text("reason"));
        if board.headline.is_none() {
            dated(&mut board.panels, &told, false);
        }
        Ok(board)
    }

    /// The answer that the page is about.
    async fn told(&self, id: &MarketId, kind: Kind) -> Result<Told, String> {
        let key = id.to_string();
        if kind == Kind::Trades
            && let Some(answer) = answers::trades::streamed(self.market, self.symbol, TRADES)
        {
            return self.read(&key, KEEP_STREAMED, async { answer }.boxed()).await;
        }
        let answer = MarketSource::answer_by(self.market, id).boxed();
        self.read(&key, self.keep(kind), answer).await
    }

    /// What was answered a while ago of a book that was live then says nothing of how it is now.
    fn about<'a>(&self, told: &'a Told) -> parts::About<'a> {
        let mut about = parts::About::of(told, false);
        let status = self.tracked.as_ref().map(|tracked| tracked.status().state);
        let state = status.unwrap_or(BookState::Warming);
        if about.state == Some(BookState::Live) && state != BookState::Live {
            about.state = Some(state);
            about.reason = status.is_none().then_some(ASKED_EACH_TIME);
        }
        about
    }

    fn last_trades(&self) -> Panel {
        let streamed = answers::trades::streamed(self.market, self.symbol, TRADES);
        let drawn = streamed.and_then(|answer| flow::trades(&Told::read(&answer.ok()?.into_document())?));
        drawn.unwrap_or_else(|| {
            let why = if self.tracked.is_some() {
                format!("the stream has not brought {TRADES} trades in a row yet")
            } else {
                NOT_KEPT.to_owned()
            };
            missing(Kind::Trades, "trades", why)
        })
    }

    /// The pictures of the answer, with the whole live book in place of the levels that an answer lists.
    async fn with_live_book(&self, panels: Vec<Panel>) -> Vec<Panel> {
        let book = self.book().await;
        let board = &self.market.feed.board;
        let day = board.lookup(&self.symbol.name).map(|day| day.quote_volume);
        let mut all = self.book_panels(book, day);
        let others = panels
            .into_iter()
            .filter(|panel| !matches!(panel.key, "depth" | "ladder"));
        all.extend(others);
        all
    }

    fn book_panels(&self, book: Found<BookReading>, day: Option<Notional>) -> Vec<Panel> {
        let exchange_now = self.market.exchange_now();
        let samples = self.tracked.as_ref().map(|tracked| tracked.watch.history());
        let mut panels = vec![
            spread_line(samples.as_deref(), exchange_now),
            imbalance_line(samples.as_deref(), exchange_now),
        ];
        match &book {
            Ok(book) => {
                let (depth, pair) = (&book.view.depth, self.pair());
                let pictures = [
                    depth_chart(depth, &pair),
                    ladder(depth, &pair),
                    cost_table(depth, &pair, &sizes(&pair.quote, day)),
                ];
                let is_exact = book.origin == Origin::Stream && book.state == BookState::Live;
                let age = Some(self.age_of(book)).filter(|_| !is_exact);
                let as_of = Some(book.received.wall);
                panels.extend(pictures.map(|panel| aged(panel, as_of, age, KEEP_BOOK)));
            }
            Err(why) => {
                panels.extend(["depth", "ladder", "cost"].map(|key| missing(Kind::Ticker, key, why)));
            }
        }
        panels
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
            let as_of = Timestamp::from_millisecond(self.market.heard_until(tracked)).ok();
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
        let current = book.filter(|book| is_current(book, self.age_of(book), told.age_ms()));
        let live = current.and_then(|book| Bests::of_depth(&book.view.depth));
        let bests = live.or_else(|| Bests::of(told));
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
    told: Result<Told, String>,
    keep: Duration,
    draw: impl FnOnce(&Told) -> Option<Panel>,
) -> Panel {
    let drawn = told.and_then(|told| {
        let panel = draw(&told).ok_or_else(|| "there is nothing to draw".to_owned())?;
        Ok(aged(panel, told.as_of, told.age_ms(), keep))
    });
    drawn.unwrap_or_else(|why| missing(Kind::Ticker, key, why))
}

/// What is kept for a while says of when it is, in words that stay while it does: a live page is not sent it every
/// second. What could not be renewed in time says how old it is.
fn aged(mut panel: Panel, as_of: Option<Timestamp>, age_ms: Option<u64>, keep: Duration) -> Panel {
    let (Some(note), Some(age)) = (&mut panel.note, age_ms) else {
        return panel;
    };
    if Duration::from_millis(age) > keep + UNDER_WAY {
        note.push_str(&format!(" {} old.", words::age(age)));
    } else if let Some(time) = as_of.filter(|_| keep > AS_GOOD_AS_NOW) {
        note.push_str(&format!(" As of {}.", time.strftime("%H:%M:%S UTC")));
    }
    panel
}
