//! Candles.

use serde_json::{Value, json};
use tribune_core::Result;

use super::answer::{Answer, Keep, Provenance, Table, exchange_time, or_reason, or_unknown};
use crate::analytics::volatility::{atr, realised};
use crate::candles::{closed_at, is_closed};
use crate::market::{Market, Origin};
use crate::model::{Candle, Interval, Millis};
use crate::rest::KlinesQuery;
use crate::symbols::Kind;
use crate::tools::arguments::check_times;

/// Candles that one answer shows.
const MAX_SHOWN: usize = 500;
const ATR_PERIOD: usize = 14;
const COLUMNS: &[&str] = &["open_time_ms", "open", "high", "low", "close", "volume_base", "trades"];

/// Which candles are asked for.
#[derive(Debug, Clone, Copy)]
pub struct Range {
    pub interval: Interval,
    pub limit: usize,
    pub start: Option<Millis>,
    pub end: Option<Millis>,
}

impl Range {
    pub const fn newest(interval: Interval, limit: usize) -> Self {
        Self {
            interval,
            limit,
            start: None,
            end: None,
        }
    }
}

pub async fn candles(market: &Market, symbol: &str, range: Range) -> Result<Answer> {
    check_times(range.start, range.end)?;
    let symbol = market.symbol(symbol).await?;
    let query = KlinesQuery {
        interval: range.interval,
        limit: u32::try_from(range.limit).unwrap_or(1_000).clamp(1, 1_000),
        start: range.start,
        end: range.end,
    };
    let klines = market.rest.klines(&symbol.name, &query).await?;
    let candles = klines.value.as_slice();
    let now = market.exchange_now();
    let provenance = Provenance::new(market, Origin::Rest, klines.exchange_time, klines.received);
    let title = format!("{} candles", range.interval);
    let mut answer = Answer::new(Kind::Klines(range.interval), &symbol, &title, provenance)?;
    if let (Some(first), Some(last)) = (candles.first(), candles.last()) {
        let high = candles.iter().map(|candle| candle.high).max();
        let low = candles.iter().map(|candle| candle.low).min();
        answer = answer
            .figure(format!(
                "{}: {} candles of {}, {} to {}; first open {}, last close {} {} ({}); highest {}, lowest {}.",
                symbol.name,
                candles.len(),
                range.interval,
                plain_time(first.open_time),
                plain_time(last.close_time),
                first.open,
                last.close,
                symbol.quote,
                if is_closed(last, now) {
                    "closed"
                } else {
                    "still open: it will change"
                },
                or_unknown(high),
                or_unknown(low),
            ))
            .with(&json!({"high_price": high, "low_price": low}))?;
    } else {
        let reason = match range.start {
            Some(start) if start > now => "start_time is in the future: there are no candles of it yet",
            _ => "the exchange has no candles for these times: it may not have been traded then",
        };
        answer = answer
            .figure(format!("{}: {reason}.", symbol.name))
            .with_field("reason", &reason)?;
    }
    let closed = closed_at(candles, now);
    // Who asks from a time on wants the first of them; who does not wants the newest.
    let (shown, keep) = match range.start {
        Some(_) => (&candles[..candles.len().min(MAX_SHOWN)], Keep::First),
        None => (&candles[candles.len().saturating_sub(MAX_SHOWN)..], Keep::Last),
    };
    Ok(answer
        .with(&json!({
            "interval": range.interval.as_str(),
            "candles": candles.len(),
            "last_closed": candles.last().map(|last| is_closed(last, now)),
            "realised_volatility": or_reason(&realised(closed, range.interval)),
            "average_true_range": or_reason(&atr(closed, range.interval, ATR_PERIOD)),
            "standing": "exact",
        }))?
        .table(Table {
            name: "klines",
            columns: COLUMNS,
            rows: shown.iter().map(row).collect(),
            keep,
            left_out: candles.len() - shown.len(),
        }))
}

fn row(candle: &Candle) -> Vec<Value> {
    vec![
        json!(candle.open_time),
        json!(candle.open),
        json!(candle.high),
        json!(candle.low),
        json!(candle.close),
        json!(candle.volume),
        json!(candle.trades),
    ]
}

fn plain_time(millis: Millis) -> String {
    exchange_time(millis)
        .as_str()
        .map_or_else(|| millis.to_string(), str::to_owned)
}
