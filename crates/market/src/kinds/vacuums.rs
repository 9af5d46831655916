//! Price ranges in which little was traded.

use tribune_market_parts::parts::severe;
use tribune_page::text::capitalised;

use super::prelude::*;
use super::profile::{Past, width};
use tribune_analytics::profile::Histogram;
use tribune_analytics::vacuums::{DEFAULT_THRESHOLD_PCT, Vacuum, Vacuums, vacuums};

/// Ranges that the sentences name, and that a page lists.
const NAMED: usize = 5;
const MOST_ROWS: usize = 100;
const NONE: &str = "no price range between traded ones was nearly empty";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LiquidityVacuums {
    #[serde(flatten)]
    found: Vacuums,
    hours: u32,
    window_start_ms: Millis,
    window_end_ms: Millis,
    candles_of: String,
    candles: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    coverage_note: Option<String>,
}

pub async fn load(market: &Market, symbol: &str, hours: u32) -> Result<Answer> {
    let symbol = market.traded(symbol).await?;
    let past = Past::load(market, &symbol, hours).await?;
    let found = Histogram::of_candles(&past.candles.value, past.window, width(&symbol, None)?)
        .and_then(|histogram| vacuums(&histogram, DEFAULT_THRESHOLD_PCT))
        .map_err(|reason| no_figures(&symbol, &reason))?;
    let figures = LiquidityVacuums {
        hours,
        window_start_ms: past.window.start_ms,
        window_end_ms: past.window.end_ms,
        candles_of: past.interval.as_str().to_owned(),
        candles: past.used().count(),
        coverage_note: past.shortfall(found.coverage),
        found,
    };
    let kind = Kind::Analytics(AnalyticsKind::LiquidityVacuums);
    Answer::new(kind, &symbol, past.provenance(market), figures)
}

impl Figures for LiquidityVacuums {
    fn what(&self, _about: &About) -> Option<String> {
        Some(format!("liquidity vacuums of {} h", self.hours))
    }

    fn sentences(&self, about: &About) -> Vec<String> {
        let (name, base, quote, hours) = (about.name(), about.base(), about.quote(), self.hours);
        let found = match self.found.vacuums.len() {
            0 => NONE.to_owned(),
            count => format!("{count} price ranges in which little was traded"),
        };
        let each = self.found.vacuums.iter().take(NAMED).map(|vacuum| {
            let Vacuum { from, to, volume_base, .. } = vacuum;
            format!("{from} to {to} {quote}: {volume_base} {base} traded.")
        });
        let first = format!("{name}, last {hours} h: {found}.");
        let note = self.coverage_note.as_ref().map(|why| format!("This is {why}."));
        std::iter::once(first).chain(each).chain(note).collect()
    }

    fn panels(&self, page: &Page<'_>) -> Vec<Panel> {
        let title = format!("Liquidity vacuums, {} h", self.hours);
        if self.found.vacuums.is_empty() {
            let none = Content::Text(format!("{}.", capitalised(NONE)));
            return vec![panel("vacuums", title, Width::Whole, none)];
        }
        let rows = self.found.vacuums.iter().take(MOST_ROWS).map(|vacuum| row(vacuum, page));
        let (count, interval) = (self.candles, &self.candles_of);
        let standing = standing_sentence(self.found.standing, &self.found.note);
        let note = format!("Price ranges in which little was traded, from {count} candles of {interval}. {standing}.");
        vec![listing("vacuums", title, rows.collect(), note)]
    }
}

fn row(vacuum: &Vacuum, page: &Page<'_>) -> Vec<(Column, Cell)> {
    let (base, quote) = (page.base(), page.quote());
    let severity = vacuum.severity.as_str();
    vec![
        (numbers(format!("From ({quote})")), cell(vacuum.from.to_string())),
        (numbers(format!("To ({quote})")), cell(vacuum.to.to_string())),
        (numbers(format!("Traded ({base})")), cell(vacuum.volume_base.to_string())),
        (numbers("Emptiness"), barred(number(vacuum.emptiness), vacuum.emptiness)),
        (words("Severity"), toned(severity, severe(Some(severity)))),
    ]
}
