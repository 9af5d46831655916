//! From what the feed publishes to a report. Pure: times and values come in as arguments.
//!
//! - `sight`: what is seen of one symbol at one moment
//! - `ticker`, `book`, `trades`: what changes fast
//! - `slow`: what is computed every two seconds

mod book;
mod sight;
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
use crate::feed::{Day, Published};
use crate::model::{Millis, Symbol};
use crate::moment::Moment;
use sight::Sight;

/// Over which flow is taken.
pub const FLOW_SECS: u32 = 30;
/// Over which the volume profile and its vacuums are taken: what the feed keeps of trades.
pub const PROFILE_SECS: u32 = 900;
/// Places of ratios, percentages and basis points.
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
    /// For how long the data has been older than [`freshness::FRESH`], as far as was looked.
    ///
    /// [`freshness::FRESH`]: super::freshness::FRESH
    pub old_for: Duration,
}

/// What is computed every two seconds.
#[derive(Debug, Clone, Default)]
pub struct Slow {
    /// When, by the monotonic clock: the sections' ages grow from here on.
    pub computed: Option<Instant>,
    pub walls: Option<Vec<Wall>>,
    pub vacuums: Option<Vec<Vacuum>>,
    pub volume_profile: Option<VolumeProfile>,
    pub anomalies: Option<Vec<Anomaly>>,
    pub health: Option<Health>,
    pub walls_section: Section,
    pub vacuums_section: Section,
    pub volume_profile_section: Section,
    pub anomalies_section: Section,
    pub health_section: Section,
}

impl Slow {
    /// A section of it as it is now: older than when it was computed.
    fn aged(&self, section: &Section, now: Instant) -> Section {
        let Some(computed) = self.computed else {
            return Section {
                reason: Some("not computed yet".to_owned()),
                ..Section::default()
            };
        };
        let since = sight::millis(now.saturating_duration_since(computed));
        Section {
            age_ms: section.age_ms.map(|age| age.saturating_add(since)),
            ..section.clone()
        }
    }
}

pub fn slow(inputs: &Inputs<'_>) -> Slow {
    slow::computed(&Sight::of(inputs))
}

/// The whole report: what changes fast is computed now, the rest is as it was.
pub fn report(inputs: &Inputs<'_>, slow: &Slow, (node, token, sequence): (&NodeId, Token, u64)) -> Report {
    let sight = Sight::of(inputs);
    let symbol = inputs.symbol;
    let ticker = ticker::Ticker::of(&sight);
    let book = book::Book::of(&sight);
    let (flow, flow_section) = trades::flow(&sight);
    let aged = |section| slow.aged(section, inputs.now.monotonic);
    Report {
        schema_version: SCHEMA_VERSION.to_owned(),
        writer: Writer {
            node_id: node.to_string(),
            writer_token: token,
            sequence,
        },
        updated_at: sight.computed_at.clone(),
        symbol: symbol.name.to_string(),
        base_asset: symbol.base.to_string(),
        quote_asset: symbol.quote.to_string(),
        venue: VENUE.to_owned(),
        simulated: inputs.simulated.map(str::to_owned),
        generated_at: sight.computed_at.clone(),
        data_age_ms: sight.age_ms(),
        ingestion: ingestion(&sight),
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
            walls: slow.walls.clone(),
            vacuums: slow.vacuums.clone(),
            volume_profile: slow.volume_profile.clone(),
        },
        anomalies: slow.anomalies.clone(),
        health: slow.health.clone(),
        sections: Sections {
            ticker: ticker.section,
            book: book.section,
            flow: flow_section,
            walls: aged(&slow.walls_section),
            vacuums: aged(&slow.vacuums_section),
            volume_profile: aged(&slow.volume_profile_section),
            anomalies: aged(&slow.anomalies_section),
            health: aged(&slow.health_section),
        },
    }
}

fn ingestion(sight: &Sight<'_>) -> Ingestion {
    let why_old = || {
        let (age, lag) = (sight.age.as_secs_f64(), sight.inputs.published.lag().as_secs_f64());
        if lag > 0.0 {
            format!("what comes from the exchange is {lag:.1} s behind its clock")
        } else {
            format!("nothing has come from the exchange for {age:.1} s")
        }
    };
    let is_old = sight.status != IngestionStatus::Ok;
    Ingestion {
        status: sight.status,
        last_update: sight.last_update(),
        reason: sight.trouble().or_else(|| is_old.then(why_old)),
    }
}

/// A ratio with ten places, half to even. Up to 2⁵³ of the last place it is the nearest number there is.
fn ten_places(ratio: Decimal) -> Option<f64> {
    let rounded = ratio.round_dp(PLACES);
    let units = rounded.mantissa();
    let value = match i64::try_from(units) {
        Ok(units) if units.unsigned_abs() < 1 << 53 => units as f64 / 10f64.powi(rounded.scale().try_into().ok()?),
        _ => rounded.to_f64()?,
    };
    // JSON would print the sign of a zero.
    Some(value + 0.0)
}
