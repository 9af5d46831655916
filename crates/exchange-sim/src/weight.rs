//! Request weight, counted for each address and minute: 429 above the limit, 418 for whoever goes on.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use crate::interval::{MINUTE, Millis, SECOND};
use crate::settings::Limits;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Within,
    /// 429
    TooMuch {
        retry_after_secs: u64,
    },
    /// 418
    Banned {
        retry_after_secs: u64,
    },
}

#[derive(Debug, Default)]
struct Account {
    minute: Millis,
    used: u32,
    rejected: u32,
    banned_until: Millis,
}

#[derive(Debug)]
pub struct Meter {
    limit: u32,
    rejections_before_ban: u32,
    ban: Millis,
    accounts: Mutex<HashMap<IpAddr, Account>>,
}

/// Addresses that are remembered; on loopback there is one.
const MAX_ADDRESSES: usize = 10_000;

impl Meter {
    pub fn new(limits: &Limits) -> Self {
        Self {
            limit: limits.weight_per_minute,
            rejections_before_ban: limits.rejections_before_ban,
            ban: limits.ban.as_millis().try_into().unwrap_or(Millis::MAX / 2),
            accounts: Mutex::default(),
        }
    }

    /// Charges a request; also says what the minute has used so far.
    pub fn charge(&self, address: IpAddr, weight: u32, now: Millis) -> (Verdict, u32) {
        let mut accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        if accounts.len() >= MAX_ADDRESSES && !accounts.contains_key(&address) {
            accounts.clear();
        }
        let account = accounts.entry(address).or_default();
        let verdict = self.judge(account, weight, now);
        (verdict, account.used)
    }

    fn judge(&self, account: &mut Account, weight: u32, now: Millis) -> Verdict {
        if now < account.banned_until {
            let retry_after_secs = seconds_until(account.banned_until, now);
            return Verdict::Banned { retry_after_secs };
        }
        let minute = now.div_euclid(MINUTE);
        if account.minute != minute {
            *account = Account {
                minute,
                ..Account::default()
            };
        }
        // What is refused counts too: the exchange's counter goes on above the limit.
        account.used = account.used.saturating_add(weight);
        if account.used <= self.limit {
            return Verdict::Within;
        }
        account.rejected += 1;
        if account.rejected > self.rejections_before_ban {
            account.banned_until = now.saturating_add(self.ban);
            let retry_after_secs = seconds_until(account.banned_until, now);
            return Verdict::Banned { retry_after_secs };
        }
        let retry_after_secs = seconds_until((minute + 1) * MINUTE, now);
        Verdict::TooMuch { retry_after_secs }
    }
}

fn seconds_until(time: Millis, now: Millis) -> u64 {
    let millis = (time - now).max(0) as u64;
    millis.div_ceil(SECOND as u64).max(1)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn meter() -> Meter {
        Meter::new(&Limits {
            weight_per_minute: 100,
            rejections_before_ban: 2,
            ..Limits::default()
        })
    }

    #[test]
    fn a_minute_has_its_limit_and_the_next_is_new() {
        let meter = meter();
        let home = IpAddr::from(Ipv4Addr::LOCALHOST);
        assert_eq!(meter.charge(home, 100, 61_000), (Verdict::Within, 100));
        let (verdict, used) = meter.charge(home, 1, 90_500);
        assert_eq!(verdict, Verdict::TooMuch { retry_after_secs: 30 });
        assert_eq!(used, 101);
        assert_eq!(meter.charge(home, 5, 120_000), (Verdict::Within, 5));
    }

    #[test]
    fn whoever_goes_on_is_banned() {
        let meter = meter();
        let home = IpAddr::from(Ipv4Addr::LOCALHOST);
        meter.charge(home, 100, 60_000);
        for _ in 0..2 {
            assert!(matches!(meter.charge(home, 1, 60_000).0, Verdict::TooMuch { .. }));
        }
        assert_eq!(
            meter.charge(home, 1, 60_000).0,
            Verdict::Banned { retry_after_secs: 120 }
        );
        assert_eq!(
            meter.charge(home, 1, 121_000).0,
            Verdict::Banned { retry_after_secs: 59 }
        );
        assert_eq!(meter.charge(home, 1, 180_000).0, Verdict::Within);
    }
}
