//! Coordinates and paths. Any input gives numbers that a browser can read.

use std::fmt::{self, Write};

use crate::Element;

/// A chart is drawn in a box of this size and stretched to its container; lines and text are not stretched.
pub const WIDTH: f64 = 1000.0;
pub const HEIGHT: f64 = 400.0;
/// The largest coordinate, far outside every chart.
const FARTHEST: f64 = 1e6;

/// At most one decimal place: a tenth of a thousandth of a chart's width is less than a pixel.
pub fn coordinate(value: f64) -> String {
    let value = if value.is_finite() { value } else { 0.0 };
    let tenths = (value.clamp(-FARTHEST, FARTHEST) * 10.0).round() as i64;
    (tenths as f64 / 10.0).to_string()
}

/// A share from 0 to 1 as a percentage of the container.
pub fn percent(share: f64) -> String {
    let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
    format!("{}%", coordinate(share * 100.0))
}

/// The outline of any number of shapes with the same style, as one element. Positions and lengths are shares of the box.
#[must_use]
#[derive(Debug, Default)]
pub struct Path(String);

impl Path {
    pub fn move_to(self, x: f64, y: f64) -> Self {
        self.step(format_args!("M{} {}", across(x), down(y)))
    }

    /// A line from point to point.
    pub fn through(self, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let mut points = points.into_iter();
        let Some((x, y)) = points.next() else { return self };
        points.fold(self.move_to(x, y), |path, (x, y)| path.step(format_args!("L{} {}", across(x), down(y))))
    }

    /// A horizontal line to `x`.
    pub fn horizontal_to(self, x: f64) -> Self {
        self.step(format_args!("H{}", across(x)))
    }

    /// A vertical line to `y`.
    pub fn vertical_to(self, y: f64) -> Self {
        self.step(format_args!("V{}", down(y)))
    }

    /// A horizontal line through the whole box.
    pub fn horizontal(self, y: f64) -> Self {
        self.move_to(0.0, y).horizontal_to(1.0)
    }

    /// A vertical line at `x`.
    pub fn vertical(self, x: f64, from: f64, to: f64) -> Self {
        self.move_to(x, from).vertical_to(to)
    }

    /// A line of length zero, which round line ends turn into a dot.
    pub fn dot(self, x: f64, y: f64) -> Self {
        self.move_to(x, y).step(format_args!("h0"))
    }

    pub fn rectangle(self, x: f64, y: f64, width: f64, height: f64) -> Self {
        let (right, left) = (across(width), across(-width));
        self.move_to(x, y).step(format_args!("h{right}v{}h{left}z", down(height)))
    }

    fn step(mut self, step: fmt::Arguments<'_>) -> Self {
        // Writing to a string cannot fail.
        let _ = self.0.write_fmt(step);
        self
    }

    /// `None` if nothing was drawn.
    pub fn element(self, class: &'static str) -> Option<Element> {
        (!self.0.is_empty()).then(|| Element::classed("path", class).with("d", self.0))
    }
}

fn across(share: f64) -> String {
    coordinate(share * WIDTH)
}

fn down(share: f64) -> String {
    coordinate(share * HEIGHT)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn coordinates_are_short_numbers() {
        for (value, written) in [
            (0.0, "0"),
            (-0.04, "0"),
            (12.34, "12.3"),
            (12.96, "13"),
            (-0.5, "-0.5"),
            (f64::NAN, "0"),
            (f64::INFINITY, "0"),
            (1e300, "1000000"),
        ] {
            assert_eq!(coordinate(value), written);
        }
    }

    #[test]
    fn path_is_one_element() {
        let path = Path::default()
            .rectangle(0.001, 0.005, 0.0033, 0.01)
            .through([(0.0, 0.0), (0.01, 0.0015)])
            .vertical(0.005, 0.0, 0.02375)
            .horizontal(0.0175);
        let element = path.element("rise").expect("something was drawn");
        assert_eq!(
            element.to_string(),
            r#"<path class="rise" d="M1 2h3.3v4h-3.3zM0 0L10 0.6M5 0V9.5M0 7H1000"></path>"#
        );
        assert_eq!(Path::default().element("none"), None);
    }

    proptest! {
        #[test]
        fn percentage_is_within_0_and_100(share: f64) {
            let written = percent(share);
            let value: f64 = written.trim_end_matches('%').parse().expect("a number");
            prop_assert!((0.0..=100.0).contains(&value));
        }

        #[test]
        fn coordinates_have_no_exponent(value: f64) {
            let written = coordinate(value);
            prop_assert!(written.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.' || byte == b'-'));
        }
    }
}
