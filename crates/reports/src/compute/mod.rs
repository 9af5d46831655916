//! From what the feed publishes to a report. Pure: times and values come in as arguments.
//!
//! - `observation`: the state of one symbol at one moment
//! - `ticker`, `book`, `trades`: the fast figures
//! - `slow`: the figures that are computed every two seconds

mod book;
mod observation;
mod slow;
#[cfg(test)]
mod tests;
mod ticker;
mod trades;

use std::time::{Duration, Instant};

use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;

use super::cache::{NodeId, Token};
use super::model::{
    Anomaly, Health, Ingestion, IngestionStatus, Liquidity, Report, SCHEMA_VERSION, Section, Sections, Vacuum,
    VolumeProfile, Wall, Writer,
};
use observation::Observation;
use tribune_analytics::Published;
use tribune_binance::feed::Day;
use tribune_binance::model::{Millis, Symbol};
use tribune_binance::moment::Moment;

/// The window of order flow.
pub const FLOW_SECS: u32 = 30;
/// The window of the volume profile and its vacuums: as long as the feed keeps trades.
pub const PROFILE_SECS: u32 = 900;
/// Decimal places of ratios, percentages and basis points.
const PLACES: u32 = 10;
const VENUE: &str = "binance";

/// One symbol at one moment.
pub struct Inputs<'a> {
    pub symbol: &'a Symbol,
    pub published: &'a Published,
    pub day: Option<Day>,
    pub now: Moment,
    /// The exchange's clock at `now`.
    pub exchange_now: Millis,
    pub simulated: Option<&'static str>,
    /// How long the data is known to have been older than [`freshness::FRESH`].
    ///
    /// [`freshness::FRESH`]: super::freshness::FRESH
    pub old_for: Duration,
}

/// A part of a report with its section; without a value the section has the reason.
#[derive(Debug, Clone)]
pub struct Part<T> {
    pub value: Option<T>,
    pub section: Section,
}

impl<T> Default for Part<T> {
    fn default() -> Self {
        let section = Section {
            reason: Some("not computed yet".to_owned()),
            ..Section::default()
        };
        Self { value: None, section }
    }
}

impl<T> Part<T> {
    /// The section as it is so much later.
    fn aged(&self, since_ms: u64) -> Section {
        Section {
            age_ms: self.section.age_ms.map(|age| age.saturating_add(since_ms)),
            ..self.section.clone()
        }
    }
}

/// What is computed every two seconds.
#[derive(Debug, Clone, Default)]
pub struct Slow {
    /// When, by the monotonic clock: ages grow from here on.
    computed: Option<Instant>,
    pub walls: Part<Vec<Wall>>,
    pub vacuums: Part<Vec<Vacuum>>,
    pub volume_profile: Part<VolumeProfile>,
    pub anomalies: Part<Vec<Anomaly>>,
    pub health: Part<Health>,
}

pub fn slow(inputs: &Inputs<'_>) -> Slow {
    slow::compute(&Observation::new(inputs))
}

/// The whole report: fast figures are computed now, slow ones are as they were.
pub fn report(inputs: &Inputs<'_>, slow: &Slow, (node, token, sequence): (&NodeId, Token, u64)) -> Report {
    let observed = Observation::new(inputs);
    let symbol = inputs.symbol;
    let ticker = ticker::Ticker::of(&observed);
    let book = book::Book::of(&observed);
    let (flow, flow_section) = trades::flow(&observed);
    let since = |computed| observation::millis(inputs.now.monotonic.saturating_duration_since(computed));
    let since_ms = slow.computed.map_or(0, since);
    Report {
        schema_version: SCHEMA_VERSION.to_owned(),
        writer: Writer {
            node_id: node.to_string(),
            writer_token: token,
            sequence,
        },
        updated_at: observed.computed_at.clone(),
        symbol: symbol.name.to_string(),
        base_asset: symbol.base.to_string(),
        quote_asset: symbol.quote.to_string(),
        venue: VENUE.to_owned(),
        simulated: inputs.simulated.map(str::to_owned),
        generated_at: observed.computed_at.clone(),
        data_age_ms: observed.age_ms(),
        ingestion: ingestion(&observed),
        last_price: ticker.last,
        change_24h_pct: ticker.change_pct,
        high_24h: ticker.high,
        low_24h: ticker.low,
        volume_24h: ticker.volume,
        quote_volume_24h: ticker.quote_volume,
        best_bid: book.best_bid,
        best_ask: book.best_ask,
        spread_bps: book.spread_bps,
        mid_price: book.mid,
        micro_price: book.micro,
        depth: book.depth,
        flow,
        liquidity: Liquidity {
            walls: slow.walls.value.clone(),
            vacuums: slow.vacuums.value.clone(),
            volume_profile: slow.volume_profile.value.clone(),
        },
        anomalies: slow.anomalies.value.clone(),
        health: slow.health.value.clone(),
        sections: Sections {
            ticker: ticker.section,
            book: book.section,
            flow: flow_section,
            walls: slow.walls.aged(since_ms),
            vacuums: slow.vacuums.aged(since_ms),
            volume_profile: slow.volume_profile.aged(since_ms),
            anomalies: slow.anomalies.aged(since_ms),
            health: slow.health.aged(since_ms),
        },
    }
}

fn ingestion(observed: &Observation<'_>) -> Ingestion {
    let why_old = || {
        let (age, lag) = (
            observed.age.as_secs_f64(),
            observed.inputs.published.lag().as_secs_f64(),
        );
        if lag > 0.0 {
            format!("data from the exchange is {lag:.1} s behind its clock")
        } else {
            format!("nothing has arrived from the exchange for {age:.1} s")
        }
    };
    let is_old = observed.status != IngestionStatus::Ok;
    Ingestion {
        status: observed.status,
        last_update: observed.last_update(),
        reason: observed.trouble().or_else(|| is_old.then(why_old)),
    }
}

/// Rounds to ten places, half to even. Up to 2⁵³ units of the last place the result is the nearest float.
fn ten_places(ratio: Decimal) -> Option<f64> {
    let rounded = ratio.round_dp(PLACES);
    let units = rounded.mantissa();
    let value = match i64::try_from(units) {
        Ok(units) if units.unsigned_abs() < 1 << 53 => units as f64 / 10f64.powi(rounded.scale().try_into().ok()?),
        _ => rounded.to_f64()?,
    };
    // Without this, JSON would print the sign of a negative zero.
    Some(value + 0.0)
}
