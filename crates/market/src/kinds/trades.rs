//! The newest trades.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use tribune_page::text::{capitalised, padded};

use super::flow::{flow_panel, took_and_gave};
use super::prelude::*;
use tribune_analytics::flow::{TradeFlow, trade_flow};
use tribune_binance::model::{Aggressor, Trade};

/// How far back the newest trades are looked for on the tape.
const RECENT: Millis = 5 * 60 * 1000;
/// Trades that a page lists.
const SHOWN_TRADES: usize = 50;
const NONE: &str = "the exchange has no trades of it";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecentTrades {
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// Absent where there are none.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    list: Option<List>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
struct List {
    trades_used: usize,
    summary: Known<TradeFlow>,
    standing: Standing,
    trades_listed: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    trades_cut: Option<String>,
    /// Newest first.
    trades: Table<Trade>,
}

impl Row for Trade {
    const COLUMNS: &'static [&'static str] = &["time_ms", "price", "quantity_base", "aggressor", "id"];
    type Cells = (Millis, Price, Quantity, Aggressor, u64);
    fn cells(&self) -> Self::Cells {
        (self.time, self.price, self.quantity, self.aggressor, self.last_id)
    }
    fn from_cells((time, price, quantity, aggressor, id): Self::Cells) -> Self {
        Self { price, quantity, time, aggressor, first_id: id, last_id: id }
    }
}

pub async fn load(market: &Market, symbol: &str, limit: usize) -> Result<Answer> {
    let symbol = market.symbol(symbol).await?;
    let limit = u32::try_from(limit).unwrap_or(1_000).clamp(1, 1_000);
    let trades = market.rest.trades(&symbol.name, limit).await.map_err(exchange_error)?;
    let newest = trades.value.last().map(|trade| trade.time);
    let provenance = Provenance::new(market, Origin::Rest, newest, trades.received);
    Answer::new(Kind::Trades, &symbol, provenance, RecentTrades::new(&trades.value))
}

/// As many of the stream's newest, without asking the exchange; `None` where it has not brought as many yet.
pub(crate) fn streamed(market: &Market, symbol: &Symbol, limit: usize) -> Option<Answer> {
    at_hand(market, symbol, limit, limit)
}

/// The newest of the stream, at least and at most so many, with every trade between them.
pub(super) fn at_hand(market: &Market, symbol: &Symbol, least: usize, most: usize) -> Option<Answer> {
    let tracked = market.feed.lookup(&symbol.name)?;
    tracked.live()?;
    let window = tracked.tape.since(market.exchange_now() - RECENT);
    let complete_from = window.complete_from?;
    // A hole between those that are listed would not be seen.
    let hole = window.trades.partition_point(|trade| trade.time < complete_from);
    let whole = &window.trades[hole..];
    let list = &whole[whole.len().saturating_sub(most)..];
    let newest = list.last().filter(|_| list.len() >= least)?.time;
    let provenance = Provenance::new(market, Origin::Stream, Some(newest), market.last_word(&tracked));
    Answer::new(Kind::Trades, symbol, provenance, RecentTrades::new(list)).ok()
}

impl RecentTrades {
    /// Of a list, oldest first.
    fn new(list: &[Trade]) -> Self {
        let Some((first, last)) = list.first().zip(list.last()) else {
            return Self { reason: Some(NONE.to_owned()), list: None };
        };
        let window = Window { start_ms: first.time.saturating_sub(1), end_ms: last.time };
        let trades = Table::fitted(list.iter().rev().copied().collect(), Keep::First, 1);
        Self {
            reason: None,
            list: Some(List {
                trades_used: list.len(),
                summary: trade_flow(list, window, window.start_ms).into(),
                standing: Standing::Exact,
                trades_listed: trades.rows.len(),
                trades_cut: trades.cut(),
                trades,
            }),
        }
    }

    fn rows(&self) -> &[Trade] {
        self.list.as_ref().map_or(&[], |list| &list.trades.rows)
    }

    pub(crate) fn panel(&self, page: &Page<'_>) -> Panel {
        if self.rows().is_empty() {
            return panel("trades", "Trades", Width::Whole, Content::Missing(NONE.to_owned()));
        }
        let rows = rows(&self.rows()[..self.rows().len().min(SHOWN_TRADES)], page);
        let (count, until) = (rows.len(), page.as_of().strftime("%Y-%m-%d %H:%M:%S UTC"));
        let note = format!("The newest {count} trades up to {until}, newest first. Exact.");
        listing("trades", "Trades", rows, note)
    }
}

const fn who(aggressor: Aggressor) -> &'static str {
    match aggressor {
        Aggressor::Buyer => "a buyer took it",
        Aggressor::Seller => "a seller gave it",
    }
}

const fn tone(aggressor: Aggressor) -> Tone {
    match aggressor {
        Aggressor::Buyer => Tone::Up,
        Aggressor::Seller => Tone::Down,
    }
}

impl Figures for RecentTrades {
    fn sentences(&self, about: &About) -> Vec<String> {
        let (name, base, quote) = (about.name(), about.base(), about.quote());
        let Some((list, last)) = self.list.as_ref().zip(self.rows().first()) else {
            return vec![format!("{name}: the exchange has no trades.")];
        };
        let oldest = list.trades.rows.last().map_or(last.time, |trade| trade.time);
        let listed = Window { start_ms: oldest.saturating_sub(1), end_ms: last.time };
        let flow = list.summary.value();
        let (size, price, who) = (last.quantity, last.price, who(last.aggressor));
        let (count, seconds) = (list.trades_used, flow.map_or(listed, |flow| flow.window).seconds());
        let newest = format!(
            "{name}: last trade {size} {base} at {price} {quote} ({who}); {count} trades within {seconds:.1} s."
        );
        let flow = flow.map(|flow| format!("{}.", capitalised(&took_and_gave(flow, about))));
        std::iter::once(newest).chain(flow).collect()
    }

    fn snippet(&self, about: &About) -> Option<String> {
        let last = self.rows().first()?;
        let (name, base, quote) = (about.name(), about.base(), about.quote());
        let (size, price) = (last.quantity, last.price);
        Some(format!("{name}: last trade {size} {base} at {price} {quote}."))
    }

    fn headline(&self, page: &Page<'_>) -> Option<Headline> {
        let last = self.rows().first()?;
        let quantity = Figure {
            tone: tone(last.aggressor),
            note: Some(who(last.aggressor).to_owned()),
            ..Figure::new("Quantity", page.size(last.quantity))
        };
        Some(page.headline("Last trade", page.money(last.price), vec![quantity]))
    }

    fn panels(&self, page: &Page<'_>) -> Vec<Panel> {
        let summary = self.list.as_ref();
        let summary = summary.map(|list| flow_panel(&list.summary, None, None, page));
        std::iter::once(self.panel(page)).chain(summary).collect()
    }

    fn shown(&self) -> &'static str {
        "summary trades_used"
    }
}

fn rows(listed: &[Trade], page: &Page<'_>) -> Vec<Vec<(Column, Cell)>> {
    let largest = listed.iter().map(|trade| trade.quantity.as_f64()).fold(0.0, f64::max);
    let price_places = places_of(listed.iter().map(|trade| trade.price));
    let quantity_places = places_of(listed.iter().map(|trade| trade.quantity));
    let format = time_format(listed);
    let row = |trade: &Trade| {
        let tone = tone(trade.aggressor);
        let who = match trade.aggressor {
            Aggressor::Buyer => "buyer took",
            Aggressor::Seller => "seller gave",
        };
        let time = moment(trade).map(|time| time.strftime(format).to_string());
        let time = time.unwrap_or_else(|| trade.time.to_string());
        let price = padded(&trade.price.to_string(), price_places);
        let quantity = cell(padded(&trade.quantity.to_string(), quantity_places));
        let share = Some(trade.quantity.as_f64() / largest).filter(|_| largest > 0.0);
        vec![
            (words("Time (UTC)"), cell(time)),
            (numbers(format!("Price ({})", page.quote())), toned(price, tone)),
            (numbers(format!("Quantity ({})", page.base())), barred(quantity, share)),
            (words("Initiative"), toned(who, tone)),
        ]
    };
    listed.iter().map(row).collect()
}

fn moment(trade: &Trade) -> Option<Timestamp> {
    Timestamp::from_millisecond(trade.time).ok()
}

/// Times include the date if the trades span several days.
fn time_format(trades: &[Trade]) -> &'static str {
    let mut days = trades.iter().filter_map(moment).map(|time| time.to_zoned(TimeZone::UTC).date());
    let first = days.next();
    if days.all(|day| Some(day) == first) { "%H:%M:%S%.3f" } else { "%Y-%m-%d %H:%M:%S%.3f" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tribune_binance::model::Aggressor::{Buyer, Seller};
    use tribune_binance::testing::trade;

    fn listed(times: [Millis; 2]) -> Vec<Vec<String>> {
        let listed = [trade(2, times[0], "10.5", "2", Buyer), trade(1, times[1], "10.25", "0.5", Seller)];
        let page = Page::example("2026-11-16T00:00:00Z", 1);
        let rows = rows(&listed, &page.page());
        assert_eq!((rows[0][2].1.share, rows[1][2].1.share), (Some(1.0), Some(0.25)));
        rows.iter().map(|row| row.iter().map(|(_, cell)| cell.text.clone()).collect()).collect()
    }

    #[test]
    fn trades_align_and_name_the_day_if_there_are_two() {
        let rows = listed([1_000, 500]);
        assert_eq!(rows[0], ["00:00:01.000", "10.50", "2.0", "buyer took"]);
        assert_eq!(rows[1], ["00:00:00.500", "10.25", "0.5", "seller gave"]);
        assert_eq!(listed([86_400_000, 0])[0][0], "1970-01-02 00:00:00.000");
        assert_eq!(listed([i64::MAX, 0])[0][0], i64::MAX.to_string(), "no time");
    }
}
