//! Hints and the health score: what differs from a market's own past, and one number for how it is.

use serde_json::{Value, json};
use tribune_core::Result;

use super::answer::{Answer, Provenance, exchange_time, no_figures, or_reason, or_unknown};
use super::book::{best_prices, started};
use super::flow::FLOW_SECS;
use crate::analytics::anomalies::{Anomalies, AnomalyKind, Check, return_outlier, volume_outlier};
use crate::analytics::depth::{band, bands, top_imbalance};
use crate::analytics::flow::trade_flow;
use crate::analytics::health::{BAND_BPS, HealthInputs, health};
use crate::analytics::quotes::quotes;
use crate::analytics::{Unavailable, Window};
use crate::feed::BookState;
use crate::market::{BookReading, Market, NOT_KEPT, Origin};
use crate::model::{Candle, Interval, Symbol};
use crate::rest::KlinesQuery;
use crate::symbols::{AnalyticsKind, Kind};

/// Candles whose volumes and returns are compared.
const PAST_OF: Interval = Interval::M1;
const PAST_CANDLES: u32 = 240;

/// What was found, and what is to be known of the candles that it was found with.
struct Found {
    anomalies: Anomalies,
    candles: Value,
}

/// What differs from the symbol's own past. Books that are not watched yet have only their candles; while the exchange
/// does not answer, the watched book is all there is.
async fn found(market: &Market, symbol: &Symbol) -> Found {
    let query = KlinesQuery {
        interval: PAST_OF,
        limit: PAST_CANDLES,
        start: None,
        end: None,
    };
    let (checks, candles) = match market.rest.klines(&symbol.name, &query).await {
        Ok(klines) => {
            let closed = market.closed(&klines);
            let last = closed.last();
            let window = last.map_or_else(|| format!("{PAST_OF} candles"), of_candle);
            let checks = [volume_outlier(closed), return_outlier(closed)].map(|check| check.over(&window));
            let candles = json!({
                "interval": PAST_OF.as_str(),
                "closed": closed.len(),
                "last_open_time": last.map(|last| exchange_time(last.open_time)),
                "last_close_time": last.map(|last| exchange_time(last.close_time)),
                "age_ms": klines.received.age_ms(&*market.clock),
            });
            (checks, candles)
        }
        Err(error) => {
            let unknown = Unavailable::Unknown("what was traded in the last hours");
            let kinds = [AnomalyKind::VolumeOutlier, AnomalyKind::ReturnOutlier];
            let checks = kinds.map(|kind| Check::not_made(kind, unknown));
            (checks, json!({"value": null, "reason": error.to_string()}))
        }
    };
    let anomalies = match market.feed.lookup(&symbol.name) {
        Some(tracked) => tracked.watch.anomalies(market.exchange_now(), checks.into()),
        None => {
            let of_books =
                AnomalyKind::OF_BOOKS.map(|kind| Check::not_made(kind, Unavailable::Unknown("the book's past")));
            Anomalies::from(of_books.into_iter().chain(checks).collect::<Vec<_>>())
        }
    };
    Found { anomalies, candles }
}

/// `the 1m candle from 2026-11-16T13:01:00.000Z on`
fn of_candle(candle: &Candle) -> String {
    let opened = exchange_time(candle.open_time);
    format!("the {PAST_OF} candle from {} on", opened.as_str().unwrap_or_default())
}

pub async fn anomalies(market: &Market, symbol: &str) -> Result<Answer> {
    let symbol = market.traded(symbol).await?;
    let (book, found) = futures::join!(market.book(&symbol), found(market, &symbol));
    let (book, Found { anomalies, candles }) = (book?, found);
    let kind = Kind::Analytics(AnalyticsKind::Anomalies);
    let answer = Answer::new(kind, &symbol, "market anomalies", Provenance::of_book(market, &book))?;
    let is_found = |check: &&Check| check.found == Some(true);
    let names: Vec<String> = anomalies.checks.iter().filter(is_found).map(named).collect();
    answer
        .figure(match names.as_slice() {
            [] if anomalies.checked == 0 => {
                format!("{}: no check against its own past could be made yet.", symbol.name)
            }
            [] => format!(
                "{}: {} checks against its own past, nothing unusual found.",
                symbol.name, anomalies.checked
            ),
            names => format!(
                "{}: {} of {} checks found something unusual: {}. Hints, not findings.",
                symbol.name,
                anomalies.found,
                anomalies.checked,
                names.join(", ")
            ),
        })
        .figure(match anomalies.checks.len() - anomalies.checked {
            0 => "Every check could be made.".to_owned(),
            missing => format!("{missing} checks could not be made; each says why."),
        })
        .with(&anomalies)?
        .with_field("candles", &candles)
}

/// `volume_outlier (the 1m candle from 2026-11-16T13:01:00.000Z on)`
fn named(check: &Check) -> String {
    let name = plain(&json!(check.kind));
    match &check.window {
        Some(window) => format!("{name} ({window})"),
        None => name,
    }
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
            "walls": walls(market, &symbol, &book),
        }))
}

/// Those of the book that the other figures are of; why there are none where it is not the live one, which alone is
/// watched.
fn walls(market: &Market, symbol: &Symbol, book: &BookReading) -> Value {
    let Some(tracked) = market.feed.lookup(&symbol.name) else {
        return json!({"walls": null, "reason": NOT_KEPT});
    };
    if book.origin == Origin::Stream && book.state == BookState::Live {
        return json!(tracked.watch.walls_in(&book.view, &tracked.tape, market.exchange_now()));
    }
    let why = match book.state {
        BookState::Live => "it has become live only now",
        BookState::Warming => "its first snapshot is being waited for",
        BookState::Stale => "its updates have stopped coming",
        BookState::Resyncing => "it was discarded, and its next snapshot is being waited for",
    };
    let why = book.reason.as_deref().unwrap_or(why);
    let state = book.state.as_str();
    json!({"walls": null, "reason": format!("walls are told of a live book alone, and this one is {state}: {why}")})
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
        flow_secs: FLOW_SECS,
        anomalies: Some(&found.anomalies),
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
                "{}: {points} points, from {} {}{}; weight {}.",
                part.name,
                or_unknown(part.input),
                part.input_unit,
                part.note.as_ref().map_or_else(String::new, |note| format!(" ({note})")),
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

#[cfg(test)]
mod tests {
    use crate::analytics::fixture::depth;
    use crate::feed::{Beats, BookView, Watch};
    use crate::moment::Moment;
    use crate::tape::Tape;

    /// The book moves on between two looks: its walls are where it is now, and as large as they are now.
    #[test]
    fn walls_are_of_the_book_that_is_told_of() {
        let (watch, tape) = (Watch::new(None), Tape::new(900_000));
        tape.opened(0);
        let received = Moment::now(&tribune_core::SystemClock);
        let view = |best_bid: i64, wall: &str| {
            let bids: Vec<(String, &str)> = (0..30).map(|down| ((best_bid - down).to_string(), "2")).collect();
            let bids = bids
                .iter()
                .map(|(price, size)| (&**price, if price == "900" { wall } else { *size }));
            let best_ask = (best_bid + 2).to_string();
            BookView {
                symbol: "BTCUSDT".into(),
                depth: depth(&bids.collect::<Vec<_>>(), &[(&best_ask, "2")]),
                last_update_id: 1,
                exchange_time: None,
                received,
            }
        };
        for second in 0..=6 {
            watch.look(&view(904, "100"), &tape, Beats::default(), second * 1_000);
        }
        let before = watch.walls();
        // Mid 905: 900 is 55.2486 bps below it.
        assert_eq!((before.walls.len(), before.walls[0].distance_bps), (1, Some(-55.2486)));
        let now = watch.walls_in(&view(909, "80"), &tape, 6_500);
        // Mid 910: 10/910.
        assert_eq!((now.walls.len(), now.walls[0].distance_bps), (1, Some(-109.8901)));
        assert_eq!(
            (now.walls[0].quantity_base.to_string(), now.walls[0].age_ms),
            ("80".to_owned(), 6_500)
        );
        // A wall that is no longer there is not told of; what was looked at stays as it was.
        assert!(watch.walls_in(&view(909, "2"), &tape, 6_500).walls.is_empty());
        assert_eq!(watch.walls(), before);
    }
}
