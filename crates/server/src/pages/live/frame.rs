//! What a live page shows, and the events that bring a viewer up to date.

use std::sync::Arc;

use axum::body::Bytes;
use serde_json::Value;
use tribune_page::Region;

/// What a page shows now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Frame {
    /// Key and JSON of each region.
    regions: Vec<(String, Arc<str>)>,
    /// Why the last check failed.
    problem: Option<String>,
}

impl Frame {
    pub(super) fn new(regions: Vec<Region>) -> Self {
        let written = |region: Region| {
            let json = serde_json::to_string(&region.element).unwrap_or_default();
            (region.key, json.into())
        };
        Self { regions: regions.into_iter().map(written).collect(), problem: None }
    }

    /// A frame without regions that says why the last check failed.
    pub(super) fn failed(problem: &str) -> Self {
        Self { problem: Some(problem.to_owned()), ..Self::default() }
    }

    /// The event for a viewer whose last frame was `before`; `None` if nothing changed.
    pub(super) fn since(&self, before: &Self) -> Option<Bytes> {
        if self == before {
            return None;
        }
        if let Some(problem) = &self.problem {
            let data = Value::from(problem.as_str());
            return Some(format!("event: trouble\ndata: {data}\n\n").into());
        }
        // All keys, so that the page can remove regions that are gone.
        let keys: Value = self.regions.iter().map(|(key, _)| key.as_str()).collect();
        let changed = self.regions.iter().filter(|region| !before.regions.contains(region));
        let changed: Vec<String> = changed.map(|(key, json)| format!("{}:{json}", Value::from(key.as_str()))).collect();
        let changed = changed.join(",");
        Some(format!("event: regions\ndata: {{\"keys\":{keys},\"changed\":{{{changed}}}}}\n\n").into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(regions: &[(&str, &str)], problem: Option<&str>) -> Frame {
        let regions = regions.iter().map(|(key, json)| ((*key).to_owned(), (*json).into()));
        Frame { regions: regions.collect(), problem: problem.map(str::to_owned) }
    }

    fn event(frame: &Frame, before: &Frame) -> Option<String> {
        let bytes = frame.since(before)?;
        Some(String::from_utf8(bytes.to_vec()).expect("UTF-8"))
    }

    #[test]
    fn only_changed_regions_are_sent() {
        let nothing = Frame::default();
        let first = frame(&[("head", "[1]"), ("panel-x", "[2]")], None);
        let second = frame(&[("head", "[1]"), ("panel-x", "[3]")], None);
        let all =
            "event: regions\ndata: {\"keys\":[\"head\",\"panel-x\"],\"changed\":{\"head\":[1],\"panel-x\":[2]}}\n\n";
        assert_eq!(event(&first, &nothing).as_deref(), Some(all));
        assert_eq!(event(&first, &first), None);
        let changed = "event: regions\ndata: {\"keys\":[\"head\",\"panel-x\"],\"changed\":{\"panel-x\":[3]}}\n\n";
        assert_eq!(event(&second, &first).as_deref(), Some(changed));
        let less = "event: regions\ndata: {\"keys\":[\"head\"],\"changed\":{}}\n\n";
        assert_eq!(event(&frame(&[("head", "[1]")], None), &first).as_deref(), Some(less));
    }

    #[test]
    fn problem_and_recovery_are_sent_once() {
        let fine = frame(&[("head", "[1]")], None);
        let broken = frame(&[], Some("the exchange is \"down\"\nnow"));
        let expected = "event: trouble\ndata: \"the exchange is \\\"down\\\"\\nnow\"\n\n";
        assert_eq!(event(&broken, &fine).as_deref(), Some(expected));
        assert_eq!(event(&broken, &broken), None);
        assert_eq!(
            event(&fine, &broken).as_deref(),
            Some("event: regions\ndata: {\"keys\":[\"head\"],\"changed\":{\"head\":[1]}}\n\n")
        );
    }
}
