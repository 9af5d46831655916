//! Preview tokens. Each is valid for one order and one minute, and places it once; a repeated call gets that order's
//! outcome.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::FutureExt;
use indexmap::IndexMap;
use ring::digest;
use ring::rand::{SecureRandom, SystemRandom};
use tribune_core::{Clock, Error, Principal, Result};

use super::answers::Sending;
use super::order::Order;

pub(super) const VALID_FOR: Duration = Duration::from_secs(60);
/// A used token returns its outcome for this long; after that the journal has it.
const ANSWERS_FOR: Duration = Duration::from_secs(600);
/// How many previews are kept; the oldest are dropped.
const MAX_KEPT: usize = 100;
/// With a prefix, names stay within the exchange's 36 characters.
const NAME_BYTES: usize = 12;

/// The order of a token, once it is sent. A caller holds the lock while it checks the order and sends it, so that of
/// concurrent calls one sends it; if that caller gives up before, the next one may.
pub(super) type Slot = Arc<tokio::sync::Mutex<Option<Sending>>>;

struct Preview {
    order: Order,
    principal: Principal,
    issued: Instant,
    slot: Slot,
}

impl Preview {
    fn is_unused(&self) -> bool {
        self.slot.try_lock().is_ok_and(|sent| sent.is_none())
    }

    fn is_settled(&self) -> bool {
        let is_settled = |sending: &Sending| sending.clone().now_or_never().is_some();
        self.slot.try_lock().is_ok_and(|sent| sent.as_ref().is_some_and(is_settled))
    }

    fn is_kept(&self, now: Instant) -> bool {
        let age = now.saturating_duration_since(self.issued);
        let keep = if self.is_unused() { VALID_FOR } else { ANSWERS_FOR };
        age < keep
    }
}

pub(super) struct Previews {
    clock: Arc<dyn Clock>,
    random: SystemRandom,
    /// By token, oldest first.
    kept: Mutex<IndexMap<String, Preview>>,
}

impl Previews {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, random: SystemRandom::new(), kept: Mutex::default() }
    }

    fn kept(&self) -> MutexGuard<'_, IndexMap<String, Preview>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new token.
    pub(super) fn issue(&self, order: &Order, principal: &Principal) -> Result<String> {
        let token = self.random_name("preview-")?;
        let now = self.clock.monotonic();
        let preview =
            Preview { order: order.clone(), principal: principal.clone(), issued: now, slot: Slot::default() };
        let mut kept = self.kept();
        kept.retain(|_, preview| preview.is_kept(now));
        if kept.len() >= MAX_KEPT {
            // Keep tokens of orders in progress.
            let oldest = |is: fn(&Preview) -> bool| kept.values().position(is);
            let oldest = oldest(Preview::is_unused).or_else(|| oldest(Preview::is_settled)).unwrap_or(0);
            kept.shift_remove_index(oldest);
        }
        kept.insert(token.clone(), preview);
        Ok(token)
    }

    /// What a token was used for; `None` for a token that is not known. Another principal's counts as unknown.
    pub(super) fn slot(&self, token: &str, principal: &Principal) -> Option<Slot> {
        let kept = self.kept();
        let preview = kept.get(token).filter(|preview| preview.principal == *principal)?;
        Some(Arc::clone(&preview.slot))
    }

    pub(super) fn is_for(&self, token: &str, order: &Order) -> bool {
        self.kept().get(token).is_some_and(|preview| preview.order == *order)
    }

    /// Whether an unused token, whose slot the caller has locked, may place an order now. A token that is shown for
    /// another order is used up.
    pub(super) fn redeem(&self, token: &str, order: &Order) -> Result<()> {
        let refuse = |why: &str| {
            Err(Error::invalid_argument(format!(
                "the order was not sent: {why}; call again without preview_token for a new preview"
            )))
        };
        let now = self.clock.monotonic();
        let mut kept = self.kept();
        match kept.get(token) {
            None => refuse("the preview_token is unknown"),
            Some(preview) if now.saturating_duration_since(preview.issued) >= VALID_FOR => {
                refuse("the preview is older than 60 s")
            }
            Some(preview) if preview.order != *order => {
                kept.shift_remove(token);
                refuse("the preview was of another order")
            }
            Some(_) => Ok(()),
        }
    }

    pub(super) fn random_name(&self, prefix: &str) -> Result<String> {
        let mut bytes = [0u8; NAME_BYTES];
        self.random
            .fill(&mut bytes)
            .map_err(|_| Error::internal("this machine gives no random numbers; nothing was sent"))?;
        Ok(named(prefix, &bytes))
    }
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
    use tribune_binance::number::Quantity;
    use tribune_binance::testing::ManualClock;

    fn order(quantity: i128) -> Order {
        Order {
            symbol: "BTCUSDT".to_owned(),
            side: Side::Buy,
            terms: Terms::Market { quantity: Quantity::from_units(quantity) },
        }
    }

    /// The order of another call that does not end.
    fn endless() -> Sending {
        std::future::pending().boxed().shared()
    }

    #[test]
    fn token_is_good_for_one_order_of_one_caller_for_a_minute() {
        let clock = Arc::new(ManualClock::at(0));
        let previews = Previews::new(clock.clone());
        let me = Principal::Local;
        let issue = || previews.issue(&order(5), &me).expect("a token");
        let why = |outcome: Result<()>| outcome.expect_err("refused").message().to_owned();

        let token = issue();
        assert!(client_order_id(&token).len() <= 36);
        assert!(previews.slot(&token, &me).is_some());
        assert!(previews.slot(&token, &Principal::Anonymous).is_none());
        assert!(previews.is_for(&token, &order(5)) && !previews.is_for(&token, &order(6)));
        previews.redeem(&token, &order(5)).expect("unused");

        assert!(why(previews.redeem(&token, &order(6))).contains("another order"));
        assert!(why(previews.redeem(&token, &order(5))).contains("unknown"), "used up");
        assert!(previews.slot(&token, &me).is_none(), "used up");

        let token = issue();
        clock.advance_ms(59_999);
        let later = issue();
        clock.advance_ms(1);
        assert!(why(previews.redeem(&token, &order(5))).contains("older than 60 s"));
        previews.redeem(&later, &order(5)).expect("unused");
    }

    #[tokio::test]
    async fn unsent_order_is_left_to_the_next_caller_and_sent_one_is_not() {
        let previews = Previews::new(Arc::new(ManualClock::at(0)));
        let token = previews.issue(&order(5), &Principal::Local).expect("a token");
        let slot = || previews.slot(&token, &Principal::Local).expect("a slot");
        let first = slot().lock_owned().await;
        let waiting = slot();
        let mut waiting = std::pin::pin!(waiting.lock());
        assert!(waiting.as_mut().now_or_never().is_none(), "the first caller checks it");
        drop(first);
        let mut second = waiting.await;
        assert!(second.is_none(), "nothing was sent");
        *second = Some(endless());
        drop(second);
        assert!(slot().lock().await.is_some(), "never free again");
    }

    #[test]
    fn previews_are_bounded_and_orders_in_progress_stay() {
        let previews = Previews::new(Arc::new(ManualClock::at(0)));
        let issue = || previews.issue(&order(1), &Principal::Local).expect("a token");
        let slot = |token: &str| previews.slot(token, &Principal::Local);
        let (sent, checked, unused) = (issue(), issue(), issue());
        *slot(&sent).expect("a slot").try_lock().expect("free") = Some(endless());
        let _checking = slot(&checked).expect("a slot").try_lock_owned().expect("free");
        for _ in 2..MAX_KEPT {
            issue();
        }
        assert_eq!(previews.kept().len(), MAX_KEPT);
        assert!(slot(&sent).is_some() && slot(&checked).is_some());
        assert!(slot(&unused).is_none());
    }
}
