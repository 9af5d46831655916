//! Badges, links and columns of pages about markets.

use tribune_page::parts::{numbers, words};
use tribune_page::text::capitalised;
use tribune_page::{Badge, Column, Neighbour, Tone};

pub fn simulated(meaning: &str) -> Badge {
    let meaning = meaning.strip_prefix("SIMULATED: ").unwrap_or(meaning);
    Badge { label: "SIMULATED".to_owned(), tone: Tone::Simulated, meaning: Some(capitalised(meaning)) }
}

/// `Order book · Bitcoin / Tether · Binance Spot`.
pub fn subtitle(base: &str, quote: &str, what: Option<&str>) -> String {
    let pair = format!("{base} / {quote} · Binance Spot");
    match what {
        Some(what) => format!("{} · {pair}", capitalised(what)),
        None => pair,
    }
}

pub fn links(symbol: &str, has_report: bool) -> Vec<Neighbour> {
    let report = has_report.then(|| (format!("report:{symbol}"), "Report"));
    let all = [
        (format!("ticker:{symbol}"), "Market"),
        (format!("orderbook:{symbol}"), "Order book"),
        (format!("klines:{symbol}:1m"), "1m candles"),
        (format!("klines:{symbol}:1h"), "1h candles"),
        (format!("klines:{symbol}:1d"), "1d candles"),
        (format!("trades:{symbol}"), "Trades"),
        (format!("analytics:volume_profile:{symbol}"), "Volume profile"),
        (format!("analytics:order_flow:{symbol}"), "Order flow"),
        (format!("analytics:health:{symbol}"), "Health"),
    ];
    let link = |(id, title): (String, &str)| Neighbour { id, title: title.to_owned(), note: None };
    all.into_iter().chain(report).map(link).collect()
}

/// The columns of a table of score components.
pub fn of_components() -> Vec<Column> {
    vec![words("Component"), numbers("Points"), numbers("Weight"), numbers("Contribution"), words("From")]
}

/// `1.2 bps of mid`; a longer unit goes in brackets.
pub fn input_of(input: &str, unit: &str) -> String {
    if unit.split(' ').count() > 3 { format!("{input} ({unit})") } else { format!("{input} {unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_is_linked_where_there_is_one() {
        let ids = |has_report| -> Vec<String> {
            let links = links("BTCUSDT", has_report);
            links.into_iter().map(|link| link.id).collect()
        };
        assert_eq!((ids(true).len(), ids(false).len()), (10, 9));
        assert!(
            ids(true).contains(&"klines:BTCUSDT:1d".to_owned()) && ids(true).contains(&"report:BTCUSDT".to_owned())
        );
        assert!(!ids(false).contains(&"report:BTCUSDT".to_owned()));
    }

    #[test]
    fn subtitle_names_pair_and_venue() {
        assert_eq!(subtitle("Bitcoin", "Tether", None), "Bitcoin / Tether · Binance Spot");
        assert_eq!(subtitle("XYZ", "Tether", Some("order book")), "Order book · XYZ / Tether · Binance Spot");
    }
}
