//! Order books: levels, best prices, depth.

use serde_json::{Value, json};
use tribune_core::Result;

use super::answer::{Answer, Keep, Provenance, Table, no_figures, or_reason, or_unknown};
use crate::analytics::cost::{Action, Cost, Size, cost};
use crate::analytics::depth::{bands, top_imbalance};
use crate::analytics::quotes::{Quote, Quotes, quotes};
use crate::analytics::sizes::sizes;
use crate::analytics::{Standing, Unavailable};
use crate::book::{Depth, Level};
use crate::market::{BookReading, Market};
use crate::model::Symbol;
use crate::number::{Notional, Quantity};
use crate::symbols::Kind;

/// Levels a side that one answer shows.
const MAX_SHOWN: usize = 100;
const COLUMNS: &[&str] = &["price", "quantity_base"];

pub(super) fn best_prices(symbol: &Symbol, quotes: &Quotes) -> String {
    let side = |quote: Option<Quote>| {
        quote.map_or_else(
            || "none".to_owned(),
            |quote| format!("{} for {} {}", quote.price, quote.quantity_base, symbol.base),
        )
    };
    format!(
        "{}: best bid {}, best ask {}; mid {} {}, spread {} basis points.",
        symbol.name,
        side(quotes.best_bid),
        side(quotes.best_ask),
        or_unknown(quotes.mid),
        symbol.quote,
        or_unknown(quotes.spread_bps),
    )
}

/// The levels of the book, best first.
pub async fn levels(market: &Market, symbol: &str, limit: usize) -> Result<Answer> {
    let symbol = market.traded(symbol).await?;
    let asked = u32::try_from(limit).unwrap_or(u32::MAX).clamp(100, 5_000);
    let book = market.book_of(&symbol, asked).await?;
    let depth = &book.view.depth;
    let quotes = quotes(depth).map_err(|reason| no_figures(&symbol, reason))?;
    let mut answer = started(market, &symbol, Kind::OrderBook, "order book", &book)?
        .figure(best_prices(&symbol, &quotes))
        .with(&json!({
            "best_bid": quotes.best_bid,
            "best_ask": quotes.best_ask,
            "mid": quotes.mid,
            "spread": quotes.spread,
            "spread_bps": quotes.spread_bps,
            "bids_total": total(depth.known_bids(), limit, depth.bid_reach.is_none(), Unavailable::NoBids),
            "asks_total": total(depth.known_asks(), limit, depth.ask_reach.is_none(), Unavailable::NoAsks),
            "levels_asked": limit,
            "standing": Standing::Exact,
        }))?
        .with_reason(quotes.reason)?;
    if limit > MAX_SHOWN && depth.known_bids().count().max(depth.known_asks().count()) > MAX_SHOWN {
        let note = format!("the best {MAX_SHOWN} levels a side are listed; totals are over the levels they say");
        answer = answer.with_field("note", &note)?;
    }
    let shown = limit.min(MAX_SHOWN);
    Ok(answer
        .table(rows("bids", depth.known_bids(), shown))
        .table(rows("asks", depth.known_asks(), shown)))
}

/// Best prices and what they say: mid, spread, microprice, imbalance.
pub async fn l1(market: &Market, symbol: &str) -> Result<Answer> {
    let symbol = market.traded(symbol).await?;
    let book = market.book(&symbol).await?;
    let quotes = quotes(&book.view.depth).map_err(|reason| no_figures(&symbol, reason))?;
    started(market, &symbol, Kind::OrderBookL1, "best bid and ask", &book)?
        .figure(best_prices(&symbol, &quotes))
        .figure(format!(
            "Microprice {} {}, imbalance of the best levels {} (-1 all ask, 1 all bid).",
            or_unknown(quotes.microprice),
            symbol.quote,
            or_unknown(quotes.imbalance_l1),
        ))
        .with(&quotes)
}

/// Depth: imbalance of the best levels, and money within distances of the mid.
pub async fn l2(market: &Market, symbol: &str, depth_levels: usize) -> Result<Answer> {
    let symbol = market.traded(symbol).await?;
    let book = market.book(&symbol).await?;
    let depth = &book.view.depth;
    let quotes = quotes(depth).map_err(|reason| no_figures(&symbol, reason))?;
    let bands = bands(depth);
    let mut answer =
        started(market, &symbol, Kind::OrderBookL2, "order book depth", &book)?.figure(best_prices(&symbol, &quotes));
    for band in bands.iter().flatten() {
        answer = answer.figure(format!(
            "Within {} basis points of mid: bids {} {quote}, asks {} {quote}{}.",
            band.distance_bps,
            band.bid_notional_quote,
            band.ask_notional_quote,
            if band.complete {
                ""
            } else {
                " (at least: the book is not known that far)"
            },
            quote = symbol.quote,
        ));
    }
    let costs = costs(market, &symbol, depth);
    for side in [Action::Buy, Action::Sell] {
        if let Some(sentence) = cost_sentence(&symbol, &costs, side) {
            answer = answer.figure(sentence);
        }
    }
    let shown = depth_levels.min(20);
    Ok(answer
        .with(&json!({
            "best_bid": quotes.best_bid,
            "best_ask": quotes.best_ask,
            "mid": quotes.mid,
            "spread_bps": quotes.spread_bps,
            "microprice": quotes.microprice,
        }))?
        .with_reason(quotes.reason)?
        .with_field("top_levels", &or_reason(&top_imbalance(depth, depth_levels)))?
        .with_field("bands", &or_reason(&bands))?
        .table(Table {
            name: "cost_to_trade",
            columns: &[
                "side",
                "notional_quote",
                "vwap",
                "cost_bps",
                "cost_quote",
                "filled",
                "complete",
                "reason",
            ],
            rows: costs.iter().map(cost_row).collect(),
            keep: Keep::First,
            left_out: 0,
        })
        .table(rows("bids", depth.known_bids(), shown))
        .table(rows("asks", depth.known_asks(), shown)))
}

/// What trades of several sizes would cost, for those who cannot ask for one.
fn costs(market: &Market, symbol: &Symbol, depth: &Depth) -> Vec<(Notional, Cost)> {
    let day = market.feed.board.lookup(&symbol.name).map(|day| day.quote_volume);
    let each = |side| {
        let sizes = sizes(&symbol.quote, day).into_iter();
        sizes.filter_map(move |size| Some((size, cost(depth, side, Size::Quote(size)).ok()?)))
    };
    each(Action::Buy).chain(each(Action::Sell)).collect()
}

fn cost_row((asked, cost): &(Notional, Cost)) -> Vec<Value> {
    vec![
        json!(cost.side),
        json!(asked),
        json!(cost.vwap),
        json!(cost.cost_bps),
        json!(cost.cost_quote),
        json!(cost.filled),
        json!(cost.complete),
        json!(cost.reason),
    ]
}

/// `Buying now costs, in basis points against mid and without fees: 1.2 for 1000 USDT, 4.5 for 10000 USDT.`
fn cost_sentence(symbol: &Symbol, costs: &[(Notional, Cost)], side: Action) -> Option<String> {
    let verb = match side {
        Action::Buy => "Buying",
        Action::Sell => "Selling",
    };
    let known = |cost: &Cost| cost.side == side && cost.filled && cost.complete;
    let filled = costs.iter().filter(|(_, cost)| known(cost));
    let each = filled.map(|(asked, cost)| format!("{} for {asked} {}", or_unknown(cost.cost_bps), symbol.quote));
    let each: Vec<String> = each.collect();
    let of_side = costs.iter().filter(|(_, cost)| cost.side == side);
    let beyond = of_side
        .map(|(asked, cost)| (asked, known(cost)))
        .find(|(_, is_known)| !is_known);
    let beyond = beyond.map_or_else(String::new, |(asked, _)| {
        format!(" {asked} {} is more than the known levels hold.", symbol.quote)
    });
    (!each.is_empty()).then(|| {
        format!(
            "{verb} now costs, in basis points against mid and without fees: {}.{beyond}",
            each.join(", ")
        )
    })
}

pub(super) fn started(market: &Market, symbol: &Symbol, kind: Kind, title: &str, book: &BookReading) -> Result<Answer> {
    Answer::new(kind, symbol, title, Provenance::of_book(market, book))?.with(&json!({
        "last_update_id": book.view.last_update_id,
        "bid_levels_known": book.view.depth.known_bids().count(),
        "ask_levels_known": book.view.depth.known_asks().count(),
    }))
}

fn rows(name: &'static str, side: impl Iterator<Item = Level>, most: usize) -> Table {
    let row = |level: Level| vec![json!(level.price), json!(level.quantity)];
    Table {
        name,
        columns: COLUMNS,
        rows: side.take(most).map(row).collect(),
        keep: Keep::First,
        left_out: 0,
    }
}

/// `whole` if the side has no levels beyond those known. Of an empty side there is no total, but a reason.
fn total(side: impl Iterator<Item = Level> + Clone, levels: usize, whole: bool, empty: Unavailable) -> Value {
    let used = || side.clone().take(levels);
    if used().next().is_none() {
        return json!({"levels_used": 0, "quantity_base": null, "quote": null, "complete": whole, "reason": empty});
    }
    let base = used().try_fold(Quantity::ZERO, |sum, level| sum.checked_add(level.quantity));
    let money = used().try_fold(Notional::ZERO, |sum, level| {
        sum.checked_add(level.price.times(level.quantity)?)
    });
    let count = used().count();
    json!({
        "levels_used": count,
        "quantity_base": base,
        "quote": money,
        "complete": whole || count == levels,
    })
}
