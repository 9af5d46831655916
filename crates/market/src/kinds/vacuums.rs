//! Price ranges in which little was traded.

use super::prelude::*;
use super::profile::Past;
use tribune_analytics::{Histogram, Vacuums, vacuums};

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LiquidityVacuums {
    #[serde(flatten)]
    found: Vacuums,
    hours: u32,
    window_start_ms: Millis,
    window_end_ms: Millis,
    candles_of: &'static str,
    candles: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    coverage_note: Option<String>,
}

pub async fn load(market: &Market, symbol: &str, hours: u32) -> Result<Answer> {
    let symbol = market.traded(symbol).await?;
    let past = Past::load(market, &symbol, hours).await?;
    let found = Histogram::of_candles(&past.candles.value, past.window, past.width)
        .and_then(|histogram| vacuums(&histogram))
        .map_err(|reason| no_figures(&symbol, &reason))?;
    let figures = LiquidityVacuums {
        hours,
        window_start_ms: past.window.start_ms,
        window_end_ms: past.window.end_ms,
        candles_of: past.interval.as_str(),
        candles: past.used().count(),
        coverage_note: past.shortfall(found.covered.coverage),
        found,
    };
    Answer::new(Kind::LiquidityVacuums, &symbol, past.provenance(market), figures)
}

impl Figures for LiquidityVacuums {
    fn what(&self, _about: &About) -> Option<String> {
        Some(format!("liquidity vacuums of {} h", self.hours))
    }

    fn sentences(&self, about: &About) -> Vec<String> {
        let (name, hours) = (about.name(), self.hours);
        let found = match self.found.vacuums.len() {
            0 => "no price range with little volume".to_owned(),
            count => format!("{count} price ranges with little volume"),
        };
        let first = format!("{name}, last {hours} h: {found}.");
        let note = self.coverage_note.as_ref().map(|why| format!("This is {why}."));
        std::iter::once(first).chain(note).collect()
    }
}
