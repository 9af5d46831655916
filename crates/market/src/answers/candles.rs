//! Candles.

use serde::Serialize;
use serde_json::{Value, json};
use tribune_core::Result;

use super::answer::{Answer, Keep, Provenance, Table, exchange_time, or_reason, or_unknown};
use crate::analytics::volatility::{atr, realised};
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
    let closed = market.closed(&klines);
    let table = table(candles, range);
    let listed = listed(candles, &table);
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
                if candles.len() == closed.len() {
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
            Some(start) if start > market.exchange_now() => {
                "start_time is in the future: there are no candles of it yet"
            }
            _ => "the exchange has no candles for these times: it may not have been traded then",
        };
        answer = answer
            .figure(format!("{}: {reason}.", symbol.name))
            .with_field("reason", &reason)?;
    }
    if let Some(unlisted) = Unlisted::of(candles, listed, table.keep) {
        answer = answer
            .figure(unlisted.sentence())
            .with_field("klines_unlisted", &unlisted)?;
    }
    Ok(answer
        .with(&json!({
            "interval": range.interval.as_str(),
            "candles": candles.len(),
            "figures_cover": candles.first().zip(candles.last()).map(|(first, last)| json!({
                "candles": candles.len(),
                "start_ms": first.open_time,
                "end_ms": last.close_time,
            })),
            "last_closed": listed.last().map(|last| closed.iter().any(|candle| candle.open_time == last.open_time)),
            "realised_volatility": or_reason(&realised(closed, range.interval)),
            "average_true_range": or_reason(&atr(closed, range.interval, ATR_PERIOD)),
            "standing": "exact",
        }))?
        .table(table))
}

/// Who asks from a time on wants the first of them; who does not wants the newest.
fn table(candles: &[Candle], range: Range) -> Table {
    let (shown, keep) = match range.start {
        Some(_) => (&candles[..candles.len().min(MAX_SHOWN)], Keep::First),
        None => (&candles[candles.len().saturating_sub(MAX_SHOWN)..], Keep::Last),
    };
    let table = Table {
        name: "klines",
        columns: COLUMNS,
        rows: shown.iter().map(row).collect(),
        keep,
        left_out: candles.len() - shown.len(),
    };
    table.fitted()
}

/// The candles that a table has.
fn listed<'a>(candles: &'a [Candle], table: &Table) -> &'a [Candle] {
    match table.keep {
        Keep::First => &candles[..table.rows.len()],
        Keep::Last => &candles[candles.len() - table.rows.len()..],
    }
}

/// What figures are of and rows are not, and what to ask for to have them.
#[derive(Debug, Serialize)]
struct Unlisted {
    /// Of all candles, the `oldest` or the `newest` are listed.
    listed: &'static str,
    rows: usize,
    candles: usize,
    /// The last of the candles before those listed is of this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    ask_with_end_time: Option<Millis>,
    /// The first of the candles after those listed begins at this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    ask_with_start_time: Option<Millis>,
}

impl Unlisted {
    fn of(candles: &[Candle], rows: &[Candle], keep: Keep) -> Option<Self> {
        if rows.len() == candles.len() {
            return None;
        }
        let (first, last) = rows.first().zip(rows.last())?;
        let all = Self {
            listed: "",
            rows: rows.len(),
            candles: candles.len(),
            ask_with_end_time: None,
            ask_with_start_time: None,
        };
        Some(match keep {
            Keep::First => Self {
                listed: "oldest",
                ask_with_start_time: last.close_time.checked_add(1),
                ..all
            },
            Keep::Last => Self {
                listed: "newest",
                ask_with_end_time: first.open_time.checked_sub(1),
                ..all
            },
        })
    }

    fn sentence(&self) -> String {
        let how = match (self.ask_with_start_time, self.ask_with_end_time) {
            (Some(start), _) => format!("start_time {start}"),
            (None, Some(end)) => format!("end_time {end}"),
            (None, None) => "fewer at a time".to_owned(),
        };
        format!(
            "Figures are of all {}; the {} {} are listed: for the others ask with {how}.",
            self.candles, self.listed, self.rows
        )
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analytics::fixture::minute;

    /// A thousand minutes of which a part fits.
    fn unlisted(start: Option<Millis>) -> Unlisted {
        let candles: Vec<Candle> = (0..1_000)
            .map(|at| minute(at, ["64000.12345678"; 4], "1234567.12345678"))
            .collect();
        let range = Range {
            start,
            ..Range::newest(Interval::M1, 1_000)
        };
        let table = table(&candles, range);
        assert_eq!(table.rows.len() + table.left_out, 1_000);
        assert!(
            table.rows.len() < MAX_SHOWN,
            "the bytes, not the count, are what is short"
        );
        Unlisted::of(&candles, listed(&candles, &table), table.keep).expect("a part")
    }

    #[test]
    fn what_is_left_out_is_named_and_can_be_asked_for() {
        let newest = unlisted(None);
        let first_listed = (1_000 - newest.rows as i64) * 60_000;
        assert_eq!(
            (newest.listed, newest.ask_with_end_time),
            ("newest", Some(first_listed - 1))
        );
        assert_eq!(
            newest.sentence(),
            format!(
                "Figures are of all 1000; the newest {} are listed: for the others ask with end_time {}.",
                newest.rows,
                first_listed - 1
            )
        );
        let oldest = unlisted(Some(0));
        let next = oldest.rows as i64 * 60_000;
        assert_eq!((oldest.listed, oldest.ask_with_start_time), ("oldest", Some(next)));
        assert!(Unlisted::of(&[], &[], Keep::Last).is_none());
    }
}
