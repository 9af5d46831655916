//! The mean price of the last minutes, as the exchange computes it.

use super::prelude::*;

const NEVER: &str = "it was never traded";

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
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
    fn sentences(&self, about: &About) -> Vec<String> {
        let (name, quote, minutes) = (about.name(), about.quote(), self.window_minutes);
        vec![match self.average_price {
            Some(price) => format!("{name}: average price of the last {minutes} minutes {price} {quote}."),
            None => format!("{name}: no average price: {NEVER}."),
        }]
    }
    fn headline(&self) -> &'static str {
        "average_price"
    }
}
