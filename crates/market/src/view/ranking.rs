//! All markets of one money: a table for each order that the answer lists them in.

use rust_decimal::Decimal;
use tribune_core::DocumentId;
use tribune_core::view::{Amount, Board, Cell, Figure, Headline, Panel, Tone, Width};

use super::lists::dash;
use super::parts::{cell, noted, numbers, panel, signed, simulated, table, tone_of, toned, words};
use super::record::{Told, ToldTable, finite, padded};
use super::words::capitalised;
use crate::answers::ranking::COLUMNS;
use crate::symbols::MarketId;

/// Orders that answers list markets in: the name of the table, and its title.
const ORDERS: &[(&str, &str)] = &[
    (ASKED, "Markets"),
    ("most_traded", "Most traded"),
    ("gainers", "Gainers"),
    ("losers", "Losers"),
    ("widest_range", "Widest range"),
];

/// The table whose order somebody asked for, and what the answer calls that.
const ASKED: &str = "markets";
const ASKED_ORDERS: &[(&str, &str)] = &[
    ("volume", "Most traded"),
    ("gain", "Gainers"),
    ("loss", "Losers"),
    ("range", "Widest range"),
];
/// Digits of sums of money that a page shows, where they are not all before the point.
const SUM_DIGITS: usize = 8;
/// Places of shares and changes, in percent.
const PERCENT_PLACES: usize = 4;

/// The board of what an answer said.
pub(crate) fn board(told: &Told) -> Board {
    let panels: Vec<Panel> = ORDERS
        .iter()
        .filter_map(|(name, title)| {
            Some(listed(
                name,
                title_of(name, title, told),
                told.table(name)?,
                &told.quote,
            ))
        })
        .collect();
    Board {
        title: format!("{} markets", told.quote),
        subtitle: Some("All markets of one money · Binance Spot".to_owned()),
        badges: told.text("simulated").map(simulated).into_iter().collect(),
        headline: Some(headline(told)),
        notes: ["note", "clock_note"]
            .iter()
            .filter_map(|name| told.text(name).map(capitalised))
            .collect(),
        panels,
        shows_text: true,
        ..Board::default()
    }
}

fn title_of<'a>(name: &str, title: &'a str, told: &Told) -> &'a str {
    let asked = told.text("sort_by").filter(|_| name == ASKED);
    let known = ASKED_ORDERS.iter().find(|(order, _)| Some(*order) == asked);
    known.map_or(title, |(_, title)| title)
}

/// A sum of money as people read it; the text has all of its digits.
fn sum(text: &str) -> String {
    let whole = text.split_once('.').map_or(text, |(whole, _)| whole).len();
    let places = SUM_DIGITS.saturating_sub(whole);
    let rounded = text.parse::<Decimal>().ok().map(|money| money.round_dp(places as u32));
    rounded.map_or_else(|| text.to_owned(), |money| money.normalize().to_string())
}

fn headline(told: &Told) -> Headline {
    let count = |label: &str, name: &str| Figure::new(label, Amount::plain(told.text(name).unwrap_or("unknown")));
    let share = told.text("volume_share_of_first_10_pct");
    let share = share.map(|share| share.strip_suffix(".0").unwrap_or(share));
    let share = share.map(|share| Figure::new("Of it the first ten", Amount::new(share, "%")));
    Headline {
        label: "Traded in 24 h".to_owned(),
        value: told.text("quote_volume").map_or_else(
            || Amount::plain("unknown"),
            |money| Amount::new(sum(money), told.quote.clone()),
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
    let known = |text: &str| if text == "null" { dash() } else { text.to_owned() };
    let percent = |text: &str| known(&padded(text, PERCENT_PLACES));
    let row = |[symbol, last, change, range, worth, share]: [&str; 6]| {
        vec![
            Cell {
                link: ticker(symbol),
                ..cell(symbol)
            },
            cell(known(last)),
            match finite(change) {
                Some(number) => toned(signed(&padded(change, PERCENT_PLACES)), tone_of(Some(number))),
                None => toned(dash(), Tone::Plain),
            },
            cell(percent(range)),
            cell(sum(&known(worth))),
            Cell {
                share: finite(share).map(|share| (share / 100.0).clamp(0.0, 1.0)),
                ..cell(percent(share))
            },
        ]
    };
    let rows: Vec<Vec<Cell>> = places.select(COLUMNS).into_iter().flatten().map(row).collect();
    let note = if rows.is_empty() {
        "None."
    } else {
        "Shares are of what was traded of all; large sums are rounded, and exact in the text."
    };
    noted(panel(key, title, Width::Whole, table(columns, rows)), note)
}

fn ticker(symbol: &str) -> Option<DocumentId> {
    MarketId::Ticker(symbol.into()).document_id().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tribune_core::Document;
    use tribune_core::view::{Content, Table};

    #[test]
    fn sums_are_read_at_a_glance() {
        for (exact, shown) in [
            ("221477872.59249398", "221477873"),
            ("52699514.9604604", "52699515"),
            ("1234.56789", "1234.5679"),
            ("0.12345678901", "0.1234568"),
            ("120000000000", "120000000000"),
            ("null", "null"),
        ] {
            assert_eq!(sum(exact), shown);
        }
    }

    /// A list in an order that was asked for says in which.
    #[test]
    fn a_list_says_its_order_and_what_is_not_known() {
        let document = Document {
            id: DocumentId::parse("markets:USDT").expect("an id"),
            title: "All USDT markets".to_owned(),
            text: "Words.\n\nData:\nage_ms: 1\nmarkets_counted: 2\nrose: 1\nfell: 0\nquote_volume: 10.5\n\
                   volume_share_of_first_10_pct: 100.0\nsort_by: gain\n\n\
                   markets (symbol,last_price,price_change_pct,range_pct,quote_volume,volume_share_pct):\n\
                   AAAUSDT,1.5,2.5,3,10.5,100.0\nBBBUSDT,2,null,null,0,0.0"
                .to_owned(),
            url: None,
            as_of: None,
            metadata: json!({"quote_asset": "USDT"}).as_object().cloned().expect("an object"),
            passages: Vec::new(),
        };
        let board = board(&Told::read(&document).expect("an answer"));
        let [panel] = &board.panels[..] else {
            panic!("{board:?}")
        };
        assert_eq!((&*panel.title, panel.key), ("Gainers", "markets"));
        let Content::Table(Table { rows, .. }) = &panel.content else {
            panic!("{panel:?}")
        };
        let text = |row: usize| -> Vec<&str> { rows[row].iter().map(|cell| &*cell.text).collect() };
        assert_eq!(text(0), ["AAAUSDT", "1.5", "+2.5000", "3.0000", "10.5", "100.0000"]);
        assert_eq!(text(1)[2..4], ["–", "–"]);
        assert!(rows[0][0].link.is_some());
        let headline = board.headline.expect("a headline");
        let shares = headline.figures.last().and_then(|figure| figure.value.clone());
        assert_eq!(shares, Some(Amount::new("100", "%")));
    }
}
