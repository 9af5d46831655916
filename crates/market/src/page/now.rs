//! The board of the present. Every live page asks for it about once a second, so it reads what is in memory (the live
//! book, the tape, the history of the book), and asks the exchange seldom, for all viewers together. Ages are true:
//! cached answers grow older.
//!
//! A live page renews its panels by key, so a document has the same panels at every look: a missing one says why.

use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt as _, join};
use jiff::Timestamp;
use tribune_core::{Error, Result};
use tribune_page::{Board, Headline, Panel, Width};

use super::asked::{KEEP_BOOK, Pages, Recent, TRADES, is_current, keep_markets};
use super::cache::Found;
use super::frame::frame;
use super::panels::{missing, settled};
use super::{dated, drawn};
use crate::kinds::book::Bests;
use crate::kinds::cost::cost_table;
use crate::kinds::ticker::Ticker;
use crate::kinds::{self, About, AnyFigures, Page, Provenance};
use crate::market::{ASKED_EACH_TIME, BookReading, Market, NOT_KEPT, Origin};
use tribune_analytics::Published;
use tribune_analytics::sizes::sizes;
use tribune_binance::feed::BookState;
use tribune_binance::model::{Interval, Symbol, SymbolStatus};
use tribune_binance::moment::Moment;
use tribune_binance::number::Notional;
use tribune_market_parts::book::{Pair, depth_chart, imbalance_line, ladder, spread_line};
use tribune_market_parts::parts::links;
use tribune_market_resolve::id::{AnalyticsKind, Kind, MarketId};
use tribune_page::text::{age as age_text, places};

/// The candles of a page about a market, and of one that is too young for a picture of these.
const CANDLES: Kind = Kind::Klines(Interval::H1);
const FEWEST_CANDLES: usize = 24;
const YOUNG_CANDLES: Kind = Kind::Klines(Interval::M5);

const PROFILE: Kind = Kind::Analytics(AnalyticsKind::VolumeProfile);
const FLOW: Kind = Kind::Analytics(AnalyticsKind::OrderFlow);

/// A picture that is kept for longer than this says of when it is.
const AS_GOOD_AS_NOW: Duration = Duration::from_secs(5);
/// What an answer may take to come, when the one before has had its time.
const UNDER_WAY: Duration = Duration::from_secs(3);

/// One look at one market.
pub(super) struct Look<'a> {
    pub(super) market: &'a Market,
    pub(super) symbol: &'a Symbol,
    pub(super) pages: &'a Pages,
    /// `None` of a book that is not kept.
    pub(super) tracked: Option<Arc<Published>>,
}

/// The board of what there is now about a document's subject; an error if there is nothing.
pub(crate) async fn now(market: &Market, pages: &Pages, id: &MarketId) -> Result<Board> {
    let market = market.for_pages();
    if id.kind() == Kind::Markets {
        return all_markets(&market, pages, id).await;
    }
    let symbol = market.symbol(id.symbol()).await?;
    let is_watched = symbol.status == SymbolStatus::Trading && takes_a_live_book(id.kind());
    let look = Look {
        symbol: &symbol,
        pages,
        tracked: if is_watched { market.watched(&symbol) } else { market.feed.lookup(&symbol.name) },
        market: &market,
    };
    let mut board = match id.kind() {
        Kind::Ticker => look.whole().await?,
        kind => look.one(kind).await?,
    };
    let has_report = market.always_tracked().contains(&symbol.name);
    board.links = links(&symbol.name, has_report);
    board.is_live = id.kind() != Kind::ExchangeInfo;
    Ok(board)
}

/// The board of all markets of one quote asset.
async fn all_markets(market: &Market, pages: &Pages, id: &MarketId) -> Result<Board> {
    let answer = kinds::load(market, id).boxed();
    let recent = pages.read(id.to_string(), keep_markets(market), &*market.clock, answer);
    let recent = recent.await.map_err(Error::unavailable)?;
    let page = recent.page();
    let mut board = frame(page.about, page.provenance, None, false);
    (board.headline, board.panels) = drawn(recent.figures(), &page);
    board.notes.extend(recent.figures().kind().notes(page.about));
    board.is_live = true;
    Ok(board)
}

/// Whether the page is better, and costs the exchange less, where the book is live.
const fn takes_a_live_book(kind: Kind) -> bool {
    match kind {
        Kind::Klines(_) | Kind::ExchangeInfo | Kind::Report | Kind::Markets => false,
        Kind::Analytics(kind) => !matches!(kind, AnalyticsKind::VolumeProfile | AnalyticsKind::LiquidityVacuums),
        _ => true,
    }
}

impl Look<'_> {
    /// A page on the whole market.
    async fn whole(&self) -> Result<Board> {
        let (ticker, candles, profile, flow, book) =
            join!(self.read(Kind::Ticker), self.candles(), self.read(PROFILE), self.read(FLOW), self.book());
        if let (Err(why), Err(_), Err(_)) = (&ticker, &candles, &book) {
            return Err(Error::unavailable(why.clone()));
        }
        let provenance = match &book {
            Ok(book) => Provenance::of_book(self.market, book),
            Err(_) => Provenance::new(self.market, Origin::Rest, None, Moment::now(&*self.market.clock)),
        };
        let mut board = frame(&About::symbol(self.symbol), &provenance, None, false);
        let day = match &ticker {
            Ok(recent) => {
                let day = self.newest_day(recent);
                let day = day.ok_or_else(|| Error::internal("a ticker has the figures of another kind"))?;
                let current = book.as_deref().ok();
                let current = current.filter(|book| is_current(book, self.age_of(book), recent.age_ms()));
                let live = current.and_then(|book| Bests::of_depth(&book.view.depth));
                let bests = live.or_else(|| day.bests());
                let mut headline = day.day().headline(bests.as_ref(), &recent.page());
                self.date_by_stream(&mut headline);
                board.headline = Some(headline);
                board.notes.extend(self.old_day(recent));
                Some(day)
            }
            Err(why) => {
                board.notes.push(format!("The price could not be had: {why}"));
                None
            }
        };
        let last = day.as_ref().and_then(|day| Some(day.last_price?.as_f64()));
        let mut panels = self.book_panels(book, day.map(|day| day.quote_volume));
        let profile = Panel { width: Width::Half, ..self.picture("profile", PROFILE, profile, last) };
        panels.extend([
            self.picture("candles", CANDLES, candles, last),
            profile,
            self.picture("flow", FLOW, flow, last),
        ]);
        board.panels = settled(Kind::Ticker, panels);
        Ok(board)
    }

    /// A picture of one of the market's documents, or why there is none.
    fn picture(&self, key: &'static str, kind: Kind, recent: Result<Recent, String>, last: Option<f64>) -> Panel {
        let drawn = recent.and_then(|recent| {
            let page = Page { last_price: last, ..recent.page() };
            let panel = match recent.figures() {
                AnyFigures::Flow(flow) => Some(flow.panel(&page)),
                figures => figures.kind().panels(&page).into_iter().find(|panel| panel.key == key),
            };
            let panel = panel.ok_or_else(|| "there is nothing to draw".to_owned())?;
            Ok(aged(panel, page.as_of(), Some(page.age_ms), self.keep(kind)))
        });
        drawn.unwrap_or_else(|why| missing(Kind::Ticker, key, why))
    }

    /// The price may be of this moment, and what the ticker says of the day not: then that is said.
    fn old_day(&self, ticker: &Recent) -> Option<String> {
        let is_old = Duration::from_millis(ticker.age_ms()) > self.keep(Kind::Ticker) + UNDER_WAY;
        is_old.then(|| {
            let age = age_text(ticker.age_ms());
            format!("Range, volume and worth of the day are {age} old")
        })
    }

    /// Hours, or minutes where the market is too young for a picture of hours.
    async fn candles(&self) -> Result<Recent, String> {
        let hours = self.read(CANDLES).await;
        let is_young = |recent: &Recent| match recent.figures() {
            AnyFigures::Klines(klines) => klines.listed() < FEWEST_CANDLES,
            _ => false,
        };
        match hours.as_ref().is_ok_and(is_young) {
            true => self.read(YOUNG_CANDLES).await.or(hours),
            false => hours,
        }
    }

    /// A page on one thing about it.
    async fn one(&self, kind: Kind) -> Result<Board> {
        let recent = self.read(kind).await.map_err(Error::unavailable)?;
        let last = self.tracked.as_ref().and_then(|tracked| tracked.tape.last());
        let page = Page { last_price: last.map(|trade| trade.price.as_f64()), ..recent.page() };
        let what = recent.figures().what(page.about);
        let mut board = frame(page.about, &self.provenance(&recent), Some(&what), false);
        let (headline, panels) = drawn(recent.figures(), &page);
        // Where there is no headline the first panel says it for all, and trades have their times.
        let age = Some(page.age_ms).filter(|_| headline.is_some() && kind != Kind::Trades);
        let is_said = |panel| aged(panel, page.as_of(), age, self.keep(kind));
        let mut panels: Vec<Panel> = panels.into_iter().map(is_said).collect();
        if matches!(kind, Kind::OrderBook | Kind::OrderBookL1 | Kind::OrderBookL2) {
            panels = self.with_live_book(panels).await;
        }
        if kind == FLOW {
            panels.push(self.last_trades());
        }
        board.headline = headline;
        board.panels = settled(kind, panels);
        if board.headline.is_none() {
            dated(&mut board.panels, &page, false);
        }
        Ok(board)
    }

    /// What was answered a while ago of a book that was live then says nothing of how it is now.
    fn provenance(&self, recent: &Recent) -> Provenance {
        let mut provenance = recent.answer().provenance.clone();
        let status = self.tracked.as_ref().map(|tracked| tracked.status().state);
        let state = status.unwrap_or(BookState::Warming);
        if provenance.book_state == Some(BookState::Live) && state != BookState::Live {
            provenance.book_state = Some(state);
            provenance.book_state_reason = status.is_none().then(|| ASKED_EACH_TIME.to_owned());
        }
        provenance
    }

    fn last_trades(&self) -> Panel {
        let answer = self.streamed_trades();
        if let Some(answer) = &answer
            && let AnyFigures::Trades(trades) = &answer.figures
        {
            return trades.panel(&Page::of(&answer.about, &answer.provenance));
        }
        let why = match self.tracked {
            Some(_) => format!("the stream has not brought {TRADES} trades in a row yet"),
            None => NOT_KEPT.to_owned(),
        };
        missing(Kind::Trades, "trades", why)
    }

    /// The pictures of the answer, with the whole live book in place of the levels that an answer lists.
    async fn with_live_book(&self, panels: Vec<Panel>) -> Vec<Panel> {
        let book = self.book().await;
        let board = &self.market.feed.board;
        let day = board.lookup(&self.symbol.name).map(|day| day.quote_volume);
        let mut all = self.book_panels(book, day);
        let others = panels.into_iter().filter(|panel| !matches!(panel.key, "depth" | "ladder"));
        all.extend(others);
        all
    }

    fn book_panels(&self, book: Found<BookReading>, day: Option<Notional>) -> Vec<Panel> {
        let exchange_now = self.market.exchange_now();
        let samples = self.tracked.as_ref().map(|tracked| tracked.watch.history());
        let mut panels =
            vec![spread_line(samples.as_deref(), exchange_now), imbalance_line(samples.as_deref(), exchange_now)];
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
                let as_of = book.received.wall;
                panels.extend(pictures.map(|panel| aged(panel, as_of, age, KEEP_BOOK)));
            }
            Err(why) => {
                panels.extend(["depth", "ladder", "cost"].map(|key| missing(Kind::Ticker, key, why)));
            }
        }
        panels
    }

    /// The live book's tape, whose last trade is newer than any ticker.
    fn live_tape(&self) -> Option<&Arc<Published>> {
        self.tracked.as_ref().filter(|tracked| tracked.live().is_some())
    }

    /// The day that a ticker tells of, after the last trade.
    fn newest_day(&self, ticker: &Recent) -> Option<Ticker> {
        let AnyFigures::Ticker(day) = ticker.figures() else {
            return None;
        };
        let last = self.live_tape().and_then(|tracked| tracked.tape.last());
        Some(last.map_or_else(|| (**day).clone(), |trade| day.after_trade(trade.price)))
    }

    /// A price of the tape is as old as the stream, not as the ticker.
    fn date_by_stream(&self, headline: &mut Headline) {
        let Some(tracked) = self.live_tape().filter(|tracked| tracked.tape.last().is_some()) else {
            return;
        };
        let now = self.market.clock.monotonic();
        let age = now.saturating_duration_since(tracked.confirmed()).as_millis();
        headline.age_ms = Some(u64::try_from(age).unwrap_or(u64::MAX));
        let heard = Timestamp::from_millisecond(self.market.heard_until(tracked)).ok();
        headline.as_of = heard.or(headline.as_of);
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

/// What is kept for a while says of when it is, in words that stay while it does: a live page is not sent it every
/// second. What could not be renewed in time says how old it is.
fn aged(mut panel: Panel, as_of: Timestamp, age_ms: Option<u64>, keep: Duration) -> Panel {
    let (Some(note), Some(age)) = (&mut panel.note, age_ms) else {
        return panel;
    };
    if Duration::from_millis(age) > keep + UNDER_WAY {
        note.push_str(&format!(" {} old.", age_text(age)));
    } else if keep > AS_GOOD_AS_NOW {
        note.push_str(&format!(" As of {}.", as_of.strftime("%H:%M:%S UTC")));
    }
    panel
}
