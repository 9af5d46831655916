//! The mean price of the last minutes, as the exchange computes it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tribune_core::Result;
use tribune_market_parts::exchange_error;

use super::{About, Answer, Figures, Provenance, Time};
use crate::id::Kind;
use crate::market::{Market, Origin};
use tribune_analytics::Standing;
use tribune_binance::number::Price;

const NEVER: &str = "nothing was ever traded";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AveragePrice {
    average_price: Option<Price>,
    window_minutes: u64,
    window_end: Option<Time>,
    standing: Standing,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

pub async fn load(market: &Market, symbol: &str) -> Result<Answer> {
    let symbol = market.traded(symbol).await?;
    let average = market.rest.avg_price(&symbol.name).await.map_err(exchange_error)?;
    let provenance = Provenance::new(market, Origin::Rest, average.exchange_time, average.received);
    let value = &average.value;
    let figures = AveragePrice {
        average_price: value.price,
        window_minutes: value.minutes,
        window_end: value.close_time.map(Time::from_millis),
        standing: Standing::Exact,
        reason: value.price.is_none().then(|| NEVER.to_owned()),
    };
    Answer::new(Kind::Ticker, &symbol, provenance, figures)
}

impl Figures for AveragePrice {
    fn what(&self, _about: &About) -> String {
        "average price".to_owned()
    }

    fn sentences(&self, about: &About) -> Vec<String> {
        vec![match self.average_price {
            Some(price) => format!(
                "{}: average price of the last {} minutes {price} {}.",
                about.name(),
                self.window_minutes,
                about.quote()
            ),
            None => format!("{}: no average price: {NEVER}.", about.name()),
        }]
    }
}
