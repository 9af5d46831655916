//! One score for how healthy a market is, with its published parts.

use super::anomalies;
use super::flow::FLOW_SECS;
use super::prelude::*;
use tribune_analytics::{BAND_BPS, Band, Health, HealthInputs, band, health, quotes, trade_flow};

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct MarketHealth {
    #[serde(flatten)]
    health: Health,
    spread_bps: Known<f64>,
    band: Known<Band>,
    last_update_id: u64,
}

pub async fn load(market: &Market, symbol: &str) -> Result<Answer> {
    let symbol = market.traded(symbol).await?;
    let (book, trades, found, ticker) = futures::join!(
        market.book(&symbol),
        market.trades(&symbol, FLOW_SECS),
        anomalies::find(market, &symbol),
        market.rest.ticker_24h(&symbol.name),
    );
    let (book, trades) = (book?, trades.ok());
    let depth = &book.view.depth;
    let spread = quotes(depth).and_then(|quotes| {
        let unknown = quotes.reason.unwrap_or(Unavailable::Unknown("the spread"));
        quotes.spread_bps.ok_or(unknown)
    });
    let near = band(depth, BAND_BPS);
    let flow = trades.as_ref().ok_or(Unavailable::Unknown("the trade flow")).and_then(|reading| {
        let window = Window::last(FLOW_SECS, reading.until);
        trade_flow(&reading.trades, window, reading.complete_from)
    });
    let score = health(&HealthInputs {
        spread_bps: spread.clone(),
        band: near.as_ref().map_err(Clone::clone),
        quote_volume_24h: ticker.ok().map(|ticker| ticker.value.quote_volume),
        flow: flow.as_ref().map_err(Clone::clone),
        flow_secs: FLOW_SECS,
        anomalies: &found.anomalies,
        age_ms: book.received.age_ms(&*market.clock),
    });
    let figures = MarketHealth {
        health: score,
        spread_bps: spread.into(),
        band: near.into(),
        last_update_id: book.view.last_update_id,
    };
    Answer::new(Kind::Health, &symbol, Provenance::of_book(market, &book), figures)
}

impl Figures for MarketHealth {
    fn sentences(&self, about: &About) -> Vec<String> {
        let (name, score) = (about.name(), &self.health);
        let reason = score.reason.as_ref().map(|reason| format!(": {reason}"));
        let (points, used, reason) = (or_unknown(score.score), score.weights_used, reason.unwrap_or_default());
        vec![format!(
            "{name}: health {points} of 100, a convention with published components and weights ({used} of the weight used){reason}."
        )]
    }

    fn headline(&self) -> &'static str {
        "score weights_used"
    }
}
