//! Price ranges in which little was traded.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tribune_core::Result;
use tribune_market_parts::parts::severe;
use tribune_page::parts::{cell, noted, numbers, panel, table, toned, words};
use tribune_page::text::{dash, plain};
use tribune_page::{Cell, Content, Panel, Width};

use super::profile::{Past, width};
use super::{About, Answer, Figures, no_figures, standing_sentence};
use crate::id::{AnalyticsKind, Kind};
use crate::kinds::Page;
use crate::market::Market;
use tribune_analytics::profile::Histogram;
use tribune_analytics::vacuums::{DEFAULT_THRESHOLD_PCT, Vacuum, Vacuums, vacuums};
use tribune_binance::model::Millis;

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
    fn what(&self, _about: &About) -> String {
        format!("liquidity vacuums of {} h", self.hours)
    }

    fn sentences(&self, about: &About) -> Vec<String> {
        let found = match self.found.vacuums.len() {
            0 => NONE.to_owned(),
            count => format!("{count} price ranges in which little was traded"),
        };
        let each = self.found.vacuums.iter().take(NAMED).map(|vacuum| {
            format!(
                "{} to {} {}: {} {} traded.",
                vacuum.from,
                vacuum.to,
                about.quote(),
                vacuum.volume_base,
                about.base()
            )
        });
        let first = format!("{}, last {} h: {found}.", about.name(), self.hours);
        let note = self.coverage_note.as_ref().map(|why| format!("This is {why}."));
        std::iter::once(first).chain(each).chain(note).collect()
    }

    fn panels(&self, page: &Page<'_>) -> Vec<Panel> {
        let title = format!("Liquidity vacuums, {} h", self.hours);
        if self.found.vacuums.is_empty() {
            let none = Content::Text(format!("{}.", tribune_page::text::capitalised(NONE)));
            return vec![panel("vacuums", title, Width::Whole, none)];
        }
        let columns = vec![
            numbers(format!("From ({})", page.quote())),
            numbers(format!("To ({})", page.quote())),
            numbers(format!("Traded ({})", page.base())),
            numbers("Emptiness"),
            words("Severity"),
        ];
        let rows = self.found.vacuums.iter().take(MOST_ROWS).map(row).collect();
        let note = format!(
            "Price ranges in which little was traded, from {} candles of {}. {}.",
            self.candles,
            self.candles_of,
            standing_sentence(self.found.standing, &self.found.note)
        );
        let vacuums = panel("vacuums", title, Width::Whole, table(columns, rows));
        vec![noted(vacuums, note)]
    }

    fn shown(&self) -> Vec<&'static str> {
        vec!["vacuums"]
    }
}

fn row(vacuum: &Vacuum) -> Vec<Cell> {
    vec![
        cell(vacuum.from.to_string()),
        cell(vacuum.to.to_string()),
        cell(vacuum.volume_base.to_string()),
        Cell {
            share: vacuum.emptiness.map(|share| share.clamp(0.0, 1.0)),
            ..cell(vacuum.emptiness.and_then(plain).unwrap_or_else(dash))
        },
        toned(vacuum.severity.as_str(), severe(Some(vacuum.severity.as_str()))),
    ]
}
