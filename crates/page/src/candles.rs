//! Candles over time, with volume below. Rising candles are hollow, falling ones are filled.

use crate::model::{Candle, Candles, Width};
use jiff::Timestamp;

use crate::Element;
use crate::chart::{Anchor, Chart, Mark, Slot, Tag, Word, empty_panel};
use crate::number;
use crate::scale::Scale;
use crate::svg::{HEIGHT, Path, WIDTH};
use crate::time::{self, Window};

/// Shares of the height: prices, a gap, then volume.
const PRICES_END: f64 = 0.76;
const VOLUME_BEGINS: f64 = 0.82;
/// Share of a candle's time that its body fills.
const BODY: f64 = 0.64;

pub fn candles(shown: &Candles, slot: Slot<'_>) -> Element {
    let drawable: Vec<Candle> = shown.candles.iter().copied().filter(is_drawable).collect();
    let Some(sketch) = Sketch::new(&drawable) else {
        return empty_panel(format!("There are no candles of {} to draw.", shown.interval));
    };
    let most_times = if slot.width == Width::Whole { 10 } else { 6 };
    let rows = sketch.price_marks().into_iter().chain(sketch.volume_mark()).collect();
    Chart {
        shapes: sketch.shapes(&drawable),
        words: sketch.volume_word(&shown.volume_unit).into_iter().collect(),
        rows,
        columns: sketch.time_marks(drawable.len().min(most_times)),
        tags: vec![sketch.last_tag(shown.price_places)],
        legend: None,
        caption: caption(shown, &drawable),
    }
    .draw(slot)
}

fn is_drawable(candle: &Candle) -> bool {
    let Candle {
        open, high, low, close, ..
    } = candle;
    [open, high, low, close].into_iter().all(|price| price.is_finite())
}

/// Scales, and what all candles share.
struct Sketch {
    prices: Scale,
    window: Window,
    /// The largest volume, if anything was traded.
    volume: Option<f64>,
    /// Width of one candle as a share of the chart.
    slot: f64,
    last: f64,
}

impl Sketch {
    fn new(candles: &[Candle]) -> Option<Self> {
        let (first, last) = (candles.first()?, candles.last()?);
        let prices = Scale::over(candles.iter().flat_map(|candle| [candle.high, candle.low]))?.with_room(0.04);
        let step = step(candles);
        let end = last.opened.as_millisecond().saturating_add(step);
        let end = Timestamp::from_millisecond(end).unwrap_or(last.opened);
        let window = Window::new(first.opened, end);
        let volumes = candles.iter().map(|candle| candle.volume);
        let volume = volumes.filter(|volume| volume.is_finite()).fold(0.0, f64::max);
        Some(Self {
            prices,
            window,
            volume: (volume > 0.0).then_some(volume),
            slot: (step as f64 / window.millis() as f64).clamp(0.0, 1.0),
            last: last.close,
        })
    }

    /// The lower end of the price area; without volume it fills the chart.
    fn floor(&self) -> f64 {
        if self.volume.is_some() { PRICES_END } else { 1.0 }
    }

    fn height_of(&self, price: f64) -> f64 {
        (1.0 - self.prices.share(price)) * self.floor()
    }

    fn middle_of(&self, at: Timestamp) -> f64 {
        self.window.share(at) + self.slot / 2.0
    }

    fn shapes(&self, candles: &[Candle]) -> Vec<Element> {
        let (rose, fell): (Vec<&Candle>, Vec<&Candle>) = candles.iter().partition(|candle| candle.close >= candle.open);
        let mut last = Path::default();
        last.horizontal(self.height_of(self.last) * HEIGHT);
        let parts = [
            self.volumes(&rose).element("volume rise"),
            self.volumes(&fell).element("volume fall"),
            self.wicks(&rose).element("wick rise"),
            self.wicks(&fell).element("wick fall"),
            self.bodies(&rose).element("body rise"),
            self.bodies(&fell).element("body fall"),
            last.element("last"),
        ];
        parts.into_iter().flatten().collect()
    }

    fn wicks(&self, candles: &[&Candle]) -> Path {
        let mut path = Path::default();
        for candle in candles {
            let x = self.middle_of(candle.opened) * WIDTH;
            let (high, low) = (self.height_of(candle.high), self.height_of(candle.low));
            path.vertical(x, high * HEIGHT, low * HEIGHT);
        }
        path
    }

    fn bodies(&self, candles: &[&Candle]) -> Path {
        let mut path = Path::default();
        let width = self.slot * BODY * WIDTH;
        for candle in candles {
            let (open, close) = (self.height_of(candle.open), self.height_of(candle.close));
            let left = self.middle_of(candle.opened) * WIDTH - width / 2.0;
            path.rectangle(left, open.min(close) * HEIGHT, width, (open - close).abs() * HEIGHT);
        }
        path
    }

    fn volumes(&self, candles: &[&Candle]) -> Path {
        let mut path = Path::default();
        let Some(largest) = self.volume else {
            return path;
        };
        let width = self.slot * BODY * WIDTH;
        for candle in candles.iter().filter(|candle| candle.volume > 0.0) {
            let height = (candle.volume / largest).clamp(0.0, 1.0) * (1.0 - VOLUME_BEGINS) * HEIGHT;
            let left = self.middle_of(candle.opened) * WIDTH - width / 2.0;
            path.rectangle(left, HEIGHT - height, width, height);
        }
        path
    }

    fn price_marks(&self) -> Vec<Mark> {
        let ticks = self.prices.ticks(5);
        let mark = |price: &f64| Mark {
            at: self.height_of(*price),
            label: number::fixed(*price, ticks.places),
            has_line: true,
        };
        ticks.values.iter().map(mark).collect()
    }

    fn volume_mark(&self) -> Option<Mark> {
        self.volume.map(|volume| Mark {
            at: VOLUME_BEGINS,
            label: number::compact(volume),
            has_line: false,
        })
    }

    fn volume_word(&self, unit: &str) -> Option<Word> {
        self.volume.map(|_| Word {
            x: 0.0,
            y: VOLUME_BEGINS,
            text: format!("Volume, {unit}"),
            anchor: Anchor::Start,
        })
    }

    fn time_marks(&self, most: usize) -> Vec<Mark> {
        let ticks = self.window.ticks(most).into_iter();
        let mark = |(at, label)| Mark {
            at: self.middle_of(at),
            label,
            has_line: true,
        };
        ticks.map(mark).filter(|mark| mark.at <= 1.0).collect()
    }

    fn last_tag(&self, places: usize) -> Tag {
        Tag {
            at: self.height_of(self.last),
            label: number::fixed(self.last, places),
            class: "last",
        }
    }
}

/// Milliseconds between two candles: the shortest step, unless that would draw hairlines.
fn step(candles: &[Candle]) -> i64 {
    let opened = |candle: &Candle| candle.opened.as_millisecond();
    let span = match candles {
        [first, .., last] => opened(last) - opened(first),
        _ => return 60_000,
    };
    let steps = candles.windows(2).map(|pair| opened(&pair[1]) - opened(&pair[0]));
    let shortest = steps.filter(|step| *step > 0).min().unwrap_or(60_000);
    let count = i64::try_from(candles.len()).unwrap_or(i64::MAX);
    shortest.max(span / count.saturating_mul(4))
}

fn caption(shown: &Candles, candles: &[Candle]) -> String {
    let (Some(first), Some(last)) = (candles.first(), candles.last()) else {
        return String::new();
    };
    let price = |price: f64| number::fixed(price, shown.price_places);
    let high = candles.iter().map(|candle| candle.high).fold(f64::MIN, f64::max);
    let low = candles.iter().map(|candle| candle.low).fold(f64::MAX, f64::min);
    let volumes = candles.iter().map(|candle| candle.volume);
    let known: Vec<f64> = volumes.filter(|volume| volume.is_finite()).collect();
    let volume = if known.is_empty() {
        "volume unknown".to_owned()
    } else {
        format!("{} {} traded", number::short(known.iter().sum()), shown.volume_unit)
    };
    let change = number::change(first.open, last.close).map_or(String::new(), |change| format!(" ({change})"));
    let count = candles.len();
    let what = if count == 1 { "candle" } else { "candles" };
    let span = time::span(first.opened, last.opened);
    let mut caption = format!(
        "{count} {what} of {}, opened {span}: first price {}, last {}{change}, high {}, low {} {}; {volume}. Hollow candles rose, filled ones fell",
        shown.interval,
        price(first.open),
        price(last.close),
        price(high),
        price(low),
        shown.price_unit,
    );
    caption.push_str(if last.is_open { "; the last is unfinished." } else { "." });
    caption
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candle(index: i64, prices: [f64; 4], volume: f64) -> Candle {
        let [open, high, low, close] = prices;
        Candle {
            opened: Timestamp::from_second(index * 3600).expect("in range"),
            open,
            high,
            low,
            close,
            volume,
            is_open: false,
        }
    }

    fn draw_html(candles: Vec<Candle>) -> String {
        let shown = Candles {
            interval: "1h".to_owned(),
            candles,
            price_unit: "USD".to_owned(),
            volume_unit: "BTC".to_owned(),
            price_places: 1,
        };
        let slot = Slot {
            key: "candles",
            width: Width::Half,
        };
        super::candles(&shown, slot).to_string()
    }

    /// Prices go from 7.76 to 14.24 (8 to 14 with 4 % of room) over 304 units, volumes over the last 72.
    #[test]
    fn two_candles_have_expected_paths() {
        let html = draw_html(vec![
            candle(0, [10.0, 14.0, 8.0, 12.0], 100.0),
            candle(1, [12.0, 13.0, 9.0, 10.0], 50.0),
        ]);
        for (class, path) in [
            ("volume rise", "M90 328h320v72h-320z"),
            ("volume fall", "M590 364h320v36h-320z"),
            ("wick rise", "M250 11.3V292.7"),
            ("wick fall", "M750 58.2V245.8"),
            ("body rise", "M90 105.1h320v93.8h-320z"),
            ("body fall", "M590 105.1h320v93.8h-320z"),
            ("last", "M0 198.9H1000"),
        ] {
            let wanted = format!("<path class=\"{class}\" d=\"{path}\">");
            assert!(html.contains(&wanted), "{wanted} in {html}");
        }
        let caption = "2 candles of 1h, opened from 1970-01-01 00:00 to 01:00 UTC: first price 10.0, last 10.0 (0.00\u{a0}%), high 14.0, low 8.0 USD; 150.0 BTC traded. Hollow candles rose, filled ones fell.";
        assert!(html.contains(caption), "{html}");
    }

    #[test]
    fn prices_fill_chart_without_volume() {
        let html = draw_html(vec![candle(0, [10.0, 14.0, 8.0, 12.0], f64::NAN)]);
        assert!(
            html.contains("volume unknown") && !html.contains("class=\"volume"),
            "{html}"
        );
        assert!(
            html.contains("<path class=\"wick rise\" d=\"M500 14.8V385.2\">"),
            "{html}"
        );
    }

    #[test]
    fn empty_chart_says_so() {
        let html = draw_html(vec![candle(0, [f64::NAN, 14.0, 8.0, 12.0], 1.0)]);
        assert_eq!(html, "<p class=\"nothing\">There are no candles of 1h to draw.</p>");
    }

    #[test]
    fn missing_candles_leave_a_gap() {
        let prices = [10.0, 14.0, 8.0, 12.0];
        let html = draw_html(vec![
            candle(0, prices, 1.0),
            candle(1, prices, 1.0),
            candle(3, prices, 1.0),
        ]);
        assert!(
            html.contains("d=\"M125 11.3V292.7M375 11.3V292.7M875 11.3V292.7\""),
            "{html}"
        );
    }
}
