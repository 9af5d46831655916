//! The head of a market's page: title, badges and notes.

use tribune_market_parts::parts::{simulated, subtitle};
use tribune_page::text::capitalised;
use tribune_page::{Badge, Board, Tone};

use crate::kinds::{About, Provenance};
use crate::market::ASKED_EACH_TIME;
use tribune_binance::BookState;
use tribune_market_resolve::asset_name;

/// The state of the book, now or when it was cited.
fn book_state(state: BookState, reason: Option<&str>, is_past: bool) -> Badge {
    let live = if is_past { Tone::Plain } else { Tone::Good };
    let (label, tone, meaning) = match state {
        _ if reason == Some(ASKED_EACH_TIME) => ("not kept", Tone::Warning, "Fetched per request"),
        BookState::Live => ("live", live, "Exact and current"),
        BookState::Warming => {
            ("warming", Tone::Plain, "Fetched per request until the live book has its first snapshot")
        }
        BookState::Stale => ("stale", Tone::Warning, "Updates have stopped"),
        BookState::Resyncing => ("resyncing", Tone::Warning, "Fetched per request while the live book is rebuilt"),
    };
    let verb = if is_past { "was" } else { "is" };
    let label = format!("book {verb} {label}");
    let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    Badge { label, tone, meaning: Some(format!("{meaning}{reason}.")) }
}

/// A board without panels yet; `is_past` on the page of a citation.
pub(super) fn frame(about: &About, provenance: &Provenance, what: &str, is_past: bool) -> Board {
    let name = |ticker| asset_name(ticker).unwrap_or(ticker);
    let (base, quote) = (about.base(), about.quote());
    let reason = provenance.book_state_reason.as_deref();
    let simulated = provenance.simulated.as_deref().map(simulated);
    let state = provenance.book_state.map(|state| book_state(state, reason, is_past));
    let notes = [reason, provenance.clock_note.as_deref()].into_iter().flatten();
    let (title, subtitle) = match base {
        "" => (format!("{quote} markets"), "All markets of one quote asset · Binance Spot".to_owned()),
        _ => {
            let what = Some(what).filter(|what| !what.is_empty());
            (format!("{base}/{quote}"), subtitle(name(base), name(quote), what))
        }
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
        assert_eq!((&*live.label, live.tone), ("book is live", Tone::Good));
        let not_kept = book_state(BookState::Warming, Some(ASKED_EACH_TIME), false);
        assert_eq!((&*not_kept.label, not_kept.tone), ("book is not kept", Tone::Warning));
        assert!(not_kept.meaning.is_some_and(|meaning| meaning.contains("live-book limit reached")));
    }
}
