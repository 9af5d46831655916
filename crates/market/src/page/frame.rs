//! What stands above the panels of a market's page: title, badges and notes.

use tribune_market_parts::parts::{simulated, subtitle};
use tribune_page::text::capitalised;
use tribune_page::{Badge, Board, Tone};

use crate::kinds::{About, Provenance};
use crate::market::{ASKED_EACH_TIME, NOT_KEPT};
use tribune_binance::feed::BookState;
use tribune_market_resolve::asset_name;

/// How far the book can be trusted, or could be when it was cited: nothing of that is about now.
fn book_state(state: BookState, reason: Option<&str>, is_past: bool) -> Badge {
    let was = if is_past { "was " } else { "" };
    if reason == Some(ASKED_EACH_TIME) {
        return Badge {
            label: format!("book {was}not kept"),
            tone: Tone::Warning,
            meaning: Some(format!("{}; it is fetched per request.", capitalised(NOT_KEPT))),
        };
    }
    let (label, tone, meaning, meant) = match state {
        BookState::Live => (
            "live",
            if is_past { Tone::Plain } else { Tone::Good },
            "The order book is exact and current.",
            "The order book was exact and current then.",
        ),
        BookState::Warming => (
            "warming",
            Tone::Plain,
            "The first snapshot of the live order book is waited for; this one was asked for.",
            "The first snapshot of the live order book was waited for; this one was asked for.",
        ),
        BookState::Stale => (
            "stale",
            Tone::Warning,
            "Updates of the order book have stopped coming.",
            "Updates of the order book had stopped coming.",
        ),
        BookState::Resyncing => (
            "resyncing",
            Tone::Warning,
            "The order book was found incomplete and is fetched again; this one was asked for.",
            "The order book had been found incomplete and was fetched again; this one was asked for.",
        ),
    };
    let label = match state {
        BookState::Live if !is_past => "live book".to_owned(),
        _ => format!("book {was}{label}"),
    };
    let meaning = if is_past { meant } else { meaning };
    let reason = reason.map(|reason| format!(" {}.", capitalised(reason)));
    Badge { label, tone, meaning: Some(format!("{meaning}{}", reason.unwrap_or_default())) }
}

/// A board without panels yet; `is_past` if it is about what was cited.
pub(super) fn frame(about: &About, provenance: &Provenance, what: Option<&str>, is_past: bool) -> Board {
    let name = |ticker| asset_name(ticker).unwrap_or(ticker);
    let (base, quote) = (about.base(), about.quote());
    let reason = provenance.book_state_reason.as_deref();
    let simulated = provenance.simulated.as_deref().map(simulated);
    let state = provenance.book_state.map(|state| book_state(state, reason, is_past));
    let notes = [reason, provenance.clock_note.as_deref()].into_iter().flatten();
    let (title, subtitle) = match base {
        "" => (format!("{quote} markets"), "All markets of one quote asset · Binance Spot".to_owned()),
        _ => (format!("{base}/{quote}"), subtitle(name(base), name(quote), what)),
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
        for state in [BookState::Warming, BookState::Live, BookState::Stale, BookState::Resyncing] {
            for reason in [None, Some("a gap was seen"), Some(ASKED_EACH_TIME)] {
                let past = book_state(state, reason, true);
                assert!(past.label.starts_with("book was ") && past.tone != Tone::Good, "{past:?}");
                assert!(past.meaning.is_some());
            }
        }
        let live = book_state(BookState::Live, None, false);
        assert_eq!((&*live.label, live.tone), ("live book", Tone::Good));
        let not_kept = book_state(BookState::Warming, Some(ASKED_EACH_TIME), false);
        assert_eq!((&*not_kept.label, not_kept.tone), ("book not kept", Tone::Warning));
        assert_eq!(
            not_kept.meaning.as_deref(),
            Some("This book is not kept live: the live-book limit is reached; it is fetched per request.")
        );
    }
}
