//! What stands above the panels of a market's page: title, badges and notes.

use tribune_market_parts::parts::{simulated, subtitle};
use tribune_page::text::capitalised;
use tribune_page::{Badge, Board, Tone};

use crate::kinds::Page;
use crate::market::{ASKED_EACH_TIME, NOT_KEPT};
use crate::resolve::asset_name;
use tribune_binance::feed::BookState;

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
    let meaning = format!("{}; it is fetched per request.", capitalised(NOT_KEPT));
    badge(label, Tone::Warning, &meaning, None)
}

fn badge(label: &str, tone: Tone, meaning: &str, reason: Option<&str>) -> Badge {
    Badge {
        label: label.to_owned(),
        tone,
        meaning: Some(reason.map_or_else(
            || meaning.to_owned(),
            |reason| format!("{meaning} {}.", capitalised(reason)),
        )),
    }
}

/// What a page says of a market before its figures.
pub(super) struct About<'a> {
    pub(super) base: &'a str,
    pub(super) quote: &'a str,
    /// The sentence that says so.
    pub(super) simulated: Option<&'a str>,
    pub(super) state: Option<BookState>,
    pub(super) reason: Option<&'a str>,
    pub(super) clock_note: Option<String>,
    /// It is about what was cited.
    pub(super) is_past: bool,
}

impl<'a> About<'a> {
    pub(super) fn of(page: &Page<'a>, is_past: bool) -> Self {
        let provenance = page.provenance;
        Self {
            base: page.base(),
            quote: page.quote(),
            simulated: provenance.simulated.as_deref(),
            state: provenance.book_state,
            reason: provenance.book_state_reason.as_deref(),
            clock_note: provenance.clock_note.clone(),
            is_past,
        }
    }
}

/// What people call an asset.
fn name(ticker: &str) -> &str {
    asset_name(ticker).unwrap_or(ticker)
}

/// A board without panels yet.
pub(super) fn frame(about: &About<'_>, what: Option<&str>) -> Board {
    let simulated = about.simulated.map(simulated);
    let state_of = if about.is_past { past_book_state } else { book_state };
    let state = about.state.map(|state| state_of(state, about.reason));
    let notes = [about.reason, about.clock_note.as_deref()].into_iter().flatten();
    let (title, subtitle) = if about.base.is_empty() {
        let all = "All markets of one quote asset · Binance Spot".to_owned();
        (format!("{} markets", about.quote), all)
    } else {
        let subtitle = subtitle(name(about.base), name(about.quote), what);
        (format!("{}/{}", about.base, about.quote), subtitle)
    };
    Board {
        title,
        subtitle: Some(subtitle),
        badges: simulated.into_iter().chain(state).collect(),
        notes: notes.map(capitalised).collect(),
        shows_text: true,
        ..Board::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_states_read_as_past() {
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
            Some("This book is not kept live: the live-book limit is reached; it is fetched per request.")
        );
    }
}
