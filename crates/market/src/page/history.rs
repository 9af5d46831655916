//! The candles before a citation. A search result keeps what was at hand, which is seldom a chart. Closed candles do not
//! change, so the page reads those before the citation from the exchange when it is opened.

use std::time::Duration;

use futures::FutureExt as _;
use jiff::Timestamp;
use tribune_core::Document;
use tribune_page::{Board, Panel};

use super::asked::Pages;
use crate::kinds::klines::{self, Range};
use crate::kinds::{AnyFigures, Kept, Record};
use crate::market::Market;
use tribune_binance::candles::open_time;
use tribune_binance::model::Interval;
use tribune_market_resolve::id::{Kind, MarketId};

const CANDLES: usize = 60;
/// Candles of a citation never change; they are kept for those who open the same page soon.
const KEEP: Duration = Duration::from_secs(600);
/// A page does not wait longer for a chart that it can do without.
const PATIENCE: Duration = Duration::from_secs(2);
const NOTE: &str = " Closed before the citation; read from the exchange when this page was opened.";

/// Adds the candles before the citation, if the record is of a search result and has no chart of that interval.
pub(crate) async fn add_history(market: &Market, pages: &Pages, id: &MarketId, document: &Document, board: &mut Board) {
    let Kept::Values(record) = Record::read(document) else {
        return;
    };
    let interval = match id.kind() {
        Kind::Klines(interval) => interval,
        Kind::ExchangeInfo | Kind::Report | Kind::Markets => return,
        _ if board.panels.iter().any(|panel| panel.key == "candles") => return,
        _ => Interval::M1,
    };
    if record.snippet.is_none() {
        return;
    }
    let market = market.for_pages();
    let candles = candles_before(&market, pages, id.symbol(), interval, record.provenance.as_of());
    if let Ok(Some(panel)) = tokio::time::timeout(PATIENCE, candles).await {
        board.panels.retain(|other| other.key != panel.key);
        board.panels.insert(0, panel);
    }
}

/// `None` if the exchange does not answer or has none.
async fn candles_before(
    market: &Market,
    pages: &Pages,
    symbol: &str,
    interval: Interval,
    cited: Timestamp,
) -> Option<Panel> {
    let opened = open_time(interval, cited.as_millisecond())?;
    let range = Range { end: Some(opened - 1), ..Range::newest(interval, CANDLES) };
    let key = format!("{interval} candles of {symbol} before {opened}");
    let answer = klines::load(market, symbol, range).boxed();
    let recent = pages.read(key, KEEP, &*market.clock, answer).await.ok()?;
    match recent.figures() {
        AnyFigures::Klines(klines) if klines.listed() > 0 => {
            let mut panel = klines.chart(&recent.page());
            panel.note.get_or_insert_default().push_str(NOTE);
            Some(panel)
        }
        _ => None,
    }
}
