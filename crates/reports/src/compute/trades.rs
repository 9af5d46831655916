//! Order flow.

use super::FLOW_SECS;
use super::observation::{Observation, exchange_time};
use crate::model::{Flow, Report, Section};
use tribune_analytics::{TradeFlow, Unavailable, Window, trade_flow};
use tribune_binance::{Millis, Recent};

/// The last trades of a window that ends where they are known.
pub(super) struct Traded {
    pub recent: Recent,
    pub window: Window,
    /// All trades since then are known.
    pub seen_from: Millis,
}

impl Traded {
    pub fn of(observed: &Observation<'_>, seconds: u32) -> Result<Self, String> {
        let window = Window::last(seconds, observed.trades_until());
        let recent = observed.inputs.published.tape.recent(window.start_ms);
        match recent.complete_from {
            None => Err("trades are not watched yet".to_owned()),
            Some(seen_from) if seen_from > window.end_ms => {
                Err(format!("trades are watched only since {}", time(seen_from)))
            }
            Some(seen_from) => Ok(Self { recent, window, seen_from }),
        }
    }

    pub fn flow(&self) -> Result<TradeFlow, Unavailable> {
        trade_flow(self.recent.trades(), self.window, self.seen_from)
    }

    pub fn section(&self, observed: &Observation<'_>, reason: Option<String>) -> Section {
        let end = self.window.end_ms;
        observed.section(Some(end), observed.trades_age_ms(end), reason)
    }
}

pub(super) fn fill(report: &mut Report, observed: &Observation<'_>) {
    report.sections.flow = match Traded::of(observed, FLOW_SECS) {
        Err(reason) => observed.section(None, observed.age_ms(), Some(reason)),
        Ok(traded) => match traded.flow() {
            Err(reason) => traded.section(observed, Some(reason.to_string())),
            Ok(flow) => {
                let partly = || format!("trades of the window before {} are missing", time(traded.seen_from));
                let reason = (!flow.complete).then(partly);
                report.flow = Some(Flow {
                    orders_per_sec: flow.orders_per_sec,
                    net_flow: flow.net_flow_base.decimal(),
                    buy_volume: flow.buy_volume_base.decimal(),
                    sell_volume: flow.sell_volume_base.decimal(),
                    trade_count: flow.trades,
                    window_sec: FLOW_SECS,
                    window_end_ms: flow.window.end_ms,
                    complete: flow.complete,
                });
                traded.section(observed, reason)
            }
        },
    };
}

fn time(millis: Millis) -> String {
    exchange_time(millis).unwrap_or_else(|| millis.to_string())
}
