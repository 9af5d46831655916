//! A report as Markdown.

use std::fmt::Display;

use super::model::{Component, Depth, Flow, Health, IngestionStatus, Level, Report, VolumeProfile};

/// Levels shown per side.
const SHOWN_LEVELS: usize = 5;

/// Headings and short lines, no tables, so that it also reads well as plain text. Every figure is in the JSON too.
pub fn render(report: &Report) -> String {
    let mut page = Page {
        text: String::new(),
        base: &report.base_asset,
        quote: &report.quote_asset,
    };
    page.head(report);
    page.price(report);
    page.best_prices(report);
    page.depth(report.depth.as_ref());
    page.flow(report.flow.as_ref());
    page.liquidity(report);
    page.anomalies(report);
    page.health(report.health.as_ref());
    page.times(report);
    page.reasons(report);
    page.text
}

struct Page<'a> {
    text: String,
    base: &'a str,
    quote: &'a str,
}

impl Page<'_> {
    /// One line, whatever it contains: text from the exchange must not start a line of ours.
    fn line(&mut self, words: &str) {
        let one_line = words
            .chars()
            .map(|letter| if letter.is_control() { ' ' } else { letter });
        self.text.extend(one_line);
        self.text.push('\n');
    }

    fn heading(&mut self, words: &str) {
        self.text.push('\n');
        self.line(&format!("## {words}"));
    }

    fn bullet(&mut self, words: &str) {
        self.line(&format!("- {words}"));
    }

    fn under(&mut self, words: &str) {
        self.line(&format!("  - {words}"));
    }

    fn base(&self, amount: Option<impl Display>) -> String {
        with_unit(amount, self.base)
    }

    fn quote(&self, amount: Option<impl Display>) -> String {
        with_unit(amount, self.quote)
    }

    fn head(&mut self, report: &Report) {
        self.line(&format!("# {} market report", report.symbol));
        self.text.push('\n');
        if let Some(label) = &report.simulated {
            self.line(&format!("{label}."));
        }
        if let Some(status) = stale_word(report.ingestion.status) {
            let reason = report.ingestion.reason.as_deref().unwrap_or("no reason is known");
            let seconds = report.data_age_ms as f64 / 1000.0;
            self.line(&format!("STALE ({status}): {reason}; the data are {seconds:.1} s old."));
        }
        self.line(&format!(
            "{}/{} on {}, as of {}, data {} ms old.",
            report.base_asset, report.quote_asset, report.venue, report.generated_at, report.data_age_ms
        ));
    }

    fn price(&mut self, report: &Report) {
        self.heading("Price");
        self.bullet(&format!("Last price: {}", self.quote(report.last_price)));
        self.bullet(&format!(
            "24 h change: {}",
            with_unit(report.change_24h_pct.map(signed), "%")
        ));
        self.bullet(&format!("24 h high: {}", self.quote(report.high_24h)));
        self.bullet(&format!("24 h low: {}", self.quote(report.low_24h)));
        let (volume, worth) = (self.base(report.volume_24h), self.quote(report.quote_volume_24h));
        self.bullet(&format!("24 h volume: {volume}, worth {worth}"));
    }

    fn best_prices(&mut self, report: &Report) {
        self.heading("Best prices");
        self.bullet(&format!("Best bid: {}", self.level(report.best_bid.as_ref())));
        self.bullet(&format!("Best ask: {}", self.level(report.best_ask.as_ref())));
        self.bullet(&format!("Spread: {}", with_unit(report.spread_bps, "bps of mid")));
        self.bullet(&format!("Mid price: {}", self.quote(report.mid_price)));
        self.bullet(&format!("Micro price: {}", self.quote(report.micro_price)));
    }

    fn level(&self, level: Option<&Level>) -> String {
        level.map_or_else(unknown, |level| {
            format!("{} {} for {} {}", level.price, self.quote, level.qty, self.base)
        })
    }

    fn depth(&mut self, depth: Option<&Depth>) {
        self.heading("Depth");
        let Some(depth) = depth else {
            return self.bullet("unknown");
        };
        let sides = [
            ("bid", &depth.bids, depth.total_bid_qty),
            ("ask", &depth.asks, depth.total_ask_qty),
        ];
        for (side, levels, total) in sides {
            self.bullet(&format!(
                "Best {} {side} levels: {total} {} in all",
                levels.len(),
                self.base
            ));
            for level in levels.iter().take(SHOWN_LEVELS) {
                self.under(&self.level(Some(level)));
            }
        }
        let imbalance = with_unit(depth.imbalance, "(-1 all asks, 1 all bids)");
        self.bullet(&format!("Imbalance: {imbalance}"));
        self.bullet(&format!("After update: {}", depth.last_update_id));
    }

    fn flow(&mut self, flow: Option<&Flow>) {
        self.heading("Trade flow");
        let Some(flow) = flow else {
            return self.bullet("unknown");
        };
        self.bullet(&format!(
            "Last {} s: bought {} {base}, sold {} {base}, net {} {base}",
            flow.window_sec,
            flow.buy_volume,
            flow.sell_volume,
            flow.net_flow,
            base = self.base
        ));
        let rate = with_unit(flow.orders_per_sec, "a second in the last 10 s");
        self.bullet(&format!("Trades: {}; {rate}", flow.trade_count));
        self.bullet(if flow.complete {
            "Every trade of the window was seen"
        } else {
            "Not every trade of the window was seen"
        });
    }

    fn liquidity(&mut self, report: &Report) {
        self.heading("Liquidity");
        self.listed("Walls", report.liquidity.walls.as_deref(), |page, wall| {
            let level = Level {
                price: wall.price,
                qty: wall.qty,
            };
            format!(
                "{}, {}: {}",
                word(&wall.side),
                page.level(Some(&level)),
                word(&wall.severity)
            )
        });
        self.listed("Vacuums", report.liquidity.vacuums.as_deref(), |page, vacuum| {
            let severity = word(&vacuum.severity);
            format!("{} to {} {}: {severity}", vacuum.from, vacuum.to, page.quote)
        });
        match &report.liquidity.volume_profile {
            None => self.bullet("Volume profile: unknown"),
            Some(profile) => self.profile(profile),
        }
    }

    fn listed<T>(&mut self, what: &str, found: Option<&[T]>, written: impl Fn(&Self, &T) -> String) {
        match found {
            None => self.bullet(&format!("{what}: unknown")),
            Some([]) => self.bullet(&format!("{what}: none")),
            Some(found) => {
                self.bullet(&format!("{what}:"));
                for one in found {
                    self.under(&written(self, one));
                }
            }
        }
    }

    fn profile(&mut self, profile: &VolumeProfile) {
        self.bullet(&format!("Volume profile of {} s:", profile.window_sec));
        self.under(&format!("Most traded (POC): {} {}", profile.poc, self.quote));
        self.under(&format!("Value area high (VAH): {} {}", profile.vah, self.quote));
        self.under(&format!("Value area low (VAL): {} {}", profile.val, self.quote));
        let coverage = or_unknown(profile.coverage);
        self.under(&format!(
            "Trades: {}; share of the window known: {coverage}",
            profile.trade_count
        ));
    }

    fn anomalies(&mut self, report: &Report) {
        self.heading("Anomalies");
        match report.anomalies.as_deref() {
            None => self.bullet("unknown"),
            Some([]) => self.bullet("none found"),
            Some(found) => {
                for one in found {
                    self.bullet(&format!("{} ({}): {}", one.kind, word(&one.severity), one.note));
                }
            }
        }
    }

    fn health(&mut self, health: Option<&Health>) {
        self.heading("Health");
        let Some(health) = health else {
            return self.bullet("unknown");
        };
        let score = with_unit(health.score, "of 100");
        self.bullet(&format!("Score: {score}, over {} of the weights", health.weights_used));
        for part in &health.components {
            self.component(part);
        }
        self.bullet(&format!("Note: {}", health.note));
    }

    fn component(&mut self, part: &Component) {
        let score = with_unit(part.score, "of 100");
        self.bullet(&format!("{}: {score}, weight {}", part.name, part.weight));
        self.under(&format!(
            "Input: {}",
            with_unit(part.input, &format!("({})", part.input_unit))
        ));
        self.under(&format!("Mapping: {}", part.mapping));
        if let Some(points) = part.contribution {
            self.under(&format!("Adds {points} to the score"));
        }
        if let Some(reason) = &part.reason {
            self.under(&format!("Note: {reason}"));
        }
    }

    fn times(&mut self, report: &Report) {
        self.heading("Times");
        let update = or_unknown(report.ingestion.last_update.as_deref());
        self.bullet(&format!("Last update: {update}"));
        self.bullet(&format!("Report written: {}", report.updated_at));
        for (name, section) in report.sections.all() {
            self.bullet(&format!(
                "{name}: computed {}, exchange time {}, {}",
                or_unknown(section.computed_at.as_deref()),
                or_unknown(section.exchange_time.as_deref()),
                section
                    .age_ms
                    .map_or_else(|| "age unknown".to_owned(), |age| format!("{age} ms old")),
            ));
        }
    }

    /// Which figures are null, and the reasons in their sections.
    fn reasons(&mut self, report: &Report) {
        let sections = report.sections.all().into_iter();
        let gaps = sections.map(|(name, section)| (name, nulls(report, name), section.reason.as_deref()));
        let mut gaps = gaps
            .filter(|(_, nulls, reason)| !nulls.is_empty() || reason.is_some())
            .peekable();
        if gaps.peek().is_some() {
            self.heading("Not known, and why");
        }
        for (name, nulls, reason) in gaps {
            let what = match nulls.as_slice() {
                [] => name.to_owned(),
                nulls => format!("{name} ({})", nulls.join(", ")),
            };
            self.bullet(&format!("{what}: {}", reason.unwrap_or("no reason is known")));
        }
    }
}

/// The figures of a section that are null.
fn nulls(report: &Report, section: &str) -> Vec<&'static str> {
    let (depth, flow, health) = (report.depth.as_ref(), report.flow.as_ref(), report.health.as_ref());
    let liquidity = &report.liquidity;
    let figures = [
        ("ticker", "last_price", report.last_price.is_none()),
        ("ticker", "change_24h_pct", report.change_24h_pct.is_none()),
        ("ticker", "high_24h", report.high_24h.is_none()),
        ("ticker", "low_24h", report.low_24h.is_none()),
        ("ticker", "volume_24h", report.volume_24h.is_none()),
        ("ticker", "quote_volume_24h", report.quote_volume_24h.is_none()),
        ("book", "best_bid", report.best_bid.is_none()),
        ("book", "best_ask", report.best_ask.is_none()),
        ("book", "spread_bps", report.spread_bps.is_none()),
        ("book", "mid_price", report.mid_price.is_none()),
        ("book", "micro_price", report.micro_price.is_none()),
        ("book", "depth", depth.is_none()),
        (
            "book",
            "depth.imbalance",
            depth.is_some_and(|depth| depth.imbalance.is_none()),
        ),
        ("flow", "flow", flow.is_none()),
        (
            "flow",
            "flow.orders_per_sec",
            flow.is_some_and(|flow| flow.orders_per_sec.is_none()),
        ),
        ("walls", "liquidity.walls", liquidity.walls.is_none()),
        ("vacuums", "liquidity.vacuums", liquidity.vacuums.is_none()),
        (
            "volume_profile",
            "liquidity.volume_profile",
            liquidity.volume_profile.is_none(),
        ),
        ("anomalies", "anomalies", report.anomalies.is_none()),
        ("health", "health", health.is_none()),
        (
            "health",
            "health.score",
            health.is_some_and(|health| health.score.is_none()),
        ),
    ];
    let null = figures
        .into_iter()
        .filter(|(of, _, is_null)| *of == section && *is_null);
    null.map(|(_, figure, _)| figure).collect()
}

const fn stale_word(status: IngestionStatus) -> Option<&'static str> {
    match status {
        IngestionStatus::Ok => None,
        IngestionStatus::Degraded => Some("degraded"),
        IngestionStatus::Down => Some("down"),
    }
}

fn unknown() -> String {
    "unknown".to_owned()
}

fn or_unknown(value: Option<impl Display>) -> String {
    value.map_or_else(unknown, |value| value.to_string())
}

fn with_unit(value: Option<impl Display>, unit: &str) -> String {
    value.map_or_else(unknown, |value| format!("{value} {unit}"))
}

/// `+1.5`, `-0.2`, `0`.
fn signed(value: f64) -> String {
    if value > 0.0 {
        format!("+{value}")
    } else {
        value.to_string()
    }
}

/// A value as the JSON writes it.
fn word(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => unknown(),
    }
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
