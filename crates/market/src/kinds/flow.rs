//! Order flow: who traded with whom in the last seconds.

mod pressure;

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tribune_core::Result;
use tribune_page::parts::{noted, panel, signed, tone_of};
use tribune_page::text::derived;
use tribune_page::{Amount, Content, Figure, Headline, Panel, Tone, Width};

use super::known::{Known, or_unknown};
use super::{About, Answer, Figures, Provenance, Time};
use crate::id::{AnalyticsKind, Kind};
use crate::kinds::Page;
use crate::market::{Market, TradesReading};
use pressure::{Impact, Pressure};
use tribune_analytics::Window;
use tribune_analytics::flow::{TradeFlow, trade_flow};
use tribune_binance::model::Symbol;
use tribune_binance::number::Quantity;

/// The window that is meant where none is given.
pub(crate) const FLOW_SECS: u32 = 60;
/// What `orders_per_sec` counts, whether trades came singly or in the exchange's aggregates.
const ORDERS_COUNTED: &str = "single trades, by their ids; one order may make several";
/// A window that ends longer ago says when.
const NOW_MS: u64 = 1_500;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OrderFlow {
    /// Absent where the trades are not known.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    sums: Option<TradeFlow>,
    /// Why the trades are not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    flow: Option<Known<TradeFlow>>,
    covered_secs: f64,
    orders_per_sec_counts: Cow<'static, str>,
    order_flow_imbalance: Pressure,
    price_impact: Impact,
    /// The window in words.
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
        orders_per_sec_counts: ORDERS_COUNTED.into(),
        order_flow_imbalance: Pressure::load(market, symbol, reading, window_secs),
        price_impact: Impact::load(market, symbol),
        when: in_words(window_secs, covered, window, reading.is_cut, provenance.age_ms),
    };
    let kind = Kind::Analytics(AnalyticsKind::OrderFlow);
    Answer::new(kind, symbol, provenance, figures)
}

/// The part of the window of which every trade is here.
fn covered(reading: &TradesReading, window: Window) -> Window {
    Window {
        // All from a time on is all after the millisecond before.
        start_ms: reading
            .complete_from
            .saturating_sub(1)
            .clamp(window.start_ms, window.end_ms),
        end_ms: window.end_ms,
    }
}

/// `last 60 s`; and how much of that is there, and when it ended, where either is not as one would think.
fn in_words(asked_secs: u32, covered: Window, window: Window, is_cut: bool, age_ms: u64) -> String {
    let up_to = match age_ms {
        NOW_MS.. => format!(" up to {}", Time::from_millis(window.end_ms)),
        _ => String::new(),
    };
    if covered == window {
        return format!("last {asked_secs} s{up_to}");
    }
    let why = if is_cut {
        "more was traded than can be read at once"
    } else {
        "earlier trades are not known"
    };
    format!(
        "last {:.1} s{up_to}, of the {asked_secs} s asked for ({why})",
        covered.seconds()
    )
}

impl Figures for OrderFlow {
    fn what(&self, _about: &About) -> String {
        "order flow".to_owned()
    }

    fn sentences(&self, about: &About) -> Vec<String> {
        let name = about.name();
        match &self.sums {
            None => {
                let reason = self.flow.as_ref().and_then(Known::reason);
                vec![format!("{name}: order flow is not known: {}.", or_unknown(reason))]
            }
            Some(flow) if flow.trades == 0 => vec![format!("{name}: no trades in the {}.", self.when)],
            Some(flow) => vec![
                format!(
                    "{name}, {}: buyers took {} {base}, sellers gave {} {base}: net {} {base} ({} {quote}).",
                    self.when,
                    flow.buy_volume_base,
                    flow.sell_volume_base,
                    flow.net_flow_base,
                    flow.net_flow_quote,
                    base = about.base(),
                    quote = about.quote(),
                ),
                format!(
                    "{} trades ({} by buyers, {} by sellers), {} trades a second in the last 10 s; VWAP {} {}.",
                    flow.trades,
                    flow.buy_trades,
                    flow.sell_trades,
                    or_unknown(flow.orders_per_sec),
                    or_unknown(flow.vwap),
                    about.quote(),
                ),
            ],
        }
    }

    fn snippet(&self, about: &About) -> Option<String> {
        let flow = self.sums.as_ref()?;
        Some(format!(
            "{}, last {FLOW_SECS} s: buyers took {} {base}, sellers gave {} {base}, net {} {base}.",
            about.name(),
            flow.buy_volume_base,
            flow.sell_volume_base,
            flow.net_flow_base,
            base = about.base()
        ))
    }

    fn headline(&self, page: &Page<'_>) -> Option<Headline> {
        let flow = self.sums.as_ref()?;
        let window = seconds(self.covered_secs);
        let worth = Amount::new(
            signed(&flow.net_flow_quote.to_string()),
            format!("{} in {window}", page.quote()),
        );
        let mut figures = sums(flow, page);
        figures.push(self.order_flow_imbalance.figure(page));
        Some(Headline {
            change: Some((worth, net_tone(flow))),
            figures,
            ..page.headline(
                &format!("Net flow, {window}"),
                Amount::new(signed(&flow.net_flow_base.to_string()), page.base()),
            )
        })
    }

    fn shown(&self) -> Vec<&'static str> {
        match self.sums {
            Some(_) => vec![
                "net_flow_base",
                "net_flow_quote",
                "buy_volume_base",
                "sell_volume_base",
                "trades",
                "orders_per_sec",
                "vwap",
                "order_flow_imbalance",
                "window_secs",
            ],
            None => Vec::new(),
        }
    }
}

impl OrderFlow {
    /// The sums in a panel, for a page that is about more.
    pub(crate) fn panel(&self, page: &Page<'_>) -> Panel {
        let sums = match (&self.sums, &self.flow) {
            (Some(sums), _) => Known::Value(sums.clone()),
            (None, Some(missing)) => missing.clone(),
            (None, None) => Known::missing("the trades of the last minute are not known"),
        };
        let pressure = self.order_flow_imbalance.figure(page);
        flow_panel(&sums, Some(self.covered_secs), Some(pressure), page)
    }
}

/// Sums of trades, with one more figure beside them.
pub(super) fn flow_panel(
    flow: &Known<TradeFlow>,
    covered_secs: Option<f64>,
    beside: Option<Figure>,
    page: &Page<'_>,
) -> Panel {
    let title = "Order flow";
    let Some(flow) = flow.value() else {
        let why = flow.reason().unwrap_or_default().to_owned();
        return panel("flow", title, Width::Half, Content::Missing(why));
    };
    let net = Figure {
        tone: net_tone(flow),
        ..Figure::new(
            "Net flow",
            Amount::new(signed(&flow.net_flow_base.to_string()), page.base()),
        )
    };
    let figures = std::iter::once(net).chain(sums(flow, page)).chain(beside).collect();
    let note = format!(
        "Trades of the last {}{}. Exact sums; they say what was, not what will be.",
        seconds(covered_secs.unwrap_or(flow.window_secs)),
        if flow.complete {
            ""
        } else {
            ", of which some are missing"
        },
    );
    noted(panel("flow", title, Width::Half, Content::Figures(figures)), note)
}

fn net_tone(flow: &TradeFlow) -> Tone {
    tone_of(Some(flow.net_flow_base.as_f64()))
}

fn seconds(seconds: f64) -> String {
    format!("{} s", (seconds * 10.0).round() / 10.0)
}

fn sums(flow: &TradeFlow, page: &Page<'_>) -> Vec<Figure> {
    let taken = |label: &str, volume: Quantity, tone: Tone| Figure {
        tone,
        ..Figure::new(label, Amount::new(volume.to_string(), page.base()))
    };
    let known = |label: &str, value: Option<Amount>| match value {
        Some(value) => Figure::new(label, value),
        None => {
            let why = flow.reason.as_ref().map(ToString::to_string);
            Figure::unknown(label, why.as_deref().unwrap_or("it could not be computed"))
        }
    };
    let vwap = flow
        .vwap
        .map(|vwap| Amount::new(derived(&vwap.to_string()), page.quote()));
    vec![
        taken("Buyers took", flow.buy_volume_base, Tone::Up),
        taken("Sellers gave", flow.sell_volume_base, Tone::Down),
        Figure::new("Trades", Amount::plain(flow.trades.to_string())),
        known(
            "Trades a second",
            flow.orders_per_sec.map(|rate| Amount::plain(rate.to_string())),
        ),
        known("VWAP", vwap),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::market::Origin;
    use tribune_binance::moment::Moment;

    #[test]
    fn window_names_its_coverage_and_end() {
        let reading = |complete_from| TradesReading {
            trades: Vec::new(),
            complete_from,
            is_cut: true,
            until: 1_000_000,
            received: Moment::now(&tribune_core::SystemClock),
            origin: Origin::Rest,
        };
        let window = Window::last(300, 1_000_000);
        let told =
            |complete_from, age_ms| in_words(300, covered(&reading(complete_from), window), window, true, age_ms);
        assert_eq!(told(700_001, 20), "last 300 s");
        assert_eq!(told(0, 20), "last 300 s");
        assert_eq!(told(700_000, 1_500), "last 300 s up to 1970-01-01T00:16:40.000Z");
        // From 876,544 on: 123.457 s.
        assert_eq!(
            told(876_544, 20),
            "last 123.5 s, of the 300 s asked for (more was traded than can be read at once)"
        );
    }
}
