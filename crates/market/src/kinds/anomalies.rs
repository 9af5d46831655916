//! What differs from a market's own past: hints, not findings.

use std::borrow::Cow;

use tribune_market_parts::parts::severe;
use tribune_page::text::{capitalised, dash};

use super::prelude::*;
use tribune_analytics::anomalies::{Anomalies, AnomalyKind, Check, return_outlier, volume_outlier};

/// Candles whose volumes and returns are compared.
const PAST_OF: Interval = Interval::M1;
const PAST_CANDLES: u32 = 240;
/// Rows that a page lists.
const MOST_ROWS: usize = 100;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MarketAnomalies {
    #[serde(flatten)]
    pub(super) anomalies: Anomalies,
    /// The candles that two of the checks are of.
    candles: Known<Compared>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Compared {
    interval: Cow<'static, str>,
    closed: usize,
    last_open_time: Option<Time>,
    last_close_time: Option<Time>,
    age_ms: u64,
}

/// What differs from the symbol's own past. Books that are not watched yet have only their candles; while the exchange
/// does not answer, the watched book is all there is.
pub(super) async fn find(market: &Market, symbol: &Symbol) -> MarketAnomalies {
    match market.newest_candles(symbol, PAST_OF, PAST_CANDLES).await {
        Ok(klines) => {
            let closed = market.closed(&klines);
            let last = closed.last();
            let window = last.map_or_else(
                || format!("{PAST_OF} candles"),
                |last| format!("the {PAST_OF} candle from {} on", Time::from_millis(last.open_time)),
            );
            let checks = [volume_outlier(closed), return_outlier(closed)].map(|check| check.over(&window));
            let candles = Compared {
                interval: PAST_OF.as_str().into(),
                closed: closed.len(),
                last_open_time: last.map(|last| Time::from_millis(last.open_time)),
                last_close_time: last.map(|last| Time::from_millis(last.close_time)),
                age_ms: klines.received.age_ms(&*market.clock),
            };
            with_checks(market, symbol, checks, Known::Value(candles))
        }
        Err(error) => without_candles(market, symbol, &error.to_string()),
    }
}

fn without_candles(market: &Market, symbol: &Symbol, why: &str) -> MarketAnomalies {
    let kinds = [AnomalyKind::VolumeOutlier, AnomalyKind::ReturnOutlier];
    let checks = kinds.map(|kind| Check::not_made(kind, Unavailable::Unknown("what was traded in the last hours")));
    with_checks(market, symbol, checks, Known::missing(why))
}

fn with_checks(market: &Market, symbol: &Symbol, checks: [Check; 2], candles: Known<Compared>) -> MarketAnomalies {
    let anomalies = match market.feed.lookup(&symbol.name) {
        Some(tracked) => tracked.watch.anomalies(market.exchange_now(), checks.into()),
        None => {
            let of_books =
                AnomalyKind::OF_BOOKS.map(|kind| Check::not_made(kind, Unavailable::Unknown("the book's past")));
            Anomalies::from(of_books.into_iter().chain(checks).collect::<Vec<_>>())
        }
    };
    MarketAnomalies { anomalies, candles }
}

pub async fn load(market: &Market, symbol: &str) -> Result<Answer> {
    let symbol = market.traded(symbol).await?;
    let (book, found) = futures::join!(market.book(&symbol), find(market, &symbol));
    answer(market, &symbol, &book?, found)
}

/// The checks of the book alone, without asking the exchange.
pub(super) fn at_hand(market: &Market, symbol: &Symbol, book: &BookReading) -> Option<Answer> {
    answer(market, symbol, book, at_hand_figures(market, symbol)).ok()
}

pub(super) fn at_hand_figures(market: &Market, symbol: &Symbol) -> MarketAnomalies {
    without_candles(market, symbol, "a search result has no candles; fetch it for those")
}

fn answer(market: &Market, symbol: &Symbol, book: &BookReading, found: MarketAnomalies) -> Result<Answer> {
    let kind = Kind::Analytics(AnalyticsKind::Anomalies);
    Answer::new(kind, symbol, Provenance::of_book(market, book), found)
}

impl Figures for MarketAnomalies {
    fn sentences(&self, about: &About) -> Vec<String> {
        let (name, all) = (about.name(), &self.anomalies);
        let (found, checked) = (all.found, all.checked);
        let unusual = all.checks.iter().filter(|check| check.found == Some(true));
        let unusual: Vec<String> = unusual.map(named).collect();
        let outcome = match (checked, unusual.is_empty()) {
            (0, true) => format!("{name}: no check against its own past could be made yet."),
            (_, true) => format!("{name}: {checked} checks against its own past, nothing unusual found."),
            _ => {
                let unusual = unusual.join(", ");
                format!("{name}: {found} of {checked} checks found something unusual: {unusual}. Hints, not findings.")
            }
        };
        let missing = match all.checks.len() - checked {
            0 => "Every check could be made.".to_owned(),
            missing => format!("{missing} checks could not be made; each says why."),
        };
        vec![outcome, missing]
    }

    fn snippet(&self, about: &About) -> Option<String> {
        let name = about.name();
        let outcome = match (self.anomalies.checked, self.anomalies.found) {
            (0, _) => "its book has been watched for too short a time to be compared with its past".to_owned(),
            (checked, 0) => format!("{checked} checks of the book against its own past, nothing unusual"),
            (checked, found) => format!("{found} of {checked} checks of the book against its own past are unusual"),
        };
        Some(format!("{name}: {outcome}. Fetch it for those of the candles too."))
    }

    fn headline(&self, page: &Page<'_>) -> Option<Headline> {
        let all = &self.anomalies;
        let found = Amount::new(all.found.to_string(), format!("of {} checks", all.checked));
        Some(page.headline("Unusual", found, Vec::new()))
    }

    fn panels(&self, _page: &Page<'_>) -> Vec<Panel> {
        let checks = &self.anomalies.checks;
        let count = checks.len();
        let note = format!("{count} checks against the market's own past. Hints, not findings.");
        let rows = checks.iter().take(MOST_ROWS).map(row).collect();
        vec![listing("checks", "Checks", rows, note)]
    }

    fn shown(&self) -> &'static str {
        "found checked"
    }
}

/// `volume_outlier (the 1m candle from 2026-11-16T13:01:00.000Z on)`
fn named(check: &Check) -> String {
    let name = word(check);
    match &check.window {
        Some(window) => format!("{name} ({window})"),
        None => name,
    }
}

fn word(check: &Check) -> String {
    let word = serde_json::to_value(check.kind).unwrap_or_default();
    word.as_str().unwrap_or_default().to_owned()
}

fn row(check: &Check) -> Vec<(Column, Cell)> {
    let found = match (check.found, check.severity) {
        (Some(true), Some(severity)) => toned(format!("yes, {}", severity.as_str()), severe(Some(severity.as_str()))),
        (Some(true), None) => cell("yes, severity unknown"),
        (Some(false), _) => toned("no", Tone::Good),
        (None, _) => cell("not checked"),
    };
    let note = match &check.reason {
        Some(reason) => format!("{reason}; {}", check.note),
        None => check.note.to_string(),
    };
    vec![
        (words("Check"), cell(capitalised(&word(check).replace('_', " ")))),
        (words("Found"), found),
        (words("Over"), cell(check.window.clone().unwrap_or_else(dash))),
        (numbers("Value"), number(check.value)),
        (numbers("Usual"), number(check.baseline)),
        (numbers("Found from"), number(check.threshold)),
        (numbers("Samples"), cell(check.samples.to_string())),
        (words("What it is"), cell(note)),
    ]
}
