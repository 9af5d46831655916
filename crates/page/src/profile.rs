//! Volume by price, as bars from the left; the value area is darker, and the point of control is marked.

use crate::model::{ProfileBin, ProfileChart};

use crate::Element;
use crate::chart::{Chart, Slot, Tag, Word, empty_panel, marks};
use crate::number;
use crate::scale::Scale;
use crate::svg::{HEIGHT, Path};

/// Length of the longest bar as a share of the width; the rest is for labels.
const LONGEST: f64 = 0.86;

pub fn profile(shown: &ProfileChart, slot: Slot<'_>) -> Element {
    let bins: Vec<ProfileBin> = shown.bins.iter().copied().filter(is_drawable).collect();
    let Some(sketch) = Sketch::new(&bins) else {
        return empty_panel("Nothing was traded in the window, so there is no volume by price.");
    };
    let at_volume = |volume| sketch.volumes.share(volume) * LONGEST;
    Chart {
        shapes: sketch.shapes(shown, &bins),
        words: sketch.words(shown),
        rows: marks(sketch.prices.ticks(6), true, number::fixed, |price| sketch.prices.from_top(price)),
        columns: marks(sketch.volumes.ticks(slot.choose(8, 5)), false, |volume, _| number::compact(volume), at_volume),
        tags: sketch.tags(shown),
        caption: caption(shown, &bins),
        ..Chart::default()
    }
    .draw(slot)
}

fn is_drawable(bin: &ProfileBin) -> bool {
    bin.from.is_finite() && bin.to.is_finite() && bin.volume.is_finite() && bin.volume >= 0.0
}

struct Sketch {
    prices: Scale,
    /// From zero to the largest volume.
    volumes: Scale,
}

impl Sketch {
    fn new(bins: &[ProfileBin]) -> Option<Self> {
        let prices = Scale::over(bins.iter().flat_map(|bin| [bin.from, bin.to]))?;
        let volume = bins.iter().map(|bin| bin.volume).fold(0.0, f64::max);
        let volumes = Scale::over([0.0, volume]).filter(|_| volume > 0.0)?;
        Some(Self { prices, volumes })
    }

    fn shapes(&self, shown: &ProfileChart, bins: &[ProfileBin]) -> Vec<Element> {
        let is_inside = |bin: &&ProfileBin| {
            let middle = bin.from / 2.0 + bin.to / 2.0;
            shown.value_area.is_some_and(|(low, high)| (low..=high).contains(&middle))
        };
        let (inside, outside): (Vec<&ProfileBin>, Vec<&ProfileBin>) = bins.iter().partition(is_inside);
        let value_area = shown.value_area.map(|(low, high)| {
            let top = self.prices.from_top(high);
            Path::default().rectangle(0.0, top, 1.0, (self.prices.from_top(low) - top).max(0.0))
        });
        let line = |price| self.height_of(price).map(|height| Path::default().horizontal(height));
        let parts = [
            value_area.and_then(|path| path.element("value-area")),
            self.bars(&outside).element("bars outside"),
            self.bars(&inside).element("bars inside"),
            line(shown.poc).and_then(|path| path.element("poc")),
            line(shown.last_price).and_then(|path| path.element("last")),
        ];
        parts.into_iter().flatten().collect()
    }

    fn bars(&self, bins: &[&ProfileBin]) -> Path {
        let traded = bins.iter().filter(|bin| bin.volume > 0.0);
        traded.fold(Path::default(), |path, bin| {
            let top = self.prices.from_top(bin.from.max(bin.to));
            let height = self.prices.from_top(bin.from.min(bin.to)) - top;
            // A thin gap between bars if there is room.
            let gap = (height * 0.12).min(2.0 / HEIGHT);
            let length = self.volumes.share(bin.volume) * LONGEST;
            path.rectangle(0.0, top + gap / 2.0, length, height - gap)
        })
    }

    /// The position of a price from the top; `None` if it is outside.
    fn height_of(&self, price: Option<f64>) -> Option<f64> {
        let price = price.filter(|price| self.prices.contains(*price))?;
        Some(self.prices.from_top(price))
    }

    fn tags(&self, shown: &ProfileChart) -> Vec<Tag> {
        let marked = [(shown.poc, "poc"), (shown.last_price, "last")];
        let tag = |(price, class): (Option<f64>, &'static str)| {
            Some(Tag { at: self.height_of(price)?, label: number::fixed(price?, shown.price_places), class })
        };
        marked.into_iter().filter_map(tag).collect()
    }

    /// Labels on the lines, combined if both lines are at the same height.
    fn words(&self, shown: &ProfileChart) -> Vec<Word> {
        let word = |y, text: &str| Word { x: 0.985, y, text: text.to_owned(), anchor: "end" };
        match (self.height_of(shown.poc), self.height_of(shown.last_price)) {
            (Some(poc), Some(last)) if (poc - last).abs() < 0.05 => vec![word(poc.min(last), "POC, last")],
            (poc, last) => {
                let poc = poc.map(|height| word(height, "POC"));
                poc.into_iter().chain(last.map(|height| word(height, "Last"))).collect()
            }
        }
    }
}

fn caption(shown: &ProfileChart, bins: &[ProfileBin]) -> String {
    let price = |price: f64| number::fixed(price, shown.price_places);
    let unit = &shown.price_unit;
    let volume: f64 = bins.iter().map(|bin| bin.volume).sum();
    let mut parts = vec![format!("{} {} traded", number::short(volume), shown.volume_unit)];
    if let Some(poc) = shown.poc {
        parts.push(format!("busiest price {} {unit} (POC)", price(poc)));
    }
    if let Some((low, high)) = shown.value_area {
        parts.push(format!("value area {} to {} {unit}, shaded", price(low), price(high)));
    }
    if let Some(last) = shown.last_price {
        parts.push(format!("last price {} {unit}", price(last)));
    }
    format!("{}.", parts.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Width;

    /// Prices from 10 to 30 over 400 units; the longest bar takes 860 of 1000.
    #[test]
    fn bars_show_volume_and_value_area() {
        let bin = |from: f64, volume| ProfileBin { from, to: from + 10.0, volume };
        let shown = ProfileChart {
            bins: vec![bin(10.0, 50.0), bin(20.0, 100.0)],
            poc: Some(25.0),
            value_area: Some((20.0, 30.0)),
            last_price: Some(12.0),
            price_unit: "USD".to_owned(),
            volume_unit: "BTC".to_owned(),
            price_places: 1,
        };
        let slot = Slot { key: "profile", width: Width::Half };
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
