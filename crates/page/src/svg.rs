//! Coordinates and paths. Any input gives numbers that a browser can read.

use std::fmt::Write;

use crate::Element;

/// A chart is drawn in a box of this size and stretched to its container; lines and text are not stretched.
pub const WIDTH: f64 = 1000.0;
pub const HEIGHT: f64 = 400.0;
/// The largest coordinate, far outside every chart.
const FARTHEST: f64 = 1e6;

/// At most one decimal place: a tenth of a thousandth of a chart's width is less than a pixel.
pub fn coordinate(value: f64) -> String {
    let tenths = if value.is_finite() {
        (value.clamp(-FARTHEST, FARTHEST) * 10.0).round() as i64
    } else {
        0
    };
    let sign = if tenths < 0 { "-" } else { "" };
    let (whole, tenth) = (tenths.abs() / 10, tenths.abs() % 10);
    if tenth == 0 {
        format!("{sign}{whole}")
    } else {
        format!("{sign}{whole}.{tenth}")
    }
}

/// A share from 0 to 1 as a percentage of the container.
pub fn percent(share: f64) -> String {
    let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
    format!("{}%", coordinate(share * 100.0))
}

/// The outline of any number of shapes with the same style, as one element.
#[derive(Debug, Default)]
pub struct Path(String);

impl Path {
    pub fn move_to(&mut self, x: f64, y: f64) {
        self.step('M', x, y);
    }

    pub fn line_to(&mut self, x: f64, y: f64) {
        self.step('L', x, y);
    }

    /// A horizontal line to `x`.
    pub fn horizontal_to(&mut self, x: f64) {
        let _ = write!(self.0, "H{}", coordinate(x));
    }

    /// A vertical line to `y`.
    pub fn vertical_to(&mut self, y: f64) {
        let _ = write!(self.0, "V{}", coordinate(y));
    }

    /// A horizontal line through the whole box.
    pub fn horizontal(&mut self, y: f64) {
        self.move_to(0.0, y);
        self.horizontal_to(WIDTH);
    }

    /// A vertical line at `x`.
    pub fn vertical(&mut self, x: f64, from: f64, to: f64) {
        self.move_to(x, from);
        self.vertical_to(to);
    }

    /// A line of length zero, which round line ends turn into a dot.
    pub fn dot(&mut self, x: f64, y: f64) {
        self.move_to(x, y);
        self.0.push_str("h0");
    }

    pub fn rectangle(&mut self, x: f64, y: f64, width: f64, height: f64) {
        let (wide, high) = (coordinate(width), coordinate(height));
        self.move_to(x, y);
        let _ = write!(self.0, "h{wide}v{high}h{}z", coordinate(-width));
    }

    /// Writing to a string cannot fail.
    fn step(&mut self, command: char, x: f64, y: f64) {
        let _ = write!(self.0, "{command}{} {}", coordinate(x), coordinate(y));
    }

    /// `None` if nothing was drawn.
    pub fn element(self, class: &'static str) -> Option<Element> {
        (!self.0.is_empty()).then(|| Element::new("path").class(class).with("d", self.0))
    }
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
        let mut path = Path::default();
        path.rectangle(1.0, 2.0, 3.25, 4.0);
        path.move_to(0.0, 0.0);
        path.line_to(10.0, 0.55);
        path.vertical(5.0, 0.0, 9.5);
        path.horizontal(7.0);
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
