//! The health score from its components. Inputs are reported with four places or six digits, scores with one place:
//! each is right if it is what the unrounded figure rounds to.

use serde_json::Value;

use super::truth::{ALLOWED, Truth, Wrong};
use crate::oracle::units;

const NAMES: [&str; 6] = ["spread", "depth", "balance", "flow", "anomalies", "freshness"];
const WEIGHTS: [f64; 6] = [0.20, 0.25, 0.15, 0.15, 0.15, 0.10];

impl Truth {
    pub fn judge_health(&self, report: &Value, wrong: &mut Wrong) {
        let health = &report["health"];
        let inputs = [
            Some(self.spread()),
            self.depth_share(),
            Some(self.one_sided_book()),
            self.one_sided_flow(report),
            points(&report["anomalies"]),
            report["data_age_ms"].as_f64(),
        ];
        let scores: [fn(f64) -> f64; 6] = [
            |bps| 100.0 - logarithmic(bps, 1.0, 50.0),
            |bps| logarithmic(bps, 0.1, 10.0),
            |share| 100.0 - 100.0 * share,
            |share| 100.0 - 100.0 * share,
            |points| 100.0 - points,
            |age| 125.0 - age / 40.0,
        ];
        let (mut weighed, mut weights) = (0.0, 0.0);
        for at in 0..6 {
            let (name, result) = (NAMES[at], &health["components"][at]);
            wrong.same("name", &result["name"], name);
            wrong.near("weight", &result["weight"], WEIGHTS[at]);
            let Some(input) = inputs[at] else {
                wrong.same(name, &result["score"], Value::Null);
                continue;
            };
            wrong.within(name, &result["input"], input, 5e-5_f64.max(input * 5.01e-6) + ALLOWED);
            // Shares are scored with the four places that are reported.
            let off = if at == 2 || at == 3 { 0.055 } else { 0.05 };
            let score = scores[at](input).clamp(0.0, 100.0);
            wrong.within(name, &result["score"], score, off + ALLOWED);
            weighed += WEIGHTS[at] * result["score"].as_f64().unwrap_or(f64::NAN);
            weights += WEIGHTS[at];
        }
        wrong.near("weights", &health["weights_used"], weights);
        wrong.within("health", &health["score"], weighed / weights, 0.05 + ALLOWED);
        for at in (0..6).filter(|at| inputs[*at].is_some()) {
            let result = &health["components"][at];
            let part = WEIGHTS[at] * result["score"].as_f64().unwrap_or(f64::NAN) / weights;
            wrong.within("contribution", &result["contribution"], part, 0.005 + ALLOWED);
        }
    }

    fn spread(&self) -> f64 {
        let [bid, ask] = self.book.top();
        20_000.0 * (ask.0 - bid.0) as f64 / (ask.0 + bid.0) as f64
    }

    /// Money within 25 basis points of the mid, bids and asks.
    fn near_the_mid(&self) -> [f64; 2] {
        let [bid, ask] = self.book.top();
        let mid = (bid.0 + ask.0) as f64 / 2.0;
        let (low, high) = (mid * 0.9975, mid * 1.0025);
        let worth = |side: &[(i128, i128)]| -> f64 {
            // A price on the very edge is inside, however the edge was rounded.
            let inside = side.iter().filter(|(price, _)| (low - 1e-3..=high + 1e-3).contains(&(*price as f64)));
            inside.map(|(price, quantity)| *price as f64 * *quantity as f64 / 1e16).sum()
        };
        self.sides(usize::MAX).map(|side| worth(&side))
    }

    fn depth_share(&self) -> Option<f64> {
        let day = units(&self.ticker.as_ref()?["q"]) as f64 / 1e8;
        let [bids, asks] = self.near_the_mid();
        Some(bids.min(asks) / day * 10_000.0)
    }

    fn one_sided_book(&self) -> f64 {
        let [bids, asks] = self.near_the_mid();
        (bids - asks).abs() / (bids + asks)
    }

    fn one_sided_flow(&self, report: &Value) -> Option<f64> {
        let end = report["flow"]["window_end_ms"].as_i64()?;
        let signed = |bought: bool| if bought { 1.0 } else { -1.0 };
        let (mut net, mut all, mut count) = (0.0, 0.0, 0);
        for trade in self.window(end, 30_000) {
            net += signed(trade.bought) * trade.quantity as f64;
            all += trade.quantity as f64;
            count += 1;
        }
        (count >= 10).then_some(f64::abs(net) / all)
    }
}

fn points(anomalies: &Value) -> Option<f64> {
    let points = anomalies.as_array()?.iter().map(|found| match found["severity"].as_str() {
        Some("low") => 15.0,
        Some("medium") => 35.0,
        _ => 60.0,
    });
    Some(points.sum())
}

/// 0 at `low`, 100 at `high`.
fn logarithmic(value: f64, low: f64, high: f64) -> f64 {
    100.0 * (value / low).log10() / (high / low).log10()
}
