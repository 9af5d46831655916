//! What pages show of a market. A page of the present and a page of a citation are drawn by the same functions, from an
//! answer as it was told:
//!
//! - `record`: what an answer said, read back from its document; `words`: its names for people
//! - `ticker`, `book`, `candles`, `profile`, `flow`, `cost`, `lists`: one picture a family; `figures`: the rest
//! - `ranking`: all markets of one money
//! - `parts`: panels, badges, links
//! - `now`: the board of the present, from the live book, the tape, and a few requests that `cache` keeps for all
//!   viewers; it cites nothing and has a small share of the exchange's budget

mod book;
mod cache;
mod candles;
mod cost;
mod figures;
mod flow;
pub(crate) mod lists;
mod now;
pub(crate) mod parts;
mod profile;
mod ranking;
mod record;
#[cfg(test)]
mod tests;
mod ticker;
pub(crate) mod words;

use tribune_core::Document;
use tribune_core::view::{Board, Headline, Panel, Width};

pub(crate) use book::{Pair, depth_chart, ladder};
pub(crate) use now::{Pages, now};
use record::{Told, places};
use ticker::{Bests, Day};

use crate::symbols::Kind;

/// The board of what was cited, from its record alone; `None` if there is only a text.
pub(crate) fn then(document: &Document) -> Option<Board> {
    let told = Told::read(document)?;
    if document.id.scheme() == Kind::Markets.scheme() {
        return Some(ranking::board(&told));
    }
    let what = told.what.clone();
    let mut board = parts::frame(&parts::About::of(&told, true), Some(&what));
    let (headline, panels) = drawn(&told, None);
    board.headline = headline;
    board.panels = panels;
    board.notes.extend(cost::ask_again(&told));
    if board.headline.is_none() {
        dated(&mut board.panels, &told, true);
    }
    board.links = parts::links(&told.symbol, false);
    Some(board)
}

/// Where no headline says of when the page is, its first panel does; of what was cited the age was another then.
fn dated(panels: &mut [Panel], told: &Told, is_past: bool) {
    let (Some(first), Some(time)) = (panels.first_mut(), told.as_of) else {
        return;
    };
    let verb = if told.text("exchange_time").is_some() {
        "As of"
    } else {
        "Received"
    };
    let age = told.age_ms().filter(|_| !is_past);
    let age = age.map_or_else(String::new, |age| format!(", {} old", words::age(age)));
    let when = format!("{verb} {}{age}.", time.strftime("%Y-%m-%d %H:%M:%S UTC"));
    first.note = Some(match first.note.take() {
        Some(note) => format!("{note} {when}"),
        None => when,
    });
}

/// Everything that an answer has a picture for, then what is left of it.
fn drawn(told: &Told, last_price: Option<f64>) -> (Option<Headline>, Vec<Panel>) {
    let mut shown: Vec<&str> = lists::LISTS.to_vec();
    let headline = headline(told, &mut shown);
    let mut panels: Vec<Panel> = Vec::new();
    panels.extend(candles::candles(told));
    panels.extend(profile::chart(told, last_price, Width::Whole));
    if let Some(depth) = told.depth() {
        let pair = pair_of(told);
        panels.push(depth_chart(&depth, &pair));
        panels.push(ladder(&depth, &pair));
    }
    panels.extend(flow::trades(told));
    if let Some(sums) = told.inner("summary").filter(|_| told.table("trades").is_some()) {
        shown.extend(["summary", "trades_used"]);
        panels.push(flow::panel_of_flow(&sums));
    }
    panels.extend(cost::of_record(told));
    panels.extend(lists::panels(told));
    let rest = figures::rest(told, &shown, panels.is_empty());
    panels.extend(rest);
    (headline, panels)
}

/// The first that the answer has, with the names of what it shows.
fn headline(told: &Told, shown: &mut Vec<&str>) -> Option<Headline> {
    if let Some(day) = Day::of(told) {
        shown.extend([
            "last_price",
            "price_change_pct",
            "high_price",
            "low_price",
            "volume_base",
            "quote_volume",
        ]);
        let bests = Bests::of(told);
        if bests.is_some() {
            shown.extend(["best_bid", "best_ask", "spread_bps"]);
        }
        return Some(day.headline(bests.as_ref(), told));
    }
    if let Some(headline) = candles::headline(told) {
        shown.extend(candles::shown(told));
        return Some(headline);
    }
    if let Some(headline) = cost::headline(told) {
        shown.extend(cost::SHOWN);
        return Some(headline);
    }
    if let Some(headline) = lists::headline(told) {
        shown.extend(["score", "weights_used", "found", "checked"]);
        return Some(headline);
    }
    if let Some(headline) = profile::headline(told) {
        shown.extend(profile::SHOWN);
        return Some(headline);
    }
    if let Some(headline) = flow::last_trade(told) {
        return Some(headline);
    }
    if let Some(headline) = flow::headline(told) {
        shown.extend(flow::SHOWN);
        return Some(headline);
    }
    let headline = ticker::mid_headline(told)?;
    shown.extend(["mid", "best_bid", "best_ask", "spread_bps"]);
    Some(headline)
}

fn pair_of(told: &Told) -> Pair {
    let listed = ["bids", "asks"]
        .into_iter()
        .filter_map(|name| told.table(name)?.select(["price"]));
    Pair {
        base: told.base.clone(),
        quote: told.quote.clone(),
        price_places: places(listed.flatten().map(|[price]| price)),
    }
}
