//! Request weight per minute: 429 above the limit, 418 for clients that continue.

use std::sync::Mutex;

use crate::interval::{MINUTE, Millis, SECOND};
use crate::lock::lock;
use crate::settings::Limits;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Within,
    /// 429, and how many seconds to wait.
    OverLimit(u64),
    /// 418, and how many seconds to wait.
    Banned(u64),
}

#[derive(Debug, Default)]
struct Usage {
    minute: Millis,
    used: u32,
    rejected: u32,
    banned_until: Millis,
}

/// Counts for all clients together: on loopback they have one address.
#[derive(Debug)]
pub struct WeightMeter {
    limit: u32,
    rejections_before_ban: u32,
    ban: Millis,
    usage: Mutex<Usage>,
}

impl WeightMeter {
    pub fn new(limits: &Limits) -> Self {
        Self {
            limit: limits.weight_per_minute,
            rejections_before_ban: limits.rejections_before_ban,
            ban: limits.ban.as_millis().try_into().unwrap_or(Millis::MAX / 2),
            usage: Mutex::default(),
        }
    }

    /// Charges a request; returns the verdict and what the minute has used so far.
    pub fn charge(&self, weight: u32, now: Millis) -> (Verdict, u32) {
        let mut usage = lock(&self.usage);
        let verdict = self.judge(&mut usage, weight, now);
        (verdict, usage.used)
    }

    fn judge(&self, usage: &mut Usage, weight: u32, now: Millis) -> Verdict {
        if now < usage.banned_until {
            return Verdict::Banned(seconds_until(usage.banned_until, now));
        }
        let minute = now.div_euclid(MINUTE);
        if usage.minute != minute {
            *usage = Usage { minute, ..Usage::default() };
        }
        // Rejected requests count too, as on the exchange.
        usage.used = usage.used.saturating_add(weight);
        if usage.used <= self.limit {
            return Verdict::Within;
        }
        usage.rejected += 1;
        if usage.rejected > self.rejections_before_ban {
            usage.banned_until = now.saturating_add(self.ban);
            return Verdict::Banned(seconds_until(usage.banned_until, now));
        }
        Verdict::OverLimit(seconds_until((minute + 1) * MINUTE, now))
    }
}

fn seconds_until(time: Millis, now: Millis) -> u64 {
    let millis = (time - now).max(0) as u64;
    millis.div_ceil(SECOND as u64).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meter() -> WeightMeter {
        WeightMeter::new(&Limits { weight_per_minute: 100, rejections_before_ban: 2, ..Limits::default() })
    }

    #[test]
    fn limit_applies_per_minute() {
        let meter = meter();
        assert_eq!(meter.charge(100, 61_000), (Verdict::Within, 100));
        let (verdict, used) = meter.charge(1, 90_500);
        assert_eq!(verdict, Verdict::OverLimit(30));
        assert_eq!(used, 101);
        assert_eq!(meter.charge(5, 120_000), (Verdict::Within, 5));
    }

    #[test]
    fn persistent_client_is_banned() {
        let meter = meter();
        meter.charge(100, 60_000);
        for _ in 0..2 {
            assert!(matches!(meter.charge(1, 60_000).0, Verdict::OverLimit(_)));
        }
        assert_eq!(meter.charge(1, 60_000).0, Verdict::Banned(120));
        assert_eq!(meter.charge(1, 121_000).0, Verdict::Banned(59));
        assert_eq!(meter.charge(1, 180_000).0, Verdict::Within);
    }
}
