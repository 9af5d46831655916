//! Where volume was traded.

use std::sync::Arc;

use super::prelude::*;
use tribune_analytics::{Amihud, Histogram, ProfileRow, RowWidth, VolumeProfile, amihud, counts, volume_profile};
use tribune_binance::{KlinesQuery, Stamped};

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Profile {
    /// Its rows are in the table.
    #[serde(flatten)]
    profile: VolumeProfile,
    hours: u32,
    candles_of: &'static str,
    candles: usize,
    amihud: Known<Amihud>,
    #[serde(skip_serializing_if = "Option::is_none")]
    coverage_note: Option<String>,
    volume_by_row_listed: usize,
    volume_by_row: Table<ProfileRow>,
}

impl Row for ProfileRow {
    const COLUMNS: &'static [&'static str] = &["price_from", "volume_base", "share"];
    fn cells(&self) -> impl Serialize {
        (self.low, self.volume_base, self.share)
    }
}

pub(super) struct Past {
    pub(super) window: Window,
    pub(super) interval: Interval,
    pub(super) candles: Arc<Stamped<Vec<Candle>>>,
    /// Of the rows, unless the caller gives one.
    pub(super) width: RowWidth,
}

impl Past {
    /// The candles of the last hours, as fine as one request gives them.
    pub(super) async fn load(market: &Market, symbol: &Symbol, hours: u32) -> Result<Self> {
        let window = Window::last(hours * 3_600, market.exchange_now());
        let fine = [Interval::M1, Interval::M3, Interval::M5, Interval::M15];
        let interval =
            fine.into_iter().find(|interval| window.millis() / interval.millis() < 1_000).unwrap_or(Interval::M30);
        let query = KlinesQuery {
            interval,
            limit: 1_000,
            // On a candle's boundary, so that callers who ask a moment later ask the same.
            start: Some(window.start_ms - window.start_ms.rem_euclid(interval.millis())),
            end: None,
        };
        let candles = market.rest.klines(&symbol.name, &query).await.map_err(exchange_error)?;
        let width = RowWidth::FromTick(symbol.tick_size.unwrap_or(Price::from_units(1)));
        Ok(Self { window, interval, candles, width })
    }

    pub(super) fn provenance(&self, market: &Market) -> Provenance {
        Provenance::new(market, Origin::Rest, self.candles.exchange_time, self.candles.received)
    }

    /// The candles that the histogram counts.
    pub(super) fn used(&self) -> impl Iterator<Item = &Candle> {
        let candles = self.candles.value.iter();
        candles.filter(|candle| counts(candle, &self.window))
    }

    /// A note if there is data for only a part of the window. Candles do not begin at the window's ends, so two
    /// candles less are normal.
    pub(super) fn shortfall(&self, coverage: Option<f64>) -> Option<String> {
        let missing = (1.0 - coverage?) * self.window.millis() as f64;
        if missing <= 2.0 * self.interval.millis() as f64 {
            return None;
        }
        let percent = (coverage? * 1_000.0).round() / 10.0;
        let hours = self.window.seconds() / 3_600.0;
        let from = self.used().next().map(|first| Time::from_millis(first.open_time));
        let from = from.map_or_else(|| "an unknown time".to_owned(), |time| time.to_string());
        Some(format!("based on {percent}% of the {hours} h: the exchange has no candles before {from}"))
    }
}

pub async fn load(market: &Market, symbol: &str, hours: u32, tick_size: Option<Price>) -> Result<Answer> {
    let symbol = market.traded(symbol).await?;
    let past = Past::load(market, &symbol, hours).await?;
    let candles = &past.candles.value;
    let width = tick_size.map_or(past.width, RowWidth::Given);
    let mut profile = Histogram::of_candles(candles, past.window, width)
        .and_then(|histogram| volume_profile(&histogram))
        .map_err(|reason| no_figures(&symbol, &reason))?;
    let rows = Table::fitted(std::mem::take(&mut profile.volume_by_row), Keep::First);
    let figures = Profile {
        hours,
        candles_of: past.interval.as_str(),
        candles: past.used().count(),
        amihud: amihud(market.closed(&past.candles), past.interval).into(),
        coverage_note: past.shortfall(profile.covered.coverage),
        volume_by_row_listed: rows.0.len(),
        volume_by_row: rows,
        profile,
    };
    Answer::new(Kind::VolumeProfile, &symbol, past.provenance(market), figures)
}

impl Figures for Profile {
    fn what(&self, _about: &About) -> Option<String> {
        Some(format!("volume profile of {} h", self.hours))
    }

    fn sentences(&self, about: &About) -> Vec<String> {
        let (name, quote, hours) = (about.name(), about.quote(), self.hours);
        let VolumeProfile { poc, poc_low, poc_high, vah, val, .. } = &self.profile;
        let share = or_unknown(self.profile.value_area_share.map(|share| (share * 1_000.0).round() / 10.0));
        let vwap = or_unknown(self.profile.vwap);
        let mut sentences = vec![
            format!("{name}, last {hours} h: point of control {poc} {quote} ({poc_low} to {poc_high})."),
            format!("Value area {val} to {vah} {quote} with {share}% of the volume; VWAP {vwap}."),
        ];
        sentences.extend(self.coverage_note.as_ref().map(|why| format!("This is {why}.")));
        sentences
    }

    fn headline(&self) -> &'static str {
        "poc vah val value_area_share vwap total_volume_base"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tribune_binance::Moment;
    use tribune_binance::testing::minute;

    #[test]
    fn partial_coverage_is_noted() {
        let now = Moment::now(&tribune_core::SystemClock);
        // One hour, of which candles begin with minute 54: six of 60.
        let past = |first: i64| Past {
            window: Window { start_ms: 0, end_ms: 3_600_000 },
            interval: Interval::M1,
            width: RowWidth::FromTick(Price::from_units(1)),
            candles: Arc::new(Stamped {
                value: (first..60).map(|at| minute(at, ["5"; 4], "2")).collect(),
                exchange_time: None,
                sent: now,
                received: now,
                simulated: false,
            }),
        };
        let told = past(54).shortfall(Some(0.1)).expect("a part only");
        assert_eq!(told, "based on 10% of the 1 h: the exchange has no candles before 1970-01-01T00:54:00.000Z");
        // A candle at either end may be cut by the window: 58 of 60 are all there are.
        assert_eq!(past(2).shortfall(Some(0.9667)), None);
        assert_eq!(past(0).shortfall(None), None);
    }
}
