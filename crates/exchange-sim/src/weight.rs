//! Request weight per minute: 429 above the limit, 418 for clients that continue.

use crate::interval::{MINUTE, Millis, SECOND};
use crate::settings::Limits;

/// A refusal: 429 or 418, and how many seconds to wait.
pub type Refusal = (u16, u64);

/// Counts for all clients together: on loopback they have one address.
#[derive(Debug, Default)]
pub struct WeightMeter {
    minute: Millis,
    /// In this minute.
    pub used: u32,
    refused: u32,
    banned_until: Millis,
}

impl WeightMeter {
    pub fn charge(&mut self, limits: &Limits, weight: u32, now: Millis) -> Result<(), Refusal> {
        if now < self.banned_until {
            return Err((418, seconds_until(self.banned_until, now)));
        }
        let minute = now.div_euclid(MINUTE);
        if self.minute != minute {
            *self = Self { minute, ..Self::default() };
        }
        // Refused requests count too, as on the exchange.
        self.used = self.used.saturating_add(weight);
        if self.used <= limits.weight_per_minute {
            return Ok(());
        }
        self.refused += 1;
        if self.refused > limits.rejections_before_ban {
            self.banned_until = now.saturating_add(limits.ban.as_millis().try_into().unwrap_or(Millis::MAX));
            return Err((418, seconds_until(self.banned_until, now)));
        }
        Err((429, seconds_until((minute + 1) * MINUTE, now)))
    }
}

fn seconds_until(time: Millis, now: Millis) -> u64 {
    let millis = (time - now).max(0) as u64;
    millis.div_ceil(SECOND as u64).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> Limits {
        Limits { weight_per_minute: 100, rejections_before_ban: 2, ..Limits::default() }
    }

    #[test]
    fn limit_applies_per_minute() {
        let (mut meter, limits) = (WeightMeter::default(), limits());
        assert_eq!((meter.charge(&limits, 100, 61_000), meter.used), (Ok(()), 100));
        assert_eq!(meter.charge(&limits, 1, 90_500), Err((429, 30)));
        assert_eq!(meter.used, 101);
        assert_eq!((meter.charge(&limits, 5, 120_000), meter.used), (Ok(()), 5));
    }

    #[test]
    fn persistent_client_is_banned() {
        let (mut meter, limits) = (WeightMeter::default(), limits());
        assert_eq!(meter.charge(&limits, 100, 60_000), Ok(()));
        for _ in 0..2 {
            assert_eq!(meter.charge(&limits, 1, 60_000), Err((429, 60)));
        }
        assert_eq!(meter.charge(&limits, 1, 60_000), Err((418, 120)));
        assert_eq!(meter.charge(&limits, 1, 121_000), Err((418, 59)));
        assert_eq!(meter.charge(&limits, 1, 180_000), Ok(()));
    }
}
