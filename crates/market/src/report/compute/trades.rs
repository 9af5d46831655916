//! What was traded.

use super::FLOW_SECS;
use super::sight::{Sight, exchange_time};
use crate::analytics::flow::{TradeFlow, trade_flow};
use crate::analytics::{Unavailable, Window};
use crate::model::Millis;
use crate::report::model::{Flow, Section};
use crate::tape::Recent;

/// The last trades of a window that ends where they are known.
pub(super) struct Traded {
    pub recent: Recent,
    pub window: Window,
    /// All of them since then are there.
    pub seen_from: Millis,
}

impl Traded {
    /// An error has the reason.
    pub fn of(sight: &Sight<'_>, seconds: u32) -> Result<Self, String> {
        let window = Window::last(seconds, sight.trades_until());
        let recent = sight.inputs.published.tape.recent(window.start_ms);
        match recent.complete_from {
            None => Err("trades are not watched yet".to_owned()),
            Some(seen_from) if seen_from > window.end_ms => Err(format!(
                "trades are watched only since {}",
                exchange_time(seen_from).unwrap_or_else(|| seen_from.to_string())
            )),
            Some(seen_from) => Ok(Self {
                recent,
                window,
                seen_from,
            }),
        }
    }

    pub fn flow(&self) -> Result<TradeFlow, Unavailable> {
        trade_flow(self.recent.trades(), self.window, self.seen_from)
    }

    pub fn section(&self, sight: &Sight<'_>, reason: Option<String>) -> Section {
        let end = self.window.end_ms;
        sight.section(Some(end), sight.trades_age_ms(end), reason)
    }
}

pub(super) fn flow(sight: &Sight<'_>) -> (Option<Flow>, Section) {
    let traded = match Traded::of(sight, FLOW_SECS) {
        Ok(traded) => traded,
        Err(reason) => return (None, sight.section(None, sight.age_ms(), Some(reason))),
    };
    match traded.flow() {
        Ok(flow) => {
            let seen_from = || exchange_time(traded.seen_from).unwrap_or_else(|| traded.seen_from.to_string());
            let partly = || {
                format!(
                    "not every trade of the window was seen: all are only since {}",
                    seen_from()
                )
            };
            let reason = (!flow.complete).then(partly);
            (Some(told(&flow)), traded.section(sight, reason))
        }
        Err(reason) => (None, traded.section(sight, Some(reason.to_string()))),
    }
}

fn told(flow: &TradeFlow) -> Flow {
    Flow {
        orders_per_sec: flow.orders_per_sec,
        net_flow: flow.net_flow_base.decimal(),
        buy_volume: flow.buy_volume_base.decimal(),
        sell_volume: flow.sell_volume_base.decimal(),
        trade_count: flow.trades,
        window_sec: FLOW_SECS,
        window_end_ms: flow.window.end_ms,
        complete: flow.complete,
    }
}
