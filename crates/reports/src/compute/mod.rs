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

use super::aged::millis;
use super::cache::{NodeId, Token};
use super::model::{Ingestion, IngestionStatus, Report, SCHEMA_VERSION, Writer};
use observation::Observation;
use tribune_analytics::Published;
use tribune_binance::{Day, Millis, Moment, Symbol};

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
    /// How long the data is known to have been older than a second.
    pub old_for: Duration,
}

/// What is computed every two seconds.
pub struct Slow {
    /// By the monotonic clock: ages grow from here on.
    pub computed: Instant,
    /// Has only the slow figures and their sections.
    pub figures: Report,
}

pub fn slow(inputs: &Inputs<'_>) -> Slow {
    Slow { computed: inputs.now.monotonic, figures: slow::compute(&Observation::new(inputs)) }
}

/// The whole report: fast figures are computed now, slow ones are as they were.
pub fn report(inputs: &Inputs<'_>, slow: &Slow, (node, token, sequence): (&NodeId, Token, u64)) -> Report {
    let observed = Observation::new(inputs);
    let symbol = inputs.symbol;
    let mut report = Report {
        schema_version: SCHEMA_VERSION.to_owned(),
        writer: Writer { node_id: node.to_string(), writer_token: token, sequence },
        updated_at: observed.computed_at.clone(),
        symbol: symbol.name.to_string(),
        base_asset: symbol.base.to_string(),
        quote_asset: symbol.quote.to_string(),
        venue: VENUE.to_owned(),
        simulated: inputs.simulated.map(str::to_owned),
        generated_at: observed.computed_at.clone(),
        ingestion: ingestion(&observed),
        ..slow.figures.clone()
    };
    let since_ms = millis(inputs.now.monotonic.saturating_duration_since(slow.computed));
    for age in report.ages_mut() {
        *age = age.saturating_add(since_ms);
    }
    report.data_age_ms = observed.age_ms();
    ticker::fill(&mut report, &observed);
    book::fill(&mut report, &observed);
    trades::fill(&mut report, &observed);
    report
}

fn ingestion(observed: &Observation<'_>) -> Ingestion {
    let why_old = || match observed.inputs.published.lag().as_secs_f64() {
        lag if lag > 0.0 => format!("data from the exchange is {lag:.1} s behind its clock"),
        _ => format!("no data from the exchange for {:.1} s", observed.age.as_secs_f64()),
    };
    let is_old = observed.status != IngestionStatus::Ok;
    Ingestion {
        status: observed.status,
        last_update: observed.last_update(),
        reason: observed.trouble().or_else(|| is_old.then(why_old)),
    }
}

/// Rounds to ten places, half to even, and then to the nearest float.
fn ten_places(ratio: Decimal) -> Option<f64> {
    let rounded: f64 = ratio.round_dp(PLACES).to_string().parse().ok()?;
    // Without this, JSON would print the sign of a negative zero.
    Some(rounded + 0.0)
}
