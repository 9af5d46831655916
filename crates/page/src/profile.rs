//! Volume by price, as bars from the left; the value area is darker, and the point of control is marked.

use crate::model::{ProfileBin, ProfileChart, Width};

use crate::Element;
use crate::chart::{Anchor, Chart, Mark, Slot, Tag, Word, empty_panel};
use crate::number;
use crate::scale::Scale;
use crate::svg::{HEIGHT, Path, WIDTH};

/// Length of the longest bar as a share of the width; the rest is for labels.
const LONGEST: f64 = 0.86;

pub fn profile(shown: &ProfileChart, slot: Slot<'_>) -> Element {
    let bins: Vec<ProfileBin> = shown.bins.iter().copied().filter(is_drawable).collect();
    let Some(sketch) = Sketch::new(&bins) else {
        return empty_panel("Nothing was traded in the window, so there is no volume by price.");
    };
    let is_wide = slot.width == Width::Whole;
    Chart {
        shapes: sketch.shapes(shown, &bins),
        words: sketch.words(shown),
        rows: sketch.price_marks(),
        columns: sketch.volume_marks(if is_wide { 8 } else { 5 }),
        tags: sketch.tags(shown),
        legend: None,
        caption: caption(shown, &bins),
    }
    .draw(slot)
}

fn is_drawable(bin: &ProfileBin) -> bool {
    bin.from.is_finite() && bin.to.is_finite() && bin.volume.is_finite() && bin.volume >= 0.0
}

struct Sketch {
    prices: Scale,
    /// The largest volume.
    volume: f64,
}

impl Sketch {
    fn new(bins: &[ProfileBin]) -> Option<Self> {
        let prices = Scale::over(bins.iter().flat_map(|bin| [bin.from, bin.to]))?;
        let volume = bins.iter().map(|bin| bin.volume).fold(0.0, f64::max);
        (volume > 0.0).then_some(Self { prices, volume })
    }

    fn y(&self, price: f64) -> f64 {
        (1.0 - self.prices.share(price)) * HEIGHT
    }

    fn shapes(&self, shown: &ProfileChart, bins: &[ProfileBin]) -> Vec<Element> {
        let is_inside = |bin: &&ProfileBin| {
            let middle = bin.from / 2.0 + bin.to / 2.0;
            shown
                .value_area
                .is_some_and(|(low, high)| (low..=high).contains(&middle))
        };
        let (inside, outside): (Vec<&ProfileBin>, Vec<&ProfileBin>) = bins.iter().partition(is_inside);
        let parts = [
            self.value_area(shown).and_then(|path| path.element("value-area")),
            self.bars(&outside).element("bars outside"),
            self.bars(&inside).element("bars inside"),
            self.level(shown.poc).and_then(|path| path.element("poc")),
            self.level(shown.last_price).and_then(|path| path.element("last")),
        ];
        parts.into_iter().flatten().collect()
    }

    fn value_area(&self, shown: &ProfileChart) -> Option<Path> {
        let (low, high) = shown.value_area?;
        let mut path = Path::default();
        let top = self.y(high);
        path.rectangle(0.0, top, WIDTH, (self.y(low) - top).max(0.0));
        Some(path)
    }

    fn bars(&self, bins: &[&ProfileBin]) -> Path {
        let mut path = Path::default();
        for bin in bins.iter().filter(|bin| bin.volume > 0.0) {
            let (top, bottom) = (self.y(bin.from.max(bin.to)), self.y(bin.from.min(bin.to)));
            // A thin gap between bars if there is room.
            let gap = ((bottom - top) * 0.12).min(2.0);
            let length = bin.volume / self.volume * LONGEST * WIDTH;
            path.rectangle(0.0, top + gap / 2.0, length, bottom - top - gap);
        }
        path
    }

    fn level(&self, price: Option<f64>) -> Option<Path> {
        let price = price.filter(|price| self.prices.contains(*price))?;
        let mut path = Path::default();
        path.horizontal(self.y(price));
        Some(path)
    }

    fn price_marks(&self) -> Vec<Mark> {
        let ticks = self.prices.ticks(6);
        let mark = |price: &f64| Mark {
            at: self.y(*price) / HEIGHT,
            label: number::fixed(*price, ticks.places),
            has_line: true,
        };
        ticks.values.iter().map(mark).collect()
    }

    fn volume_marks(&self, about: usize) -> Vec<Mark> {
        let Some(volumes) = Scale::over([0.0, self.volume]) else {
            return Vec::new();
        };
        let mark = |volume: f64| Mark {
            at: volumes.share(volume) * LONGEST,
            label: number::compact(volume),
            has_line: false,
        };
        volumes.ticks(about).values.into_iter().map(mark).collect()
    }

    fn tags(&self, shown: &ProfileChart) -> Vec<Tag> {
        let marked = [(shown.poc, "poc"), (shown.last_price, "last")];
        let tag = |(price, class): (Option<f64>, &'static str)| {
            let price = price.filter(|price| self.prices.contains(*price))?;
            Some(Tag {
                at: self.y(price) / HEIGHT,
                label: number::fixed(price, shown.price_places),
                class,
            })
        };
        marked.into_iter().filter_map(tag).collect()
    }

    /// Labels on the lines, combined if both lines are at the same height.
    fn words(&self, shown: &ProfileChart) -> Vec<Word> {
        let marked = [(shown.poc, "POC"), (shown.last_price, "Last")];
        let height = |price: Option<f64>| {
            let price = price.filter(|price| self.prices.contains(*price))?;
            Some(self.y(price) / HEIGHT)
        };
        let word = |y, text: &str| Word {
            x: 0.985,
            y,
            text: text.to_owned(),
            anchor: Anchor::End,
        };
        match (height(shown.poc), height(shown.last_price)) {
            (Some(poc), Some(last)) if (poc - last).abs() < 0.05 => vec![word(poc.min(last), "POC, last")],
            _ => marked
                .into_iter()
                .filter_map(|(price, text)| Some(word(height(price)?, text)))
                .collect(),
        }
    }
}

fn caption(shown: &ProfileChart, bins: &[ProfileBin]) -> String {
    let price = |price: f64| number::fixed(price, shown.price_places);
    let unit = &shown.price_unit;
    let volume: f64 = bins.iter().map(|bin| bin.volume).sum();
    let mut said = vec![format!("{} {} traded", number::short(volume), shown.volume_unit)];
    if let Some(poc) = shown.poc {
        said.push(format!("busiest price {} {unit} (POC)", price(poc)));
    }
    if let Some((low, high)) = shown.value_area {
        said.push(format!("value area {} to {} {unit}, shaded", price(low), price(high)));
    }
    if let Some(last) = shown.last_price {
        said.push(format!("last price {} {unit}", price(last)));
    }
    format!("{}.", said.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Prices from 10 to 30 over 400 units; the longest bar takes 860 of 1000.
    #[test]
    fn bars_show_volume_and_value_area() {
        let bin = |from: f64, volume| ProfileBin {
            from,
            to: from + 10.0,
            volume,
        };
        let shown = ProfileChart {
            bins: vec![bin(10.0, 50.0), bin(20.0, 100.0)],
            poc: Some(25.0),
            value_area: Some((20.0, 30.0)),
            last_price: Some(12.0),
            price_unit: "USD".to_owned(),
            volume_unit: "BTC".to_owned(),
            price_places: 1,
        };
        let slot = Slot {
            key: "profile",
            width: Width::Half,
        };
        let html = profile(&shown, slot).to_string();
        for (class, path) in [
            ("value-area", "M0 0h1000v200h-1000z"),
            ("bars inside", "M0 1h860v198h-860z"),
            ("bars outside", "M0 201h430v198h-430z"),
            ("poc", "M0 100H1000"),
            ("last", "M0 360H1000"),
        ] {
            let wanted = format!("<path class=\"{class}\" d=\"{path}\">");
            assert!(html.contains(&wanted), "{wanted} in {html}");
        }
        let caption =
            "150.0 BTC traded; busiest price 25.0 USD (POC); value area 20.0 to 30.0 USD, shaded; last price 12.0 USD.";
        assert!(html.contains(caption), "{html}");
    }
}
