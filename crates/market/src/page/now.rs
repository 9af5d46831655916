//! The board of the present. It is asked for about once a second by every live page, so it reads what is kept anyway
//! (the live book, the tape, the history of the book), and what must be asked of the exchange is asked once in a while
//! for all viewers together. Ages are true: what is kept grows older.
//!
//! A live page renews its panels by their keys, so those of one document are the same at every look: what is not there
//! at the moment says why.

use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt as _, join};
use jiff::Timestamp;
use tribune_core::{Error, Result};
use tribune_page::{Board, Headline, Panel, Width};

use super::asked::{KEEP_BOOK, KEEP_PROFILE, KEEP_STREAMED, Pages, Recent, is_current, keep_candles, keep_markets};
use super::cache::Found;
use super::panels::{missing, settled};
use super::{dated, drawn, frame};
use crate::id::{AnalyticsKind, Kind, MarketId};
use crate::kinds::book::Bests;
use crate::kinds::cost::cost_table;
use crate::kinds::flow::FLOW_SECS;
use crate::kinds::klines::Range;
use crate::kinds::ticker::Ticker;
use crate::kinds::{self, AnyFigures, Page};
use crate::market::{ASKED_EACH_TIME, BookReading, Market, NOT_KEPT, Origin};
use tribune_analytics::Published;
use tribune_analytics::sizes::sizes;
use tribune_binance::feed::BookState;
use tribune_binance::model::{Interval, Symbol, SymbolStatus};
use tribune_binance::number::Notional;
use tribune_market_parts::book::{Pair, depth_chart, imbalance_line, ladder, spread_line};
use tribune_market_parts::parts::links;
use tribune_page::text::{age as age_text, places};

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
    let mut board = frame::frame(&frame::About::of(&page, false), None);
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
        let name = &*self.symbol.name;
        let (ticker, candles, profile, flow, book) = join!(
            self.read(
                "ticker",
                self.keep(Kind::Ticker),
                kinds::ticker::load(self.market, name).boxed()
            ),
            self.candles(),
            self.read(
                "profile",
                KEEP_PROFILE,
                kinds::profile::load(self.market, name, PROFILE_HOURS, None).boxed()
            ),
            self.read(
                "flow",
                self.keep_flow(),
                kinds::flow::load(self.market, name, FLOW_SECS).boxed()
            ),
            self.book(),
        );
        if let (Err(why), Err(_), Err(_)) = (&ticker, &candles, &book) {
            return Err(Error::unavailable(why.clone()));
        }
        let mut board = self.frame(book.as_deref().ok());
        let day = match &ticker {
            Ok(recent) => {
                let day = self.newest_day(recent);
                let (day, page) = day.ok_or_else(|| Error::internal("a ticker has the figures of another kind"))?;
                let current = book.as_deref().ok();
                let current = current.filter(|book| is_current(book, self.age_of(book), recent.age_ms()));
                let live = current.and_then(|book| Bests::of_depth(&book.view.depth));
                let mut headline = day.day().headline(live.or_else(|| day.bests()).as_ref(), &page);
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
        panels.extend([
            from_answer(
                "candles",
                candles,
                keep_candles(CANDLES_OF),
                |figures, page| match figures {
                    AnyFigures::Klines(klines) => Some(klines.chart(page)),
                    _ => None,
                },
            ),
            from_answer("profile", profile, KEEP_PROFILE, |figures, page| match figures {
                AnyFigures::Profile(profile) => {
                    let page = Page {
                        last_price: last,
                        ..*page
                    };
                    Some(profile.chart(&page, Width::Half))
                }
                _ => None,
            }),
            from_answer("flow", flow, self.keep_flow(), |figures, page| match figures {
                AnyFigures::Flow(flow) => Some(flow.panel(page)),
                _ => None,
            }),
        ]);
        board.panels = settled(Kind::Ticker, panels);
        Ok(board)
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
        let of = |interval: Interval| {
            let range = Range::newest(interval, CANDLES);
            let answer = kinds::klines::load(self.market, &self.symbol.name, range);
            async move {
                self.read(interval.as_str(), keep_candles(interval), answer.boxed())
                    .await
            }
        };
        let hours = of(CANDLES_OF).await;
        let is_young = |recent: &Recent| match recent.figures() {
            AnyFigures::Klines(klines) => klines.listed() < FEWEST_CANDLES,
            _ => false,
        };
        if hours.as_ref().is_ok_and(is_young) {
            return of(YOUNG_CANDLES_OF).await.or(hours);
        }
        hours
    }

    /// A page on one thing about it.
    async fn one(&self, id: &MarketId, kind: Kind) -> Result<Board> {
        let recent = self.answer(id, kind).await.map_err(Error::unavailable)?;
        let last = self.tracked.as_ref().and_then(|tracked| tracked.tape.last());
        let page = Page {
            last_price: last.map(|trade| trade.price.as_f64()),
            ..recent.page()
        };
        let what = recent.figures().kind().what(page.about);
        let mut board = frame::frame(&self.about(&page), Some(&what));
        let (headline, panels) = drawn(recent.figures(), &page);
        // Where there is no headline the first panel says it for all, and trades have their times.
        let age = Some(page.age_ms).filter(|_| headline.is_some() && kind != Kind::Trades);
        let is_said = |panel| aged(panel, page.as_of(), age, self.keep(kind));
        let mut panels: Vec<Panel> = panels.into_iter().map(is_said).collect();
        if matches!(kind, Kind::OrderBook | Kind::OrderBookL1 | Kind::OrderBookL2) {
            panels = self.with_live_book(panels).await;
        }
        if kind == Kind::Analytics(AnalyticsKind::OrderFlow) {
            panels.push(self.last_trades());
        }
        board.headline = headline;
        board.panels = settled(kind, panels);
        if board.headline.is_none() {
            dated(&mut board.panels, &page, false);
        }
        Ok(board)
    }

    /// The answer that the page is about.
    async fn answer(&self, id: &MarketId, kind: Kind) -> Result<Recent, String> {
        let key = id.to_string();
        if kind == Kind::Trades
            && let Some(answer) = kinds::trades::streamed(self.market, self.symbol, TRADES)
        {
            return self.read(&key, KEEP_STREAMED, async { Ok(answer) }.boxed()).await;
        }
        let answer = kinds::load(self.market, id).boxed();
        self.read(&key, self.keep(kind), answer).await
    }

    /// What was answered a while ago of a book that was live then says nothing of how it is now.
    fn about<'a>(&self, page: &Page<'a>) -> frame::About<'a> {
        let mut about = frame::About::of(page, false);
        let status = self.tracked.as_ref().map(|tracked| tracked.status().state);
        let state = status.unwrap_or(BookState::Warming);
        if about.state == Some(BookState::Live) && state != BookState::Live {
            about.state = Some(state);
            about.reason = status.is_none().then_some(ASKED_EACH_TIME);
        }
        about
    }

    fn last_trades(&self) -> Panel {
        let streamed = kinds::trades::streamed(self.market, self.symbol, TRADES);
        let drawn = streamed.and_then(|answer| match &answer.figures {
            AnyFigures::Trades(trades) => Some(trades.panel(&Page::of(&answer.about, &answer.provenance))),
            _ => None,
        });
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
    fn newest_day<'a>(&self, ticker: &'a Recent) -> Option<(Ticker, Page<'a>)> {
        let AnyFigures::Ticker(day) = ticker.figures() else {
            return None;
        };
        let last = self.live_tape().and_then(|tracked| tracked.tape.last());
        let day = last.map_or_else(|| (**day).clone(), |trade| day.after_trade(trade.price));
        Some((day, ticker.page()))
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

    fn frame(&self, book: Option<&BookReading>) -> Board {
        let about = frame::About {
            base: &self.symbol.base,
            quote: &self.symbol.quote,
            simulated: self.market.simulated(),
            state: book.map(|book| book.state),
            reason: book.and_then(|book| book.reason.as_deref()),
            clock_note: self.market.clock_note(),
            is_past: false,
        };
        frame::frame(&about, None)
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
    recent: Result<Recent, String>,
    keep: Duration,
    draw: impl FnOnce(&AnyFigures, &Page<'_>) -> Option<Panel>,
) -> Panel {
    let drawn = recent.and_then(|recent| {
        let page = recent.page();
        let panel = draw(recent.figures(), &page).ok_or_else(|| "there is nothing to draw".to_owned())?;
        Ok(aged(panel, page.as_of(), Some(page.age_ms), keep))
    });
    drawn.unwrap_or_else(|why| missing(Kind::Ticker, key, why))
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
