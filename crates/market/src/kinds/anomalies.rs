//! Differences from a market's own past: hints, not findings.

use super::prelude::*;
use tribune_analytics::{Anomalies, AnomalyKind, Check, return_outlier, volume_outlier};

/// Candles whose volumes and returns are compared.
const PAST_OF: Interval = Interval::M1;
const PAST_CANDLES: u32 = 240;

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct MarketAnomalies {
    #[serde(flatten)]
    pub(super) anomalies: Anomalies,
    /// The candles of the volume and return checks.
    candles: Known<Compared>,
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
struct Compared {
    interval: &'static str,
    closed: usize,
    last_open_time: Option<Time>,
    last_close_time: Option<Time>,
    age_ms: u64,
}

/// A symbol whose book is not tracked has only the checks of candles; while the exchange does not answer, only those of the
/// book are made.
pub(super) async fn find(market: &Market, symbol: &Symbol) -> MarketAnomalies {
    let (checks, candles) = match market.newest_candles(symbol, PAST_OF, PAST_CANDLES).await {
        Ok(klines) => {
            let closed = market.closed(&klines);
            let last = closed.last();
            let window = last.map_or_else(
                || format!("{PAST_OF} candles"),
                |last| format!("the {PAST_OF} candle from {} on", Time::from_millis(last.open_time)),
            );
            let checks = [volume_outlier(closed), return_outlier(closed)].map(|check| check.over(&window));
            let compared = Compared {
                interval: PAST_OF.as_str(),
                closed: closed.len(),
                last_open_time: last.map(|last| Time::from_millis(last.open_time)),
                last_close_time: last.map(|last| Time::from_millis(last.close_time)),
                age_ms: klines.received.age_ms(&*market.clock),
            };
            (checks, Known::Value(compared))
        }
        Err(error) => {
            let kinds = [AnomalyKind::VolumeOutlier, AnomalyKind::ReturnOutlier];
            let unknown = || Unavailable::Unknown("the recent volume");
            (kinds.map(|kind| Check::not_made(kind, unknown())), Known::missing(error))
        }
    };
    let anomalies = match market.feed.lookup(&symbol.name) {
        Some(tracked) => tracked.watch.anomalies(market.exchange_now(), checks.into()),
        None => {
            let of_books = AnomalyKind::OF_BOOKS
                .map(|kind| Check::not_made(kind, Unavailable::Unknown("the history of the book")));
            Anomalies::from(of_books.into_iter().chain(checks).collect::<Vec<_>>())
        }
    };
    MarketAnomalies { anomalies, candles }
}

pub async fn load(market: &Market, symbol: &str) -> Result<Answer> {
    let symbol = market.traded(symbol).await?;
    let (book, found) = futures::join!(market.book(&symbol), find(market, &symbol));
    Answer::new(Kind::Anomalies, &symbol, Provenance::of_book(market, &book?), found)
}

impl Figures for MarketAnomalies {
    fn sentences(&self, about: &About) -> Vec<String> {
        let (name, all) = (about.name(), &self.anomalies);
        let (found, checked) = (all.found, all.checked);
        let unusual = all.checks.iter().filter(|check| check.found == Some(true));
        let unusual: Vec<String> = unusual.map(word).collect();
        let outcome = match (checked, unusual.is_empty()) {
            (0, true) => format!("{name}: no anomaly check could be made yet."),
            (_, true) => format!("{name}: {checked} anomaly checks, nothing unusual found."),
            _ => {
                let unusual = unusual.join(", ");
                format!(
                    "{name}: {found} of {checked} anomaly checks found something unusual: {unusual}. Hints, not findings."
                )
            }
        };
        let missing = match all.checks.len() - checked {
            0 => "Every check could be made.".to_owned(),
            missing => format!("{missing} checks could not be made; each has a reason."),
        };
        vec![outcome, missing]
    }

    fn headline(&self) -> &'static str {
        "found checked"
    }
}

fn word(check: &Check) -> String {
    let word = serde_json::to_value(check.kind).unwrap_or_default();
    word.as_str().unwrap_or_default().to_owned()
}
