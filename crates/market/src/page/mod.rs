//! Pages. A page of the present and a page of a citation are drawn alike, from the names that an answer's figures have:
//!
//! - `frame`: title, badges and notes
//! - `draw`: a headline, tables and all other figures; `names`: labels, units and looks; `charts`: what has a chart
//! - `beside`: the chart and the book of the moment, for citation records
//! - `now`: the board of the present, from the streams and a few requests shared by all viewers

mod beside;
mod charts;
mod draw;
mod frame;
mod names;
mod now;
#[cfg(test)]
mod tests;

use tribune_core::Document;
use tribune_market_parts::parts::links;
use tribune_page::parts::panel;
use tribune_page::{Board, Content, Panel, Width};

use crate::kinds::{About, Answer, Named, Provenance, Record};
pub(crate) use beside::Beside;
pub(crate) use now::{Pages, now};

/// All panels, in the order in which a page has them.
const KNOWN: [(&str, &str, Width); 19] = [
    ("candles", "Candles", Width::Whole),
    ("components", "Components of the score", Width::Whole),
    ("checks", "Checks", Width::Whole),
    ("vacuums", "Liquidity vacuums", Width::Whole),
    ("trades", "Trades", Width::Whole),
    ("markets", "Markets", Width::Whole),
    ("most_traded", "Most traded", Width::Whole),
    ("gainers", "Gainers", Width::Whole),
    ("losers", "Losers", Width::Whole),
    ("widest_range", "Widest range", Width::Whole),
    ("depth", "Depth", Width::Half),
    ("ladder", "Order book", Width::Half),
    ("spread", "Spread", Width::Half),
    ("imbalance", "Order book imbalance", Width::Half),
    ("profile", "Volume profile", Width::Half),
    ("flow", "Order flow", Width::Half),
    ("cost_to_trade", "Cost to trade", Width::Whole),
    ("bands", "Depth near the mid", Width::Whole),
    ("figures", "Figures", Width::Whole),
];

/// What a page is drawn from.
struct Page<'a> {
    about: &'a About,
    provenance: &'a Provenance,
    named: &'a Named,
    age_ms: u64,
    /// The newest price, for charts that mark it.
    last_price: Option<f64>,
}

impl<'a> Page<'a> {
    fn of(answer: &'a Answer, age_ms: u64) -> Self {
        let Answer { about, provenance, .. } = answer;
        Self { about, provenance, named: answer.named(), age_ms, last_price: None }
    }

    /// The page's time, behind the note of a panel that is not dated by the headline.
    fn dated(&self, mut panel: Panel) -> Panel {
        let verb = if self.provenance.exchange_time.is_some() { "As of" } else { "Received" };
        let when = format!("{verb} {}.", self.provenance.as_of().strftime("%Y-%m-%d %H:%M:%S UTC"));
        panel.note = panel.note.into_iter().chain([when]).reduce(|a, b| format!("{a} {b}"));
        panel
    }
}

/// The board of an answer; `is_past` on the page of a citation.
fn board(page: &Page<'_>, is_past: bool) -> Board {
    let mut board = frame::frame(page.about, page.provenance, &page.named.what, is_past);
    (board.headline, board.panels) = draw::drawn(page);
    board
}

/// Sorts the panels; without a headline the first panel has the time.
fn settled(mut board: Board, page: &Page<'_>) -> Board {
    board.panels.sort_by_key(|panel| KNOWN.iter().position(|(key, ..)| *key == panel.key));
    if board.headline.is_none() && !board.panels.is_empty() {
        let first = board.panels.remove(0);
        board.panels.insert(0, page.dated(first));
    }
    board
}

/// A panel of the page that has nothing to show now.
fn missing(key: &str, why: &str) -> Panel {
    let (key, title, width) = KNOWN.into_iter().find(|(known, ..)| *known == key).unwrap_or_default();
    panel(key, title, width, Content::Missing(why.to_owned()))
}

/// The board of a cited answer, from its record alone; `None` if the record has only a text.
pub(crate) fn then(document: &Document) -> Option<Board> {
    let record = match Record::read(document)? {
        Ok(record) => record,
        Err(why) => {
            tracing::warn!(id = %document.id, %why, "the figures of a citation cannot be read");
            let note =
                "The figures of this citation were kept by another version and cannot be drawn; its text is below.";
            return Some(Board {
                title: document.title.clone(),
                notes: vec![note.to_owned()],
                shows_text: true,
                ..Board::default()
            });
        }
    };
    let Record { about, provenance, answer: named, snippet, surroundings } = &record;
    let page = Page { about, provenance, named, age_ms: provenance.age_ms, last_price: None };
    let mut board = board(&page, true);
    let beside = surroundings.as_ref().map(|beside| charts::charts(beside, &page)).unwrap_or_default();
    let is_drawn = |panel: &Panel| board.panels.iter().any(|drawn| drawn.key == panel.key);
    let beside: Vec<Panel> = beside.into_iter().filter(|panel| !is_drawn(panel)).collect();
    board.panels.extend(beside);
    board.notes.extend(snippet.as_deref().map(str::to_owned));
    if !about.base().is_empty() {
        board.links = links(about.name(), false);
    }
    Some(settled(board, &page))
}
