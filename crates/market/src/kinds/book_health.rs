//! The state of one order book: spread, depth, balance, walls.

use super::book::{BookOf, Middle};
use super::prelude::*;
use tribune_analytics::{BAND_BPS, Band, Quotes, TopImbalance, Walls, bands, quotes, top_imbalance};
use tribune_binance::BookState;

/// Levels of each side that count for the imbalance.
const TOP_LEVELS: usize = 20;

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct BookHealth {
    #[serde(flatten)]
    of: BookOf,
    #[serde(flatten)]
    quotes: Quotes,
    top_levels: Known<TopImbalance>,
    bands: Known<Vec<Band>>,
    walls: KnownWalls,
}

/// Large levels that stay, or why they are not known.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum KnownWalls {
    Watched(Box<Walls>),
    Missing { walls: (), reason: String },
}

pub async fn load(market: &Market, symbol: &str) -> Result<Answer> {
    let symbol = market.traded(symbol).await?;
    let book = market.book(&symbol).await?;
    let depth = &book.view.depth;
    let figures = BookHealth {
        of: BookOf::new(&book),
        quotes: quotes(depth).map_err(|reason| no_figures(&symbol, &reason))?,
        top_levels: top_imbalance(depth, TOP_LEVELS).into(),
        bands: bands(depth).into(),
        walls: walls(market, &symbol, &book),
    };
    Answer::new(Kind::Health, &symbol, Provenance::of_book(market, &book), figures)
}

/// The walls of the same book as the other figures; only live books are watched.
fn walls(market: &Market, symbol: &Symbol, book: &BookReading) -> KnownWalls {
    let missing = |reason: String| KnownWalls::Missing { walls: (), reason };
    let Some(tracked) = market.feed.lookup(&symbol.name) else {
        return missing(NOT_KEPT.to_owned());
    };
    if book.origin == Origin::Stream && book.state == BookState::Live {
        let walls = tracked.watch.walls_in(&book.view, &tracked.tape, market.exchange_now());
        return KnownWalls::Watched(Box::new(walls));
    }
    let why = book.reason.as_deref().unwrap_or("it has just become live");
    let state = book.state.as_str();
    missing(format!("walls need a live book, and this one is {state}: {why}"))
}

impl Figures for BookHealth {
    fn sentences(&self, about: &About) -> Vec<String> {
        let bands = self.bands.value();
        let near = bands.and_then(|bands| bands.iter().find(|band| band.distance_bps == BAND_BPS));
        let bids = or_unknown(near.map(|band| band.bid_notional_quote));
        let asks = or_unknown(near.map(|band| band.ask_notional_quote));
        let quote = about.quote();
        vec![
            Middle::of(&self.quotes).sentence(about),
            format!("Within {BAND_BPS} basis points of mid: bids {bids}, asks {asks} {quote}."),
        ]
    }

    fn headline(&self) -> &'static str {
        Middle::HEADLINE
    }
}

#[cfg(test)]
mod tests {
    use tribune_analytics::Watch;
    use tribune_binance::testing::depth;
    use tribune_binance::{Beats, BookView, Moment, Observer as _, Tape};

    /// The book moves on between two looks: its walls are where it is now, and as large as they are now.
    #[test]
    fn walls_follow_the_current_book() {
        let (watch, tape) = (Watch::default(), Tape::new(900_000));
        tape.opened(0);
        let received = Moment::now(&tribune_core::SystemClock);
        let view = |best_bid: i64, wall: &str| {
            let bids: Vec<(String, &str)> = (0..30).map(|down| ((best_bid - down).to_string(), "2")).collect();
            let bids = bids.iter().map(|(price, size)| (&**price, if price == "900" { wall } else { *size }));
            let best_ask = (best_bid + 2).to_string();
            BookView {
                depth: depth(&bids.collect::<Vec<_>>(), &[(&best_ask, "2")]),
                last_update_id: 1,
                exchange_time: None,
                received,
            }
        };
        for second in 0..=6 {
            watch.look(&view(904, "100"), &tape, Beats::default(), second * 1_000);
        }
        let before = watch.walls();
        // Mid 905: 900 is 55.2486 bps below it.
        assert_eq!((before.walls.len(), before.walls[0].distance_bps), (1, Some(-55.2486)));
        let now = watch.walls_in(&view(909, "80"), &tape, 6_500);
        // Mid 910: 10/910.
        assert_eq!((now.walls.len(), now.walls[0].distance_bps), (1, Some(-109.8901)));
        assert_eq!((now.walls[0].quantity_base.to_string(), now.walls[0].age_ms), ("80".to_owned(), 6_500));
        // A wall that has gone is left out; the book that was read stays unchanged.
        assert!(watch.walls_in(&view(909, "2"), &tape, 6_500).walls.is_empty());
        assert_eq!(watch.walls(), before);
    }
}
