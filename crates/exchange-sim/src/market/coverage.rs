//! The periods in which every trade is known. A simulation knows all; a recording has a start and may have gaps.

use crate::interval::Millis;

/// Trades are missing between these two, which are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    pub from: Millis,
    pub to: Millis,
}

#[derive(Debug, Clone)]
pub struct Coverage {
    pub since: Millis,
    /// Whether trades are known at all.
    pub has_trades: bool,
    /// Oldest first.
    pub gaps: Vec<Gap>,
}

impl Default for Coverage {
    /// Every trade there ever was.
    fn default() -> Self {
        Self {
            since: 0,
            has_trades: true,
            gaps: Vec::new(),
        }
    }
}

impl Coverage {
    /// Whether every trade there ever was is known.
    pub const fn is_everything(&self) -> bool {
        self.has_trades && self.since == 0
    }

    /// Whether every trade from `start` to before `end` is known.
    pub fn is_complete(&self, start: Millis, end: Millis) -> bool {
        let overlaps = |gap: &Gap| gap.from < end && gap.to >= start;
        self.has_trades && start >= self.since && !self.gaps.iter().any(overlaps)
    }

    /// The latest part of `start..=now` of which every trade is known: it may be short.
    pub fn latest_complete(&self, start: Millis, now: Millis) -> (Millis, Millis) {
        let begun = || self.gaps.iter().filter(|gap| gap.from < now);
        let end = begun().find(|gap| gap.to > now).map_or(now, |gap| gap.from);
        let over = begun().filter(|gap| gap.to <= end).map(|gap| gap.to).max();
        let start = start.max(self.since);
        (start.max(over.unwrap_or(start)), end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gap_interrupts_what_is_known() {
        let coverage = Coverage {
            gaps: vec![Gap { from: 200, to: 500 }],
            ..Coverage::default()
        };
        assert!(coverage.is_complete(0, 200) && coverage.is_complete(501, 900));
        assert!(!coverage.is_complete(150, 201) && !coverage.is_complete(300, 400) && !coverage.is_complete(500, 600));
        assert_eq!(coverage.latest_complete(0, 150), (0, 150));
        assert_eq!(coverage.latest_complete(0, 300), (0, 200), "within the gap");
        assert_eq!(coverage.latest_complete(0, 700), (500, 700));
    }
}
