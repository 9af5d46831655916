//! Lines over time, with gaps for unknown values.

use crate::model::{Line, Lines};
use jiff::Timestamp;

use crate::Element;
use crate::chart::{Chart, Slot, Tag, empty_panel, marks, spaced, time_marks};
use crate::number;
use crate::scale::Scale;
use crate::svg::Path;
use crate::time::{self, Window};

/// Line styles, which differ by dashes and by colour; repeated after the last.
const STYLES: [(&str, &str); 4] = [
    ("line first", "dot first"),
    ("line second", "dot second"),
    ("line third", "dot third"),
    ("line fourth", "dot fourth"),
];
/// More tags than this would hide the axis.
const MOST_TAGS: usize = 4;
/// Points that a chart can show side by side; with more, each column keeps its extremes.
const COLUMNS: usize = 400;

pub fn lines(shown: &Lines, slot: Slot<'_>) -> Element {
    let Some(sketch) = Sketch::new(shown) else {
        return empty_panel("No data yet for this period.");
    };
    Chart {
        shapes: sketch.shapes(shown),
        rows: marks(sketch.values.ticks(4), true, number::fixed, |value| sketch.values.from_top(value)),
        columns: time_marks(sketch.window, slot.choose(10, 6), |at| sketch.window.share(at)),
        tags: sketch.tags(shown),
        legend: (shown.lines.len() > 1).then(|| legend(shown)),
        caption: caption(shown),
        ..Chart::default()
    }
    .draw(slot)
}

struct Sketch {
    values: Scale,
    window: Window,
}

impl Sketch {
    fn new(shown: &Lines) -> Option<Self> {
        let known = || shown.lines.iter().flat_map(|line| known(&line.points));
        let values = Scale::over(known().map(|(_, value)| value))?;
        let given = shown.range.and_then(|(low, high)| Scale::over([low, high]));
        let moments = || shown.lines.iter().flat_map(|line| &line.points).map(|(at, _)| *at);
        Some(Self {
            values: given.unwrap_or_else(|| values.with_room(0.08)),
            window: Window::new(moments().min()?, moments().max()?),
        })
    }

    fn shapes(&self, shown: &Lines) -> Vec<Element> {
        let lines = shown.lines.iter().enumerate();
        let drawn = lines.flat_map(|(index, line)| {
            // Single points between two gaps become dots.
            let (connected, alone): (Vec<Run>, Vec<Run>) = runs(line).into_iter().partition(|run| run.len() > 1);
            let connected = connected.iter().fold(Path::default(), |path, run| {
                path.through(thinned(run).into_iter().map(|point| self.place(point)))
            });
            let dots = alone.iter().flatten().fold(Path::default(), |path, point| {
                let (x, y) = self.place(*point);
                path.dot(x, y)
            });
            let (line, dot) = STYLES[index % STYLES.len()];
            [connected.element(line), dots.element(dot)]
        });
        self.zero().into_iter().chain(drawn.flatten()).collect()
    }

    /// A line at zero if the scale crosses it.
    fn zero(&self) -> Option<Element> {
        let is_crossed = self.values.low() < 0.0 && self.values.high() > 0.0;
        let path = Path::default().horizontal(self.values.from_top(0.0));
        is_crossed.then(|| path.element("zero")).flatten()
    }

    fn place(&self, (at, value): (Timestamp, f64)) -> (f64, f64) {
        (self.window.share(at), self.values.from_top(value))
    }

    fn tags(&self, shown: &Lines) -> Vec<Tag> {
        let lines = shown.lines.iter().enumerate().take(MOST_TAGS);
        let tag = |(index, line): (usize, &Line)| {
            let (_, value) = known(&line.points).last()?;
            Some(Tag {
                at: self.values.from_top(value),
                label: number::fixed(value, shown.places),
                class: style(index),
            })
        };
        lines.filter_map(tag).collect()
    }
}

fn style(index: usize) -> &'static str {
    STYLES[index % STYLES.len()].0
}

fn known(points: &[(Timestamp, Option<f64>)]) -> impl DoubleEndedIterator<Item = (Timestamp, f64)> {
    let value = |(at, value): &(Timestamp, Option<f64>)| Some((*at, value.filter(|value| value.is_finite())?));
    points.iter().filter_map(value)
}

/// Consecutive known values.
type Run = Vec<(Timestamp, f64)>;

fn runs(line: &Line) -> Vec<Run> {
    let is_known = |point: &(Timestamp, Option<f64>)| point.1.is_some_and(f64::is_finite);
    let runs = line.points.chunk_by(|a, b| is_known(a) && is_known(b));
    let runs = runs.map(|run| known(run).collect::<Run>());
    runs.filter(|run| !run.is_empty()).collect()
}

/// The visible part of a run: the lowest and highest point of every column, and the ends.
fn thinned(run: &[(Timestamp, f64)]) -> Vec<(Timestamp, f64)> {
    if run.len() <= 2 * COLUMNS {
        return run.to_vec();
    }
    let mut kept = Vec::with_capacity(2 * COLUMNS + 2);
    kept.extend(run.first());
    for column in run.chunks(run.len().div_ceil(COLUMNS)) {
        let by_value = |a: &&(Timestamp, f64), b: &&(Timestamp, f64)| a.1.total_cmp(&b.1);
        let (low, high) = (column.iter().min_by(by_value), column.iter().max_by(by_value));
        let mut extremes: Vec<(Timestamp, f64)> = low.into_iter().chain(high).copied().collect();
        extremes.sort_by_key(|(at, _)| *at);
        kept.extend(extremes);
    }
    kept.extend(run.last());
    kept.dedup();
    kept
}

fn legend(shown: &Lines) -> Element {
    let entry = |(index, line): (usize, &Line)| {
        let stroke = Element::classed("path", style(index)).with("d", "M0 5H28");
        let swatch = Element::new("svg").with("viewBox", "0 0 28 10").with("aria-hidden", "true").child(stroke);
        Element::new("li").child(swatch).text(line.label.clone())
    };
    let entries = shown.lines.iter().enumerate().map(entry);
    Element::classed("ul", "legend").children(spaced(entries))
}

fn caption(shown: &Lines) -> String {
    let moments = || shown.lines.iter().flat_map(|line| &line.points).map(|(at, _)| *at);
    let span = match (moments().min(), moments().max()) {
        (Some(from), Some(to)) => time::span(from, to),
        _ => String::new(),
    };
    let unit = match shown.unit.as_str() {
        "" => String::new(),
        unit => format!(" {unit}"),
    };
    let value = |value: f64| number::fixed(value, shown.places);
    let line = |line: &Line| {
        let values = || known(&line.points).map(|(_, value)| value);
        let Some(last) = values().next_back() else {
            return format!("{}: no data", line.label);
        };
        let low = values().fold(f64::INFINITY, f64::min);
        let high = values().fold(f64::NEG_INFINITY, f64::max);
        let (last, low, high) = (value(last), value(low), value(high));
        format!("{}: last {last}{unit}, from {low} to {high}", line.label)
    };
    let lines: Vec<String> = shown.lines.iter().map(line).collect();
    let has_gaps = shown.lines.iter().any(|line| runs(line).len() > 1);
    let gaps = if has_gaps { " Gaps: no data." } else { "" };
    format!("{}; {span}.{gaps}", lines.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Width;

    fn line(values: &[Option<f64>]) -> Line {
        let at = |index: usize| Timestamp::from_second(index as i64).expect("in range");
        Line {
            label: "spread".to_owned(),
            points: values.iter().enumerate().map(|(index, value)| (at(index), *value)).collect(),
        }
    }

    #[test]
    fn gap_ends_a_run() {
        let values = [Some(1.0), Some(2.0), None, Some(f64::NAN), Some(3.0), None, Some(4.0)];
        let runs: Vec<Vec<f64>> =
            runs(&line(&values)).into_iter().map(|run| run.into_iter().map(|(_, value)| value).collect()).collect();
        assert_eq!(runs, [vec![1.0, 2.0], vec![3.0], vec![4.0]]);
    }

    #[test]
    fn thinning_keeps_spikes_and_ends() {
        let mut values: Vec<Option<f64>> = (0..10_000).map(|index| Some(f64::from(index % 7))).collect();
        values[5_000] = Some(900.0);
        let run = runs(&line(&values)).remove(0);
        let kept = thinned(&run);
        assert!(kept.len() <= 2 * COLUMNS + 2);
        assert!(kept.iter().any(|(_, value)| *value == 900.0));
        assert_eq!((kept.first(), kept.last()), (run.first(), run.last()));
        assert!(kept.windows(2).all(|pair| pair[0].0 <= pair[1].0));
    }

    #[test]
    fn fixed_range_is_kept_and_zero_drawn() {
        let shown = Lines {
            places: 1,
            range: Some((-1.0, 1.0)),
            lines: vec![line(&[Some(-0.5), Some(0.5), None, Some(5.0)])],
            ..Lines::default()
        };
        let slot = Slot { key: "lines", width: Width::Half };
        let html = lines(&shown, slot).to_string();
        for (class, path) in [
            ("zero", "M0 200H1000"),
            ("line first", "M0 300L333.3 100"),
            // A value outside the range is drawn at the edge; the caption has it.
            ("dot first", "M1000 0h0"),
        ] {
            let wanted = format!("<path class=\"{class}\" d=\"{path}\">");
            assert!(html.contains(&wanted), "{wanted} in {html}");
        }
        assert!(html.contains("spread: last 5.0, from −0.5 to 5.0;"), "{html}");
        assert!(html.contains("Gaps: no data."), "{html}");
    }

    #[test]
    fn missing_data_says_so() {
        let shown = Lines { lines: vec![line(&[None, Some(f64::INFINITY)])], ..Lines::default() };
        let slot = Slot { key: "lines", width: Width::Whole };
        assert!(lines(&shown, slot).to_string().starts_with("<p class=\"nothing\">"));
    }
}
