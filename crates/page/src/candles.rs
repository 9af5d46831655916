//! Candles over time, with volume below. Rising candles are hollow, falling ones are filled.

use crate::model::{Candle, Candles};
use jiff::Timestamp;

use crate::Element;
use crate::chart::{Chart, Mark, Slot, Tag, Word, empty_panel, marks, time_marks};
use crate::number;
use crate::scale::Scale;
use crate::svg::Path;
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
    let mut chart = Chart {
        shapes: sketch.shapes(&drawable),
        rows: marks(sketch.prices.ticks(5), true, number::fixed, |price| sketch.height_of(price)),
        columns: time_marks(sketch.window, drawable.len().min(slot.choose(10, 6)), |at| sketch.middle_of(at)),
        tags: vec![Tag {
            at: sketch.height_of(sketch.last),
            label: number::fixed(sketch.last, shown.price_places),
            class: "last",
        }],
        caption: caption(shown, &drawable),
        ..Chart::default()
    };
    if let Some(volume) = sketch.volume {
        chart.rows.push(Mark { at: VOLUME_BEGINS, label: number::compact(volume), has_line: false });
        chart.words.push(Word {
            x: 0.0,
            y: VOLUME_BEGINS,
            text: format!("Volume, {}", shown.volume_unit),
            anchor: "start",
        });
    }
    chart.draw(slot)
}

fn is_drawable(candle: &Candle) -> bool {
    let Candle { open, high, low, close, .. } = candle;
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
        self.prices.from_top(price) * self.floor()
    }

    fn middle_of(&self, at: Timestamp) -> f64 {
        self.window.share(at) + self.slot / 2.0
    }

    fn shapes(&self, candles: &[Candle]) -> Vec<Element> {
        let (rose, fell): (Vec<&Candle>, Vec<&Candle>) = candles.iter().partition(|candle| candle.close >= candle.open);
        let last = Path::default().horizontal(self.height_of(self.last));
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
        candles.iter().fold(Path::default(), |path, candle| {
            let (high, low) = (self.height_of(candle.high), self.height_of(candle.low));
            path.vertical(self.middle_of(candle.opened), high, low)
        })
    }

    fn bodies(&self, candles: &[&Candle]) -> Path {
        candles.iter().fold(Path::default(), |path, candle| {
            let (open, close) = (self.height_of(candle.open), self.height_of(candle.close));
            self.bar(path, candle, open.min(close), (open - close).abs())
        })
    }

    fn volumes(&self, candles: &[&Candle]) -> Path {
        let Some(largest) = self.volume else {
            return Path::default();
        };
        let traded = candles.iter().filter(|candle| candle.volume > 0.0);
        traded.fold(Path::default(), |path, candle| {
            let height = (candle.volume / largest).clamp(0.0, 1.0) * (1.0 - VOLUME_BEGINS);
            self.bar(path, candle, 1.0 - height, height)
        })
    }

    /// A rectangle as wide as a candle's body.
    fn bar(&self, path: Path, candle: &Candle, top: f64, height: f64) -> Path {
        let width = self.slot * BODY;
        path.rectangle(self.middle_of(candle.opened) - width / 2.0, top, width, height)
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
    let end = if last.is_open { "; the last is unfinished" } else { "" };
    format!(
        "{count} {what} of {}, opened {span}: first price {}, last {}{change}, high {}, low {} {}; {volume}. Hollow candles rose, filled ones fell{end}.",
        shown.interval,
        price(first.open),
        price(last.close),
        price(high),
        price(low),
        shown.price_unit,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Width;

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
        let slot = Slot { key: "candles", width: Width::Half };
        super::candles(&shown, slot).to_string()
    }

    /// Prices go from 7.76 to 14.24 (8 to 14 with 4 % of room) over 304 units, volumes over the last 72.
    #[test]
    fn two_candles_have_expected_paths() {
        let html = draw_html(vec![candle(0, [10.0, 14.0, 8.0, 12.0], 100.0), candle(1, [12.0, 13.0, 9.0, 10.0], 50.0)]);
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
        assert!(html.contains("volume unknown") && !html.contains("class=\"volume"), "{html}");
        assert!(html.contains("<path class=\"wick rise\" d=\"M500 14.8V385.2\">"), "{html}");
    }

    #[test]
    fn empty_chart_says_so() {
        let html = draw_html(vec![candle(0, [f64::NAN, 14.0, 8.0, 12.0], 1.0)]);
        assert_eq!(html, "<p class=\"nothing\">There are no candles of 1h to draw.</p>");
    }

    #[test]
    fn missing_candles_leave_a_gap() {
        let prices = [10.0, 14.0, 8.0, 12.0];
        let html = draw_html(vec![candle(0, prices, 1.0), candle(1, prices, 1.0), candle(3, prices, 1.0)]);
        assert!(html.contains("d=\"M125 11.3V292.7M375 11.3V292.7M875 11.3V292.7\""), "{html}");
    }
}
