//! Order flow: taker buys and sells of the last seconds.

mod pressure;

use super::prelude::*;
use pressure::{Impact, Pressure};
use tribune_analytics::{TradeFlow, trade_flow};

/// The default window.
pub(crate) const FLOW_SECS: u32 = 60;
/// What `orders_per_sec` counts, whether trades came singly or in the exchange's aggregates.
const ORDERS_COUNTED: &str = "single trades, by their ids; one order may make several";

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct OrderFlow {
    /// Absent where the trades are not known.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    sums: Option<TradeFlow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    flow: Option<Known<TradeFlow>>,
    covered_secs: f64,
    orders_per_sec_counts: &'static str,
    order_flow_imbalance: Pressure,
    price_impact: Impact,
    #[serde(skip)]
    when: String,
}

pub async fn load(market: &Market, symbol: &str, window_secs: u32) -> Result<Answer> {
    let symbol = market.traded(symbol).await?;
    let reading = market.trades(&symbol, window_secs).await?;
    answer(market, &symbol, &reading, window_secs)
}

/// Without asking the exchange.
pub(super) fn at_hand(market: &Market, symbol: &Symbol) -> Option<Answer> {
    let reading = market.streamed_trades(symbol, FLOW_SECS)?;
    answer(market, symbol, &reading, FLOW_SECS).ok()
}

fn answer(market: &Market, symbol: &Symbol, reading: &TradesReading, window_secs: u32) -> Result<Answer> {
    let window = Window::last(window_secs, reading.until);
    let newest = reading.trades.last().map(|trade| trade.time);
    let provenance = Provenance::new(market, reading.origin, newest, reading.received);
    let covered = covered(reading, window);
    let (sums, flow) = match trade_flow(&reading.trades, window, reading.complete_from) {
        Ok(sums) => (Some(sums), None),
        Err(reason) => (None, Some(Known::missing(reason))),
    };
    let figures = OrderFlow {
        sums,
        flow,
        covered_secs: covered.millis() as f64 / 1_000.0,
        orders_per_sec_counts: ORDERS_COUNTED,
        order_flow_imbalance: Pressure::load(market, symbol, reading, window_secs),
        price_impact: Impact::load(market, symbol),
        when: in_words(window_secs, covered, window),
    };
    Answer::new(Kind::OrderFlow, symbol, provenance, figures)
}

/// The part of the window whose trades are complete.
fn covered(reading: &TradesReading, window: Window) -> Window {
    Window {
        // All from a time on is all after the millisecond before.
        start_ms: reading.complete_from.saturating_sub(1).clamp(window.start_ms, window.end_ms),
        end_ms: window.end_ms,
    }
}

/// `last 60 s`, with the part that is covered where it is not all.
fn in_words(asked_secs: u32, covered: Window, window: Window) -> String {
    if covered == window {
        return format!("last {asked_secs} s");
    }
    let covered = covered.seconds();
    format!("last {covered:.1} s, of the {asked_secs} s asked for (earlier trades are not known)")
}

impl Figures for OrderFlow {
    fn sentences(&self, about: &About) -> Vec<String> {
        let (name, quote, when) = (about.name(), about.quote(), &self.when);
        let Some(flow) = &self.sums else {
            let reason = or_unknown(self.flow.as_ref().and_then(Known::reason));
            return vec![format!("{name}: order flow is not known: {reason}.")];
        };
        if flow.trades == 0 {
            return vec![format!("{name}: no trades in the {when}.")];
        }
        let (sums, net) = (taker_sums(flow, about), flow.net_flow_quote);
        let (trades, bought, sold) = (flow.trades, flow.buy_trades, flow.sell_trades);
        let (rate, vwap) = (or_unknown(flow.orders_per_sec), or_unknown(flow.vwap));
        vec![
            format!("{name}, {when}: {sums} ({net} {quote})."),
            format!(
                "{trades} trades ({bought} by buyers, {sold} by sellers), {rate} trades a second in the last 10 s; VWAP {vwap} {quote}."
            ),
        ]
    }

    fn headline(&self) -> &'static str {
        "net_flow_base +net_flow_quote buy_volume_base sell_volume_base trades orders_per_sec vwap"
    }
}

/// `taker buys 1.5 BTC, taker sells 1.2 BTC, net 0.3 BTC`
pub(super) fn taker_sums(flow: &TradeFlow, about: &About) -> String {
    let (bought, sold, net) = (flow.buy_volume_base, flow.sell_volume_base, flow.net_flow_base);
    let base = about.base();
    format!("taker buys {bought} {base}, taker sells {sold} {base}, net {net} {base}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::market::Origin;
    use tribune_binance::Moment;

    #[test]
    fn window_names_its_coverage() {
        let reading = |complete_from| TradesReading {
            trades: Vec::new(),
            complete_from,
            until: 1_000_000,
            received: Moment::now(&tribune_core::SystemClock),
            origin: Origin::Rest,
        };
        let window = Window::last(300, 1_000_000);
        let told = |complete_from| in_words(300, covered(&reading(complete_from), window), window);
        assert_eq!(told(700_001), "last 300 s");
        assert_eq!(told(0), "last 300 s");
        // From 876,544 on: 123.457 s.
        assert_eq!(told(876_544), "last 123.5 s, of the 300 s asked for (earlier trades are not known)");
    }
}
