//! The panels of a report, one per section. The text below them has the rest: times, ages, and who wrote it.

use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;
use tribune_page::{Amount, Cell, Column, Content, Figure, Panel, Tone, Width};

use super::super::model::{Component, IngestionStatus, Level, Report, Section};
use super::{count, figure, rounded, why};
use tribune_analytics::{BookSide, Severity};
use tribune_binance::{Depth, Level as BookLevel};
use tribune_market_parts::book::{Pair, depth_chart, ladder};
use tribune_market_parts::parts::{input_of, of_components};
use tribune_page::parts::{cell, noted, numbers, panel, panel_or_why, signed, table, tone_of, toned, words};
use tribune_page::text::{capitalised, dash, padded, plain};

pub(super) fn all(report: &Report, pair: &Pair) -> Vec<Panel> {
    let mut panels = book(report, pair);
    panels.extend([
        flow(report, pair),
        profile(report, pair),
        walls(report, pair),
        vacuums(report, pair),
        anomalies(report),
        health(report),
    ]);
    panels
}

fn book(report: &Report, pair: &Pair) -> Vec<Panel> {
    let Some(listed) = &report.depth else {
        let missing = || Content::Missing(why(&report.sections.book));
        return vec![
            panel("depth", "Depth", Width::Half, missing()),
            panel("ladder", "Order book", Width::Half, missing()),
        ];
    };
    let level = |level: &Level| BookLevel { price: level.price, quantity: level.qty };
    let depth = Depth::listed(listed.bids.iter().map(level).collect(), listed.asks.iter().map(level).collect());
    vec![depth_chart(&depth, pair), ladder(&depth, pair)]
}

fn flow(report: &Report, pair: &Pair) -> Panel {
    let known = report.flow.as_ref().ok_or_else(|| why(&report.sections.flow));
    let content = known.map(|flow| {
        let sum = |label: &str, value: Decimal, tone: Tone| Figure {
            tone,
            ..Figure::new(label, Amount::new(value.normalize().to_string(), &pair.base))
        };
        let net = flow.net_flow.normalize().to_string();
        let figures = vec![
            Figure {
                tone: tone_of(flow.net_flow.to_f64()),
                ..Figure::new("Net flow", Amount::new(signed(&net), &pair.base))
            },
            sum("Taker buys", flow.buy_volume, Tone::Up),
            sum("Taker sells", flow.sell_volume, Tone::Down),
            count("Trades", flow.trade_count),
            figure(
                "Trades a second",
                flow.orders_per_sec.map(|rate| Amount::plain(rounded(rate))),
                "trades of the last ten seconds are missing",
            ),
        ];
        let gaps = if flow.complete { "" } else { "; some are missing" };
        let note = format!("Trades of the last {} s{gaps}. Exact sums; they describe the past.", flow.window_sec);
        (Content::Figures(figures), Some(note))
    });
    panel_or_why("flow", "Order flow", Width::Half, content)
}

fn profile(report: &Report, pair: &Pair) -> Panel {
    let known = report.liquidity.volume_profile.as_ref();
    let content = known.ok_or_else(|| why(&report.sections.volume_profile)).map(|profile| {
        let price = |label: &str, price: Decimal| {
            Figure::new(label, Amount::new(padded(&price.normalize().to_string(), pair.price_places), &pair.quote))
        };
        let figures = vec![
            price("Point of control", profile.poc),
            price("Value area high", profile.vah),
            price("Value area low", profile.val),
            count("Trades", profile.trade_count),
            figure(
                "Coverage",
                profile.coverage.map(|share| Amount::new(rounded(share * 100.0), "%")),
                "it is not known",
            ),
        ];
        let note = format!("Volume by price over the last {} minutes. Descriptive.", profile.window_sec / 60);
        (Content::Figures(figures), Some(note))
    });
    panel_or_why("profile", "Volume profile", Width::Half, content)
}

fn severity_cell(severity: Severity) -> Cell {
    match severity {
        Severity::Low => cell("low"),
        Severity::Medium => toned("medium", Tone::Warning),
        Severity::High => toned("high", Tone::Bad),
    }
}

fn number(value: Decimal) -> Cell {
    cell(value.normalize().to_string())
}

/// A list as a table, or a sentence if it is empty.
fn listed<T>(
    list: Option<&Vec<T>>,
    section: &Section,
    nothing: &str,
    columns: Vec<Column>,
    row: impl Fn(&T) -> Vec<Cell>,
) -> Result<(Content, Option<String>), String> {
    let list = list.ok_or_else(|| why(section))?;
    let content = match list.is_empty() {
        true => Content::Text(nothing.to_owned()),
        false => table(columns, list.iter().map(row).collect()),
    };
    Ok((content, None))
}

fn walls(report: &Report, pair: &Pair) -> Panel {
    let content = listed(
        report.liquidity.walls.as_ref(),
        &report.sections.walls,
        "No level is much larger than the others for five seconds.",
        vec![
            words("Side"),
            numbers(format!("Price ({})", pair.quote)),
            numbers(format!("Quantity ({})", pair.base)),
            words("Severity"),
        ],
        |wall| {
            let side = match wall.side {
                BookSide::Bid => toned("bid", Tone::Up),
                BookSide::Ask => toned("ask", Tone::Down),
            };
            vec![side, number(wall.price), number(wall.qty), severity_cell(wall.severity)]
        },
    );
    let panel = panel_or_why("walls", "Walls", Width::Half, content);
    noted(panel, "Levels at least ten times the median that have stayed for five seconds. Hints.")
}

fn vacuums(report: &Report, pair: &Pair) -> Panel {
    let content = listed(
        report.liquidity.vacuums.as_ref(),
        &report.sections.vacuums,
        "No price range with little volume.",
        vec![numbers(format!("From ({})", pair.quote)), numbers(format!("To ({})", pair.quote)), words("Severity")],
        |vacuum| vec![number(vacuum.from), number(vacuum.to), severity_cell(vacuum.severity)],
    );
    let panel = panel_or_why("vacuums", "Liquidity vacuums", Width::Half, content);
    noted(panel, "Price ranges in which little was traded. Descriptive.")
}

fn anomalies(report: &Report) -> Panel {
    let content = listed(
        report.anomalies.as_ref(),
        &report.sections.anomalies,
        "Every check that could be made found nothing.",
        vec![words("Check"), words("Severity"), words("What was found")],
        |anomaly| {
            let check = capitalised(&anomaly.kind.replace('_', " "));
            vec![cell(check), severity_cell(anomaly.severity), cell(anomaly.note.clone())]
        },
    );
    let panel = panel_or_why("anomalies", "Anomalies", Width::Whole, content);
    noted(panel, "Differences from this market's own past. Hints, not findings.")
}

/// Without current data, the last score says nothing about the present.
fn health(report: &Report) -> Panel {
    let health = report.health.as_ref();
    let title = match health.and_then(|health| health.score) {
        Some(_) if report.ingestion.status == IngestionStatus::Down => "Health: unknown, no data arrives".to_owned(),
        Some(score) => format!("Health: {} of 100", rounded(score)),
        None => "Health".to_owned(),
    };
    let content = health.ok_or_else(|| why(&report.sections.health)).map(|health| {
        let points = |value: Option<f64>| value.and_then(plain).unwrap_or_else(dash);
        let row = |part: &Component| {
            let from = match part.input {
                Some(input) => input_of(&rounded(input), &part.input_unit),
                None => format!("not known: {}", part.reason.as_deref().unwrap_or("no reason is given")),
            };
            vec![
                cell(capitalised(&part.name)),
                Cell { share: part.score.map(|score| (score / 100.0).clamp(0.0, 1.0)), ..cell(points(part.score)) },
                cell(points(Some(part.weight))),
                cell(points(part.contribution)),
                cell(from),
            ]
        };
        let used = rounded(health.weights_used * 100.0);
        let note = format!("Score out of 100 from {used}% of the weight: {}.", health.note);
        (table(of_components(), health.components.iter().map(row).collect()), Some(note))
    });
    panel_or_why("health", &title, Width::Whole, content)
}
