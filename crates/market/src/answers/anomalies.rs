//! Hints and the health score: what differs from a market's own past, and one number for how it is.

use std::sync::Arc;

use serde_json::{Value, json};
use tribune_core::Result;

use super::answer::{Answer, Provenance, no_figures, or_reason, or_unknown};
use super::book::{best_prices, started};
use crate::analytics::anomalies::{Anomalies, AnomalyKind, Check, return_outlier, volume_outlier};
use crate::analytics::depth::{band, bands, top_imbalance};
use crate::analytics::flow::trade_flow;
use crate::analytics::health::{BAND_BPS, HealthInputs, health};
use crate::analytics::quotes::quotes;
use crate::analytics::{Unavailable, Window};
use crate::feed::Published;
use crate::market::{Market, NOT_KEPT};
use crate::model::{Interval, Symbol};
use crate::rest::KlinesQuery;
use crate::symbols::{AnalyticsKind, Kind};

/// What the flow of the health score is taken over.
const FLOW_SECS: u32 = 60;
/// Minutes whose volumes and returns are compared.
const PAST_MINUTES: u32 = 240;

/// What differs from the symbol's own past. Books that are not watched yet have only their candles.
async fn found(market: &Market, symbol: &Symbol) -> Result<Anomalies> {
    let query = KlinesQuery {
        interval: Interval::M1,
        limit: PAST_MINUTES,
        start: None,
        end: None,
    };
    let klines = market.rest.klines(&symbol.name, &query).await?;
    let closed = market.closed(&klines);
    let checks = vec![volume_outlier(closed), return_outlier(closed)];
    Ok(match market.feed.lookup(&symbol.name) {
        Some(tracked) => tracked.watch.anomalies(market.exchange_now(), checks),
        None => {
            let of_books =
                AnomalyKind::OF_BOOKS.map(|kind| Check::not_made(kind, Unavailable::Unknown("the book's past")));
            Anomalies::from(of_books.into_iter().chain(checks).collect::<Vec<_>>())
        }
    })
}

pub async fn anomalies(market: &Market, symbol: &str) -> Result<Answer> {
    let symbol = market.traded(symbol).await?;
    let (book, found) = futures::join!(market.book(&symbol), found(market, &symbol));
    let (book, found) = (book?, found?);
    let kind = Kind::Analytics(AnalyticsKind::Anomalies);
    let answer = Answer::new(kind, &symbol, "market anomalies", Provenance::of_book(market, &book))?;
    let names: Vec<String> = found
        .checks
        .iter()
        .filter(|check| check.found == Some(true))
        .map(|check| plain(&json!(check.kind)))
        .collect();
    answer
        .figure(match names.as_slice() {
            [] if found.checked == 0 => format!("{}: no check against its own past could be made yet.", symbol.name),
            [] => format!(
                "{}: {} checks against its own past, nothing unusual found.",
                symbol.name, found.checked
            ),
            names => format!(
                "{}: {} of {} checks found something unusual: {}. Hints, not findings.",
                symbol.name,
                found.found,
                found.checked,
                names.join(", ")
            ),
        })
        .figure(match found.checks.len() - found.checked {
            0 => "Every check could be made.".to_owned(),
            missing => format!("{missing} checks could not be made yet; each says why."),
        })
        .with(&found)
}

/// The book alone: spread, depth, balance, walls.
pub async fn book_health(market: &Market, symbol: &str) -> Result<Answer> {
    let symbol = market.traded(symbol).await?;
    let book = market.book(&symbol).await?;
    let depth = &book.view.depth;
    let quotes = quotes(depth).map_err(|reason| no_figures(&symbol, reason))?;
    let bands = bands(depth);
    let answer = started(
        market,
        &symbol,
        Kind::Analytics(AnalyticsKind::Health),
        "order book health",
        &book,
    )?;
    let near = bands
        .as_ref()
        .ok()
        .and_then(|bands| bands.iter().find(|band| band.distance_bps == BAND_BPS));
    answer
        .figure(best_prices(&symbol, &quotes))
        .figure(format!(
            "Within {BAND_BPS} basis points of mid: bids {}, asks {} {}.",
            or_unknown(near.map(|band| band.bid_notional_quote)),
            or_unknown(near.map(|band| band.ask_notional_quote)),
            symbol.quote,
        ))
        .with(&quotes)?
        .with(&json!({
            "top_levels": or_reason(&top_imbalance(depth, 20)),
            "bands": or_reason(&bands),
            "walls": walls(market.feed.lookup(&symbol.name)),
        }))
}

fn walls(tracked: Option<Arc<Published>>) -> Value {
    match tracked {
        None => json!({"walls": null, "reason": NOT_KEPT}),
        Some(tracked) if tracked.live().is_some() => json!(tracked.watch.walls()),
        Some(_) => json!({"walls": null, "reason": "the book has not been watched yet; it is from now on"}),
    }
}

/// One score of published parts.
pub async fn health_score(market: &Market, symbol: &str) -> Result<Answer> {
    let symbol = market.traded(symbol).await?;
    let (book, trades, found, ticker) = futures::join!(
        market.book(&symbol),
        market.trades(&symbol, FLOW_SECS),
        found(market, &symbol),
        market.rest.ticker_24h(&symbol.name),
    );
    let book = book?;
    let depth = &book.view.depth;
    let spread = quotes(depth).and_then(|quotes| {
        let unknown = quotes.reason.unwrap_or(Unavailable::Unknown("the spread"));
        quotes.spread_bps.ok_or(unknown)
    });
    let near = band(depth, BAND_BPS);
    let flow = trades
        .as_ref()
        .map_err(|_| Unavailable::Unknown("the trade flow"))
        .and_then(|reading| {
            let window = Window::last(FLOW_SECS, reading.until);
            trade_flow(&reading.trades, window, reading.complete_from)
        });
    let score = health(&HealthInputs {
        spread_bps: spread,
        band: near.as_ref().map_err(|reason| *reason),
        quote_volume_24h: ticker.ok().map(|ticker| ticker.value.quote_volume),
        flow: flow.as_ref().map_err(|reason| *reason),
        anomalies: found.as_ref().ok(),
        age_ms: Some(book.received.age_ms(&*market.clock)),
    });
    let kind = Kind::Analytics(AnalyticsKind::Health);
    let mut answer = Answer::new(kind, &symbol, "market health", Provenance::of_book(market, &book))?.figure(format!(
        "{}: health {} of 100, a convention of published parts and weights (over {} of the weight){}.",
        symbol.name,
        or_unknown(score.score),
        score.weights_used,
        score.reason.map_or_else(String::new, |reason| format!(": {reason}")),
    ));
    for part in &score.components {
        answer = answer.figure(match (part.score, &part.reason) {
            (Some(points), _) => format!(
                "{}: {points} points, from {} {}; weight {}.",
                part.name,
                or_unknown(part.input),
                part.input_unit,
                part.weight
            ),
            (None, reason) => format!(
                "{}: not known ({}); weight {} left out.",
                part.name,
                or_unknown(reason.as_ref()),
                part.weight
            ),
        });
    }
    answer.with(&score)?.with(&json!({
        "spread_bps": or_reason(&spread),
        "band": or_reason(&near),
        "last_update_id": book.view.last_update_id,
    }))
}

fn plain(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
