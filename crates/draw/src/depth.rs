//! How much is bid and offered up to a price, as steps on both sides of the middle.

use tribune_core::view::{DepthChart, Width};

use crate::Element;
use crate::chart::{Anchor, Chart, Mark, Place, Word, nothing};
use crate::number;
use crate::scale::Scale;
use crate::svg::{HEIGHT, Path, WIDTH};

type Level = (f64, f64);

pub fn depth(shown: &DepthChart, place: Place<'_>) -> Element {
    let (bids, asks) = (drawable(&shown.bids), drawable(&shown.asks));
    let Some(sketch) = Sketch::new(&bids, &asks) else {
        return nothing("The book has no levels to draw.");
    };
    let is_wide = place.width == Width::Whole;
    Chart {
        shapes: sketch.shapes(&bids, &asks),
        words: sketch.words(shown),
        rows: sketch.quantity_marks(),
        columns: sketch.price_marks(if is_wide { 9 } else { 5 }),
        tags: Vec::new(),
        legend: None,
        caption: caption(shown, &bids, &asks),
    }
    .draw(place)
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
    /// Both sides get the same width, so that the middle of the chart is that of the book.
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

    fn x(&self, price: f64) -> f64 {
        self.prices.share(price) * WIDTH
    }

    fn y(&self, quantity: f64) -> f64 {
        (1.0 - self.quantities.share(quantity)) * HEIGHT
    }

    fn shapes(&self, bids: &[Level], asks: &[Level]) -> Vec<Element> {
        let mut middle = Path::default();
        let x = self.x(self.middle);
        middle.line((x, 0.0), (x, HEIGHT));
        let parts = [
            self.area(bids).element("side bids"),
            self.area(asks).element("side asks"),
            self.edge(bids).element("edge bids"),
            self.edge(asks).element("edge asks"),
            middle.element("middle"),
        ];
        parts.into_iter().flatten().collect()
    }

    /// The steps alone: at a level's price what is there is added, and it holds until the next.
    fn edge(&self, side: &[Level]) -> Path {
        let mut path = Path::default();
        let Some((best, _)) = side.first() else {
            return path;
        };
        path.move_to(self.x(*best), HEIGHT);
        let mut reached = HEIGHT;
        for (price, quantity) in side {
            let x = self.x(*price);
            path.line_to(x, reached);
            reached = self.y(*quantity);
            path.line_to(x, reached);
        }
        path
    }

    fn area(&self, side: &[Level]) -> Path {
        let mut path = self.edge(side);
        if let Some((worst, _)) = side.last() {
            path.line_to(self.x(*worst), HEIGHT);
            path.close();
        }
        path
    }

    fn quantity_marks(&self) -> Vec<Mark> {
        let ticks = self.quantities.ticks(5);
        let mark = |quantity: &f64| Mark {
            at: self.y(*quantity) / HEIGHT,
            label: number::compact(*quantity),
            has_line: true,
        };
        ticks.values.iter().map(mark).collect()
    }

    fn price_marks(&self, about: usize) -> Vec<Mark> {
        let ticks = self.prices.ticks(about);
        let mark = |price: &f64| Mark {
            at: self.prices.share(*price),
            label: number::fixed(*price, ticks.places),
            has_line: false,
        };
        ticks.values.iter().map(mark).collect()
    }

    /// Which side is which, in words.
    fn words(&self, shown: &DepthChart) -> Vec<Word> {
        let word = |x, text: &str, anchor| Word {
            x,
            y: 0.08,
            text: text.to_owned(),
            anchor,
        };
        let middle = number::fixed(self.middle, shown.price_places);
        let mut words = vec![word(0.5, &middle, Anchor::Middle)];
        if !shown.bids.is_empty() {
            words.push(word(0.02, "Bids", Anchor::Start));
        }
        if !shown.asks.is_empty() {
            words.push(word(0.98, "Asks", Anchor::End));
        }
        words
    }
}

fn caption(shown: &DepthChart, bids: &[Level], asks: &[Level]) -> String {
    let side = |name: &str, what: &str, levels: &[Level]| match (levels.first(), levels.last()) {
        (Some((best, _)), Some((worst, total))) => format!(
            "{name} {} {}, {} {} {what} down to {}",
            number::fixed(*best, shown.price_places),
            shown.price_unit,
            number::short(*total),
            shown.quantity_unit,
            number::fixed(*worst, shown.price_places),
        ),
        _ => format!("no {what}"),
    };
    let bids = side("Best bid", "bid", bids);
    let asks = side("best ask", "offered", asks).replace("down to", "up to");
    format!("{bids}; {asks}.")
}
