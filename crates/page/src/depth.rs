//! Cumulative depth as steps on both sides of the mid price.

use crate::model::DepthChart;

use crate::Element;
use crate::chart::{Chart, Slot, Word, empty_panel, marks};
use crate::number;
use crate::scale::Scale;
use crate::svg::{HEIGHT, Path, WIDTH};

type Level = (f64, f64);

/// Levels that are closer to each other look like one.
const CLOSEST_ACROSS: f64 = 1.0 / WIDTH;
const CLOSEST_DOWN: f64 = 1.0 / HEIGHT;

pub fn depth(shown: &DepthChart, slot: Slot<'_>) -> Element {
    let (bids, asks) = (drawable(&shown.bids), drawable(&shown.asks));
    let Some(sketch) = Sketch::new(&bids, &asks) else {
        return empty_panel("The book has no levels to draw.");
    };
    let at_price = |price| sketch.prices.share(price);
    Chart {
        shapes: sketch.shapes(&bids, &asks),
        words: sketch.words(shown),
        rows: marks(
            sketch.quantities.ticks(5),
            true,
            |quantity, _| number::compact(quantity),
            |quantity| sketch.quantities.from_top(quantity),
        ),
        columns: marks(sketch.prices.ticks(slot.choose(9, 5)), false, number::fixed, at_price),
        caption: caption(shown, &bids, &asks),
        ..Chart::default()
    }
    .draw(slot)
}

fn drawable(levels: &[Level]) -> Vec<Level> {
    let is_drawable = |(price, quantity): &Level| price.is_finite() && quantity.is_finite() && *quantity >= 0.0;
    levels.iter().copied().filter(is_drawable).collect()
}

struct Sketch {
    prices: Scale,
    quantities: Scale,
    middle: f64,
}

impl Sketch {
    /// Both sides get the same width, so that the mid price is in the middle.
    fn new(bids: &[Level], asks: &[Level]) -> Option<Self> {
        let best = |side: &[Level]| side.first().map(|(price, _)| *price);
        let middle = match (best(bids), best(asks)) {
            (Some(bid), Some(ask)) => bid / 2.0 + ask / 2.0,
            (best, None) | (None, best) => best?,
        };
        let levels = || bids.iter().chain(asks);
        let farthest = levels().map(|(price, _)| (price - middle).abs()).fold(0.0, f64::max);
        Some(Self {
            prices: Scale::over([middle - farthest, middle + farthest])?,
            quantities: Scale::over(levels().map(|(_, quantity)| *quantity * 1.08).chain([0.0]))?,
            middle,
        })
    }

    fn shapes(&self, bids: &[Level], asks: &[Level]) -> Vec<Element> {
        let middle = Path::default().vertical(self.prices.share(self.middle), 0.0, 1.0);
        let parts =
            [self.steps(bids).element("side bids"), self.steps(asks).element("side asks"), middle.element("middle")];
        parts.into_iter().flatten().collect()
    }

    /// Each level adds its quantity at its price. The line drops after the last level, because what follows is unknown.
    fn steps(&self, side: &[Level]) -> Path {
        let Some((best, _)) = side.first() else {
            return Path::default();
        };
        let start = Path::default().move_to(self.prices.share(*best), 1.0);
        let steps = self.visible(side).into_iter();
        steps.fold(start, |path, (x, y)| path.horizontal_to(x).vertical_to(y)).vertical_to(1.0)
    }

    /// The levels' positions, without those too close to the previous one.
    fn visible(&self, side: &[Level]) -> Vec<(f64, f64)> {
        let mut kept: Vec<(f64, f64)> = Vec::new();
        for (index, (price, quantity)) in side.iter().enumerate() {
            let (x, y) = (self.prices.share(*price), self.quantities.from_top(*quantity));
            let is_visible = |(last_x, last_y): &(f64, f64)| {
                (x - last_x).abs() > CLOSEST_ACROSS || (y - last_y).abs() > CLOSEST_DOWN
            };
            if index + 1 == side.len() || kept.last().is_none_or(is_visible) {
                kept.push((x, y));
            }
        }
        kept
    }

    /// Labels for both sides.
    fn words(&self, shown: &DepthChart) -> Vec<Word> {
        let word = |x, text: &str, anchor| Word { x, y: 0.08, text: text.to_owned(), anchor };
        let middle = number::fixed(self.middle, shown.price_places);
        let mut words = vec![word(0.5, &middle, "middle")];
        if !shown.bids.is_empty() {
            words.push(word(0.02, "Bids", "start"));
        }
        if !shown.asks.is_empty() {
            words.push(word(0.98, "Asks", "end"));
        }
        words
    }
}

fn caption(shown: &DepthChart, bids: &[Level], asks: &[Level]) -> String {
    let side = |best_is: &str, reach: &str, levels: &[Level]| {
        let ((best, _), (worst, total)) = (levels.first()?, levels.last()?);
        Some(format!(
            "{best_is} {} {}, {} {} {reach} {}",
            number::fixed(*best, shown.price_places),
            shown.price_unit,
            number::short(*total),
            shown.quantity_unit,
            number::fixed(*worst, shown.price_places),
        ))
    };
    let bids = side("Best bid", "bid down to", bids).unwrap_or_else(|| "No bids".to_owned());
    let asks = side("best ask", "offered up to", asks).unwrap_or_else(|| "no asks".to_owned());
    format!("{bids}; {asks}.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Width;

    const SLOT: Slot<'_> = Slot { key: "depth", width: Width::Half };

    /// The middle is 100, both sides reach 2 from it, and 3.24 (3 and 8 %) is at the top.
    #[test]
    fn both_sides_are_steps_around_mid() {
        let shown = DepthChart {
            bids: vec![(99.0, 1.0), (98.0, 3.0)],
            asks: vec![(101.0, 2.0), (102.0, 2.5)],
            price_unit: "USD".to_owned(),
            quantity_unit: "BTC".to_owned(),
            price_places: 1,
        };
        let html = depth(&shown, SLOT).to_string();
        for (class, path) in [
            ("side bids", "M250 400H250V276.5H0V29.6V400"),
            ("side asks", "M750 400H750V153.1H1000V91.4V400"),
            ("middle", "M500 0V400"),
        ] {
            let wanted = format!("<path class=\"{class}\" d=\"{path}\">");
            assert!(html.contains(&wanted), "{wanted} in {html}");
        }
        let caption =
            "Best bid 99.0 USD, 3.000 BTC bid down to 98.0; best ask 101.0 USD, 2.500 BTC offered up to 102.0.";
        assert!(html.contains(caption), "{html}");
    }

    #[test]
    fn thousands_of_levels_are_thinned() {
        let bids: Vec<Level> = (0..5_000).map(|index| (100.0 - f64::from(index) / 1e6, f64::from(index))).collect();
        let shown = DepthChart { bids, ..DepthChart::default() };
        let html = depth(&shown, SLOT).to_string();
        assert!(html.matches('V').count() < 600, "{}", html.len());
        assert!(html.contains("H0V29.6V400"), "the last level is kept: {html}");
    }

    #[test]
    fn one_or_both_sides_may_be_empty() {
        let bids_only = DepthChart { bids: vec![(99.0, 1.0)], ..DepthChart::default() };
        let html = depth(&bids_only, SLOT).to_string();
        assert!(html.contains("no asks.") && !html.contains("side asks"), "{html}");
        let html = depth(&DepthChart::default(), SLOT).to_string();
        assert_eq!(html, "<p class=\"nothing\">The book has no levels to draw.</p>");
    }
}
