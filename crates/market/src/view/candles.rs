//! Candles with volume.

use jiff::Timestamp;
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;
use tribune_core::view::{Amount, Candle, Candles, Content, Figure, Headline, Panel, Width};

use super::parts::{panel_or_why, signed, tone_of};
use super::record::{Told, ToldTable, finite, places};
use super::ticker::RATIO_PLACES;
use crate::candles::close_time;

const COLUMNS: [&str; 6] = ["open_time_ms", "open", "high", "low", "close", "volume_base"];

/// The rows that an answer lists, which may be fewer than it is of.
struct Listed<'a> {
    table: &'a ToldTable,
    interval: &'a str,
    /// Candles that the answer is of.
    whole: Option<usize>,
    /// When the last one listed ends.
    ends: Option<Timestamp>,
    /// Its time was not over when the answer was made.
    is_open: bool,
}

impl<'a> Listed<'a> {
    fn of(told: &'a Told) -> Option<Self> {
        let table = told.table("klines")?;
        let interval = told.text("interval").unwrap_or_default();
        let last = table.select(["open_time_ms"])?.last();
        let ends = last.and_then(|[opened]| close_time(interval.parse().ok()?, opened.parse().ok()?));
        let ends = ends.and_then(|millis| Timestamp::from_millisecond(millis).ok());
        let whole = told.text("candles").and_then(|count| count.parse().ok());
        let is_cut = whole.is_some_and(|whole: usize| whole > table.rows.len());
        Some(Self {
            table,
            interval,
            whole: whole.filter(|_| is_cut),
            ends,
            is_open: told.text("last_closed") == Some("false"),
        })
    }

    /// `900 candles`, `385 of 900 candles`.
    fn count(&self) -> String {
        let count = self.table.rows.len();
        let noun = if self.whole.unwrap_or(count) == 1 {
            "candle"
        } else {
            "candles"
        };
        match self.whole {
            Some(whole) => format!("{count} of {whole} {noun}"),
            None => format!("{count} {noun}"),
        }
    }

    /// The best of a column, by `choose`, as it is written.
    fn extreme(&self, name: &str, choose: impl Fn(Decimal, Decimal) -> Decimal) -> Option<String> {
        let prices = self.table.select([name])?;
        let prices = prices.filter_map(|[price]| price.parse::<Decimal>().ok());
        prices.reduce(choose).map(|price| price.normalize().to_string())
    }
}

/// `None` if the answer has no candles in it at all.
pub(crate) fn candles(told: &Told) -> Option<Panel> {
    let listed = Listed::of(told)?;
    let prices = listed
        .table
        .select(COLUMNS)?
        .flat_map(|[_, open, high, low, close, _]| [open, high, low, close]);
    let price_places = places(prices);
    let mut candles: Vec<Candle> = listed.table.select(COLUMNS)?.filter_map(candle).collect();
    if let Some(last) = candles.last_mut() {
        last.is_open = listed.is_open;
    }
    let note = format!(
        "{} of {}, volume in {}; {}. Exact.",
        listed.count(),
        listed.interval,
        told.base,
        if listed.is_open {
            "the last is unfinished"
        } else {
            "all are closed"
        },
    );
    let content = if candles.is_empty() {
        let reason = told.text("reason").unwrap_or("the exchange has no candles of it");
        Err(reason.to_owned())
    } else {
        Ok((
            Content::Candles(Candles {
                interval: listed.interval.to_owned(),
                candles,
                price_unit: told.quote.clone(),
                volume_unit: told.base.clone(),
                price_places,
            }),
            Some(note),
        ))
    };
    Some(panel_or_why(
        "candles",
        &format!("{} candles", listed.interval),
        Width::Whole,
        content,
    ))
}

/// What the headline has of an answer: of one whose list is cut it is of the list, and the answer's own figures stand
/// beside it.
pub(crate) fn shown(told: &Told) -> &'static [&'static str] {
    match Listed::of(told) {
        Some(listed) if listed.whole.is_none() => &["high_price", "low_price", "candles"],
        _ => &[],
    }
}

/// The last close that is drawn, when that was, and how far it is from the first open. `None` if there are no candles.
pub(crate) fn headline(told: &Told) -> Option<Headline> {
    let listed = Listed::of(told)?;
    let rows = || listed.table.select(["open", "close"]);
    let ([open, _], [_, close]) = (rows()?.next()?, rows()?.last()?);
    let figure = |label: &str, price: Option<String>| match price {
        Some(price) => Figure::new(label, Amount::new(price, &told.quote)),
        None => Figure::unknown(label, "no candle has a price"),
    };
    let change = change_pct(open, close).map(|change| {
        let unit = match listed.table.rows.len() {
            1 => "% over 1 candle".to_owned(),
            drawn => format!("% over {drawn} candles"),
        };
        (Amount::new(signed(&change.to_string()), unit), tone_of(change.to_f64()))
    });
    // A price of the past is not as young as the answer that has it.
    let ended = listed.ends.filter(|_| !listed.is_open);
    Some(Headline {
        label: if listed.is_open { "Last price" } else { "Last close" }.to_owned(),
        value: Amount::new(close, &told.quote),
        change,
        as_of: ended.or(told.as_of),
        age_ms: told.age_ms().filter(|_| ended.is_none()),
        figures: vec![
            figure("Highest", listed.extreme("high", Decimal::max)),
            figure("Lowest", listed.extreme("low", Decimal::min)),
        ],
    })
}

fn change_pct(from: &str, to: &str) -> Option<Decimal> {
    let (from, to) = (from.parse::<Decimal>().ok()?, to.parse::<Decimal>().ok()?);
    let share = to.checked_sub(from)?.checked_div(from)?;
    Some(
        share
            .checked_mul(Decimal::ONE_HUNDRED)?
            .round_dp(RATIO_PLACES)
            .normalize(),
    )
}

/// How many there are.
pub(crate) fn count(told: &Told) -> usize {
    told.table("klines").map_or(0, |table| table.rows.len())
}

/// What is not a number is not drawn.
fn candle([opened, open, high, low, close, volume]: [&str; 6]) -> Option<Candle> {
    Some(Candle {
        opened: Timestamp::from_millisecond(opened.parse().ok()?).ok()?,
        open: finite(open)?,
        high: finite(high)?,
        low: finite(low)?,
        close: finite(close)?,
        volume: finite(volume)?,
        is_open: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tribune_core::{Document, DocumentId};

    #[test]
    fn a_change_is_of_the_first_open() {
        // (110 − 80)/80 = 37.5 %; (2 − 3)/3 = −33.333… %.
        assert_eq!(
            change_pct("80", "110").map(|change| change.to_string()).as_deref(),
            Some("37.5")
        );
        assert_eq!(
            change_pct("3", "2").map(|change| change.to_string()).as_deref(),
            Some("-33.333")
        );
        assert_eq!((change_pct("0", "1"), change_pct("NaN", "1")), (None, None));
    }

    /// An answer of minutes from 00:00 on, of which the first two are listed.
    fn told(candles: usize, as_of: &str, last_closed: bool) -> Told {
        let about = json!({"symbol": "BTCUSDT", "base_asset": "BTC", "quote_asset": "USDT"});
        let first = "2026-11-16T00:00:00Z"
            .parse::<Timestamp>()
            .expect("a time")
            .as_millisecond();
        let document = Document {
            id: DocumentId::parse("klines:BTCUSDT:1m").expect("an id"),
            title: "BTCUSDT 1m candles".to_owned(),
            text: format!(
                "Words.\n\nData:\nage_ms: 7\nhigh_price: 500\nlow_price: 1\ninterval: 1m\ncandles: {candles}\n\
                 last_closed: {last_closed}\n\nklines (open_time_ms,open,high,low,close,volume_base,trades):\n\
                 {first},100,120,99,110,1,1\n{},110,115,90,105,1,1",
                first + 60_000
            ),
            url: None,
            as_of: as_of.parse().ok(),
            metadata: about.as_object().cloned().expect("an object"),
            passages: Vec::new(),
        };
        Told::read(&document).expect("an answer")
    }

    /// Of 900 candles the first two are listed, hours before the answer: neither is its price the last, nor is it open.
    #[test]
    fn a_list_that_is_cut_is_shown_as_what_it_is() {
        let told = told(900, "2026-11-16T15:00:30Z", true);
        let shown_here = headline(&told).expect("a headline");
        assert_eq!((&*shown_here.label, &*shown_here.value.text), ("Last close", "105"));
        let ended = "2026-11-16T00:01:59.999Z".parse::<Timestamp>().expect("a time");
        assert_eq!((shown_here.as_of, shown_here.age_ms), (Some(ended), None));
        // (105 − 100)/100 of the two that are drawn, and their range.
        let (change, _) = shown_here.change.expect("a change");
        assert_eq!(change, Amount::new("+5", "% over 2 candles"));
        let range: Vec<_> = shown_here
            .figures
            .iter()
            .filter_map(|figure| Some(&*figure.value.as_ref()?.text))
            .collect();
        assert_eq!(range, ["120", "90"]);
        let panel = candles(&told).expect("a panel");
        let note = panel.note.expect("a note");
        assert!(
            note.contains("2 of 900 candles of 1m") && note.contains("all are closed"),
            "{note}"
        );
        let Content::Candles(drawn) = panel.content else {
            panic!()
        };
        assert!(drawn.candles.iter().all(|candle| !candle.is_open));
        assert!(shown(&told).is_empty(), "the answer's own figures are told beside");
    }

    #[test]
    fn the_newest_candle_is_the_price_now() {
        let told = told(2, "2026-11-16T00:01:30Z", false);
        let shown_here = headline(&told).expect("a headline");
        assert_eq!((&*shown_here.label, shown_here.as_of), ("Last price", told.as_of));
        assert_eq!(shown_here.age_ms, Some(7));
        let note = candles(&told).and_then(|panel| panel.note).expect("a note");
        assert!(
            note.contains("2 candles of 1m") && note.contains("the last is unfinished"),
            "{note}"
        );
        // The same where the older ones were left out.
        let cut = self::told(900, "2026-11-16T00:01:30Z", false);
        assert_eq!(headline(&cut).expect("a headline").label, "Last price");
    }

    #[test]
    fn what_is_not_a_number_is_not_drawn() {
        let row = ["0", "1", "2", "0.5", "1.5", "10"];
        assert!(candle(row).is_some());
        for place in 0..6 {
            for odd in ["NaN", "inf", "", "null", "1e400"] {
                let mut row = row;
                row[place] = odd;
                assert_eq!(candle(row), None, "{odd} at {place}");
            }
        }
    }
}
