//! A report as Markdown.

use std::fmt::Display;

use serde_json::{Value, json};
use tribune_page::parts::signed;

use super::model::{Component, IngestionStatus, Level, Report};

/// Levels shown per side.
const SHOWN_LEVELS: usize = 5;

/// The figures of each section that may be null, as the JSON names them.
const NULLABLE: [&str; 8] = [
    "last_price change_24h_pct high_24h low_24h volume_24h quote_volume_24h",
    "best_bid best_ask spread_bps mid_price micro_price depth depth.imbalance",
    "flow flow.orders_per_sec",
    "liquidity.walls",
    "liquidity.vacuums",
    "liquidity.volume_profile",
    "anomalies",
    "health health.score",
];

/// Headings and short lines, no tables, so that it also reads well as plain text. Every figure is in the JSON too.
pub fn render(report: &Report) -> String {
    let text = Text(report);
    let sections = [
        text.head(),
        text.price(),
        text.best_prices(),
        text.depth(),
        text.flow(),
        text.liquidity(),
        text.anomalies(),
        text.health(),
        text.times(),
        text.gaps(),
    ];
    // One line, whatever it contains: text from the exchange must not start a line of ours.
    let one_line = |line: String| line.replace(char::is_control, " ") + "\n";
    sections.into_iter().flatten().map(one_line).collect()
}

/// The lines of each part.
struct Text<'a>(&'a Report);

impl Text<'_> {
    fn base(&self, amount: Option<impl Display>) -> String {
        with_unit(amount, &self.0.base_asset)
    }

    fn quote(&self, amount: Option<impl Display>) -> String {
        with_unit(amount, &self.0.quote_asset)
    }

    fn level(&self, level: Option<Level>) -> String {
        level.map_or_else(unknown, |level| {
            format!("{} for {}", self.quote(Some(level.price)), self.base(Some(level.qty)))
        })
    }

    fn head(&self) -> Vec<String> {
        let report = self.0;
        let age = report.data_age_ms;
        let label = report.simulated.as_ref().map(|label| format!("{label}."));
        let stale = (report.ingestion.status != IngestionStatus::Ok).then(|| {
            let status = word(&report.ingestion.status);
            let reason = report.ingestion.reason.as_deref().unwrap_or("no reason is known");
            let seconds = age as f64 / 1000.0;
            format!("STALE ({status}): {reason}; the data are {seconds:.1} s old.")
        });
        let title = format!("# {} market report", report.symbol);
        let (pair, venue) = (format!("{}/{}", report.base_asset, report.quote_asset), &report.venue);
        let of = format!("{pair} on {venue}, as of {}, data {age} ms old.", report.generated_at);
        [title, String::new()].into_iter().chain(label).chain(stale).chain([of]).collect()
    }

    fn price(&self) -> Vec<String> {
        let report = self.0;
        let change = report.change_24h_pct.map(|change| signed(&change.to_string()));
        let (volume, worth) = (self.base(report.volume_24h), self.quote(report.quote_volume_24h));
        under(
            "Price",
            vec![
                format!("- Last price: {}", self.quote(report.last_price)),
                format!("- 24 h change: {}", with_unit(change, "%")),
                format!("- 24 h high: {}", self.quote(report.high_24h)),
                format!("- 24 h low: {}", self.quote(report.low_24h)),
                format!("- 24 h volume: {volume}, worth {worth}"),
            ],
        )
    }

    fn best_prices(&self) -> Vec<String> {
        let report = self.0;
        under(
            "Best prices",
            vec![
                format!("- Best bid: {}", self.level(report.best_bid)),
                format!("- Best ask: {}", self.level(report.best_ask)),
                format!("- Spread: {}", with_unit(report.spread_bps, "bps of mid")),
                format!("- Mid price: {}", self.quote(report.mid_price)),
                format!("- Micro price: {}", self.quote(report.micro_price)),
            ],
        )
    }

    fn depth(&self) -> Vec<String> {
        let lines = self.0.depth.as_ref().map(|depth| {
            let side = |side: &str, levels: &[Level], total| {
                let total = self.base(Some(total));
                let mut lines = vec![format!("- Best {} {side} levels: {total} in all", levels.len())];
                let shown = levels.iter().take(SHOWN_LEVELS);
                lines.extend(shown.map(|level| format!("  - {}", self.level(Some(*level)))));
                lines
            };
            let mut lines = side("bid", &depth.bids, depth.total_bid_qty);
            lines.extend(side("ask", &depth.asks, depth.total_ask_qty));
            let imbalance = with_unit(depth.imbalance, "(-1 all asks, 1 all bids)");
            lines.push(format!("- Imbalance: {imbalance}"));
            lines.push(format!("- After update: {}", depth.last_update_id));
            lines
        });
        under("Depth", lines.unwrap_or_else(unknown_list))
    }

    fn flow(&self) -> Vec<String> {
        let lines = self.0.flow.as_ref().map(|flow| {
            let base = |amount| self.base(Some(amount));
            let (bought, sold, net) = (base(flow.buy_volume), base(flow.sell_volume), base(flow.net_flow));
            let rate = with_unit(flow.orders_per_sec, "a second in the last 10 s");
            let extent = if flow.complete { "Every" } else { "Not every" };
            vec![
                format!("- Last {} s: bought {bought}, sold {sold}, net {net}", flow.window_sec),
                format!("- Trades: {}; {rate}", flow.trade_count),
                format!("- {extent} trade of the window was seen"),
            ]
        });
        under("Trade flow", lines.unwrap_or_else(unknown_list))
    }

    fn liquidity(&self) -> Vec<String> {
        let liquidity = &self.0.liquidity;
        let mut lines = listed("Walls", liquidity.walls.as_deref(), |wall| {
            let (price, qty) = (wall.price, wall.qty);
            let level = self.level(Some(Level { price, qty }));
            format!("{}, {level}: {}", word(&wall.side), wall.severity.as_str())
        });
        lines.extend(listed("Vacuums", liquidity.vacuums.as_deref(), |vacuum| {
            let (to, severity) = (self.quote(Some(vacuum.to)), vacuum.severity.as_str());
            format!("{} to {to}: {severity}", vacuum.from)
        }));
        match &liquidity.volume_profile {
            None => lines.push("- Volume profile: unknown".to_owned()),
            Some(profile) => {
                let (trades, coverage) = (profile.trade_count, or_unknown(profile.coverage));
                lines.extend([
                    format!("- Volume profile of {} s:", profile.window_sec),
                    format!("  - Most traded (POC): {}", self.quote(Some(profile.poc))),
                    format!("  - Value area high (VAH): {}", self.quote(Some(profile.vah))),
                    format!("  - Value area low (VAL): {}", self.quote(Some(profile.val))),
                    format!("  - Trades: {trades}; share of the window known: {coverage}"),
                ]);
            }
        }
        under("Liquidity", lines)
    }

    fn anomalies(&self) -> Vec<String> {
        let lines = match self.0.anomalies.as_deref() {
            None => unknown_list(),
            Some([]) => vec!["- none found".to_owned()],
            Some(found) => {
                found.iter().map(|one| format!("- {} ({}): {}", one.kind, one.severity.as_str(), one.note)).collect()
            }
        };
        under("Anomalies", lines)
    }

    fn health(&self) -> Vec<String> {
        let lines = self.0.health.as_ref().map(|health| {
            let score = with_unit(health.score, "of 100");
            let mut lines = vec![format!("- Score: {score}, over {} of the weights", health.weights_used)];
            lines.extend(health.components.iter().flat_map(component));
            lines.push(format!("- Note: {}", health.note));
            lines
        });
        under("Health", lines.unwrap_or_else(unknown_list))
    }

    fn times(&self) -> Vec<String> {
        let report = self.0;
        let update = or_unknown(report.ingestion.last_update.as_deref());
        let mut lines = vec![format!("- Last update: {update}"), format!("- Report written: {}", report.updated_at)];
        for (name, section) in report.sections.all() {
            let computed = or_unknown(section.computed_at.as_deref());
            let time = or_unknown(section.exchange_time.as_deref());
            let age = section.age_ms.map(|age| format!("{age} ms old"));
            let age = age.as_deref().unwrap_or("age unknown");
            lines.push(format!("- {name}: computed {computed}, exchange time {time}, {age}"));
        }
        under("Times", lines)
    }

    /// Which figures are null, and the reasons in their sections.
    fn gaps(&self) -> Vec<String> {
        let json = json!(self.0);
        let is_null = |name: &str| json.pointer(&format!("/{}", name.replace('.', "/"))) == Some(&Value::Null);
        let mut lines = Vec::new();
        for ((name, section), figures) in self.0.sections.all().into_iter().zip(NULLABLE) {
            let nulls: Vec<&str> = figures.split(' ').filter(|name| is_null(name)).collect();
            let reason = section.reason.as_deref();
            let figures = match nulls.as_slice() {
                [] => String::new(),
                nulls => format!(" ({})", nulls.join(", ")),
            };
            if reason.is_some() || !nulls.is_empty() {
                lines.push(format!("- {name}{figures}: {}", reason.unwrap_or("no reason is known")));
            }
        }
        if lines.is_empty() {
            return lines;
        }
        under("Not known, and why", lines)
    }
}

fn under(heading: &str, lines: Vec<String>) -> Vec<String> {
    [String::new(), format!("## {heading}")].into_iter().chain(lines).collect()
}

fn listed<T>(what: &str, found: Option<&[T]>, written: impl Fn(&T) -> String) -> Vec<String> {
    match found {
        None => vec![format!("- {what}: unknown")],
        Some([]) => vec![format!("- {what}: none")],
        Some(found) => {
            let items = found.iter().map(|one| format!("  - {}", written(one)));
            [format!("- {what}:")].into_iter().chain(items).collect()
        }
    }
}

fn component(part: &Component) -> Vec<String> {
    let score = with_unit(part.score, "of 100");
    let input = with_unit(part.input, &format!("({})", part.input_unit));
    let mut lines = vec![
        format!("- {}: {score}, weight {}", part.name, part.weight),
        format!("  - Input: {input}"),
        format!("  - Mapping: {}", part.mapping),
    ];
    lines.extend(part.contribution.map(|points| format!("  - Adds {points} to the score")));
    lines.extend(part.reason.as_ref().map(|reason| format!("  - Note: {reason}")));
    lines
}

fn unknown() -> String {
    "unknown".to_owned()
}

fn unknown_list() -> Vec<String> {
    vec!["- unknown".to_owned()]
}

fn or_unknown(value: Option<impl Display>) -> String {
    value.map_or_else(unknown, |value| value.to_string())
}

fn with_unit(value: Option<impl Display>, unit: &str) -> String {
    value.map_or_else(unknown, |value| format!("{value} {unit}"))
}

/// A value as the JSON writes it.
fn word(value: &impl serde::Serialize) -> String {
    json!(value).as_str().map_or_else(unknown, str::to_owned)
}

/// One line for a search result.
pub fn brief(report: &Report) -> String {
    let health = report.health.as_ref().and_then(|health| health.score);
    format!(
        "{}{}: {} {}, {} % in 24 h; spread {} bps; health {} of 100; ingestion {}, {} ms old",
        report.simulated.as_ref().map_or("", |_| "SIMULATED "),
        report.symbol,
        or_unknown(report.last_price),
        report.quote_asset,
        or_unknown(report.change_24h_pct.map(|change| format!("{change:+.2}"))),
        or_unknown(report.spread_bps.map(|spread| format!("{spread:.2}"))),
        or_unknown(health),
        word(&report.ingestion.status),
        report.data_age_ms,
    )
}
