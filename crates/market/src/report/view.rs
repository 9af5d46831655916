//! What a page shows of a report: of the one that is current, and of one that was cited, by the same functions.

mod panels;
#[cfg(test)]
mod tests;

use std::fmt::Display;

use jiff::Timestamp;
use rust_decimal::Decimal;
use tribune_core::Document;
use tribune_core::view::{Amount, Badge, Board, Content, Figure, Headline, Tone, Width};

use super::citing::REPORT;
use super::model::{IngestionStatus, Level, Report, Section};
use crate::view::Pair;
use crate::view::parts::{links, panel, signed, simulated, subtitle, tone_of};
use crate::view::words::{self, capitalised};

/// Places of percentages on a page.
const RATIO_PLACES: u32 = 3;

/// The board of a report as it is now.
pub(super) fn now(report: &Report) -> Board {
    Board {
        is_live: true,
        ..board(report, false)
    }
}

/// The board of what was cited. Records of before reports were kept whole have their text alone.
pub(super) fn then(document: &Document) -> Board {
    let kept = document.metadata.get(REPORT).cloned();
    let kept = kept.and_then(|report| serde_json::from_value::<Report>(report).ok());
    kept.map_or_else(|| of_text(document), |report| board(&report, true))
}

fn of_text(document: &Document) -> Board {
    let about = |name: &str| {
        document
            .metadata
            .get(name)
            .and_then(|value| value.as_str())
            .unwrap_or("?")
    };
    let label = document.text.lines().find(|line| line.starts_with("SIMULATED: "));
    let text = panel(
        "report",
        "Report",
        Width::Whole,
        Content::Markdown(document.text.clone()),
    );
    Board {
        title: format!("{}/{}", about("base_asset"), about("quote_asset")),
        subtitle: Some(subtitle(
            about("base_asset"),
            about("quote_asset"),
            Some("market report"),
        )),
        badges: label.map(simulated).into_iter().collect(),
        panels: vec![text],
        links: links(&about("symbol").into(), true),
        ..Board::default()
    }
}

fn board(report: &Report, is_past: bool) -> Board {
    let pair = Pair {
        base: report.base_asset.clone(),
        quote: report.quote_asset.clone(),
        price_places: price_places(report),
    };
    let label = report.simulated.as_deref().map(simulated);
    let reason = report.ingestion.reason.as_deref();
    let mut panels = panels::book_panels(report, &pair);
    panels.extend([
        panels::flow(report.flow.as_ref(), &report.sections.flow, &pair),
        panels::profile(
            report.liquidity.volume_profile.as_ref(),
            &report.sections.volume_profile,
            &pair,
        ),
        panels::walls(report, &pair),
        panels::vacuums(report, &pair),
        panels::anomalies(report),
        panels::health(report.health.as_ref(), report.ingestion.status, &report.sections.health),
        panels::sections(report),
        panels::writer(report),
    ]);
    Board {
        title: format!("{}/{}", report.base_asset, report.quote_asset),
        subtitle: Some(subtitle(&report.base_asset, &report.quote_asset, Some("market report"))),
        badges: label
            .into_iter()
            .chain([ingestion(report.ingestion.status, reason, is_past)])
            .collect(),
        headline: Some(headline(report)),
        notes: reason.map(capitalised).into_iter().collect(),
        panels,
        links: links(&report.symbol.as_str().into(), true),
        is_live: false,
        shows_text: true,
    }
}

/// How far the data can be trusted; of a record, how far it could.
fn ingestion(status: IngestionStatus, reason: Option<&str>, is_past: bool) -> Badge {
    let (label, tone, meaning) = match (status, is_past) {
        (IngestionStatus::Ok, false) => (
            "data ok",
            Tone::Good,
            "The exchange confirmed the data within a moment.",
        ),
        (IngestionStatus::Ok, true) => (
            "data was ok",
            Tone::Plain,
            "The exchange had confirmed the data within a moment.",
        ),
        (IngestionStatus::Degraded, false) => (
            "data degraded",
            Tone::Warning,
            "The data is older than a second for two seconds.",
        ),
        (IngestionStatus::Degraded, true) => (
            "data was degraded",
            Tone::Warning,
            "The data had been older than a second for two seconds.",
        ),
        (IngestionStatus::Down, false) => ("data down", Tone::Bad, "The data is older than five seconds."),
        (IngestionStatus::Down, true) => ("data was down", Tone::Bad, "The data was older than five seconds."),
    };
    let meaning = reason.map_or_else(
        || meaning.to_owned(),
        |reason| format!("{meaning} {}.", capitalised(reason)),
    );
    Badge {
        label: label.to_owned(),
        tone,
        meaning: Some(meaning),
    }
}

fn price_places(report: &Report) -> usize {
    let levels = report
        .depth
        .iter()
        .flat_map(|depth| depth.bids.iter().chain(&depth.asks));
    let scales = levels
        .map(|level| level.price.normalize().scale())
        .chain(report.last_price.map(|price| price.scale()));
    scales.max().unwrap_or(2) as usize
}

fn headline(report: &Report) -> Headline {
    let (base, quote) = (&*report.base_asset, &*report.quote_asset);
    let reason = |section: &Section| section.reason.clone().unwrap_or_else(|| "it is not known".to_owned());
    let (of_day, of_book) = (reason(&report.sections.ticker), reason(&report.sections.book));
    let best = |label: &str, best: Option<Level>| Figure {
        note: Some(best.map_or_else(
            || of_book.clone(),
            |best| format!("for {} {base}", best.qty.normalize()),
        )),
        ..known(label, best.map(|best| best.price), quote, &of_book)
    };
    let change = report.change_24h_pct.map(|change| {
        let shown = rounded(change);
        (Amount::new(signed(&shown), "% in 24 h"), tone_of(shown.parse().ok()))
    });
    Headline {
        label: "Last price".to_owned(),
        value: report.last_price.map_or_else(
            || Amount::plain("unknown"),
            |price| Amount::new(price.normalize().to_string(), quote),
        ),
        change,
        // Of the data, as its age is; not of the computing, which goes on without data.
        as_of: report.ingestion.last_update.as_deref().and_then(|at| at.parse().ok()),
        age_ms: Some(report.data_age_ms),
        figures: vec![
            known("24 h high", report.high_24h, quote, &of_day),
            known("24 h low", report.low_24h, quote, &of_day),
            known("24 h volume", report.volume_24h, base, &of_day),
            known("24 h worth", report.quote_volume_24h, quote, &of_day),
            best("Best bid", report.best_bid),
            best("Best ask", report.best_ask),
            spread(report.spread_bps, &of_book),
            known("Microprice", report.micro_price.map(shown), quote, &of_book),
        ],
    }
}

/// A price that comes from a division, as people read it.
fn shown(price: Decimal) -> Decimal {
    price.round_sf(8).unwrap_or(price)
}

fn known(label: &str, value: Option<Decimal>, unit: &str, why: &str) -> Figure {
    match value {
        Some(value) => Figure::new(label, Amount::new(value.normalize().to_string(), unit)),
        None => Figure::unknown(label, why),
    }
}

fn ratio(label: &str, value: Option<f64>, unit: &str, why: &str) -> Figure {
    match value {
        Some(value) => Figure::new(
            label,
            Amount {
                text: rounded(value),
                unit: (!unit.is_empty()).then(|| unit.to_owned()),
            },
        ),
        None => Figure::unknown(label, why),
    }
}

fn spread(bps: Option<f64>, why: &str) -> Figure {
    match bps {
        Some(bps) => {
            let shown = Decimal::try_from(bps).map_or_else(|_| bps.to_string(), words::ratio);
            Figure::new("Spread", Amount::new(shown, "bps"))
        }
        None => Figure::unknown("Spread", why),
    }
}

fn rounded(value: f64) -> String {
    let exact = Decimal::try_from(value).map(|value| value.round_dp(RATIO_PLACES).normalize().to_string());
    exact.unwrap_or_else(|_| value.to_string())
}

/// `2026-01-02 03:04:05.678`, in UTC, of a time as reports have it.
fn time(written: &str) -> String {
    let time = written.parse::<Timestamp>();
    time.map_or_else(
        |_| written.to_owned(),
        |time| time.strftime("%Y-%m-%d %H:%M:%S%.3f").to_string(),
    )
}

fn count(label: &str, value: impl Display) -> Figure {
    Figure::new(label, Amount::plain(value.to_string()))
}

fn why(section: &Section) -> String {
    section.reason.clone().unwrap_or_else(|| "it is not known".to_owned())
}
