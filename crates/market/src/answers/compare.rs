//! Several markets side by side.

use serde_json::{Value, json};
use tribune_core::Result;

use crate::analytics::depth::band;
use crate::analytics::health::BAND_BPS;
use crate::analytics::quotes::quotes;
use crate::analytics::volatility::realised;
use crate::candles::closed_at;
use crate::market::Market;
use crate::model::Interval;
use crate::rest::KlinesQuery;
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;

use super::answer::{Answer, or_reason};

/// One row of a comparison, and the answer that it can be cited by.
pub struct Row {
    pub figures: Value,
    pub cited: Answer,
}

pub async fn row(market: &Market, symbol: &str) -> Result<Row> {
    let symbol = market.traded(symbol).await?;
    let query = KlinesQuery {
        interval: Interval::H1,
        limit: 25,
        start: None,
        end: None,
    };
    let (ticker, book, klines) = futures::join!(
        market.rest.ticker_24h(&symbol.name),
        market.book(&symbol),
        market.rest.klines(&symbol.name, &query),
    );
    let (ticker, book) = (ticker?, book?);
    let cited = super::ticker::told(market, &symbol, &ticker)?;
    let quotes = quotes(&book.view.depth).ok();
    let near = band(&book.view.depth, BAND_BPS);
    let volatility = klines
        .ok()
        .map(|klines| or_reason(&realised(closed_at(&klines.value, market.exchange_now()), Interval::H1)));
    let value = &ticker.value;
    let figures = json!({
        "symbol": &*symbol.name,
        "quote_asset": &*symbol.quote,
        "last_price": value.last,
        "price_change_pct": value.last.as_ref().map(|_| value.price_change_percent).as_ref().and_then(Decimal::to_f64),
        "high_price": value.high,
        "low_price": value.low,
        "quote_volume": value.quote_volume,
        "trades": value.trades,
        "spread_bps": quotes.as_ref().and_then(|quotes| quotes.spread_bps),
        "mid": quotes.as_ref().and_then(|quotes| quotes.mid),
        "depth_25_bps": near.as_ref().ok().map(|near| json!({"bid_notional_quote": near.bid_notional_quote, "ask_notional_quote": near.ask_notional_quote, "complete": near.complete})),
        "realised_volatility": volatility,
        "age_ms": ticker.received.age_ms(&*market.clock),
        "book_state": book.state,
        "book_source": book.origin,
    });
    Ok(Row { figures, cited })
}
