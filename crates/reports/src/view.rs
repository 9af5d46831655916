//! The page of a report, the current one or a cited one.

mod panels;
#[cfg(test)]
mod tests;

use std::fmt::Display;

use rust_decimal::Decimal;
use serde::Deserialize as _;
use tribune_core::Document;
use tribune_page::{Amount, Badge, Board, Figure, Headline, Tone};

use super::citing::REPORT;
use super::model::{IngestionStatus, Level, Report, Section};
use tribune_market_parts::book::Pair;
use tribune_market_parts::parts::{links, simulated, subtitle};
use tribune_market_resolve::asset_name;
use tribune_page::parts::{signed, tone_of};
use tribune_page::text::{self, capitalised};

/// Decimal places of percentages on a page.
const RATIO_PLACES: u32 = 2;

/// The board of a report as it is now.
pub(super) fn now(report: &Report) -> Board {
    Board { is_live: true, ..board(report, false) }
}

/// The board of a cited report; `None` if the record has no readable report, whose text is shown instead.
pub(super) fn then(document: &Document) -> Option<Board> {
    let record = document.metadata.get(REPORT)?;
    let report = Report::deserialize(record).ok()?;
    Some(board(&report, true))
}

fn board(report: &Report, is_past: bool) -> Board {
    let pair =
        Pair { base: report.base_asset.clone(), quote: report.quote_asset.clone(), price_places: price_places(report) };
    let label = report.simulated.as_deref().map(simulated);
    let name = |ticker| asset_name(ticker).unwrap_or(ticker);
    let reason = report.ingestion.reason.as_deref();
    Board {
        title: format!("{}/{}", report.base_asset, report.quote_asset),
        subtitle: Some(subtitle(name(&pair.base), name(&pair.quote), Some("market report"))),
        badges: label.into_iter().chain([ingestion(report.ingestion.status, reason, is_past)]).collect(),
        headline: Some(headline(report)),
        notes: reason.map(capitalised).into_iter().collect(),
        panels: panels::all(report, &pair),
        links: links(&report.symbol, true),
        is_live: false,
        shows_text: true,
    }
}

/// How fresh the data is, or was in a record.
fn ingestion(status: IngestionStatus, reason: Option<&str>, is_past: bool) -> Badge {
    let (word, tone, meaning) = match status {
        IngestionStatus::Ok if is_past => ("ok", Tone::Plain, "The exchange had confirmed the data within a moment."),
        IngestionStatus::Ok => ("ok", Tone::Good, "The exchange confirmed the data within a moment."),
        IngestionStatus::Degraded => ("degraded", Tone::Warning, "Data older than a second for two seconds."),
        IngestionStatus::Down => ("down", Tone::Bad, "Data older than five seconds."),
    };
    let reason = reason.map(|reason| format!(" {}.", capitalised(reason)));
    Badge {
        label: format!("data {}{word}", if is_past { "was " } else { "" }),
        tone,
        meaning: Some(format!("{meaning}{}", reason.unwrap_or_default())),
    }
}

fn price_places(report: &Report) -> usize {
    let levels = report.depth.iter().flat_map(|depth| depth.bids.iter().chain(&depth.asks));
    let scales = levels.map(|level| level.price.decimal().scale()).chain(report.last_price.map(|price| price.scale()));
    scales.max().unwrap_or(2) as usize
}

fn headline(report: &Report) -> Headline {
    let (base, quote) = (&*report.base_asset, &*report.quote_asset);
    let (of_day, of_book) = (why(&report.sections.ticker), why(&report.sections.book));
    let places = price_places(report);
    let price = |label: &str, price: Option<Decimal>, why: &str| {
        let shown = price.map(|price| Amount::new(text::padded(&price.normalize().to_string(), places), quote));
        figure(label, shown, why)
    };
    let best = |label: &str, best: Option<Level>| Figure {
        note: Some(best.map_or_else(|| of_book.clone(), |best| format!("for {} {base}", best.qty))),
        ..price(label, best.map(|best| best.price.decimal()), &of_book)
    };
    let rounded_price = |price: Decimal| price.round_sf(8).unwrap_or(price);
    let change = report.change_24h_pct.map(|change| {
        let shown = rounded(change);
        (Amount::new(signed(&shown), "% in 24 h"), tone_of(shown.parse().ok()))
    });
    Headline {
        label: "Last price".to_owned(),
        value: price("Last price", report.last_price, &of_day).value.unwrap_or_else(|| Amount::plain("unknown")),
        change,
        // The time of the data, not of the computation, which goes on without data.
        as_of: report.ingestion.last_update.as_deref().and_then(|at| at.parse().ok()),
        age_ms: Some(report.data_age_ms),
        figures: vec![
            price("24 h high", report.high_24h, &of_day),
            price("24 h low", report.low_24h, &of_day),
            total("24 h volume", report.volume_24h, base, &of_day),
            total("24 h turnover", report.quote_volume_24h, quote, &of_day),
            best("Best bid", report.best_bid),
            best("Best ask", report.best_ask),
            spread(report.spread_bps, &of_book),
            price("Microprice", report.micro_price.map(rounded_price), &of_book),
        ],
    }
}

fn figure(label: &str, amount: Option<Amount>, why: &str) -> Figure {
    amount.map_or_else(|| Figure::unknown(label, why), |amount| Figure::new(label, amount))
}

/// A sum, rounded; the JSON has all digits.
fn total(label: &str, value: Option<Decimal>, unit: &str, why: &str) -> Figure {
    let amount = value.map(|value| Amount::new(text::sum(&value.normalize().to_string()), unit));
    figure(label, amount, why)
}

fn spread(bps: Option<f64>, why: &str) -> Figure {
    let text = |bps: f64| Decimal::try_from(bps).map_or_else(|_| bps.to_string(), text::ratio);
    figure("Spread", bps.map(|bps| Amount::new(text(bps), "bps")), why)
}

fn rounded(value: f64) -> String {
    let exact = Decimal::try_from(value).map(|value| value.round_dp(RATIO_PLACES).normalize().to_string());
    exact.unwrap_or_else(|_| value.to_string())
}

fn count(label: &str, value: impl Display) -> Figure {
    Figure::new(label, Amount::plain(value.to_string()))
}

fn why(section: &Section) -> String {
    section.reason.clone().unwrap_or_else(|| "it is not known".to_owned())
}
