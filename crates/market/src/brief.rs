//! What a search result says of a document: the figures that are at hand, without asking the exchange.

mod candle;
mod traded;

use std::sync::Arc;

use jiff::Timestamp;
use rust_decimal::Decimal;

use crate::analytics::Window;
use crate::analytics::depth::{Band, band};
use crate::analytics::flow::trade_flow;
use crate::analytics::health::BAND_BPS;
use crate::analytics::quotes::quotes;
use crate::analytics::ranking::{Order, Ranking};
use crate::answers::flow::FLOW_SECS;
use crate::answers::ranking::{Days, SILENT_MS, moves, shares, title as all_markets};
use crate::answers::{pair_name, written};
use crate::feed::{BookView, Day, Published};
use crate::market::Market;
use crate::model::{Millis, Symbol, SymbolStatus};
use crate::symbols::{AnalyticsKind, Kind};

pub(crate) struct Brief {
    pub(crate) title: String,
    pub(crate) text: String,
    pub(crate) as_of: Timestamp,
}

/// A sentence with the time of its figures.
struct Told {
    text: String,
    as_of: Timestamp,
}

pub(crate) fn brief(market: &Market, symbol: &Symbol, kind: Kind) -> Brief {
    let at_hand = AtHand::of(market, symbol);
    let told = match symbol.status {
        SymbolStatus::Trading => at_hand.told(kind).unwrap_or_else(|| at_hand.to_fetch(kind)),
        _ => {
            let rules = at_hand.rules();
            Told {
                text: format!("{} is not traded now. {}", symbol.name, rules.text),
                ..rules
            }
        }
    };
    let silent_ms = at_hand.silent_ms().filter(|_| !matches!(kind, Kind::ExchangeInfo));
    let title = format!("{} {} ({})", symbol.name, title(kind), pair_name(symbol));
    labelled(market, &title, told, silent_ms)
}

/// With what is said before anything else, because snippets are cut: that it is simulated, and that it is old.
fn labelled(market: &Market, title: &str, told: Told, silent_ms: Option<u64>) -> Brief {
    let label = market.simulated().map_or("", |_| "SIMULATED ");
    let stale = match silent_ms {
        Some(silent) if silent >= SILENT_MS => format!("STALE (nothing was heard for {} s): ", silent / 1_000),
        _ => String::new(),
    };
    Brief {
        title: format!("{label}{title}"),
        text: format!("{label}{stale}{} As of {}.", told.text, written(told.as_of)),
        as_of: told.as_of,
    }
}

/// The same of all markets of one money; `None` while nothing is known of any.
pub(crate) fn of_all(market: &Market, money: &Arc<str>) -> Option<Brief> {
    let days = Days::at_hand(market, money)?;
    let ranking = Ranking::of(days.days.iter().cloned());
    let first = |order| ranking.first(order, 1);
    let as_of = days.days.iter().map(|(_, day)| of_day(day)).max()?;
    let text = format!(
        "{} {money} markets over {}: volume {}; gains {}; losses {}.",
        ranking.places.len(),
        days.window,
        shares(&first(Order::Volume)),
        moves(&first(Order::Gain)),
        moves(&first(Order::Loss)),
    );
    let silent_ms = Some(days.age_ms(market));
    Some(labelled(market, &all_markets(money), Told { text, as_of }, silent_ms))
}

fn title(kind: Kind) -> String {
    let title = match kind {
        Kind::Ticker => "price and last 24 hours",
        Kind::OrderBook => "order book",
        Kind::OrderBookL1 => "best bid and ask",
        Kind::OrderBookL2 => "order book depth",
        Kind::Klines(interval) => return format!("{interval} candles"),
        Kind::Trades => "recent trades",
        Kind::ExchangeInfo => "trading rules",
        Kind::Report => "market report",
        Kind::Markets => "among all markets",
        Kind::Analytics(AnalyticsKind::OrderFlow) => "order flow",
        Kind::Analytics(AnalyticsKind::VolumeProfile) => "volume profile",
        Kind::Analytics(AnalyticsKind::Anomalies) => "market anomalies",
        Kind::Analytics(AnalyticsKind::LiquidityVacuums) => "liquidity vacuums",
        Kind::Analytics(AnalyticsKind::Health) => "market health",
    };
    title.to_owned()
}

/// What a document has that is seldom at hand; of the others the price says enough.
const fn content(kind: Kind) -> Option<&'static str> {
    Some(match kind {
        Kind::OrderBook => "the bids and asks",
        Kind::OrderBookL1 => "the best bid and ask, and the spread",
        Kind::OrderBookL2 => "the depth, and what trades would cost",
        Kind::Klines(_) => "the candles",
        Kind::Trades => "the trades",
        Kind::Analytics(AnalyticsKind::OrderFlow) => "what buyers took and sellers gave",
        Kind::Analytics(AnalyticsKind::VolumeProfile) => "the profile",
        Kind::Analytics(AnalyticsKind::Anomalies) => "what is unusual",
        Kind::Analytics(AnalyticsKind::LiquidityVacuums) => "the prices with little volume",
        Kind::Analytics(AnalyticsKind::Health) => "the score",
        Kind::Ticker | Kind::ExchangeInfo | Kind::Report | Kind::Markets => return None,
    })
}

/// What is known of a symbol without asking the exchange.
struct AtHand<'a> {
    market: &'a Market,
    symbol: &'a Symbol,
    day: Option<Day>,
    tracked: Option<Arc<Published>>,
    view: Option<Arc<BookView>>,
}

impl<'a> AtHand<'a> {
    fn of(market: &'a Market, symbol: &'a Symbol) -> Self {
        let tracked = market.feed.lookup(&symbol.name);
        Self {
            market,
            symbol,
            day: market.feed.board.lookup(&symbol.name),
            view: tracked.as_ref().and_then(|tracked| tracked.live()),
            tracked,
        }
    }

    /// For how long its streams have been silent.
    fn silent_ms(&self) -> Option<u64> {
        let of_book = self.view.as_ref().and(self.tracked.as_ref());
        let heard = of_book.map(|tracked| self.market.last_word(tracked));
        Some(heard.or(self.market.feed.board.heard())?.age_ms(&*self.market.clock))
    }

    /// The exchange's time when its streams last said something of the symbol: trades are known until then.
    fn heard_until(&self) -> Option<Millis> {
        Some(self.market.heard_until(self.tracked.as_ref()?))
    }

    /// Figures of the document itself, as far as they are at hand.
    fn told(&self, kind: Kind) -> Option<Told> {
        match kind {
            Kind::Ticker | Kind::Report | Kind::Markets => None,
            Kind::OrderBook | Kind::OrderBookL1 => self.best_prices(),
            Kind::OrderBookL2 => self.depth(),
            Kind::Klines(interval) => self.candle(interval).or_else(|| self.candle_of_day(interval)),
            Kind::Trades => self.last_trade(),
            Kind::ExchangeInfo => Some(self.rules()),
            Kind::Analytics(AnalyticsKind::OrderFlow) => self.flow(),
            Kind::Analytics(AnalyticsKind::VolumeProfile) => self.traded_range(),
            Kind::Analytics(AnalyticsKind::LiquidityVacuums) => self.range(),
            Kind::Analytics(AnalyticsKind::Anomalies) => self.anomalies(),
            Kind::Analytics(AnalyticsKind::Health) => self.health(),
        }
    }

    /// Of a document that nothing is at hand of, what is known of its market, and what it has.
    fn to_fetch(&self, kind: Kind) -> Told {
        let Some(has) = content(kind) else {
            return self.price();
        };
        let name = &self.symbol.name;
        let now = self.market.clock.now();
        let (known, as_of) = match &self.day {
            Some(day) => (format!("last {} {}", day.last, self.symbol.quote), of_day(day)),
            None => ("nothing is known of it yet".to_owned(), now),
        };
        Told {
            text: format!("{name}: {known}. Fetch it for {has}."),
            as_of,
        }
    }

    /// `BTCUSDT: last price 97000.1 USDT, +1.52% in 24 hours; high …`
    fn price(&self) -> Told {
        let (name, quote) = (&self.symbol.name, &self.symbol.quote);
        let Some(day) = &self.day else {
            // What was traded or is offered tells a price too.
            return self
                .last_trade()
                .or_else(|| self.best_prices())
                .unwrap_or_else(|| Told {
                    text: format!("{name}: no price is known yet; fetch it."),
                    as_of: self.market.clock.now(),
                });
        };
        let change = change(day).map_or_else(|| "unknown".to_owned(), |change| format!("{change:+}"));
        let volume = day.quote_volume.decimal().round_dp(0);
        Told {
            text: format!(
                "{name}: last price {} {quote}, {change}% in 24 hours; high {}, low {}, volume {volume} {quote}.",
                day.last, day.high, day.low
            ),
            as_of: of_day(day),
        }
    }

    fn best_prices(&self) -> Option<Told> {
        let view = self.view.as_ref()?;
        let quotes = quotes(&view.depth).ok()?;
        let (bid, ask) = (quotes.best_bid?, quotes.best_ask?);
        let text = format!(
            "{}: best bid {} for {}, best ask {} for {} {}; spread {} bps.",
            self.symbol.name,
            bid.price,
            bid.quantity_base,
            ask.price,
            ask.quantity_base,
            self.symbol.base,
            quotes.spread_bps?
        );
        Some(Told {
            text,
            as_of: of_view(view),
        })
    }

    fn depth(&self) -> Option<Told> {
        let view = self.view.as_ref()?;
        let near = band(&view.depth, BAND_BPS).ok()?;
        let imbalance = near.imbalance.map_or_else(
            || "imbalance unknown".to_owned(),
            |share| format!("imbalance {share:+.3}"),
        );
        Some(Told {
            text: format!("{}: {}; {imbalance}.", self.symbol.name, self.near_mid(&near)),
            as_of: of_view(view),
        })
    }

    /// `within 25 bps of mid 2000000 USDT of bids and 1900000 USDT of asks`
    fn near_mid(&self, near: &Band) -> String {
        let least = |complete: bool| if complete { "" } else { "at least " };
        format!(
            "within {BAND_BPS} bps of mid {}{} {quote} of bids and {}{} {quote} of asks",
            least(near.bid_complete),
            short(near.bid_notional_quote.decimal()),
            least(near.ask_complete),
            short(near.ask_notional_quote.decimal()),
            quote = self.symbol.quote
        )
    }

    fn last_trade(&self) -> Option<Told> {
        let trade = self.tracked.as_ref()?.tape.last()?;
        let Symbol { name, base, quote, .. } = self.symbol;
        Some(Told {
            text: format!(
                "{name}: last trade {} {base} at {} {quote}.",
                trade.quantity, trade.price
            ),
            as_of: Timestamp::from_millisecond(trade.time).ok()?,
        })
    }

    fn flow(&self) -> Option<Told> {
        let tape = &self.tracked.as_ref()?.tape;
        let until = self.heard_until()?;
        let window = Window::last(FLOW_SECS, until);
        let trades = tape.since(window.start_ms);
        let complete = trades.complete_from.is_some_and(|from| from <= window.start_ms);
        let flow = trade_flow(&trades.trades, window, trades.complete_from?).ok()?;
        let text = format!(
            "{}, last {FLOW_SECS} s: buyers took {} {base}, sellers gave {} {base}, net {} {base}.",
            self.symbol.name,
            flow.buy_volume_base,
            flow.sell_volume_base,
            flow.net_flow_base,
            base = self.symbol.base
        );
        let as_of = Timestamp::from_millisecond(until).ok()?;
        complete.then_some(Told { text, as_of })
    }

    fn anomalies(&self) -> Option<Told> {
        let view = self.view.as_ref()?;
        let found = self
            .tracked
            .as_ref()?
            .watch
            .anomalies(self.market.exchange_now(), Vec::new());
        let outcome = match (found.checked, found.found) {
            (0, _) => "its book has been watched for too short a time to be compared with its past".to_owned(),
            (checked, 0) => format!("{checked} checks of the book against its own past, nothing unusual"),
            (checked, found) => format!("{found} of {checked} checks of the book against its own past are unusual"),
        };
        Some(Told {
            text: format!(
                "{}: {outcome}. Fetch it for those of the candles too.",
                self.symbol.name
            ),
            as_of: of_view(view),
        })
    }

    /// What the score is made of; the score itself needs candles too.
    fn health(&self) -> Option<Told> {
        let view = self.view.as_ref()?;
        let spread = quotes(&view.depth).ok()?.spread_bps?;
        let near = band(&view.depth, BAND_BPS).ok()?;
        Some(Told {
            text: format!(
                "{}: spread {spread} bps; {}. Fetch it for the score.",
                self.symbol.name,
                self.near_mid(&near)
            ),
            as_of: of_view(view),
        })
    }

    fn rules(&self) -> Told {
        let told = |value: Option<String>| value.unwrap_or_else(|| "unknown".to_owned());
        let symbol = self.symbol;
        Told {
            text: format!(
                "{}: status {}; price step {}, quantity step {}, smallest order {} {}.",
                symbol.name,
                symbol.status_text,
                told(symbol.tick_size.map(|price| price.to_string())),
                told(symbol.step_size.map(|quantity| quantity.to_string())),
                told(symbol.min_notional.map(|money| money.to_string())),
                symbol.quote,
            ),
            as_of: self.market.symbols_loaded().wall,
        }
    }
}

/// By the exchange's clock, which is that of the recording where one is played.
fn of_day(day: &Day) -> Timestamp {
    let told = day
        .exchange_time
        .and_then(|time| Timestamp::from_millisecond(time).ok());
    told.unwrap_or(day.received.wall)
}

fn of_view(view: &BookView) -> Timestamp {
    let told = view
        .exchange_time
        .and_then(|time| Timestamp::from_millisecond(time).ok());
    told.unwrap_or(view.received.wall)
}

fn change(day: &Day) -> Option<Decimal> {
    let (last, open) = (day.last.decimal(), day.open.decimal());
    let share = (last - open).checked_div(open)?;
    Some((share * Decimal::ONE_HUNDRED).round_dp(2))
}

/// Large amounts without what nobody reads of them.
fn short(amount: Decimal) -> Decimal {
    let digits = if amount.abs() >= Decimal::ONE_THOUSAND { 0 } else { 4 };
    amount.round_dp(digits).normalize()
}
