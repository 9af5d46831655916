//! What boards of markets are made of: panels, badges, titles, and links between documents of one market.

use std::sync::Arc;

use tribune_core::view::{Badge, Board, Cell, Column, Content, Neighbour, Panel, Table, Tone, Width};

use super::record::Told;
use crate::feed::BookState;
use crate::market::{ASKED_EACH_TIME, NOT_KEPT};
use crate::model::Interval;
use crate::symbols::{AnalyticsKind, Kind, MarketId, asset_name};

pub(crate) fn panel(key: &'static str, title: impl Into<String>, width: Width, content: Content) -> Panel {
    Panel {
        key,
        title: title.into(),
        note: None,
        width,
        content,
    }
}

/// A panel, or why there is nothing to see in it.
pub(crate) fn panel_or_why(
    key: &'static str,
    title: &str,
    width: Width,
    content: Result<(Content, Option<String>), String>,
) -> Panel {
    match content {
        Ok((content, note)) => Panel {
            note,
            ..panel(key, title, width, content)
        },
        Err(why) => panel(key, title, width, Content::Missing(why)),
    }
}

pub(crate) fn noted(panel: Panel, note: impl Into<String>) -> Panel {
    Panel {
        note: Some(note.into()),
        ..panel
    }
}

/// A column of words, and one of numbers.
pub(crate) fn words(title: impl Into<String>) -> Column {
    Column {
        title: title.into(),
        is_number: false,
    }
}

pub(crate) fn numbers(title: impl Into<String>) -> Column {
    Column {
        title: title.into(),
        is_number: true,
    }
}

pub(crate) fn cell(text: impl Into<String>) -> Cell {
    Cell {
        text: text.into(),
        ..Cell::default()
    }
}

pub(crate) fn toned(text: impl Into<String>, tone: Tone) -> Cell {
    Cell {
        text: text.into(),
        tone,
        ..Cell::default()
    }
}

pub(crate) fn table(columns: Vec<Column>, rows: Vec<Vec<Cell>>) -> Content {
    Content::Table(Table { columns, rows })
}

/// For a number that may rise and fall.
pub(crate) fn tone_of(number: Option<f64>) -> Tone {
    match number {
        Some(number) if number > 0.0 => Tone::Up,
        Some(number) if number < 0.0 => Tone::Down,
        _ => Tone::Plain,
    }
}

/// `+1.5`, `-0.2`, `0`.
pub(crate) fn signed(text: &str) -> String {
    let is_nothing = text.bytes().all(|digit| matches!(digit, b'0' | b'.'));
    if text.starts_with(['-', '+']) || is_nothing {
        text.to_owned()
    } else {
        format!("+{text}")
    }
}

pub(crate) fn simulated(meaning: &str) -> Badge {
    let meaning = meaning.strip_prefix("SIMULATED: ").unwrap_or(meaning);
    Badge {
        label: "SIMULATED".to_owned(),
        tone: Tone::Simulated,
        meaning: Some(super::words::capitalised(meaning)),
    }
}

/// How far the book can be trusted.
fn book_state(state: BookState, reason: Option<&str>) -> Badge {
    let (label, tone, meaning) = match state {
        _ if reason == Some(ASKED_EACH_TIME) => return not_kept("book not kept"),
        BookState::Live => ("live book", Tone::Good, "The order book is exact and current."),
        BookState::Warming => (
            "book warming",
            Tone::Plain,
            "The first snapshot of the live order book is waited for; this one was asked for.",
        ),
        BookState::Stale => (
            "book stale",
            Tone::Warning,
            "Updates of the order book have stopped coming.",
        ),
        BookState::Resyncing => (
            "book resyncing",
            Tone::Warning,
            "The order book was found incomplete and is fetched again; this one was asked for.",
        ),
    };
    badge(label, tone, meaning, reason)
}

/// How far the book could be trusted when it was cited: nothing of it is about now.
fn past_book_state(state: BookState, reason: Option<&str>) -> Badge {
    let (label, tone, meaning) = match state {
        _ if reason == Some(ASKED_EACH_TIME) => return not_kept("book was not kept"),
        BookState::Live => (
            "book was live",
            Tone::Plain,
            "The order book was exact and current then.",
        ),
        BookState::Warming => (
            "book was warming",
            Tone::Plain,
            "The first snapshot of the live order book was waited for; this one was asked for.",
        ),
        BookState::Stale => (
            "book was stale",
            Tone::Warning,
            "Updates of the order book had stopped coming.",
        ),
        BookState::Resyncing => (
            "book was resyncing",
            Tone::Warning,
            "The order book had been found incomplete and was fetched again; this one was asked for.",
        ),
    };
    badge(label, tone, meaning, reason)
}

fn not_kept(label: &str) -> Badge {
    let meaning = format!("{}; it is asked for each time.", super::words::capitalised(NOT_KEPT));
    badge(label, Tone::Warning, &meaning, None)
}

fn badge(label: &str, tone: Tone, meaning: &str, reason: Option<&str>) -> Badge {
    Badge {
        label: label.to_owned(),
        tone,
        meaning: Some(reason.map_or_else(
            || meaning.to_owned(),
            |reason| format!("{meaning} {}.", super::words::capitalised(reason)),
        )),
    }
}

/// A state by its word.
fn state_named(word: &str) -> Option<BookState> {
    [
        BookState::Warming,
        BookState::Live,
        BookState::Stale,
        BookState::Resyncing,
    ]
    .into_iter()
    .find(|state| state.as_str() == word)
}

/// `Bitcoin / Tether · Binance Spot`.
pub(crate) fn subtitle(base: &str, quote: &str, what: Option<&str>) -> String {
    let name = |ticker: &str| asset_name(ticker).map_or_else(|| ticker.to_owned(), str::to_owned);
    let pair = format!("{} / {} · Binance Spot", name(base), name(quote));
    match what {
        Some(what) => format!("{} · {pair}", super::words::capitalised(what)),
        None => pair,
    }
}

/// What a page says of a market before its figures.
pub(crate) struct About<'a> {
    pub(crate) base: &'a str,
    pub(crate) quote: &'a str,
    /// The sentence that says so.
    pub(crate) simulated: Option<&'a str>,
    pub(crate) state: Option<BookState>,
    pub(crate) reason: Option<&'a str>,
    pub(crate) clock_note: Option<String>,
    /// It is about what was cited.
    pub(crate) is_past: bool,
}

impl<'a> About<'a> {
    pub(crate) fn of(told: &'a Told, is_past: bool) -> Self {
        Self {
            base: &told.base,
            quote: &told.quote,
            simulated: told.text("simulated"),
            state: told.text("book_state").and_then(state_named),
            reason: told.text("book_state_reason"),
            clock_note: told.text("clock_note").map(str::to_owned),
            is_past,
        }
    }
}

/// A board without panels yet.
pub(crate) fn frame(about: &About<'_>, what: Option<&str>) -> Board {
    let simulated = about.simulated.map(simulated);
    let state_of = if about.is_past { past_book_state } else { book_state };
    let state = about.state.map(|state| state_of(state, about.reason));
    let notes = [about.reason, about.clock_note.as_deref()].into_iter().flatten();
    Board {
        title: format!("{}/{}", about.base, about.quote),
        subtitle: Some(subtitle(about.base, about.quote, what)),
        badges: simulated.into_iter().chain(state).collect(),
        notes: notes.map(super::words::capitalised).collect(),
        shows_text: true,
        ..Board::default()
    }
}

/// The documents of one market.
pub(crate) fn links(symbol: &Arc<str>, has_report: bool) -> Vec<Neighbour> {
    let analytics = Kind::Analytics;
    let all = [
        (Kind::Ticker, "Market"),
        (Kind::OrderBook, "Order book"),
        (Kind::Klines(Interval::M1), "1m candles"),
        (Kind::Klines(Interval::H1), "1h candles"),
        (Kind::Klines(Interval::D1), "1d candles"),
        (Kind::Trades, "Trades"),
        (analytics(AnalyticsKind::VolumeProfile), "Volume profile"),
        (analytics(AnalyticsKind::OrderFlow), "Order flow"),
        (analytics(AnalyticsKind::Health), "Health"),
        (Kind::Report, "Report"),
    ];
    let wanted = all.into_iter().filter(|(kind, _)| has_report || *kind != Kind::Report);
    let link = |(kind, title): (Kind, &str)| {
        Some(Neighbour {
            id: MarketId::of(kind, symbol.clone()).document_id().ok()?,
            title: title.to_owned(),
            note: None,
        })
    };
    wanted.filter_map(link).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_market_leads_to_its_report_where_there_is_one() {
        let ids = |has_report| -> Vec<String> {
            let links = links(&"BTCUSDT".into(), has_report);
            links.into_iter().map(|link| link.id.to_string()).collect()
        };
        assert_eq!((ids(true).len(), ids(false).len()), (10, 9));
        assert!(
            ids(true).contains(&"klines:BTCUSDT:1d".to_owned()) && ids(true).contains(&"report:BTCUSDT".to_owned())
        );
        assert!(!ids(false).contains(&"report:BTCUSDT".to_owned()));
    }

    #[test]
    fn no_state_of_a_record_reads_as_the_present() {
        for state in [
            BookState::Warming,
            BookState::Live,
            BookState::Stale,
            BookState::Resyncing,
        ] {
            for reason in [None, Some("a gap was seen"), Some(ASKED_EACH_TIME)] {
                let past = past_book_state(state, reason);
                assert!(
                    past.label.starts_with("book was ") && past.tone != Tone::Good,
                    "{past:?}"
                );
                assert!(past.meaning.is_some());
            }
        }
        assert_eq!(book_state(BookState::Live, None).tone, Tone::Good);
        let not_kept = book_state(BookState::Warming, Some(ASKED_EACH_TIME));
        assert_eq!((&*not_kept.label, not_kept.tone), ("book not kept", Tone::Warning));
        assert_eq!(
            not_kept.meaning.as_deref(),
            Some("This book is not kept live: as many books as may be are kept already; it is asked for each time.")
        );
    }

    #[test]
    fn words_and_signs() {
        assert_eq!(subtitle("BTC", "USDT", None), "Bitcoin / Tether · Binance Spot");
        assert_eq!(
            subtitle("XYZ", "USDT", Some("order book")),
            "Order book · XYZ / Tether · Binance Spot"
        );
        assert_eq!(
            (&*signed("1.5"), &*signed("-2"), &*signed("0.00")),
            ("+1.5", "-2", "0.00")
        );
        for state in [
            BookState::Warming,
            BookState::Live,
            BookState::Stale,
            BookState::Resyncing,
        ] {
            assert_eq!(state_named(state.as_str()), Some(state));
        }
    }
}
