//! At which prices volume was traded, and where not.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::truth::{Truth, Wrong, parts};

const WINDOW: i64 = 900_000;

/// Volume by row; rows between that have none are there too.
struct Rows {
    width: i128,
    volume: BTreeMap<i128, i128>,
}

impl Truth {
    fn rows(&self, end: i64) -> Option<Rows> {
        let prices = || self.window(end, WINDOW).map(|trade| trade.price);
        let (low, high) = (prices().min()?, prices().max()?);
        let mut width = self.tick;
        for round in 0.. {
            // 1, 2, 5, 10, 20, 50 …
            width = self.tick * [1, 2, 5][round % 3] * 10i128.pow(u32::try_from(round / 3).expect("few"));
            if high / width - low / width < 100 {
                break;
            }
        }
        let mut volume: BTreeMap<i128, i128> = (low / width..=high / width).map(|row| (row, 0)).collect();
        for trade in self.window(end, WINDOW) {
            *volume.get_mut(&(trade.price / width)).expect("in range") += trade.quantity;
        }
        Some(Rows { width, volume })
    }

    pub fn judge_profile(&self, report: &Value, wrong: &mut Wrong) {
        let liquidity = &report["liquidity"];
        let profile = &liquidity["volume_profile"];
        let Some(end) = profile["window_end_ms"].as_i64() else {
            let none = self.trades.is_empty() || !Self::is_fresh(report);
            return wrong.same("no profile, and no trades", &json!(none), true);
        };
        let Some(rows) = self.rows(end) else {
            return wrong.0.push("a profile of nothing".to_owned());
        };
        wrong.same("trades of the profile", &profile["trade_count"], self.window(end, WINDOW).count());
        let covered = (end - self.known_from).min(WINDOW) as f64 / WINDOW as f64;
        wrong.near("coverage", &profile["coverage"], covered);
        let poc = rows.point_of_control();
        if profile["POC"].as_str().map(parts) != Some((2 * poc + 1) * rows.width * 50) {
            wrong.0.push(format!("POC is {}, not in row {poc} of {}", profile["POC"], rows.width));
        }
        let (lowest, highest) = rows.value_area(poc);
        wrong.exact("VAL", &profile["VAL"], lowest * rows.width);
        wrong.exact("VAH", &profile["VAH"], (highest + 1) * rows.width);
        rows.judge_vacuums(&liquidity["vacuums"], wrong);
    }
}

impl Rows {
    fn bounds(&self) -> (i128, i128) {
        let first = self.volume.first_key_value().expect("rows");
        (*first.0, *self.volume.last_key_value().expect("rows").0)
    }

    fn of(&self, row: i128) -> i128 {
        self.volume.get(&row).copied().unwrap_or(0)
    }

    /// The largest; of several the nearest to the middle; of two as near the upper.
    fn point_of_control(&self) -> i128 {
        let most = self.volume.values().max().expect("rows");
        let (first, last) = self.bounds();
        let largest = self.volume.iter().filter(|(_, volume)| *volume == most);
        let nearest = largest.min_by_key(|(row, _)| ((2 * **row - first - last).abs(), -**row));
        *nearest.expect("a row").0
    }

    /// Two rows at a time, where more was traded, until seven tenths are in it.
    fn value_area(&self, poc: i128) -> (i128, i128) {
        let (first, last) = self.bounds();
        let total: i128 = self.volume.values().sum();
        let (mut low, mut high) = (poc, poc);
        loop {
            let inside: i128 = (low..=high).map(|row| self.of(row)).sum();
            if 10 * inside >= 7 * total {
                return (low, high);
            }
            let above = self.of(high + 1) + self.of(high + 2);
            let below = self.of(low - 1) + self.of(low - 2);
            let can_rise = high < last;
            let can_fall = low > first;
            if can_rise && (above >= below || !can_fall) {
                high = (high + 2).min(last);
            } else {
                low = (low - 2).max(first);
            }
        }
    }

    fn judge_vacuums(&self, vacuums: &Value, wrong: &mut Wrong) {
        let mut traded: Vec<i128> = self.volume.values().copied().filter(|volume| *volume > 0).collect();
        traded.sort_unstable();
        if traded.len() < 5 {
            return wrong.same("vacuums", vacuums, Value::Null);
        }
        let middle = traded.len() / 2;
        let twice_median = traded[middle] + traded[(traded.len() - 1) / 2];
        let is_low = |row: i128| 20 * self.of(row) < twice_median;
        let (first, last) = self.bounds();
        let mut expected = Vec::new();
        let mut last_high: Option<i128> = None;
        for row in (first..=last).filter(|row| !is_low(*row)) {
            if let Some(before) = last_high.replace(row)
                && row > before + 1
            {
                expected.push((before + 1, row));
            }
        }
        wrong.same("vacuums", &json!(vacuums.as_array().map(Vec::len)), expected.len());
        for (at, (from, to)) in expected.into_iter().enumerate() {
            let result = &vacuums[at];
            wrong.exact("vacuum from", &result["from"], from * self.width);
            wrong.exact("vacuum to", &result["to"], to * self.width);
            let volume: i128 = (from..to).map(|row| self.of(row)).sum();
            let mean = volume as f64 / (to - from) as f64;
            let emptiness = 1.0 - 2.0 * mean / twice_median as f64;
            let severity = match (emptiness * 1e4).round() {
                empty if empty >= 9_900.0 => "high",
                empty if empty >= 9_500.0 => "medium",
                _ => "low",
            };
            wrong.same("vacuum", &result["severity"], severity);
        }
    }
}
