//! Preview tokens: each is valid for one order of one caller, and places it once.

use std::sync::Arc;
use std::time::{Duration, Instant};

use indexmap::IndexMap;
use parking_lot::Mutex;
use ring::digest;
use ring::rand::{SecureRandom, SystemRandom};
use tribune_core::{Clock, Error, Principal, Result};

use super::order::Order;

pub(super) const VALID_FOR: Duration = Duration::from_secs(60);
/// How many previews are kept; the oldest are dropped.
const MAX_KEPT: usize = 100;
/// With a prefix, names stay within the exchange's 36 characters.
const NAME_BYTES: usize = 12;

struct Preview {
    order: Order,
    principal: Principal,
    issued: Instant,
}

/// Tokens that have placed no order yet; what became of the others is in the journal.
pub(super) struct Previews {
    clock: Arc<dyn Clock>,
    pub(super) valid_for: Duration,
    /// By token, oldest first.
    kept: Mutex<IndexMap<String, Preview>>,
}

impl Previews {
    pub(super) fn new(clock: Arc<dyn Clock>, valid_for: Duration) -> Self {
        Self { clock, valid_for, kept: Mutex::default() }
    }

    pub(super) fn issue(&self, order: &Order, principal: &Principal) -> Result<String> {
        let token = random_name("preview-")?;
        let preview = Preview { order: order.clone(), principal: principal.clone(), issued: self.clock.monotonic() };
        let mut kept = self.kept.lock();
        if kept.len() >= MAX_KEPT {
            kept.shift_remove_index(0);
        }
        kept.insert(token.clone(), preview);
        Ok(token)
    }

    /// Whether a token may place an order now; `None` if it is not known. Another caller's counts as unknown, and a token
    /// that is shown for another order is used up.
    pub(super) fn check(&self, token: &str, order: &Order, principal: &Principal) -> Option<Result<()>> {
        let refuse = |why: String| {
            Some(Err(Error::invalid_argument(format!(
                "the order was not sent: {why}; call again without preview_token for a new preview"
            ))))
        };
        let mut kept = self.kept.lock();
        let preview = kept.get(token).filter(|preview| preview.principal == *principal)?;
        if self.clock.monotonic().saturating_duration_since(preview.issued) >= self.valid_for {
            return refuse(format!("the preview is older than {} s", self.valid_for.as_secs()));
        }
        if preview.order != *order {
            kept.shift_remove(token);
            return refuse("the preview was of another order".to_owned());
        }
        Some(Ok(()))
    }

    /// The order of the token is in the journal now.
    pub(super) fn forget(&self, token: &str) {
        self.kept.lock().shift_remove(token);
    }
}

pub(super) fn random_name(prefix: &str) -> Result<String> {
    let mut bytes = [0u8; NAME_BYTES];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| Error::internal("this machine gives no random numbers; nothing was sent"))?;
    Ok(named(prefix, &bytes))
}

/// The client order id for a token: a hash, so that the journal can recognise the token after a restart without revealing
/// it.
pub(super) fn client_order_id(token: &str) -> String {
    let digest = digest::digest(&digest::SHA256, token.as_bytes());
    named("tribune-", &digest.as_ref()[..NAME_BYTES])
}

fn named(prefix: &str, bytes: &[u8]) -> String {
    bytes.iter().fold(prefix.to_owned(), |name, byte| format!("{name}{byte:02x}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::{Side, Terms};
    use tribune_binance::Quantity;
    use tribune_binance::testing::ManualClock;

    fn order(quantity: i128) -> Order {
        Order {
            symbol: "BTCUSDT".to_owned(),
            side: Side::Buy,
            terms: Terms::Market { quantity: Quantity::from_units(quantity) },
        }
    }

    #[test]
    fn token_is_good_for_one_order_of_one_caller_for_a_minute() {
        let clock = Arc::new(ManualClock::at(0));
        let previews = Previews::new(clock.clone(), Duration::from_secs(60));
        let me = Principal::Local;
        let issue = || previews.issue(&order(5), &me).expect("a token");
        let check = |token: &str, quantity| previews.check(token, &order(quantity), &me);
        let why = |outcome: Option<Result<()>>| outcome.expect("known").expect_err("refused").message().to_owned();

        let token = issue();
        assert!(client_order_id(&token).len() <= 36);
        assert!(previews.check(&token, &order(5), &Principal::Anonymous).is_none());
        check(&token, 5).expect("known").expect("valid");
        check(&token, 5).expect("known").expect("still valid: nothing was sent");
        assert!(why(check(&token, 6)).contains("another order"));
        assert!(check(&token, 5).is_none(), "used up");

        let token = issue();
        clock.advance_ms(59_999);
        let later = issue();
        clock.advance_ms(1);
        assert!(why(check(&token, 5)).contains("older than 60 s"));
        check(&later, 5).expect("known").expect("valid");
        previews.forget(&later);
        assert!(check(&later, 5).is_none());
    }

    #[test]
    fn previews_are_bounded() {
        let previews = Previews::new(Arc::new(ManualClock::at(0)), Duration::from_secs(60));
        let issue = || previews.issue(&order(1), &Principal::Local).expect("a token");
        let first = issue();
        for _ in 0..MAX_KEPT {
            issue();
        }
        assert_eq!(previews.kept.lock().len(), MAX_KEPT);
        assert!(previews.check(&first, &order(1), &Principal::Local).is_none());
    }
}
