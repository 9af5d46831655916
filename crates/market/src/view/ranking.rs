//! All markets of one money: a table for each order that the answer lists them in.

use tribune_core::view::{Amount, Board, Cell, Figure, Headline, Panel, Tone, Width};
use tribune_core::{Document, DocumentId};

use super::lists::dash;
use super::parts::{cell, noted, numbers, panel, signed, simulated, table, tone_of, toned, words};
use super::record::{Told, ToldTable, finite};
use super::words::capitalised;
use crate::symbols::MarketId;

/// Orders that answers list markets in: the name of the table, and its title.
const ORDERS: &[(&str, &str)] = &[
    ("markets", "Markets"),
    ("most_traded", "Most traded"),
    ("gainers", "Gainers"),
    ("losers", "Losers"),
    ("widest_range", "Widest range"),
];

/// The board of what an answer said; `None` of a document that is no such answer.
pub(crate) fn board(document: &Document) -> Option<Board> {
    let told = Told::read(document)?;
    let panels: Vec<Panel> = ORDERS
        .iter()
        .filter_map(|(name, title)| Some(listed(name, title, told.table(name)?, &told.quote)))
        .collect();
    Some(Board {
        title: format!("{} markets", told.quote),
        subtitle: Some("All markets of one money · Binance Spot".to_owned()),
        badges: told.text("simulated").map(simulated).into_iter().collect(),
        headline: Some(headline(&told)),
        notes: ["note", "clock_note"]
            .iter()
            .filter_map(|name| told.text(name).map(capitalised))
            .collect(),
        panels,
        shows_text: true,
        ..Board::default()
    })
}

fn headline(told: &Told) -> Headline {
    let count = |label: &str, name: &str| Figure::new(label, Amount::plain(told.text(name).unwrap_or("unknown")));
    let share = told.text("volume_share_of_first_10_pct");
    let share = share.map(|share| Figure::new("Of it the first ten", Amount::new(share, "%")));
    Headline {
        label: "Traded in 24 h".to_owned(),
        value: told.text("quote_volume").map_or_else(
            || Amount::plain("unknown"),
            |money| Amount::new(money, told.quote.clone()),
        ),
        change: None,
        as_of: told.as_of,
        age_ms: told.age_ms(),
        figures: [
            count("Markets", "markets_counted"),
            count("Rose", "rose"),
            count("Fell", "fell"),
        ]
        .into_iter()
        .chain(share)
        .collect(),
    }
}

fn listed(key: &'static str, title: &str, places: &ToldTable, money: &str) -> Panel {
    let columns = vec![
        words("Market"),
        numbers(format!("Last price ({money})")),
        numbers("24 h change (%)"),
        numbers("24 h range (%)"),
        numbers(format!("24 h worth ({money})")),
        numbers("Share (%)"),
    ];
    let names = [
        "symbol",
        "last_price",
        "price_change_pct",
        "range_pct",
        "quote_volume",
        "volume_share_pct",
    ];
    let known = |text: &str| if text == "null" { dash() } else { text.to_owned() };
    let row = |[symbol, last, change, range, worth, share]: [&str; 6]| {
        vec![
            Cell {
                link: ticker(symbol),
                ..cell(symbol)
            },
            cell(known(last)),
            match finite(change) {
                Some(number) => toned(signed(change), tone_of(Some(number))),
                None => toned(dash(), Tone::Plain),
            },
            cell(known(range)),
            cell(known(worth)),
            Cell {
                share: finite(share).map(|share| (share / 100.0).clamp(0.0, 1.0)),
                ..cell(known(share))
            },
        ]
    };
    let rows: Vec<Vec<Cell>> = places.select(names).into_iter().flatten().map(row).collect();
    let note = if rows.is_empty() {
        "None."
    } else {
        "Shares are of what was traded of all."
    };
    noted(panel(key, title, Width::Whole, table(columns, rows)), note)
}

fn ticker(symbol: &str) -> Option<DocumentId> {
    MarketId::Ticker(symbol.into()).document_id().ok()
}
