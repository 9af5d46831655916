//! A board with invented figures, for the design page and for tests.

use crate::model::{Board, Headline};

/// Everything that a board can show.
pub fn board() -> Board {
    serde_json::from_str(include_str!("sample.json")).expect("sample.json is a board")
}

pub fn headline() -> Headline {
    board().headline.expect("the sample has a headline")
}
