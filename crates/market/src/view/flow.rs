//! Who traded with whom: sums of a window, and single trades.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use tribune_core::view::{Amount, Cell, Content, Figure, Headline, Panel, Tone, Width};

use super::parts::{cell, noted, numbers, panel, signed, table, tone_of, toned, words};
use super::record::{Told, ToldTable, finite, padded, places};
use super::words::derived;

/// Trades that a page lists.
const SHOWN_TRADES: usize = 50;
const TRADE_COLUMNS: [&str; 4] = ["time_ms", "price", "quantity_base", "aggressor"];

/// What the headline has.
pub(crate) const SHOWN: &[&str] = &[
    "net_flow_base",
    "net_flow_quote",
    "buy_volume_base",
    "sell_volume_base",
    "trades",
    "orders_per_sec",
    "vwap",
    "order_flow_imbalance",
    "window_secs",
];

/// `None` if the answer is not about order flow.
pub(crate) fn headline(told: &Told) -> Option<Headline> {
    let net = told.text("net_flow_base")?;
    let tone = tone_of(finite(net));
    let worth = told.text("net_flow_quote").map(|worth| {
        let worth = Amount::new(signed(worth), format!("{} in {}", told.quote, seconds(told)));
        (worth, tone)
    });
    Some(Headline {
        label: format!("Net flow, {}", seconds(told)),
        value: Amount::new(signed(net), &told.base),
        change: worth,
        as_of: told.as_of,
        age_ms: told.age_ms(),
        figures: sums(told),
    })
}

fn seconds(told: &Told) -> String {
    let covered = told.number("covered_secs").or_else(|| told.number("window_secs"));
    format!("{} s", (covered.unwrap_or_default() * 10.0).round() / 10.0)
}

fn sums(told: &Told) -> Vec<Figure> {
    let figure = |label: &str, name: &str, unit: &str, tone: Tone| match told.text(name) {
        Some(value) => Figure {
            tone,
            ..Figure::new(label, Amount::new(trimmed(name, value), unit))
        },
        None => Figure::unknown(label, told.text("reason").unwrap_or("it could not be computed")),
    };
    let mut figures = vec![
        figure("Buyers took", "buy_volume_base", &told.base, Tone::Up),
        figure("Sellers gave", "sell_volume_base", &told.base, Tone::Down),
        figure("Trades", "trades", "", Tone::Plain),
        figure("Trades a second", "orders_per_sec", "", Tone::Plain),
        figure("VWAP", "vwap", &told.quote, Tone::Plain),
    ];
    for figure in &mut figures {
        if let Some(amount) = &mut figure.value {
            amount.unit = amount.unit.take().filter(|unit| !unit.is_empty());
        }
    }
    figures.extend(pressure(told));
    figures
}

fn trimmed(name: &str, value: &str) -> String {
    if name == "vwap" {
        return derived(value);
    }
    value.strip_suffix(".0").unwrap_or(value).to_owned()
}

/// What best prices and sizes did meanwhile.
fn pressure(told: &Told) -> Option<Figure> {
    let parts = told.parts("order_flow_imbalance")?;
    let label = "Order-flow imbalance";
    match parts.get("ofi_base").and_then(|ofi| ofi.as_str()) {
        Some(ofi) => Some(Figure {
            tone: tone_of(finite(ofi)),
            note: Some("of the best levels; describes the same seconds, does not predict".to_owned()),
            ..Figure::new(label, Amount::new(signed(ofi), &told.base))
        }),
        None => {
            let why = parts.get("reason").and_then(|reason| reason.as_str());
            Some(Figure::unknown(label, why.unwrap_or("it is not known yet")))
        }
    }
}

/// The same in a panel, for a page that is about more.
pub(crate) fn panel_of_flow(told: &Told) -> Panel {
    let title = "Order flow";
    if told.text("net_flow_base").is_none() {
        let parts = told.parts("flow");
        let why = parts.as_ref().and_then(|flow| flow.get("reason")?.as_str());
        let why = why.unwrap_or("the trades of the last minute are not known");
        return panel("flow", title, Width::Half, Content::Missing(why.to_owned()));
    }
    let net = told.text("net_flow_base").unwrap_or_default();
    let mut figures = vec![Figure {
        tone: tone_of(finite(net)),
        ..Figure::new("Net flow", Amount::new(signed(net), &told.base))
    }];
    figures.extend(sums(told));
    let note = format!(
        "Trades of the last {}{}. Exact sums; they say what was, not what will be.",
        seconds(told),
        if told.is("complete") {
            ""
        } else {
            ", of which some are missing"
        },
    );
    noted(panel("flow", title, Width::Half, Content::Figures(figures)), note)
}

/// `None` if no trades were listed.
pub(crate) fn trades(told: &Told) -> Option<Panel> {
    let listed = told.table("trades")?;
    let rows = rows(listed)?;
    let note = format!(
        "The newest {} trades up to {}, newest first. Exact.",
        rows.len().min(SHOWN_TRADES),
        told.as_of.map_or_else(
            || "now".to_owned(),
            |time| time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
        ),
    );
    let content = if rows.is_empty() {
        Content::Missing("the exchange has no trades of it".to_owned())
    } else {
        let columns = vec![
            words("Time (UTC)"),
            numbers(format!("Price ({})", told.quote)),
            numbers(format!("Quantity ({})", told.base)),
            words("Initiative"),
        ];
        table(columns, rows.into_iter().take(SHOWN_TRADES).collect())
    };
    Some(noted(panel("trades", "Trades", Width::Whole, content), note))
}

fn rows(listed: &ToldTable) -> Option<Vec<Vec<Cell>>> {
    let all = || listed.select(TRADE_COLUMNS);
    let largest = all()?.filter_map(|row| finite(row[2])).fold(0.0, f64::max);
    let price_places = places(all()?.map(|row| row[1]));
    let quantity_places = places(all()?.map(|row| row[2]));
    let format = time_format(all()?.map(|row| row[0]));
    let row = |[time, price, quantity, aggressor]: [&str; 4]| {
        let (who, tone) = match aggressor {
            "buyer" => ("buyer took", Tone::Up),
            "seller" => ("seller gave", Tone::Down),
            other => (other, Tone::Plain),
        };
        let share = finite(quantity).filter(|_| largest > 0.0);
        vec![
            cell(moment(time).map_or_else(|| time.to_owned(), |time| time.strftime(format).to_string())),
            toned(padded(price, price_places), tone),
            Cell {
                share: share.map(|size| (size / largest).clamp(0.0, 1.0)),
                ..cell(padded(quantity, quantity_places))
            },
            toned(who, tone),
        ]
    };
    Some(all()?.map(row).collect())
}

fn moment(millis: &str) -> Option<Timestamp> {
    Timestamp::from_millisecond(millis.parse().ok()?).ok()
}

/// The day is told where there is more than one.
fn time_format<'a>(times: impl Iterator<Item = &'a str>) -> &'static str {
    let mut days = times.filter_map(moment).map(|time| time.to_zoned(TimeZone::UTC).date());
    let first = days.next();
    if days.all(|day| Some(day) == first) {
        "%H:%M:%S%.3f"
    } else {
        "%Y-%m-%d %H:%M:%S%.3f"
    }
}

/// The last trade of those listed.
pub(crate) fn last_trade(told: &Told) -> Option<Headline> {
    let newest = told.table("trades")?.select(TRADE_COLUMNS)?.next()?;
    let [_, price, quantity, aggressor] = newest;
    let tone = if aggressor == "buyer" { Tone::Up } else { Tone::Down };
    let who = if aggressor == "buyer" {
        "a buyer took it"
    } else {
        "a seller gave it"
    };
    Some(Headline {
        label: "Last trade".to_owned(),
        value: Amount::new(price, &told.quote),
        change: None,
        as_of: told.as_of,
        age_ms: told.age_ms(),
        figures: vec![Figure {
            tone,
            note: Some(who.to_owned()),
            ..Figure::new("Quantity", Amount::new(quantity, &told.base))
        }],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(times: [&str; 2]) -> Vec<Vec<String>> {
        let row = |time: &str, price: &str, quantity: &str, who: &str| -> Vec<String> {
            [time, price, quantity, who].map(str::to_owned).into()
        };
        let table = ToldTable {
            name: "trades".to_owned(),
            columns: TRADE_COLUMNS.map(str::to_owned).into(),
            rows: vec![
                row(times[0], "10.5", "2", "buyer"),
                row(times[1], "10.25", "0.5", "seller"),
            ],
        };
        let rows = rows(&table).expect("rows");
        assert_eq!((rows[0][2].share, rows[1][2].share), (Some(1.0), Some(0.25)));
        rows.iter()
            .map(|row| row.iter().map(|cell| cell.text.clone()).collect())
            .collect()
    }

    #[test]
    fn trades_stand_in_line_and_tell_the_day_where_there_are_two() {
        let rows = listed(["1000", "500"]);
        assert_eq!(rows[0], ["00:00:01.000", "10.50", "2.0", "buyer took"]);
        assert_eq!(rows[1], ["00:00:00.500", "10.25", "0.5", "seller gave"]);
        assert_eq!(listed(["86400000", "0"])[0][0], "1970-01-02 00:00:00.000");
        assert_eq!(
            listed(["99999999999999999999", "0"])[0][0],
            "99999999999999999999",
            "no time"
        );
    }
}
