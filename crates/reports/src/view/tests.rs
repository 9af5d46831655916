//! Pages of the hand-computed report.

use super::*;
use crate::tests::fixture;
use serde_json::json;
use tribune_core::{DocumentId, JsonObject};
use tribune_page::{Content, Panel};

fn panel_of<'a>(board: &'a Board, key: &str) -> &'a Panel {
    board.panels.iter().find(|panel| panel.key == key).expect("a panel")
}

fn document(metadata: &serde_json::Value) -> Document {
    Document {
        id: DocumentId::parse("report:BTCUSDT").expect("an id"),
        title: "SIMULATED BTCUSDT market report".to_owned(),
        text: "# BTCUSDT market report\n\nSIMULATED: from a simulated exchange, not from a real market.\n".to_owned(),
        url: None,
        as_of: None,
        metadata: metadata.as_object().cloned().unwrap_or_else(JsonObject::new),
        passages: Vec::new(),
    }
}

#[test]
fn page_shows_every_part() {
    let board = now(&fixture::full());
    assert_eq!((&*board.title, board.is_live, board.shows_text), ("BTC/USDT", true, true));
    let labels: Vec<&str> = board.badges.iter().map(|badge| &*badge.label).collect();
    assert_eq!(labels, ["SIMULATED", "data ok"]);
    let headline = board.headline.as_ref().expect("a headline");
    assert_eq!(headline.value, Amount::new("100.05", "USDT"));
    // 4.21875 to two places, half to even.
    assert_eq!(headline.change, Some((Amount::new("+4.22", "% in 24 h"), Tone::Up)));
    assert_eq!(headline.age_ms, Some(100));
    let Content::Ladder(ladder) = &panel_of(&board, "ladder").content else { panic!("a ladder") };
    // Bids 2, 2 + 3, 5 + 10 = 15, the largest; asks 1, then 5: a third of it.
    assert_eq!((&*ladder.bids[2].total, ladder.bids[2].share), ("15", 1.0));
    assert_eq!((&*ladder.asks[1].total, ladder.asks[1].share), ("5", 5.0 / 15.0));
    let Content::Depth(chart) = &panel_of(&board, "depth").content else { panic!("a chart") };
    assert_eq!((chart.price_places, chart.asks.len()), (2, 2));
    let Content::Table(walls) = &panel_of(&board, "walls").content else { panic!("walls") };
    let row: Vec<&str> = walls.rows[0].iter().map(|cell| &*cell.text).collect();
    assert_eq!(row, ["bid", "95", "250", "medium"]);
    assert_eq!(panel_of(&board, "health").title, "Health: 67.6 of 100");
    for key in ["flow", "profile", "vacuums", "anomalies"] {
        let panel = panel_of(&board, key);
        assert!(!matches!(panel.content, Content::Missing(_)), "{key}");
    }
}

#[test]
fn stale_score_is_not_shown_as_health() {
    let mut report = fixture::full();
    report.ingestion.status = IngestionStatus::Down;
    assert_eq!(panel_of(&now(&report), "health").title, "Health: unknown, no data arrives");
}

#[test]
fn missing_parts_have_a_reason() {
    let mut report = fixture::full();
    (report.depth, report.flow, report.health, report.anomalies) = (None, None, None, Some(Vec::new()));
    report.last_price = None;
    report.best_bid = None;
    report.sections.book.reason = Some("the book is resyncing".to_owned());
    report.ingestion.status = IngestionStatus::Down;
    report.ingestion.reason = Some("no report has been written for 9.0 s".to_owned());
    let board = now(&report);
    for key in ["depth", "ladder"] {
        assert_eq!(panel_of(&board, key).content, Content::Missing("the book is resyncing".to_owned()));
    }
    assert!(matches!(&panel_of(&board, "anomalies").content, Content::Text(_)));
    assert_eq!(board.badges[1].tone, Tone::Bad);
    assert_eq!(board.notes, ["No report has been written for 9.0 s"]);
    let headline = board.headline.expect("a headline");
    assert_eq!(headline.value, Amount::plain("unknown"));
    assert_eq!(headline.figures[4].note.as_deref(), Some("the book is resyncing"));
}

#[test]
fn record_is_shown_as_it_was() {
    let report = fixture::full();
    let mut shown = now(&report);
    shown.is_live = false;
    shown.badges[1] = ingestion(IngestionStatus::Ok, None, true);
    assert_eq!((&*shown.badges[1].label, shown.badges[1].tone), ("data was ok", Tone::Plain));
    let cited = document(&json!({ "report": report }));
    assert_eq!(then(&cited), Some(shown));
    for unreadable in [json!({"report": {"symbol": 7}}), json!({})] {
        assert_eq!(then(&document(&unreadable)), None);
    }
}

#[test]
fn zero_change_has_no_direction() {
    let mut report = fixture::full();
    report.change_24h_pct = Some(0.000_4);
    report.spread_bps = Some(0.001_562_5);
    let headline = now(&report).headline.expect("a headline");
    assert_eq!(headline.change, Some((Amount::new("0", "% in 24 h"), Tone::Plain)));
    let spread = headline.figures.iter().find(|figure| figure.label == "Spread");
    assert_eq!(spread.and_then(|figure| figure.value.clone()), Some(Amount::new("0.00156", "bps")));
}

#[test]
fn record_stays_small() {
    let report = serde_json::to_string(&fixture::full()).expect("JSON");
    assert!(report.len() < 6_000, "{} bytes", report.len());
}
