//! Prices, depth, flow and walls.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::truth::{Large, Looks, Truth, Wrong, parts};
use crate::oracle::units;

/// Of each side, best first.
fn best(side: impl Iterator<Item = (i128, i128)>, most: usize) -> Vec<(i128, i128)> {
    side.take(most).collect()
}

impl Truth {
    pub fn sides(&self, most: usize) -> [Vec<(i128, i128)>; 2] {
        let level = |(price, quantity): (&i128, &i128)| (*price, *quantity);
        [best(self.book.bids.iter().rev().map(level), most), best(self.book.asks.iter().map(level), most)]
    }

    pub fn judge_ticker(&self, report: &Value, wrong: &mut Wrong) {
        let Some(ticker) = &self.ticker else {
            return wrong.same("change without a ticker", &report["change_24h_pct"], Value::Null);
        };
        let last = if Self::is_fresh(report) {
            let last = self.trades.last().map_or(units(&ticker["c"]), |trade| trade.price);
            wrong.exact("last price", &report["last_price"], last);
            last
        } else {
            units(&report["last_price"])
        };
        // From the reported price: the ticker's may be older.
        let open = units(&ticker["o"]) as f64;
        wrong.near("change", &report["change_24h_pct"], 100.0 * (last as f64 / open - 1.0));
        wrong.exact("high_24h", &report["high_24h"], units(&ticker["h"]).max(last));
        wrong.exact("low_24h", &report["low_24h"], units(&ticker["l"]).min(last));
        for (figure, name) in [("volume_24h", "v"), ("quote_volume_24h", "q")] {
            wrong.exact(figure, &report[figure], units(&ticker[name]));
        }
    }

    pub fn judge_book(&self, report: &Value, wrong: &mut Wrong) {
        let depth = &report["depth"];
        wrong.same("update", &depth["last_update_id"], self.book.id);
        let sides = self.sides(20);
        for (name, side) in ["bids", "asks"].into_iter().zip(&sides) {
            wrong.same("levels", &json!(depth[name].as_array().map(Vec::len)), side.len());
            for (at, (price, quantity)) in side.iter().enumerate() {
                wrong.exact("price", &depth[name][at]["price"], *price);
                wrong.exact("quantity", &depth[name][at]["qty"], *quantity);
            }
        }
        let [bid, ask] = self.book.top();
        for (name, (price, quantity)) in [("best_bid", bid), ("best_ask", ask)] {
            wrong.exact(name, &report[name]["price"], price);
            wrong.exact(name, &report[name]["qty"], quantity);
        }
        let total = |side: &[(i128, i128)]| side.iter().map(|(_, quantity)| quantity).sum::<i128>();
        let (bids, asks) = (total(&sides[0]), total(&sides[1]));
        wrong.exact("bids", &depth["total_bid_qty"], bids);
        wrong.exact("asks", &depth["total_ask_qty"], asks);
        let imbalance = (bids - asks) as f64 / (bids + asks) as f64;
        wrong.near("imbalance", &depth["imbalance"], imbalance);
        let spread = 20_000.0 * (ask.0 - bid.0) as f64 / (ask.0 + bid.0) as f64;
        wrong.near("spread", &report["spread_bps"], spread);
        // In 10⁻¹⁰, so that half of 10⁻⁸ is a whole number.
        let mid = report["mid_price"].as_str().map(parts);
        if mid != Some((bid.0 + ask.0) * 50) {
            wrong.0.push(format!("mid is {}", report["mid_price"]));
        }
        // (a·qb + b·qa)/(qa + qb) without a division: off by no more than 10⁻⁸.
        let micro = report["micro_price"].as_str().map(parts).unwrap_or_default();
        let weighed = (ask.0 * bid.1 + bid.0 * ask.1) * 100;
        let both = bid.1 + ask.1;
        if (micro * both - weighed).abs() > both {
            wrong.0.push(format!("micro price is {}", report["micro_price"]));
        }
    }

    pub fn judge_flow(&self, report: &Value, wrong: &mut Wrong) {
        let flow = &report["flow"];
        let Some(end) = flow["window_end_ms"].as_i64() else {
            return wrong.same("no flow although data are fresh", &json!(Self::is_fresh(report)), false);
        };
        let sum = |bought: bool| -> i128 {
            let of = self.window(end, 30_000).filter(|trade| trade.bought == bought);
            of.map(|trade| trade.quantity).sum()
        };
        wrong.exact("bought", &flow["buy_volume"], sum(true));
        wrong.exact("sold", &flow["sell_volume"], sum(false));
        wrong.exact("net flow", &flow["net_flow"], sum(true) - sum(false));
        wrong.same("trades", &flow["trade_count"], self.window(end, 30_000).count());
        wrong.same("complete", &flow["complete"], self.knows_since(end - 30_000));
        if self.knows_since(end - 10_000) {
            let rate = self.window(end, 10_000).count() as f64 / 10.0;
            wrong.near("orders", &flow["orders_per_sec"], rate);
        } else {
            wrong.same("orders", &flow["orders_per_sec"], Value::Null);
        }
    }

    /// Once a second: which levels are ten times the median of their side.
    pub fn look(&mut self, time: i64) {
        if self.looks.last == 0 || time - self.looks.last > 3_000 {
            self.looks = Looks { started: time, ..Looks::default() };
        }
        self.looks.last = time;
        let sides = self.sides(500);
        for (side, large) in sides.iter().zip(&mut self.looks.large) {
            let before = large.take().unwrap_or_default();
            *large = median(side).map(|median| {
                let large = side.iter().filter(|(_, quantity)| *quantity as f64 >= 10.0 * median);
                let noted = large.map(|(price, quantity)| {
                    let since = before.get(price).map_or(time, |before| before.since);
                    let times_median = *quantity as f64 / median;
                    (*price, Large { quantity: *quantity, since, times_median })
                });
                noted.collect::<BTreeMap<_, _>>()
            });
        }
    }

    pub fn judge_walls(&self, walls: &Value, wrong: &mut Wrong) {
        let looks = &self.looks;
        if looks.large.iter().all(Option::is_none) || looks.last - looks.started < 5_000 {
            return wrong.same("walls", walls, Value::Null);
        }
        let Some(result) = walls.as_array() else {
            return wrong.0.push("walls are missing".to_owned());
        };
        let mut expected = 0;
        for (name, large) in ["bid", "ask"].into_iter().zip(&looks.large) {
            let stood = large.iter().flatten().filter(|(_, large)| looks.last - large.since >= 5_000);
            for (price, large) in stood {
                expected += 1;
                let is_it =
                    |wall: &&Value| wall["side"] == name && parts(wall["price"].as_str().unwrap_or("0")) == price * 100;
                let Some(wall) = result.iter().find(is_it) else {
                    wrong.0.push(format!("the {name} wall at {price} is missing"));
                    continue;
                };
                wrong.exact("wall", &wall["qty"], large.quantity);
                let severity = match large.times_median {
                    times if times >= 50.0 => "high",
                    times if times >= 20.0 => "medium",
                    _ => "low",
                };
                wrong.same("wall", &wall["severity"], severity);
            }
        }
        wrong.same("walls", &json!(result.len()), expected);
    }
}

fn median(side: &[(i128, i128)]) -> Option<f64> {
    let mut sizes: Vec<i128> = side.iter().map(|(_, quantity)| *quantity).collect();
    sizes.sort_unstable();
    let middle = sizes.len() / 2;
    match sizes.len() {
        ..20 => None,
        odd if odd % 2 == 1 => Some(sizes[middle] as f64),
        _ => Some((sizes[middle - 1] + sizes[middle]) as f64 / 2.0),
    }
}
