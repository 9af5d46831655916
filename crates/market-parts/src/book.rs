//! Charts of an order book: depth, ladder, and spread and imbalance of the last minutes.

use jiff::Timestamp;
use rust_decimal::Decimal;
use tribune_analytics::{HISTORY_SECS, IMBALANCE_LEVELS, Sample, Touch};
use tribune_binance::{Depth, Level, Millis, Quantity};
use tribune_page::parts::panel_or_why;
use tribune_page::text::{padded, places, ratio_places};
use tribune_page::{Amount, Content, DepthChart, Ladder, Line, Lines, Panel, Rung, Width};

/// Why figures that need a live book are missing.
pub const NOT_KEPT: &str = "this book is not kept live: the live-book limit is reached";
const RUNGS: usize = 12;
/// The depth chart covers this distance from the mid, in percent.
const CHART_PCT: f64 = 1.0;
/// The depth chart has at least this many levels per side.
const FEWEST_LEVELS: usize = 20;
/// Points drawn per side; more are indistinguishable.
const MOST_POINTS: usize = 160;
const FEWEST_SAMPLES: usize = 3;

/// The assets of a market, and the decimal places of its prices.
#[derive(Debug, Clone)]
pub struct Pair {
    pub base: String,
    pub quote: String,
    pub price_places: usize,
}

/// A level, and the quantity up to it.
struct Step {
    level: Level,
    total: Quantity,
}

/// Best first; ends where the sum overflows.
fn steps(levels: impl Iterator<Item = Level>) -> impl Iterator<Item = Step> {
    levels.scan(Quantity::ZERO, |total, level| {
        *total = total.checked_add(level.quantity)?;
        Some(Step { level, total: *total })
    })
}

pub fn depth_chart(depth: &Depth, pair: &Pair) -> Panel {
    let touch = Touch::of(depth).map_err(|reason| reason.to_string());
    let drawn = touch.map(|touch| {
        let mid = (touch.bid().price.as_f64() + touch.ask().price.as_f64()) / 2.0;
        let (bids, asks) = (near(depth.bids.known(), mid), near(depth.asks.known(), mid));
        let (base, bid_count, ask_count) = (&pair.base, bids.len(), asks.len());
        let note = format!(
            "Quantity up to each price, in {base}: {bid_count} bid and {ask_count} ask levels, the best {FEWEST_LEVELS} a side and those within {CHART_PCT} % of the mid. Exact."
        );
        let chart = DepthChart {
            bids: thinned(bids),
            asks: thinned(asks),
            price_unit: pair.quote.clone(),
            quantity_unit: pair.base.clone(),
            price_places: pair.price_places,
        };
        (Content::Depth(chart), Some(note))
    });
    panel_or_why("depth", "Depth", Width::Half, drawn)
}

fn near(levels: impl Iterator<Item = Level>, mid: f64) -> Vec<(f64, f64)> {
    steps(levels)
        .map(|step| (step.level.price.as_f64(), step.total.as_f64()))
        .enumerate()
        .take_while(|(at, (price, _))| *at < FEWEST_LEVELS || (price - mid).abs() <= mid * CHART_PCT / 100.0)
        .map(|(_, point)| point)
        .collect()
}

/// At most [`MOST_POINTS`] of the points, evenly, with the first and the last.
fn thinned(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    if points.len() <= MOST_POINTS {
        return points;
    }
    let last = points.len() - 1;
    (0..MOST_POINTS).map(|at| points[at * last / (MOST_POINTS - 1)]).collect()
}

pub fn ladder(depth: &Depth, pair: &Pair) -> Panel {
    let bids: Vec<Step> = steps(depth.bids.known().take(RUNGS)).collect();
    let asks: Vec<Step> = steps(depth.asks.known().take(RUNGS)).collect();
    let both = || bids.iter().chain(&asks);
    let largest = both().map(|step| step.total.as_f64()).fold(0.0, f64::max);
    let quantities: Vec<String> = both().map(|step| step.total.to_string()).collect();
    let quantity_places = places(quantities.iter().map(String::as_str));
    let rung = |step: &Step| Rung {
        price: padded(&step.level.price.to_string(), pair.price_places),
        quantity: padded(&step.level.quantity.to_string(), quantity_places),
        total: padded(&step.total.to_string(), quantity_places),
        share: (step.total.as_f64() / largest).clamp(0.0, 1.0),
    };
    let content = if depth.is_crossed() {
        Err("the book is crossed (best bid at or above best ask) until it is fetched again".to_owned())
    } else if largest <= 0.0 {
        Err("the order book is empty".to_owned())
    } else {
        let (bid_count, ask_count, base) = (bids.len(), asks.len(), &pair.base);
        let note = format!(
            "The best {bid_count} bids and {ask_count} asks; quantities in {base}, totals from the best price on. Exact."
        );
        let touch = Touch::of(depth).ok();
        let ladder = Ladder {
            spread: touch.map(|touch| Amount::new(touch.spread().to_string(), &pair.quote)),
            bids: bids.iter().map(rung).collect(),
            asks: asks.iter().map(rung).collect(),
            price_unit: pair.quote.clone(),
            quantity_unit: pair.base.clone(),
        };
        Ok((Content::Ladder(ladder), Some(note)))
    };
    panel_or_why("ladder", "Order book", Width::Half, content)
}

/// `samples` are `None` if the book is not kept live.
pub fn spread_line(samples: Option<&[Sample]>, now: Millis) -> Panel {
    let lines = line(samples, now, |sample| sample.spread_bps).map(|points| Lines {
        unit: "bps".to_owned(),
        places: places_of(&points),
        range: None,
        lines: vec![Line { label: "Spread".to_owned(), points }],
    });
    let note = format!("In basis points of the mid, {}. Exact.", window());
    let content = lines.map(|lines| (Content::Lines(lines), Some(note)));
    panel_or_why("spread", "Spread", Width::Half, content)
}

pub fn imbalance_line(samples: Option<&[Sample]>, now: Millis) -> Panel {
    let lines = line(samples, now, |sample| sample.imbalance).map(|points| Lines {
        unit: String::new(),
        places: 2,
        range: Some((-1.0, 1.0)),
        lines: vec![Line { label: "Imbalance".to_owned(), points }],
    });
    let note = format!(
        "(bid − ask)/(bid + ask) of the best {IMBALANCE_LEVELS} levels a side, {}: 1 is all bids, −1 all asks. Sound, but short-lived.",
        window()
    );
    let content = lines.map(|lines| (Content::Lines(lines), Some(note)));
    panel_or_why("imbalance", "Order book imbalance", Width::Half, content)
}

fn window() -> String {
    let minutes = HISTORY_SECS / 60;
    format!("sampled every 2 s for {minutes} minutes; gaps are where the book was not live")
}

/// As many as the smallest takes: a tick of the dearest is thousandths of a basis point.
fn places_of(points: &[(Timestamp, Option<f64>)]) -> usize {
    let known = points.iter().filter_map(|point| point.1).filter(|value| *value != 0.0);
    let smallest = known.map(f64::abs).min_by(f64::total_cmp).unwrap_or_default();
    ratio_places(Decimal::try_from(smallest).unwrap_or_default()) as usize
}

fn line(
    samples: Option<&[Sample]>,
    now: Millis,
    figure: impl Fn(&Sample) -> Option<f32>,
) -> Result<Vec<(Timestamp, Option<f64>)>, String> {
    let samples = samples.ok_or(NOT_KEPT)?;
    let known = samples.iter().filter(|sample| figure(sample).is_some()).count();
    if known < FEWEST_SAMPLES {
        return Err("the book has been watched for a few seconds only; the line begins now".to_owned());
    }
    // By its own digits: those that a longer number would add say nothing.
    let widened = |value: f32| value.to_string().parse::<f64>().ok();
    let at = |millis| Timestamp::from_millisecond(millis).ok();
    let mut points: Vec<_> =
        samples.iter().filter_map(|sample| Some((at(sample.time)?, figure(sample).and_then(widened)))).collect();
    // A book that is not live any more ends before the present, and the line shows that.
    let last = samples.last().map_or(now, |sample| sample.time);
    if now.saturating_sub(last) > 6_000 {
        points.extend(at(last.saturating_add(2_000)).map(|time| (time, None)));
        points.extend(at(now).map(|time| (time, None)));
    }
    Ok(points)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bitcoin() -> Pair {
        Pair { base: "BTC".to_owned(), quote: "USDT".to_owned(), price_places: 2 }
    }
    use proptest::prelude::*;
    use tribune_binance::Observer as _;
    use tribune_binance::testing::{books, depth};

    fn missing(panel: &Panel) -> &str {
        match &panel.content {
            Content::Missing(why) => why,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn ladder_matches_hand_computation() {
        let book = depth(&[("99", "1"), ("98", "2")], &[("101", "1.5"), ("102", "4.5"), ("103", "0.5")]);
        let Content::Ladder(ladder) = ladder(&book, &bitcoin()).content else { panic!("a ladder") };
        // Bids: 1, then 1 + 2 = 3. Asks: 1.5, 6, 6.5, which is the largest. 3/6.5 = 0.4615….
        let totals: Vec<&str> = ladder.asks.iter().map(|rung| &*rung.total).collect();
        assert_eq!(totals, ["1.5", "6.0", "6.5"]);
        assert_eq!((&*ladder.bids[1].price, &*ladder.bids[1].total), ("98.00", "3.0"));
        assert_eq!(ladder.bids[1].share, 3.0 / 6.5);
        assert_eq!((ladder.asks[2].share, ladder.spread), (1.0, Some(Amount::new("2", "USDT"))));
    }

    #[test]
    fn depth_accumulates_from_the_best_price() {
        let book = depth(&[("99", "1"), ("98", "2"), ("50", "7")], &[("101", "1.5")]);
        let Content::Depth(chart) = depth_chart(&book, &bitcoin()).content else { panic!("a chart") };
        // Few levels are drawn however far they are.
        assert_eq!(chart.bids, [(99.0, 1.0), (98.0, 3.0), (50.0, 10.0)]);
        assert_eq!(chart.asks, [(101.0, 1.5)]);
    }

    #[test]
    fn many_levels_are_thinned_and_stay_exact() {
        let points: Vec<(f64, f64)> = (0..1_000).map(|at| (f64::from(at), f64::from(at) * 2.0)).collect();
        let thin = thinned(points);
        assert_eq!((thin.len(), thin[0], thin[159]), (160, (0.0, 0.0), (999.0, 1_998.0)));
        assert!(thin.iter().all(|(price, total)| *total == price * 2.0));
    }

    #[test]
    fn lines_have_gaps_and_end_with_the_book() {
        let watch = tribune_analytics::Watch::default();
        let book = |time| tribune_binance::BookView {
            depth: depth(&[("99", "3")], &[("101", "1")]),
            last_update_id: 1,
            exchange_time: Some(time),
            received: tribune_binance::Moment::now(&tribune_core::SystemClock),
        };
        for time in [0, 2_000, 4_000] {
            let tape = tribune_binance::Tape::new(1_000);
            watch.look(&book(time), &tape, tribune_binance::Beats::default(), time);
        }
        watch.interrupted(5_000);
        let samples = watch.history();
        let values = |panel: Panel| -> Vec<Option<f64>> {
            match panel.content {
                Content::Lines(lines) => lines.lines[0].points.iter().map(|point| point.1).collect(),
                other => panic!("{other:?}"),
            }
        };
        // Mid 100, spread 2: 200 bps; (3 − 1)/4 = 0.5.
        let known = Some(200.0);
        assert_eq!(values(spread_line(Some(&samples), 5_500)), [known, known, known, None]);
        let balance = Some(0.5);
        assert_eq!(
            values(imbalance_line(Some(&samples), 60_000)),
            [balance, balance, balance, None, None, None],
            "and nothing is known until now"
        );
        assert!(missing(&spread_line(Some(&samples[..2]), 5_500)).contains("a few seconds"));
        assert!(missing(&spread_line(Some(&[]), 0)).contains("a few seconds"));
        assert_eq!(missing(&spread_line(None, 0)), NOT_KEPT);
        assert_eq!(missing(&imbalance_line(None, 0)), NOT_KEPT);
    }

    #[test]
    fn spread_of_one_tick_is_visible() {
        let watch = tribune_analytics::Watch::default();
        for time in [0, 2_000, 4_000] {
            let book = tribune_binance::BookView {
                depth: depth(&[("63999.99", "3")], &[("64000", "1")]),
                last_update_id: 1,
                exchange_time: Some(time),
                received: tribune_binance::Moment::now(&tribune_core::SystemClock),
            };
            let tape = tribune_binance::Tape::new(1_000);
            watch.look(&book, &tape, tribune_binance::Beats::default(), time);
        }
        let Content::Lines(lines) = spread_line(Some(&watch.history()), 5_000).content else { panic!("lines") };
        // 0.01/63,999.995 · 10,000 = 0.0015625001….
        let value = lines.lines[0].points[0].1.expect("a spread");
        assert_eq!((lines.places, format!("{value:.5}")), (5, "0.00156".to_owned()));
    }

    #[test]
    fn empty_and_crossed_books_have_a_reason() {
        let empty = Depth::default();
        assert_eq!(missing(&depth_chart(&empty, &bitcoin())), "the book has no bids");
        assert!(missing(&ladder(&empty, &bitcoin())).contains("empty"));
        let crossed = depth(&[("101", "1")], &[("100", "1")]);
        assert!(missing(&ladder(&crossed, &bitcoin())).contains("crossed"));
        assert!(missing(&depth_chart(&crossed, &bitcoin())).contains("crossed"));
        let one_sided = ladder(&depth(&[("99", "1")], &[]), &bitcoin());
        assert!(
            matches!(one_sided.content, Content::Ladder(ladder) if ladder.spread.is_none() && ladder.asks.is_empty())
        );
    }

    proptest! {
        #[test]
        fn shares_and_totals_are_in_order(book in books()) {
            let Content::Ladder(ladder) = ladder(&book, &bitcoin()).content else { return Ok(()) };
            for side in [&ladder.bids, &ladder.asks] {
                prop_assert!(side.iter().all(|rung| (0.0..=1.0).contains(&rung.share)));
                prop_assert!(side.windows(2).all(|pair| pair[0].share <= pair[1].share));
            }
            let Content::Depth(chart) = depth_chart(&book, &bitcoin()).content else { return Ok(()) };
            prop_assert!(chart.bids.windows(2).all(|pair| pair[0].0 > pair[1].0 && pair[0].1 <= pair[1].1));
            prop_assert!(chart.asks.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1));
            prop_assert!(chart.bids.len() <= MOST_POINTS && chart.asks.len() <= MOST_POINTS);
        }
    }
}
