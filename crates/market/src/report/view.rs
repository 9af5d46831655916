//! What a page shows of a report: of the one that is current, and of one that was cited, by the same functions.

use std::fmt::Display;

use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;
use tribune_core::Document;
use tribune_core::view::{Amount, Badge, Board, Cell, Content, Figure, Headline, Panel, Tone, Width};

use super::citing::REPORT;
use super::model::{Flow, Health, IngestionStatus, Level, Report, Section, VolumeProfile};
use crate::analytics::{BookSide, Severity};
use crate::book::{self, Depth};
use crate::number::{Price, Quantity};
use crate::symbols::Kind;
use crate::view::lists::{dash, input_of, plain, severe};
use crate::view::parts::{
    cell, links, noted, numbers, panel, panel_or_why, signed, simulated, subtitle, table, tone_of, toned, words,
};
use crate::view::words::capitalised;
use crate::view::{Pair, depth_chart, ladder};

/// Places of percentages and basis points on a page.
const RATIO_PLACES: u32 = 3;

/// The board of a report as it is now.
pub(super) fn now(report: &Report) -> Board {
    Board {
        is_live: true,
        ..board(report)
    }
}

/// The board of what was cited. Records of before reports were kept whole have their text alone.
pub(super) fn then(document: &Document) -> Board {
    let kept = document.metadata.get(REPORT).cloned();
    let kept = kept.and_then(|report| serde_json::from_value::<Report>(report).ok());
    kept.map_or_else(|| of_text(document), |report| board(&report))
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
        links: links(Kind::Report, &about("symbol").into(), true),
        ..Board::default()
    }
}

fn board(report: &Report) -> Board {
    let pair = Pair {
        base: report.base_asset.clone(),
        quote: report.quote_asset.clone(),
        price_places: price_places(report),
    };
    let label = report.simulated.as_deref().map(simulated);
    let reason = report.ingestion.reason.as_deref();
    let mut panels = book_panels(report, &pair);
    panels.extend([
        flow(report.flow.as_ref(), &report.sections.flow, &pair),
        profile(
            report.liquidity.volume_profile.as_ref(),
            &report.sections.volume_profile,
            &pair,
        ),
        walls(report, &pair),
        vacuums(report, &pair),
        anomalies(report),
        health(report.health.as_ref(), &report.sections.health),
        sections(report),
        writer(report),
    ]);
    Board {
        title: format!("{}/{}", report.base_asset, report.quote_asset),
        subtitle: Some(subtitle(&report.base_asset, &report.quote_asset, Some("market report"))),
        badges: label
            .into_iter()
            .chain([ingestion(report.ingestion.status, reason)])
            .collect(),
        headline: Some(headline(report)),
        notes: reason.map(capitalised).into_iter().collect(),
        panels,
        links: links(Kind::Report, &report.symbol.as_str().into(), true),
        is_live: false,
        shows_text: true,
    }
}

fn ingestion(status: IngestionStatus, reason: Option<&str>) -> Badge {
    let (label, tone, meaning) = match status {
        IngestionStatus::Ok => (
            "data ok",
            Tone::Good,
            "The exchange confirmed the data within a moment.",
        ),
        IngestionStatus::Degraded => (
            "data degraded",
            Tone::Warning,
            "The data is older than a second for two seconds.",
        ),
        IngestionStatus::Down => ("data down", Tone::Bad, "The data is older than five seconds."),
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
        (Amount::new(signed(&shown), "% in 24 h"), tone_of(Some(change)))
    });
    Headline {
        label: "Last price".to_owned(),
        value: report.last_price.map_or_else(
            || Amount::plain("unknown"),
            |price| Amount::new(price.normalize().to_string(), quote),
        ),
        change,
        as_of: report.generated_at.parse().ok(),
        age_ms: Some(report.data_age_ms),
        figures: vec![
            known("24 h high", report.high_24h, quote, &of_day),
            known("24 h low", report.low_24h, quote, &of_day),
            known("24 h volume", report.volume_24h, base, &of_day),
            known("24 h worth", report.quote_volume_24h, quote, &of_day),
            best("Best bid", report.best_bid),
            best("Best ask", report.best_ask),
            ratio("Spread", report.spread_bps, "bps", &of_book),
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

fn book_panels(report: &Report, pair: &Pair) -> Vec<Panel> {
    let listed = report.depth.as_ref().and_then(|depth| {
        let bids: Vec<book::Level> = depth.bids.iter().map(level).collect::<Option<_>>()?;
        let asks: Vec<book::Level> = depth.asks.iter().map(level).collect::<Option<_>>()?;
        Some(Depth {
            bid_reach: bids.last().map(|level| level.price),
            ask_reach: asks.last().map(|level| level.price),
            bids: bids.into_iter().rev().collect(),
            asks: asks.into_iter().rev().collect(),
        })
    });
    let Some(depth) = listed else {
        let missing = || Content::Missing(why(&report.sections.book));
        return vec![
            panel("depth", "Depth", Width::Half, missing()),
            panel("ladder", "Order book", Width::Half, missing()),
        ];
    };
    vec![depth_chart(&depth, pair), ladder(&depth, pair)]
}

fn level(level: &Level) -> Option<book::Level> {
    Some(book::Level {
        price: Price::parse(&level.price.to_string()).ok()?,
        quantity: Quantity::parse(&level.qty.to_string()).ok()?,
    })
}

fn flow(flow: Option<&Flow>, section: &Section, pair: &Pair) -> Panel {
    let content = flow.ok_or_else(|| why(section)).map(|flow| {
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
            sum("Buyers took", flow.buy_volume, Tone::Up),
            sum("Sellers gave", flow.sell_volume, Tone::Down),
            count("Trades", flow.trade_count),
            ratio(
                "Orders a second",
                flow.orders_per_sec,
                "",
                "the last ten seconds were not seen whole",
            ),
        ];
        let note = format!(
            "Trades of the last {} s{}. Exact sums; they say what was, not what will be.",
            flow.window_sec,
            if flow.complete {
                ""
            } else {
                ", of which some are missing"
            }
        );
        (Content::Figures(figures), Some(note))
    });
    panel_or_why("flow", "Order flow", Width::Half, content)
}

fn profile(profile: Option<&VolumeProfile>, section: &Section, pair: &Pair) -> Panel {
    let content = profile.ok_or_else(|| why(section)).map(|profile| {
        let price =
            |label: &str, price: Decimal| Figure::new(label, Amount::new(price.normalize().to_string(), &pair.quote));
        let figures = vec![
            price("Point of control", profile.poc),
            price("Value area high", profile.vah),
            price("Value area low", profile.val),
            count("Trades", profile.trade_count),
            ratio(
                "Coverage",
                profile.coverage.map(|share| share * 100.0),
                "%",
                "it is not known",
            ),
        ];
        let note = format!(
            "Where volume was traded in the last {} minutes. Descriptive: it says nothing of where it will be.",
            profile.window_sec / 60
        );
        (Content::Figures(figures), Some(note))
    });
    panel_or_why("profile", "Volume profile", Width::Half, content)
}

const fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Low => "low",
        Severity::Medium => "medium",
        Severity::High => "high",
    }
}

fn severity_cell(of: Severity) -> Cell {
    let word = severity(of);
    toned(word, severe(Some(word)))
}

/// A list as a table; an empty one says what that means.
fn listed<T>(
    list: Option<&Vec<T>>,
    section: &Section,
    nothing: &str,
    make: impl FnOnce(&[T]) -> Content,
) -> Result<(Content, Option<String>), String> {
    match list {
        None => Err(why(section)),
        Some(list) if list.is_empty() => Ok((Content::Text(nothing.to_owned()), None)),
        Some(list) => Ok((make(list), None)),
    }
}

fn walls(report: &Report, pair: &Pair) -> Panel {
    let content = listed(
        report.liquidity.walls.as_ref(),
        &report.sections.walls,
        "No level is far larger than the others and stays.",
        |walls| {
            let row = |wall: &super::model::Wall| {
                let side = match wall.side {
                    BookSide::Bid => toned("bid", Tone::Up),
                    BookSide::Ask => toned("ask", Tone::Down),
                };
                vec![
                    side,
                    cell(wall.price.normalize().to_string()),
                    cell(wall.qty.normalize().to_string()),
                    severity_cell(wall.severity),
                ]
            };
            let columns = vec![
                words("Side"),
                numbers(format!("Price ({})", pair.quote)),
                numbers(format!("Quantity ({})", pair.base)),
                words("Severity"),
            ];
            table(columns, walls.iter().map(row).collect())
        },
    );
    let panel = panel_or_why("walls", "Walls", Width::Half, content);
    noted(
        panel,
        "Levels at least ten times the median that have stayed for five seconds. Hints.",
    )
}

fn vacuums(report: &Report, pair: &Pair) -> Panel {
    let content = listed(
        report.liquidity.vacuums.as_ref(),
        &report.sections.vacuums,
        "No price range between traded ones was nearly empty.",
        |vacuums| {
            let row = |vacuum: &super::model::Vacuum| {
                vec![
                    cell(vacuum.from.normalize().to_string()),
                    cell(vacuum.to.normalize().to_string()),
                    severity_cell(vacuum.severity),
                ]
            };
            let columns = vec![
                numbers(format!("From ({})", pair.quote)),
                numbers(format!("To ({})", pair.quote)),
                words("Severity"),
            ];
            table(columns, vacuums.iter().map(row).collect())
        },
    );
    let panel = panel_or_why("vacuums", "Liquidity vacuums", Width::Half, content);
    noted(panel, "Price ranges in which little was traded. Descriptive.")
}

fn anomalies(report: &Report) -> Panel {
    let content = listed(
        report.anomalies.as_ref(),
        &report.sections.anomalies,
        "Every check that could be made found nothing.",
        |found| {
            let row = |anomaly: &super::model::Anomaly| {
                vec![
                    cell(capitalised(&anomaly.kind.replace('_', " "))),
                    severity_cell(anomaly.severity),
                    cell(anomaly.note.clone()),
                ]
            };
            let columns = vec![words("Check"), words("Severity"), words("What was found")];
            table(columns, found.iter().map(row).collect())
        },
    );
    let panel = panel_or_why("anomalies", "Anomalies", Width::Whole, content);
    noted(panel, "What differs from the market's own past. Hints, not findings.")
}

fn health(health: Option<&Health>, section: &Section) -> Panel {
    let title = health.and_then(|health| health.score).map_or_else(
        || "Health".to_owned(),
        |score| format!("Health: {} of 100", rounded(score)),
    );
    let content = health.ok_or_else(|| why(section)).map(|health| {
        let points = |value: Option<f64>| value.and_then(plain).unwrap_or_else(dash);
        let row = |part: &super::model::Component| {
            let from = match part.input {
                Some(input) => input_of(&rounded(input), &part.input_unit),
                None => format!("not known: {}", part.reason.as_deref().unwrap_or("no reason is given")),
            };
            vec![
                cell(capitalised(&part.name)),
                Cell {
                    share: part.score.map(|score| (score / 100.0).clamp(0.0, 1.0)),
                    ..cell(points(part.score))
                },
                cell(points(Some(part.weight))),
                cell(points(part.contribution)),
                cell(from),
            ]
        };
        let columns = vec![
            words("Component"),
            numbers("Points"),
            numbers("Weight"),
            numbers("Contribution"),
            words("From"),
        ];
        let note = format!(
            "A convention, over {} of the weight: {}.",
            points(Some(health.weights_used)),
            health.note
        );
        (table(columns, health.components.iter().map(row).collect()), Some(note))
    });
    panel_or_why("health", &title, Width::Whole, content)
}

fn sections(report: &Report) -> Panel {
    let all = &report.sections;
    let rows = [
        ("Price and day", &all.ticker),
        ("Order book", &all.book),
        ("Order flow", &all.flow),
        ("Walls", &all.walls),
        ("Vacuums", &all.vacuums),
        ("Volume profile", &all.volume_profile),
        ("Anomalies", &all.anomalies),
        ("Health", &all.health),
    ];
    let row = |(name, section): (&str, &Section)| {
        vec![
            cell(name),
            cell(section.age_ms.map_or_else(dash, |age| age.to_string())),
            cell(section.computed_at.clone().unwrap_or_else(dash)),
            cell(section.exchange_time.clone().unwrap_or_else(dash)),
            cell(section.reason.clone().unwrap_or_default()),
        ]
    };
    let columns = vec![
        words("Part"),
        numbers("Age (ms)"),
        words("Computed"),
        words("Exchange time"),
        words("What is missing, and why"),
    ];
    let panel = panel(
        "sections",
        "How old each part is",
        Width::Whole,
        table(columns, rows.map(row).into()),
    );
    noted(panel, "Ages are measured by clocks that do not jump.")
}

fn writer(report: &Report) -> Panel {
    let figures = vec![
        count("Node", &report.writer.node_id),
        count("Token", report.writer.writer_token),
        count("Sequence", report.writer.sequence),
        count("Written", &report.updated_at),
        count("Schema", &report.schema_version),
    ];
    let panel = panel("writer", "Who wrote it", Width::Whole, Content::Figures(figures));
    noted(
        panel,
        "Of two reports the one with the larger token is newer, of one token the one with the larger sequence.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture;
    use serde_json::json;
    use tribune_core::{DocumentId, JsonObject};

    fn panel_of<'a>(board: &'a Board, key: &str) -> &'a Panel {
        board.panels.iter().find(|panel| panel.key == key).expect("a panel")
    }

    fn document(metadata: &serde_json::Value) -> Document {
        Document {
            id: DocumentId::parse("report:BTCUSDT").expect("an id"),
            title: "SIMULATED BTCUSDT market report".to_owned(),
            text: "# BTCUSDT market report\n\nSIMULATED: from a simulated exchange, not from a real market.\n"
                .to_owned(),
            url: None,
            as_of: None,
            metadata: metadata.as_object().cloned().unwrap_or_else(JsonObject::new),
            passages: Vec::new(),
        }
    }

    #[test]
    fn a_report_is_shown_with_all_its_parts() {
        let board = now(&fixture::full());
        assert_eq!(
            (&*board.title, board.is_live, board.shows_text),
            ("BTC/USDT", true, true)
        );
        let labels: Vec<&str> = board.badges.iter().map(|badge| &*badge.label).collect();
        assert_eq!(labels, ["SIMULATED", "data ok"]);
        let headline = board.headline.as_ref().expect("a headline");
        assert_eq!(headline.value, Amount::new("100.05", "USDT"));
        // 4.1666666667 to three places.
        assert_eq!(headline.change, Some((Amount::new("+4.167", "% in 24 h"), Tone::Up)));
        assert_eq!(headline.age_ms, Some(100));
        let Content::Ladder(ladder) = &panel_of(&board, "ladder").content else {
            panic!("a ladder")
        };
        // Bids 2, 2 + 3, 5 + 10 = 15, the largest; asks 1, then 5: a third of it.
        assert_eq!((&*ladder.bids[2].total, ladder.bids[2].share), ("15", 1.0));
        assert_eq!((&*ladder.asks[1].total, ladder.asks[1].share), ("5", 5.0 / 15.0));
        let Content::Depth(chart) = &panel_of(&board, "depth").content else {
            panic!("a chart")
        };
        assert_eq!((chart.price_places, chart.asks.len()), (2, 2));
        let Content::Table(walls) = &panel_of(&board, "walls").content else {
            panic!("walls")
        };
        let row: Vec<&str> = walls.rows[0].iter().map(|cell| &*cell.text).collect();
        assert_eq!(row, ["bid", "95", "250", "medium"]);
        assert_eq!(panel_of(&board, "health").title, "Health: 67.6 of 100");
        for key in ["flow", "profile", "vacuums", "anomalies", "sections", "writer"] {
            let panel = panel_of(&board, key);
            assert!(!matches!(panel.content, Content::Missing(_)), "{key}");
        }
    }

    #[test]
    fn what_a_report_does_not_know_it_says_and_why() {
        let mut report = fixture::full();
        (report.depth, report.flow, report.health, report.anomalies) = (None, None, None, Some(Vec::new()));
        report.last_price = None;
        report.best_bid = None;
        report.sections.book.reason = Some("the book is resyncing".to_owned());
        report.ingestion.status = IngestionStatus::Down;
        report.ingestion.reason = Some("no report has been written for 9.0 s".to_owned());
        let board = now(&report);
        for key in ["depth", "ladder"] {
            assert_eq!(
                panel_of(&board, key).content,
                Content::Missing("the book is resyncing".to_owned())
            );
        }
        assert!(matches!(&panel_of(&board, "anomalies").content, Content::Text(_)));
        assert_eq!(board.badges[1].tone, Tone::Bad);
        assert_eq!(board.notes, ["No report has been written for 9.0 s"]);
        let headline = board.headline.expect("a headline");
        assert_eq!(headline.value, Amount::plain("unknown"));
        assert_eq!(headline.figures[4].note.as_deref(), Some("the book is resyncing"));
    }

    #[test]
    fn a_record_is_shown_as_it_was_and_an_old_one_by_its_text() {
        let report = fixture::full();
        let mut shown = now(&report);
        shown.is_live = false;
        assert_eq!(then(&document(&json!({ "report": report }))), shown);
        let about = json!({"symbol": "BTCUSDT", "base_asset": "BTC", "quote_asset": "USDT"});
        for metadata in [about, json!({"report": {"symbol": 7}}), json!({})] {
            let old = then(&document(&metadata));
            assert!(
                matches!(&old.panels[..], [Panel { content: Content::Markdown(text), .. }] if text.starts_with('#'))
            );
            assert_eq!((old.badges.len(), old.is_live, old.shows_text), (1, false, false));
        }
    }

    #[test]
    fn a_record_stays_small() {
        let report = serde_json::to_string(&fixture::full()).expect("JSON");
        assert!(report.len() < 6_000, "{} bytes", report.len());
    }
}
