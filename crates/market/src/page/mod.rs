//! Pages. A page of the present and a page of a citation are drawn by the same functions, which are with the kinds:
//!
//! - `frame`: what stands above the panels; `figures`, `words`: whatever else an answer has, by name
//! - `history`: the candles before a citation
//! - `panels`: which panels each page of the present has
//! - `now`: the board of the present, from the live book, the tape, and a few requests that `asked` and `cache` keep for
//!   all viewers; it cites nothing and has a small share of the exchange's budget

mod asked;
mod cache;
mod figures;
mod frame;
mod history;
mod now;
mod panels;
#[cfg(test)]
mod tests;
mod words;

use tribune_core::Document;
use tribune_market_parts::parts::links;
use tribune_page::text::age as age_text;
use tribune_page::{Board, Headline, Panel};

use crate::kinds::{AnyFigures, Kept, Page, Record};
pub(crate) use asked::Pages;
pub(crate) use history::add_history;
pub(crate) use now::now;

/// The board of a cited answer, from its record alone; `None` if the record has only a text.
pub(crate) fn then(document: &Document) -> Option<Board> {
    let record = match Record::read(document) {
        Kept::Text => return None,
        Kept::Unreadable(why) => {
            tracing::warn!(id = %document.id, %why, "the figures of a citation cannot be read");
            return Some(Board {
                title: document.title.clone(),
                notes: vec![
                    "The figures of this citation were kept by another version and cannot be drawn; its text is below."
                        .to_owned(),
                ],
                shows_text: true,
                ..Board::default()
            });
        }
        Kept::Values(record) => record,
    };
    let page = Page::of(&record.about, &record.provenance);
    let what = record.answer.what(&record.about);
    let mut board = frame::frame(page.about, page.provenance, Some(&what), true);
    let (headline, panels) = drawn(&record.answer, &page);
    board.headline = headline;
    let beside = record.surroundings.map_or_else(Vec::new, |beside| beside.panels(&page));
    let is_drawn = |panel: &Panel| panels.iter().any(|drawn| drawn.key == panel.key);
    board.panels = beside.into_iter().filter(|panel| !is_drawn(panel)).collect();
    board.panels.extend(panels);
    board.notes.extend(record.snippet);
    board.notes.extend(record.answer.kind().notes(&record.about));
    if board.headline.is_none() {
        dated(&mut board.panels, &page, true);
    }
    if !record.about.base().is_empty() {
        board.links = links(record.about.name(), false);
    }
    Some(board)
}

/// Without a headline, the first panel carries the page's time. A cited page shows no age: it was measured then.
fn dated(panels: &mut [Panel], page: &Page<'_>, is_past: bool) {
    let Some(first) = panels.first_mut() else {
        return;
    };
    let verb = match page.provenance.exchange_time {
        Some(_) => "As of",
        None => "Received",
    };
    let age = match is_past {
        true => String::new(),
        false => format!(", {} old", age_text(page.age_ms)),
    };
    let when = format!("{verb} {}{age}.", page.as_of().strftime("%Y-%m-%d %H:%M:%S UTC"));
    let note = first.note.take().into_iter().chain([when]);
    first.note = note.reduce(|note, when| format!("{note} {when}"));
}

/// The panels of an answer, then its other figures.
fn drawn(figures: &AnyFigures, page: &Page<'_>) -> (Option<Headline>, Vec<Panel>) {
    let kind = figures.kind();
    let mut panels = kind.panels(page);
    if !page.base().is_empty() {
        let rest = figures::rest(figures, kind.shown(), panels.is_empty(), page);
        panels.extend(rest);
    }
    (kind.headline(page), panels)
}
